"""Fields that carry their own rules: what is allowed, where they apply, and what help says of them.

A section is a frozen dataclass whose fields are made by `option`. The command line makes flags of them, and
`check_fields` holds values to them, so that each rule is written once.
"""

import dataclasses
import math
import numbers
import operator
import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from tff_cluster.base.errors import InputError, argument, shown

_Section = TypeVar('_Section')
# Flags take 18 digits at most; so do files.
_BELOW = 10**18
_BOOLEANS = {'true': True, 'false': False}
_ABSTRACT: dict[type, type] = {int: numbers.Integral, float: numbers.Real, str: str}
_KINDS = {bool: 'true or false', int: 'int', float: 'float', str: 'text'}
# Bounds of a number: how a message calls them, and what a value within is to its bound.
BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
  'at_least': ('at least', operator.ge),
  'above': ('above', operator.gt),
  'at_most': ('at most', operator.le),
}
# A decimal number as text.
NUMBER = re.compile(r'[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?')


@dataclasses.dataclass(frozen=True)
class Section:
  """What sections of an experiment have in common: numbers are what their fields declare, so that equal sections have one digest."""

  def __post_init__(self):
    for field in dataclasses.fields(self):
      object.__setattr__(self, field.name, as_declared(field, getattr(self, field.name)))

  def check(self) -> None:
    """Checks each field against its declaration; raises as `check_fields`."""
    check_fields(self)


def option(default: Any, help: str, **metadata: Any) -> Any:
  """Declares a field.

  Args:
    default: Its default; None means "not given".
    help: One sentence for the help of programs.
    **metadata: `choices`, the allowed values; `at_least`, `above`, `at_most`, bounds of a number;
      `applies`, a pair (field, values) such as ('partition', ('dirichlet',)): elsewhere the field must
      keep its default; `group`, the heading in that help where it is not the class's own; `of_runs`, true for an option of a
      clustering that vectors without an experiment around them have no use for; `is_path`, true for a path whose name does not end with
      _dir or _file, as theirs do, so that ~ is expanded; `stands_for`, what the section puts in the place of its default.
  """
  return dataclasses.field(default=default, metadata={'help': help, **metadata})


def number(text: str) -> float:
  """Reads a decimal number, such as 12, 0.1 or 1e-3.

  Python's float also takes digits of other scripts, _ between digits and blanks around them, which may be slips, and
  `nan` and `inf`.

  Raises:
    ValueError: if the text is none, or is too large.
  """
  value = float(text) if NUMBER.fullmatch(text) else math.nan
  if not math.isfinite(value):
    raise ValueError('expected a number, such as 12, 0.1 or 1e-3')
  return value


def check_fields(section: Any) -> None:
  """Checks a section's fields against their declarations.

  Raises:
    InputError: naming the first field that is out of range or does not apply, its value and what is allowed.
  """
  for field in dataclasses.fields(section):
    value = getattr(section, field.name)
    _check_type(field, value)
    if 'applies' in field.metadata and value != field.default:
      check_applies(section, field)
    check_value(field, value)


def make_section(kind: type[_Section], values: Mapping[str, Any]) -> _Section:
  """Returns kind(**values), checked, where every value counts as given, even if it is the default.

  Raises:
    InputError: as check_fields; also where a given value is the default of a field that does not apply.
  """
  section = kind(**values)
  fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
  for name in values:
    if 'applies' in fields[name].metadata:
      chooser = fields[name].metadata['applies'][0]
      if getattr(section, chooser) not in fields[chooser].metadata['choices']:
        # The wrong choice is the cause; that something does not apply to it would mislead.
        check_fields(kind(**{chooser: getattr(section, chooser)}))
      check_applies(section, fields[name])
  check_fields(section)
  return section


def check_value(field: dataclasses.Field, value: Any) -> None:
  """Raises InputError where a value is not one that its field declares."""
  _check_type(field, value)
  rule = field.metadata
  if value is None:
    return
  if 'choices' in rule and value != field.default and not is_among(value, rule['choices']):
    raise InputError(f'{argument(field.name, value)}: allowed are {", ".join(map(str, rule["choices"]))}')
  for bound, (words, fits) in BOUNDS.items():
    if bound in rule and not fits(value, rule[bound]):
      raise InputError(f'{argument(field.name, value)}: must be {words} {rule[bound]}')


def applies(field: dataclasses.Field, chosen: Callable[[str], Any]) -> bool:
  """Tells whether a field applies, given what `chosen` returns for the name of the field that decides it."""
  chooser, values = field.metadata.get('applies', ('', ()))
  return not chooser or is_among(chosen(chooser), values)


def check_applies(section: Any, field: dataclasses.Field) -> None:
  """Raises InputError where the field does not apply to what the section chose."""
  if not applies(field, lambda name: getattr(section, name)):
    chooser, values = field.metadata['applies']
    chosen = getattr(section, chooser)
    raise InputError(
      f'{argument(field.name)} does not apply to {argument(chooser, chosen)}; it applies to {chooser} {" or ".join(values)}'
    )


def is_among(value: Any, choices: Collection[Any]) -> bool:
  """Tells whether a value is one of the choices; one that ends in ':NAME' stands for all texts that begin so."""
  if value in choices:
    return True
  families = [each.removesuffix('NAME') for each in choices if str(each).endswith(':NAME')]
  return any(isinstance(value, str) and value.startswith(family) and value != family for family in families)


def to_json(section: Any) -> dict[str, Any]:
  """Returns the fields of a section by name, those that take several texts as lists."""
  values = {field.name: getattr(section, field.name) for field in dataclasses.fields(section)}
  return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def is_default(field: dataclasses.Field, value: Any) -> bool:
  """Tells whether a value is a field's default, or what that stands for, of the same type too: 1 is not True. A list is JSON's tuple."""
  value = tuple(value) if isinstance(value, list) else value
  default = field.metadata.get('stands_for', field.default)
  return type(value) is type(default) and bool(value == default)


def as_declared(field: dataclasses.Field, value: Any) -> Any:
  """Returns the value as its field's plain type, where it is a number or text that has one: 1, 1.0 and NumPy's are one learning rate.

  Raises:
    InputError: if an integer is too large for a float.
  """
  kind = plain_type(field)[0]
  if (
    kind not in _ABSTRACT
    or type(value) is kind
    or isinstance(value, bool)
    or not isinstance(value, _ABSTRACT[kind])
  ):
    return value
  try:
    return kind(value)
  except OverflowError as error:
    raise InputError(f'a number of the configuration is too large: {error}') from error


def value_from_text(field: dataclasses.Field, text: str) -> bool | int | float | str:
  """Reads a value as the field's type; choices and bounds are check_fields' to look at.

  Raises:
    ValueError: saying what was expected.
  """
  kind, _ = plain_type(field)
  if kind is int:
    if not re.fullmatch(r'[+-]?[0-9]{1,18}', text):
      raise ValueError('expected an integer, of at most 18 digits from 0 to 9')
    return int(text)
  if kind is float:
    return number(text)
  if kind is bool:
    if text.lower() not in _BOOLEANS:
      raise ValueError(f'expected {_KINDS[bool]}')
    return _BOOLEANS[text.lower()]
  if not text:
    raise ValueError('the value is empty')
  if text.startswith('--'):
    # absl takes the next word as the value of a flag without one.
    raise ValueError('that is another flag; the value is missing')
  if '\0' in text:
    raise ValueError('the value holds a NUL character')
  is_path = field.metadata.get('is_path') or field.name.endswith(('_dir', '_file'))
  return os.path.expanduser(text) if is_path else text


def as_text(value: Any) -> str:
  """Returns the text that `value_from_text` reads as the value."""
  return str(value).lower() if isinstance(value, bool) else str(value)


def takes_several(field: dataclasses.Field) -> bool:
  """Tells whether a field is of type tuple[str, ...]: a flag that may be repeated."""
  return field.type == tuple[str, ...]


def plain_type(field: dataclasses.Field) -> tuple[type, bool]:
  """Returns bool, int, float or str, and whether None is allowed beside it."""
  if takes_several(field):
    return str, False
  kinds = set(getattr(field.type, '__args__', (field.type,)))
  return next(kind for kind in kinds if kind is not type(None)), type(None) in kinds  # type: ignore[return-value]


def _check_type(field: dataclasses.Field, value: Any) -> None:
  several = takes_several(field)
  if several and not isinstance(value, tuple):
    raise InputError(f'{argument(field.name, shown(value))}: expected a list of texts')
  for each in value if several else (value,):
    _check_plain_type(field, each)


def _check_plain_type(field: dataclasses.Field, value: Any) -> None:
  kind, optional = plain_type(field)
  if (value is None and optional) or (kind is bool and isinstance(value, bool)):
    return
  if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
    raise InputError(f'{argument(field.name, shown(value))}: expected {_KINDS[kind]}')
  if kind is int and not -_BELOW < value < _BELOW:
    raise InputError(f'{argument(field.name, shown(value))}: expected an integer of at most 18 digits')
  if kind is str and '\0' in value:
    raise InputError(f'{argument(field.name, value)}: the value holds a NUL character')
  if kind is str and 'choices' not in field.metadata and not _is_utf8(value):
    # Such a name of a file cannot be told to TensorFlow, nor written into a report.
    raise InputError(f'{argument(field.name, value)}: the value is not UTF-8 text')
  if kind is float and not math.isfinite(value):
    raise InputError(f'{argument(field.name, value)}: expected a finite number')


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
  return kind(**{name: as_declared(fields[name], v) for name, v in value.items()})
