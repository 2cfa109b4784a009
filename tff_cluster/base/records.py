"""Records: dataclasses that JSON files hold, read back with every value of the type that its field declares.

A field may be a bool, an int, a float (1 is a float in JSON), a text, a record, anything of base.types.Json, one of these or
None, and a list, a tuple of any length or a dict with texts as keys of them. `about` tells what reads another kind.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from tff_cluster.base.types import Json


class Mismatch(ValueError):
  """JSON that is no record of the kind that was asked for. The message goes on after a name: "has no 'digest'"."""

  def __init__(self, what: str, where: tuple[str, ...] = ()):
    super().__init__(f'{what}, in {".".join(where)}' if where else what)
    self.what, self.where = what, where


def optional(default: Any) -> Any:
  """Declares a field that JSON leaves out where it has its default, so that there is no key where there is nothing to tell."""
  return dataclasses.field(default=default, metadata={'omitted': True})


def about(key: str | None = None, read: Callable[[Any], Any] | None = None) -> dict[str, Any]:
  """Returns the `metadata` of a dataclasses.field.

  Args:
    key: What JSON calls it; default: its name.
    read: Makes the value, which has `to_json` where JSON has no such value, from JSON; raises ValueError where it can't.
  """
  return {'key': key, 'read': read}


class Record:
  """A dataclass that a JSON object holds."""

  def to_json(self) -> dict[str, Json]:
    """Returns the object, keys in the order of the fields."""
    told = {}
    for each in _fields(type(self)):
      value = getattr(self, each.name)
      if not (each.omitted and value == each.default):
        told[each.key] = plain(value)
    return told

  @classmethod
  def from_json(cls, found: object) -> Self:
    """Reads what `to_json` wrote; keys that no field has are passed over.

    Raises:
      Mismatch: naming the first key that is not there, or holds something else.
    """
    if not isinstance(found, Mapping):
      raise Mismatch('holds no JSON object')
    values = {}
    for each in _fields(cls):
      if each.key in found:
        values[each.name] = _inside(each.key, each.read, found[each.key])
      elif each.default is dataclasses.MISSING:
        raise Mismatch(f'has no {each.key!r}')
    return cls(**values)


def plain(value: Any) -> Json:
  """Returns a value as JSON has it, with the records in it as objects."""
  if isinstance(value, Mapping):
    return {key: plain(each) for key, each in value.items()}
  if isinstance(value, (list, tuple)):
    return [plain(each) for each in value]
  return value.to_json() if hasattr(value, 'to_json') else value


@dataclasses.dataclass(frozen=True)
class _Field:
  """A field of a record, with what reads it; `omitted` tells whether JSON leaves out the default."""

  name: str
  key: str
  read: Callable[[Any], Any]
  default: Any
  omitted: bool


def _fields(kind: Any) -> tuple[_Field, ...]:
  return _fields_of(kind)


@functools.cache
def _fields_of(kind: Any) -> tuple[_Field, ...]:
  hints = typing.get_type_hints(kind)
  return tuple(
    _Field(
      each.name,
      each.metadata.get('key') or each.name,
      each.metadata.get('read') or reader(hints[each.name]),
      each.default,
      each.metadata.get('omitted', False),
    )
    for each in dataclasses.fields(kind)
  )


@functools.cache
def reader(kind: Any) -> Callable[[Any], Any]:
  """Returns the function that makes a value of a type from JSON; it raises Mismatch."""
  origin, inside = typing.get_origin(kind), typing.get_args(kind)
  if origin in (types.UnionType, typing.Union):
    some = tuple(each for each in inside if each is not types.NoneType)
    if len(some) > 2:
      return lambda found: found  # Json.
    of_some = _read_number if len(some) == 2 else reader(some[0])
    return lambda found: None if found is None else of_some(found)
  if origin in (list, tuple):
    return functools.partial(_read_list, origin, inside[0], reader(inside[0]))
  if origin is dict:
    return functools.partial(_read_dict, reader(inside[1]))
  if isinstance(kind, type) and hasattr(kind, 'from_json'):
    return kind.from_json
  return functools.partial(_read_plain, kind)


def _read_plain(kind: type, found: Any) -> Any:
  if type(found) is kind:
    return found
  if kind is float and type(found) is int:
    return float(found)
  raise Mismatch(f'holds {type(found).__name__}, expected {kind.__name__}')


def _read_number(found: Any) -> int | float:
  return found if type(found) is int else _read_plain(float, found)


def _read_list(kind: type, of: Any, read: Callable[[Any], Any], found: Any) -> Any:
  if not isinstance(found, Sequence) or isinstance(found, str):
    raise Mismatch(f'holds {type(found).__name__}, expected a list')
  if set(map(type, found)) <= {of}:  # Long lists of numbers.
    return kind(found)
  return kind(_inside(str(position), read, each) for position, each in enumerate(found))


def _read_dict(read: Callable[[Any], Any], found: Any) -> dict[str, Any]:
  if not isinstance(found, Mapping):
    raise Mismatch(f'holds {type(found).__name__}, expected a JSON object')
  return {key: _inside(key, read, each) for key, each in found.items()}


def _inside(key: str, read: Callable[[Any], Any], found: Any) -> Any:
  try:
    return read(found)
  except Mismatch as error:
    raise Mismatch(error.what, (key, *error.where)) from error
