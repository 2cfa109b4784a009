"""Shows what a replay of clustering questions gave: a short table, as JSON too, all rows as CSV, and a picture."""

import operator
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base.grouping import by_key
from tff_cluster.base.words import percent, plural, score
from tff_cluster.clustering.recovery import SCORES
from tff_cluster.clustering.sketch import Distortion
from tff_cluster.report.figures import base
from tff_cluster.storage import files, output_files
from tff_cluster.storage.files import write_file
from tff_cluster.storage.tables import csv_text
from tff_cluster.studies.replay import figures
from tff_cluster.studies.replay.replayed import Best, Family, Replayed, Row, Summary, Truth

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_COLUMNS = (
    'method', 'metric', 'linkage', 'threshold', 'num_clusters', 'clusters', 'largest_cluster', 'memberships',
    'silhouette',
)  # fmt: skip


def write_replay(replayed: Replayed, command: str, folder: pathlib.Path) -> list[pathlib.Path]:
  """Writes replay.csv, replay.json and, where a method with thresholds was asked, replay.svg and replay.png; returns their paths.

  Those of an earlier call make way.

  Args:
    replayed: What was found.
    command: What asked.
    folder: Where to.

  Raises:
    InputError: where files of these names are there, and no replay wrote them.
    EnvironmentFault: where a file cannot be written.
  """
  scores = [(name, truth.name) for truth in replayed.truths for name in SCORES]
  header = [*_COLUMNS, *(f'{name}_{truth}' for name, truth in scores), 'clustering', 'notes']
  lines = [
    [
      *(getattr(row, column) for column in _COLUMNS),
      # A method that gave up has no scores.
      *(getattr(row.recovery[truth], name, None) for name, truth in scores),
      row.clustering,
      ' '.join(row.notes),
    ]
    for row in replayed.rows
  ]
  begins = ','.join(_COLUMNS).encode()
  names = ['replay.csv', 'replay.json', 'replay.svg', 'replay.png']
  output_files.check(folder, names, lambda there: there.startswith(begins))
  contents: dict[str, bytes | str] = {'csv': csv_text(header, lines)}
  if any(row.threshold is not None for row in replayed.rows):
    contents['svg'], contents['png'] = base.render(replay_figure(replayed))
  paths = []
  for ending, content in contents.items():
    paths.append(folder / f'replay.{ending}')
    write_file(paths[-1], content)
  paths.insert(1, folder / 'replay.json')
  files.save_json(paths[1], Summary(command, replayed.clients, best(replayed)), seal=False)
  return paths


def best(replayed: Replayed) -> list[Best]:
  """Returns the best answer of each family for each kind of planted groups; without any that with the highest silhouette."""
  truths: Sequence[Truth | None] = replayed.truths or (None,)
  return [
    _best(truth, family, rows)
    for truth in truths
    for family, rows in by_key(replayed.rows, lambda row: row.family).items()
  ]


def _best(truth: Truth | None, family: Family, rows: Sequence[Row]) -> Best:
  scores = [row.silhouette if truth is None else row.omega(truth.name) for row in rows]
  known = [(value, row) for value, row in zip(scores, rows, strict=True) if value is not None]
  value, there = max(known, key=operator.itemgetter(0), default=(None, None))
  low, high = (truth.exact.get(family) if truth else None) or (None, None)
  return Best(
    truth=truth.name if truth else '',
    family=' '.join(filter(None, family)),
    exact=_exact_words(truth, family, rows) if truth else '',
    low=low,
    high=high,
    score=value,
    threshold=None if there is None else there.threshold,
    num_clusters=None if there is None else there.num_clusters,
    clusters=None if there is None else there.clusters,
    memberships=None if there is None else there.memberships,
  )


def replay_figure(replayed: Replayed) -> 'Figure':
  """Returns the agreement with each truth against the threshold; without a truth, the number of clusters."""
  truths, clients = replayed.truths, plural(replayed.clients, 'client')
  if not truths:
    counts = _curves(replayed, operator.attrgetter('clusters'))
    counted = figures.Sweep(counts, {}, 'number of clusters', False)
    return figures.threshold_sweep([counted], f'Clusters of {clients}')
  measure, names = 'ARI (Omega where clusters overlap)', [base.short(truth.name, 30) for truth in truths]
  sweeps = []
  for truth, name in zip(truths, names, strict=True):
    exact = {family: found for family, found in truth.exact.items() if found is not None}
    curves = _curves(replayed, operator.methodcaller('omega', truth.name))
    sweeps.append(figures.Sweep(curves, exact, measure if len(truths) == 1 else f'{name}\n{measure}', True))
  which = f' ({names[0]})' if len(truths) == 1 else ''
  title = f'Planted groups{which} found again at each threshold, {clients}'
  if any(drawn.exact for drawn in sweeps):
    title += '; bars: found exactly'
  return figures.threshold_sweep(sweeps, title)


def _curves(
  replayed: Replayed, value: Callable[[Row], float | None]
) -> dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]:
  """Returns thresholds and values of each family, by metric and by linkage or method."""
  curves: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
  for (first, linkage), rows in by_key(replayed.rows, lambda row: row.family).items():
    used = [(row.threshold, value(row)) for row in rows if row.threshold is not None]
    if not used:
      continue
    used.sort(key=operator.itemgetter(0))
    metric, name = (first, linkage) if linkage else ('l2', first)
    thresholds, values = np.array(used, np.float64).T
    curves.setdefault(metric, {})[name] = thresholds, values
  return curves


def replay_table(replayed: Replayed) -> str:
  """Returns, for a terminal, which thresholds give the planted groups exactly, and the best row of each family.

  Without planted groups the best row is the one with the highest silhouette.
  """
  truths: Sequence[Truth | None] = replayed.truths or (None,)
  return '\n'.join(line for truth in truths for line in _table_lines(replayed, truth))


def distortion_line(dimension: int, distortion: Distortion) -> str:
  """Returns how far sketches of this dimension are off, over the pairs that were looked at."""
  return (
    f'sketches of {plural(dimension, "number")}: Euclidean distances are off by {percent(distortion.mean)} on average, '
    f'{percent(distortion.percentile_95)} for 95% of {plural(distortion.pairs, "pair")}, '
    f'{percent(distortion.maximum)} at most'
  )


def _table_lines(replayed: Replayed, truth: Truth | None) -> list[str]:
  clients = plural(replayed.clients, 'client')
  if truth is None:
    title, header = f'{clients}, no planted groups known', ['family', 'best silhouette', 'its setting']
  else:
    title = f'{truth.name}: {plural(truth.groups, "planted group")}, {clients}'
    header = [
      'family',
      'finds the groups for',
      'best Omega' if truth.overlapping else 'best ARI',
      'its setting',
    ]
  cells = [header]
  for found in (
    _best(truth, family, rows) for family, rows in by_key(replayed.rows, lambda row: row.family).items()
  ):
    told = [] if truth is None else [found.exact]
    cells.append([found.family, *told, score(found.score), '–' if found.score is None else _where(found)])
  widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
  return [
    title,
    *('  '.join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in cells),
  ]


def _exact_words(truth: Truth, family: Family, rows: Sequence[Row]) -> str:
  if family in truth.exact:
    found = truth.exact[family]
    if found is None:
      return 'no threshold'
    low, high = found
    return f'T >= {low:.6g}' if high is None else f'{low:.6g} <= T < {high:.6g}'
  exact = [row for row in rows if row.omega(truth.name) == 1.0]
  return ', '.join(map(_asked, exact)) or 'no setting tried'


def _asked(row: Row | Best) -> str:
  return f'K = {row.num_clusters}' if row.threshold is None else f'T = {row.threshold:.6g}'


def _where(row: Best) -> str:
  assert row.clusters is not None  # It has a score.
  told = f'{_asked(row)}: {plural(row.clusters, "cluster")}'
  return told if row.memberships == 1.0 else f'{told}, {row.memberships:.1f} memberships a client'
