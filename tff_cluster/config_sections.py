"""The sections of a configuration: each field is declared once, here, with its help text and where it applies.

The command line (tff_cluster/cli) makes its flags from these declarations, `config.json` is these fields by name, and a
field that does not apply to the chosen dataset, partition or method may not be given. tff_cluster/config.py puts the
sections together and checks what no section can know alone; import them from there.
"""

import dataclasses

from tff_cluster.options import option

DATASETS = ('digits', 'mnist', 'cifar10', 'emnist', 'file')
PARTITIONS = (
    'iid', 'pathological', 'label_swapped', 'label_permuted', 'rotated',
    'dirichlet', 'quantity_skew', 'by_writer', 'mixture',
)  # fmt: skip
MODELS = ('mnist_cnn', 'cifar_cnn', '2nn', 'logistic')
METHODS = ('kmeans', 'dynamic_distance', 'hierarchical', 'bipartition', 'spectral', 'planted')
# Methods that cluster one vector a client; bipartition alternates between training and splitting. planted is no method
# but what methods are measured against; its signature is what pictures show.
ON_SIGNATURES = tuple(method for method in METHODS if method != 'bipartition')
# Methods that are told the number of clusters; they draw their starts from a seed.
COUNTED = ('kmeans', 'spectral')
METRICS = ('l1', 'l2', 'cosine')
LINKAGES = ('single', 'complete', 'average', 'ward')
AFFINITIES = ('cosine', 'rbf', 'nearest_neighbors')
VARIANTS = ('cliques', 'neighbourhoods')
SIGNATURES = ('weights', 'updates')
INITIALIZERS = ('model', 'fan_in_uniform')
STARTS = ('members_mean', 'global_model')
ATTACKS = ('sign_flip', 'scaled', 'label_flip', 'nan')
# What a malicious client multiplies its update with, where --attack_scale is not given.
_ATTACK_SCALES = {'sign_flip': 1.0, 'scaled': 10.0}
AGGREGATORS = ('mean', 'zeroing', 'clipping', 'robust')
# A threshold of hierarchical clustering that is chosen by training, see algorithms/threshold_choice.py.
VALIDATION = 'validation'
VALIDATION_NEEDS_A_RUN = '--distance_threshold=validation trains the clusters of a run; for vectors alone give a number or quantile:q'
PLANTED_NEEDS_A_RUN = '--method=planted: planted groups are those of a run; vectors alone have none'
GROUPED = ('label_swapped', 'label_permuted', 'rotated', 'mixture')


@dataclasses.dataclass(frozen=True)
class DataConfig:
  """Which rows, and which client holds them."""

  dataset: str = option('digits', 'Source of the rows.', choices=DATASETS)
  data_dir: str | None = option(
    None,
    'Folder that the loaders of mnist, cifar10 and emnist read and download to; default: their own cache.',
    applies=('dataset', ('mnist', 'cifar10', 'emnist')),
  )
  data_file: str | None = option(
    None,
    'An .npz with x [rows, ...], y [rows] and optional client_id [rows] and group [rows].',
    applies=('dataset', ('file',)),
  )
  emnist_classes: int = option(
    10, 'EMNIST: digits only, or digits and letters.', choices=(10, 62), applies=('dataset', ('emnist',))
  )
  partition: str = option(
    'label_swapped',
    'How rows are given to clients; by_writer keeps the owners of emnist and of a file with client_id.',
    choices=PARTITIONS,
  )
  num_clients: int = option(20, 'Number of clients; by_writer draws this many writers.', at_least=1)
  new_clients: int = option(
    0,
    'So many of the clients take no part: they come after training, and one local update each assigns them to clusters.',
    at_least=0,
  )
  rows_per_client: int | None = option(
    None, 'Training and validation rows of each client at most; default: all rows are shared out.', at_least=3
  )
  min_examples: int = option(
    1, 'Take writers with at least this many examples.', at_least=1, applies=('partition', ('by_writer',))
  )
  max_examples: int | None = option(
    None, 'Take writers with at most this many examples.', at_least=1, applies=('partition', ('by_writer',))
  )
  shards_per_client: int = option(
    2, 'Label-sorted shards that each client gets.', at_least=1, applies=('partition', ('pathological',))
  )
  noise_clients: float = option(
    0.0,
    'Share of the clients that hold CIFAR-10 images as 28x28 grey instead; --dataset=mnist only.',
    at_least=0.0,
    at_most=0.5,
    applies=('partition', ('pathological',)),
  )
  num_groups: int = option(4, 'Planted groups of clients.', at_least=1, applies=('partition', GROUPED))
  label_skew: float | None = option(
    None,
    'Dirichlet concentration of the labels within the planted groups; default: no skew.',
    above=0.0,
    applies=('partition', GROUPED),
  )
  dirichlet_alpha: float = option(
    0.5,
    'Concentration of the label shares; smaller is more skewed.',
    above=0.0,
    applies=('partition', ('dirichlet',)),
  )
  quantity_alpha: float = option(
    1.0,
    'Concentration of the numbers of rows; smaller is more uneven.',
    above=0.0,
    applies=('partition', ('quantity_skew',)),
  )
  mixture_kind: str = option(
    'rotated',
    'What tells the groups of a mixture apart.',
    choices=('rotated', 'label_swapped', 'label_permuted'),
    applies=('partition', ('mixture',)),
  )
  mixture_share: float = option(
    0.3,
    "Share of a mixed client's rows that comes from its second group.",
    above=0.0,
    at_most=0.5,
    applies=('partition', ('mixture',)),
  )
  mixed_clients: float = option(
    0.5,
    'Share of the clients that are mixed; the others belong to one group.',
    at_least=0.0,
    at_most=1.0,
    applies=('partition', ('mixture',)),
  )
  validation_fraction: float = option(
    0.1,
    "Share of each client's training rows that is kept for validation (at least one row).",
    above=0.0,
    at_most=0.5,
  )
  test_fraction: float = option(
    0.2,
    'Share of the rows that is kept for testing, in sources that have no test set.',
    above=0.0,
    at_most=0.5,
    applies=('dataset', ('digits', 'file')),
  )
  data_seed: int = option(0, 'Seed of partition, splits and planted groups.', at_least=0)
  malicious_clients: float = option(
    0.0,
    'Share of the clients that do harm, as --attack says; drawn with --data_seed.',
    at_least=0.0,
    at_most=0.5,
    quiet=True,
  )
  attack: str = option(
    'sign_flip',
    'What malicious clients do: send the negative of their update, send it many times, train on labels that are turned '
    'round (classes - 1 - y), or send NaN.',
    choices=ATTACKS,
    quiet=True,
  )
  attack_scale: float | None = option(
    None,
    'How often malicious clients send their update; default: 1 for sign_flip, 10 for scaled.',
    above=0.0,
    applies=('attack', tuple(_ATTACK_SCALES)),
    quiet=True,
  )

  @property
  def num_participants(self) -> int:
    """Clients that are trained and clustered."""
    return self.num_clients - self.new_clients

  @property
  def update_scale(self) -> float:
    """What a malicious client multiplies its update with: below 0 with its sign flipped, NaN where it sends NaN."""
    if self.attack not in _ATTACK_SCALES:
      return float('nan') if self.attack == 'nan' else 1.0
    scale = _ATTACK_SCALES[self.attack] if self.attack_scale is None else self.attack_scale
    return -scale if self.attack == 'sign_flip' else scale


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
  """Model, client work and rounds of Phases 1 and 2."""

  model: str = option(
    'mnist_cnn', f'{", ".join(MODELS)}, or package.module:function that returns a Keras model.'
  )
  initializer: str = option(
    'model',
    "Initial weights: the model's own (Glorot uniform for the built-in ones), or kernels and biases from "
    'U(-1/sqrt(fan in), 1/sqrt(fan in)), the default of PyTorch.',
    choices=INITIALIZERS,
  )
  phase1_rounds: int = option(20, 'Rounds of FedAvg over all clients.', at_least=1)
  phase2_rounds: int = option(20, 'Rounds of FedAvg within each cluster.', at_least=1)
  cohort_fraction: float = option(
    1.0,
    'Share C of the clients (of a cluster) that train in a round; at least one does.',
    above=0.0,
    at_most=1.0,
  )
  cluster_start: str = option(
    'members_mean',
    "What a cluster's first round starts from: the mean of its members' weights, or the model of Phase 1.",
    choices=STARTS,
  )
  batch_size: int = option(20, 'Rows of a batch; 0: all rows of the client at once.', at_least=0)
  local_epochs: int = option(1, 'Passes over its rows that a client makes in a round.', at_least=1)
  learning_rate: float = option(0.1, 'Client learning rate (SGD).', above=0.0)
  sketch_dimension: int | None = option(
    None,
    'Clients send a count sketch of this many numbers for clustering; default: their whole signature.',
    at_least=1,
  )
  seed: int = option(
    0,
    'Seed of all that is drawn but the data: initial weights, cohorts, visit orders, starts of clusterings, ...',
    at_least=0,
  )
  aggregator: str = option(
    'mean',
    "How the updates of a round are put together: the mean by rows, or TFF's means that zero updates with a huge entry, clip "
    'them to an adaptive norm, or do both (robust).',
    choices=AGGREGATORS,
    quiet=True,
  )


@dataclasses.dataclass(frozen=True)
class ClusteringConfig:
  """One clustering of the clients' signatures."""

  method: str = option('dynamic_distance', 'Clustering method.', choices=METHODS)
  name: str | None = option(None, "What results call this clustering; default: the method's name.")
  signature: str = option(
    'weights',
    "What is clustered: the clients' own weights of the last round, or one local update from the global model.",
    choices=SIGNATURES,
    applies=('method', ON_SIGNATURES),
  )
  num_clusters: int = option(4, 'Number of clusters K.', at_least=1, applies=('method', COUNTED))
  affinity: str = option(
    'cosine',
    'Similarity of signatures: (1 + cosine) / 2, a Gaussian of their distance, or links to the ten nearest.',
    choices=AFFINITIES,
    applies=('method', ('spectral',)),
  )
  distance_threshold: str | None = option(
    None,
    'dynamic_distance: mean (default), a number, or quantile:q. hierarchical: a number T, quantile:q, or validation '
    '(of several cuts the one that is best on validation rows after a round).',
    applies=('method', ('dynamic_distance', 'hierarchical')),
  )
  variant: str = option(
    'cliques',
    'Maximal cliques of the threshold graph, or neighbourhoods (Algorithm 2 read literally).',
    choices=VARIANTS,
    applies=('method', ('dynamic_distance',)),
  )
  max_clusters: int = option(
    1000,
    'Stop with an error when there are more clusters than this.',
    at_least=1,
    applies=('method', ('dynamic_distance',)),
  )
  metric: str = option(
    'l2', 'Distance between signatures.', choices=METRICS, applies=('method', ('hierarchical',))
  )
  linkage: str = option(
    'complete', 'Linkage; ward needs --metric=l2.', choices=LINKAGES, applies=('method', ('hierarchical',))
  )
  stationary_norm: float = option(
    0.4,
    "eps_1 of CFL: a cluster's training is stationary once the norm of the weighted mean update is below it.",
    above=0.0,
    applies=('method', ('bipartition',)),
  )
  stopping_norm: float = option(
    1.6,
    "eps_2 of CFL: a stationary cluster stays whole if the norm of every client's update is below it.",
    above=0.0,
    applies=('method', ('bipartition',)),
  )
  rounds_before_split: int = option(
    10,
    'Rounds that a cluster made by a split trains before it may be split itself; the first split may come after Phase 1.',
    at_least=1,
    applies=('method', ('bipartition',)),
  )
  min_cluster_size: int = option(
    1,
    'Split only if both halves have so many clients; 1, as in the paper: always.',
    at_least=1,
    applies=('method', ('bipartition',)),
  )
  min_similarity_gap: float = option(
    0.0,
    'Split only if every client is by so much more similar to some client of its half than any two clients across are; '
    '0, as in the paper: always.',
    at_least=0.0,
    at_most=2.0,
    applies=('method', ('bipartition',)),
  )
  max_cross_similarity: float = option(
    1.0,
    'Split only if no two clients across the halves have a higher cosine similarity; 1, as in the paper: always.',
    at_least=-1.0,
    at_most=1.0,
    applies=('method', ('bipartition',)),
  )
  truth: str | None = option(
    None,
    'Which planted groups, where the data has several (pathological: digit, label set; with noise clients source).',
    applies=('method', ('planted',)),
  )

  @property
  def label(self) -> str:
    return self.name or self.method


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
  """What is measured beside the standing comparison, and what is trained for that alone."""

  target_accuracy: float = option(
    0.99,
    'Test accuracy that clients are to reach; their share is told for every round.',
    above=0.0,
    at_most=1.0,
  )
  experts: str = option(
    'no',
    "Also combine the cluster models' outputs on the global test set, as experts: FedEx's online layer, mean, vote, ...",
    choices=('yes', 'no'),
  )
  local_training: str = option(
    'no',
    'Also train every client alone, from the initial model, for the rounds of both phases: what a client has without others.',
    choices=('yes', 'no'),
  )
  num_folds: int = option(
    0,
    'Cross-validate: repeat the whole experiment with each of this many folds, at least 2, as test rows; 0: do not.',
    at_least=0,
  )
