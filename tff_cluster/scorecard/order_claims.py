"""Claims that one number of ours is above another one, in every row that they are made of."""

import dataclasses
from collections.abc import Sequence

from tff_cluster.scorecard import claims, units
from tff_cluster.scorecard.cells import Read
from tff_cluster.scorecard.claims import Claim


@dataclasses.dataclass(frozen=True)
class Comparison:
  """A number that is claimed to be above another one.

  Attributes:
    row: The row that it is read from.
    high: How; percentages, one a seed, and none where it was not measured.
    low: The other one likewise.
    against: Its row; empty: the same. Rows are compared seed by seed, in the seeds that both have.
  """

  row: str
  high: Read
  low: Read
  against: str = ''


def above(
  words: str, source: str, published: str, comparisons: Sequence[Comparison], margin: float = units.EQUIVALENT
) -> Claim:
  """Returns the claim that all comparisons hold.

  Args:
    words: What is claimed; the margin is added.
    source, published: See Claim.
    comparisons: At least one.
    margin: In points; what is nearer is practically the same.
  """
  parts = []
  for each in comparisons:
    against = each.against or each.row
    name = each.row if against == each.row else f'{each.row} against {against}'
    readings = (claims.of(each.row, each.high), claims.of(against, each.low))
    parts.append(claims.above(name, (each.row, against), *readings, margin))
  return Claim(f'{words} (by at least {margin:g} points)', source, published, tuple(parts))
