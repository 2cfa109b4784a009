"""Entries that have something in common, together."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

_Entry = TypeVar('_Entry')
_Key = TypeVar('_Key', bound=Hashable)


def by_key(entries: Iterable[_Entry], key: Callable[[_Entry], _Key]) -> dict[_Key, list[_Entry]]:
  """Returns entries by a key, in the order of the first of each."""
  found: dict[_Key, list[_Entry]] = {}
  for entry in entries:
    found.setdefault(key(entry), []).append(entry)
  return found
