"""Files of a report: whole or not there."""

import csv
import io
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

from tff_cluster import store


def write_file(path: pathlib.Path, content: bytes | str) -> None:
  """Writes a file so that a reader sees the old one or the new one, never a part.

  Raises:
    EnvironmentFault: where the file cannot be written (full disk, no permission), naming it.
  """
  with store.replacing(path) as stream:
    stream.write(content.encode() if isinstance(content, str) else content)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
  """Returns CSV text (RFC 4180, None is an empty field)."""
  stream = io.StringIO()
  writer = csv.writer(stream)
  writer.writerow(header)
  writer.writerows(['' if value is None else value for value in row] for row in rows)
  return stream.getvalue()
