"""Flagfiles: --flagfile=FILE stands for the flags in FILE, one on a line.

absl reads them as well, but waits for ever on a pipe, fills the memory from a device, and goes on, with a warning, where a
file includes itself.

flags/NAME.flags is a preset of this package wherever there is no such file: an installed package has no flags/ beside it.
"""

import os
from collections.abc import Iterator, Sequence

from tff_cluster.base.errors import InputError
from tff_cluster.experiment import preset
from tff_cluster.storage import small_file

_NAMES = ('--flagfile', '-flagfile')


def expanded(arguments: Sequence[str], within: tuple[str, ...] = ()) -> list[str]:
  """Returns the arguments with the lines of flagfiles in the places where they were named.

  Empty lines and those that begin with # or // are left out. Nothing after `--` is a flag.

  Args:
    arguments: Without the program's name.
    within: The flagfiles that these arguments come from, each included by the one before.

  Raises:
    InputError: naming the file that cannot be read, is no text, or includes itself.
  """
  found: list[str] = []
  rest = iter(arguments)
  for argument in rest:
    if argument == '--':
      return [*found, argument, *rest]
    name, equals, path = argument.partition('=')
    if name not in _NAMES:
      found.append(argument)
      continue
    path = path if equals else next(rest, '')
    if not path.strip():
      raise InputError('--flagfile= names no file' if equals else '--flagfile with no argument')
    path = _found(os.path.expanduser(path.strip()))
    if path in within:
      raise InputError(f'--flagfile={path}: the file includes itself')
    found += expanded(list(_lines(path)), (*within, path))
  return found


def _found(path: str) -> str:
  """Returns the path, or that of the preset that it names where nothing is there."""
  folder, name = os.path.split(path)
  packaged = preset.FOLDER / name
  is_preset = folder == 'flags' and not os.path.lexists(path) and packaged.is_file()
  return str(packaged) if is_preset else path


def _lines(path: str) -> Iterator[str]:
  try:
    text = small_file.read(path).decode('utf-8-sig')
  except OSError as error:
    raise InputError(f'--flagfile={path}: {error.strerror}') from None
  except InputError as error:
    raise InputError(f'--flagfile={error}') from None
  except UnicodeDecodeError:
    raise InputError(
      f'--flagfile={path}: a flagfile is UTF-8 text with one flag on a line; this one is not text'
    ) from None
  # Not splitlines: a vertical tab in a flag ends no line.
  for line in text.replace('\r\n', '\n').split('\n'):
    if line.strip() and not line.startswith(('#', '//')):
      yield line.strip()
