"""What is trained, and what is measured: each field is declared once, here, with its help text and where it applies.

The command line (tff_cluster/cli) makes its flags from such declarations, `config.json` is these fields by name, and a
field that does not apply to what was chosen may not be given. Those of the data are in tff_cluster/data/data_config.py,
those of a clustering in its method's file (tff_cluster/clustering/methods). tff_cluster/experiment/config.py puts the sections
together and checks what no section can know alone; import them from there.
"""

import dataclasses
from collections.abc import Iterable

from tff_cluster.base import fields as fields_lib
from tff_cluster.base.cost import UNITS
from tff_cluster.base.fields import Section, option
from tff_cluster.models.builtin import MODELS

INITIALIZERS = ('model', 'fan_in_uniform')
STARTS = ('members_mean', 'global_model')
LOSSES = ('cross_entropy', 'double_softmax')
AGGREGATORS = ('mean', 'zeroing', 'clipping', 'robust')
CLIENT_OPTIMIZERS = ('sgd', 'momentum', 'adam')
SERVER_OPTIMIZERS = (*CLIENT_OPTIMIZERS, 'yogi')
# What FedAvg over all clients, gone on for the rounds of Phase 2, is called beside clusterings.
FEDAVG = 'FedAvg without clusters'
# Baselines in which every client has a model of its own without clusters, by name, and what pages call them.
PERSONALIZED = {'local': 'every client alone', 'fine_tuning': 'fine-tuned FedAvg', 'ditto': 'Ditto'}
# Fields that say how clients and server step; at their defaults it is the federated averaging of McMahan et al. 2017.
_OPTIMIZATION = (
  'loss', 'client_optimizer', 'momentum', 'weight_decay', 'learning_rate_decay', 'proximal_mu', 'server_optimizer',
  'server_learning_rate', 'server_momentum',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class TrainingConfig(Section):
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
  loss: str = option(
    'cross_entropy',
    'What clients minimise: cross-entropy, or that of probabilities which are put through a softmax once more, as PyTorch has it where a '
    'model that ends in a softmax is trained with CrossEntropyLoss.',
    choices=LOSSES,
  )
  phase1_rounds: int = option(
    20,
    'Rounds of FedAvg over all clients. 0: clusters come of what clients make of the initial model in one local training.',
    at_least=0,
  )
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
  learning_rate: float = option(0.1, 'Client learning rate; adam wants a smaller one.', above=0.0)
  client_optimizer: str = option(
    'sgd', "Optimizer of the clients, TFF's; it starts anew in each round.", choices=CLIENT_OPTIMIZERS
  )
  momentum: float = option(
    0.9,
    'Momentum of the clients.',
    above=0.0,
    at_most=1.0,
    applies=('client_optimizer', ('momentum',)),
  )
  weight_decay: float = option(
    0.0, "Adds this many times the weights to a client's gradient (L2 regularization).", at_least=0.0
  )
  learning_rate_decay: float = option(
    1.0,
    'In round t the client learning rate is multiplied by this to the power of t - 1.',
    above=0.0,
    at_most=1.0,
  )
  proximal_mu: float = option(
    0.0,
    "FedProx: adds this many times the difference to the round's first weights to a client's gradient.",
    at_least=0.0,
  )
  server_optimizer: str = option(
    'sgd',
    "Optimizer of the server, TFF's, whose gradient is the mean update: with sgd at rate 1 the model becomes the mean.",
    choices=SERVER_OPTIMIZERS,
  )
  server_learning_rate: float = option(
    1.0,
    'Learning rate of the server; adam and yogi move each weight by about this much in a round, so give 0.01, say.',
    above=0.0,
  )
  server_momentum: float = option(
    0.9,
    'Momentum of the server.',
    above=0.0,
    at_most=1.0,
    applies=('server_optimizer', ('momentum',)),
  )
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
  )

  @property
  def last_round(self) -> int:
    """Number of the last round of Phase 2."""
    return self.phase1_rounds + self.phase2_rounds

  def signatures(self, kinds: Iterable[str]) -> set[str]:
    """Returns the kinds of signatures that clusterings of these kinds, and the start of their clusters, need of Phase 1."""
    needed = set(kinds)
    return needed | {'weights'} if needed and self.cluster_start == 'members_mean' else needed

  @property
  def is_one_step(self) -> bool:
    """Whether a client makes one step a round, so that there is no velocity, and no distance to where it started."""
    return self.batch_size == 0 and self.local_epochs == 1

  @property
  def optimization(self) -> dict[str, str | float]:
    """What clients and server do otherwise than in plain federated averaging, by field; empty for that."""
    found = {}
    for field in dataclasses.fields(self):
      value = getattr(self, field.name)
      chooser, values = field.metadata.get('applies', ('seed', ()))
      if field.name in _OPTIMIZATION and (
        getattr(self, chooser) in values or not fields_lib.is_default(field, value)
      ):
        found[field.name] = value
    return found


@dataclasses.dataclass(frozen=True)
class EvaluationConfig(Section):
  """What is measured beside the standing comparison, and what is trained for that alone."""

  target_accuracy: float = option(
    0.99,
    'Test accuracy that clients are to reach; their share is told for every round.',
    above=0.0,
    at_most=1.0,
  )
  experts: bool = option(
    False,
    "Also combine the cluster models' outputs on the global test set, as experts: FedEx's online layer, mean, vote, ...",
  )
  aggregation: tuple[str, ...] = option(
    (),
    'A rule of Phase 3 beside those that every run has, RULE,KEY=VALUE,...; may be repeated. RULE is fine_tuned (each client trains its '
    "own model on for itself), a built-in rule of predictions, such as vote or gate, for each client's rows, or an import path, whose "
    'module is run: a function of your own, such as my_rules:by_size.',
  )
  local_training: bool = option(
    False,
    'Also train every client alone, from the initial model, for the rounds of both phases: what a client has without others.',
  )
  budget: str = option(
    'rounds',
    'What equal cost means, where a clustering is measured after the last round that FedAvg could pay: client-rounds, bytes up and '
    'down, or passes of rows through a model (forward; one that is trained on counts as three).',
    choices=tuple(UNITS),
  )
  fine_tuning: int = option(
    0,
    "Also fine-tune FedAvg's last model: every client trains alone from it for up to this many rounds, as many as are best on "
    'validation rows; 0: do not.',
    at_least=0,
  )
  ditto: float | None = option(
    None,
    'Also train Ditto (Li et al. 2021): beside FedAvg every client has a model of its own, pulled to it with this lambda, such as '
    '0.1; default: do not.',
    at_least=0.0,
  )
  num_folds: int = option(
    0,
    'Cross-validate: repeat the whole experiment with each of this many folds, at least 2, as test rows; 0: do not.',
    at_least=0,
  )

  @property
  def personalized(self) -> list[str]:
    """The keys of PERSONALIZED that are asked for, in their order."""
    asked = (self.local_training, self.fine_tuning > 0, self.ditto is not None)
    return [name for name, is_asked in zip(PERSONALIZED, asked, strict=True) if is_asked]

  def __post_init__(self):
    if isinstance(self.aggregation, list):  # As JSON has it, and as callers may write it.
      object.__setattr__(self, 'aggregation', tuple(self.aggregation))
    super().__post_init__()
