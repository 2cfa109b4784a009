"""A user's own data from an .npz, and the arrays of any .npz that a user names."""

import math
import os
import zipfile
from typing import BinaryIO, NoReturn

import numpy as np

from tff_cluster.base import numpy_reading
from tff_cluster.base.errors import EnvironmentFault, InputError, argument
from tff_cluster.data import downloads, own_file
from tff_cluster.data.source import Source, with_test

_MAX_LABEL = 2**16 - 1


def load_npz(path: str) -> Source:
  """Loads x [rows, ...], y [rows], and where given client_id, group and is_test, [rows] each.

  x of dtype uint8 stays uint8 (models see it divided by 255), any other number becomes float32. y holds
  labels from 0 up, client_id strings or whole numbers, group whole numbers or strings, is_test whether a row is for
  testing. The source's name is the file's, without folder and ending. Pickled objects are never loaded.

  Raises:
    InputError: naming the file and what is wrong in it.
    EnvironmentFault: if the machine does not let us read it.
  """
  arrays = read_arrays(path, 'data_file')
  for key in ('x', 'y'):
    if key not in arrays:
      _wrong(path, f'has no array {key!r}; it needs x and y, found {", ".join(sorted(arrays)) or "nothing"}')
  unknown = sorted(set(arrays) - {'x', 'y', 'client_id', 'group', 'is_test'})
  if unknown:
    _wrong(path, f'has an unknown array {unknown[0]!r}; allowed are x, y, client_id, group, is_test')
  x, y = _examples(path, arrays['x']), _labels(path, arrays['y'])
  names = {key: _names(path, key, arrays[key]) for key in ('client_id', 'group') if key in arrays}
  is_test = _is_test(path, arrays['is_test']) if 'is_test' in arrays else None
  for key, array in (('y', y), *names.items(), *([] if is_test is None else [('is_test', is_test)])):
    if len(array) != len(x):
      _wrong(path, f'{key} has {len(array)} rows, x has {len(x)}')
  owner = names.get('client_id')
  group = np.unique(arrays['group'], return_inverse=True)[1].astype(np.int64) if 'group' in names else None
  name = os.path.splitext(os.path.basename(path))[0]
  source = Source(name, x, y, int(y.max()) + 1, train_owner=owner, train_group=group)
  return source if is_test is None else with_test(source, is_test)


def read_arrays(path: str, name: str) -> dict[str, np.ndarray]:
  """Returns all arrays of an .npz by name. Pickled objects are never loaded.

  Args:
    name: The argument that named it, for instance 'data_file'; errors begin with it.

  Raises:
    InputError: if there is no such file, or it is no .npz, holds objects or is damaged.
    EnvironmentFault: if the machine does not let us read it.
  """
  with own_file.opened(path, name) as file:
    try:
      return numpy_reading.read(lambda: _arrays(file, path, name))
    except (InputError, OSError):
      raise
    except MemoryError as error:
      if _promises_too_much(path):
        raise InputError(
          f'{argument(name, path)}: is damaged: an array in it promises more numbers than it holds'
        ) from error
      raise EnvironmentFault(f'{argument(name, path)} does not fit into memory') from error
    except Exception as error:
      if 'allow_pickle' in str(error):
        what = 'holds Python objects; allowed are arrays of numbers, and of strings for names, as .astype(str) makes them'
      else:
        # What zipfile, zlib and NumPy raise on damaged bytes is of many kinds (RuntimeError, struct.error, ...).
        what = f'is damaged: {downloads.one_line(error)}'
      raise InputError(f'{argument(name, path)}: {what}') from error


def _arrays(file: BinaryIO, path: str, name: str) -> dict[str, np.ndarray]:
  file.seek(0)
  if not zipfile.is_zipfile(file):
    raise InputError(f'{argument(name, path)}: is not an .npz (or is cut off); write it with numpy.savez')
  file.seek(0)
  with np.load(file, allow_pickle=False) as archive:
    arrays = {key: archive[key] for key in archive.files}
  foreign = [key for key, array in arrays.items() if not isinstance(array, np.ndarray)]
  if foreign:
    raise InputError(f'{argument(name, path)}: {foreign[0]!r} in it is no array; write it with numpy.savez')
  return arrays


def _promises_too_much(path: str) -> bool:
  """Tells whether the header of an array in an .npz is larger than the array."""
  with zipfile.ZipFile(path) as archive:
    for member in archive.infolist():
      with archive.open(member) as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
          continue
        stream.seek(0)
        major, _ = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
        if math.prod(shape) * dtype.itemsize > member.file_size:
          return True
  return False


def _examples(path: str, x: np.ndarray) -> np.ndarray:
  if x.dtype.kind not in 'buif':
    _wrong(path, f'x has dtype {x.dtype}; allowed are numbers')
  if x.ndim < 2 or 0 in x.shape:
    _wrong(path, f'x has shape {list(x.shape)}; expected [rows, ...] with at least one row and one feature')
  if x.dtype == np.uint8:
    return x
  with np.errstate(over='ignore'):
    x = x.astype(np.float32)
  finite = np.isfinite(x)
  if not finite.all():
    row = int(np.argwhere(~finite)[0][0])
    _wrong(path, f'x has NaN or infinite values (or too large for float32), first in row {row}')
  return x


def _labels(path: str, y: np.ndarray) -> np.ndarray:
  if y.ndim != 1:
    _wrong(path, f'y has shape {list(y.shape)}; expected [rows], one label a row')
  if y.dtype.kind not in 'iu':
    _wrong(path, f'y has dtype {y.dtype}; labels are whole numbers from 0 up')
  if len(y) and (y.min() < 0 or y.max() > _MAX_LABEL):
    bad = y.min() if y.min() < 0 else y.max()
    _wrong(path, f'y has the label {bad}; labels go from 0 to at most {_MAX_LABEL}')
  if not len(y):
    _wrong(path, 'y has no rows')
  return y.astype(np.int32)


def _is_test(path: str, values: np.ndarray) -> np.ndarray:
  if values.ndim != 1 or values.dtype != bool:
    _wrong(path, f'is_test has dtype {values.dtype} and shape {list(values.shape)}; expected bool [rows]')
  if not values.any() or values.all():
    _wrong(path, f'is_test is {bool(values.any())} in all rows; both training and testing need some')
  return values


def _names(path: str, key: str, values: np.ndarray) -> np.ndarray:
  if values.ndim != 1:
    _wrong(path, f'{key} has shape {list(values.shape)}; expected [rows]')
  if values.dtype.kind == 'S':
    try:
      return np.char.decode(values, 'utf-8')
    except UnicodeDecodeError:
      _wrong(path, f'{key} has bytes that are not UTF-8')
  if values.dtype.kind not in 'iuU':
    _wrong(path, f'{key} has dtype {values.dtype}; allowed are strings and whole numbers')
  names = values.astype(np.str_)
  try:
    np.char.encode(names, 'utf-8')
  except (ValueError, SystemError):  # The second where a number is no character.
    _wrong(
      path, f'{key} has text that is not Unicode (a lone surrogate, say); give text that UTF-8 can write'
    )
  return names


def _wrong(path: str, what: str) -> NoReturn:
  raise InputError(f'{argument("data_file", path)}: {what}')
