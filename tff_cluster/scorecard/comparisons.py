"""Claims that one number of ours is above another one, in every row that they are made of.

A difference below the margin is none: the claim is undecided there. Where a comparison has several seeds, the 95% Student
interval of the differences seed by seed must exclude 0 too.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tff_cluster.base.words import decimals_for
from tff_cluster.scorecard.cells import Read
from tff_cluster.scorecard.claims import Claim, Finding, Needs
from tff_cluster.scorecard.intervals import student_interval
from tff_cluster.scorecard.rows import Ours

# In points of accuracy: what is nearer is practically the same.
MARGIN = 0.5
_VERDICTS = {1: 'holds', 0: 'undecided', -1: 'fails'}


@dataclasses.dataclass(frozen=True)
class Comparison:
  """A number that is claimed to be above another one.

  Attributes:
    row: The row that it is read from.
    high: How; percentages, one a seed, and none where it was not measured.
    low: The other one likewise.
    against: Its row; empty: the same.
  """

  row: str
  high: Read
  low: Read
  against: str = ''

  @property
  def rows(self) -> tuple[str, ...]:
    return tuple(dict.fromkeys((self.row, self.against or self.row)))


def above(
  words: str, source: str, published: str, comparisons: Sequence[Comparison], margin: float = MARGIN
) -> Claim:
  """Returns the claim that all comparisons hold; it is checked once all their rows were run.

  Args:
    words: What is claimed; the margin is added.
    source, published: See Claim.
    comparisons: At least one.
    margin: In points; smaller differences decide nothing.
  """

  def rule(rows: Mapping[str, Ours]) -> Finding:
    found = [_compared(comparison, rows, margin) for comparison in comparisons]
    signs = [sign for sign, _ in found]
    if None in signs:
      return Finding('not run', '–', 'one of the two numbers was not measured')
    worst = min(sign for sign in signs if sign is not None)
    seeds = {len(rows[comparison.row].seeds) for comparison in comparisons}
    note = 'one seed' if seeds == {1} else ''
    return Finding(_VERDICTS[worst], '; '.join(told for _, told in found), note)

  needs = Needs(tuple(dict.fromkeys(c.rows for c in comparisons)), len({c.rows for c in comparisons}))
  return Claim(f'{words} (by at least {margin:g} points)', source, published, needs, rule)


def _compared(comparison: Comparison, rows: Mapping[str, Ours], margin: float) -> tuple[int | None, str]:
  """Returns 1 where the claim holds, -1 where the opposite does, 0 where neither is sure, None without numbers; and both."""
  first, second = rows[comparison.row], rows[comparison.against or comparison.row]
  high, low = _known(comparison.high(first)), _known(comparison.low(second))
  if not high or not low:
    return None, ''
  means = [float(np.mean(high)), float(np.mean(low))]
  is_sure = True
  # Rows may have been run with different seeds; then only their means compare.
  if len(high) > 1 and first.seeds == second.seeds:
    is_sure = student_interval([a - b for a, b in zip(high, low, strict=True)]).excludes_zero

  def sign(a: float, b: float) -> int:
    return int(a - b >= margin) - int(b - a >= margin)

  decimals = decimals_for(means, sign)
  told = ' against '.join(f'{mean:.{decimals}f}%' for mean in means)
  return sign(*means) * is_sure, f'{comparison.row}: {told}' + ('' if is_sure else ' (seeds differ in it)')


def _known(values: Sequence[float | None]) -> list[float]:
  return [value for value in values if value is not None]
