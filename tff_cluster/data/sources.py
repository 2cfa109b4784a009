"""Where rows come from: the embedded digits here, the others in one module each."""

import numpy as np

from tff_cluster.config import DataConfig
from tff_cluster.data import emnist, images, npz_file
from tff_cluster.data.source import Source
from tff_cluster.errors import InputError

_SIDE, _SMALL = 28, 8


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
    return images.load_images(config.dataset, config.data_dir)
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
  """Scales images by bilinear interpolation, in whole numbers so that every machine gets the same bits.

  Args:
    small: int64[rows, 8, 8], from 0 to 16.

  Returns:
    uint8[rows, 28, 28, 1], from 0 to 255.
  """
  # Centre of output pixel i in units of 1/14 input pixel: (i + 1/2) * 8 / 28 - 1/2 = (4 i - 5) / 14.
  position = np.clip(4 * np.arange(_SIDE) - 5, 0, 14 * (_SMALL - 1))
  low = np.minimum(position // 14, _SMALL - 2)
  weights = np.zeros((_SIDE, _SMALL), np.int64)
  weights[np.arange(_SIDE), low] = 14 - (position - 14 * low)
  weights[np.arange(_SIDE), low + 1] += position - 14 * low
  large = np.einsum('ia,nab,jb->nij', weights, small, weights, optimize=True)
  full = 14 * 14 * 16
  return ((2 * 255 * large + full) // (2 * full)).astype(np.uint8)[..., None]
