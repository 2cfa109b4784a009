"""Writes docs/reference/results_json.md: what results.json holds, from the records that read and write it. Imports no TensorFlow."""

import dataclasses
import inspect
import pathlib
import re
import types
import typing
from collections.abc import Iterator
from typing import Any

from tff_cluster.base import records
from tff_cluster.experiment import results

PAGE = pathlib.Path(__file__).parents[1] / 'reference/results_json.md'
_INTRODUCTION = """# results.json

`results.json` holds the record `Results`, and every record in it is a JSON object whose keys are below. A key that is marked with a
circle (○) is left out where there is nothing to tell. `tff_cluster.experiment.results.read(path)` gives the same as Python objects. This page is written
by `make docs` from the classes that read and write the file (`docs/programs/results_json_page.py`).

"""


def page() -> str:
  """Returns the page: a table of keys for each record that results.json can hold, in the order in which they are met."""
  arrays = (results.__doc__ or '').split('\n\n', 2)[2].strip()
  parts = [_INTRODUCTION, f'The schema is number {results.SCHEMA}.\n\n']
  for kind in _records():
    parts += [f'## {kind.__name__}\n\n{_summary(kind)}\n\n', *_table(kind), '\n']
  return ''.join([*parts, f'## arrays.npz\n\n{escaped(arrays)}\n'])


def _records() -> list[type[records.Record]]:
  found: list[type[records.Record]] = []
  waiting: list[type[records.Record]] = [results.Results]
  while waiting:
    kind = waiting.pop(0)
    if kind not in found:
      found.append(kind)
      hints = typing.get_type_hints(kind)
      waiting += [each for hint in hints.values() for each in _inside(hint)]
  return found


def _inside(hint: Any) -> Iterator[type[records.Record]]:
  """Yields the records in a type."""
  if isinstance(hint, type) and issubclass(hint, records.Record):
    yield hint
  for each in typing.get_args(hint):
    yield from _inside(each)


def _table(kind: type) -> Iterator[str]:
  yield '| key | type | meaning |\n| --- | --- | --- |\n'
  hints, told = typing.get_type_hints(kind), meanings(kind)
  for field in dataclasses.fields(kind):
    key = field.metadata.get('key') or field.name
    mark = ' ○' if field.metadata.get('omitted') else ''
    yield f'| `{key}`{mark} | {_words(hints[field.name])} | {escaped(told.get(field.name, ""))} |\n'


def _words(hint: Any) -> str:
  """Returns a type in words, records as links."""
  inside = typing.get_args(hint)
  origin = typing.get_origin(hint)
  if origin in (typing.Union, types.UnionType):
    return ' or '.join(dict.fromkeys(_words(each) for each in inside)) if len(inside) < 5 else 'any JSON'
  if origin in (list, tuple):
    return f'list of {_words(inside[0])}'
  if origin is dict:
    return f'object of {_words(inside[1])}'
  if isinstance(hint, type) and issubclass(hint, records.Record):
    return f'[{hint.__name__}](#{hint.__name__.lower()})'
  if dataclasses.is_dataclass(hint):
    return '`config.json`'
  names = {str: 'text', int: 'integer', float: 'number', bool: 'true or false', type(None): 'null'}
  return names.get(hint, 'any JSON')


def _summary(kind: type) -> str:
  """Returns the first paragraph of a docstring."""
  return escaped(' '.join((inspect.getdoc(kind) or '').partition('\n\n')[0].split()))


def meanings(kind: type) -> dict[str, str]:
  """Returns what docstrings say of the fields, those of the classes that it derives from too."""
  found: dict[str, str] = {}
  for each in reversed(kind.__mro__):
    _, _, listed = inspect.cleandoc(each.__doc__ or '').partition('Attributes:\n')
    for names, words in re.findall(r'^  (\w+(?:, \w+)*): (.*(?:\n    .*)*)', listed, re.M):
      found |= dict.fromkeys(names.split(', '), ' '.join(words.split()))
  return found


def escaped(words: str) -> str:
  """Returns words in which Markdown sees nothing but words, and code between backticks."""
  for sign in ('\\', '|', '*', '_', '[', '<'):
    words = words.replace(sign, f'\\{sign}')
  return re.sub(r'`([^`]*)`', lambda code: code[0].replace('\\', ''), words)
