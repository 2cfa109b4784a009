"""Folders that this process works in, and whether they are still there: nothing is written to one that was taken away.

Who removes a run's folder while the run goes on would otherwise get a part of it back, and who puts another run in its
place would get two runs mixed.
"""

import dataclasses
import os
import pathlib

from tff_cluster.base.errors import EnvironmentFault, argument


@dataclasses.dataclass(frozen=True)
class _Held:
  """As which paths the folder is known, the file in it that marks it as ours, and the link to artifacts elsewhere."""

  names: tuple[str, str]
  mark: str
  about: os.stat_result
  link: str


_held: dict[str, _Held] = {}


def hold(folder: str | os.PathLike[str], mark: str, link: str) -> None:
  """Remembers a folder.

  Args:
    folder: The folder, as its user named it.
    mark: A file in it that is there as long as it is this process's.
    link: Where a link to a folder of artifacts can be; it must not dangle.
  """
  names = os.path.abspath(folder), os.path.realpath(folder)
  _held[names[1]] = _Held(names, mark, os.stat(mark), link)


def let_go(folder: str | os.PathLike[str]) -> None:
  """Forgets a folder."""
  _held.pop(os.path.realpath(folder), None)


def is_ours(folder: str | os.PathLike[str]) -> bool:
  """Tells whether a folder that this process holds is still the one that it took hold of."""
  held = _held.get(os.path.realpath(folder))
  return held is not None and _is_named(held)


def lost() -> EnvironmentFault | None:
  """Returns an error that names a folder which was taken away from this process; None where all are there."""
  return next((fault for held in _held.values() if (fault := _lost(held))), None)


def check(path: str | os.PathLike[str]) -> None:
  """Looks before something is written.

  Raises:
    EnvironmentFault: if the path lies in a folder that was taken away.
  """
  inside = os.path.abspath(path)
  for held in list(_held.values()):
    if any(pathlib.Path(inside).is_relative_to(name) for name in held.names) and (fault := _lost(held)):
      raise fault


def _lost(held: _Held) -> EnvironmentFault | None:
  if not _is_named(held):
    return EnvironmentFault(
      f'{argument("output_dir", held.names[0])} was removed or replaced while this program worked in it; nothing more is written, '
      'give the command again to start anew'
    )
  if os.path.islink(held.link) and not os.path.isdir(held.link):
    return EnvironmentFault(
      f'the store {os.path.realpath(held.link)} of the run in {held.names[0]} is not there; where it was moved, have the link {held.link} '
      f'lead to it, else make the folder for it to be filled again, or give the command again with another {argument("output_dir")}'
    )
  return None


def _is_named(held: _Held) -> bool:
  try:
    return os.path.samestat(held.about, os.stat(held.mark))
  except OSError:
    return False
