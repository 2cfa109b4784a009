"""What files of reports are called, and those that hold a scorecard."""

import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tff_cluster.scorecard import headline
from tff_cluster.storage.files import write_file, write_json
from tff_cluster.storage.tables import csv_text


def write_records(records: Sequence[Mapping[str, Any]], folder: pathlib.Path) -> None:
  """Writes the records of headline.records into FOLDER/scorecard.json and scorecard.csv.

  Raises:
    EnvironmentFault: where a file cannot be written.
  """
  write_json(folder / 'scorecard.json', records)
  write_file(folder / 'scorecard.csv', csv_text(headline.FIELDS, (record.values() for record in records)))


def file_names(labels: Sequence[str]) -> list[str]:
  """Returns a file name without ending for each label, all different.

  No label becomes a name with a full stop: what a caller adds after one makes it the name of no other label.
  """
  plain = [re.sub(r'[^A-Za-z0-9_-]', '_', label)[:60] or '_' for label in labels]
  return [name if plain.count(name) == 1 else f'{name}.{i}' for i, name in enumerate(plain)]
