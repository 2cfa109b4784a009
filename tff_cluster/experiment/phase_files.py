"""What each phase leaves in the folder of a run (tff_cluster/experiment/run_folder.py) for the phases after it."""

import dataclasses
from typing import ClassVar

from tff_cluster.base import records
from tff_cluster.base.cost import Cost
from tff_cluster.base.types import Json
from tff_cluster.clustering import recursion
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.experiment.measured import (
  Choice,
  ClusterScores,
  EqualCost,
  Evaluation,
  Experts,
  History,
  JoinedClients,
  OwnValidation,
  Personalized,
  Sketch,
  Spent,
  Stage,
  Untrained,
)
from tff_cluster.storage.saved_rounds import Checkpoints


class PhaseFile(records.Record):
  """What a phase saved.

  Attributes:
    phase: Name of the program that makes it.
  """

  phase: ClassVar[str]


@dataclasses.dataclass(frozen=True)
class Phase1(PhaseFile):
  """FedAvg over all clients.

  Attributes:
    stage: Its numbers.
    trajectory: Its models after the last two rounds.
    signatures: Artifact of the clients' signatures by kind.
    sketch: None where clients sent whole signatures.
    parameters, model_bytes: Size of the model.
    population: Digest of the clients that were trained.
    timing: What it took.
    model_code: Digest of the module of a user's model.
  """

  phase = 'phase1'
  stage: Stage
  trajectory: Checkpoints
  signatures: dict[str, str]
  sketch: Sketch | None
  parameters: int
  model_bytes: int
  population: str
  timing: Spent
  model_code: str | None = records.optional(None)


@dataclasses.dataclass(frozen=True)
class Baseline(PhaseFile):
  """FedAvg without clusters, gone on for the rounds of Phase 2; see Phase1."""

  phase = 'phase2'
  stage: Stage
  trajectory: Checkpoints
  timing: Spent


@dataclasses.dataclass(frozen=True)
class OwnModels(PhaseFile):
  """A baseline in which every client has a model of its own.

  Attributes:
    trajectories: One a client.
    found: Their numbers.
    timing: What it took.
  """

  phase = 'phase2'
  trajectories: list[Checkpoints]
  found: Personalized
  timing: Spent


@dataclasses.dataclass(frozen=True)
class Clusters(PhaseFile):
  """The clusters of one clustering; see Clustering in result_parts.py.

  Attributes:
    client_ids: [clients], in the order of the population.
    shares: [clusters][clients], see ClusterAssignment.
    sent_bytes: See Outcome.
    code: Digest of a user's method.
  """

  phase = 'clustering'
  clusters: list[list[str]]
  client_ids: list[str]
  label: str
  signature: str
  threshold: float | None
  choice: Choice | None
  notes: list[str]
  excluded: tuple[str, ...] = records.optional(())
  shares: list[list[float]] | None = records.optional(None)
  sent_bytes: int | None = records.optional(None)
  code: str | None = records.optional(None)

  @property
  def assignment(self) -> ClusterAssignment:
    """The clusters as a membership matrix."""
    return ClusterAssignment.from_clusters(self.clusters, self.client_ids, self.shares)


@dataclasses.dataclass(frozen=True)
class ChoiceOfThreshold(PhaseFile):
  """A threshold that was chosen on validation rows."""

  phase = 'clustering'
  choice: Choice
  timing: Spent


@dataclasses.dataclass(frozen=True)
class Splits(PhaseFile):
  """The recursion of a method that splits clusters while they train.

  Attributes:
    tests: What was tested.
    segments: Which clusters trained when, each after the one that it was split from.
    timing: What it took.
  """

  phase = 'clustering'
  tests: list[recursion.Test]
  segments: list[recursion.Segment]
  timing: Spent


@dataclasses.dataclass(frozen=True)
class Alternation(PhaseFile):
  """The rounds of a method that alternates.

  Attributes:
    rounds: Where they are kept: all models of the last round, and of the one of `equal_cost`.
    models: Positions among them of the models that clients have in the end, in the order of the clusters.
    membership: [clusters][clients], the clients' shares in them in the end; columns sum to 1.
    joins_predictions: Whether a client of several models joins their predictions; else their weights.
    cost: What it cost; see Clustering.cost in result_parts.py.
    equal_cost: None where the budget pays all its rounds.
    dropped: Client updates that were not finite, in all its rounds.
    notes: What a reader must know.
    timing: What it took.
  """

  phase = 'clustering'
  rounds: Checkpoints
  models: list[int]
  membership: list[list[float]]
  joins_predictions: bool
  cost: Cost
  equal_cost: EqualCost | None
  dropped: int
  notes: list[str]
  timing: Spent

  @property
  def shares(self) -> list[list[float]] | None:
    """The memberships, where a client has shares in several models, else None."""
    several = any(0.0 < share < 1.0 for row in self.membership for share in row)
    return self.membership if several else None


@dataclasses.dataclass(frozen=True)
class CandidateClusters(Untrained):
  """A clustering that is compared but not trained.

  Attributes:
    clusters: Client ids; None where it could not be made.
  """

  clusters: list[list[str]] | None


@dataclasses.dataclass(frozen=True)
class Candidates(PhaseFile):
  """Clusterings of the same signatures."""

  phase = 'clustering'
  candidates: list[CandidateClusters]


@dataclasses.dataclass(frozen=True)
class Phase2(PhaseFile):
  """The trained clusters of one clustering; see Clustering in result_parts.py.

  Attributes:
    trajectories: All of them.
    last: Position in `trajectories` of the one that each cluster's last rounds are in.
    timing: What it took.
    models: SHA-256 of the exported models by file name.
    validation: None where no client is in several clusters, or the method alternates, so that `history` is of own models.
  """

  phase = 'phase2'
  trajectories: list[Checkpoints]
  last: list[int]
  cost: Cost
  equal_cost: EqualCost | None
  history: History
  best_validation: list[float]
  timing: Spent
  models: dict[str, str]
  dropped_updates: int = records.optional(0)
  validation: OwnValidation | None = records.optional(None)


@dataclasses.dataclass(frozen=True)
class Phase3(PhaseFile):
  """What the rules of every run make of one clustering; see Clustering in result_parts.py."""

  phase = 'phase3'
  evaluations: dict[str, Evaluation]
  cluster_scores: dict[str, ClusterScores]
  experts: Experts | None
  timing: Spent


@dataclasses.dataclass(frozen=True)
class RuleMeasured(records.Record):
  """What a rule of `aggregation` makes of one clustering.

  Attributes:
    determinants: What tells the rule from another one of its name.
    evaluation: Its numbers.
    timing: What it took.
  """

  determinants: dict[str, Json]
  evaluation: Evaluation
  timing: Spent


@dataclasses.dataclass(frozen=True)
class AddedRules(PhaseFile):
  """What the rules of `aggregation` make of one clustering, by name."""

  phase = 'phase3'
  rules: dict[str, RuleMeasured]


@dataclasses.dataclass(frozen=True)
class NewClientsBaseline(PhaseFile):
  """New clients with the model of FedAvg without clusters.

  Attributes:
    client_accuracy: [new].
    timing: What it took.
  """

  phase = 'phase3'
  client_accuracy: list[float]
  timing: Spent


@dataclasses.dataclass(frozen=True)
class NewClientsJoined(PhaseFile):
  """New clients in the clusters of a clustering.

  Attributes:
    joined: Their numbers.
    timing: What it took.
  """

  phase = 'phase3'
  joined: JoinedClients
  timing: Spent
