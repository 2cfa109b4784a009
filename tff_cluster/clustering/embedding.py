"""Coordinates and a quality measure from distances or inner products alone."""

import numpy as np
import threadpoolctl
from scipy.sparse import linalg

from tff_cluster.base import seeding

# With more clients than this, a few axes are found by Lanczos iterations instead of all at once: seconds instead
# of minutes for ten thousand.
_MOST_AXES = 1500


def classical_scaling(distances: np.ndarray) -> np.ndarray:
  """Returns points of a plane whose Euclidean distances are as near to the given ones as can be (Torgerson 1952).

  Args:
    distances: float64[clients, clients], symmetric, zero diagonal.

  Returns:
    float64[clients, 2], axes by falling spread, mean 0; the coordinate of largest magnitude of each
    axis is positive. Axes that the distances do not span are 0.
  """
  gram = np.asarray(distances, np.float64) ** 2
  means = gram.mean(axis=0)
  gram -= means
  gram -= means[:, None]
  gram += means.mean()
  gram *= -0.5
  points = np.zeros((len(gram), 2))
  found = gram_coordinates(gram, 2)
  points[:, : found.shape[1]] = found
  return points


def gram_coordinates(gram: np.ndarray, most: int | None = None) -> np.ndarray:
  """Returns points with these inner products, where the matrix is positive semidefinite.

  Args:
    gram: float64[clients, clients], symmetric, inner products, about the mean or about zero.
    most: How many axes are wanted; all by default.

  Returns:
    float64[clients, rank or most], axes by falling spread, signs as in `classical_scaling`; negative eigenvalues,
    and what is rounding beside the largest one, are left out.
  """
  if not gram.any():
    return np.zeros((len(gram), 0))
  # In as many threads as there are cores the last bits would depend on their number.
  with threadpoolctl.threadpool_limits(limits=1, user_api='blas'):
    if most is not None and len(gram) > _MOST_AXES:
      start = seeding.generator(0, 'start of Lanczos iterations', len(gram)).normal(size=len(gram))
      values, axes = linalg.eigsh(gram, most, which='LA', v0=start)
    else:
      values, axes = np.linalg.eigh((gram + gram.T) / 2.0)
  order = np.argsort(-values, kind='stable')[:most]
  values, axes = values[order], axes[:, order]
  kept = values > max(values[0], 0.0) * len(gram) * np.finfo(np.float64).eps
  points = axes[:, kept] * np.sqrt(values[kept])
  # The magnitudes are rounded, so that two mirror images do not leave the choice to the last bit.
  magnitude = np.abs(points)
  largest = np.argmax(np.round(magnitude / np.maximum(magnitude.max(axis=0, initial=0.0), 1e-300), 6), axis=0)
  return points * np.where(points[largest, np.arange(points.shape[1])] < 0.0, -1.0, 1.0)


def silhouette(distances: np.ndarray, labels: np.ndarray) -> float | None:
  """Returns the mean silhouette (Rousseeuw 1987) of a disjoint clustering, -1 to 1.

  It is undefined, None, when there is one cluster, and when every client is alone.

  Args:
    distances: float64[clients, clients].
    labels: int64[clients], 0 to the number of clusters - 1.
  """
  if not 2 <= labels.max() + 1 < len(labels):
    return None
  from sklearn import metrics  # Late: who reads vectors that cannot be used is to be told at once.

  return float(metrics.silhouette_score(distances, labels, metric='precomputed'))
