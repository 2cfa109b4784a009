"""Any set of labelled images of TensorFlow Datasets, by its name there: tfds:fashion_mnist, tfds:cifar100, ...

Channels, size and classes are those of the set. It needs a split `train` and the features `image`, of one size, and `label`; a set
without a split `test` has test rows held out (--test_fraction).
"""

import re
from typing import TYPE_CHECKING

from tff_cluster.base.errors import InputError, argument
from tff_cluster.data import tfds_images
from tff_cluster.data.dataset import Dataset, Outline

if TYPE_CHECKING:
  from tff_cluster.data.data_config import DataConfig
  from tff_cluster.data.source import Source

# A name, and if wanted a configuration and a version of it: emnist/letters:3.1.0.
_NAME = re.compile(r'[A-Za-z]\w*(/[\w.+-]+)?(:\d+\.\d+\.\d+)?', re.ASCII)


class Tfds(Dataset):
  """uint8 or float32 [rows, height, width, channels]."""

  name = 'tfds:NAME'
  position = 6
  options = ('data_dir', 'test_fraction')

  def check_config(self, config: 'DataConfig') -> None:
    if not _NAME.fullmatch(_inner(config)):
      raise InputError(
        f'{argument("dataset", config.dataset)}: expected a name of TensorFlow Datasets, such as tfds:fashion_mnist or tfds:emnist/letters'
      )

  def check(self, config: 'DataConfig') -> Outline | None:
    self.check_config(config)
    outline, has_test = tfds_images.check(_inner(config), config.data_dir, config.dataset) or (None, False)
    _check_held_out(config, has_test)
    return outline

  def load(self, config: 'DataConfig') -> 'Source':
    self.check_config(config)
    source = tfds_images.load(_inner(config), config.data_dir, config.dataset)
    _check_held_out(config, source.test_y is not None)
    return source


def _inner(config: 'DataConfig') -> str:
  return config.dataset.partition(':')[2]


def _check_held_out(config: 'DataConfig', has_test: bool) -> None:
  if has_test and config.test_fraction != type(config).test_fraction:
    raise InputError(
      f'{argument("test_fraction", config.test_fraction)} does not apply to {argument("dataset", config.dataset)}, which has test rows of its own'
    )


DATASET = Tfds()
