"""Files that are whole or not there: atomic writes, checksums and seals."""

import contextlib
import errno
import hashlib
import io
import itertools
import json
import logging
import os
import pathlib
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

import filelock
import numpy as np

from tff_cluster.base import digests, numpy_reading, records
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.storage import output_folders, sealed_json

_CHECKSUM = '__checksum__'
# Only a later version's arrays have it, as int64[]: see sealed_json.FORMAT.
_FORMAT = '__format__'
# What is on its way to its name. Nobody else gives such names, so that sweeping takes nothing of others.
_TEMPORARY = re.compile(r'\.tff_cluster-[0-9a-f]{16}-(.+)', re.DOTALL)
_LOG = logging.getLogger(__name__)


class DamagedFile(EnvironmentFault):
  """A file of ours that is truncated, changed or not ours. It is named, never used, never overwritten unasked.

  It came with a folder that was given, and only who gave it can act: exit code 2.
  """

  exit_code = 2


def damage(path: pathlib.Path, why: object) -> DamagedFile:
  """Returns the error that names a file of ours, what is wrong with it, and what to do."""
  return DamagedFile(f'{path} is damaged: {why}; remove it to have it made again')


@contextlib.contextmanager
def _written(path: pathlib.Path) -> Iterator[None]:
  """Makes the folder of a file that the block writes, and sweeps it; tells what the machine does not allow."""
  output_folders.check(path)
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent, path.name)
    yield
  except OSError as error:
    raise EnvironmentFault(
      f'cannot write {path}: {error.strerror or error}; what was finished before is kept'
    ) from error


@contextlib.contextmanager
def replacing(path: pathlib.Path) -> Iterator[IO[bytes]]:
  """Opens a temporary file beside `path` that takes its place when the block ends without an error.

  Whoever reads `path` sees the old content or the new one, never a part; an error leaves no file behind. As with `open`,
  a new file may be read and written by whom the umask allows it, one that is there keeps its permissions.
  A killed process can leave the temporary file, which the next one that writes `path` removes, or `sweep`.

  Raises:
    EnvironmentFault: if the disk is full, or the folder cannot be written or was taken away; what was there stays.
  """
  with _written(path):
    descriptor, temporary = temporary_file(path)
    try:
      with os.fdopen(descriptor, 'w+b') as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())
        # Before it is closed, which unlocks it.
        _take_place(temporary, path)
    except BaseException:
      with contextlib.suppress(OSError):
        os.unlink(temporary)
      raise
    _sync_folder(path.parent)


def write_file(path: pathlib.Path, content: bytes | str) -> None:
  """Writes a file so that a reader sees the old one or the new one, never a part.

  Raises:
    EnvironmentFault: where the file cannot be written (full disk, no permission), naming it.
  """
  with replacing(path) as stream:
    stream.write(content.encode() if isinstance(content, str) else content)


def write_json(path: pathlib.Path, document: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
  """Writes a JSON document that people read, too; raises as `write_file`, and ValueError where it holds NaN or an infinity."""
  write_file(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + '\n')


def temporary_file(path: pathlib.Path) -> tuple[int, pathlib.Path]:
  """Makes a temporary file beside `path`, locked for as long as its descriptor is open, and returns both."""
  # Of a new file the kernel takes the umask off; what is written anew is not shown to others meanwhile.
  permissions = _permissions(path) or 0o666
  while True:
    name = _temporary_path(path)
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, permissions)
    with contextlib.suppress(OSError):
      filelock.lock_descriptor(descriptor)
    if os.path.lexists(name):
      return descriptor, name
    os.close(descriptor)  # Swept before it was locked.


def _take_place(temporary: str | pathlib.Path, path: pathlib.Path) -> None:
  """Puts a file into the place of another one, whose permissions it takes over where that is there."""
  if (kept := _permissions(path)) is not None:
    os.chmod(temporary, kept)
  os.replace(temporary, path)


def _permissions(path: pathlib.Path) -> int | None:
  try:
    return stat.S_IMODE(os.stat(path).st_mode)
  except FileNotFoundError:
    return None


def _temporary_path(path: pathlib.Path) -> pathlib.Path:
  return path.with_name(f'.tff_cluster-{os.urandom(8).hex()}-{path.name}')


def is_temporary(name: str) -> bool:
  """Tells whether a file of this name is on its way to another name."""
  return _TEMPORARY.fullmatch(name) is not None


def save_file(path: pathlib.Path, write: Callable[[pathlib.Path], None]) -> None:
  """Has `write` make a file that takes the place of `path` when it is whole.

  Args:
    path: The file.
    write: Writes the file whose path it is given; that has the suffix of `path`, which some libraries want.

  Raises:
    EnvironmentFault: if it cannot be written.
  """
  temporary = _temporary_path(path)
  with _written(path):
    try:
      write(temporary)
      with open(temporary, 'rb') as stream:
        os.fsync(stream.fileno())
      _take_place(temporary, path)
    finally:
      with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)


def sweep(folder: pathlib.Path, name: str | None = None) -> None:
  """Removes what killed processes left in a folder, not in those below it: files of ours on their way to a name (any)."""
  with contextlib.suppress(OSError):
    for found in os.scandir(folder):
      match = _TEMPORARY.fullmatch(found.name)
      if match is not None and name in (None, match[1]):
        _remove_left_over(found.path)


def _remove_left_over(path: str) -> None:
  """Removes a regular file of this user unless who writes it lives, which has it locked; follows no link."""
  with contextlib.suppress(OSError):
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
      about = os.fstat(descriptor)
      is_ours = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid()
      if is_ours and filelock.lock_descriptor(descriptor, blocking=False):
        os.unlink(path)
    finally:
      os.close(descriptor)


@contextlib.contextmanager
def locked_if_free(folder: pathlib.Path) -> Iterator[bool]:
  """Locks a folder for a block; yields whether it did, or another process has it locked."""
  descriptor = os.open(folder, os.O_RDONLY)
  try:
    yield filelock.lock_descriptor(descriptor, blocking=False)
  finally:
    os.close(descriptor)


def file_digest(path: pathlib.Path) -> str | None:
  """Returns the SHA-256 of a file's bytes; None where there is no such file."""
  try:
    with open(path, 'rb') as stream:
      return hashlib.file_digest(stream, 'sha256').hexdigest()
  except FileNotFoundError:
    return None


def save_json(path: pathlib.Path, value: Any, seal: bool = True) -> None:
  """Writes a JSON value, indented, keys in their order. NaN and infinities are refused (ValueError).

  Args:
    path, value: The file and what it is to hold; records are written as objects.
    seal: Whether a checksum goes with it, as what phases read from each other needs (see sealed_json.py).
  """
  value = records.plain(value)
  text = sealed_json.seal(value) if seal else json_text(value)
  write_file(path, text)


def json_text(value: Any) -> bytes:
  """Returns what `save_json` writes of a value without a seal."""
  return (json.dumps(records.plain(value), indent=1, allow_nan=False) + '\n').encode()


def load_json(path: pathlib.Path) -> Any:
  """Reads a JSON file.

  Raises:
    FileNotFoundError: if it is not there.
    DamagedFile: if it is no JSON, or was changed after it was written.
    sealed_json.NewerFile: if a later version wrote it.
  """
  try:
    return sealed_json.unseal(path.read_bytes())
  except sealed_json.NewerFile as error:
    raise _newer(path, error) from error
  except (ValueError, RecursionError) as error:
    raise damage(path, error) from error


def save_arrays(path: pathlib.Path, arrays: Mapping[str, np.ndarray]) -> None:
  """Writes named arrays as an uncompressed .npz with a checksum over names, dtypes, shapes and bytes."""
  plain = {name: np.asarray(array) for name, array in arrays.items()}
  checksum = np.frombuffer(bytes.fromhex(_checksum(plain)), np.uint8)
  with replacing(path) as stream:
    remembering = _Remembering(stream)
    try:
      np.savez(remembering, **plain, **{_CHECKSUM: checksum})
    except BaseException as error:  # A signal's too.
      remembering.error = error
      raise
    if remembering.error is not None:
      raise remembering.error


class _Remembering:
  """A stream that can only be written, goes on after its first error, and remembers it.

  An archive whose writes fail, or that a signal leaves unfinished, complains on stderr when it is collected; this
  one finds no fault, and whoever made it asks for the error.
  """

  def __init__(self, stream: IO[bytes]):
    self.error: BaseException | None = None
    self._stream = stream

  def write(self, data: Any) -> int:
    if self.error is None:
      try:
        return self._stream.write(data)
      except OSError as error:
        self.error = error
    return len(memoryview(data).cast('B'))

  def flush(self) -> None:
    if self.error is None:
      try:
        self._stream.flush()
      except OSError as error:
        self.error = error

  def read(self, size: int = -1) -> bytes:
    """NumPy takes for a stream what can be read; nothing here can."""
    raise io.UnsupportedOperation('read')


def load_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
  """Reads what save_arrays wrote.

  Raises:
    FileNotFoundError: if it is not there.
    DamagedFile: if it is truncated, has another checksum, or is not such a file.
    sealed_json.NewerFile: if a later version wrote it.
  """
  with _read_by_numpy(path):
    arrays = numpy_reading.read(lambda: _all_of(path))
  if _FORMAT in arrays:
    try:
      sealed_json.check_format(int(arrays.pop(_FORMAT)))
    except sealed_json.NewerFile as error:
      raise _newer(path, error) from error
  found = arrays.pop(_CHECKSUM, None)
  if found is None or found.tobytes().hex() != _checksum(arrays):
    raise damage(path, 'its checksum does not fit')
  return arrays


def _all_of(path: pathlib.Path) -> dict[str, np.ndarray]:
  with np.load(path, allow_pickle=False) as archive:
    return {name: archive[name] for name in archive.files}


@contextlib.contextmanager
def _read_by_numpy(path: pathlib.Path) -> Iterator[None]:
  """Tells damage from what else can go wrong where NumPy reads a file."""
  try:
    yield
  except MemoryError:
    raise
  except Exception as error:
    # The machine's, such as too many open files. Damaged bytes have zipfile and NumPy raise OSErrors without a number, or seek to
    # a place that is none.
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
      raise
    # What zipfile, the tokenizer and NumPy raise on damaged bytes is of many kinds (NotImplementedError, RuntimeError, ...).
    raise damage(path, error) from error


def load_or_none(path: pathlib.Path) -> dict[str, np.ndarray] | None:
  """Returns what save_arrays wrote; None where it is not there, or is damaged and then set aside."""
  try:
    return load_arrays(path)
  except FileNotFoundError:
    return None
  except DamagedFile as damage:
    set_aside(path, damage)
    return None


def set_aside(path: pathlib.Path, damage: DamagedFile) -> None:
  """Renames a damaged file (rows with their checksum), so that it is neither used nor lost, and logs it in one line."""
  files = [file for file in (path, path.with_name(path.name + '.json')) if os.path.lexists(file)]
  endings = itertools.chain(['.damaged'], (f'.damaged-{number}' for number in itertools.count(2)))
  ending = next(e for e in endings if not any(os.path.lexists(f'{file}{e}') for file in files))
  for file in files:
    file.rename(f'{file}{ending}')
  _LOG.warning('%s; kept as %s%s and made again', str(damage).partition('; ')[0], path.name, ending)


def save_rows(path: pathlib.Path, rows: int, columns: int, fill: Callable[[np.ndarray], None]) -> None:
  """Writes a float32[rows, columns] .npy that may be larger than memory, and its checksum beside it.

  Args:
    path: The .npy file; `PATH.json` gets the checksum and is written last.
    rows, columns: Its shape.
    fill: Fills the (memory-mapped) array that it is given.
  """
  checksum_path = path.with_name(path.name + '.json')
  with replacing(path) as stream:
    checksum_path.unlink(missing_ok=True)
    np.lib.format.write_array_header_1_0(
      stream, {'descr': np.dtype(np.float32).str, 'fortran_order': False, 'shape': (rows, columns)}
    )
    stream.flush()
    start = stream.tell()
    # Reserved now, so that a full disk is an error here and not a SIGBUS in the middle of the map.
    getattr(os, 'posix_fallocate', _truncate)(stream.fileno(), 0, start + rows * columns * 4)
    array = np.memmap(stream, np.float32, 'r+', offset=start, shape=(rows, columns))
    fill(array)
    array.flush()
    checksum = digests.of_arrays(array[row] for row in range(rows))
    del array
  save_json(checksum_path, {'sha256': checksum})


def load_rows(path: pathlib.Path) -> np.ndarray:
  """Returns the float32[rows, columns] that save_rows wrote, memory-mapped and read-only.

  Raises:
    FileNotFoundError: if it is not there whole.
    DamagedFile: if its content is not what was written.
  """
  expected = load_json(path.with_name(path.name + '.json'))
  with _read_by_numpy(path):
    array = numpy_reading.read(lambda: np.load(path, mmap_mode='r', allow_pickle=False))
  if not isinstance(expected, dict) or expected.get('sha256') != digests.of_arrays(array):
    raise damage(path, 'its checksum does not fit')
  return array


def _newer(path: pathlib.Path, error: sealed_json.NewerFile) -> sealed_json.NewerFile:
  return sealed_json.NewerFile(
    f'{path} {error}; use the version that wrote it, or another folder. It is left as it is'
  )


def _checksum(arrays: Mapping[str, np.ndarray]) -> str:
  names = sorted(arrays)
  return digests.of_json([names, digests.of_arrays(arrays[name] for name in names)])


def _truncate(descriptor: int, offset: int, length: int) -> None:
  os.ftruncate(descriptor, offset + length)


def _sync_folder(folder: pathlib.Path) -> None:
  descriptor = os.open(folder, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
