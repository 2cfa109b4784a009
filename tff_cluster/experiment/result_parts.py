"""The parts of results.json (tff_cluster/experiment/results.py). Accuracies are from 0 to 1, times in seconds.

What phases measure is in measured.py. What is in neither is in the records of lower rooms: `Metrics` and `RowMetrics` (data/class_counts.py), `Recovery` (clustering/recovery.py),
`Alternated` (clustering/membership_history.py), `Test` and `TwoKinds` (clustering/recursion.py), `Comparison` (aggregation/expert_comparison.py), `Checkpoints`
(storage/saved_rounds.py) and `Environment` (base/environment.py).
"""

import dataclasses

from tff_cluster.base import records
from tff_cluster.base.cost import Cost
from tff_cluster.base.types import Json
from tff_cluster.clustering.membership_history import (
  Alternated,
  Collapse,
  chooses_number,
  is_anybodys,
)
from tff_cluster.clustering.recovery import Recovery
from tff_cluster.clustering.recursion import Test
from tff_cluster.experiment.measured import (
  Choice,
  ClusterScores,
  EqualCost,
  Evaluation,
  Experts,
  History,
  JoinedClients,
  Sketch,
  Untrained,
)
from tff_cluster.storage.saved_rounds import Checkpoints


@dataclasses.dataclass(frozen=True)
class Rows(records.Record):
  """How many rows clients have; the global test set is nobody's, and new clients have none.

  Attributes:
    train, validation, test: Of all clients together.
    global_test: Of the global test set.
  """

  train: int
  validation: int
  test: int
  global_test: int = records.optional(0)


@dataclasses.dataclass(frozen=True)
class Population(records.Record):
  """The clients that took part.

  Attributes:
    name: What pages call them.
    digest: Names their rows.
    client_ids: [clients].
    num_classes: Number of labels.
    rows: How many.
    label_counts: [clients][classes], of training rows.
    truths: Planted groups by name, [groups][clients]: shares.
  """

  name: str
  digest: str
  client_ids: list[str]
  num_classes: int
  rows: Rows
  label_counts: list[list[int]]
  truths: dict[str, list[list[float]]]


@dataclasses.dataclass(frozen=True)
class AccuracyOfNewClients(records.Record):
  """The model of FedAvg without clusters on the test rows of new clients.

  Attributes:
    client_accuracy: [new].
  """

  client_accuracy: list[float]


@dataclasses.dataclass(frozen=True)
class NewClients(records.Record):
  """The clients that took no part.

  Attributes:
    client_ids: [new].
    digest: Names their rows.
    label_counts: [new][classes], of training rows.
    truths: Planted groups by name, [groups][new]: shares.
    rows: How many.
    fedavg: FedAvg without clusters on them.
  """

  client_ids: list[str]
  digest: str
  label_counts: list[list[int]]
  truths: dict[str, list[list[float]]]
  rows: Rows
  fedavg: AccuracyOfNewClients


@dataclasses.dataclass(frozen=True)
class Training(records.Record):
  """What is trained.

  Attributes:
    parameters: Of the model.
    model_bytes: Its size.
    sketch: None where clients sent whole signatures.
  """

  parameters: int
  model_bytes: int
  sketch: Sketch | None


@dataclasses.dataclass(frozen=True)
class Split(Test):
  """A time that a cluster of a method that splits while it trains was found stationary and tested, with client ids.

  Attributes:
    half_rise: For each half what the client of it that rises least gains: its mean test accuracy in up to five rounds after the
      split, less that in up to five rounds that end with it. None where it was not split, or no round followed.
  """

  half_rise: list[float] | None = dataclasses.field(default=None, kw_only=True)


@dataclasses.dataclass(frozen=True)
class Joined(JoinedClients):
  """The new clients in the clusters of a clustering, and which planted groups these find now.

  Attributes:
    recovery: By planted groups, of the clusters with the new clients in them, all clients together.
  """

  recovery: dict[str, Recovery]


@dataclasses.dataclass(frozen=True)
class Clustering(records.Record):
  """One clustering, its Phase 2 and its Phase 3.

  Attributes:
    label, method, title: What it is called in this run, its method, and the method's name in words.
    parameters: As configured, options at their defaults too.
    told: The number of clusters that the method was told, None where it was told none.
    dial: The option that the overlap dial turns, or None.
    basis: What clusters were found on.
    approach: What a run of such clusterings is called.
    one_cluster: What one cluster of all clients means.
    kind: 'oracle' (the planted groups), 'overlapping' or 'disjoint'.
    signature: 'weights' or 'updates' (bipartition: 'updates').
    clusters: Client ids of each.
    num_clusters, overlapping: Of these; clusters that are equal do not make them overlapping.
    memberships: Mean number of clusters of a client.
    notes: What a reader must know (threshold used, cliques found, collapsed, ...).
    threshold: The distance threshold that was used, where there is one.
    choice: Of that threshold, None where it was given.
    recovery: How well the planted groups are found, by their name.
    cost: Of Phase 2, of the round in which clients sent updates to be clustered, of weights that clients outside the last
      cohort sent, of the local rounds that start clusters with sketches, and of choosing a threshold on validation rows.
      Of a method that alternates and starts from new models all its rounds, less those of Phase 1, in whose place they begin;
      at equal cost it can be below 0 in what the budget does not count.
    history: Of Phase 2.
    best_validation: [clusters], highest accuracy that each cluster's model attained on its members' validation rows; of a method
      that alternates that of the last round's model on those of all who have a share in it.
    cluster_scores: Of the models as trained ('unblended'), and as each rule with `of_clusters` makes them, by its name.
    evaluations: By rule: the mixing rules of aggregation/rules/, and those of Results.rules, but training rules only where a
      client has a model that it could train. Rules of predictions have no `mixing`, and None for every loss.
    experts: None where they were not asked for.
    equal_cost: None where `cost` takes no more of the run's budget than FedAvg without clusters spends in Phase 2.
    splits: None where clusters were found in one step; else the tests in order of round and, within a round, of the
      clusters' first members. `clusters` are the leaves.
    new_clients: None where all clients took part.
    excluded: Clients that were not clustered, because their updates were not finite. They are members of the largest cluster
      (bipartition: of the larger halves). `recovery` is over the others, as are the scores of candidates.
    dropped_updates: Client updates of Phase 2 that were not finite and were left out.
    shares: [clusters][clients], what clients have of each of their clusters, columns sum to 1; None where it is as much of each.
    alternation: What the rounds of a method that alternates between clustering and training came to; None for others.
  """

  label: str
  method: str
  title: str
  parameters: dict[str, Json]
  told: int | None
  dial: str | None
  basis: str
  approach: str
  one_cluster: str
  kind: str
  signature: str
  clusters: list[list[str]]
  num_clusters: int
  overlapping: bool
  memberships: float
  notes: list[str]
  threshold: float | None
  choice: Choice | None
  recovery: dict[str, Recovery]
  cost: Cost
  history: History
  best_validation: list[float]
  cluster_scores: dict[str, ClusterScores]
  evaluations: dict[str, Evaluation]
  experts: Experts | None
  equal_cost: EqualCost | None
  splits: list[Split] | None
  new_clients: Joined | None
  excluded: tuple[str, ...] = records.optional(())
  dropped_updates: int = records.optional(0)
  shares: list[list[float]] | None = records.optional(None)
  alternation: Alternated | None = records.optional(None)

  @property
  def members_tell(self) -> bool:
    """Whether who is in which cluster tells anything: not where every client is in every one of several clusters.

    Clusters of which all clients have the same shares are one.
    """
    if self.memberships < self.num_clusters:
      return True
    return self.shares is None or len(set(map(tuple, self.shares))) == 1

  @property
  def collapse(self) -> Collapse | None:
    """What a method that alternates had lost of its models at the end; None for others."""
    found = self.alternation
    if found is None:
      return None
    taken = self.num_clusters if self.shares is None else sum(map(is_anybodys, self.shares))
    chooses = chooses_number(self.told, found.start, self.parameters)
    return Collapse(
      found.num_models,
      0 if chooses else found.num_models - taken,
      found.num_models > 1 and self.client_models == 1,
    )

  @property
  def client_models(self) -> int:
    """How many different models clients have of their own: 1 where all clients have one."""
    if self.shares is not None:
      return len(set(zip(*self.shares, strict=True)))
    of_client: dict[str, list[int]] = {}
    for cluster, members in enumerate(self.clusters):
      for client in members:
        of_client.setdefault(client, []).append(cluster)
    return len(set(map(tuple, of_client.values())))


@dataclasses.dataclass(frozen=True)
class Candidate(Untrained):
  """A clustering that was not trained, and the planted groups that it finds.

  Attributes:
    signature: What was clustered.
    recovery: None where it could not be made.
  """

  signature: str
  recovery: dict[str, Recovery] | None


@dataclasses.dataclass(frozen=True)
class Sides(records.Record):
  """Honest and malicious clients, each with its own model on its own test rows.

  Attributes:
    honest_accuracy, malicious_accuracy: Means; None without such clients.
    dropped_updates: Not finite, left out.
    honest_beside_malicious: Share of honest clients that share a cluster with a malicious one, with soft memberships the one in which
      they have the largest share; None without honest clients, and without clusters.
  """

  honest_accuracy: float | None
  malicious_accuracy: float | None
  dropped_updates: int
  honest_beside_malicious: float | None = records.optional(None)


@dataclasses.dataclass(frozen=True)
class Malicious(records.Record):
  """What malicious clients (data/malicious.py) do to the others.

  Attributes:
    client_ids: Of those that took part.
    baseline: Without clusters; dropped updates of both phases.
    clusterings: By label; dropped updates of Phase 2, for bipartition in the rounds of Phase 2.
  """

  client_ids: list[str]
  baseline: Sides
  clusterings: dict[str, Sides]


@dataclasses.dataclass(frozen=True)
class OverFolds(records.Record):
  """What cross-validation found.

  Attributes:
    mean: Mean client accuracy, over folds.
    low, high: Student's 95% interval of it.
    precision, recall: Means over folds of the mean over classes, on all test rows of a fold.
  """

  mean: float
  low: float
  high: float
  precision: float
  recall: float


@dataclasses.dataclass(frozen=True)
class CrossValidation(records.Record):
  """What the folds say together.

  Attributes:
    folds: How many.
    evaluations: By 'clustering label/evaluation name'.
  """

  folds: int
  evaluations: dict[str, OverFolds]


@dataclasses.dataclass(frozen=True)
class AddedRule(records.Record):
  """A rule of Phase 3 that a run has beside those of every run.

  Attributes:
    name, words: What files and pages call it.
    kind: 'mixing', 'prediction' or 'training'.
    aggregation: What asked for it.
  """

  name: str
  words: str
  kind: str
  aggregation: str


@dataclasses.dataclass(frozen=True)
class Artifacts(records.Record):
  """What results stand on.

  Attributes:
    phase1, baseline: Trajectories in the store.
    signatures: Folder in the store by kind.
    clusterings: The trajectories of Phase 2, by label.
    personalized: One a client, by name of the baseline.
  """

  phase1: Checkpoints
  baseline: Checkpoints
  signatures: dict[str, str]
  clusterings: dict[str, list[Checkpoints]]
  personalized: dict[str, list[Checkpoints]]


@dataclasses.dataclass(frozen=True)
class SummaryLine(records.Record):
  """What came out for one contender; None where there is none.

  Attributes:
    label: Of the contender.
    kind: 'fedavg', 'local', 'fine_tuning', 'ditto', 'oracle', 'disjoint' or 'overlapping'.
    mean_client_accuracy: After Phase 2, each client with its own model on its own test rows.
    difference: Of that to FedAvg without clusters, client by client.
    interval: [low, high], 95%, of the difference; over clients, in a comparison over seeds and clients.
    num_clusters: How many; in a comparison the mean over seeds, as are the numbers below.
    ari: Adjusted Rand index against the first of the planted groups; None where clusters or groups overlap.
    omega: Omega index against it; None where every client has rows of every group, or is in every one of several clusters, so that members
      tell no two of them apart.
    client_rounds: Of finding the clusters and of Phase 2; of a method that starts from random models, or of clients with models of their
      own, of all rounds less FedAvg's Phase 1. Of FedAvg those of Phase 2.
    bytes: Up and down together, of the same rounds.
    share_match: 1 minus the share error against it, where Omega tells nothing.
  """

  label: str
  kind: str
  mean_client_accuracy: float
  difference: float | None
  interval: list[float] | None
  num_clusters: int | float | None
  ari: float | None
  omega: float | None
  client_rounds: int | float | None
  bytes: int | float | None
  share_match: float | None = records.optional(None)

  @property
  def groups_found(self) -> tuple[str, float] | None:
    """The score that tells how well groups were found, 1 for exactly, and its name; None where none is known."""
    scores = {'ARI': self.ari, 'Omega': self.omega, 'share match': self.share_match}
    return next(((name, value) for name, value in scores.items() if value is not None), None)
