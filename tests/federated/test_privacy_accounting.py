"""Epsilon of one release against the formula of the Gaussian mechanism."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tff_cluster.base.errors import InputError
from tff_cluster.federated import privacy_accounting


def delta_of(epsilon, noise_multiplier):
  """Balle and Wang 2018, theorem 8, for two vectors that are 2 apart (in units of the clip norm)."""
  a = 2.0 / noise_multiplier
  first = stats.norm.cdf(a / 2 - epsilon / a)
  return first - math.exp(epsilon + stats.norm.logcdf(-a / 2 - epsilon / a))


@settings(max_examples=40, deadline=None)
@given(st.floats(0.1, 20.0), st.sampled_from([1e-3, 1e-5, 1e-7]))
def test_epsilon_is_where_the_formula_gives_delta(noise_multiplier, delta):
  epsilon = privacy_accounting.epsilon_of_release(noise_multiplier, delta)
  if epsilon == 0.0:
    assert delta_of(0.0, noise_multiplier) <= delta
  else:
    assert delta_of(epsilon, noise_multiplier) == pytest.approx(delta, rel=1e-4)


def test_small_noise_gives_a_large_epsilon_and_no_overflow():
  assert privacy_accounting.epsilon_of_release(0.0, 1e-5) is None
  # The privacy loss is normal with mean a^2 / 2 and standard deviation a; a = 200 apart, its upper tail decides.
  epsilon = privacy_accounting.epsilon_of_release(0.01, 1e-5)
  assert 20000 < epsilon < 20000 + 200 * math.sqrt(2 * math.log(1e5))
  assert epsilon == pytest.approx(20000 + 200 * stats.norm.isf(1e-5), rel=1e-3)


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ((-1.0, 1e-5), 'noise multiplier -1.0: must be at least 0'),
    ((1.0, 0.0), 'delta 0.0: must be above 0 and below 1'),
  ],
)
def test_wrong_arguments(arguments, message):
  with pytest.raises(InputError, match=message):
    privacy_accounting.epsilon_of_release(*arguments)
