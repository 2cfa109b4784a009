"""CIFAR-10 through TensorFlow Datasets."""

from typing import TYPE_CHECKING

from tff_cluster.data import tfds_images
from tff_cluster.data.dataset import Dataset, Outline

if TYPE_CHECKING:
  from tff_cluster.data.data_config import DataConfig
  from tff_cluster.data.source import Source


class Cifar10(Dataset):
  """uint8[50000 and 10000, 32, 32, 3]."""

  name = 'cifar10'
  position = 3
  options = ('data_dir',)

  def check(self, config: 'DataConfig') -> Outline:
    tfds_images.check(self.name, config.data_dir)
    return Outline(60_000, (32, 32, 3), 32 * 32 * 3, 10)

  def load(self, config: 'DataConfig') -> 'Source':
    return tfds_images.load(self.name, config.data_dir)


DATASET = Cifar10()
