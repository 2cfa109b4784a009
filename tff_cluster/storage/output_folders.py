"""Folders that this process works in: others are kept out, and nothing is written to one that was taken away.

Who removes a run's folder while the run goes on would otherwise get a part of it back, and who puts another run in its
place would get two runs mixed.
"""

import atexit
import contextlib
import dataclasses
import errno
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import filelock

from tff_cluster.base.errors import EnvironmentFault, InputError, argument

# Where a run has its artifacts, or a link to where they are.
STORE = 'store'
# A file in it while a program works in it; it stays where it is when the folder travels.
LOCK = '.tff_cluster-lock'


@dataclasses.dataclass(frozen=True)
class _Held:
  """A lock, which process has it, as which paths its folder is known, and which folders were made for it.

  `about` tells the lock's file from another one of its name, and so the folder from one that took its place.
  """

  lock: filelock.BaseFileLock
  process: int
  names: tuple[str, str]
  about: os.stat_result
  created: tuple[str, ...]

  def is_named(self) -> bool:
    try:
      return os.path.samestat(self.about, os.stat(_lock_of(self.names[1])))
    except OSError:
      return False

  def fault(self) -> EnvironmentFault | None:
    if not self.is_named():
      return EnvironmentFault(
        f'{argument("output_dir", self.names[0])} was removed or replaced while this program worked in it; nothing more is written, '
        'give the command again to start anew'
      )
    store = os.path.join(self.names[1], STORE)
    if os.path.islink(store) and not os.path.isdir(store):
      return EnvironmentFault(
        f'the store {os.path.realpath(store)} of the run in {self.names[0]} is not there; where it was moved, have the link {store} '
        f'lead to it, else make the folder for it to be filled again, or give the command again with another {argument("output_dir")}'
      )
    return None


_held: dict[str, _Held] = {}


def lock(path: str | Path) -> Path:
  """Creates a folder where needed, and keeps other processes out until this one ends.

  Raises:
    InputError: if the path is no folder.
    EnvironmentFault: if it cannot be written, or another process holds it.
  """
  folder = Path(path)
  try:
    missing = list(itertools.takewhile(lambda path: not path.exists(), (folder, *folder.parents)))
    folder.mkdir(parents=True, exist_ok=True)
  except (FileExistsError, NotADirectoryError):
    raise InputError(f'{argument("output_dir", path)} is not a folder, or lies below a file') from None
  except OSError as error:
    if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
      raise InputError(f'{argument("output_dir", path)}: {error.strerror}') from None
    raise EnvironmentFault(f'cannot create {argument("output_dir", path)}: {error.strerror}') from None
  key = os.path.realpath(folder)
  if key in _held and _held[key].process == os.getpid():
    if _held[key].is_named():
      return folder
    # It was removed since, and is made anew now.
    _held.pop(key).lock.release()
  name = _lock_of(key)
  acquired = _acquired(path, name)
  names = os.path.abspath(folder), key
  _held[key] = _Held(acquired, os.getpid(), names, os.stat(name), tuple(map(os.path.realpath, missing)))
  return folder


@contextlib.contextmanager
def held(path: str | Path) -> Iterator[Path]:
  """Keeps other processes out of a folder for the length of a block, or for longer where this one had it before.

  A notebook's process lives on after a run, and must not keep programs from the run's folder.

  Raises:
    InputError, EnvironmentFault: as `lock`.
  """
  before = set(_held)
  folder = lock(path)
  key = os.path.realpath(folder)
  try:
    yield folder
  finally:
    if key not in before:
      _release(key)


def release(path: str | Path) -> None:
  """Gives up this process's lock on a folder, for another one that is to work in it; does nothing where it has none."""
  key = os.path.realpath(path)
  if key in _held:
    _release(key)


def release_all() -> None:
  """Gives up all locks of this process; a folder that it made and left empty is removed, with those above it that it made."""
  for key in list(_held):
    _release(key)


def is_locked(folder: str | Path) -> bool:
  """Tells whether a folder is that of a program at work: this one or another."""
  return os.path.exists(_lock_of(folder))


def is_ours(folder: str | Path) -> bool:
  """Tells whether this process holds a folder, and it is still the one that it took hold of."""
  mine = _held.get(os.path.realpath(folder))
  return mine is not None and mine.is_named()


def lost() -> EnvironmentFault | None:
  """Returns an error that names a folder which was taken away from this process; None where all are there."""
  return next((fault for mine in _held.values() if (fault := mine.fault())), None)


def check(path: str | os.PathLike[str]) -> None:
  """Looks before something is written.

  Raises:
    EnvironmentFault: if the path lies in a folder that was taken away.
  """
  inside = Path(os.path.abspath(path))
  for mine in list(_held.values()):
    if any(map(inside.is_relative_to, mine.names)) and (fault := mine.fault()):
      raise fault


def _lock_of(folder: str | Path) -> str:
  return os.path.join(folder, LOCK)


def _release(key: str) -> None:
  mine = _held.pop(key)
  if mine.process != os.getpid():
    return
  if mine.is_named():
    with contextlib.suppress(OSError):
      # Removed before it is unlocked: who opened it meanwhile sees that the name is gone and tries anew.
      os.unlink(_lock_of(key))
  mine.lock.release()
  with contextlib.suppress(OSError):
    for made in mine.created:
      os.rmdir(made)


def _acquired(path: str | Path, name: str) -> filelock.BaseFileLock:
  """Returns the lock on a folder, held; the file has this process's number, and a fork of this process not the lock."""
  # A notebook's threads lock and release in turn; a file that is there is no lock where nothing else can lock.
  acquired = filelock.FileLock(
    name, blocking=False, thread_local=False, fallback_to_soft=False, on_acquired=_write_process
  )
  while True:
    try:
      acquired.acquire()
      return acquired
    except filelock.Timeout:
      holder = _holder(name)
      # Released and unlinked since: it is free now.
      if holder is not None:
        raise EnvironmentFault(
          f'another run{f" (process {holder})" if holder else ""} is at work in {argument("output_dir", path)}; '
          'wait for it or choose another folder'
        ) from None
    except OSError as error:
      # Opening tells which file, locking does not.
      failed = 'write in' if error.filename else 'lock'
      raise EnvironmentFault(f'cannot {failed} {argument("output_dir", path)}: {error.strerror}') from None


def _write_process(descriptor: int) -> None:
  os.ftruncate(descriptor, 0)
  os.write(descriptor, str(os.getpid()).encode())


def _holder(name: str) -> str | None:
  """Returns what the holder of a lock wrote into it; None where it is gone."""
  try:
    with open(name, 'rb') as stream:
      return stream.read(20).decode('ascii', 'replace')
  except FileNotFoundError:
    return None
  except OSError:
    return ''


atexit.register(release_all)
