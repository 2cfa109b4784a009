"""Where rows come from: the data set that a configuration names."""

from tff_cluster.data import datasets
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.dataset import Outline
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
