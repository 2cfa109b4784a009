"""The two kinds of failure that a person has to act on, each told in one line.

Anything else that is raised is a fault of this software and keeps its traceback.
"""

from typing import Any

# A longer line is cut in its middle: what was given may be a megabyte, and what is allowed stands behind it.
_LONGEST = 2000


class InputError(ValueError):
  """What was given is wrong. The message says what was given, what is allowed. Exit code 2."""

  exit_code = 2

  def __init__(self, message: str):
    super().__init__(one_line(message))


class EnvironmentFault(RuntimeError):
  """The machine failed us (disk full, worker did not start, file missing). Exit code 1."""

  exit_code = 1

  def __init__(self, message: str):
    super().__init__(one_line(message))


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
