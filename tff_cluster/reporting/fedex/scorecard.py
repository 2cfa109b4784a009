"""The numbers of Miles et al. 2024 beside ours: FedAvg, FedEx, and each expert alone, on the global test set.

Experts are compared rank by rank, the best with the best: the numbers of clusters mean nothing. Over seeds the mean of a
rank is taken.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from tff_cluster.papers import miles2024, tables
from tff_cluster.reporting.table_claims import Reproduced
from tff_cluster.reporting.table_scorecard import Line, is_loss, scale_remark, verdict
from tff_cluster.scorecard.intervals import student_interval

FEDAVG, FEDEX = 'fedavg_accuracy', 'fedex_accuracy'


def expert_column(rank: int, loss: bool = False) -> str:
  """Returns the column of the expert of a rank, the best 1."""
  return f'expert{rank}_{"loss" if loss else "accuracy"}'


def scorecard(
  published: tables.Published, rows: Mapping[str, Reproduced], scale: str, scale_words: str
) -> list[Line]:
  """Returns one line for each number that is printed, and for ours that have none; row by row.

  Figures show the clusters alone, and have no lines.

  Args:
    published: The table or figure.
    rows: Our rows by name; those that are missing were not run.
    scale: 'paper', or the name of another scale.
    scale_words: What that scale scaled down.
  """
  remark = scale_remark(scale, scale_words)
  lines = []
  for row in () if published.is_figure else published.rows:
    printed = _printed(published, row)
    ours = {} if row.name not in rows else numbers(rows[row.name])
    # What was not run has no lines but the printed ones; a loss stands only where one is printed.
    columns = [c for c in dict.fromkeys([*printed, *ours]) if not is_loss(c) or c in printed]
    for column in columns:
      run = row.name in rows
      lines.append(_line(published, row.name, column, printed.get(column), ours.get(column), run, remark))
  return lines


def numbers(found: Reproduced) -> dict[str, list[float]]:
  """Returns our numbers of a row by column, one a seed; those that were not measured are left out.

  Percentages, and losses as they are. An expert's rank is by accuracy; of equal ones the lower loss is better.
  """
  columns: dict[str, list[float]] = {FEDAVG: list(found.baseline_global)}
  for experts in found.experts:
    if experts is None:
      continue
    columns.setdefault(FEDEX, []).append(100.0 * experts['accuracy']['fedex'])
    accuracy = experts['expert_accuracy']
    losses = experts.get('expert_loss_twice') or [None] * len(accuracy)
    ranked = sorted(zip(accuracy, losses, strict=True), key=lambda pair: (-pair[0], pair[1] or 0.0))
    for rank, (share, loss) in enumerate(ranked, 1):
      columns.setdefault(expert_column(rank), []).append(100.0 * share)
      if loss is not None:
        columns.setdefault(expert_column(rank, loss=True), []).append(loss)
  return columns


def _printed(published: tables.Published, row: tables.Row) -> dict[str, float | None]:
  """Returns the printed numbers of a row by column, None for N/A."""
  printed = miles2024.PRINTED.get(published.name, {}).get(row.name)
  if printed is None:
    return {}
  columns: dict[str, float | None] = {FEDAVG: printed.fedavg.accuracy, FEDEX: printed.fedex}
  for rank, expert in enumerate(printed.ranked, 1):
    columns[expert_column(rank)] = None if expert is None else expert.accuracy
    if expert is not None and expert.loss is not None:
      columns[expert_column(rank, loss=True)] = expert.loss
  return columns


def _line(
  published: tables.Published,
  row: str,
  column: str,
  printed: float | None,
  values: Sequence[float] | None,
  run: bool,
  remark: str,
) -> Line:
  if not values:
    words = 'not measured in this run' if run else 'not run'
    return Line(published.name, row, column, printed, None, *(None,) * 5, words, published.source)
  interval = student_interval(values)
  notes = []
  if printed is None:
    notes.append('the paper prints no number here')
  if interval.low is None:
    notes.append('one seed, so no interval')
  difference = None if printed is None else round(interval.mean - printed, 6)
  line = Line(
      published.name, row, column, printed, None, interval.mean, interval.low, interval.high, None, difference, '',
      '; '.join([*notes, published.source]),
  )  # fmt: skip
  return dataclasses.replace(line, verdict=verdict(line, remark))
