"""Where rows come from: the embedded digits here, the others in one module each."""

import dataclasses

import numpy as np

from tff_cluster.base.errors import InputError, argument
from tff_cluster.data import emnist, images, noise, npz_file, scaling
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.source import Source

_SMALL = 8
# Rows of training and test sets together, and the shape of one.
_IMAGES = {'digits': (1_797, (28, 28, 1)), 'mnist': (70_000, (28, 28, 1)), 'cifar10': (60_000, (32, 32, 3))}
_EMNIST_ROWS = {10: 382_705, 62: 749_068}


@dataclasses.dataclass(frozen=True)
class Outline:
  """What is known of a source before it is loaded.

  Attributes:
    rows: Training and test rows together.
    input_shape: Shape of an example.
    row_bytes: Bytes of an example.
    num_classes: Number of labels.
    missing_classes: Labels below the highest that no row has; 0 where that is not known yet.
  """

  rows: int
  input_shape: tuple[int, ...]
  row_bytes: int
  num_classes: int
  missing_classes: int = 0


def check(config: DataConfig) -> Outline:
  """Finds out what is wrong with the data, and how large it is, without importing anything slow.

  Raises:
    InputError: if a data file or what is asked of it is wrong.
    EnvironmentFault: if the data is neither there nor can be downloaded.
  """
  if config.dataset == 'file':
    source = load(config)
    x, used = source.train_x, len(np.unique(source.train_y))
    return Outline(len(x), x.shape[1:], x[:1].nbytes, source.num_classes, source.num_classes - used)
  if config.dataset == 'emnist':
    rows = emnist.check(config) or _EMNIST_ROWS[config.emnist_classes]
    return Outline(rows, (28, 28, 1), 28 * 28, config.emnist_classes)
  rows, shape = _IMAGES[config.dataset]
  names = [config.dataset, *(['cifar10'] if config.noise_clients > 0.0 else [])]
  for name in names:
    if name in images.DATASETS:
      images.check(name, config.data_dir)
  return Outline(sum(_IMAGES[name][0] for name in names), shape, int(np.prod(shape)), 10)


def load(config: DataConfig) -> Source:
  """Loads the source that the configuration names.

  Of dataset emnist with partition by_writer only the writers that the partition draws are read.

  Raises:
    InputError: if a data file or what is asked of it is wrong.
    EnvironmentFault: if the data is neither cached nor can be downloaded.
  """
  if config.dataset == 'digits':
    return load_digits()
  if config.dataset == 'emnist':
    return emnist.load_emnist(config)
  if config.dataset in images.DATASETS:
    source = images.load_images(config.dataset, config.data_dir)
    if config.noise_clients > 0.0:
      return noise.add_noise(source, images.load_images('cifar10', config.data_dir), config)
    return source
  if config.dataset == 'file':
    if not config.data_file:
      raise InputError(f'{argument("dataset", "file")} needs {argument("data_file", "X.npz")}')
    return npz_file.load_npz(config.data_file)
  raise InputError(f'{argument("dataset", config.dataset)}: no such source')


def load_digits() -> Source:
  """Returns the 1,797 handwritten digits that scikit-learn brings along, scaled to MNIST's size.

  Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI. No test set of its own.
  """
  from sklearn import datasets

  small, labels = datasets.load_digits(return_X_y=True)
  small = small.reshape(-1, _SMALL, _SMALL).astype(np.int64)
  return Source('digits', enlarge(small), labels.astype(np.int32), num_classes=10)


def enlarge(small: np.ndarray) -> np.ndarray:
  """Scales images by bilinear interpolation; see scaling.to_mnist_size.

  Args:
    small: int64[rows, 8, 8], from 0 to 16.

  Returns:
    uint8[rows, 28, 28, 1], from 0 to 255.
  """
  return scaling.to_mnist_size(small, 16)
