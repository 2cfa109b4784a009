"""Small tables in CSV files, read as text."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from tff_cluster.base.errors import InputError
from tff_cluster.storage import small_file


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


def _decoded(path: Path) -> str:
  try:
    return small_file.read(path).decode()
  except UnicodeDecodeError as error:
    raise InputError(f'{path} is no UTF-8 text') from error
