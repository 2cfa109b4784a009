"""When a claim is checked, on which rows and seeds, and what its finding says; on hand-made rows."""

import math

import numpy as np
import pytest
import scipy.stats

from tests.made_up.scorecard_rows import make_ours
from tff_cluster.scorecard import claims
from tff_cluster.scorecard.claims import Claim, Finding, Part, RuledClaim
from tff_cluster.scorecard.rows import Row


def _row(name, values, seeds=None, departures=()):
  seeds = tuple(range(len(values))) if seeds is None else seeds
  return make_ours(Row(name, {}, {}), seeds=seeds, over_rows=tuple(values), departures=list(departures))


def _read(name):
  return claims.of(name, lambda ours: ours.over_rows)


def _claim(*names, enough=None, **more):
  parts = tuple(Part(name, (name,), _read(name), low=0.5) for name in names)
  return Claim('words', 'source', 'printed', parts, enough, **more)


def _rows(**values):
  return {name: _row(name, own) for name, own in values.items()}


@pytest.mark.parametrize(
  ('rows', 'verdict', 'ours', 'note'),
  [
    ({'a': (1.0,) * 3, 'b': (2.0,) * 3}, 'holds', '+1.00 points to +2.00 points (so in 2 of 2)', '3 seeds'),
    ({'a': (1.0,) * 3, 'b': (0.0,) * 3}, 'fails', '0.00 points to +1.00 points (so in 1 of 2)',
     'not on the claim’s side: b 0.00 points; 3 seeds'),
    ({'a': (1.0,) * 3, 'b': (0.0, 1.0, 2.0)}, 'undecided', '+1.00 points (so in 1 of 2, undecided in 1)',
     'undecided: b +1.00 points (−1.48 to +3.48); 3 seeds'),
    ({'a': (1.0,)}, 'not run', '+1.00 points (so in 1 of 1 measured)', 'on the claim’s side; not run: b; 1 seed'),
    ({'b': (0.0,) * 3}, 'fails', '0.00 points (so in 0 of 1 measured)', 'not on the claim’s side: b 0.00 points; not run: a; 3 seeds'),
    ({'a': (1.0,), 'b': (0.2,)}, 'one seed', '+0.20 points to +1.00 points (so in 1 of 2)',
     'not on the claim’s side: b +0.20 points; 1 seed'),
    ({'a': (1.0,) * 2, 'b': (2.0,) * 3}, 'two seeds', '+1.00 points to +2.00 points (so in 2 of 2)',
     'on the claim’s side; 2 to 3 seeds'),
    ({}, 'not run', '–', 'not run: a; b'),
    ({'a': (), 'b': ()}, 'not run', '–', 'a number of it was not measured'),
  ],
)  # fmt: skip
def test_in_every_row_waits_for_all_and_fails_by_one(rows, verdict, ours, note):
  assert _claim('a', 'b').check(_rows(**rows, x=(9.0,))) == Finding(verdict, ours, note)


def test_what_differs_from_the_paper_in_rows_of_the_claim_is_told_once():
  rows = {
    'a': _row('a', (1.0,) * 3, departures=['K 3']),
    'b': _row('b', (1.0,) * 3, departures=['K 3', 'l1']),
  }
  rows['c'] = _row('c', (1.0,) * 3, departures=['cosine'])
  assert _claim('a', 'b').check(rows).note == 'K 3; l1; 3 seeds'


def test_what_cannot_be_told_is_not_decidable_with_the_reason():
  claim = _claim('a', undecidable=lambda rows: 'at 100% before' if rows['a'].over_rows[0] == 100.0 else '')
  assert claim.check(_rows(a=(100.0,) * 3)).verdict == 'not decidable here'
  assert claim.check(_rows(a=(100.0,) * 3)).note.startswith('at 100% before')
  assert claim.check(_rows(a=(99.0,) * 3)).verdict == 'holds'


def test_a_level_is_not_decidable_in_another_setting_and_a_difference_is():
  level = Claim(
    'words', 'source', 'printed', (Part('a', ('a',), _read('a'), low=0.5, show=claims.show_percent),)
  )
  found = level.check(_rows(a=(1.0,) * 3), 'scaled down')
  assert (found.verdict, found.ours) == ('not decidable here', '1.00%') and 'own setting' in found.note
  assert level.check(_rows(a=(1.0,) * 3)).verdict == 'holds'
  assert _claim('a').check(_rows(a=(1.0,) * 3), 'scaled down').verdict == 'holds'


def test_rows_are_compared_in_the_seeds_that_both_have():
  part = claims.above('a against b', ('a', 'b'), _read('a'), _read('b'))
  claim = Claim('words', 'source', 'printed', (part,))
  rows = {'a': _row('a', (61.0, 72.1, 93.0, 5.0)), 'b': _row('b', (60.0, 71.0, 92.0, 70.0), (0, 1, 2, 9))}
  # It is the differences that count: seeds may be far apart.
  finding = claim.check(rows)
  assert (finding.verdict, finding.ours) == ('holds', '+1.03 points (+0.89 to +1.18)')
  # Told are the seeds that were compared.
  assert finding.note == '3 seeds'
  apart = {**rows, 'b': _row('b', (60.0, 71.0, 92.0), (7, 8, 9))}
  found = claim.check(apart)
  assert (found.verdict, found.note) == ('not run', 'rows that it compares have no seed in common')


def test_a_single_undecided_part_is_on_no_side():
  assert _claim('a').check(_rows(a=(0.5, 0.9, 1.3))) == Finding(
    'undecided', '+0.90 points (−0.09 to +1.89)', '3 seeds'
  )
  assert _claim('a').check(_rows(a=(0.1, 0.2, 0.3))).note == 'not on the claim’s side; 3 seeds'


def test_infinite_numbers_are_counted_beside_the_mean_of_the_others():
  assert (
    _claim('a').check(_rows(a=(math.inf, 2.0, 4.0))).ours
    == '+3.00 points (infinite in 1 of 3 seeds, left out)'
  )
  part = claims.above('a against b', ('a', 'b'), _read('a'), _read('b'))
  found = Claim('words', 'source', 'printed', (part,)).check(
    _rows(a=(math.inf, 10.0, 12.0), b=(20.0, math.inf, 30.0))
  )
  assert found.ours == '−18.00 points (infinite in 2 of 3 seeds, left out)'


def test_a_lead_below_the_margin_is_none():
  part = claims.above('a', ('a',), _read('a'), claims.of('a', lambda ours: [0.0] * len(ours.seeds)))
  claim = Claim('words', 'source', 'printed', (part,))
  for lead, verdict in ((0.5, 'holds'), (0.49, 'fails'), (-3.0, 'fails')):
    assert claim.check(_rows(a=(lead,) * 3)).verdict == verdict


def test_yes_or_no_is_told_by_seeds_and_what_is_not_defined_decides_nothing():
  claim = Claim(
    'words', 'source', 'printed', (claims.answer('a', lambda ours: [v > 0 for v in ours.over_rows]),)
  )
  assert claim.check(_rows(a=(1.0, 1.0, 1.0))).ours == 'in 3 of 3 seeds'
  assert claim.check(_rows(a=(1.0, 1.0, -1.0))).verdict == 'undecided'
  finding = _claim('a').check(_rows(a=(math.nan,) * 3))
  assert (finding.verdict, finding.ours) == ('undecided', 'not defined')
  assert (
    _claim('a', 'b').check(_rows(a=(math.nan,) * 3, b=(math.nan,) * 3)).ours
    == 'not defined (so in 0 of 2, undecided in 2)'
  )


def test_a_rule_of_its_own_waits_for_its_rows():
  claim = RuledClaim(
    'words', 'source', 'printed', ('a', 'b'), lambda rows: claims.judged(True, ''.join(rows))
  )
  assert claim.check({'b': 1, 'x': 2, 'a': 3}) == Finding('holds', 'ab')
  assert claim.check({'b': 1}) == Finding('not run', '–', 'not run: a')


def _spread(mean, width):
  """Four seeds; Student's interval at 95% has this half width."""
  values = np.array([-1.0, 1.0, -1.0, 1.0])
  half = scipy.stats.t.interval(0.95, 3, 0.0, scipy.stats.sem(values))[1]
  return tuple(mean + values * width / half)


def test_one_of_many_parts_fails_a_claim_only_at_a_level_that_is_divided_by_their_number():
  # By the interval at 95% it lies below 0.5 in any company.
  rows = {'a': _spread(0.0, 0.3)} | {f'b{k}': (1.0,) * 4 for k in range(19)}
  for count, verdict in ((1, 'fails'), (3, 'fails'), (20, 'undecided')):
    names = list(rows)[:count]
    half = scipy.stats.t.interval(1 - 0.05 / count, 3, 0.0, scipy.stats.sem(rows['a']))[1]
    assert (half < 0.5) == (verdict == 'fails')
    assert _claim(*names).check(_rows(**rows)).verdict == verdict


def test_all_parts_need_no_correction_to_hold_and_some_of_them_do():
  # All surely above at 90%, and none at 1 - 0.1/8.
  rows = {f'a{k}': _spread(1.0, 0.6) for k in range(8)}
  halves = [
    scipy.stats.t.interval(level, 3, 0.0, scipy.stats.sem(rows['a0']))[1] for level in (0.9, 1 - 0.1 / 8)
  ]
  assert halves[0] < 0.5 < halves[1]
  assert _claim(*rows).check(_rows(**rows)).verdict == 'holds'
  assert _claim(*rows, enough=8).check(_rows(**rows)).verdict == 'holds'
  assert _claim(*rows, enough=3).check(_rows(**rows)).verdict == 'undecided'
