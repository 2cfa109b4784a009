"""What a comparison shows, as checks that can fail.

A difference counts where its interval excludes zero. What is expected follows from what was planted, never from results:
overlapping clusters should win where groups overlap, and must not where they do not.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tff_cluster.base.words import percent, series
from tff_cluster.scorecard.claims import Finding
from tff_cluster.scorecard.contenders import BUDGETS, ROUNDS, Runs
from tff_cluster.scorecard.paired_statistics import Difference, Pair, Statistics

# Clients of these partitions are alike but for their number of rows.
_ALIKE = ('iid', 'quantity_skew')
_OF_SIDE = {'above': 'holds', 'unclear': 'undecided', 'below': 'fails'}
_BY_CHANCE = 'of differences that are zero, one in forty has an interval above zero by chance'
_Rule = Callable[[Statistics, str], Finding]


@dataclasses.dataclass(frozen=True)
class Check:
  """A statement, and how it fared.

  Attributes:
    words: What is stated.
    kind: 'expected' (of what was planted), 'overlap' (overlap beats disjoint), 'helps' (a clustering beats FedAvg),
      'dial' (the overlap dial beats disjoint) or 'new clients' (it beats FedAvg for clients that took no part).
    budgets: Those that it is about, keys of contenders.BUDGETS: both, where both have the same finding.
    finding: The verdict, our numbers and a note.
  """

  words: str
  kind: str
  budgets: tuple[str, ...]
  finding: Finding


def planted_form(runs: Runs) -> str:
  """Returns 'overlapping', 'disjoint' or 'one' for the planted groups, 'unknown' where nothing is known of groups.

  Of several planted groupings one that overlaps makes them overlapping. Clients that are alike are one group; labels
  that are skewed within one group, or in no group, leave open what clusters could find.
  """
  truths = [np.asarray(t) > 0 for _, results in runs for t in results.population.truths.values()]
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
      checks += _at_budgets(f'{summary.name} beats FedAvg', 'helps', _helps(summary.name), statistics)
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
    gain = statistics.summary(name, budget).gain
    note = f'{percent(gain.harmed)} of the clients are worse off than with FedAvg'
    return Finding(_OF_SIDE[gain.side], gain.words, note)

  return rule


def _overlap(statistics: Statistics, budget: str) -> Finding:
  overlapping, disjoint = (statistics.best(kind, budget) for kind in ('overlapping', 'disjoint'))
  if overlapping is None or disjoint is None:
    return _missing('overlapping' if overlapping is None else 'disjoint')
  difference = statistics.pair(overlapping.name, disjoint.name, budget).difference
  note = f'{overlapping.name} against {disjoint.name}: of each kind the one with the highest mean, chosen by what it is judged on'
  return Finding(_OF_SIDE[difference.side], difference.words, note)


def _missing(kind: str) -> Finding:
  return Finding('not run', '–', f'these runs have no {kind} clustering')


def _against_disjoint(statistics: Statistics, budget: str) -> dict[str, list[Pair]]:
  """Returns the pairs with disjoint clusterings by overlapping one; empty where either is missing."""
  found: dict[str, list[Pair]] = {}
  for pair in statistics.pairs[budget]:
    if 'disjoint' in pair.other_kinds:
      found.setdefault(pair.overlapping, []).append(pair)
  return found


def _beats_every_disjoint(statistics: Statistics, budget: str) -> Finding:
  best, found = statistics.best('overlapping', budget), _against_disjoint(statistics, budget)
  if best is None or not found:
    return _missing('overlapping' if best is None else 'disjoint')
  sides = [pair.difference.side for pair in found[best.name]]
  verdict = 'fails' if 'below' in sides else 'undecided' if 'unclear' in sides else 'holds'
  nearest = _nearest(found[best.name])
  return Finding(verdict, nearest.difference.words, f'{best.name} against {nearest.other}, the nearest')


def _nearest(pairs: Sequence[Pair]) -> Pair:
  """Returns the pair that decides whether one clustering beats all others: one that is not won, where there is any."""
  not_won = [pair for pair in pairs if pair.difference.side != 'above']
  return min(not_won or pairs, key=lambda pair: pair.difference.interval.mean)


def _none_beats_oracle(statistics: Statistics, budget: str) -> Finding:
  pairs = [pair for pair in statistics.pairs[budget] if 'oracle' in pair.other_kinds]
  if not pairs:
    has_oracle = any('oracle' in summary.kinds for summary in statistics.summaries[budget])
    return _missing('overlapping' if has_oracle else 'planted')
  named = [(f'{pair.overlapping} against {pair.other}', pair.difference) for pair in pairs]
  return _none_above(named)


def _none_beats_every_disjoint(statistics: Statistics, budget: str) -> Finding:
  found = _against_disjoint(statistics, budget)
  if not found:
    lacking = statistics.best('overlapping', budget) is None
    return _missing('overlapping' if lacking else 'disjoint')
  nearest = [_nearest(pairs) for pairs in found.values()]
  return _none_above([(f'{pair.overlapping} against {pair.other}', pair.difference) for pair in nearest])


def _none_beats_fedavg(statistics: Statistics, budget: str) -> Finding:
  named = [(summary.name, summary.gain) for summary in statistics.summaries[budget] if summary.is_clustering]
  return _none_above(named) if named else Finding('not run', '–', 'these runs have no clustering')


def _none_above(named: Sequence[tuple[str, Difference]]) -> Finding:
  """Returns 'fails' where an interval is above zero; one that holds zero shows no win."""
  name, highest = max(named, key=lambda entry: entry[1].interval.mean)
  if any(difference.interval.low is None for _, difference in named):
    return Finding('undecided', highest.words, f'{name}; one client has no interval')
  above = [name for name, difference in named if difference.side == 'above']
  if above:
    return Finding('fails', highest.words, f'{series(above)}; {_BY_CHANCE}')
  return Finding(
    'holds',
    highest.words,
    f'{name} has the highest of {len(named)}; an interval that holds zero is no win',
  )


_EXPECTED: dict[str, list[tuple[str, _Rule]]] = {
  'overlapping': [
    (
      'The planted groups overlap, so the best overlapping clustering beats every disjoint one',
      _beats_every_disjoint,
    )
  ],
  'disjoint': [
    ('The planted groups are disjoint, so no overlapping clustering beats them', _none_beats_oracle),
    (
      'The planted groups are disjoint, so no overlapping clustering beats every disjoint one',
      _none_beats_every_disjoint,
    ),
  ],
  'one': [('There are no groups to find, so no clustering beats FedAvg', _none_beats_fedavg)],
  'unknown': [],
}
