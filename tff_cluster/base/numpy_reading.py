"""Reads by NumPy, again where Python stumbled over another thread.

NumPy parses the header of an array as Python. In Python 3.11.7 and older two threads that parse at the same time can raise a
SystemError about the other one's depth of recursion (python/cpython, issue 106905), and a file that is whole would be
called damaged.
"""

from collections.abc import Callable
from typing import TypeVar

_Found = TypeVar('_Found')
_TIMES = 20
_OF_OTHER_THREADS = 'AST constructor recursion depth mismatch'


def read(by_numpy: Callable[[], _Found]) -> _Found:
  """Returns what a function reads; it is called anew where that error is raised, and must begin at the beginning each time."""
  for _ in range(_TIMES - 1):
    try:
      return by_numpy()
    except SystemError as error:
      if _OF_OTHER_THREADS not in str(error):
        raise
  return by_numpy()
