"""What claims about the tables of FL+HC are made of: what is looked at in a row, and the parts of a claim over rows.

What a table prints of the end is read as the mean over the last ten rounds, or fewer (studies/reproduction/runs.py: window_rounds), of
the clusters and of FedAvg alike; what it prints right after the clustering in that round. Rows are compared seed by seed.
"""

import dataclasses
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from tff_cluster.base import words
from tff_cluster.base.grouping import by_key
from tff_cluster.papers.briggs2020 import base
from tff_cluster.scorecard import claims, curves
from tff_cluster.scorecard.cells import Read
from tff_cluster.scorecard.claims import Part, Reading, Rows
from tff_cluster.scorecard.rows import Curve, Ours, Row

_SLACK = 1e-9  # Keeps what is exactly at a limit from being judged by rounding of binary fractions.
METRIC_NAMES: Mapping[str, str] = {'cosine': 'cosine', 'l2': 'L2', 'l1': 'L1'}


def show_ratio(value: float) -> str:
  """Returns a ratio to FedAvg: '1.25x', or in words that FedAvg has 0."""
  return 'FedAvg has none' if math.isinf(value) else f'{value:.2f}x'


def show_ratios(value: float) -> str:
  """Returns a difference of two ratios to FedAvg, signed: '+0.125x'."""
  return f'{words.signed(value, 3)}x'


def level(column: str) -> Read:
  """Percent in a column."""
  return lambda r: r.windows[column]


def baseline_level(column: str) -> Read:
  """Percent of FedAvg without clusters in a column."""
  return lambda r: r.baseline_windows[column]


def gain(column: str) -> Read:
  """Points above FedAvg in a column."""
  return lambda r: [a - b for a, b in zip(r.windows[column], r.baseline_windows[column], strict=True)]


def ratio(column: str) -> Read:
  """Ratio to FedAvg in a column; infinite where only FedAvg has 0, and 1 where both have."""

  def of(ours: float, theirs: float) -> float:
    return ours / theirs if theirs else math.inf if ours else 1.0

  return lambda r: [of(a, b) for a, b in zip(r.windows[column], r.baseline_windows[column], strict=True)]


def lead_in_every_round(r: Ours) -> list[float]:
  """Points by which the share of clients at the target is above FedAvg's, in the round where that is least."""
  both = zip(r.share_by_seed, r.baseline_share_by_seed, strict=True)
  return [min(share - theirs[number] for number, share in ours.items()) for ours, theirs in both]


def settling_ratio(below: float) -> Read:
  """Rounds until the best accuracy so far is at most so many points below the mean of the last rounds, divided by FedAvg's.

  A curve that stays near its last round would be a calm one, and FedAvg fluctuates.
  """

  def of(r: Ours) -> list[float]:
    def rounds(curve: Curve) -> float:
      found = curves.rounds_to(curve, float(np.mean([curve[number] for number in r.window])) - below)
      assert found is not None  # The best is no less than a mean.
      return found

    both = zip(r.accuracy_by_seed, r.baseline_by_seed, strict=True)
    return [rounds(ours) / rounds(theirs) for ours, theirs in both]

  return of


def saves_rounds(factor: int) -> Read:
  """Rounds that FedAvg needs to what is reached right after the clustering, divided by those; infinite where it never does.

  A run in which it never does must have been long enough to tell, `factor` times the rounds before the clustering, as the
  paper's 50 rounds are with n = 10; else nothing can be said (nan).
  """

  def of(r: Ours) -> list[float]:
    never = math.inf if r.rounds_end >= factor * (r.rounds_after - 1) else math.nan
    found = []
    for target, curve in zip(r.columns['accuracy_after'], r.baseline_by_seed, strict=True):
      reached = [number for number, a in curve.items() if a >= target - _SLACK]
      found.append(min(reached) / r.rounds_after if reached else never)
    return found

  return of


def of_clusters(parts: Iterable[Part]) -> tuple[Part, ...]:
  """Returns parts that say nothing of rows in which every client is alone; which clusters there are, and parts that have a reason, are left."""
  return tuple(
    part if part.is_answer or part.undecidable else claims.unless(claims.all_alone, (part,))[0]
    for part in parts
  )


def each(
  rows: Iterable[Row],
  read: Read,
  low: float = -math.inf,
  high: float = math.inf,
  show: Callable[[float], str] = claims.show_points,
  name: str = '',
) -> tuple[Part, ...]:
  """Returns a part a row: its number lies in a zone."""
  return tuple(
    Part(', '.join(filter(None, (r.name, name))), (r.name,), claims.of(r.name, read), low, high, show)
    for r in rows
  )


def times_fedavg(rows: Iterable[Row], column: str, limit: float) -> tuple[Part, ...]:
  """Returns a part a row: its number in a column is at least so many times FedAvg's.

  It is judged by the points that it is beyond that, seed by seed: a ratio to a handful of clients swings, and there is none to nobody.
  Where both have 0 nothing can be told (nan).
  """

  def beyond(r: Ours) -> list[float]:
    both = zip(r.windows[column], r.baseline_windows[column], strict=True)
    return [ours - limit * theirs if ours or theirs else math.nan for ours, theirs in both]

  def show(value: float) -> str:
    return f'{claims.show_points(value)} beyond {limit:g} times FedAvg’s'

  return each(rows, beyond, -_SLACK, show=show)


def in_columns(
  columns: Iterable[str],
  rows: Sequence[Row],
  quantity: Callable[[str], Read],
  low: float = -math.inf,
  high: float = math.inf,
  show: Callable[[float], str] = claims.show_points,
) -> tuple[Part, ...]:
  """Returns a part a row and column."""
  return tuple(part for c in columns for part in each(rows, quantity(c), low, high, show, WORDS[c]))


WORDS: Mapping[str, str] = {
  'accuracy_after': 'accuracy after the clustering',
  'accuracy_end': 'accuracy at the end',
  'share_after': 'clients after the clustering',
  'share_end': 'clients at the end',
}


def split(rows: Iterable[Row], wanted: bool) -> tuple[Part, ...]:
  """Returns a part a row: it has several clusters, or one."""
  return tuple(
    claims.answer(r.name, lambda ours: [(n > 1) is wanted for n in ours.num_clusters]) for r in rows
  )


def groups_found(rows: Iterable[Row], truth: str) -> tuple[Part, ...]:
  """Returns a part a row: it finds the planted groups exactly."""
  return tuple(claims.answer(r.name, claims.are_groups(truth)) for r in rows)


def difference(
  name: str, high: Sequence[Row], low: Sequence[Row], read: Read, margin: float = base.SAME
) -> Part:
  """Returns the part that some rows have more than others on average, by a margin."""
  names = [row.name for row in (*high, *low)]
  return claims.above(name, names, mean(high, read), mean(low, read), margin)


def mean(rows: Sequence[Row], read: Read) -> Reading:
  """Returns the mean over rows, seed by seed."""
  return claims.combined(lambda *values: float(np.mean(values)), [claims.of(r.name, read) for r in rows])


def matched(
  rows: Sequence[Row], key: Callable[[Row], Hashable], side: Callable[[Row], bool | None], read: Read
) -> tuple[Part, ...]:
  """Returns a part for each group of rows that match and has both sides: one has more than the other (None: neither side)."""
  parts = []
  for name, members in by_key(rows, key).items():
    high, low = ([r for r in members if side(r) is wanted] for wanted in (True, False))
    if high and low:
      parts.append(difference(str(name), high, low, read))
  return tuple(parts)


def on_average(
  name: str,
  rows: Sequence[Row],
  key: Callable[[Row], Hashable],
  side: Callable[[Row], bool | None],
  read: Read,
  margin: float = base.SAME,
  show: Callable[[float], str] = claims.show_points,
) -> Part:
  """Returns the part that `matched` holds on average over the groups."""
  parts = matched(rows, key, side, read)
  names = dict.fromkeys(row for part in parts for row in part.rows)
  averaged = claims.combined(lambda *values: float(np.mean(values)), [part.read for part in parts])
  return Part(name, tuple(names), averaged, low=margin, show=show)


def alike(pairs: Iterable[tuple[Row, Row]], read: Read, margin: float, name: str = '') -> tuple[Part, ...]:
  """Returns a part a pair of rows: they are practically the same; it has no number where they are one training."""
  return tuple(
    between_trainings(
      claims.same(
        ' and '.join((a.name, b.name)) + (f', {name}' if name else ''), (a.name, b.name),
        claims.of(a.name, read), claims.of(b.name, read), margin,
      ), (a,), (b,),
    )
    for a, b in pairs
  )  # fmt: skip


def best(
  chosen: Row,
  others: Iterable[Row],
  read: Read,
  tie: float,
  show: Callable[[float], str] = claims.show_points,
) -> tuple[Part, ...]:
  """Returns a part for each other row: the chosen one has more; what is nearer than `tie` counts as equal."""
  return tuple(
    claims.compared(chosen.name, read, against=other.name, margin=-tie, show=show) for other in others
  )


def metric_order(
  rows: Sequence[Row], read: Read, *order: Sequence[str], margin: float = base.SAME, name: str = ''
) -> tuple[Part, ...]:
  """Returns parts: over the linkages that all metrics have, each metric of one place is above each of the next; no number for one training."""
  by_metric = base.by_metric(rows)
  return tuple(
    between_trainings(
      difference(
        f'{METRIC_NAMES[high]} against {METRIC_NAMES[low]}' + (f', {name}' if name else ''),
        by_metric[high], by_metric[low], read, margin,
      ), by_metric[high], by_metric[low],
    )
    for i, better in enumerate(order[:-1])
    for high in better
    for low in order[i + 1]
  )  # fmt: skip


def linkage_below_metric(rows: Sequence[Row], read: Read, margin: float) -> Part:
  """Returns the part that metrics, in their means, lie further apart than linkages of a metric do, on average over metrics."""
  groups = list(base.by_metric(rows).values())
  between = claims.combined(lambda *means: max(means) - min(means), [mean(group, read) for group in groups])
  spreads = [
    claims.combined(lambda *values: max(values) - min(values), [claims.of(r.name, read) for r in group])
    for group in groups
  ]
  within = claims.combined(lambda *values: float(np.mean(values)), spreads)
  compared = [row for group in groups for row in group]
  part = claims.above('between metrics', [row.name for row in compared], between, within, margin)
  return between_trainings(part, *((row,) for row in compared))


def between_trainings(part: Part, *sides: Sequence[Row]) -> Part:
  """Returns the part without a number (nan) where its sides are the same trainings: they found the same clusters, and nothing can differ."""

  def by_seed(rows: Rows) -> Mapping[int, float]:
    def trained(seed: int) -> list[list[str]]:
      return [sorted(rows[row.name].trained('clusters', seed) or row.name for row in side) for side in sides]

    def differ(first: list[str], *others: list[str]) -> bool:
      return any(each != first for each in others)

    return {seed: value if differ(*trained(seed)) else math.nan for seed, value in part.read(rows).items()}

  return dataclasses.replace(part, read=by_seed)


def one_training(parts: Sequence[Part]) -> Callable[[Rows], str]:
  """Returns what says of parts that none of them is between trainings."""

  def reason(rows: Rows) -> str:
    told = (part for part in parts if all(name in rows for name in part.rows))
    values = [value for part in told for value in part.read(rows).values()]
    return (
      'all rows that are compared found the same clusters and are one training'
      if all(map(math.isnan, values))
      else ''
    )

  return reason
