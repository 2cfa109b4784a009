"""Pairwise distances between few long vectors, in bounded memory.

Client signatures are wide: a hundred clients of a million parameters and more. Euclidean and cosine
distances therefore come from matrix products over blocks of columns, and only where the subtraction
|a|^2 + |b|^2 - 2ab would cancel are vectors centred anew on one of their own and multiplied again. Small
inputs go through SciPy's pdist itself, so that ties of hand-made data stay ties.

Departures and choices: a zero vector has no direction; its cosine distance is 1 to every other vector and 0
to itself and to other zero vectors.
"""

from collections.abc import Iterator

import numpy as np
import threadpoolctl
from scipy.sparse import csgraph
from scipy.spatial import distance as scipy_distance

from tff_cluster.config import METRICS
from tff_cluster.errors import InputError

_BLOCK_BYTES = 64 * 2**20
# Up to this many coordinate differences (pairs x features), pdist takes about a tenth of a second.
_PDIST_WORK = 2**27
# Columns of one float32 product: more would let its rounding grow; sums over blocks are float64.
_PRODUCT_COLUMNS = 16384
# A squared distance below this share of the two squared norms is computed anew. It keeps the relative error of
# a distance below 1e-5: rounding is about 1e-6 (float32) and 1e-14 (float64) of the squared norms.
_CANCELLED: dict[type, float] = {np.float32: 0.05, np.float64: 1e-8}
# Below this, per feature, squares in float32 may have underflowed.
_FLOAT32_TINY = 1e-32
# Below this, 1 - cos has lost digits; half the squared distance of the unit vectors has not.
_NEARLY_PARALLEL = 1e-6


def pairwise_distances(vectors: np.ndarray, metric: str, block_bytes: int = _BLOCK_BYTES) -> np.ndarray:
  """Returns the distances between all pairs of rows.

  The result does not depend on the number of BLAS threads. Its relative error is below 1e-5, for near
  duplicates too; equal rows have distance exactly 0.

  Args:
    vectors: float[clients, features], finite; may be a read-only memmap, which is read once or twice.
    metric: 'l1' (sum of absolute differences), 'l2' (Euclidean) or 'cosine' (1 - cosine of the angle).
    block_bytes: About how much memory the working copies of a block of columns may take.

  Returns:
    float64[clients, clients], symmetric, zero diagonal.

  Raises:
    InputError: if the metric is unknown or a distance overflows float64.
  """
  if metric not in METRICS:
    raise InputError(f'metric {metric!r}: allowed are {", ".join(METRICS)}')
  clients, features = vectors.shape
  work = clients * (clients - 1) // 2 * features
  small = work <= _PDIST_WORK and clients * features * 8 <= block_bytes
  with (
    threadpoolctl.threadpool_limits(limits=1, user_api='blas'),
    np.errstate(over='ignore', invalid='ignore'),
  ):
    if metric == 'l1':
      result = _l1(vectors, block_bytes)
    elif metric == 'l2':
      result = _pdist(vectors, 'euclidean') if small else np.sqrt(_squared_l2(vectors, None, block_bytes))
    else:
      result = _cosine(vectors, small, block_bytes)
  if not np.isfinite(result).all():
    raise InputError(f'the {metric} distances of these vectors overflow; scale the vectors down')
  return result


def centred_gram(vectors: np.ndarray, block_bytes: int = _BLOCK_BYTES) -> np.ndarray:
  """Returns the inner products of the rows about their mean, float64[clients, clients].

  Args:
    vectors: float[clients, features], finite; may be a read-only memmap, which is read once.
    block_bytes: As in `pairwise_distances`.
  """
  with threadpoolctl.threadpool_limits(limits=1, user_api='blas'):
    return _gram(vectors, np.arange(len(vectors)), None, None, np.float64, block_bytes)


def condensed(distances: np.ndarray) -> np.ndarray:
  """Returns the entries above the diagonal, row after row: float64[clients * (clients - 1) / 2]."""
  return distances[np.triu_indices(len(distances), 1)]


def _pdist(vectors: np.ndarray, metric: str) -> np.ndarray:
  return scipy_distance.squareform(
    scipy_distance.pdist(np.asarray(vectors, np.float64), metric), checks=False
  )


def _column_blocks(clients: int, features: int, block_bytes: int) -> Iterator[slice]:
  width = int(np.clip(block_bytes // (16 * clients), 1, _PRODUCT_COLUMNS))
  for start in range(0, features, width):
    yield slice(start, start + width)


def _l1(vectors: np.ndarray, block_bytes: int) -> np.ndarray:
  clients, features = vectors.shape
  total = np.zeros(clients * (clients - 1) // 2)
  for columns in _column_blocks(clients, features, block_bytes):
    total += scipy_distance.pdist(np.asarray(vectors[:, columns], np.float64), 'cityblock')
  return scipy_distance.squareform(total, checks=False) if clients > 1 else np.zeros((clients, clients))


def _cosine(vectors: np.ndarray, small: bool, block_bytes: int) -> np.ndarray:
  clients, features = vectors.shape
  squared_norms = np.zeros(clients)
  for columns in _column_blocks(clients, features, block_bytes):
    block = np.asarray(vectors[:, columns], np.float64)
    squared_norms += np.einsum('ij,ij->i', block, block)
  zero = squared_norms == 0.0
  scale = 1.0 / np.sqrt(np.where(zero, 1.0, squared_norms))
  if small:
    parallel = _pdist(np.asarray(vectors, np.float64) * scale[:, None], 'sqeuclidean') / 2.0
    plain = _pdist(vectors, 'cosine')
    result = np.where(plain > _NEARLY_PARALLEL, plain, parallel)
  else:
    result = _squared_l2(vectors, scale, block_bytes) / 2.0
  result[zero] = 1.0
  result[:, zero] = 1.0
  result[np.ix_(zero, zero)] = 0.0
  if not np.isfinite(squared_norms).all():
    return np.full_like(result, np.inf)
  return np.minimum(result, 2.0)


def _squared_l2(vectors: np.ndarray, scale: np.ndarray | None, block_bytes: int) -> np.ndarray:
  """Returns float64[clients, clients], squared distances of the rows (times their scale)."""
  everyone = np.arange(len(vectors))
  precision: type = np.float32
  gram = _gram(vectors, everyone, scale, None, precision, block_bytes)
  if not np.isfinite(gram).all():
    precision = np.float64
    gram = _gram(vectors, everyone, scale, None, precision, block_bytes)
  squared = _squared_from_gram(gram)
  norms = np.diag(gram)
  doubtful = squared <= _CANCELLED[precision] * np.add.outer(norms, norms)
  if precision is np.float32:
    doubtful |= np.add.outer(norms, norms) <= _FLOAT32_TINY * vectors.shape[1]
  pending = _linked_groups(doubtful, everyone)
  while pending:
    group = pending.pop()
    within = np.ix_(group, group)
    # Centred on a member, that member's distances cannot cancel: every group that comes back is smaller.
    pivot = int(np.argmin(squared[within].sum(axis=1)))
    gram = _gram(vectors, group, scale, pivot, np.float64, block_bytes)
    squared[within] = _squared_from_gram(gram)
    norms = np.diag(gram)
    doubtful = squared[within] <= _CANCELLED[np.float64] * np.add.outer(norms, norms)
    settled = norms == 0.0
    doubtful[settled] = False
    doubtful[:, settled] = False
    pending.extend(_linked_groups(doubtful, group))
  return squared


def _gram(
  vectors: np.ndarray,
  rows: np.ndarray,
  scale: np.ndarray | None,
  pivot: int | None,
  precision: type,
  block_bytes: int,
) -> np.ndarray:
  """Returns the rows' inner products about their mean, or about rows[pivot]; sums over blocks in float64."""
  total = np.zeros((len(rows), len(rows)))
  for columns in _column_blocks(len(rows), vectors.shape[1], block_bytes):
    block = vectors[:, columns] if len(rows) == len(vectors) else vectors[rows, columns]
    if scale is not None:
      block = block * scale[rows, None]
    elif precision is np.float64:
      block = np.asarray(block, np.float64)
    # Any origin gives the same distances, so the rounding of the mean itself does no harm.
    block = block - (block.mean(axis=0) if pivot is None else block[pivot])
    block = block.astype(precision, copy=False)
    total += block @ block.T
  return total


def _squared_from_gram(gram: np.ndarray) -> np.ndarray:
  norms = np.diag(gram)
  squared = np.maximum(np.add.outer(norms, norms) - (gram + gram.T), 0.0)
  np.fill_diagonal(squared, 0.0)
  return squared


def _linked_groups(links: np.ndarray, members: np.ndarray) -> list[np.ndarray]:
  """Returns the connected groups (of two and more) of a symmetric bool[n, n], as entries of members[n]."""
  np.fill_diagonal(links, False)
  if not links.any():
    return []
  _, component = csgraph.connected_components(links, directed=False)
  sizes = np.bincount(component)
  return [members[component == c] for c in np.flatnonzero(sizes > 1)]
