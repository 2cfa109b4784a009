"""Tables and cells as pages of results show them, in Markdown."""

import re
from collections.abc import Iterable, Mapping, Sequence

from tff_cluster.base.errors import InputError
from tff_cluster.base.words import interval_decimals, score, signed

# Units of differences.
_SIGNED = {'points'}
_NUMBER = re.compile(r'[+-]?[0-9]+(\.[0-9]+)?')


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
  """Returns a Markdown table."""
  rows = [header, ['---'] * len(header), *lines]
  return '\n'.join(f'| {" | ".join(cell.replace("|", "/") for cell in row)} |' for row in rows)


def pivot(place: str, first: str, cells: Sequence[tuple[str, str, str]]) -> str:
  """Returns a Markdown table of cells: row, column and text of each; raises InputError where two are in one place."""
  header = list(dict.fromkeys(column for _, column, _ in cells))
  lines: dict[str, dict[str, str]] = {}
  for row, column, text in cells:
    told = lines.setdefault(row, {})
    if column in told:
      raise InputError(f'{place}: several lines of {row!r} and {column!r}')
    told[column] = text
  rows = [[row, *(told.get(column, '–') for column in header)] for row, told in lines.items()]
  return table([first, *header], rows)


def cell(text: str, unit: str, places: int | None = None) -> str:
  """Returns a cell as pages show it: with at most two decimals, its unit behind it, and a dash for nothing; powers of ten as they are kept.

  Args:
    text: What is kept.
    unit: Of the column.
    places: The most decimals of its column; default: its own.
  """
  try:
    value = float(text)
  except ValueError:
    return text or '–'
  if 'e' in text:
    return text
  places = decimals(text) if places is None else places
  if unit in _SIGNED:
    return signed(value, min(places, 2) or 1)
  if unit == '%':
    return f'{value:.{1 if places > 2 else places or 1}f}%'
  if 0 < abs(value) < 0.005 and places > 2:
    return f'{value:.3f}'
  if places <= 2:
    return text
  # Scores, such as an adjusted Rand index, are between 0 and 1.
  return score(value) if abs(value) <= 1 else f'{value:.1f}'


def decimals(text: str) -> int:
  """Returns how many decimals a number has as it is kept; 0 for other text."""
  return len(text.partition('.')[2]) if _NUMBER.fullmatch(text) else 0


def interval(line: Mapping[str, str]) -> str:
  """Returns the difference of a line with its ends, low and high, where there are any; a dash where there is no difference.

  An interval that excludes zero does so in print.
  """
  if not line['difference']:
    return '–'
  if not line['low']:
    return signed(float(line['difference']))
  low, high = float(line['low']), float(line['high'])
  mean, low_words, high_words = (
    signed(value, interval_decimals(low, high)) for value in (float(line['difference']), low, high)
  )
  return f'{mean} [{low_words}, {high_words}]'
