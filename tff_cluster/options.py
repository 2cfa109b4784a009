"""Fields that carry their own rules: what is allowed, where they apply, and what --help says.

A section is a frozen dataclass whose fields are made by `option`. The command line makes flags of them, and
`check_fields` holds values to them, so that each rule is written once.
"""

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any

from tff_cluster.errors import InputError, shown

# Flags take 18 digits at most (tff_cluster/cli/flags.py); so do files.
_BELOW = 10**18
_NUMBER = re.compile(r'[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?')


def option(default: Any, help: str, **metadata: Any) -> Any:
  """Declares a field.

  Args:
    default: Its default; None means "not given".
    help: One sentence for --help.
    **metadata: `choices`, the allowed values; `at_least`, `above`, `at_most`, bounds of a number;
      `applies`, a pair (field, values) such as ('partition', ('dirichlet',)): elsewhere the field must
      keep its default; `group`, the heading in --help where it is not the class's own; `quiet`, true for a field that
      was added after experiments had been published: while it has its default, nothing that is saved mentions it, so
      that no digest moves.
  """
  return dataclasses.field(default=default, metadata={'help': help, **metadata})


def number(text: str) -> float:
  """Reads a decimal number, such as 12, 0.1 or 1e-3.

  Python's float also takes digits of other scripts, _ between digits and blanks around them, which may be slips, and
  `nan` and `inf`.

  Raises:
    ValueError: if the text is none, or is too large.
  """
  value = float(text) if _NUMBER.fullmatch(text) else math.nan
  if not math.isfinite(value):
    raise ValueError('expected a number, such as 12, 0.1 or 1e-3')
  return value


def check_fields(section: Any) -> None:
  """Checks a section's fields against their declarations.

  Raises:
    InputError: naming the first field that is out of range or does not apply, its value and what is allowed.
  """
  for field in dataclasses.fields(section):
    value, rule = getattr(section, field.name), field.metadata
    _check_type(field, value)
    if 'applies' in rule and value != field.default:
      check_applies(section, field)
    if value is None:
      continue
    if 'choices' in rule and value not in rule['choices']:
      raise InputError(f'--{field.name}={value}: allowed are {", ".join(map(str, rule["choices"]))}')
    for bound, fits, words in (
      ('at_least', lambda v, b: v >= b, 'at least'),
      ('above', lambda v, b: v > b, 'above'),
      ('at_most', lambda v, b: v <= b, 'at most'),
    ):
      if bound in rule and not fits(value, rule[bound]):
        raise InputError(f'--{field.name}={value}: must be {words} {rule[bound]}')


def check_applies(section: Any, field: dataclasses.Field) -> None:
  """Raises InputError where the field does not apply to what the section chose."""
  if 'applies' not in field.metadata:
    return
  chooser, values = field.metadata['applies']
  chosen = getattr(section, chooser)
  if chosen not in values:
    raise InputError(
      f'--{field.name} does not apply to --{chooser}={chosen}; it applies to {chooser} {" or ".join(values)}'
    )


def applicable(section: Any) -> dict[str, Any]:
  """Returns the fields of a section that apply to what it chose, without its chooser and its name."""
  fields = {}
  for field in dataclasses.fields(section):
    chooser, values = field.metadata.get('applies', (None, ()))
    if field.name in ('method', 'name') or (chooser and getattr(section, chooser) not in values):
      continue
    fields[field.name] = getattr(section, field.name)
  return fields


def to_json(section: Any) -> dict[str, Any]:
  """Returns the fields of a section by name, without the quiet ones that have their default."""
  return {
    field.name: getattr(section, field.name)
    for field in dataclasses.fields(section)
    if not (field.metadata.get('quiet') and getattr(section, field.name) == field.default)
  }


def plain_type(field: dataclasses.Field) -> tuple[type, bool]:
  """Returns int, float or str, and whether None is allowed beside it."""
  kinds = set(getattr(field.type, '__args__', (field.type,)))
  return next(kind for kind in kinds if kind is not type(None)), type(None) in kinds  # type: ignore[return-value]


def _check_type(field: dataclasses.Field, value: Any) -> None:
  kind, optional = plain_type(field)
  if value is None and optional:
    return
  if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
    raise InputError(f'--{field.name}={shown(value)}: expected {"text" if kind is str else kind.__name__}')
  if kind is int and not -_BELOW < value < _BELOW:
    raise InputError(f'--{field.name}={shown(value)}: expected an integer of at most 18 digits')
  if kind is str and '\0' in value:
    raise InputError(f'--{field.name}={value}: the value holds a NUL character')
  if kind is str and 'choices' not in field.metadata and not _is_utf8(value):
    # Such a name of a file cannot be told to TensorFlow, nor written into a report.
    raise InputError(f'--{field.name}={value}: the value is not UTF-8 text')
  if kind is float and not math.isfinite(value):
    raise InputError(f'--{field.name}={value}: expected a finite number')


def _is_utf8(text: str) -> bool:
  try:
    text.encode('utf-8')
  except UnicodeEncodeError:
    return False
  return True


def section_from_json(kind: type, value: Any) -> Any:
  """Returns kind(**value), where 1 counts as 1.0 in a field of floats.

  Raises:
    InputError: naming an unknown field, or if the value is no JSON object.
  """
  if not isinstance(value, Mapping):
    raise InputError(f'a section of the configuration must be a JSON object, found {shown(value)}')
  fields = {field.name: field for field in dataclasses.fields(kind)}
  known = list(fields)
  unknown = sorted(set(value) - set(known))
  if unknown:
    raise InputError(f'unknown field {unknown[0]!r} in the configuration; known: {", ".join(known)}')
  # 1 and 1.0 are the same learning rate; they shall be the same configuration, with one digest.
  try:
    plain = {
      name: float(v) if plain_type(fields[name])[0] is float and type(v) is int else v
      for name, v in value.items()
    }
  except OverflowError as error:
    raise InputError(f'a number of the configuration is too large: {error}') from error
  return kind(**plain)
