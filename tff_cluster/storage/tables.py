"""Small tables in CSV files: written, and read as text."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tff_cluster.base import fields
from tff_cluster.base.errors import InputError
from tff_cluster.storage import small_file

# What a spreadsheet takes for a formula, unless it is a number.
_FORMULA = re.compile(r'[=+\-@\t\r\n]')


def read(path: Path) -> tuple[Sequence[str], list[dict[str, str]]]:
  """Returns the header of a CSV file (RFC 4180) and its lines by column.

  Raises:
    FileNotFoundError: if it is not there.
    InputError: if it is no UTF-8 text, has no header, or a line has more or fewer cells than it.
  """
  try:
    header, *lines = list(csv.reader(io.StringIO(_decoded(path)))) or [[]]
  except csv.Error as error:
    raise InputError(f'{path} is no CSV file: {error}') from error
  if not header:
    raise InputError(f'{path} is empty; expected a header')
  for number, line in enumerate(lines, 2):
    if len(line) != len(header):
      raise InputError(f'{path}, line {number}: {len(line)} cells under {len(header)} columns')
  return header, [dict(zip(header, line, strict=True)) for line in lines]


def text(path: Path) -> str:
  """Returns what a small text file holds; empty where it is not there. Raises InputError if it is no UTF-8 text."""
  try:
    return _decoded(path)
  except FileNotFoundError:
    return ''


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
  """Returns CSV text (RFC 4180, None is an empty field), in which no text is a formula for a spreadsheet.

  Names that come with data can be anything. Text that a spreadsheet would compute gets a quote before it, which makes it
  text there; numbers, also as text, stay as they are.
  """
  stream = io.StringIO()
  writer = csv.writer(stream)
  writer.writerows([_cell(value) for value in row] for row in (header, *rows))
  return stream.getvalue()


def csv_lines(lines: Sequence[Mapping[str, Any]]) -> str:
  """Returns csv_text of lines by column; the columns are those that any line has."""
  names = dict.fromkeys(name for line in lines for name in line)
  return csv_text(names, ([line.get(name) for name in names] for line in lines))


def plain_text(field: str) -> str:
  """Returns the text of a field of csv_text without the quote that it puts before what a spreadsheet would compute."""
  return field[1:] if field.startswith("'") and _FORMULA.match(field[1:]) else field


def _decoded(path: Path) -> str:
  try:
    return small_file.read(path).decode()
  except UnicodeDecodeError as error:
    raise InputError(f'{path} is no UTF-8 text') from error


def _cell(value: Any) -> Any:
  if isinstance(value, str) and _FORMULA.match(value) and not fields.NUMBER.fullmatch(value):
    return f"'{value}"
  return '' if value is None else value
