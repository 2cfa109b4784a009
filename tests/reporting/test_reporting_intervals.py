"""The paired bootstrap against SciPy's, and where it must be plain."""

import numpy as np
import pytest
import scipy.stats

from tff_cluster import seeding
from tff_cluster.reporting.intervals import Interval, paired_bootstrap


def _rng(seed=0):
  return seeding.generator(seed, 'test interval')


@pytest.mark.parametrize('count', [5, 20, 100])
def test_agrees_with_scipy(count):
  values = np.random.default_rng(count).normal(0.02, 0.05, count)
  found = paired_bootstrap(values, _rng(), samples=20_000)
  oracle = scipy.stats.bootstrap(
    (values,), np.mean, n_resamples=20_000, method='percentile', random_state=np.random.default_rng(1)
  ).confidence_interval
  spread = oracle.high - oracle.low
  assert found.mean == pytest.approx(values.mean())
  assert found.low == pytest.approx(oracle.low, abs=0.05 * spread)
  assert found.high == pytest.approx(oracle.high, abs=0.05 * spread)


def test_covers_the_true_mean_about_as_often_as_it_says():
  rng = np.random.default_rng(0)
  hits = 0
  for trial in range(200):
    found = paired_bootstrap(rng.normal(1.0, 1.0, 40), _rng(trial), samples=500)
    hits += found.low <= 1.0 <= found.high
  # Binomial(200, 0.95) lies outside 170..199 with probability below 1e-4; percentile intervals are a bit narrow.
  assert 170 <= hits <= 199


def test_same_seed_same_interval_other_seed_other_interval():
  values = np.random.default_rng(3).normal(0, 1, 30)
  assert paired_bootstrap(values, _rng(1)) == paired_bootstrap(values, _rng(1))
  assert paired_bootstrap(values, _rng(1)) != paired_bootstrap(values, _rng(2))


def test_equal_differences_leave_no_doubt_and_one_client_no_interval():
  certain = paired_bootstrap(np.full(7, 0.25), _rng())
  assert (certain.mean, certain.low, certain.high) == (0.25, 0.25, 0.25)
  assert paired_bootstrap(np.array([0.5]), _rng()) == Interval(0.5, None, None)


@pytest.mark.parametrize(
  ('low', 'high', 'excludes'),
  [
    (0.1, 0.2, True),
    (-0.2, -0.1, True),
    (-0.1, 0.1, False),
    (0.0, 0.1, False),
    (-0.1, 0.0, False),
    (None, None, False),
  ],
)
def test_excludes_zero(low, high, excludes):
  assert Interval(0.0, low, high).excludes_zero is excludes
