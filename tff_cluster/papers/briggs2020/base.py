"""Limits that several claims of FL+HC share, and which rows a claim is about."""

import itertools
from collections.abc import Callable, Hashable, Iterable

from tff_cluster.papers.briggs2020 import rules, tables
from tff_cluster.scorecard import units
from tff_cluster.scorecard.claims import Claim, Needs
from tff_cluster.scorecard.rows import Row

# Section III.A: FedAvg on IID clients at round 50, for all client fractions.
IID_ACCURACY = 99.1
# Points of accuracy. "Remains the same", "similar", "very slightly": what the scorecards call reproduced.
SAME = units.PERCENT.limit
# Points of accuracy. Section III.A: "within 0.1%".
NEAR_IID = 0.1
# Half of the last printed digit: what is nearer than this prints the same.
PRINTED = 0.05
# Points of clients: a share of clients at a hard target moves that much between seeds.
SHARE_NOISE = units.SHARE.limit
# Claims about all rows are checked once two of them were run.
_EVERY = 2


def fraction(row: Row) -> float:
  return row.settings['cohort_fraction']


def rounds_before(row: Row) -> int:
  return row.settings['phase1_rounds']


def metric(row: Row) -> str:
  return row.clustering['metric']


def linkage(row: Row) -> str:
  return row.clustering['linkage']


def rows_of(name: str, where: Callable[[Row], bool] = lambda row: True) -> tuple[Row, ...]:
  """Returns the published rows of a table or figure, or of the IID experiments, that are to be looked at."""
  return tuple(row for row in tables.PUBLISHED[name].rows if where(row))


def each(rows: Iterable[Row]) -> Needs:
  """Needs for a claim about every row."""
  groups = tuple((row.name,) for row in rows)
  return Needs(groups, min(_EVERY, len(groups)))


def claim_of_each(section: str, words: str, published: str, rows: Iterable[Row], rule: rules.Rule) -> Claim:
  """Returns the claim of a section about every row."""
  return Claim(words, section, published, each(rows), rule)


def pairs(
  rows: Iterable[Row], matched: Callable[[Row], Hashable], side: Callable[[Row], object] | None = None
) -> Needs:
  """Needs for comparisons of matching rows: of each two, or of those on different sides (None takes no part)."""
  groups = []
  for a, b in itertools.combinations(rows, 2):
    sides = (side(a), side(b)) if side else (0, 1)
    if matched(a) == matched(b) and None not in sides and sides[0] != sides[1]:
      groups.append((a.name, b.name))
  return Needs(tuple(groups), 1)


def across_metrics(name: str, at_least: int = 1) -> Needs:
  """Needs for comparisons of the metrics, at the linkages that all of them have."""
  by_linkage: dict[str, list[str]] = {}
  for row in rows_of(name):
    by_linkage.setdefault(linkage(row), []).append(row.name)
  return Needs(tuple(tuple(names) for names in by_linkage.values() if len(names) == 3), at_least)


def against_others(name: str, *chosen: str) -> Needs:
  """Needs for the claim that one of the chosen rows is the best."""
  others = [row.name for row in rows_of(name) if row.name not in chosen]
  return Needs(tuple((*chosen, other) for other in others), 1)
