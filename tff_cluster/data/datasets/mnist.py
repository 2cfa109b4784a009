"""MNIST through TensorFlow Datasets, and with CIFAR-10 as noise where that is asked for (data/noise.py)."""

from typing import TYPE_CHECKING

from tff_cluster.data import tfds_images
from tff_cluster.data.dataset import Dataset, Outline

if TYPE_CHECKING:
  from tff_cluster.data.data_config import DataConfig
  from tff_cluster.data.source import Source

_ROWS, _NOISE_ROWS = 70_000, 60_000
_NOISE = 'cifar10'


class Mnist(Dataset):
  """uint8[60000 and 10000, 28, 28, 1]."""

  name = 'mnist'
  position = 2
  options = ('data_dir',)
  takes_noise = True

  def check(self, config: 'DataConfig') -> Outline:
    tfds_images.check(self.name, config.data_dir)
    rows = _ROWS
    if config.noise_clients > 0.0:
      tfds_images.check(_NOISE, config.data_dir)
      rows += _NOISE_ROWS
    return Outline(rows, (28, 28, 1), 28 * 28, 10)

  def load(self, config: 'DataConfig') -> 'Source':
    source = tfds_images.load(self.name, config.data_dir)
    if config.noise_clients > 0.0:
      from tff_cluster.data import noise

      return noise.add_noise(source, tfds_images.load(_NOISE, config.data_dir), config)
    return source


DATASET = Mnist()
