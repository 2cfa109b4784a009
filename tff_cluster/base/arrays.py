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
