"""A store of artifacts, each a folder `KIND-DIGEST` whose digest is over everything that its content depends on.

Who asks for the same thing finds it there; who asks for something else cannot hit it by mistake.
"""

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

from tff_cluster import digests, holding, store
from tff_cluster.errors import EnvironmentFault

# An artifact that is pruned so often while one waits for it is not going to stay.
_TRIES = 100


@dataclasses.dataclass(frozen=True)
class Artifact:
  """One artifact of a store.

  Attributes:
    folder: Where it lies.
    kind: What it is: 'fedavg' (a trajectory), 'signatures', 'start' (of a cluster), 'similarity' (of a cluster's updates) or
      'global_scores' (what models score there).
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
    self._described: tuple[pathlib.Path, Any] | None = None

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
    described = folder / 'determinants.json'
    self._described = folder, determinants
    if not described.exists():
      # Locked, because who works on an artifact sweeps it.
      os.close(self._locked(folder))
    with contextlib.suppress(OSError):
      os.utime(described)  # When it was last used, for who prunes the store.
    return folder

  @contextlib.contextmanager
  def working_on(self, folder: pathlib.Path) -> Iterator[None]:
    """Keeps other processes from an artifact; waits while one works on it, and then finds what that one made."""
    descriptor = self._locked(folder)
    try:
      store.sweep(folder)
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
      holding.check(folder)
      try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
      except FileNotFoundError:
        continue
      except OSError as error:
        raise EnvironmentFault(f'cannot write {folder}: {error.strerror}') from error
      try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(descriptor), os.stat(folder)):
          described = folder / 'determinants.json'
          if self._described is not None and self._described[0] == folder and not described.exists():
            store.save_json(described, self._described[1], seal=False)
          return descriptor
      except FileNotFoundError:
        pass  # Pruned while we waited for the lock.
      except BaseException:
        os.close(descriptor)
        raise
      os.close(descriptor)
    raise EnvironmentFault(f'{folder} vanishes as soon as it is made; is somebody removing the store?')

  def artifacts(self) -> list[Artifact]:
    """Returns what the store holds, the largest first."""
    found = []
    for described in sorted(self.root.glob('*-*/determinants.json')):
      folder = described.parent
      size = sum(path.stat().st_size for path in folder.rglob('*') if path.is_file())
      found.append(
        Artifact(folder, folder.name.rpartition('-')[0], _content(folder), size, described.stat().st_mtime)
      )
    return sorted(found, key=lambda artifact: (-artifact.size, artifact.folder.name))

  def finish_removals(self) -> None:
    """Removes what is left of artifacts whose removal was killed."""
    for doomed in self.root.glob('.*-*.tmp'):
      if doomed.is_dir():
        store.remove_left_over(doomed)

  def remove(self, artifact: Artifact) -> bool:
    """Removes an artifact and returns True; leaves it and returns False while another process works on it."""
    descriptor = os.open(artifact.folder, os.O_RDONLY)
    try:
      fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
      # Out of sight in one step: who looks for the artifact finds it whole or not at all.
      doomed = artifact.folder.with_name(f'.{artifact.folder.name}.tmp')
      store.remove_left_over(doomed)
      artifact.folder.rename(doomed)
      shutil.rmtree(doomed)
      return True
    except BlockingIOError:
      return False
    finally:
      os.close(descriptor)


def _content(folder: pathlib.Path) -> str:
  """Returns the files of an artifact in words."""
  rounds = sorted(int(path.stem.rpartition('_')[2]) for path in folder.glob('*_[0-9]*.npz'))
  if rounds:
    content = f'rounds {", ".join(map(str, rounds))}'
  elif any(folder.glob('*.npy')):
    content = 'vectors'
  elif (folder / 'similarity.npz').exists():
    content = 'similarities'
  else:
    # Named by the digests of models (algorithms/global_scores.py).
    models = len(list(folder.glob('[0-9a-f]*.npz')))
    content = f'models scored: {models}' if models else 'nothing yet'
  return content + (', damaged files' if any(folder.glob('*.damaged')) else '')


def _is_worked_on(folder: pathlib.Path) -> bool:
  """Tells whether another process has locked an artifact just now."""
  try:
    descriptor = os.open(folder, os.O_RDONLY)
  except OSError:
    return False  # It is not there yet; what else is wrong with it, who works on it finds.
  try:
    fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return False
  except BlockingIOError:
    return True
  finally:
    os.close(descriptor)
