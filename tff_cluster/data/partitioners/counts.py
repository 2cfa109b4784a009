"""Whole numbers that follow given shares."""

import numpy as np


def apportion(wanted: np.ndarray, total: int) -> np.ndarray:
  """Rounds `wanted` so that it sums to `total` (largest remainders; ties go to the first).

  Args:
    wanted: float[n], not negative; their sum is within n of `total`.
    total: What the result sums to.

  Returns:
    int64[n], each within one of `wanted` where the sum of `wanted` is within one of `total`.
  """
  wanted = np.asarray(wanted, np.float64)
  base = np.floor(wanted).astype(np.int64)
  missing = int(total - base.sum())
  if missing < 0:
    smallest_first = np.argsort(wanted - base, kind='stable')
    takeable = smallest_first[base[smallest_first] > 0][:-missing]
    base[takeable] -= 1
    return base
  largest_first = np.argsort(-(wanted - base), kind='stable')
  np.add.at(base, np.resize(largest_first, missing), 1)
  return base


def label_table(labels: list[np.ndarray], num_classes: int) -> np.ndarray:
  """Returns int64[clients, classes], how often each client has each label, of its labels int[rows of the client]."""
  return np.stack([np.bincount(own, minlength=num_classes) for own in labels]).astype(np.int64)


def split_at(rows: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
  """Cuts `rows` into consecutive pieces of the given sizes; what is left over is dropped."""
  return np.split(rows, np.cumsum(sizes))[: len(sizes)]
