"""What phases measure and leave for each other; results are put together of it (result_parts.py).

Accuracies are from 0 to 1, times in seconds.
"""

import dataclasses

from tff_cluster.aggregation.expert_comparison import Comparison
from tff_cluster.base import records
from tff_cluster.base.cost import Cost
from tff_cluster.base.types import Json
from tff_cluster.clustering.sketch import Distortion
from tff_cluster.data.class_counts import Metrics, RowMetrics
from tff_cluster.experiment.sections import PERSONALIZED


@dataclasses.dataclass(frozen=True)
class History(records.Record):
  """Means over clients after each round; a client in several clusters counts with the mean over their models.

  Attributes:
    rounds: Numbers of the rounds.
    validation_accuracy, test_accuracy: [rounds].
    share_at_target: [rounds], clients whose test accuracy is at least the configured target.
  """

  rounds: list[int]
  validation_accuracy: list[float]
  test_accuracy: list[float]
  share_at_target: list[float]


@dataclasses.dataclass(frozen=True)
class Evaluation(records.Record):
  """How good models are.

  Attributes:
    global_test: The one model on the global test set; None where clients differ in their model. JSON calls it `global`.
    clients: Each client's model on its own test rows.
    client_accuracy: [clients], on these rows.
    mixing: [clusters][clients or 1], the matrix that makes the models; None where it has more than 100,000 numbers, and
      where no rule made them by mixing.
    own_rounds: Of a training rule, after how many rounds of training for themselves clients stopped.
  """

  global_test: RowMetrics | None = dataclasses.field(metadata=records.about(key='global'))
  clients: Metrics
  client_accuracy: list[float]
  mixing: list[list[float]] | None = records.optional(None)
  own_rounds: int | None = records.optional(None)


@dataclasses.dataclass(frozen=True)
class Stage(records.Record):
  """FedAvg without clusters up to a round.

  Attributes:
    rounds: That round.
    cost: What it cost.
    history: From round 1 on.
    dropped_updates: Client updates that were not finite and were left out.
    evaluation: Of its model.
  """

  rounds: int
  cost: Cost
  history: History
  dropped_updates: int
  evaluation: Evaluation


@dataclasses.dataclass(frozen=True)
class Personalized(records.Record):
  """A baseline without clusters in which every client has a model of its own.

  Attributes:
    name: 'local', 'fine_tuning' or 'ditto'.
    model: What a client's model is, in words.
    round: The round whose models were measured; with fine-tuning, whose rounds come after FedAvg's last one, the one that was
      chosen.
    cost: Of all rounds, less FedAvg's in Phase 1: of FedAvg's rounds where it stands on them, and of what clients train for
      themselves, which is sent to nobody; with fine-tuning all rounds that were tried, and measuring each on validation rows.
      Alone, what is sent is below 0, because what Phase 1 sent is taken off.
    history: From round 1 on; with fine-tuning from FedAvg's last round to the last that was tried.
    evaluation: Each client with the model of its own.
    dropped_updates: Updates that were not finite; the client stays with the model that it has.
  """

  name: str
  model: str
  round: int
  cost: Cost
  history: History
  evaluation: Evaluation
  dropped_updates: int = records.optional(0)

  @property
  def title(self) -> str:
    """What pages call it."""
    return PERSONALIZED[self.name]


@dataclasses.dataclass(frozen=True)
class Sketch(records.Record):
  """What clients sent in place of whole signatures.

  Attributes:
    dimension: Numbers a client.
    distortion: Relative errors of a few clients' distances; None where there are no two.
  """

  dimension: int
  distortion: Distortion | None


@dataclasses.dataclass(frozen=True)
class Cut(records.Record):
  """What a threshold attains after the round of Phase 2 in which one is chosen; means over clients.

  Attributes:
    threshold: A distance.
    num_clusters: Clusters below it.
    validation_accuracy, test_accuracy, share_at_target: See History.
  """

  threshold: float
  num_clusters: int
  validation_accuracy: float
  test_accuracy: float
  share_at_target: float


@dataclasses.dataclass(frozen=True)
class Choice(records.Record):
  """The cuts among which a threshold was chosen.

  Attributes:
    candidates: From the coarsest to the finest.
    chosen: Position of the best on validation rows.
    best_on_test: The same on test rows, which chose nothing.
    cost: What the cuts that were not chosen cost, and measuring all of them on validation rows.
    rounds: How many rounds of Phase 2 each cut was trained for.
    best_after_one: What the first of these rounds would have chosen on validation rows; None where there is no other round.
  """

  candidates: list[Cut]
  chosen: int
  best_on_test: int
  cost: Cost
  rounds: int = records.optional(1)
  best_after_one: int | None = records.optional(None)


@dataclasses.dataclass(frozen=True)
class ClusterScores(records.Record):
  """Accuracy of each cluster's model.

  Attributes:
    members: [clusters], on its members' test rows: specialisation kept.
    global_test: [clusters], on the global test set: generality gained. JSON calls it `global`.
  """

  members: list[float]
  global_test: list[float] = dataclasses.field(metadata=records.about(key='global'))


@dataclasses.dataclass(frozen=True)
class Experts(Comparison):
  """The cluster models as experts on the global test set, in its order.

  Attributes:
    expert_loss: [clusters], cross-entropy.
    expert_loss_twice: [clusters], of the outputs put through a softmax once more, as the paper of FedEx has it.
    weights: [clusters][classes], FedEx's after the last row.
  """

  expert_loss: list[float]
  expert_loss_twice: list[float]
  weights: list[list[float]]


@dataclasses.dataclass(frozen=True)
class OwnValidation(records.Record):
  """How good the clients' own models are on their validation rows where clusters overlap: the mean over clients.

  `History` has the mean over a client's clusters of their models' accuracies, while its own model is the mean of their weights.

  Attributes:
    at_end: After the last round.
    at_equal_cost: After the last round of EqualCost; None where it is the last one.
  """

  at_end: float
  at_equal_cost: float | None


@dataclasses.dataclass(frozen=True)
class EqualCost(records.Record):
  """How far a clustering comes on what FedAvg without clusters spends in Phase 2, counted in the budget of the run.

  Attributes:
    round: The last round that it can pay; the one that its models start from where it can pay none.
    cost: What it has spent then, with what the clustering itself cost; see Clustering.cost in result_parts.py.
    evaluation: Each client's own model after that round.
    validation_accuracy: As in `history`, which it is in where this is None.
  """

  round: int
  cost: Cost
  evaluation: Evaluation
  validation_accuracy: float | None = records.optional(None)


@dataclasses.dataclass(frozen=True)
class JoinedClients(records.Record):
  """The new clients in the clusters of a clustering.

  Attributes:
    assigned: [new][positions in `clusters`].
    fallback: [new], no cluster took the client by the method's own rule (`join` in clustering/methods).
    client_accuracy: [new], each with its own model, the mean of its clusters' models, on its test rows.
    cluster_accuracy: [clusters][new].
    shares: [new], what each has of each of its clusters, in the order of `assigned`; None where it has as much of each.
    regret: [new], accuracy of the single cluster model that is best on the client's test rows, known in hindsight only, minus
      its own; below 0 where a mean of several models is better.
    cost: Of what assigned them.
  """

  assigned: list[list[int]]
  fallback: list[bool]
  client_accuracy: list[float]
  cluster_accuracy: list[list[float]]
  regret: list[float]
  cost: Cost
  shares: list[list[float]] | None = dataclasses.field(default=None, kw_only=True, metadata={'omitted': True})


@dataclasses.dataclass(frozen=True)
class Untrained(records.Record):
  """A clustering of the same signatures that was not trained (k-means for K = 2 .. 10, ...).

  Attributes:
    method: Name of its method.
    title: What pages call it.
    told: Number of clusters that it was told; None where it was told none.
    parameters: Its options.
    num_clusters: How many it made; None where it could not be made.
    memberships: Mean number of clusters of a client; None where it could not be made.
    silhouette: Mean silhouette of the clients; None where it could not be made.
    notes: What it says of itself, and why it could not be made.
  """

  method: str
  title: str
  told: int | None
  parameters: dict[str, Json]
  num_clusters: int | None
  memberships: float | None
  silhouette: float | None
  notes: list[str]


@dataclasses.dataclass(frozen=True)
class Spent(records.Record):
  """What a phase took.

  Attributes:
    seconds: Its wall time; where it was stopped and went on, since it went on.
    client_rounds_asked: Client-rounds that it stands on, and no phase before it.
    client_rounds_trained: Those of them that were not in the store.
  """

  seconds: float
  client_rounds_asked: int
  client_rounds_trained: int

  def of(self, name: str) -> 'Timing':
    """Returns it with a name."""
    return Timing(name, self.seconds, self.client_rounds_asked, self.client_rounds_trained)


@dataclasses.dataclass(frozen=True)
class Timing(records.Record):
  """What a phase took, by name.

  Attributes:
    name: Of the phase.
    seconds: Its wall time; where it was stopped and went on, since it went on.
    client_rounds_asked: Client-rounds that it stands on, and no phase before it.
    client_rounds_trained: Those of them that were not in the store.
  """

  name: str
  seconds: float
  client_rounds_asked: int
  client_rounds_trained: int
