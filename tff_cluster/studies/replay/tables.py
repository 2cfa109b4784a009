"""Shows what a replay of clustering questions gave: a short table, all rows as CSV, and a picture."""

import operator
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base.words import percent, plural, score
from tff_cluster.report.figures import base
from tff_cluster.report.files import csv_text, write_file
from tff_cluster.studies.replay import figures

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_COLUMNS = (
    'method', 'metric', 'linkage', 'threshold', 'num_clusters', 'clusters', 'largest_cluster', 'memberships',
    'silhouette',
)  # fmt: skip
_SCORES = ('ari', 'nmi', 'omega', 'onmi', 'bcubed_precision', 'bcubed_recall', 'bcubed_f')


def write_replay(replayed: Mapping[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
  """Writes replay.csv and, where a method with thresholds was asked, replay.svg and replay.png.

  Args:
    replayed: As studies.replay.study.replay returns it.
    folder: Where to.

  Returns:
    The paths.

  Raises:
    EnvironmentFault: where a file cannot be written.
  """
  truths = [truth['name'] for truth in replayed['truths']]
  header = [*_COLUMNS, *(f'{name}_{truth}' for truth in truths for name in _SCORES), 'clustering', 'notes']
  lines = [
    [
      *(row[column] for column in _COLUMNS),
      *(row['recovery'][truth][name] for truth in truths for name in _SCORES),
      row['clustering'],
      ' '.join(row['notes']),
    ]
    for row in replayed['rows']
  ]
  contents: dict[str, bytes | str] = {'csv': csv_text(header, lines)}
  if any(row['threshold'] is not None for row in replayed['rows']):
    contents['svg'], contents['png'] = base.render(replay_figure(replayed))
  paths = []
  for ending, content in contents.items():
    paths.append(folder / f'replay.{ending}')
    write_file(paths[-1], content)
  return paths


def replay_figure(replayed: Mapping[str, Any]) -> 'Figure':
  """Returns the agreement with each truth against the threshold; without a truth, the number of clusters."""
  truths, clients = [truth['name'] for truth in replayed['truths']], plural(replayed['clients'], 'client')
  if not truths:
    counted = figures.Sweep(
      _curves(replayed, operator.itemgetter('clusters')), {}, 'number of clusters', False
    )
    return figures.threshold_sweep([counted], f'Clusters of {clients}')
  sweeps = []
  for truth in truths:
    exact = {
      (line['metric'], line['linkage']): (line['low'], line['high'])
      for line in replayed['exact']
      if line['truth'] == truth and line['low'] is not None
    }
    curves = _curves(replayed, _agreement_with(truth))
    measure = 'ARI (Omega where clusters overlap)'
    sweeps.append(
      figures.Sweep(
        curves, exact, measure if len(truths) == 1 else f'{base.short(truth, 30)}\n{measure}', True
      )
    )
  which = f' ({base.short(truths[0], 30)})' if len(truths) == 1 else ''
  title = f'Planted groups{which} found again at each threshold, {clients}'
  if any(drawn.exact for drawn in sweeps):
    title += '; bars: found exactly'
  return figures.threshold_sweep(sweeps, title)


def _agreement_with(truth: str) -> Callable[[Mapping[str, Any]], float | None]:
  return lambda row: row['recovery'][truth]['omega']


def _curves(
  replayed: Mapping[str, Any], value: Callable[[Mapping[str, Any]], float | None]
) -> dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]:
  """Returns thresholds and values of each family, by metric and by linkage or method."""
  curves: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
  for family, rows in _families(replayed['rows']).items():
    used = sorted((row for row in rows if row['threshold'] is not None), key=lambda row: row['threshold'])
    if not used:
      continue
    metric, name = family if family[1] else ('l2', family[0])
    values = np.array([value(row) for row in used], np.float64)
    curves.setdefault(metric, {})[name] = (np.array([row['threshold'] for row in used]), values)
  return curves


def replay_table(replayed: Mapping[str, Any]) -> str:
  """Returns, for a terminal, which thresholds give the planted groups exactly, and the best row of each family.

  Without planted groups the best row is the one with the highest silhouette.
  """
  truths: Sequence[Mapping[str, Any]] = replayed['truths'] or [{'name': None}]
  return '\n'.join(line for truth in truths for line in _table_lines(replayed, truth))


def distortion_line(dimension: int, distortion: Mapping[str, float]) -> str:
  """Returns how far sketches of this dimension are off, over the pairs that were looked at."""
  return (
    f'sketches of {plural(dimension, "number")}: Euclidean distances are off by {percent(distortion["mean"])} on average, '
    f'{percent(distortion["percentile_95"])} for 95% of {plural(int(distortion["pairs"]), "pair")}, '
    f'{percent(distortion["maximum"])} at most'
  )


def _table_lines(replayed: Mapping[str, Any], truth: Mapping[str, Any]) -> list[str]:
  name, clients = truth['name'], plural(replayed['clients'], 'client')
  if name is None:
    title, header = f'{clients}, no planted groups known', ['family', 'best silhouette', 'there']
  else:
    title = f'{name}: {plural(truth["groups"], "planted group")}, {clients}'
    header = ['family', 'exact for', 'best Omega' if truth['overlapping'] else 'best ARI', 'there']
  cells = [header]
  for family, rows in _families(replayed['rows']).items():
    scores = [row['silhouette'] if name is None else row['recovery'][name]['omega'] for row in rows]
    known = [(value, row) for value, row in zip(scores, rows, strict=True) if value is not None]
    value, there = max(known, key=lambda pair: pair[0], default=(None, None))
    line = [' '.join(part for part in family if part)]
    if name is not None:
      line.append(_exact_words(replayed, family, name, rows))
    line += [score(value), '–' if there is None else _where(there)]
    cells.append(line)
  widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
  return [
    title,
    *('  '.join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in cells),
  ]


def _families(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
  """Returns the rows by (metric, linkage), or by (title of the method, '') for methods without them."""
  families: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
  for row in rows:
    key = (row['metric'], row['linkage']) if row['linkage'] else (row['title'], '')
    families.setdefault(key, []).append(row)
  return families


def _exact_words(
  replayed: Mapping[str, Any], family: tuple[str, str], truth: str, rows: Sequence[Mapping[str, Any]]
) -> str:
  for line in replayed['exact']:
    if (line['metric'], line['linkage'], line['truth']) == (*family, truth):
      if line['low'] is None:
        return 'no threshold'
      return (
        f'T >= {line["low"]:.6g}' if line['high'] is None else f'{line["low"]:.6g} <= T < {line["high"]:.6g}'
      )
  exact = [row for row in rows if row['recovery'][truth]['omega'] == 1.0]
  return ', '.join(_asked(row) for row in exact) or 'none of those asked'


def _asked(row: Mapping[str, Any]) -> str:
  return f'K = {row["num_clusters"]}' if row['threshold'] is None else f'T = {row["threshold"]:.6g}'


def _where(row: Mapping[str, Any]) -> str:
  found = plural(row['clusters'], 'cluster')
  return (
    f'{_asked(row)}: {found}'
    if row['memberships'] == 1.0
    else (f'{_asked(row)}: {found}, {row["memberships"]:.1f} memberships a client')
  )
