"""Folders whose files travel to another machine and back, or in an archive, and how a machine tells whether it sees a folder already."""

import contextlib
import io
import os
import pathlib
import tarfile
from collections.abc import Iterable, Iterator, Mapping

from tff_cluster.storage import files, output_folders

_MARK = 'seen'


def contents(folder: pathlib.Path) -> dict[str, bytes]:
  """Returns the files below a folder by path, but for those behind links and those that belong to a program at work."""
  travelling = (
    path
    for path in sorted(folder.rglob('*'))
    if path.is_file()
    and not path.is_symlink()
    and not (path.name == output_folders.LOCK or files.is_temporary(path.name))
  )
  return read(travelling, folder)


def read(paths: Iterable[pathlib.Path], folder: pathlib.Path) -> dict[str, bytes]:
  """Returns what files below a folder hold, by path."""
  return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def pack(path: pathlib.Path, found: Mapping[str, bytes]) -> None:
  """Writes files by path into a .tar.xz; equal files give equal bytes.

  Raises:
    EnvironmentFault: if it cannot be written.
  """
  with files.replacing(path) as stream, tarfile.open(fileobj=stream, mode='w:xz', preset=9) as archive:
    for name, content in found.items():
      about = tarfile.TarInfo(name)
      about.size = len(content)
      archive.addfile(about, io.BytesIO(content))


def put(folder: pathlib.Path, found: Mapping[str, bytes]) -> None:
  """Writes files below a folder by path; each is whole or not there.

  Raises:
    EnvironmentFault: if one cannot be written.
  """
  folder.mkdir(parents=True, exist_ok=True)
  for name, content in found.items():
    files.write_file(folder / name, content)


def link(place: pathlib.Path, folder: pathlib.Path) -> None:
  """Makes a link to a folder, and the folder where it is not there."""
  folder.mkdir(parents=True, exist_ok=True)
  place.symlink_to(folder)


@contextlib.contextmanager
def marked(folder: pathlib.Path) -> Iterator[str]:
  """Yields the path of a file in a folder, by which a machine tells whether it sees that very folder; it is gone afterwards."""
  folder.mkdir(parents=True, exist_ok=True)
  # Of killed programs.
  files.sweep(folder, _MARK)
  descriptor, mark = files.temporary_file(folder / _MARK)
  try:
    yield os.path.abspath(mark)
  finally:
    mark.unlink(missing_ok=True)
    os.close(descriptor)
