"""Shows a partition before anyone trains: a table, its CSV rows, and the label histogram of each client."""

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base.words import client, percent, plural
from tff_cluster.data.population import Population
from tff_cluster.report.figures import base, heatmaps, ordering
from tff_cluster.storage import output_files
from tff_cluster.storage.files import write_file
from tff_cluster.storage.tables import csv_text

if TYPE_CHECKING:
  from matplotlib.figure import Figure

HEADER = ('client', 'group', 'train rows', 'validation rows', 'test rows', 'classes', 'largest label share')
_PRINT_ALL_UP_TO, _PRINT_FIRST = 40, 20


def partition_rows(population: Population) -> list[tuple[str, str, int, int, int, int, float]]:
  """Returns one row a client, columns HEADER.

  The group is the client's place in the main truth: '2', with overlap '0+3', of a mixture
  '0 (70%) + 3 (30%)', and '' where nothing was planted. Classes and the largest label share (from 0 to
  1) are counted over the training rows.
  """
  counts = population.train.label_counts(population.num_classes)
  groups = group_names(next(iter(population.truths.values()), None), population.num_clients)
  return [
      (
          client_id, groups[k], int(population.train.counts[k]), int(population.validation.counts[k]),
          int(population.test.counts[k]), int((counts[k] > 0).sum()), float(counts[k].max() / counts[k].sum()),
      )
      for k, client_id in enumerate(population.client_ids)
  ]  # fmt: skip


def partition_table(population: Population) -> str:
  """Returns a partition as text for a terminal: all clients up to 40, else the first 20, and a summary."""
  rows = partition_rows(population)
  shown = rows if len(rows) <= _PRINT_ALL_UP_TO else rows[:_PRINT_FIRST]
  lines = [
    _printable(population.name),
    *_aligned(HEADER, [(client(row[0]), *row[1:-1], percent(row[-1])) for row in shown]),
  ]
  if len(shown) < len(rows):
    lines.append(f'... and {len(rows) - len(shown):,} more clients')
  train, kinds = population.train.counts, len({row[1] for row in rows} - {''})
  lines.append(
      f'{plural(len(rows), "client")}, {train.sum():,} train, {population.validation.counts.sum():,} validation and '
      f'{population.test.counts.sum():,} test rows, {train.min():,} to {train.max():,} train rows a client; global test '
      f'set {len(population.global_test_y):,} rows; {plural(kinds, "kind")} of client planted'
  )  # fmt: skip
  return '\n'.join(lines)


def write_partition(population: Population, folder: pathlib.Path) -> list[pathlib.Path]:
  """Writes partition.csv, partition.svg and partition.png into the folder and returns their paths.

  Those of an earlier call make way.

  Raises:
    InputError: where files of these names are there, and this program wrote none of them.
    EnvironmentFault: where a file cannot be written.
  """
  svg, png = base.render(partition_figure(population))
  contents: dict[str, bytes | str] = {
    'csv': csv_text(HEADER, partition_rows(population)),
    'svg': svg,
    'png': png,
  }
  written = {f'partition.{ending}': content for ending, content in contents.items()}
  output_files.check(folder, list(written), lambda there: there.startswith(','.join(HEADER).encode()))
  for name, content in written.items():
    write_file(folder / name, content)
  return [folder / name for name in written]


def partition_figure(population: Population) -> 'Figure':
  """Returns the label histogram of each client's training rows, clients of a planted group side by side."""
  truth = next(iter(population.truths.values()), None)
  return heatmaps.label_histogram(
      population.train.label_counts(population.num_classes), population.client_ids,
      f'Labels of each client: {_printable(population.name)}', 'client',
      order=None if truth is None else ordering.client_order(truth),
  )  # fmt: skip


def group_names(truth: np.ndarray | None, num_clients: int) -> list[str]:
  """Returns each client's planted group or groups in words ('' where nothing was planted).

  Args:
    truth: float[groups, clients], or None.
    num_clients: Number of clients.
  """
  if truth is None:
    return [''] * num_clients
  names = []
  for column in np.asarray(truth, np.float64).T:
    members = np.flatnonzero(column > 0)
    if np.allclose(column[members], 1.0):
      names.append('+'.join(str(g) for g in members))
    else:
      members = members[np.argsort(-column[members], kind='stable')]
      names.append(' + '.join(f'{g} ({percent(float(column[g]), 0)})' for g in members))
  return names


def _printable(text: str) -> str:
  return ''.join(c if c.isprintable() else '?' for c in text)


def _aligned(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
  cells = [list(header), *[[_printable(str(value)) for value in row] for row in rows]]
  widths = [max(len(line[i]) for line in cells) for i in range(len(header))]
  return [
    '  '.join(
      text.ljust(width) if i < 2 else text.rjust(width)
      for i, (text, width) in enumerate(zip(line, widths, strict=True))
    ).rstrip()
    for line in cells
  ]
