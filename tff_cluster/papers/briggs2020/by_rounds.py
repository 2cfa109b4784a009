"""Claims of Briggs et al. 2020, section III.A: client fraction and rounds before the clustering (tables I to III)."""

import functools
from collections.abc import Iterable

from tff_cluster.papers.briggs2020 import base, rules
from tff_cluster.scorecard.claims import Claim
from tff_cluster.scorecard.rows import COLUMNS, Row

_SECTION = 'Briggs et al. 2020, section III.A'
_each = functools.partial(base.claim_of_each, _SECTION)
_AT_END = ('accuracy_end', 'share_end')
# What FedAvg can reach where groups swap labels. A pair of MNIST's digits is 19 to 22% of the rows, so what one model
# can reach is up to a point away from that.
_NEVER_MORE, _NEVER_MORE_SLACK = 80.0, 1.0
# Points of accuracy and of clients between client fractions. Table II spreads over 0.3 and 11 at most, which the paper
# calls negligible.
_FRACTION_SPREAD, _FRACTION_SHARE_SPREAD = base.SAME, 12.0
# "Asymptotes much more quickly": in at most half the rounds.
_MUCH_SOONER = 0.5
# "Drastic reduction": at most half of FedAvg's accuracy. The three rows in print are at 0.1, 0.2 and 0.4.
_DRASTIC = 0.5


def table1() -> tuple[Claim, ...]:
  """Returns the claims about table I: pathological non-IID."""
  rows = base.rows_of('fl_hc/table1')
  first = [row for row in rows if _at_first(row)]
  return (
    _each(
      'In every row FL+HC is above FedAvg right after the clustering, in accuracy and in clients at the target',
      'in all results',
      rows,
      rules.in_columns(('accuracy_after', 'share_after'), rules.every, rules.gain, rules.above(0.0)),
    ),
    _each(
      f'In no row FL+HC ends below FedAvg (by {base.PRINTED:g} points or more)',
      'in all results',
      rows,
      rules.every(rules.gain('accuracy_end'), rules.above(-base.PRINTED)),
    ),
    Claim(
      'The gain in accuracy right after the clustering is largest after one round (equal in print counts)',
      _SECTION,
      '1.3x to 1.9x after one round',
      base.pairs(rows, base.fraction, _at_first),
      rules.largest(rules.ratio('accuracy_after'), base.fraction, _at_first, base.PRINTED),
    ),
    _jump(first),
    _each(
      f'The last accuracy remains the same under FL+HC and FedAvg (within {base.SAME:g} point)',
      '1.0x in every row',
      rows,
      rules.every(rules.gain('accuracy_end'), rules.between(-base.SAME, base.SAME)),
    ),
    _sooner(rows),
    _each(
      'At the end, 1.2 to 2.0 times as many clients are at the target as with FedAvg',
      '1.2x to 2.0x',
      rows,
      rules.every(rules.ratio('share_end'), rules.prints_between(1.2, 2.0)),
    ),
    Claim(
      'Client fractions below 1 gain more than 1.0: in accuracy right after the clustering, and in clients at the end',
      _SECTION,
      'in general',
      base.pairs(rows, base.rounds_before, _fewer_clients),
      rules.all_of(
        rules.compare(rules.gain('accuracy_after'), base.rounds_before, _fewer_clients, each=False),
        rules.compare(rules.gain('share_end'), base.rounds_before, _fewer_clients, each=False),
      ),
    ),
    _any_round(rows),
  )


def table2() -> tuple[Claim, ...]:
  """Returns the claims about table II: label-swapped."""
  rows = base.rows_of('fl_hc/table2')
  limits = (_FRACTION_SPREAD, _FRACTION_SPREAD, _FRACTION_SHARE_SPREAD, _FRACTION_SHARE_SPREAD)
  return (
    _each(
      'In every row FL+HC is at least 1.2 times as accurate as FedAvg, right after the clustering and at the end',
      '1.2x to 1.4x',
      rows,
      rules.in_columns(COLUMNS[:2], rules.every, rules.ratio, rules.prints_between(1.2)),
    ),
    _each(
      'The four planted groups are found exactly, in every row (ours adds the index)',
      'expected to find the 4 clusters',
      rows,
      rules.groups_found('group'),
    ),
    _each(
      f'Right after the clustering, accuracy is at most 1 point below FedAvg’s on IID clients ({base.IID_ACCURACY}%)',
      '98.1% to 98.6%',
      rows,
      rules.every(rules.level('accuracy_after'), rules.at_least(base.IID_ACCURACY - 1.0)),
    ),
    _each(
      f'At the end, it is at most {base.NEAR_IID:g} points below {base.IID_ACCURACY}% in more than half of the rows',
      'in most cases',
      rows,
      rules.most(rules.level('accuracy_end'), rules.at_least(base.IID_ACCURACY - base.NEAR_IID)),
    ),
    _ceiling(rows),
    _each(
      'With FedAvg, no client is at the target at the end in more than half of the rows',
      'in most cases 0',
      rows,
      rules.most(rules.baseline_level('share_end'), rules.at_most(0.0)),
    ),
    _each(
      f'FL+HC brings up to 80% of the clients to the target (at least {80 - base.SHARE_NOISE:g}% in some row)',
      '80%',
      rows,
      rules.some(rules.level('share_end'), rules.at_least(80.0 - base.SHARE_NOISE)),
    ),
    Claim(
      'More clients reach the target after 10 rounds before the clustering than after 1, at every client fraction',
      _SECTION,
      'improving with n',
      base.pairs(rows, base.fraction, _long_before),
      rules.all_of(
        *(rules.compare(rules.level(c), base.fraction, _long_before, each=True) for c in COLUMNS[2:]),
      ),
    ),
    Claim(
      f'The client fraction matters little: within {_FRACTION_SPREAD:g} point of accuracy and {_FRACTION_SHARE_SPREAD:g} '
      'points of clients',
      _SECTION,
      'negligible',
      base.pairs(rows, base.rounds_before),
      rules.all_of(
        *(
          rules.spread(rules.level(c), base.rounds_before, limit, lambda before: f'n {before}')
          for c, limit in zip(COLUMNS, limits, strict=True)
        ),
      ),
    ),
    _any_round(rows),
  )


def table3() -> tuple[Claim, ...]:
  """Returns the claims about table III: FEMNIST."""
  rows = base.rows_of('fl_hc/table3')
  return (
    _each(
      'FL+HC ends below FedAvg in more than half of the rows, in accuracy and in clients at the target',
      'slightly negative in most',
      rows,
      rules.in_columns(_AT_END, rules.most, rules.gain, rules.below(0.0)),
    ),
    little(rows),
    _each(
      f'In some row the accuracy falls drastically: at the end at most {_DRASTIC:g} times FedAvg’s',
      '0.1x, 0.2x and 0.4x',
      rows,
      rules.some(rules.ratio('accuracy_end'), rules.at_most(_DRASTIC)),
    ),
    Claim(
      'Accuracy at the end is higher with client fraction 1.0 than with 0.1',
      _SECTION,
      'in general',
      base.pairs(rows, base.rounds_before, _all_clients),
      rules.compare(rules.level('accuracy_end'), base.rounds_before, _all_clients, each=False),
    ),
    Claim(
      'Accuracy at the end is higher after 5 or 10 rounds before the clustering than after 1 or 3',
      _SECTION,
      'seems to be beneficial',
      base.pairs(rows, base.fraction, _late),
      rules.compare(rules.level('accuracy_end'), base.fraction, _late, each=False),
    ),
  )


def figures() -> dict[str, tuple[Claim, ...]]:
  """Returns the claims about the figures of this section, by name."""
  one, two, three, four = (base.rows_of(f'fl_hc/figure{number}') for number in range(1, 5))
  return {
    'fl_hc/figure1': (_jump(one), _sooner(one), _any_round(one)),
    'fl_hc/figure2': (_sooner(two), _any_round(two)),
    'fl_hc/figure3': (_ceiling(three), _any_round(three)),
    'fl_hc/figure4': (little(four),),
  }


def iid() -> tuple[Claim, ...]:
  """Returns the claims about the IID experiments of this section."""
  ward = base.rows_of(
    'fl_hc/iid', lambda row: base.linkage(row) == 'ward' and row.clustering['distance_threshold'] == '3.0'
  )
  first, later = ([row for row in ward if _at_first(row) == wanted] for wanted in (True, False))
  return (
    _each(
      'After more than one round, in more than half of the runs IID clients are not split',
      'one cluster in most',
      later,
      rules.most(rules.MOST_CLUSTERS, rules.at_most(1)),
    ),
    Claim(
      f'After more than one round, FL+HC ends like FedAvg (nearer than {base.PRINTED:g} points)',
      'Briggs et al. 2020, section IV',
      'identical for all but n = 1',
      base.each(later),
      rules.every(rules.gain('accuracy_end'), rules.between(-base.PRINTED, base.PRINTED)),
    ),
    _each(
      'After one round, IID clients are split, whatever the client fraction',
      'clusters were identified',
      first,
      rules.every(rules.FEWEST_CLUSTERS, rules.above(1)),
    ),
    _each(
      f'After one round, the split costs accuracy at the end, but at most {base.SAME:g} point',
      'very slightly reduced',
      first,
      rules.every(rules.gain('accuracy_end'), rules.both(rules.below(0.0), rules.at_least(-base.SAME))),
    ),
    _each(
      f'FedAvg ends at the same accuracy for all client fractions (within {base.SAME:g} point of the paper’s)',
      f'{base.IID_ACCURACY}%',
      ward,
      rules.every(
        rules.baseline_level('accuracy_end'),
        rules.between(base.IID_ACCURACY - base.SAME, base.IID_ACCURACY + base.SAME),
      ),
    ),
  )


def _jump(rows: Iterable[Row]) -> Claim:
  return _each(
    'Clustered after one round, the second round’s accuracy is 1.3 to 1.9 times FedAvg’s',
    '1.3x to 1.9x',
    rows,
    rules.every(rules.ratio('accuracy_after'), rules.prints_between(1.3, 1.9)),
  )


def _sooner(rows: Iterable[Row]) -> Claim:
  return _each(
    f'FL+HC stays within {base.SAME:g} point of its last accuracy from at most {_MUCH_SOONER:g} times the round from which '
    'FedAvg does',
    'asymptotes much more quickly',
    rows,
    rules.every(rules.settling_ratio(base.SAME), rules.at_most(_MUCH_SOONER)),
  )


def _any_round(rows: Iterable[Row]) -> Claim:
  return _each(
    'In every round after the clustering, more clients are at the target than with FedAvg',
    'in any given round',
    rows,
    rules.every(rules.lead_in_every_round(), rules.above(0.0)),
  )


def _ceiling(rows: Iterable[Row]) -> Claim:
  return _each(
    f'FedAvg ends at {_NEVER_MORE:g}% at most (digits are not equally frequent, so up to {_NEVER_MORE + _NEVER_MORE_SLACK:g}% '
    'counts)',
    'at most 80%',
    rows,
    rules.every(rules.baseline_level('accuracy_end'), rules.at_most(_NEVER_MORE + _NEVER_MORE_SLACK)),
  )


def little(rows: Iterable[Row]) -> Claim:
  """Returns the claim that FL+HC has little advantage in these rows, of writers; section III.B says so of all of them."""
  return Claim(
    f'FL+HC gains little at the end: at most {base.SAME:g} point of accuracy and {base.SHARE_NOISE:g} points of clients',
    'Briggs et al. 2020, section III.B',
    'little advantage',
    base.each(rows),
    rules.all_of(
      rules.every(rules.gain('accuracy_end'), rules.at_most(base.SAME)),
      rules.every(rules.gain('share_end'), rules.at_most(base.SHARE_NOISE)),
    ),
  )


def _fewer_clients(row: Row) -> bool:
  return base.fraction(row) < 1.0


def _at_first(row: Row) -> bool:
  return base.rounds_before(row) == 1


def _long_before(row: Row) -> bool | None:
  return {1: False, 10: True}.get(base.rounds_before(row))


def _late(row: Row) -> bool:
  return base.rounds_before(row) >= 5


def _all_clients(row: Row) -> bool | None:
  return {0.1: False, 1.0: True}.get(base.fraction(row))
