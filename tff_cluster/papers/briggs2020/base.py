"""Limits that several claims of FL+HC share, and which rows a claim is about."""

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from tff_cluster.base.grouping import by_key
from tff_cluster.papers.briggs2020 import tables
from tff_cluster.scorecard import units
from tff_cluster.scorecard.rows import COLUMNS, Row

# Section III.A: FedAvg on IID clients at round 50, for all client fractions.
IID_ACCURACY = 99.1
# Points of accuracy: "remains the same", "similar", "negligible"; and of clients where some have more than others, since what
# the paper prints of its own orders of shares differs by less than SAME_SHARE.
SAME = units.EQUIVALENT
# Points of clients, likewise: a share of clients at a hard target moves that much between seeds.
SAME_SHARE = units.SHARE.margin
# Both by column of a table; and of ratios to FedAvg, whose accuracies are near 100%.
LIMITS: Mapping[str, float] = dict(zip(COLUMNS, (SAME, SAME, SAME_SHARE, SAME_SHARE), strict=True))
RATIOS: Mapping[str, float] = dict(
  zip(COLUMNS, (SAME / 100.0, SAME / 100.0, units.RATIO, units.RATIO), strict=True)
)
# Points of accuracy. Section III.A: "within 0.1%".
NEAR_IID = 0.1
# Half of the last printed digit: what is nearer than this prints the same. It decides where the paper's own words turn on a digit.
PRINTED = 0.05


def fraction(row: Row) -> float:
  """Returns C, the share of the clients that train in a round."""
  return row.settings['cohort_fraction']


def rounds_before(row: Row) -> int:
  """Returns n, the rounds of FedAvg before clients are clustered."""
  return row.settings['phase1_rounds']


def metric(row: Row) -> str:
  """Returns the distance that clients are clustered by: l1, l2 or cosine."""
  return row.clustering['metric']


def linkage(row: Row) -> str:
  """Returns what the distance of two clusters is: single, complete, average or ward."""
  return row.clustering['linkage']


def rows_of(name: str, where: Callable[[Row], bool] = lambda row: True) -> tuple[Row, ...]:
  """Returns the published rows of a table or figure, or of the IID experiments, that are to be looked at.

  Rows of which the paper prints nothing but dashes are left out: its words are not about them.
  """
  published = tables.PUBLISHED[name]
  printed = {cell.row for cell in published.cells if cell.published is not None}
  # Figures print no number at all.
  return tuple(row for row in published.rows if (not printed or row.name in printed) and where(row))


def in_every(rows: Sequence[Row]) -> str:
  """Returns ', in every row' for the words of a claim; nothing where there is one row, as in figures."""
  return ', in every row' if len(rows) > 1 else ''


def pairs(rows: Iterable[Row], matched: Callable[[Row], Hashable]) -> list[tuple[Row, Row]]:
  """Returns each two rows for which a key is the same."""
  return [pair for members in by_key(rows, matched).values() for pair in itertools.combinations(members, 2)]


def by_metric(rows: Sequence[Row]) -> dict[str, list[Row]]:
  """Returns the rows of each metric, at the linkages that all metrics have (Ward has one)."""
  metrics = {metric(row) for row in rows}
  complete = [name for name, members in by_key(rows, linkage).items() if len(members) == len(metrics)]
  return {each: [r for r in rows if metric(r) == each and linkage(r) in complete] for each in sorted(metrics)}
