"""What a comparison shows, as checks that can fail.

Which difference is a verdict says scorecard/paired_verdicts.py: six seeds at least, and Holm's correction over all methods that are
judged against FedAvg, or over all pairs of the matrix, at one budget. That one clustering beats every other one is a test of
its own, see paired_verdicts.beats_all. Planted groups are no method to choose: they are judged by
themselves, and make no verdict on a method harder. What is expected follows from what was planted, never from results:
overlapping clusters should win where groups overlap, and must not where they do not. That overlap beats disjoint clusters is
asked of the two that validation rows choose, since a pair that is chosen by what it is judged on flatters itself.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from tff_cluster.base.grouping import by_key
from tff_cluster.base.words import percent, plural, points, series
from tff_cluster.data.population import MALICIOUS
from tff_cluster.scorecard import paired_verdicts
from tff_cluster.scorecard.claims import FAILS, HOLDS, Finding
from tff_cluster.scorecard.contenders import BUDGETS, ROUNDS, Runs
from tff_cluster.scorecard.paired_statistics import Difference, Pair, Statistics
from tff_cluster.scorecard.paired_verdicts import EQUIVALENT, HARMS, HELPS, UNDECIDED
from tff_cluster.scorecard.verdicts import NOT_RUN

# Clients of these partitions are alike but for their number of rows.
_ALIKE = ('iid', 'quantity_skew')
# Of the statement that one contender beats another one.
OF_VERDICT = {HELPS: HOLDS, HARMS: FAILS, EQUIVALENT: FAILS}
_OPPOSITE = {HOLDS: FAILS, FAILS: HOLDS}
_Rule = Callable[[Statistics, str], Finding]
_Name = TypeVar('_Name', str, tuple[str, str])


@dataclasses.dataclass(frozen=True)
class Check:
  """A statement, and how it fared.

  Attributes:
    words: What is stated.
    kind: 'expected' (of what was planted), 'overlap' (overlap beats disjoint), 'helps' (a clustering against FedAvg),
      'dial' (the overlap dial beats disjoint) or 'new clients' (they against FedAvg's).
    budgets: Those that it is about, keys of contenders.BUDGETS: both, where both have the same finding.
    finding: The verdict, our numbers and a note. Of a statement it is one of claims.VERDICTS, of a contender against FedAvg one
      of paired_verdicts; with fewer than six seeds it is their number.
  """

  words: str
  kind: str
  budgets: tuple[str, ...]
  finding: Finding


def of_gains(statistics: Statistics, budget: str) -> dict[str, str]:
  """Returns the verdict (paired_verdicts.judge) of every clustering against FedAvg, by name."""
  return of_families(gain_families(statistics, budget))


def of_pairs(statistics: Statistics, budget: str) -> dict[tuple[str, str], str]:
  """Returns the verdict of every pair of the matrix, by the names of its row and column."""
  return of_families(_pair_families(statistics, budget))


def gain_families(statistics: Statistics, budget: str) -> tuple[dict[str, Difference], ...]:
  """Returns the gains over FedAvg that are judged together, by name: those of all methods, and those of planted groups."""
  clusterings = [s for s in statistics.summaries[budget] if s.is_clustering]
  return tuple(
    {s.name: s.gain for s in clusterings if (s.kind == 'oracle') == planted} for planted in (False, True)
  )


def _pair_families(statistics: Statistics, budget: str) -> tuple[dict[tuple[str, str], Difference], ...]:
  """Returns the pairs that are judged together: those with methods, and those with what is nothing but planted groups."""
  return tuple(
    {
      (pair.overlapping, pair.other): pair.difference
      for pair in statistics.pairs[budget]
      if (set(pair.other_kinds) == {'oracle'}) == planted
    }
    for planted in (False, True)
  )


def of_families(families: Sequence[dict[_Name, Difference]]) -> dict[_Name, str]:
  """Returns the verdict of every difference by its name, corrected for all of its family (paired_verdicts.judge)."""
  return {
    name: verdict
    for family in families
    for name, verdict in zip(family, paired_verdicts.judge(list(family.values())), strict=True)
  }


def _size(families: Sequence[dict[_Name, Difference]], name: _Name) -> int:
  """Returns how many are judged together with one of them, itself included."""
  return next(len(family) for family in families if name in family)


def planted_form(runs: Runs) -> str:
  """Returns 'overlapping', 'disjoint' or 'one' for the planted groups, 'unknown' where nothing is known of groups.

  Of several planted groupings one that overlaps makes them overlapping. Clients that are alike are one group; labels
  that are skewed within one group, or in no group, leave open what clusters could find.
  """
  planted = [item for _, results in runs for item in results.population.truths.items()]
  truths = [np.asarray(truth) > 0 for name, truth in planted if name != MALICIOUS]
  several = [truth for truth in truths if len(truth) > 1]
  if any((truth.sum(axis=0) > 1).any() for truth in several):
    return 'overlapping'
  if several:
    return 'disjoint'
  data = runs[0][1].config.data
  skewed = data.label_skew is not None
  return 'one' if not skewed and (truths or data.partition in _ALIKE) else 'unknown'


def make_checks(statistics: Statistics, form: str) -> list[Check]:
  """Returns what is expected of the planted groups, whether overlap beats disjoint, and which clusterings help.

  Args:
    statistics: All numbers.
    form: Of the planted groups, see `planted_form`.
  """
  checks: list[Check] = []
  for words, expected in _EXPECTED[form]:
    checks += _at_budgets(words, 'expected', expected, statistics)
  checks += _at_budgets('Overlap beats disjoint', 'overlap', _overlap, statistics)
  for summary in statistics.summaries[ROUNDS]:
    if summary.is_clustering:
      checks += _at_budgets(f'{summary.name} against FedAvg', 'helps', _helps(summary.name), statistics)
  return checks


def _at_budgets(words: str, kind: str, rule: _Rule, statistics: Statistics) -> Iterator[Check]:
  found = {budget: rule(statistics, budget) for budget in statistics.summaries}
  if len(set(found.values())) == 1:
    named = ' and at '.join(BUDGETS[budget] for budget in found)
    yield Check(f'{words}, at {named}', kind, tuple(found), found[ROUNDS])
    return
  for budget, finding in found.items():
    yield Check(f'{words}, at {BUDGETS[budget]}', kind, (budget,), finding)


def _helps(name: str) -> _Rule:
  def rule(statistics: Statistics, budget: str) -> Finding:
    found, fedavg = statistics.summary(name, budget), statistics.summaries[budget][0]
    verdicts = of_gains(statistics, budget)
    note = (
      f'{percent(found.gain.harmed)} of the clients are worse off than with FedAvg, the worst tenth '
      f'{points(found.worst_decile - fedavg.worst_decile)}'
    )
    together = _size(gain_families(statistics, budget), name)
    return Finding(verdicts[name], found.gain.words, _together(note, together, 'clusterings'))

  return rule


def _together(note: str, count: int, whom: str) -> str:
  """Returns a note with how many were judged together; one alone needs no correction."""
  return f'{note}; Holm over {count} {whom}' if count > 1 else note


def _overlap(statistics: Statistics, budget: str) -> Finding:
  found = statistics.chosen[budget]
  if found is None:
    has_any = any(summary.kind == 'overlapping' for summary in statistics.summaries[budget])
    return _missing('disjoint' if has_any else 'overlapping')
  (verdict,) = paired_verdicts.judge([found.difference])
  note = (
    f'{found.overlapping.name} against {found.disjoint.name}, chosen on validation rows under each seed: {percent(found.difference.harmed)} '
    f'of the clients are worse off, the worst tenth {points(found.overlapping.worst_decile - found.disjoint.worst_decile)}'
  )
  return _beats(verdict, found.difference, note)


def _beats(verdict: str, difference: Difference, note: str) -> Finding:
  """Returns how a statement fares that one contender beats another one."""
  same = f', practically the same (within {paired_verdicts.WITHIN})' if verdict == EQUIVALENT else ''
  return Finding(OF_VERDICT.get(verdict, verdict), difference.words, note + same)


def _missing(kind: str) -> Finding:
  return Finding(NOT_RUN, '–', f'these runs have no {kind} clustering')


def _against(statistics: Statistics, budget: str, kind: str) -> dict[str, list[Pair]]:
  """Returns the pairs with contenders of a kind by overlapping one; empty where either is missing."""
  pairs = (pair for pair in statistics.pairs[budget] if kind in pair.other_kinds)
  return by_key(pairs, lambda pair: pair.overlapping)


def _some_beats_every(kind: str) -> _Rule:
  """Returns the rule that some overlapping clustering beats every one of a kind: it fails where each loses to or equals one."""

  def rule(statistics: Statistics, budget: str) -> Finding:
    found = _against(statistics, budget, kind)
    if not found:
      has_any = any(summary.kind == 'overlapping' for summary in statistics.summaries[budget])
      return _missing(('planted' if kind == 'oracle' else kind) if has_any else 'overlapping')
    differences = [[pair.difference for pair in pairs] for pairs in found.values()]
    judged = dict(zip(found, paired_verdicts.beats_all(differences), strict=True))
    lowest = {name: min(pairs, key=_mean) for name, pairs in found.items()}
    # The winner, or of those that win against nobody the one that comes nearest to it.
    name = max(found, key=lambda name: (judged[name] == HOLDS, _mean(lowest[name])))
    each, nearest = set(judged.values()), lowest[name]
    verdict = judged[name] if judged[name] == HOLDS or len(each) == 1 else UNDECIDED
    note = f'{name} against {nearest.other}, the nearest'
    return Finding(verdict, nearest.difference.words, _together(note, len(found), 'overlapping clusterings'))

  return rule


def _mean(pair: Pair) -> float:
  return pair.difference.interval.mean


def _not(rule: _Rule) -> _Rule:
  def opposite(statistics: Statistics, budget: str) -> Finding:
    found = rule(statistics, budget)
    return dataclasses.replace(found, verdict=_OPPOSITE.get(found.verdict, found.verdict))

  return opposite


def _none_beats_fedavg(statistics: Statistics, budget: str) -> Finding:
  """Holds where every clustering harms or is practically the same: that a win is not shown does not show that there is none."""
  verdicts, (methods, _) = of_gains(statistics, budget), gain_families(statistics, budget)
  if not verdicts:
    return Finding(NOT_RUN, '–', 'these runs have no clustering')
  highest = max(verdicts, key=lambda name: statistics.summary(name, budget).gain.interval.mean)
  gain, above = statistics.summary(highest, budget).gain, [n for n, v in verdicts.items() if v == HELPS]
  if few := paired_verdicts.too_few(len(statistics.seeds)):
    verdict = few
  else:
    verdict = FAILS if above else HOLDS if UNDECIDED not in verdicts.values() else UNDECIDED
  note = series(above) or f'{highest} has the highest of {plural(len(verdicts), "clustering")}'
  return Finding(verdict, gain.words, _together(note, len(methods), 'clusterings'))


_BEATS_DISJOINT = _some_beats_every('disjoint')
_EXPECTED: dict[str, list[tuple[str, _Rule]]] = {
  'overlapping': [
    ('The planted groups overlap, so an overlapping clustering beats every disjoint one', _BEATS_DISJOINT)
  ],
  'disjoint': [
    (
      'The planted groups are disjoint, so no overlapping clustering beats them',
      _not(_some_beats_every('oracle')),
    ),
    (
      'The planted groups are disjoint, so no overlapping clustering beats every disjoint one',
      _not(_BEATS_DISJOINT),
    ),
  ],
  'one': [('There are no groups to find, so no clustering beats FedAvg', _none_beats_fedavg)],
  'unknown': [],
}
