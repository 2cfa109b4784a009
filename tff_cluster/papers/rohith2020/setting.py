"""Says whether a run is the paper's experiment, and if not, what it was instead."""

import dataclasses

from tff_cluster.base.words import plural
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.papers.rohith2020 import tables

# Partitions that give each client all labels, and those that turn images or change labels.
_OF_ALL_LABELS = ('iid', 'quantity_skew')
_CHANGED = ('label_swapped', 'label_permuted', 'rotated', 'mixture')


@dataclasses.dataclass(frozen=True)
class Setting:
  """What a run was run on.

  Attributes:
    words: For instance 'digits, 20 clients, label_swapped, 5 + 5 rounds'.
    departures: How it departs from the paper, one phrase each; empty for the paper's own setting.
    scaled_down: Whether it has fewer clients, rounds or rows than the paper.
    is_of_paper: Whether the settings are those of the paper or of its scaled-down version (papers/rohith2020/tables.py) and some
      clustering is one of the paper's methods. A report speaks of the paper first only then.
  """

  words: str
  departures: tuple[str, ...]
  scaled_down: bool
  is_of_paper: bool

  @property
  def is_papers(self) -> bool:
    return not self.departures

  @property
  def remark(self) -> str:
    """What a verdict's line must add: empty for the paper's setting."""
    if self.is_papers:
      return ''
    return f'run on {self.words}{"; scaled down" if self.scaled_down else "; not the paper’s setting"}'


def describe_setting(config: ExperimentConfig, num_clients: int) -> Setting:
  """Compares a configuration with section 7.2 of Rohith et al. 2020, see papers/rohith2020/tables.py.

  Args:
    config: The experiment.
    num_clients: Clients that the run really had.
  """
  data, training = config.data, config.training
  rounds = (training.phase1_rounds, training.phase2_rounds)
  departures = []
  if data.dataset not in tables.DATASETS:
    departures.append(f'data {data.dataset}, the paper has EMNIST')
  elif data.dataset == 'emnist' and data.emnist_classes != 10:
    departures.append(f'{data.emnist_classes} classes, the paper has 10')
  if data.emnist_ink != 'dark':
    departures.append('light ink on black, TFF’s EMNIST has dark ink')
  if num_clients != tables.CLIENTS:
    departures.append(f'{plural(num_clients, "client")}, the paper has {tables.CLIENTS}')
  if rounds != (tables.ROUNDS, tables.ROUNDS):
    departures.append(f'{rounds[0]} + {rounds[1]} rounds, the paper has {tables.ROUNDS} + {tables.ROUNDS}')
  if data.rows_per_client is not None:
    departures.append(f'at most {data.rows_per_client} rows a client, the paper shares out 60,000')
  if data.partition in _OF_ALL_LABELS:
    departures.append(
      f'partition {data.partition}, with all labels at each client, the paper has a non-IID one'
    )
  elif data.partition in _CHANGED:
    departures.append(f'partition {data.partition}, which changes rows or labels, the paper leaves them')
  if training.model not in ('mnist_cnn',):
    departures.append(f'model {training.model}, the paper has a CNN')
  if training.cohort_fraction != 1.0:
    departures.append(f'{training.cohort_fraction:g} of the clients a round, the paper has all')
  if training.learning_rate != tables.LEARNING_RATE:
    departures.append(f'learning rate {training.learning_rate:g}, the paper has {tables.LEARNING_RATE:g}')
  if data.malicious_clients:
    departures.append(f'{data.malicious_clients:g} of the clients malicious, the paper has none')
  if training.aggregator != 'mean':
    departures.append(f'aggregator {training.aggregator}, the paper has the mean')
  if data.noise_clients:
    departures.append(f'{data.noise_clients:g} of the clients have other data, the paper has none')
  if training.cluster_start != 'members_mean':
    departures.append(
      f'clusters start from the {training.cluster_start.replace("_", " ")}, the paper starts from the members’ weights'
    )
  if training.sketch_dimension is not None:
    departures.append(f'sketches of {training.sketch_dimension} numbers, the paper has the weights')
  for name, value in training.optimization.items():
    departures.append(f'{name} {value}, the paper has plain federated averaging')
  scaled_down = (
    num_clients < tables.CLIENTS
    or min(rounds) < tables.ROUNDS
    or data.rows_per_client is not None
    or data.dataset == 'digits'
  )
  words = (
    f'{data.dataset}, {plural(num_clients, "client")}, {data.partition}, {rounds[0]} + {rounds[1]} rounds'
  )
  methods = {clustering.method for clustering in config.clusterings}
  of_paper = not departures or _is_scaled_down_version(config)
  return Setting(words, tuple(departures), scaled_down, of_paper and not methods.isdisjoint(tables.METHODS))


def _is_scaled_down_version(config: ExperimentConfig) -> bool:
  found = {**vars(config.data), **vars(config.training)}
  return not config.training.optimization and all(
    found[name] == value for name, value in tables.SCALED_DOWN.items()
  )
