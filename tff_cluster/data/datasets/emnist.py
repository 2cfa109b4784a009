"""Federated EMNIST, kept by writer (data/emnist.py)."""

from typing import TYPE_CHECKING

from tff_cluster.data.dataset import Dataset, Outline

if TYPE_CHECKING:
  from tff_cluster.data.data_config import DataConfig
  from tff_cluster.data.source import Source

_ROWS = {10: 382_705, 62: 749_068}


class Emnist(Dataset):
  """[rows, 28, 28, 1], digits or digits and letters; with partition by_writer only the writers that are drawn are read."""

  name = 'emnist'
  position = 4
  options = ('data_dir', 'emnist_classes', 'emnist_ink')
  has_owners = True
  picks_owners = True

  def check(self, config: 'DataConfig') -> Outline:
    from tff_cluster.data import emnist

    rows = emnist.check(config) or _ROWS[config.emnist_classes]
    return Outline(rows, (28, 28, 1), 28 * 28, config.emnist_classes)

  def load(self, config: 'DataConfig') -> 'Source':
    from tff_cluster.data import emnist

    return emnist.load_emnist(config)


DATASET = Emnist()
