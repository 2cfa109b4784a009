"""What numbers over seeds settle: against SciPy's t-tests, and by hand."""

import math

import hypothesis
import numpy as np
import pytest
import scipy.stats
from hypothesis import strategies as st

from tff_cluster.scorecard import verdicts

_VALUES = st.lists(st.integers(-400, 400).map(lambda n: n / 100), min_size=3, max_size=8)


@hypothesis.settings(max_examples=60)
@hypothesis.given(values=_VALUES, margin=st.integers(1, 300).map(lambda n: n / 100))
def test_inside_is_two_one_sided_t_tests_and_outside_a_95_percent_interval_beyond(values, margin):
  hypothesis.assume(np.std(values) > 1e-6)
  below = scipy.stats.ttest_1samp(values, -margin, alternative='greater').pvalue
  above = scipy.stats.ttest_1samp(values, margin, alternative='less').pvalue
  interval = scipy.stats.t.interval(0.95, len(values) - 1, np.mean(values), scipy.stats.sem(values))
  near = [abs(p - 0.05) < 1e-6 for p in (below, above)] + [abs(abs(end) - margin) < 1e-6 for end in interval]
  hypothesis.assume(not any(near))
  inside, outside = max(below, above) <= 0.05, interval[0] > margin or interval[1] < -margin
  expected = verdicts.INSIDE if inside else verdicts.OUTSIDE if outside else verdicts.UNDECIDED
  assert verdicts.place(values, -margin, margin) == expected


@pytest.mark.parametrize(
  ('values', 'expected'),
  [
    ((0.0,), 'one seed'),
    ((0.0, 9.0), 'two seeds'),
    # Exactly at the ends, whatever binary fractions say: 0.1 + 0.2 is above 0.3.
    ((0.1 + 0.2,) * 3, 'inside'),
    ((0.3001,) * 3, 'outside'),
    # 0 +- 2.92 / 3^0.5 * 0.1 = 0.169 at 90%.
    ((-0.1, 0.0, 0.1), 'inside'),
    # 0 +- 2.92 / 3^0.5 * 0.2 = 0.337.
    ((-0.2, 0.0, 0.2), 'undecided'),
    ((math.inf,) * 3, 'outside'),
    ((0.0, 0.0, math.inf), 'undecided'),
    ((0.0, 0.0, math.nan), 'undecided'),
    ((math.nan,) * 3, 'undecided'),
  ],
)
def test_places_by_hand(values, expected):
  assert verdicts.place(values, -0.3, 0.3) == expected


@pytest.mark.parametrize(
  ('values', 'at_least', 'expected'),
  [
    # The first two lie below the zone, and the third at any place above it.
    ((7.0, 7.1, math.inf), 100.0, 'undecided'),
    ((-math.inf, 20.0, math.inf), 100.0, 'undecided'),
    # All above, but seeds that differ so much tell nothing, as with any large number.
    ((10.0, 12.0, math.inf), 100.0, 'undecided'),
    ((10.0, 12.0, 100.0), math.inf, 'undecided'),
    ((98.0, 99.0, math.inf), 100.0, 'outside'),
    ((98.0, 99.0, math.inf), math.inf, 'undecided'),
    ((math.inf,) * 3, 100.0, 'outside'),
    ((math.inf,) * 3, 9.0, 'outside'),
    ((8.5, 8.6, math.inf), 9.0, 'undecided'),
  ],
)
def test_a_target_that_was_not_reached_decides_no_more_than_the_last_round(values, at_least, expected):
  assert verdicts.place(values, 8.0, 9.0, at_least=at_least) == expected


def test_without_an_upper_end_infinite_ratios_lie_inside():
  assert verdicts.place((2.0, 3.0, math.inf), 1.2) == 'inside'
  assert verdicts.place((math.inf,) * 3, 1.2) == 'inside'
  assert verdicts.place((1.0, 3.0, math.inf), 1.2) == 'undecided'


def test_an_infinite_number_does_not_spare_the_others_their_interval():
  assert verdicts.place((1.26, 60.0, 60.0), 1.25) == 'undecided'
  assert verdicts.place((1.26, 60.0, math.inf), 1.25) == 'undecided'
  assert verdicts.place((-math.inf, -60.0, -1.26), high=-1.25) == 'undecided'


@pytest.mark.parametrize(
  ('answers', 'expected'),
  [
    ('1', 'one seed'),
    ('10', 'two seeds'),
    ('111', 'inside'),
    ('110', 'undecided'),
    ('100', 'outside'),
    ('1100', 'outside'),
  ],
)
def test_answers(answers, expected):
  assert verdicts.place_of_answers([answer == '1' for answer in answers]) == expected


@pytest.mark.parametrize(
  ('places', 'enough', 'expected'),
  [
    (('inside', 'inside'), None, 'inside'),
    (('inside', 'undecided'), None, 'undecided'),
    (('outside', 'undecided', 'not run'), None, 'outside'),
    (('inside', 'one seed', 'not run'), None, 'not run'),
    (('inside', 'two seeds', 'one seed'), None, 'one seed'),
    (('inside', 'outside', 'not run'), 1, 'inside'),
    (('inside', 'outside', 'undecided'), 2, 'undecided'),
    (('inside', 'outside', 'outside'), 2, 'outside'),
  ],
)
def test_several_together(places, enough, expected):
  assert verdicts.agreed(places, enough) == expected
