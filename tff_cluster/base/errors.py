"""The two kinds of failure that a person has to act on, each told in one line.

Anything else that is raised is a fault of this software and keeps its traceback.

A message names arguments by `argument`. Python callers read `num_clients=0: ...`, and on the command line the same message
says `--num_clients=0: ...`.
"""

from typing import Any

# A longer line is cut in its middle: what was given may be a megabyte, and what is allowed stands behind it.
_LONGEST = 2000
# Stands before the name of an argument until a message is told. No path and no word of a command line can hold a NUL, and
# one in a file has no such word behind it.
_MARK = '\0argument '
_FLAG = '--'


class Fault(Exception):
  """What both kinds have in common.

  Attributes:
    exit_code: That of a program which ends with it.
    marked: The message as it was given, for a message around this one that is to name the same arguments. `str` tells
      it without the marks, as what stands in a file or in a value is called.
  """

  exit_code: int

  def __init__(self, message: str):
    super().__init__(told(message))
    self.marked = message

  def on_command_line(self) -> str:
    """Returns the message as a program tells it: its arguments are flags."""
    return told(self.marked, _FLAG)


class InputError(Fault, ValueError):
  """What was given is wrong. The message says what was given, what is allowed. Exit code 2."""

  exit_code = 2


class EnvironmentFault(Fault, RuntimeError):
  """The machine failed us (disk full, worker did not start, file missing). Exit code 1."""

  exit_code = 1


def argument(name: str, *value: Any) -> str:
  """Returns what a message calls an argument: its name, or NAME=VALUE where a value is given."""
  return f'{_MARK}{name}' + ''.join(f'={each}'.replace('\0', '\\x00') for each in value)


def told(message: str, before_arguments: str = '') -> str:
  """Returns a message as one line, with a text before the name of each argument."""
  return one_line(message.replace(_MARK, before_arguments))


def one_line(text: str) -> str:
  """Returns text that is one line on every terminal: what cannot be printed is escaped, a very long middle left out."""
  if len(text) > _LONGEST:
    half = _LONGEST // 2
    text = f'{text[:half]} [... {len(text) - 2 * half} characters ...] {text[-half:]}'
  if text.isprintable():
    return text
  return ''.join(c if c.isprintable() else c.encode('unicode_escape').decode() for c in text)


def shown(value: Any) -> str:
  """Returns repr(value), or what kind of thing it is where it nests too deeply, or has too many digits, for that."""
  try:
    return repr(value)
  except (RecursionError, ValueError):
    return f'a {type(value).__name__} that is too long to show'
