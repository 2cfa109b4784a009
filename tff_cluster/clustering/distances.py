"""Pairwise distances between few long vectors, in bounded memory.

Client signatures are wide: a hundred clients of a million parameters and more. Euclidean and cosine
distances therefore come from matrix products over blocks of columns, and only where the subtraction
|a|^2 + |b|^2 - 2ab would cancel are vectors centred anew on one of their own and multiplied again. Small
inputs go through SciPy's pdist itself, so that ties of hand-made data stay ties.

Many clients are no different, as long as the square matrix fits: ten thousand take 800 MB for the result, and
about as much again while it is made. Work is shared out to the machine's cores by blocks whose bounds do not
depend on the number of cores, and added up in their order, so neither does the result.

Departures and choices: a zero vector has no direction; its cosine distance is 1 to every other vector and 0
to itself and to other zero vectors.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from typing import TypeVar

import numpy as np
import threadpoolctl
from scipy.spatial import distance as scipy_distance

from tff_cluster.base.errors import InputError
from tff_cluster.clustering import connected_components as connected_components_lib
from tff_cluster.clustering.method_options import METRICS

_Item = TypeVar('_Item')
_Result = TypeVar('_Result')

BLOCK_BYTES = 64 * 2**20
# Up to this many coordinate differences (pairs x features), pdist takes about a tenth of a second.
_PDIST_WORK = 2**27
# Columns of one float32 product: more would let its rounding grow; sums over blocks are float64.
_PRODUCT_COLUMNS = 16384
# Rows of a tile of the result, which bounds the temporary matrices where clients are many.
_TILE_ROWS = 1024
# Columns at a time of absolute differences: a tile's two strips of rows then stay in the cache of a core.
_L1_COLUMNS = 4096
_L1_ROWS = 256
# A squared distance below this share of the two squared norms is computed anew. It keeps the relative error of
# a distance below 1e-5: rounding is about 1e-6 (float32) and 1e-14 (float64) of the squared norms.
_CANCELLED: dict[type, float] = {np.float32: 0.05, np.float64: 1e-8}
# Below this, per feature, squares in float32 may have underflowed.
_FLOAT32_TINY = 1e-32
# Below this, 1 - cos has lost digits; half the squared distance of the unit vectors has not.
_NEARLY_PARALLEL = 1e-6


def pairwise_distances(vectors: np.ndarray, metric: str, block_bytes: int = BLOCK_BYTES) -> np.ndarray:
  """Returns the distances between all pairs of rows.

  The result does not depend on the number of threads or cores. Its relative error is below 1e-5, for near
  duplicates too; equal rows have distance exactly 0.

  Args:
    vectors: float[clients, features], finite; may be a read-only memmap, which is read once or twice.
    metric: 'l1' (sum of absolute differences), 'l2' (Euclidean) or 'cosine' (1 - cosine of the angle).
    block_bytes: About how much memory the working copies of blocks of columns may take, beside the result and,
      where clients are many, its tiles.

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
      result = _pdist(vectors, 'cityblock') if small else _l1(vectors, block_bytes)
    elif metric == 'l2' and small:
      result = _pdist(vectors, 'euclidean')
    elif metric == 'l2':
      result = _squared_l2(vectors, None, block_bytes)
      np.sqrt(result, out=result)
    else:
      result = _cosine(vectors, small, block_bytes)
  if not np.isfinite(result).all():
    raise InputError(f'the {metric} distances of these vectors overflow; scale the vectors down')
  return result


def centred_gram(vectors: np.ndarray, block_bytes: int = BLOCK_BYTES) -> np.ndarray:
  """Returns the inner products of the rows about their mean, float64[clients, clients].

  Args:
    vectors: float[clients, features], finite; may be a read-only memmap, which is read once.
    block_bytes: As in `pairwise_distances`.
  """
  with threadpoolctl.threadpool_limits(limits=1, user_api='blas'):
    return _gram(vectors, np.arange(len(vectors)), None, None, np.float64, block_bytes)


def condensed(distances: np.ndarray) -> np.ndarray:
  """Returns the entries above the diagonal, row after row: float64[clients * (clients - 1) / 2]."""
  return scipy_distance.squareform(distances, checks=False)


def square(pairs: np.ndarray) -> np.ndarray:
  """Returns the matrix of which `condensed` gives the entries; its diagonal is 0."""
  return scipy_distance.squareform(pairs)


def _pdist(vectors: np.ndarray, metric: str) -> np.ndarray:
  if len(vectors) == 1:
    return np.zeros((1, 1))
  return scipy_distance.squareform(
    scipy_distance.pdist(np.asarray(vectors, np.float64), metric), checks=False
  )


def column_blocks(vectors: int, features: int, block_bytes: int, most: int | None = None) -> Iterator[slice]:
  """Yields blocks of columns whose working copies take about so much memory; of at most `most` columns."""
  width = _width(vectors, block_bytes, features if most is None else most)
  for start in range(0, features, width):
    yield slice(start, start + width)


def _width(clients: int, block_bytes: int, most: int) -> int:
  return int(np.clip(block_bytes // (16 * clients), 1, most))


def _threads(clients: int, block_bytes: int, most: int) -> int:
  """Returns how many blocks may be worked on at once: as many as there are cores and memory for."""
  at_once = block_bytes // (16 * clients * _width(clients, block_bytes, most))
  return int(np.clip(at_once, 1, len(os.sched_getaffinity(0))))


def _in_order(
  function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int
) -> Iterator[_Result]:
  """Yields function(item) for each item, in order; `threads` of them are worked on, and held, at once."""

  def quietly(item: _Item) -> _Result:
    # Overflow is looked for in the result; this setting is one of each thread.
    with np.errstate(over='ignore', invalid='ignore'):
      return function(item)

  waiting = list(items)
  if threads == 1 or len(waiting) == 1:
    yield from map(quietly, waiting)
    return
  with futures.ThreadPoolExecutor(threads) as pool:
    for start in range(0, len(waiting), threads):
      yield from pool.map(quietly, waiting[start : start + threads])


def _tiles(rows: int, size: int) -> list[slice]:
  return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def _l1(vectors: np.ndarray, block_bytes: int) -> np.ndarray:
  clients, features = vectors.shape
  result = np.zeros((clients, clients))
  # Small tiles where clients are few, so that there is work for all cores.
  tiles = _tiles(clients, int(np.clip(clients // 8, 1, _L1_ROWS)))

  for columns in column_blocks(clients, features, block_bytes, _L1_COLUMNS):
    block = np.asarray(vectors[:, columns], np.float64)

    def add(rows: slice, block: np.ndarray = block) -> None:
      for start in range(rows.start, clients, _L1_ROWS):
        others = slice(start, start + _L1_ROWS)
        result[rows, others] += scipy_distance.cdist(block[rows], block[others], 'cityblock')

    for _ in _in_order(add, tiles, len(os.sched_getaffinity(0))):
      pass
  _mirror(result)
  return result


def _cosine(vectors: np.ndarray, small: bool, block_bytes: int) -> np.ndarray:
  clients, features = vectors.shape

  def squares(columns: slice) -> np.ndarray:
    block = np.asarray(vectors[:, columns], np.float64)
    return np.einsum('ij,ij->i', block, block)

  squared_norms = np.zeros(clients)
  blocks = column_blocks(clients, features, block_bytes, _PRODUCT_COLUMNS)
  for part in _in_order(squares, blocks, _threads(clients, block_bytes, _PRODUCT_COLUMNS)):
    squared_norms += part
  zero = squared_norms == 0.0
  scale = 1.0 / np.sqrt(np.where(zero, 1.0, squared_norms))
  if small:
    parallel = _pdist(np.asarray(vectors, np.float64) * scale[:, None], 'sqeuclidean') / 2.0
    plain = _pdist(vectors, 'cosine')
    result = np.where(plain > _NEARLY_PARALLEL, plain, parallel)
  else:
    result = _squared_l2(vectors, scale, block_bytes)
    result /= 2.0
  result[zero] = 1.0
  result[:, zero] = 1.0
  result[np.ix_(zero, zero)] = 0.0
  if not np.isfinite(squared_norms).all():
    return np.full_like(result, np.inf)
  return np.minimum(result, 2.0, out=result)


def _squared_l2(vectors: np.ndarray, scale: np.ndarray | None, block_bytes: int) -> np.ndarray:
  """Returns float64[clients, clients], squared distances of the rows (times their scale)."""
  everyone = np.arange(len(vectors))
  precision: type = np.float32
  gram = _gram(vectors, everyone, scale, None, precision, block_bytes)
  if not np.isfinite(gram).all():
    precision = np.float64
    gram = _gram(vectors, everyone, scale, None, precision, block_bytes)
  squared, norms = _squared_from_gram(gram)
  tiny = _FLOAT32_TINY * vectors.shape[1] if precision is np.float32 else None
  pending = _linked_groups(_doubtful(squared, norms, _CANCELLED[precision], tiny), everyone)
  while pending:
    group = pending.pop()
    within = np.ix_(group, group)
    # Centred on a member, that member's distances cannot cancel: every group that comes back is smaller.
    pivot = int(np.argmin(squared[within].sum(axis=1)))
    part, norms = _squared_from_gram(_gram(vectors, group, scale, pivot, np.float64, block_bytes))
    squared[within] = part
    doubtful = _doubtful(part, norms, _CANCELLED[np.float64], None)
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
  clients = len(rows)
  total = np.zeros((clients, clients))
  tiles = _tiles(clients, _TILE_ROWS)

  def centred(columns: slice) -> np.ndarray:
    block = vectors[:, columns] if clients == len(vectors) else vectors[rows, columns]
    if scale is not None:
      # In float64: rounding of single coordinates would be that of the differences of vectors that are nearly parallel.
      block = block * scale[rows, None]
    elif precision is np.float64:
      block = np.asarray(block, np.float64)
    # Any origin gives the same distances, so the rounding of the mean itself does no harm.
    block = block - (block.mean(axis=0) if pivot is None else block[pivot])
    return block.astype(precision, copy=False)

  def product(columns: slice) -> np.ndarray:
    block = centred(columns)
    return block @ block.T

  blocks = list(column_blocks(clients, vectors.shape[1], block_bytes, _PRODUCT_COLUMNS))
  if len(tiles) == 1:
    for part in _in_order(product, blocks, _threads(clients, block_bytes, _PRODUCT_COLUMNS)):
      total += part
    _mirror(total)
    return total
  for columns in blocks:
    block = centred(columns)

    def add(tile: slice, block: np.ndarray = block) -> None:
      total[tile, tile] += block[tile] @ block[tile].T
      total[tile, tile.stop :] += block[tile] @ block[tile.stop :].T

    for _ in _in_order(add, tiles, len(os.sched_getaffinity(0))):
      pass
  _mirror(total)
  return total


def _mirror(square: np.ndarray) -> None:
  """Copies what is above the diagonal below it, in place."""
  tiles = _tiles(len(square), _TILE_ROWS)
  for i, rows in enumerate(tiles):
    lower = np.tril_indices(rows.stop - rows.start, -1)
    square[rows, rows][lower] = square[rows, rows].T[lower]
    for columns in tiles[i + 1 :]:
      square[columns, rows] = square[rows, columns].T


def _squared_from_gram(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Returns the squared distances, in the memory of the symmetric gram matrix, and its diagonal."""
  norms = np.diag(gram).copy()
  for rows in _tiles(len(gram), _TILE_ROWS):
    # Doubling is exact: this is |a|^2 + |b|^2 - 2ab with one rounding for the sum and one for the difference.
    gram[rows] *= -2.0
    gram[rows] += np.add.outer(norms[rows], norms)
    np.maximum(gram[rows], 0.0, out=gram[rows])
  np.fill_diagonal(gram, 0.0)
  return gram, norms


def _doubtful(squared: np.ndarray, norms: np.ndarray, share: float, tiny: float | None) -> np.ndarray:
  """Returns bool[n, n], where a squared distance is too small a share of its norms, or these are tiny."""
  result = np.empty(squared.shape, bool)
  for rows in _tiles(len(squared), _TILE_ROWS):
    sums = np.add.outer(norms[rows], norms)
    result[rows] = squared[rows] <= share * sums
    if tiny is not None:
      result[rows] |= sums <= tiny
  return result


def _linked_groups(links: np.ndarray, members: np.ndarray) -> list[np.ndarray]:
  """Returns the connected groups (of two and more) of a symmetric bool[n, n], as entries of members[n]."""
  np.fill_diagonal(links, False)
  if not links.any():
    return []
  return [members[group] for group in connected_components_lib.groups(links) if len(group) > 1]
