"""Where rows come from: the embedded digits here, the others in one module each."""

import numpy as np

from tff_cluster.config import DataConfig
from tff_cluster.data import emnist, images, noise, npz_file, scaling
from tff_cluster.data.source import Source
from tff_cluster.errors import InputError

_SMALL = 8


def load(config: DataConfig) -> Source:
  """Loads the source that the configuration names.

  For --dataset=emnist with --partition=by_writer only the writers that the partition draws are read.

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
      raise InputError('--dataset=file needs --data_file=X.npz')
    return npz_file.load_npz(config.data_file)
  raise InputError(f'--dataset={config.dataset}: no such source')


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
