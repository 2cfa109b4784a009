"""The 1,797 handwritten digits that scikit-learn brings along, scaled to MNIST's size.

Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI. No test set of its own.
"""

from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.data import scaling
from tff_cluster.data.dataset import Dataset, Outline

if TYPE_CHECKING:
  from tff_cluster.data.data_config import DataConfig
  from tff_cluster.data.source import Source

_SMALL, _TOP = 8, 16  # Side of an image, and its brightest value.


class Digits(Dataset):
  """uint8[1797, 28, 28, 1]."""

  name = 'digits'
  position = 1
  options = ('test_fraction',)

  def check(self, config: 'DataConfig') -> Outline:
    return Outline(1_797, (28, 28, 1), 28 * 28, 10)

  def load(self, config: 'DataConfig') -> 'Source':
    from sklearn import datasets

    from tff_cluster.data.source import Source

    small, labels = datasets.load_digits(return_X_y=True)
    small = small.reshape(-1, _SMALL, _SMALL).astype(np.int64)
    return Source('digits', scaling.to_mnist_size(small, _TOP), labels.astype(np.int32), num_classes=10)


DATASET = Digits()
