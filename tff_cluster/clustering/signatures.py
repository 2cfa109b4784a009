"""What clients are clustered by: one vector a client, with the distances between them."""

import dataclasses
import os
from collections import Counter

import numpy as np

from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.clustering import distances as distances_lib
from tff_cluster.clustering import embedding


@dataclasses.dataclass(frozen=True, eq=False)
class Signatures:
  """The clients' vectors (flattened weights or updates). Row k is client_ids[k].

  Attributes:
    vectors: float32 or float64 [clients, features], finite; may be a read-only memmap.
    client_ids: The clients' ids, distinct.
    id_kind: 'integer' where the ids were given as integers (or not at all) and are their decimal strings here,
      else 'string'; for writers that want to give back what they got.
    block_bytes: About how much memory working copies of the vectors may take; see
      distances.pairwise_distances. What is handed out (square matrices, coordinates) comes on top.

  Raises:
    InputError: if the vectors are not such an array, or ids and vectors do not fit.
  """

  vectors: np.ndarray
  client_ids: tuple[str, ...]
  id_kind: str = 'string'
  block_bytes: int = distances_lib.BLOCK_BYTES
  _cache: dict[str, np.ndarray] = dataclasses.field(default_factory=dict, init=False, repr=False)

  def __post_init__(self):
    vectors = _as_float(self.vectors)
    if vectors.ndim != 2:
      raise InputError(f'signatures must be [clients, features], found shape {vectors.shape}')
    if len(vectors) < 1:
      raise InputError('signatures hold no client; at least 1 is needed')
    if vectors.shape[1] < 1:
      raise InputError('signatures have no features; at least 1 number a client is needed')
    if len(self.client_ids) != len(vectors):
      raise InputError(
        f'{len(self.client_ids)} client ids for {len(vectors)} signatures; give one id a signature'
      )
    repeated = sorted(i for i, n in Counter(self.client_ids).items() if n > 1)
    if repeated:
      raise InputError(f'client ids must be distinct; given twice or more: {", ".join(repeated[:5])}')
    for client_id, vector in zip(self.client_ids, vectors, strict=True):
      if not np.isfinite(vector).all():
        raise InputError(
          f'the signature of client {client_id} holds NaN or an infinity; if training made it, it has '
          'diverged: lower the learning rate'
        )
    object.__setattr__(self, 'vectors', vectors)
    object.__setattr__(self, 'client_ids', tuple(self.client_ids))

  @classmethod
  def numbered(cls, vectors: np.ndarray, block_bytes: int = distances_lib.BLOCK_BYTES) -> 'Signatures':
    """Returns the signatures of clients '0', '1', ..."""
    count = len(vectors) if np.ndim(vectors) else 0
    return cls(vectors, tuple(str(k) for k in range(count)), 'integer', block_bytes)

  @property
  def num_clients(self) -> int:
    return len(self.client_ids)

  def distances(self, metric: str) -> np.ndarray:
    """Returns float64[clients, clients], read-only, computed once; see distances.pairwise_distances."""
    if metric not in self._cache:
      result = distances_lib.pairwise_distances(self.vectors, metric, self.block_bytes)
      result.setflags(write=False)
      self._cache[metric] = result
    return self._cache[metric]

  def coordinates(self) -> np.ndarray:
    """Returns float64[clients, coordinates], read-only, with the vectors' Euclidean distances, computed once.

    These are the vectors themselves, or, where they have more features than there are clients, at most
    clients - 1 coordinates in the space that they span. Equal vectors keep equal coordinates.

    Raises:
      InputError: if the squares of distances overflow float64.
    """
    if 'coordinates' not in self._cache:
      if self.vectors.shape[1] <= self.num_clients:
        points = np.array(self.vectors, np.float64)
        with np.errstate(over='ignore', invalid='ignore'):
          _check_squares(np.square(points - points.mean(axis=0)))
      else:
        gram = distances_lib.centred_gram(self.vectors, self.block_bytes)
        _check_squares(np.diag(gram))
        points = embedding.gram_coordinates(gram)[:, : max(self.num_clients - 1, 1)]
        points = self._with_equal_rows(gram, points) if points.shape[1] else np.zeros((self.num_clients, 1))
      points.setflags(write=False)
      self._cache['coordinates'] = points
    return self._cache['coordinates']

  def _with_equal_rows(self, gram: np.ndarray, points: np.ndarray) -> np.ndarray:
    norms = np.diag(gram)
    original = np.ones(self.num_clients, bool)
    for k in range(1, self.num_clients):
      sums = norms[:k] + norms[k]
      near = sums - 2.0 * gram[k, :k] <= 1e-10 * sums
      for i in np.flatnonzero(near & original[:k]):
        if np.array_equal(self.vectors[i], self.vectors[k]):
          points[k], original[k] = points[i], False
          break
    return points


def _check_squares(squares: np.ndarray) -> None:
  """Raises InputError where squared distances may overflow, by the squared distances of the vectors to their mean."""
  with np.errstate(over='ignore', invalid='ignore'):
    if not np.isfinite(4.0 * squares.sum()):
      raise InputError('the l2 distances of these vectors overflow; scale the vectors down')


def read_signatures(path: str | os.PathLike[str], block_bytes: int = distances_lib.BLOCK_BYTES) -> Signatures:
  """Reads signatures from a file.

  Args:
    path: An .npz with `signatures` float[clients, features] and, if wanted, `client_ids` (integers or
      strings) [clients], or a plain .npy with the signatures alone, which is memory-mapped. Without ids the
      clients are '0', '1', ...
    block_bytes: As in Signatures.

  Raises:
    InputError: one line, with the path, that says what is wrong with the file.
    EnvironmentFault: if the file is there and the machine cannot open it.
  """
  path = os.fspath(path)
  if not os.path.isfile(path):
    problem = 'is a folder, not a file' if os.path.isdir(path) else 'no such file'
    raise InputError(f'{path}: {problem}; give an .npz or .npy file with the signatures')
  try:
    with open(path, 'rb'):
      pass
  except OSError as error:
    raise EnvironmentFault(f'{path}: cannot be opened ({error.strerror})') from error
  vectors, ids = _read_arrays(path)
  try:
    vectors = _as_float(vectors)
    if ids is None:
      return Signatures.numbered(vectors, block_bytes)
    names, kind = _plain_ids(ids)
    return Signatures(vectors, names, kind, block_bytes)
  except InputError as error:
    raise InputError(f'{path}: {error}') from error


def _read_arrays(path: str) -> tuple[np.ndarray, np.ndarray | None]:
  try:
    loaded = np.load(path, mmap_mode='r', allow_pickle=False)
    if isinstance(loaded, np.ndarray):
      return loaded, None
    with loaded:
      if 'signatures' in loaded.files:
        found = {name: loaded[name] for name in ('signatures', 'client_ids') if name in loaded.files}
        if not all(isinstance(array, np.ndarray) for array in found.values()):
          raise ValueError('a member that is no array')
        return found['signatures'], found.get('client_ids')
      names = ', '.join(loaded.files) or 'nothing'
  except Exception as error:  # A damaged file can make the zip and header parsers raise nearly anything.
    text = str(error)
    if 'Object arrays' in text or 'Python objects' in text:
      raise InputError(f'{path}: holds Python objects; save float32 or float64 arrays') from error
    raise InputError(f'{path}: not an .npz or .npy file, or damaged or cut short') from error
  raise InputError(f"{path}: an .npz must hold an array 'signatures', found {names}")


def _as_float(vectors: np.ndarray) -> np.ndarray:
  vectors = np.asanyarray(vectors)
  if vectors.dtype in (np.float32, np.float64) and vectors.dtype.isnative:
    return vectors
  if vectors.dtype.kind == 'f':
    return vectors.astype(np.float32 if vectors.dtype.itemsize <= 4 else np.float64)
  if vectors.dtype.kind in 'iu':
    return vectors.astype(np.float64)
  raise InputError(f'signatures must be numbers (float32 or float64), found {vectors.dtype.name}')


def _plain_ids(ids: np.ndarray) -> tuple[tuple[str, ...], str]:
  if ids.ndim != 1:
    raise InputError(f'client_ids must be [clients], found shape {ids.shape}')
  if ids.dtype.kind in 'iu':
    return tuple(str(int(i)) for i in ids), 'integer'
  if ids.dtype.kind == 'U':
    try:
      np.char.encode(ids, 'utf-8')
    except (ValueError, SystemError):  # The second where a number is no character.
      raise InputError(
        'client_ids have text that is not Unicode (a lone surrogate, say); give text that UTF-8 can write'
      ) from None
    return tuple(str(i) for i in ids), 'string'
  raise InputError(f'client_ids must be integers or strings, found {ids.dtype.name}')
