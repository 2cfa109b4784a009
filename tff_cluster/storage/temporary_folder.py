"""Folders that are there for a block alone, and files that take their places together; what a killed process left goes with the next one."""

import contextlib
import os
import pathlib
import re
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator

import filelock

from tff_cluster.storage import files

_NEW = 'new'
# What tempfile.mkdtemp puts behind a prefix.
_DRAWN = '[a-z0-9_]{8}'


@contextlib.contextmanager
def made(parent: pathlib.Path, use: str, inside: Collection[str]) -> Iterator[pathlib.Path]:
  """Yields a new folder that is locked, and gone after the block.

  Those that killed processes left are removed first: folders of this user with a name that is given here only, which nobody has
  locked, and which hold nothing but what can be in them.

  Args:
    parent: Where it is to lie.
    use: What it is for, a part of its name.
    inside: Names that can be in it.
  """
  prefix = f'.tff_cluster-{use}-'
  for left in parent.iterdir():
    # It may end just now.
    with contextlib.suppress(OSError):
      if re.fullmatch(re.escape(prefix) + _DRAWN, left.name) and _is_ours(left, inside):
        with files.locked_if_free(left) as is_free:
          if is_free:
            shutil.rmtree(left, ignore_errors=True)
  folder, descriptor = _locked(parent, prefix)
  try:
    yield folder
  finally:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(descriptor)


@contextlib.contextmanager
def replacing(folder: pathlib.Path, ours: Collection[str], last: str) -> Iterator[pathlib.Path]:
  """Yields an empty folder whose files take the place of those in `folder` when the block ends without an error; other files stay.

  A new folder comes whole or not at all. In one that is there the files change one after the other: who is killed between two of
  them finds all of them whole, each the old one or the new one, and `last` the old one.

  Args:
    folder: The folder.
    ours: Names of files in it that go where the block writes none of them.
    last: The file that says what the others are.
  """
  place = pathlib.Path(os.path.realpath(folder))
  place.parent.mkdir(parents=True, exist_ok=True)
  with made(place.parent, 'new', [_NEW]) as beside:
    new = beside / _NEW
    new.mkdir()
    yield new
    if not place.exists() or not any(place.iterdir()):
      os.rename(new, place)
      return
    written = sorted((path.name for path in new.iterdir()), key=lambda name: name == last)
    for name in set(ours) - set(written):
      (place / name).unlink(missing_ok=True)
    for name in written:
      os.replace(new / name, place / name)


def is_one(name: str) -> bool:
  """Tells whether a folder of this name is one that ends with a block, or was to."""
  return re.fullmatch(rf'\.tff_cluster-[a-z]+-{_DRAWN}', name) is not None


def _is_ours(path: pathlib.Path, inside: Collection[str]) -> bool:
  """Tells whether a path is a folder of this user's, and holds nothing but entries of these names."""
  about = path.lstat()
  is_users = stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
  return is_users and all(found.name in inside for found in path.iterdir())


def _locked(parent: pathlib.Path, prefix: str) -> tuple[pathlib.Path, int]:
  """Makes a folder, and returns it with a descriptor that locks it."""
  while True:
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    with contextlib.suppress(FileNotFoundError):
      descriptor = os.open(folder, os.O_RDONLY)
      with contextlib.suppress(OSError):
        filelock.lock_descriptor(descriptor)
      if folder.exists():
        return folder, descriptor
      os.close(descriptor)  # Swept before it was locked.
