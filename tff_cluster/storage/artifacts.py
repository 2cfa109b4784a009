"""A store of artifacts, each a folder `KIND-DIGEST` whose digest is over everything that its content depends on.

Who asks for the same thing finds it there; who asks for something else cannot hit it by mistake.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import stat
import time
from collections.abc import Iterator, Sequence
from typing import Any

import filelock

from tff_cluster.base import cancelling, digests
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.storage import files, output_folders

# An artifact that is pruned so often while one waits for it is not going to stay.
_TRIES = 100
# Between two looks whether an artifact is free.
_LOOK_SECS = 0.05
_DESCRIBED = 'determinants.json'
_NAME = re.compile(r'([a-z_]+)-([0-9a-f]{24})')
_DOOMED = '.tff_cluster-removed-'
_ROUND = re.compile(r'(?:round|latest)_([0-9]{5,})\.npz')
_PORTION = re.compile(r'models_[0-9]{6,}_([0-9]{6,})\.npz')
_SCORES = re.compile(r'[0-9a-f]{64}\.npz')
# All that is ever written into an artifact, whole or set aside: nothing else in it is ours to remove.
_FILES = re.compile(
  rf'({re.escape(_DESCRIBED)}|{_ROUND.pattern}|{_SCORES.pattern}|{_PORTION.pattern}|vectors\.npy(\.json)?|clients\.json|verdict\.json|sketch\.json|similarity\.npz)'
  r'(\.damaged(-[0-9]+)?)?'
)


class MissingArtifact(EnvironmentFault):
  """A file of an artifact that results stand on is not there any more, or damaged; the message says what makes it again.

  Exit code 2: only who gave the folder can act.
  """

  exit_code = 2


@dataclasses.dataclass(frozen=True)
class Artifact:
  """One artifact of a store.

  Attributes:
    folder: Where it lies.
    kind: What it is: 'fedavg' (a trajectory), 'alternating' (rounds of a method that alternates), 'signatures', 'start' (of a cluster), 'similarity' (of a cluster's updates),
      'global_scores' or 'client_scores' (what models score there) or 'model' (that a model was compared with Keras).
    content: Its files in words, for instance 'rounds 10, 20'.
    size: Bytes on disk.
    last_used: Seconds since the epoch.
  """

  folder: pathlib.Path
  kind: str
  content: str
  size: int
  last_used: float


class Store:
  """A folder of artifacts, which several runs may share.

  Attributes:
    root: The folder.
  """

  def __init__(self, root: pathlib.Path):
    self.root = root
    self._described: dict[pathlib.Path, Any] = {}  # What was named, by folder.

  def place(self, kind: str, determinants: Any) -> pathlib.Path:
    """Returns the folder that an artifact has or would have; makes nothing."""
    return self.root / f'{kind}-{digests.of_json(determinants)[:24]}'

  def artifact(self, kind: str, determinants: Any) -> pathlib.Path:
    """Returns the folder of an artifact; makes it, with `determinants.json` inside, where it is new.

    Args:
      kind: What it is, for instance 'fedavg'.
      determinants: The JSON value that determines its content.
    """
    folder = self.place(kind, determinants)
    self._described[folder] = determinants
    if not _is_artifact(folder):
      # Locked, because who works on an artifact sweeps it.
      os.close(self._locked(folder))
    self.use(folder.name)
    return folder

  def use(self, name: str) -> None:
    """Notes that an artifact was used now, for who prunes the store; does nothing where it is not there."""
    with contextlib.suppress(OSError):
      os.utime(self.root / name / _DESCRIBED)

  @contextlib.contextmanager
  def working_on(self, folder: pathlib.Path) -> Iterator[None]:
    """Keeps other processes from an artifact; waits while one works on it, and then finds what that one made.

    Raises:
      Cancelled: while it waits in a thread whose work is wanted no more (base/cancelling.py).
    """
    descriptor = self._locked(folder)
    try:
      files.sweep(folder)
      yield
    finally:
      os.close(descriptor)

  def idle_first(self, folders: Sequence[pathlib.Path]) -> Iterator[int]:
    """Yields the positions of artifacts, each once, in their order but for those that another process works on.

    These come as soon as they are left alone, or else last. So runs that go through the same artifacts side by side
    share the work, instead of waiting for each other at every one.

    Args:
      folders: Where the artifacts lie or would lie.
    """
    waiting = list(range(len(folders)))
    while waiting:
      position = next((i for i in waiting if not _is_worked_on(folders[i])), waiting[0])
      waiting.remove(position)
      yield position

  def _locked(self, folder: pathlib.Path) -> int:
    """Returns a descriptor that locks an artifact; makes the folder where it is not there, or is pruned meanwhile."""
    for _ in range(_TRIES):
      output_folders.check(folder)
      try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
      except FileNotFoundError:
        continue
      except OSError as error:
        raise EnvironmentFault(f'cannot write {folder}: {error.strerror}') from error
      try:
        # On the folder itself: a file of its own to lock would be left behind, or go and let two in.
        while not filelock.lock_descriptor(descriptor, blocking=False):
          cancelling.check()
          time.sleep(_LOOK_SECS)
        if os.path.samestat(os.fstat(descriptor), os.stat(folder)):
          if folder in self._described and not _is_artifact(folder):
            files.save_json(folder / _DESCRIBED, self._described[folder], seal=False)
          return descriptor
      except FileNotFoundError:
        pass  # Pruned while we waited for the lock.
      except BaseException:
        os.close(descriptor)
        raise
      os.close(descriptor)
    raise EnvironmentFault(f'{folder} vanishes as soon as it is made; is somebody removing the store?')

  def is_other(self) -> bool:
    """Tells whether the folder holds something, and nothing that an artifact could be."""
    names = [path.name.removeprefix(_DOOMED) for path in self.root.iterdir()]
    return bool(names) and not any(map(is_name, names))

  def artifacts(self) -> list[Artifact]:
    """Returns what the store holds, the largest first."""
    found = []
    for folder in sorted(path for path in self.root.glob('*-*') if _is_artifact(path)):
      with contextlib.suppress(FileNotFoundError):  # Another process has removed it meanwhile.
        used = (folder / _DESCRIBED).stat().st_mtime
        found.append(Artifact(folder, folder.name.rpartition('-')[0], _content(folder), _size(folder), used))
    return sorted(found, key=lambda artifact: (-artifact.size, artifact.folder.name))

  def sweep(self) -> None:
    """Removes what killed processes left in artifacts, and of those that they were removing."""
    self.finish_removals()
    for folder in self.root.glob('*-*'):
      if _NAME.fullmatch(folder.name) and not folder.is_symlink():
        files.sweep(folder)

  def finish_removals(self) -> None:
    """Removes what is left of artifacts whose removal was killed."""
    for doomed in self.root.glob(f'{_DOOMED}*'):
      with contextlib.suppress(FileNotFoundError):  # Another process has done so.
        if _NAME.fullmatch(doomed.name.removeprefix(_DOOMED)) and _is_own_folder(doomed):
          with files.locked_if_free(doomed) as is_free:
            if is_free:  # Else another process removes it.
              _empty_out(doomed)

  def remove(self, artifact: Artifact) -> bool:
    """Removes an artifact and returns True; leaves it and returns False while another process works on it.

    It is left, too, where something lies in it that this software did not write, and where a run began to use it after it was listed.
    """
    folder = artifact.folder
    with (
      contextlib.suppress(OSError),
      files.locked_if_free(folder) as is_free,
    ):  # It may not be locked or renamed.
      if not is_free or set(folder.iterdir()) != set(_own_files(folder)):
        return False
      if (folder / _DESCRIBED).stat().st_mtime > artifact.last_used:
        return False
      # Out of sight in one step: who looks for the artifact finds it whole or not at all.
      doomed = folder.with_name(f'{_DOOMED}{folder.name}')
      if os.path.lexists(doomed):
        self.finish_removals()
      folder.rename(doomed)
      _empty_out(doomed)
      return True
    return False


def saved_rounds(folder: pathlib.Path) -> dict[int, pathlib.Path]:
  """Returns the rounds of a trajectory: kept ones (round_00020.npz) and the latest (latest_00007.npz)."""
  matches = ((_ROUND.fullmatch(path.name), path) for path in sorted(folder.glob('*.npz')))
  return {int(match[1]): path for match, path in matches if match}


def is_name(name: str) -> bool:
  """Tells whether a folder of a store could have this name."""
  return _NAME.fullmatch(name) is not None


def _is_own_folder(folder: pathlib.Path) -> bool:
  try:
    found = folder.lstat()
  except OSError:  # Another process has removed it meanwhile.
    return False
  return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _is_artifact(folder: pathlib.Path) -> bool:
  """Tells whether a folder is named by the digest of what it says to be determined by."""
  match = _NAME.fullmatch(folder.name)
  if match is None or not _is_own_folder(folder):
    return False
  try:
    return digests.of_json(json.loads((folder / _DESCRIBED).read_bytes()))[:24] == match[2]
  except (OSError, ValueError, RecursionError):
    return False


def _own_files(folder: pathlib.Path) -> list[pathlib.Path]:
  """Returns the regular files of an artifact whose names this software gives."""
  return [
    path
    for path in folder.iterdir()
    if (_FILES.fullmatch(path.name) or files.is_temporary(path.name))
    and path.is_file()
    and not path.is_symlink()
  ]


def _size(folder: pathlib.Path) -> int:
  """Returns the bytes of our files in a folder; a run that works on it removes some meanwhile."""
  found = 0
  for path in _own_files(folder):
    with contextlib.suppress(FileNotFoundError):
      found += path.stat().st_size
  return found


def _empty_out(folder: pathlib.Path) -> None:
  """Removes a folder and our files in it; leaves it where others' files are in it."""
  for path in _own_files(folder):
    path.unlink(missing_ok=True)
  with contextlib.suppress(OSError):
    folder.rmdir()


def _content(folder: pathlib.Path) -> str:
  """Returns the files of an artifact in words."""
  rounds = sorted(saved_rounds(folder))
  if folder.name.startswith('client_scores-'):
    ends = [int(match[1]) for path in folder.glob('*.npz') if (match := _PORTION.fullmatch(path.name))]
    content = f'models scored: {max(ends, default=0)}'
  elif rounds:
    content = f'rounds {", ".join(map(str, rounds))}'
  elif (folder / 'vectors.npy').exists():
    content = 'vectors'
  elif (folder / 'similarity.npz').exists():
    content = 'similarities'
  elif (folder / 'verdict.json').exists():
    content = 'a model that was compared with Keras'
  else:
    # Named by the digests of models (phases/global_scores.py).
    models = sum(bool(_SCORES.fullmatch(path.name)) for path in folder.iterdir())
    content = f'models scored: {models}' if models else 'nothing yet'
  return content + (', damaged files' if any(folder.glob('*.damaged*')) else '')


def _is_worked_on(folder: pathlib.Path) -> bool:
  """Tells whether another process has locked an artifact just now."""
  with contextlib.suppress(OSError), files.locked_if_free(folder) as is_free:
    return not is_free
  return False  # It is not there yet; what else is wrong with it, who works on it finds.
