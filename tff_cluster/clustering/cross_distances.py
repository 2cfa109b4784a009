"""Distances between two sets of few long vectors, in bounded memory.

Differences are taken coordinate by coordinate and added up in float64, so that nothing cancels, and no pair's distance
depends on who else is there. The metrics are those of distances.py, with its rule for zero vectors.
"""

import numpy as np
import threadpoolctl
from scipy.spatial import distance as scipy_distance

from tff_cluster.base.errors import InputError
from tff_cluster.clustering import distances as distances_lib
from tff_cluster.clustering.method_options import METRICS


def cross_distances(
  rows: np.ndarray, columns: np.ndarray, metric: str, block_bytes: int = distances_lib.BLOCK_BYTES
) -> np.ndarray:
  """Returns the distances of every row of one matrix to every row of another.

  Args:
    rows: float[rows, features], finite; may be a read-only memmap.
    columns: float[columns, features], likewise.
    metric: 'l1', 'l2' or 'cosine', see distances.pairwise_distances. A zero vector has cosine distance 0 to other zero
      vectors and 1 to all others.
    block_bytes: About how much memory the working copies of blocks of features may take.

  Returns:
    float64[rows, columns].

  Raises:
    InputError: if the metric is unknown, the two have another number of features, or a distance overflows float64.
  """
  if metric not in METRICS:
    raise InputError(f'metric {metric!r}: allowed are {", ".join(METRICS)}')
  _check_features(rows, columns)
  with threadpoolctl.threadpool_limits(limits=1), np.errstate(over='ignore', invalid='ignore'):
    if metric == 'l1':
      result = _summed(rows, columns, None, 'cityblock', block_bytes)
    elif metric == 'l2':
      result = np.sqrt(_summed(rows, columns, None, 'sqeuclidean', block_bytes))
    else:
      result = _cosine(rows, columns, block_bytes)
  if not np.isfinite(result).all():
    raise InputError(f'the {metric} distances of these vectors overflow; scale the vectors down')
  return result


def inner_products(
  rows: np.ndarray, columns: np.ndarray, block_bytes: int = distances_lib.BLOCK_BYTES
) -> np.ndarray:
  """Returns the inner products of every row of one matrix with every row of another, float64[rows, columns].

  Args:
    rows, columns, block_bytes: As in `cross_distances`.

  Raises:
    InputError: if the two have another number of features, or a product overflows float64.
  """
  _check_features(rows, columns)
  result = np.zeros((len(rows), len(columns)))
  with threadpoolctl.threadpool_limits(limits=1), np.errstate(over='ignore', invalid='ignore'):
    for features in distances_lib.column_blocks(len(rows) + len(columns), rows.shape[1], block_bytes):
      sides = [np.asarray(side[:, features], np.float64) for side in (rows, columns)]
      result += sides[0] @ sides[1].T
  if not np.isfinite(result).all():
    raise InputError('the inner products of these vectors overflow; scale the vectors down')
  return result


def _check_features(rows: np.ndarray, columns: np.ndarray) -> None:
  if rows.shape[1] != columns.shape[1]:
    raise InputError(
      f'vectors of {rows.shape[1]} and of {columns.shape[1]} features have no distance; give as many features'
    )


def _cosine(rows: np.ndarray, columns: np.ndarray, block_bytes: int) -> np.ndarray:
  norms = [_norms(side, block_bytes) for side in (rows, columns)]
  if not all(np.isfinite(norm).all() for norm in norms):
    return np.full((len(rows), len(columns)), np.inf)
  scales = [1.0 / np.where(norm == 0.0, 1.0, norm) for norm in norms]
  # Half the squared distance of the unit vectors: 1 - cos would lose its digits where vectors are nearly parallel.
  result = _summed(rows, columns, scales, 'sqeuclidean', block_bytes) / 2.0
  no_direction = [norm == 0.0 for norm in norms]
  result[no_direction[0]] = 1.0
  result[:, no_direction[1]] = 1.0
  result[np.ix_(*no_direction)] = 0.0
  return np.minimum(result, 2.0)


def _norms(vectors: np.ndarray, block_bytes: int) -> np.ndarray:
  squares = np.zeros(len(vectors))
  for features in distances_lib.column_blocks(len(vectors), vectors.shape[1], block_bytes):
    block = np.asarray(vectors[:, features], np.float64)
    squares += np.einsum('ij,ij->i', block, block)
  return np.sqrt(squares)


def _summed(
  rows: np.ndarray, columns: np.ndarray, scales: list[np.ndarray] | None, measure: str, block_bytes: int
) -> np.ndarray:
  result = np.zeros((len(rows), len(columns)))
  for features in distances_lib.column_blocks(len(rows) + len(columns), rows.shape[1], block_bytes):
    sides = [np.asarray(side[:, features], np.float64) for side in (rows, columns)]
    if scales is not None:
      sides = [side * scale[:, None] for side, scale in zip(sides, scales, strict=True)]
    result += scipy_distance.cdist(*sides, measure)
  return result
