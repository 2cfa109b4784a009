"""Small things that several rooms do with arrays."""

from collections.abc import Iterable

import numpy as np


def one_hot(labels: np.ndarray, count: int) -> np.ndarray:
  """Returns float64[count, len(labels)]: 1 where a column has the label of a row, 0 elsewhere."""
  return (np.arange(count)[:, None] == labels).astype(np.float64)


def distance(some: Iterable[np.ndarray], others: Iterable[np.ndarray]) -> float:
  """Returns the Euclidean distance of as many arrays of the same shapes, all of them together."""
  squares = (np.square(a.astype(np.float64) - b).sum() for a, b in zip(some, others, strict=True))
  return float(np.sqrt(sum(squares)))


def evenly(count: int, most: int) -> np.ndarray:
  """Returns int64[min(count, most)], positions spread evenly over 0 .. count - 1, both ends among them."""
  return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))
