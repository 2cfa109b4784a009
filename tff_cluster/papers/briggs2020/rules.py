"""Rules that claims about the tables of FL+HC are made of: what is looked at in a row, and what must hold over rows.

A rule takes our rows by name and returns a Finding whose numbers a reader can check the verdict on. Everything
is judged on means over seeds, except numbers of clusters and planted groups, which must be so in every seed.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

from tff_cluster.base.words import decimals_for, plural, score, series, signed
from tff_cluster.scorecard.claims import Finding, judged
from tff_cluster.scorecard.rows import Ours, Row

Rows = Mapping[str, Ours]
Rule = Callable[[Rows], Finding]
_SLACK = 1e-9  # Keeps what is exactly at a limit from failing by rounding of binary fractions.
_NAMED = 4  # Rows against a claim that are named; the others are counted.
METRIC_NAMES: Mapping[Hashable, str] = {'cosine': 'cosine', 'l2': 'L2', 'l1': 'L1'}


@dataclasses.dataclass(frozen=True)
class Quantity:
  """What is looked at in a row: the number, and how it is printed.

  Attributes:
    of: The number.
    show: Prints it with so many decimals.
    decimals: The fewest; more where a rounded number would be judged otherwise.
  """

  of: Callable[[Ours], float]
  show: Callable[[float, int], str]
  decimals: int = 2

  def shown(self, values: Sequence[float], verdict: Callable[..., object]) -> list[str]:
    """Returns the values so that the verdict on them is that on what is printed, see words.decimals_for."""
    finite = [value for value in values if math.isfinite(value)]
    whole = len(finite) == len(values)
    decimals = decimals_for(values, verdict, self.decimals) if whole else self.decimals
    return [self.show(value, decimals) for value in values]


def show_percent(value: float, decimals: int) -> str:
  return f'{value:.{decimals}f}%'


def show_points(value: float, decimals: int = 2) -> str:
  return f'{signed(value, decimals)} points'


def show_ratio(value: float, decimals: int) -> str:
  return 'FedAvg has none' if math.isinf(value) else f'{value:.{decimals}f}x'


def level(column: str) -> Quantity:
  """Percent in a column."""
  return Quantity(lambda r: r.percent[column], show_percent)


def baseline_level(column: str) -> Quantity:
  """Percent of FedAvg without clusters in a column."""
  return Quantity(lambda r: r.baseline[column], show_percent)


def gain(column: str) -> Quantity:
  """Points above FedAvg in a column."""
  return Quantity(lambda r: r.percent[column] - r.baseline[column], show_points)


def ratio(column: str) -> Quantity:
  """Ratio to FedAvg in a column; infinite where only FedAvg has 0, and 1 where both have."""

  def of(r: Ours) -> float:
    ours, theirs = r.percent[column], r.baseline[column]
    return ours / theirs if theirs else math.inf if ours else 1.0

  return Quantity(of, show_ratio, 1)


FEWEST_CLUSTERS = Quantity(lambda r: min(r.num_clusters), lambda v, _: plural(int(v), 'cluster'))
MOST_CLUSTERS = Quantity(lambda r: max(r.num_clusters), lambda v, _: plural(int(v), 'cluster'))


def lead_in_every_round() -> Quantity:
  """Points by which the share of clients at the target is above FedAvg's, in the round where that is least."""

  def of(r: Ours) -> float:
    return min(share - r.baseline_share_curve[number] for number, share in r.share_curve.items())

  return Quantity(of, show_points)


def settling_ratio(within: float) -> Quantity:
  """Rounds until the accuracy stays within so many points of its last value, divided by FedAvg's."""

  def of(r: Ours) -> float:
    return _settled(r.accuracy_curve, within) / _settled(r.baseline_curve, within)

  return Quantity(of, lambda v, decimals: f'{v:.{decimals}f} times the rounds')


def _settled(curve: Mapping[int, float], within: float) -> int:
  rounds = sorted(curve)
  last = curve[rounds[-1]]
  outside = [number for number in rounds if abs(curve[number] - last) > within + _SLACK]
  return rounds[rounds.index(outside[-1]) + 1] if outside else rounds[0]


def above(limit: float) -> Callable[[float], bool]:
  return lambda v: v > limit + _SLACK


def below(limit: float) -> Callable[[float], bool]:
  return lambda v: v < limit - _SLACK


def at_least(limit: float) -> Callable[[float], bool]:
  return lambda v: v >= limit - _SLACK


def at_most(limit: float) -> Callable[[float], bool]:
  return lambda v: v <= limit + _SLACK


def between(low: float, high: float) -> Callable[[float], bool]:
  return lambda v: low - _SLACK <= v <= high + _SLACK


def both(one: Callable[[float], bool], other: Callable[[float], bool]) -> Callable[[float], bool]:
  return lambda v: one(v) and other(v)


def prints_between(low: float, high: float = math.inf) -> Callable[[float], bool]:
  """Whether a ratio is in a range when rounded to a tenth, as the paper prints ratios and judges them."""
  return lambda v: between(low, high)(float(f'{v:.1f}'))


def every(quantity: Quantity, test: Callable[[float], bool]) -> Rule:
  """All rows pass."""
  return _counted(quantity, test, lambda passed, rows: passed == rows)


def most(quantity: Quantity, test: Callable[[float], bool]) -> Rule:
  """More than half of the rows pass."""
  return _counted(quantity, test, lambda passed, rows: 2 * passed > rows)


def some(quantity: Quantity, test: Callable[[float], bool]) -> Rule:
  """At least one row passes."""
  return _counted(quantity, test, lambda passed, rows: passed > 0)


def all_of(*rules: Rule) -> Rule:
  """Holds where all rules hold."""

  def rule(rows: Rows) -> Finding:
    findings = [one(rows) for one in rules]
    note = '; '.join(dict.fromkeys(f.note for f in findings if f.note))
    return judged(all(f.verdict == 'holds' for f in findings), '; '.join(f.ours for f in findings), note)

  return rule


def in_columns(
  columns: Iterable[str],
  rule: Callable[[Quantity, Callable[[float], bool]], Rule],
  quantity: Callable[[str], Quantity],
  test: Callable[[float], bool],
) -> Rule:
  """Holds where a rule holds of a quantity in all columns."""
  return all_of(*(rule(quantity(column), test) for column in columns))


def compare(
  quantity: Quantity,
  matched: Callable[[Row], Hashable],
  side: Callable[[Row], bool | None],
  each: bool,
) -> Rule:
  """Rows on one side have more than those on the other that match them.

  Args:
    quantity: What is compared, in percent or points.
    matched: Only rows for which this is the same are compared.
    side: True: has more; False: has less; None: takes no part.
    each: Whether this must be so for each match of means, or on average over matches.
  """

  def rule(rows: Rows) -> Finding:
    differences = {}
    for key, members in _groups(rows, matched).items():
      sides: dict[bool, list[float]] = {True: [], False: []}
      for r in members:
        which = side(r.row)
        if which is not None:
          sides[which].append(quantity.of(r))
      differences[key] = _mean(sides[True]) - _mean(sides[False])
    if not each:
      mean = _mean(differences.values())
      (told,) = _POINTS.shown([mean], above(0.0))
      return judged(above(0.0)(mean), f'{told} on average')
    each_one = list(differences.values())
    return judged(all(map(above(0.0), each_one)), _range(each_one, _POINTS, above(0.0)))

  return rule


def largest(
  quantity: Quantity, matched: Callable[[Row], Hashable], chosen: Callable[[Row], bool], tie: float
) -> Rule:
  """Among rows that match, a chosen one has the most; what is nearer than `tie` counts as the same."""

  def rule(rows: Rows) -> Finding:
    against, ours = [], []
    for members in _groups(rows, matched).values():
      best = max((r for r in members if chosen(r.row)), key=quantity.of)
      other = max((r for r in members if not chosen(r.row)), key=quantity.of)
      pair = (quantity.of(best), quantity.of(other))
      ours.append(' and '.join(quantity.shown(pair, lambda a, b: b > a + tie + _SLACK)))
      if pair[1] > pair[0] + tie + _SLACK:
        against.append(f'{other.row.name} exceeds {best.row.name}')
    return judged(not against, '; '.join(ours), '; '.join(against))

  return rule


def best_row(quantity: Quantity, names: Collection[str]) -> Rule:
  """No row has more than the best of these."""

  def rule(rows: Rows) -> Finding:
    top = max(quantity.of(r) for r in rows.values())
    winners = [name for name, r in rows.items() if quantity.of(r) >= top - _SLACK]
    others = [quantity.of(r) for name, r in rows.items() if name not in winners]
    told, *rest = quantity.shown([top, *([max(others)] if others else [])], lambda a, *b: [a > c for c in b])
    note = f'the next has {rest[0]}' if rest else ''
    return judged(bool(set(winners) & set(names)), f'{" and ".join(winners)}: {told}', note)

  return rule


def metric_order(quantity: Quantity, *order: Sequence[str]) -> Rule:
  """Means over linkages: every metric of one place is above every metric of the next; rows are complete over metrics."""

  def rule(rows: Rows) -> Finding:
    means = _metric_means(rows, quantity)
    holds = all(
      min(means[m] for m in better) > max(means[m] for m in worse) + _SLACK
      for better, worse in itertools.pairwise(order)
    )
    ranked = sorted(means, key=lambda m: -means[m])
    told = quantity.shown([means[m] for m in ranked], lambda *v: [a > b for a, b in itertools.pairwise(v)])
    return judged(
      holds,
      ', '.join(f'{METRIC_NAMES[m]} {shown}' for m, shown in zip(ranked, told, strict=True)),
      f'means over {_linkages(rows)}',
    )

  return rule


def spread(
  quantity: Quantity, matched: Callable[[Row], Hashable], limit: float, name: Callable[[Hashable], str] = str
) -> Rule:
  """Rows that match lie within so many points of each other."""

  def rule(rows: Rows) -> Finding:
    spreads = {key: _spread(members, quantity) for key, members in _groups(rows, matched).items()}
    worst = max(spreads, key=lambda key: spreads[key])
    decimals = decimals_for([spreads[worst]], at_most(limit), 2)
    ours = f'{spreads[worst]:.{decimals}f} points at most ({name(worst)})'
    return judged(at_most(limit)(spreads[worst]), ours)

  return rule


def linkage_below_metric(quantity: Quantity) -> Rule:
  """Linkages of one metric lie nearer together, on average over metrics, than the means of the metrics do."""

  def rule(rows: Rows) -> Finding:
    by_metric = _groups(rows, lambda row: row.clustering['metric'])
    linkage = _mean(_spread(members, quantity) for members in by_metric.values())
    means = _metric_means(rows, quantity).values()
    metric = max(means) - min(means)
    decimals = decimals_for([linkage, metric], lambda a, b: a < b - _SLACK, 2)
    ours = f'{linkage:.{decimals}f} points between linkages, {metric:.{decimals}f} between metrics'
    return judged(linkage < metric - _SLACK, ours, f'over {_linkages(rows)}')

  return rule


def groups_found(truth: str) -> Rule:
  """Every row finds the planted groups exactly, in every seed."""

  def rule(rows: Rows) -> Finding:
    if not all(r.recovery.get(truth) for r in rows.values()):
      return Finding('not run', '–', f'these runs know no planted groups called {truth!r}')
    worst = {name: min(a if a is not None else -1.0 for a in r.recovery[truth]) for name, r in rows.items()}
    least = Quantity(lambda r: worst[r.row.name], lambda v, _: f'ARI {score(v)}')
    return every(least, at_least(1.0))(rows)

  return rule


def rounds_saved(factor: int) -> Rule:
  """FedAvg needs `factor` times the rounds to reach what is reached right after the clustering.

  A run in which it never does must have been long enough to tell: `factor` times the rounds before the clustering,
  as the paper's 50 rounds are with n = 10.
  """

  def rule(rows: Rows) -> Finding:
    verdicts, ours = [], []
    for name, r in rows.items():
      target = r.percent['accuracy_after']
      reached = [number for number, a in r.baseline_curve.items() if a >= target - _SLACK]
      if reached:
        verdicts.append('holds' if min(reached) >= factor * r.rounds_after else 'fails')
        ours.append(f'{name}: round {r.rounds_after} against {min(reached)}')
      else:
        verdicts.append('holds' if r.rounds_end >= factor * (r.rounds_after - 1) else 'undecided')
        ours.append(f'{name}: round {r.rounds_after} against none of {r.rounds_end}')
    verdict = next((v for v in ('fails', 'undecided') if v in verdicts), 'holds')
    note = 'too few rounds were run to tell' if verdict == 'undecided' else ''
    return Finding(verdict, '; '.join(ours), note)

  return rule


def _counted(quantity: Quantity, test: Callable[[float], bool], enough: Callable[[int, int], bool]) -> Rule:
  def rule(rows: Rows) -> Finding:
    values = {name: quantity.of(r) for name, r in rows.items()}
    against = [name for name, v in values.items() if not test(v)]
    told = dict(zip(values, quantity.shown(list(values.values()), _each(test)), strict=True))
    shown = [f'{name} ({told[name]})' for name in against[:_NAMED]]
    if len(against) > _NAMED:
      shown.append(f'{len(against) - _NAMED} more')
    holds = enough(len(rows) - len(against), len(rows))
    note = f'not so in {len(against)} of {len(rows)}: {"; ".join(shown)}' if against and len(rows) > 1 else ''
    return judged(holds, _range(list(values.values()), quantity, test), note)

  return rule


def _groups(rows: Rows, key: Callable[[Row], Hashable]) -> dict[Hashable, list[Ours]]:
  found: dict[Hashable, list[Ours]] = {}
  for r in rows.values():
    found.setdefault(key(r.row), []).append(r)
  return found


def _metric_means(rows: Rows, quantity: Quantity) -> dict[str, float]:
  groups = _groups(rows, lambda row: row.clustering['metric'])
  return {str(metric): _mean(quantity.of(r) for r in members) for metric, members in groups.items()}


def _linkages(rows: Rows) -> str:
  found = list(dict.fromkeys(r.row.clustering['linkage'] for r in rows.values()))
  return f'{series(found)} linkage'


def _spread(members: Sequence[Ours], quantity: Quantity) -> float:
  values = [quantity.of(r) for r in members]
  return max(values) - min(values)


def _mean(values: Iterable[float]) -> float:
  found = list(values)
  return math.fsum(found) / len(found)


def _range(values: Sequence[float], quantity: Quantity, test: Callable[[float], bool]) -> str:
  """Returns the lowest and the highest value; where some value fails the test, not both look as if they passed."""
  low, high = quantity.shown([min(values), max(values)], _each(test))
  return low if low == high else f'{low} to {high}'


def _each(test: Callable[[float], bool]) -> Callable[..., object]:
  return lambda *values: [test(value) for value in values]


_POINTS = Quantity(lambda r: math.nan, show_points)
