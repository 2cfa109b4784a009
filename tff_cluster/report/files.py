"""Files of a report: whole or not there."""

import csv
import io
import json
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tff_cluster.storage import files

# What a spreadsheet takes for a formula, unless it is a number.
_FORMULA = re.compile(r'[=+\-@\t\r\n]')
_NUMBER = re.compile(r'[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?')


def write_file(path: pathlib.Path, content: bytes | str) -> None:
  """Writes a file so that a reader sees the old one or the new one, never a part.

  Raises:
    EnvironmentFault: where the file cannot be written (full disk, no permission), naming it.
  """
  with files.replacing(path) as stream:
    stream.write(content.encode() if isinstance(content, str) else content)


def write_json(path: pathlib.Path, document: Mapping[str, Any]) -> None:
  """Writes a JSON document that people read, too; raises as `write_file`, and ValueError where it holds NaN or an infinity."""
  write_file(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + '\n')


def write_records(records: Sequence[Mapping[str, Any]], header: Sequence[str], folder: pathlib.Path) -> None:
  """Writes records into FOLDER/scorecard.json and scorecard.csv.

  Raises:
    EnvironmentFault: where a file cannot be written.
  """
  write_file(folder / 'scorecard.json', json.dumps(records, indent=2, ensure_ascii=False) + '\n')
  write_file(folder / 'scorecard.csv', csv_text(header, ([r[name] for name in header] for r in records)))


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
  """Returns CSV text (RFC 4180, None is an empty field), in which no text is a formula for a spreadsheet.

  Names that come with data can be anything. Text that a spreadsheet would compute gets a quote before it, which makes it
  text there; numbers, also as text, stay as they are.
  """
  stream = io.StringIO()
  writer = csv.writer(stream)
  writer.writerows([_cell(value) for value in row] for row in (header, *rows))
  return stream.getvalue()


def plain_text(field: str) -> str:
  """Returns the text of a field of csv_text without the quote that it puts before what a spreadsheet would compute."""
  return field[1:] if field.startswith("'") and _FORMULA.match(field[1:]) else field


def file_names(labels: Sequence[str]) -> list[str]:
  """Returns a file name without ending for each label, all different.

  No label becomes a name with a full stop: what a caller adds after one makes it the name of no other label.
  """
  plain = [re.sub(r'[^A-Za-z0-9_-]', '_', label)[:60] or '_' for label in labels]
  return [name if plain.count(name) == 1 else f'{name}.{i}' for i, name in enumerate(plain)]


def _cell(value: Any) -> Any:
  if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
    return f"'{value}"
  return '' if value is None else value
