"""The folder of a run: claimed by one experiment and one process at a time."""

import atexit
import contextlib
import dataclasses
import errno
import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tff_cluster import holding, store
from tff_cluster.cli import config_file
from tff_cluster.cli.environment import describe_environment
from tff_cluster.config import ExperimentConfig
from tff_cluster.errors import EnvironmentFault, InputError
from tff_cluster.run_folder import RunFolder

_LOCK = '.lock'


@dataclasses.dataclass(frozen=True)
class _Held:
  descriptor: int
  process: int
  created: bool


_held: dict[str, _Held] = {}


def claim_output_dir(
  path: str | Path, config: ExperimentConfig, environment: Mapping[str, Any] | None = None
) -> Path:
  """Makes the folder this experiment's, for as long as the process lives.

  Creates the folder where needed, locks it, and writes config.json and environment.json. A folder that
  already has an equal experiment is claimed for going on with it; what killed processes left there is removed.

  Args:
    path: The folder.
    config: The experiment.
    environment: What environment.json says; default: describe_environment().

  Returns:
    The folder.

  Raises:
    InputError: if the path is no folder, or holds another experiment; naming the first difference.
    EnvironmentFault: if it cannot be written, or another process is at work in it.
  """
  folder = lock_output_dir(path)
  target = RunFolder(folder).config
  if os.path.lexists(target):
    try:
      there = config_file.read_config(target)
    except InputError as error:
      raise InputError(
        f'--output_dir={path} cannot be gone on with: {error}; choose another folder'
      ) from None
    # One Phase 1 serves any number of clusterings: those of the folder stay, new ones join them.
    same = dataclasses.replace(there, clusterings=config.clusterings)
    if same.digest != config.digest:
      name, old, new = config_file.first_difference(same, config) or ('configuration', '?', '?')
      raise InputError(
        f'--output_dir={path} holds another experiment: {name} is {_plain(old)} there and {_plain(new)} here; '
        'choose another folder'
      )
    try:
      config = dataclasses.replace(config, clusterings=there.with_clusterings(config.clusterings).clusterings)
    except InputError as error:
      raise InputError(f'--output_dir={path} has other clusterings: {error}') from None
    store.sweep(folder)
  store.save_json(target, config.to_json())
  store.save_json(RunFolder(folder).environment, dict(environment or describe_environment()))
  return folder


def resume_output_dir(path: str | Path) -> Path:
  """Makes the folder of an earlier run this process's, as it is but for what killed processes left.

  Raises:
    InputError: if the folder holds no run.
    EnvironmentFault: if it cannot be written, or another process is at work in it.
  """
  if not os.path.isfile(RunFolder(Path(path)).config):
    raise InputError(
      f'--output_dir={path} holds no run (no config.json); start one with python -m phases.phase1 or '
      'python -m phases.run_all'
    )
  folder = lock_output_dir(path)
  store.sweep(folder)
  return folder


def share_store(folder: Path, store_dir: str | None) -> None:
  """Has a run keep its artifacts in a folder that other runs use too. None: as it is.

  Raises:
    InputError: if the run keeps them elsewhere already.
  """
  if store_dir is None:
    return
  own, shared = RunFolder(folder).store, Path(os.path.abspath(store_dir))
  if not os.path.lexists(own):
    shared.mkdir(parents=True, exist_ok=True)
    own.symlink_to(shared)
  elif not (shared.exists() and own.exists() and os.path.samefile(own, shared)):
    raise InputError(
      f'--store_dir={store_dir}: the run in {folder} keeps its artifacts in {os.path.realpath(own)}; leave the flag out '
      'or choose another --output_dir'
    )


def lock_output_dir(path: str | Path) -> Path:
  """Creates the folder where needed, and keeps other processes out until this one ends.

  Raises:
    InputError: if the path is no folder.
    EnvironmentFault: if it cannot be written, or another process holds it.
  """
  folder = Path(path)
  try:
    created = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
  except (FileExistsError, NotADirectoryError):
    raise InputError(f'--output_dir={path} is not a folder, or lies below a file') from None
  except OSError as error:
    if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
      raise InputError(f'--output_dir={path}: {error.strerror}') from None
    raise EnvironmentFault(f'cannot create --output_dir={path}: {error.strerror}') from None
  key = os.path.realpath(folder)
  if key in _held and _held[key].process == os.getpid():
    if holding.is_ours(key):
      return folder
    # It was removed since, and is made anew now.
    os.close(_held.pop(key).descriptor)
  lock = os.path.join(key, _LOCK)
  _held[key] = _Held(_locked_descriptor(path, lock), os.getpid(), created)
  holding.hold(folder, lock, os.fspath(RunFolder(Path(key)).store))
  return folder


@contextlib.contextmanager
def held(path: str | Path) -> Iterator[Path]:
  """Keeps other processes out of a folder for the length of a block, or for longer where this one had it before.

  A notebook's process lives on after a run, and must not keep programs from the run's folder.

  Raises:
    InputError, EnvironmentFault: as lock_output_dir.
  """
  before = set(_held)
  folder = lock_output_dir(path)
  key = os.path.realpath(folder)
  try:
    yield folder
  finally:
    if key not in before:
      _release(key)


def release_output_dirs() -> None:
  """Gives up all locks of this process; a folder that it made and left empty is removed."""
  for key in list(_held):
    _release(key)


def _release(key: str) -> None:
  held = _held.pop(key)
  if held.process != os.getpid():
    return
  if holding.is_ours(key):
    with contextlib.suppress(OSError):
      # Removed before it is unlocked: who opened it meanwhile sees that the name is gone and tries anew.
      os.unlink(os.path.join(key, _LOCK))
  holding.let_go(key)
  os.close(held.descriptor)
  if held.created:
    with contextlib.suppress(OSError):
      os.rmdir(key)


def _locked_descriptor(path: str | Path, lock: str) -> int:
  # Record locks, because forked workers do not inherit them: a worker that outlives a killed run
  # does not keep the folder locked.
  while True:
    try:
      descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
      raise EnvironmentFault(f'cannot write in --output_dir={path}: {error.strerror}') from None
    try:
      fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
      if _is_named(descriptor, lock):
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        return descriptor
    except OSError as error:
      holder = os.pread(descriptor, 20, 0).decode('ascii', 'replace')
      os.close(descriptor)
      if error.errno in (errno.EACCES, errno.EAGAIN):
        raise EnvironmentFault(
          f'another run{f" (process {holder})" if holder else ""} is at work in --output_dir={path}; '
          'wait for it or choose another folder'
        ) from None
      raise EnvironmentFault(f'cannot lock --output_dir={path}: {error.strerror}') from None
    os.close(descriptor)


def _is_named(descriptor: int, name: str) -> bool:
  try:
    return os.path.samestat(os.fstat(descriptor), os.stat(name))
  except FileNotFoundError:
    return False


def _plain(value: Any) -> str:
  return 'not given' if value is None else str(value)


atexit.register(release_output_dirs)
