"""Verdicts on paired differences over seeds: whether a contender helps, harms, is practically equivalent, or none is shown.

Fewer than six seeds give intervals and no verdict: the smallest p-value of a two-sided sign test over five seeds is 0.06. From six on
a contender helps or harms where the 95% interval over seeds and clients excludes zero and the exact sign test over seeds is
below 5% after Holm's correction for all that are judged together (Holm 1979). It is equivalent where the 90% interval over seeds and
clients lies within the margin of practical equivalence (two one-sided tests at 5%; scorecard/units.py), however surely it differs from
zero; that is not corrected for how many are judged together.
"""

from collections.abc import Sequence

import numpy as np

from tff_cluster.scorecard import claims, units, verdicts
from tff_cluster.scorecard.paired_statistics import Difference

# From so many seeds on a two-sided sign test over seeds can be below 5%: 2 / 2^6 = 0.03.
FEWEST_SEEDS = 6
HELPS, HARMS, EQUIVALENT, UNDECIDED = 'helps', 'harms', 'equivalent', verdicts.UNDECIDED
LEVEL = 0.05
# Between accuracies from 0 to 1.
MARGIN = units.EQUIVALENT / 100.0
WITHIN = f'{units.EQUIVALENT:g} points'


def too_few(seeds: int) -> str:
  """Returns what stands in the place of a verdict, 'one seed', '3 seeds'; empty where there are enough."""
  return '' if seeds >= FEWEST_SEEDS else verdicts.FEW.get(seeds, f'{seeds} seeds')


def seeds_for(tests: int) -> int:
  """Returns the fewest seeds with which one of so many tests can be decided: all seeds on one side, and Holm's correction."""
  seeds = FEWEST_SEEDS
  while max(tests, 1) * 2.0 ** (1 - seeds) >= LEVEL:
    seeds += 1
  return seeds


def holm(p_values: Sequence[float]) -> list[float]:
  """Returns p-values corrected for all of them (Holm 1979, step down), in their order."""
  values = np.asarray(p_values, np.float64)
  order = np.argsort(values, kind='stable')
  corrected = np.empty(len(values))
  steps = (len(values) - np.arange(len(values))) * values[order]
  corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
  return corrected.tolist()


def judge(differences: Sequence[Difference]) -> list[str]:
  """Returns HELPS, HARMS, EQUIVALENT, UNDECIDED or what `too_few` says, of each.

  Args:
    differences: All that are judged together, of the same seeds.
  """
  corrected = holm([difference.seeds.p_value for difference in differences])
  return [_judged(*each) for each in zip(differences, corrected, strict=True)]


def beats_all(rows: Sequence[Sequence[Difference]]) -> list[str]:
  """Returns whether each row beats all that it is compared with: HOLDS, FAILS, UNDECIDED or what `too_few` says.

  A row beats all where each of its differences lies above zero and the largest of their p-values is below 5%: an
  intersection-union test (Berger 1982), which takes no correction within the row. Holm's correction is for the rows, of which any
  may win. A row fails where one of its differences harms or is equivalent, after Holm's correction within the row.

  Args:
    rows: Differences of the same seeds, at least one a row.
  """
  largest = holm([max(difference.seeds.p_value for difference in row) for row in rows])
  found = []
  for row, p_value in zip(rows, largest, strict=True):
    judged = judge(row)
    if few := too_few(len(row[0].by_seed)):
      found.append(few)
    elif EQUIVALENT in judged or HARMS in judged:
      found.append(claims.FAILS)
    else:
      wins = all(difference.side == 'above' for difference in row) and p_value < LEVEL
      found.append(claims.HOLDS if wins else UNDECIDED)
  return found


def _judged(difference: Difference, p_value: float) -> str:
  if few := too_few(len(difference.by_seed)):
    return few
  if all(
    end is not None and verdicts.is_within(end, -MARGIN, MARGIN)
    for end in (difference.inner.low, difference.inner.high)
  ):
    return EQUIVALENT
  if difference.side == 'unclear' or p_value >= LEVEL:
    return UNDECIDED
  return HELPS if difference.side == 'above' else HARMS
