"""The parts of results.json (tff_cluster/experiment/results.py). Accuracies are from 0 to 1, times in seconds.

What is not said here is in the records of lower rooms: `Metrics` and `RowMetrics` (data/class_counts.py), `Recovery` (clustering/recovery.py),
`Test` and `TwoKinds` (clustering/alternating.py), `Comparison` (aggregation/expert_comparison.py), `Checkpoints`
(storage/saved_rounds.py) and `Environment` (base/environment.py).
"""

import dataclasses

from tff_cluster.aggregation.expert_comparison import Comparison
from tff_cluster.base import records
from tff_cluster.base.types import Json
from tff_cluster.clustering.alternating import Test
from tff_cluster.clustering.recovery import Recovery
from tff_cluster.clustering.sketch import Distortion
from tff_cluster.data.class_counts import Metrics, RowMetrics
from tff_cluster.storage.saved_rounds import Checkpoints


@dataclasses.dataclass(frozen=True)
class Ledger(records.Record):
  """What rounds cost on the network: a client-round moves the model down once and up once.

  Attributes:
    client_rounds: Rounds of single clients.
    bytes_up, bytes_down: What they sent and received.
  """

  client_rounds: int
  bytes_up: int
  bytes_down: int


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
  """

  global_test: RowMetrics | None = dataclasses.field(metadata=records.about(key='global'))
  clients: Metrics
  client_accuracy: list[float]
  mixing: list[list[float]] | None = records.optional(None)


@dataclasses.dataclass(frozen=True)
class Stage(records.Record):
  """FedAvg without clusters up to a round.

  Attributes:
    rounds: That round.
    ledger: What it cost.
    history: From round 1 on.
    dropped_updates: Client updates that were not finite and were left out.
    evaluation: Of its model.
  """

  rounds: int
  ledger: Ledger
  history: History
  dropped_updates: int
  evaluation: Evaluation


@dataclasses.dataclass(frozen=True)
class Local(records.Record):
  """Every client alone, from the initial model. Nothing is sent.

  Attributes:
    client_rounds: Rounds of single clients.
    history: From round 1 on.
    evaluation: Each client with the model of its own.
    dropped_updates: Updates that were not finite; the client stays with the model that it has.
  """

  client_rounds: int
  history: History
  evaluation: Evaluation
  dropped_updates: int = records.optional(0)


@dataclasses.dataclass(frozen=True)
class Rows(records.Record):
  """How many rows clients have; the global test set is nobody's, and new clients have none."""

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
  """The clients that took no part; see Population."""

  client_ids: list[str]
  digest: str
  label_counts: list[list[int]]
  truths: dict[str, list[list[float]]]
  rows: Rows
  fedavg: AccuracyOfNewClients


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
class Cut(records.Record):
  """What a threshold attains after one round of Phase 2; means over clients.

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
    other_client_rounds: What the cuts that were not chosen cost.
  """

  candidates: list[Cut]
  chosen: int
  best_on_test: int
  other_client_rounds: int


@dataclasses.dataclass(frozen=True)
class Split(Test):
  """A time that a cluster of a method that alternates was found stationary and tested, with client ids.

  Attributes:
    half_accuracy: None, or for each half its clients' mean test accuracy in the round of the split and in up to five
      rounds after it.
  """

  half_accuracy: list[list[float]] | None = dataclasses.field(default=None, kw_only=True)


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
class EqualCost(records.Record):
  """How far a clustering comes on the client-rounds that FedAvg without clusters spends in Phase 2.

  Attributes:
    round: The last round that it can pay; the last one of Phase 1 where it can pay none.
    client_rounds: What it has spent then, with what the clustering itself cost.
    evaluation: Each client's own model after that round.
  """

  round: int
  client_rounds: int
  evaluation: Evaluation


@dataclasses.dataclass(frozen=True)
class JoinedClients(records.Record):
  """The new clients in the clusters of a clustering.

  Attributes:
    assigned: [new][positions in `clusters`].
    fallback: [new], no cluster took the client by the method's own rule (`join` in clustering/methods).
    client_accuracy: [new], each with its own model, the mean of its clusters' models, on its test rows.
    cluster_accuracy: [clusters][new].
    regret: [new], accuracy of the single cluster model that is best on the client's test rows, known in hindsight only, minus
      its own; below 0 where a mean of several models is better.
    ledger: Of their local updates.
  """

  assigned: list[list[int]]
  fallback: list[bool]
  client_accuracy: list[float]
  cluster_accuracy: list[list[float]]
  regret: list[float]
  ledger: Ledger


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
    num_clusters, overlapping: Of these.
    memberships: Mean number of clusters of a client.
    notes: What a reader must know (threshold used, cliques found, collapsed, ...).
    threshold: The distance threshold that was used, where there is one.
    choice: Of that threshold, None where it was given.
    recovery: How well the planted groups are found, by their name.
    ledger: Of Phase 2, of the round in which clients sent updates to be clustered, of weights that clients outside the last
      cohort sent, of the local rounds that start clusters with sketches, and of thresholds that were tried and not chosen.
    history: Of Phase 2.
    best_validation: [clusters], highest validation accuracy that each cluster's model attained.
    cluster_scores: Of the models as trained ('unblended'), and as each rule with `of_clusters` makes them, by its name.
    evaluations: By rule: the mixing rules of aggregation/rules/, and those of Results.rules. Rules of predictions have no
      `mixing`, and None for every loss.
    experts: None where they were not asked for.
    equal_cost: None where the ledger's client_rounds are at most those that FedAvg without clusters spends in Phase 2.
    splits: None where clusters were found in one step; else the tests in order of round and, within a round, of the
      clusters' first members. `clusters` are the leaves.
    new_clients: None where all clients took part.
    excluded: Clients that were not clustered, because their updates were not finite. They are members of the largest cluster
      (bipartition: of the larger halves). `recovery` is over the others, as are the scores of candidates.
    dropped_updates: Client updates of Phase 2 that were not finite and were left out.
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
  ledger: Ledger
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


@dataclasses.dataclass(frozen=True)
class Untrained(records.Record):
  """A clustering of the same signatures that was not trained (k-means for K = 2 .. 10, ...); see Clustering.

  Attributes:
    num_clusters, memberships, silhouette: None where it could not be made.
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
    honest_beside_malicious: Share of honest clients that share a cluster with a malicious one; None without honest clients, and
      without clusters.
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
  """Mean client accuracy over folds with Student's 95% interval, and mean macro recall."""

  mean: float
  low: float
  high: float
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
    kind: 'mixing' or 'prediction'.
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
    local: One a client, where it was asked for.
  """

  phase1: Checkpoints
  baseline: Checkpoints
  signatures: dict[str, str]
  clusterings: dict[str, list[Checkpoints]]
  local: list[Checkpoints] | None = records.optional(None)


@dataclasses.dataclass(frozen=True)
class Spent(records.Record):
  """What a phase took.

  Attributes:
    seconds: Its wall time.
    client_rounds_asked: Client-rounds that it stands on.
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
  """What a phase of this name took; see Spent."""

  name: str
  seconds: float
  client_rounds_asked: int
  client_rounds_trained: int


@dataclasses.dataclass(frozen=True)
class SummaryLine(records.Record):
  """What came out for one contender; None where there is none.

  Attributes:
    label: Of the contender.
    kind: 'fedavg', 'local', 'oracle', 'disjoint' or 'overlapping'.
    mean_client_accuracy: After Phase 2, each client with its own model on its own test rows.
    difference: Of that to FedAvg without clusters, client by client.
    interval: [low, high], 95%, of the difference; over clients, in a comparison over seeds and clients.
    num_clusters: How many; in a comparison the mean over seeds, as are the numbers below.
    ari, omega: Against the first of the planted groups.
    client_rounds: Of Phase 2.
    bytes: Up and down together, as in the ledgers.
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
