"""Rows of a user's own file (data/npz_file.py)."""

import functools
import logging
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base.errors import InputError, argument
from tff_cluster.data.dataset import Dataset, Outline

if TYPE_CHECKING:
  from tff_cluster.data.data_config import DataConfig
  from tff_cluster.data.source import Source


_LOG = logging.getLogger(__name__)


class File(Dataset):
  """An .npz with x, y and, if wanted, client_id, group and is_test."""

  name = 'file'
  position = 5
  options = ('data_file', 'test_fraction')
  is_of_users = True
  has_owners = True
  has_groups = True

  def check_config(self, config: 'DataConfig') -> None:
    if not config.data_file:
      raise InputError(f'{argument("dataset", "file")} needs {argument("data_file", "X.npz")}')

  def check(self, config: 'DataConfig') -> Outline:
    source = self.load(config)
    x, labels, rows = source.train_x, [source.train_y], len(source.train_x)
    if source.test_y is not None:
      labels, rows = [*labels, source.test_y], rows + len(source.test_y)
    used = len(np.unique(np.concatenate(labels)))
    return Outline(rows, x.shape[1:], x[:1].nbytes, source.num_classes, source.num_classes - used)

  def load(self, config: 'DataConfig') -> 'Source':
    from tff_cluster.data import npz_file

    self.check_config(config)
    assert config.data_file is not None
    source = npz_file.load_npz(config.data_file)
    if source.test_y is not None and config.test_fraction != type(config).test_fraction:
      raise InputError(
        f'{argument("test_fraction", config.test_fraction)} does not apply to {argument("data_file", config.data_file)}, which has is_test'
      )
    if source.train_owner is not None and config.partition != 'by_writer':
      _tell_of_owners(config.data_file, config.partition)
    return source


@functools.cache  # Once a process.
def _tell_of_owners(path: str, partition: str) -> None:
  _LOG.warning(
    '%s says whose each row is (client_id), and partition=%s deals the rows out anew; by_writer keeps them',
    path,
    partition,
  )


DATASET = File()
