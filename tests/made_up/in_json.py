"""Records that tests give in JSON, with what they are silent about filled in."""

import dataclasses
import functools
import types
import typing
from typing import Any, TypeVar

from tff_cluster.base import records
from tff_cluster.experiment import results
from tff_cluster.storage import saved_rounds

_Kind = TypeVar('_Kind', bound=records.Record)
_hints = functools.cache(typing.get_type_hints)
_ARTIFACT = {'artifact': f'fedavg-{"0" * 24}', 'start_round': 0, 'rounds': [1]}


def typed(value: dict[str, Any]) -> results.Results:
  """Returns results that are given in JSON."""
  return record(results.Results, value | {'schema': results.SCHEMA})


def typed_runs(runs: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, results.Results]]:
  """Returns seed and results of runs whose results are given in JSON."""
  return [(seed, typed(value)) for seed, value in runs]


def record(kind: type[_Kind], value: dict[str, Any]) -> _Kind:
  """Returns a record; keys that are missing in `value` are None, empty or zero."""
  return kind.from_json(_filled(kind, value))


def _filled(kind: Any, value: Any) -> Any:
  origin, inside = typing.get_origin(kind), typing.get_args(kind)
  if value is None:
    return None
  if origin in (types.UnionType, typing.Union):
    some = [each for each in inside if each is not types.NoneType]
    return _filled(some[0], value) if len(some) == 1 else value
  if origin in (list, tuple):
    return [_filled(inside[0], each) for each in value]
  if origin is dict:
    return {key: _filled(inside[1], each) for key, each in value.items()}
  if not (isinstance(kind, type) and issubclass(kind, records.Record)):
    return value
  hints = _hints(kind)
  found = value.to_json() if isinstance(value, records.Record) else dict(value)
  for field in dataclasses.fields(kind):
    key = field.metadata.get('key') or field.name
    if key in found:
      found[key] = _filled(hints[field.name], found[key])
    elif field.default is dataclasses.MISSING:
      found[key] = _nothing(hints[field.name])
  return found


def _nothing(kind: Any) -> Any:
  if kind is saved_rounds.Checkpoints:
    return _ARTIFACT
  origin = typing.get_origin(kind)
  if origin in (types.UnionType, typing.Union):
    return None
  if origin in (list, tuple, dict):
    return origin()
  return _filled(kind, {}) if issubclass(kind, records.Record) else kind()
