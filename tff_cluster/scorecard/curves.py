"""What curves of FedAvg alone are read for: rounds to a target, accuracies, and how much a curve fluctuates.

Rounds to a target are taken as is usual: the curve is made monotone by the best value so far, and
interpolated linearly where it crosses the target.
"""

import dataclasses
import itertools
from collections.abc import Mapping

import numpy as np

from tff_cluster.scorecard import units
from tff_cluster.scorecard.cells import Cell
from tff_cluster.scorecard.rows import Ours

# Test accuracies in percent.
TARGETS = (95.0, 97.0, 99.0)


@dataclasses.dataclass(frozen=True)
class CurveMeasures:
  """A row's curves in numbers, one a seed; accuracies in percent.

  Attributes:
    rounds_to: Rounds to each of TARGETS, with fractions; None where the curve does not reach it.
    best: The highest accuracy of any round.
    end: Accuracy after the last round.
    fluctuation: See `fluctuation`, in points.
    ran: Rounds that were run.
  """

  rounds_to: Mapping[float, tuple[float | None, ...]]
  best: tuple[float, ...]
  end: tuple[float, ...]
  fluctuation: tuple[float, ...]
  ran: int

  def mean_rounds(self, target: float) -> float:
    """Returns the mean over seeds of the rounds to a target; infinity where a seed does not reach it."""
    values = [np.inf if value is None else value for value in self.rounds_to[target]]
    return float(np.mean(values))


def measure(found: Ours) -> CurveMeasures:
  """Returns the measures of a row of FedAvg alone."""
  curves = found.baseline_by_seed
  return CurveMeasures(
    rounds_to={target: tuple(rounds_to(curve, target) for curve in curves) for target in TARGETS},
    best=tuple(max(curve.values()) for curve in curves),
    end=tuple(curve[max(curve)] for curve in curves),
    fluctuation=tuple(fluctuation(curve) for curve in curves),
    ran=found.rounds_end,
  )


def cells(row: str, printed: Mapping[float, float], source: str) -> tuple[Cell, ...]:
  """Returns the cells of a row of FedAvg alone: rounds to each target, accuracies and fluctuation.

  Args:
    row: Its name.
    printed: Rounds by target, where they are printed; all else is ours alone.
    source: Where they are printed.
  """

  def rounds(target: float) -> Cell:
    return Cell(
      row, f'rounds_to_{target:g}', f'rounds to {target:g}%', units.ROUNDS, lambda ours: measure(ours).rounds_to[target],
      printed.get(target), source=source if target in printed else '', is_added=target not in printed,
    )  # fmt: skip

  added = (
    ('accuracy_best', 'best accuracy', units.PERCENT, lambda ours: measure(ours).best),
    ('accuracy_end', 'last accuracy', units.PERCENT, lambda ours: measure(ours).end),
    ('fluctuation', 'fluctuation', units.POINTS, lambda ours: measure(ours).fluctuation),
  )
  return (*map(rounds, sorted(TARGETS, reverse=True)), *(Cell(row, *told, is_added=True) for told in added))


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
