"""Verdicts on paired differences, against Holm's published example, SciPy's sign test and hand-worked intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tff_cluster.scorecard import paired_verdicts
from tff_cluster.scorecard.intervals import Interval
from tff_cluster.scorecard.paired_statistics import Difference


def _difference(by_seed, low, high, inner=None):
  """Returns the difference of one client a seed, with an interval; `inner` are the ends of that at 90%, by default the same."""
  gains, mean = [np.array([value]) for value in by_seed], float(np.mean(by_seed))
  return Difference.of(gains, Interval(mean, low, high), Interval(mean, *(inner or (low, high))))


def test_holm_by_hand():
  # 4 * 0.005, 3 * 0.01, 2 * 0.03, and the last is not below the one before it.
  assert paired_verdicts.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
  assert paired_verdicts.holm([0.6, 0.7]) == [1.0, 1.0] and paired_verdicts.holm([]) == []


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8), st.floats(0.001, 0.999))
def test_holm_rejects_what_its_step_down_procedure_rejects(p_values, level):
  rejected: set[int] = set()
  for step, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
    if p_values[i] * (len(p_values) - step) >= level:
      break
    rejected.add(i)
  assert {i for i, p in enumerate(paired_verdicts.holm(p_values)) if p < level} == rejected


@pytest.mark.parametrize('tests', [1, 2, 3, 6, 12, 20])
def test_seeds_that_so_many_tests_take_are_those_of_the_sign_test(tests):
  def least(seeds):
    return tests * stats.binomtest(seeds, seeds).pvalue

  seeds = paired_verdicts.seeds_for(tests)
  assert least(seeds) < 0.05 and (seeds == 6 or least(seeds - 1) >= 0.05)


_NEAR = [0.001, 0.001, 0.001, 0.001, 0.004, 0.004]
_UP, _DOWN = [0.02, 0.03, 0.02, 0.03, 0.02, 0.03], [-0.02, -0.03, -0.02, -0.03, -0.02, -0.03]


@pytest.mark.parametrize(
  ('difference', 'verdict'),
  [
    (_difference(_UP, 0.01, 0.04), 'helps'),
    (_difference(_DOWN, -0.04, -0.01), 'harms'),
    # All seeds above zero, and the interval over clients holds it.
    (_difference(_UP, -0.01, 0.04), 'undecided'),
    # The interval is above zero, and one seed of six below it: p is 0.22.
    (_difference([*_UP[:5], -0.001], 0.001, 0.04), 'undecided'),
    # Within half a point, and surely above zero, too.
    (_difference(_NEAR, 0.0005, 0.004), 'equivalent'),
    (_difference(_NEAR, -0.001, 0.006, (0.0, 0.005)), 'equivalent'),
    # Student's 90% interval over seeds is 0.002 +- 2.015 * 0.00155 / sqrt(6), within half a point; that over seeds and clients is not.
    (_difference(_NEAR, -0.02, 0.02, (-0.015, 0.015)), 'undecided'),
    (_difference(_NEAR, -0.02, 0.005, (-0.006, 0.004)), 'undecided'),
    (_difference([0.01, -0.01] * 3, -0.01, 0.01), 'undecided'),
    (_difference(_UP[:5], 0.01, 0.04), '5 seeds'),
    (_difference(_UP[:2], 0.01, 0.04), 'two seeds'),
    (_difference(_UP[:1], None, None), 'one seed'),
  ],
)
def test_each_verdict(difference, verdict):
  assert paired_verdicts.judge([difference]) == [verdict]


def test_what_is_judged_together_takes_more_seeds():
  up, seven = _difference(_UP, 0.01, 0.04), _difference([*_UP, 0.02], 0.01, 0.04)
  assert paired_verdicts.judge([up, up]) == ['undecided', 'undecided']
  assert paired_verdicts.judge([seven, seven]) == ['helps', 'helps']
