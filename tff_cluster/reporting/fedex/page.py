"""What the pages of FedEx's tables and figures show beside what all pages have."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tff_cluster.papers import tables
from tff_cluster.reporting import pictures
from tff_cluster.reporting.experts_section import RULES
from tff_cluster.reporting.fedex import scorecard
from tff_cluster.reporting.figures.label_frequencies import label_frequencies
from tff_cluster.reporting.finished_run import FinishedRun
from tff_cluster.reporting.markup import Markup, table, tag
from tff_cluster.reporting.paper_page import PaperPage, Runs
from tff_cluster.reporting.table_claims import Reproduced
from tff_cluster.reporting.table_scorecard import Line, is_loss
from tff_cluster.scorecard import cluster_contents
from tff_cluster.scorecard.words import signed

Rows = Mapping[str, Reproduced]
Parts = list[tuple[str, list[Markup]]]
_SOURCES = ('MNIST', 'CIFAR-10')


def sections(published: tables.Published, rows: Rows, lines: Sequence[Line], remark: str) -> Parts:
  """Returns the paper's numbers beside ours, and all rules that combine experts beside FedEx; nothing for figures."""
  parts: Parts = []
  if published.is_figure:  # Their experts are trained for one round, which says nothing.
    return parts
  if any(line.published is not None for line in lines):
    parts.append(('The paper’s numbers beside ours', _numbers_section(published, lines, remark)))
  if rules := _rules_section(published, rows):
    parts.append(('Where the loss comes from', rules))
  return parts


def draw(published: tables.Published, runs: Runs, remark: str, folder: Path) -> list[pictures.Picture]:
  """Draws the labels in each cluster of every row, of the first seed, and saves them in FOLDER/figures."""
  found: dict[str, tuple[int, Mapping[str, Any], Mapping[str, Any]]] = {}
  for rows, seed, results in runs:
    for row, clustering in zip(rows, results['clusterings'], strict=True):
      found.setdefault(row.name, (seed, results, clustering))
  drawn = []
  for row in published.rows:
    if row.name not in found:
      continue
    seed, results, clustering = found[row.name]
    run = FinishedRun(folder, results, {})
    matrix, noise = run.membership(clustering), run.truths.get('source')
    counts = cluster_contents.rows_by_label(matrix, run.label_counts, noise)
    sizes = cluster_contents.shared_clients(
      matrix, np.ones((1, len(run.client_ids))) if noise is None else noise
    )
    caption = (
      'A panel is a cluster, a bar the training rows of its clients with one label, all to one scale. '
    )
    if noise is not None:
      caption += 'Labels 0 to 9 are digits of MNIST and, in the other colour, classes of CIFAR-10. '
    caption += f'The numbers of clusters mean nothing. Seed {seed}.'
    picture = label_frequencies(counts, sizes, _SOURCES if noise is not None else (), remark)
    name, title = f'labels_{row.name.replace(" ", "_")}', f'Labels in each of {row.name}'
    drawn.append(pictures.save_drawn((name, 'clusters', title, caption, picture), folder))
  return drawn


PAGE = PaperPage(scorecard.scorecard, sections, draw)


def _numbers_section(published: tables.Published, lines: Sequence[Line], remark: str) -> list[Markup]:
  body = []
  for line in lines:
    loss = is_loss(line.column)
    # The page says at its top what was scaled down; in each line it would hide the numbers.
    words = line.verdict.replace(f'; {remark})', ')').replace(f' ({remark})', '') if remark else line.verdict
    interval = None
    if line.low is not None and line.high is not None:
      interval = tag('div', f'{_value(line.low, loss)} to {_value(line.high, loss)}', class_='note')
    look = 'none' if line.agrees is None or (line.agrees and remark) else 'good' if line.agrees else 'warn'
    difference = '–' if line.difference is None else signed(line.difference, 2)
    ours = [_value(line.ours, loss), interval]
    named = _NAMES.get(line.column) or line.column.replace('expert', 'expert ').replace('_', ', ')
    body.append(
      (line.row, named, _value(line.published, loss), ours, difference, tag('span', words, class_=look))
    )
  text = (
    'Accuracies are of the global test set, in percent; below ours its 95% interval over seeds, where there are several. '
    'Expert 1 is the best one.'
  )
  header = ('row', 'number', 'paper', 'ours', 'difference', 'verdict')
  return [
    tag('p', text),
    table(header, body, numeric=(2, 3, 4), caption=f'{published.title} ({published.source})'),
  ]


_NAMES = {scorecard.FEDAVG: 'FedAvg without clusters', scorecard.FEDEX: 'FedEx, all experts together'}


def _value(value: float | None, loss: bool) -> str:
  return '–' if value is None else f'{value:.2f}' + ('' if loss else '%')


def _rules_section(published: tables.Published, rows: Rows) -> list[Markup]:
  known = {
    row.name: rows[row.name] for row in published.rows if row.name in rows and any(rows[row.name].experts)
  }
  if not known:
    return []
  header = ['right on the global test set']
  columns: list[list[str]] = []
  names = ['FedAvg without clusters', 'best expert alone', *RULES.values()]
  for name, found in known.items():
    measured = [experts for experts in found.experts if experts is not None]
    best = [max(experts['expert_accuracy']) for experts in measured]
    by_rule = {rule: [experts['accuracy'][rule] for experts in measured] for rule in RULES}
    fedavg = sum(found.baseline_global) / len(found.baseline_global)
    values = [fedavg, *(100.0 * sum(shares) / len(shares) for shares in (best, *by_rule.values()))]
    fedex = values[2 + list(RULES).index('fedex')]
    header += [name, 'against FedEx']
    columns += [[f'{v:.2f}%' for v in values], [f'{signed(v - fedex, 2)} points' for v in values]]
  text = (
    'The same experts, combined by other rules. The oracle is right wherever some expert is: what FedAvg has above it is lost '
    'in the experts, what it has above FedEx in the combination. The oracle knows the labels and the gate has seen those '
    'of validation rows; the other rules see none. Means over seeds.'
  )
  return [tag('p', text), table(header, zip(names, *columns, strict=True), numeric=range(1, len(header)))]
