"""How the numbers of Miles et al. 2024 are read from our runs: FedAvg, FedEx, and each expert alone, on the global test set.

Experts are compared rank by rank, the best with the best: the numbers of clusters mean nothing. Over seeds the mean of a
rank is taken.
"""

import dataclasses

from tff_cluster.experiment import config
from tff_cluster.scorecard import units
from tff_cluster.scorecard.cells import Cell
from tff_cluster.scorecard.rows import BASELINE, Ours

FEDAVG, FEDAVG_LOSS, FEDEX = 'fedavg_accuracy', 'fedavg_loss', 'fedex_accuracy'
_WORDS = {
  FEDAVG: config.FEDAVG,
  FEDAVG_LOSS: f'{config.FEDAVG}, loss',
  FEDEX: 'FedEx, all experts together',
}


def expert_column(rank: int, loss: bool = False) -> str:
  """Returns the column of the expert of a rank, the best 1."""
  return f'expert{rank}_{"loss" if loss else "accuracy"}'


def numbers(found: Ours) -> dict[str, list[float]]:
  """Returns our numbers of a row by column, one a seed; those that were not measured are left out.

  Percentages, and losses as they are, all of the double softmax. An expert's rank is by accuracy; of equal ones the lower loss is better.
  """
  columns: dict[str, list[float]] = {FEDAVG: list(found.baseline_global)}
  if 'loss' in found.row.settings:  # What FedAvg is measured by is what it was trained by.
    columns[FEDAVG_LOSS] = _fedavg_losses(found)
  for experts in found.experts:
    if experts is None:
      continue
    assert experts.accuracy is not None and experts.expert_accuracy is not None  # A run knows its labels.
    columns.setdefault(FEDEX, []).append(100.0 * experts.accuracy['fedex'])
    ranked = sorted(
      zip(experts.expert_accuracy, experts.expert_loss_twice, strict=True),
      key=lambda pair: (-pair[0], pair[1]),
    )
    for rank, (share, loss) in enumerate(ranked, 1):
      columns.setdefault(expert_column(rank), []).append(100.0 * share)
      columns.setdefault(expert_column(rank, loss=True), []).append(loss)
  return columns


def _fedavg_losses(found: Ours) -> list[float]:
  """Returns FedAvg's losses on the global test set after the last round; none where one of a seed is not finite."""
  tests = [run.results.baseline.evaluation.global_test for run in found.runs]
  losses = [test.loss for test in tests if test is not None and test.loss is not None]
  return losses if len(losses) == len(tests) else []


def cell(row: str, column: str, printed: float | None) -> Cell:
  """Returns the cell of a column; None where N/A is printed.

  FedAvg, which goes up and down by points from round to round, is judged on the mean over clients in the last rounds: results keep
  the global test set of the last round alone, and a client's test rows are a share of it.
  """
  unit = units.LOSS if column.endswith('_loss') else units.PERCENT
  words = _WORDS.get(column) or column.replace('expert', 'expert ').replace('_', ', ')
  found = Cell(row, column, words, unit, lambda ours: numbers(ours).get(column, []), printed, decimals=2)
  if column == FEDAVG_LOSS:
    return dataclasses.replace(found, stage=BASELINE)
  if column != FEDAVG:
    return found
  return dataclasses.replace(
    found, stage=BASELINE, window=lambda ours: ours.baseline_windows['accuracy_end'],
    window_words=lambda ours: f'{ours.window_words}, over clients',
  )  # fmt: skip
