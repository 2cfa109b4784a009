"""What curves of FedAvg alone are read for: rounds to a target, accuracies, and how much a curve fluctuates.

Rounds to a target are taken as is usual: the curve is made monotone by the best value so far, and
interpolated linearly where it crosses the target.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from tff_cluster.scorecard import units
from tff_cluster.scorecard.cells import Cell, Read
from tff_cluster.scorecard.rows import Ours

_Number = TypeVar('_Number', float, float | None)
# Test accuracies in percent.
TARGETS = (95.0, 97.0, 99.0)


def cells(row: str, printed: Mapping[float, float], source: str) -> tuple[Cell, ...]:
  """Returns the cells of a row of FedAvg alone: rounds to each target, accuracies and fluctuation.

  Args:
    row: Its name.
    printed: Rounds by target, where they are printed; all else is ours alone.
    source: Where they are printed.
  """

  def to_target(target: float) -> Cell:
    return Cell(
      row, f'rounds_to_{target:g}', f'rounds to {target:g}%', units.ROUNDS, rounds(target),
      printed.get(target), source=source if target in printed else '', is_added=target not in printed,
    )  # fmt: skip

  added = (
    ('accuracy_best', 'best accuracy', units.PERCENT, BEST),
    ('accuracy_end', 'last accuracy', units.PERCENT, END),
    ('fluctuation', 'fluctuation', units.POINTS, FLUCTUATION),
  )
  return (
    *map(to_target, sorted(TARGETS, reverse=True)),
    *(Cell(row, *told, is_added=True) for told in added),
  )


def rounds_to(curve: Mapping[int, float], target: float) -> float | None:
  """Returns after how many rounds a curve first reaches a target; None where it does not.

  Args:
    curve: Accuracy by round. Before its first round there is no value, so nothing is interpolated there.
    target: In the same unit.
  """
  rounds = sorted(curve)
  best = list(itertools.accumulate((curve[number] for number in rounds), max))
  for i, value in enumerate(best):
    if value >= target:
      if i == 0:
        return float(rounds[0])
      share = (target - best[i - 1]) / (value - best[i - 1])
      return rounds[i - 1] + share * (rounds[i] - rounds[i - 1])
  return None


def fluctuation(curve: Mapping[int, float]) -> float:
  """Returns the standard deviation of the change from round to round, over the last half of the rounds.

  The steady rise of a curve does not count, since only deviations from the mean change do.
  """
  values = np.array([curve[number] for number in sorted(curve)])
  changes = np.diff(values)[-max(len(values) // 2, 1) :]
  return float(np.std(changes)) if len(changes) else 0.0


def _by_seed(read: Callable[[Mapping[int, float]], _Number]) -> Callable[[Ours], list[_Number]]:
  return lambda ours: [read(curve) for curve in ours.baseline_by_seed]


def rounds(target: float) -> Read:
  """Returns what reads `rounds_to` a target by seed, of FedAvg alone."""
  return _by_seed(lambda curve: rounds_to(curve, target))


# Of FedAvg alone, by seed: the highest accuracy of any round and the last one, in percent, and `fluctuation` in points.
BEST, END = _by_seed(lambda curve: max(curve.values())), _by_seed(lambda curve: curve[max(curve)])
FLUCTUATION = _by_seed(fluctuation)
