"""Files that a program writes into a folder which is no run's: over its own of before, and over nobody else's."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tff_cluster.base.errors import InputError, argument


def check(folder: Path, names: Sequence[str], is_own: Callable[[bytes], bool]) -> None:
  """Looks before files are written.

  Args:
    folder: The output folder.
    names: What will be written into it. The first is written first, and tells whose the others are.
    is_own: Whether the first, with this content, was written by the program itself, which may replace it.

  Raises:
    InputError: naming a file that is there and was not.
  """
  there = [name for name in names if os.path.lexists(folder / name)]
  first = folder / names[0]
  if there and not (there[0] == names[0] and first.is_file() and is_own(first.read_bytes())):
    raise InputError(
      f'{argument("output_dir", folder)} has {there[0]}, which would be written over, and which no earlier call of the same command '
      'wrote; choose another folder'
    )
