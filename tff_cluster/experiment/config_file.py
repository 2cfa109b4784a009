"""Reading a saved configuration, and telling two apart in one line."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tff_cluster.base import imports
from tff_cluster.base.errors import InputError, argument
from tff_cluster.experiment.config import PLACES, ExperimentConfig
from tff_cluster.storage import sealed_json, small_file


class _Twice(Exception):
  """A key stands twice in a JSON object."""


def read_config(path: str | Path, allow_imports: bool = True) -> ExperimentConfig:
  """Reads a config.json.

  Args:
    allow_imports: Whether modules that it names by import path may be run; false for a file of somebody else.

  Raises:
    InputError: if the file is missing, was changed since it was written, is not JSON, or is not a valid configuration.
    sealed_json.NewerFile: if a later version wrote it.
  """
  value = _value(path)
  if not allow_imports:
    _check_imports(path, value)
  with _named(path):
    return ExperimentConfig.from_json(value)


def read_unchecked(path: str | Path) -> ExperimentConfig:
  """Reads a config.json, of which no value is looked at and no module is run; raises as `read_config` does."""
  value = _value(path)
  with _named(path):
    return ExperimentConfig.read(value)


@contextlib.contextmanager
def _named(path: str | Path) -> Iterator[None]:
  """Names the file in what its values cause."""
  try:
    yield
  except InputError as error:
    raise InputError(f'{path} is not a configuration: {error}') from None


def _value(path: str | Path) -> Any:
  """Returns the JSON value of a config.json; raises as `read_config` does."""
  try:
    content = small_file.read(path)
  except IsADirectoryError:
    raise InputError(f'{path} is a folder; give the config.json in it') from None
  except (FileNotFoundError, NotADirectoryError):
    raise InputError(f'{path}: no such file') from None
  try:
    text = sealed_json.opened(content).decode('utf-8')
  except sealed_json.NewerFile as error:
    raise sealed_json.NewerFile(f'{path} {error}; use the version that wrote it') from None
  except UnicodeDecodeError:
    raise InputError(f'{path} is not a configuration: it is not UTF-8 text') from None
  except ValueError as error:
    raise InputError(
      f'{path} was changed since it was written: {error}; if that was on purpose, take "sealed" out of it, with the '
      'comma before it'
    ) from None
  try:
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_once)
  except (ValueError, RecursionError) as error:
    raise InputError(f'{path} is not a configuration: not JSON ({error})') from None
  except _Twice as twice:
    raise InputError(f'{path} is not a configuration: {twice} stands in it twice') from None


def first_difference(one: ExperimentConfig, other: ExperimentConfig) -> tuple[str, Any, Any] | None:
  """Returns (field, its value in one, its value in other) of the first field that tells them apart.

  Where data lies on a machine does not tell experiments apart (see ExperimentConfig.digest).
  """
  left, right = _flat(one), _flat(other)
  for name in [*left, *(name for name in right if name not in left)]:
    # As text, because 1 and 1.0 are equal and yet make two digests.
    if repr(left.get(name)) != repr(right.get(name)):
      return name, left.get(name), right.get(name)
  return None


def difference_beside_seeds(there: ExperimentConfig, here: ExperimentConfig) -> str | None:
  """Returns in words what tells two experiments apart beside their seeds; None where nothing does.

  The second one may have more clusterings and rules of Phase 3, but must have those of the first.
  """
  same = dataclasses.replace(
    here,
    data=dataclasses.replace(here.data, data_seed=there.data.data_seed),
    training=dataclasses.replace(here.training, seed=there.training.seed),
    evaluation=dataclasses.replace(here.evaluation, aggregation=there.evaluation.aggregation),
    clusterings=there.clusterings,
  )
  if difference := first_difference(there, same):
    name, old, new = difference
    return f'{name} is {old} there and {new} here'
  left = [c.label for c in there.clusterings if c not in here.clusterings]
  left += [rule for rule in there.evaluation.aggregation if rule not in here.evaluation.aggregation]
  return f'{left[0]} is there and not here' if left else None


def _flat(config: ExperimentConfig) -> dict[str, Any]:
  plain = config.to_json()
  clusterings = plain.pop('clusterings')
  flat = {name: value for section in plain.values() for name, value in section.items()}
  for path in PLACES:
    del flat[path]
  flat['number of clusterings'] = len(clusterings)
  for k, clustering in enumerate(clusterings):
    flat |= {f'{name} of clustering {k + 1}': value for name, value in clustering.items()}
  return flat


def names_code(path: str | Path) -> bool:
  """Tells whether a config.json names modules to run, so that a command that repeats it has to allow that; False where it cannot be read."""
  try:
    return bool(code_of(_value(path)))
  except InputError:
    return False


def _check_imports(path: str | Path, value: Any) -> None:
  """Raises InputError where a configuration, which may be any JSON, names code that would be run."""
  if found := code_of(value):
    raise InputError(
      f'{path} names code to run: {", ".join(map(str, found))}; give {argument("allow_imports")} if you trust whoever wrote it'
    )


def code_of(value: Any) -> list[str]:
  """Returns the import paths of a configuration, which may be any JSON."""
  clusterings, aggregation = _get(value, 'clusterings'), _get(_get(value, 'evaluation'), 'aggregation')
  named = [_get(_get(value, 'training'), 'model')]
  named += [_get(each, 'method') for each in clusterings] if isinstance(clusterings, list) else []
  named += aggregation if isinstance(aggregation, list) else [aggregation]
  return [each for each in named if imports.is_path(each)]


def _get(value: Any, name: str) -> Any:
  return value.get(name) if isinstance(value, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  # json takes the last of several; which one was meant, nobody knows.
  value: dict[str, Any] = {}
  for key, each in pairs:
    if key in value:
      raise _Twice(repr(key))
    value[key] = each
  return value


def _refuse_constant(name: str) -> None:
  raise ValueError(f'{name} is not a number')
