"""What the page of figure 1 of Miles et al. 2024, their replication of FedAvg, shows beside what all pages have."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tff_cluster.papers import miles2024, tables
from tff_cluster.reporting import pictures
from tff_cluster.reporting.fedex import replication_scorecard
from tff_cluster.reporting.fedex.curve_measures import TARGETS, CurveMeasures, measure
from tff_cluster.reporting.figures.replication import curves_by_setting
from tff_cluster.reporting.markup import Markup, table, tag
from tff_cluster.reporting.paper_page import PaperPage, Runs
from tff_cluster.reporting.table_claims import Reproduced
from tff_cluster.reporting.table_scorecard import Line


def sections(
  published: tables.Published, rows: Mapping[str, Reproduced], lines: Sequence[Line], remark: str
) -> list[tuple[str, list[Markup]]]:
  """Returns the table of rounds, accuracies and fluctuation, with the rounds of McMahan et al. 2017 beside ours."""
  by_row = {line.row: line for line in lines if line.published is not None}
  body = []
  for row in published.rows:
    if row.name not in rows:
      continue
    found, line = measure(rows[row.name]), by_row.get(row.name)
    seeds = ', '.join(map(str, rows[row.name].seeds))
    rounds = [_rounds(found, target) for target in TARGETS]
    printed = [f'{line.published:g}', _verdict(line, remark)] if line and line.published else ['–', '–']
    means = (f'{np.mean(found.best):.2f}%', f'{np.mean(found.end):.2f}%', f'{np.mean(found.fluctuation):.2f}')
    body.append((row.name, seeds, *rounds, *printed, *means))
  text = (
    'Rounds as McMahan et al. 2017 take them: of the best value so far, interpolated linearly where it crosses the target. '
    'Fluctuation is the standard deviation of the change from round to round over the last half of the rounds, in points. '
    'Means over seeds; below the rounds their number by seed, where there are several.'
  )
  measured = (
    'Accuracy is the mean over clients on their own test rows. IID this is the accuracy on the test set, of which every '
    'row is one client’s at the paper’s scale; non-IID some 40 of 10,000 rows are no client’s.'
  )
  header = (
      'row', 'seeds', *(f'rounds to {target:g}%' for target in TARGETS), f'McMahan et al., {TARGETS[-1]:g}%', 'verdict',
      'best accuracy', 'last accuracy', 'fluctuation',
  )  # fmt: skip
  numeric = (2, 3, 4, 5, 7, 8, 9)
  content = [tag('p', text), tag('p', measured, class_='soft'), table(header, body, numeric=numeric)]
  return [('Rounds, accuracies and fluctuation', content)]


def draw(published: tables.Published, runs: Runs, remark: str, folder: Path) -> list[pictures.Picture]:
  """Draws the curves of all rows that were run and saves them in FOLDER/figures."""
  found: dict[str, list[Mapping[int, float]]] = {}
  for rows, _, results in runs:
    history = results['baseline']['history']
    curve = {r: 100.0 * a for r, a in zip(history['rounds'], history['test_accuracy'], strict=True)}
    for row in rows:
      found.setdefault(row.name, []).append(curve)
  batches = {batch: f'B = {"∞" if batch is None else batch}' for batch in miles2024.BATCHES}
  epochs = {number: f'E = {number}' for number in miles2024.EPOCHS}
  panels: dict[str, dict[tuple[str, str], dict[int, float]]] = {}
  for partition, batch, number in miles2024.REPLICATION:
    curves = found.get(miles2024.replication_name(partition, batch, number))
    if curves is not None:
      mean = {r: float(np.mean([curve[r] for curve in curves])) for r in curves[0]}
      panels.setdefault(partition, {})[batches[batch], epochs[number]] = mean
  picture = curves_by_setting(panels, list(batches.values()), list(epochs.values()), TARGETS, remark)
  caption = (
    'Test accuracy after each round, means over seeds. The upright axis begins where the last half of every curve fits. '
    f'The grey lines are at {", ".join(f"{target:g}%" for target in TARGETS)}.'
  )
  return [pictures.save_drawn(('fedavg', 'rounds', published.title, caption, picture), folder)]


PAGE = PaperPage(replication_scorecard.scorecard, sections, draw)


def _rounds(found: CurveMeasures, target: float) -> list[Markup | str | None]:
  values = ['–' if value is None else f'{value:.1f}' for value in found.rounds_to[target]]
  mean = found.mean_rounds(target)
  if np.isinf(mean):
    missed = values.count('–')
    of = f', {missed} of {len(values)} seeds' if missed < len(values) else ''
    return ['–', tag('div', f'not in {found.ran} rounds{of}', class_='note')]
  return [f'{mean:.1f}', tag('div', ', '.join(values), class_='note') if len(values) > 1 else None]


def _verdict(line: Line, remark: str) -> Markup:
  # The page says at its top what was scaled down; in each line it would hide the numbers.
  words = line.verdict.replace(f'; {remark})', ')').replace(f' ({remark})', '') if remark else line.verdict
  look = 'none' if line.agrees is None or (line.agrees and remark) else 'good' if line.agrees else 'warn'
  return tag('span', words, class_=look)
