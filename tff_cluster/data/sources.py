"""Where rows come from: the data set that a configuration names."""

from tff_cluster.data import datasets
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.dataset import Outline
from tff_cluster.data.population import MALICIOUS
from tff_cluster.data.source import Source


def check(config: DataConfig) -> Outline | None:
  """Finds out what is wrong with the data, and how large it is, without importing anything slow; see Dataset.check."""
  return datasets.find(config.dataset).check(config)


def load(config: DataConfig) -> Source:
  """Loads the data set that the configuration names.

  Raises:
    InputError: if there is none, or a data file or what is asked of it is wrong.
    EnvironmentFault: if the data is neither cached nor can be downloaded.
  """
  return datasets.find(config.dataset).load(config)


def planted(config: DataConfig) -> tuple[str, ...]:
  """Returns the names of what is planted in the clients of a configuration, as a population has them (Population.truths).

  Whether the rows of a file or text come with groups is read there; raises as `load` does.
  """
  found: list[str] = []
  if config.plants_groups or config.deals_groups or _keeps_groups(config):
    found.append('group')
  elif config.partition == 'pathological':
    found += [*(['source'] if config.noise_clients > 0.0 else []), 'digit', 'label set']
  return (*found, *([MALICIOUS] if config.malicious_clients > 0.0 else []))


def _keeps_groups(config: DataConfig) -> bool:
  """Tells whether clients are owners of rows, which come with groups."""
  dataset = datasets.find(config.dataset)
  return (
    config.partition == 'by_writer' and dataset.has_groups and dataset.load(config).train_group is not None
  )
