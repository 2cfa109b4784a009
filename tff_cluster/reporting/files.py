"""Files that are whole or not there: written beside their name, then moved over it."""

import csv
import io
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tff_cluster.errors import EnvironmentFault


def write_atomically(path: Path, content: bytes | str) -> None:
  """Writes a file so that a reader sees the old one or the new one, never a part.

  Raises:
    EnvironmentFault: where the file cannot be written (full disk, no permission), naming it.
  """
  data = content.encode() if isinstance(content, str) else content
  temporary = None
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name[:40]}.')
    with os.fdopen(handle, 'wb') as stream:
      stream.write(data)
      stream.flush()
      os.fsync(stream.fileno())
    os.chmod(temporary, 0o666 & ~_umask())
    os.replace(temporary, path)
    temporary = None
  except OSError as error:
    raise EnvironmentFault(f'cannot write {path}: {error.strerror or error}') from error
  finally:
    if temporary is not None and os.path.exists(temporary):
      os.unlink(temporary)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
  """Returns CSV text (RFC 4180, None is an empty field)."""
  stream = io.StringIO()
  writer = csv.writer(stream)
  writer.writerow(header)
  writer.writerows(['' if value is None else value for value in row] for row in rows)
  return stream.getvalue()


def _umask() -> int:
  mask = os.umask(0)
  os.umask(mask)
  return mask
