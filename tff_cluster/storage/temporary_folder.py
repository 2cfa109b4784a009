"""Folders that are there for a block alone; what a killed process left of them goes when the next one is made."""

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
