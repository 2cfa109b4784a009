"""The bootstraps against SciPy's and by simulation, and where they must be plain; the sign test by hand."""

import hypothesis
import numpy as np
import pytest
import scipy.stats
from hypothesis import strategies as st

from tests.made_up.refusals import refused
from tff_cluster.base import seeding
from tff_cluster.scorecard.intervals import (
  LEVELS,
  Interval,
  SignTest,
  cautious_intervals,
  paired_bootstrap,
  seed_and_client_intervals,
  seeds_needed,
  sign_test,
  student_interval,
)


def _both(differences, rng, level=0.95, samples=10_000, clients=None):
  """Returns the interval over seeds and clients at a level."""
  (found,) = seed_and_client_intervals(differences, rng, [level], samples, clients)
  return found


def _rng(seed=0):
  return seeding.generator(seed, 'test interval')


def test_one_seed_is_the_paired_bootstrap_and_the_generator_decides():
  values = np.random.default_rng(4).normal(0.01, 0.05, 25)
  found = _both([values], _rng(1), 0.9, 700)
  assert found == paired_bootstrap(values, _rng(1), 0.9, 700)
  assert found != _both([values], _rng(2), 0.9, 700)
  assert _both([np.array([0.5])], _rng()) == Interval(0.5, None, None)
  # Equal differences leave no doubt, one client has no interval, and every seed weighs the same.
  assert paired_bootstrap(np.full(7, 0.25), _rng()) == Interval(0.25, 0.25, 0.25)
  assert paired_bootstrap(np.array([0.5]), _rng()) == Interval(0.5, None, None)
  assert _both([np.zeros(99), np.ones(1)], _rng(), samples=100) == Interval(0.5, 0.0, 1.0)


def test_student_interval_and_zero_by_hand():
  # Mean 2, standard deviation 1, Student's t for two degrees of freedom 4.30265: half width 4.30265 / sqrt(3).
  found = student_interval([1.0, 2.0, 3.0])
  assert (found.mean, found.low, found.high) == pytest.approx((2.0, -0.484137, 4.484137), abs=1e-5)
  assert student_interval([7.0]) == Interval(7.0, None, None)
  assert Interval(0.15, 0.1, 0.2).side == 'above' and Interval(-0.15, -0.2, -0.1).side == 'below'
  for low, high in ((0.0, 0.1), (-0.1, 0.0), (None, None)):
    assert Interval(0.05, low, high).side == 'unclear'


def _with_clients(clients):
  """Returns seeds without spread among their clients: their interval is a bootstrap of seeds."""
  return lambda values, *told: _both([np.full(clients, v) for v in values], *told)


@pytest.mark.parametrize(
  ('interval', 'count'),
  [(paired_bootstrap, 5), (paired_bootstrap, 100), (_with_clients(1), 12), (_with_clients(6), 12)],
)
def test_agrees_with_scipy(interval, count):
  values = np.random.default_rng(count).normal(0.02, 0.05, count)
  found = interval(values, _rng(), 0.95, 10_000)
  oracle = scipy.stats.bootstrap(
    (values,), np.mean, n_resamples=10_000, method='percentile', random_state=np.random.default_rng(1)
  ).confidence_interval
  spread = oracle.high - oracle.low
  assert found.mean == pytest.approx(values.mean())
  assert found.low == pytest.approx(oracle.low, abs=0.05 * spread)
  assert found.high == pytest.approx(oracle.high, abs=0.05 * spread)


def test_spread_is_that_of_both_stages():
  rng = np.random.default_rng(6)
  seeds = [rng.normal(0.0, 1.0) + rng.normal(0.0, 2.0, clients) for clients in (4, 9, 16) * 10]
  found = _both(seeds, _rng(), samples=20_000)
  # Given the data: variance of the seeds' means, and the mean of what clients add to each, over 30 seeds.
  means, within = [seed.mean() for seed in seeds], [seed.var() / len(seed) for seed in seeds]
  error = np.sqrt((np.var(means) + np.mean(within)) / 30)
  assert found.mean == pytest.approx(np.mean(means))
  assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.04)


def test_covers_other_seeds_where_an_interval_over_clients_alone_does_not():
  rng = np.random.default_rng(7)
  both = alone = 0
  for trial in range(200):
    # Twenty seeds that differ far more than their ten clients.
    seeds = [rng.normal(1.0, 1.0) + rng.normal(0.0, 0.5, 10) for _ in range(20)]
    found = _both(seeds, _rng(trial), samples=300)
    both += found.low <= 1.0 <= found.high
    found = paired_bootstrap(np.concatenate(seeds), _rng(trial), samples=300)
    alone += found.low <= 1.0 <= found.high
  # Binomial(200, 0.95) lies outside 170..199 with probability below 1e-4; percentile intervals are a bit narrow. The
  # standard error over clients alone is a third of the true one, which covers about half.
  assert 170 <= both <= 199
  assert alone < 140


# Two-sided tails of Binomial(n, 1/2), counted by hand: 2 / 32, 2 (1 + 9) / 512.
@pytest.mark.parametrize(
  ('better', 'worse', 'equal', 'p_value'),
  [(5, 0, 0, 2 / 32), (1, 8, 3, 20 / 512), (3, 3, 2, 1.0), (0, 0, 4, 1.0)],
)
def test_sign_test_by_hand(better, worse, equal, p_value):
  zero = 0.1 + 0.2 - 0.3  # Rounding is no sign.
  values = [0.25] * better + [-1e-9] * worse + [zero] * equal
  assert sign_test(np.array(values)) == SignTest(better, worse, equal, pytest.approx(p_value))


def test_wrong_differences():
  unknown = np.array([0.0, np.nan])
  refused(
    lambda differences: _both(differences, _rng()),
    ([], 'must be of at least one seed, found none'),
    ([np.ones(2), np.ones(0)], r'differences of seed number 1 must be a list of .* found shape \(0,\)$'),
    ([np.ones(2), unknown], 'differences of seed number 1 must be finite, found nan$'),
  )
  refused(sign_test, (np.ones(0), r'found shape \(0,\)$'), (unknown, 'found nan$'))


def test_the_cautious_interval_is_the_wider_one_at_each_end():
  rng = np.random.default_rng(0)
  noise = rng.normal(0, 0.05, 40)
  noise -= noise.mean()
  # Seeds that differ and clients that do not: Student's. Seeds that agree and clients that differ: the bootstrap's.
  for means, spread in (((0.0, 0.1, 0.2), 0.0), ((0.1, 0.1, 0.1), 1.0)):
    values = [mean + spread * noise for mean in means]
    found, inner = cautious_intervals(values, np.random.default_rng(1))
    drawn = _both(values, np.random.default_rng(1))
    by_seed = student_interval(means)
    wider = by_seed if spread == 0.0 else drawn
    assert found.mean == pytest.approx(0.1)
    assert (found.low, found.high) == pytest.approx((wider.low, wider.high))
    drawn, by_seed = (
      _both(values, np.random.default_rng(1), 0.9),
      student_interval(means, 0.9),
    )
    wider = by_seed if spread == 0.0 else drawn
    assert (inner.low, inner.high) == pytest.approx((wider.low, wider.high))
    assert found.low < inner.low < inner.high < found.high
  one = cautious_intervals([noise], np.random.default_rng(1))
  assert one == [paired_bootstrap(noise, np.random.default_rng(1), level) for level in LEVELS]
  for alone in cautious_intervals([noise[:1]], np.random.default_rng(1)):
    assert (alone.low, alone.high) == (None, None)


@hypothesis.settings(max_examples=50)
@hypothesis.given(
  st.lists(st.floats(0, 100), min_size=2, max_size=9).filter(lambda v: max(v) - min(v) > 1e-3)
)
def test_student_interval_is_that_of_scipy(values):
  found = student_interval(values)
  low, high = scipy.stats.t.interval(
    0.95, len(values) - 1, loc=sum(values) / len(values), scale=scipy.stats.sem(values)
  )
  assert (found.low, found.high) == pytest.approx((low, high))


def test_so_many_seeds_show_a_planted_difference_and_fewer_do_not():
  # Of the paired t-test at 5% with a power of 80%, as tables after Cohen (1988) and G*Power give them.
  assert [seeds_needed(1.0, effect) for effect in (0.2, 0.5, 1.0)] == [199, 34, 10]
  spread, difference = 0.9, 0.8
  needed = seeds_needed(spread, difference)
  drawn = np.random.default_rng(0).normal(difference, spread, (20_000, needed))
  power = [
    np.mean(scipy.stats.ttest_1samp(drawn[:, :n], 0.0, axis=1).pvalue < 0.05) for n in (needed, needed - 2)
  ]
  assert power[0] >= 0.79 and power[1] < 0.79
  # Seeds that do not differ need two.
  assert seeds_needed(0.0, 0.01) == seeds_needed(1e-12, 0.01) == 2


def test_more_seeds_of_the_same_clients_tell_nothing_of_other_clients():
  rng, missed, hit, repeats = np.random.default_rng(0), 0, 0, 60
  names = [f'c{k}' for k in range(12)]
  for _ in range(repeats):
    # True mean 0; clients differ by 5 points whatever the seed, which adds a little.
    clients = rng.normal(0, 5, 12)
    values = [clients + rng.normal(0, 0.5) + rng.normal(0, 1, 12) for _ in range(8)]
    apart, same = (_both(values, _rng(1), samples=400, clients=who) for who in (None, 8 * [names]))
    missed += not apart.low <= 0 <= apart.high
    hit += same.low <= 0 <= same.high
  assert missed > 0.2 * repeats and hit > 0.85 * repeats
  # Clients that stand under one seed each are drawn as ever, and a seed none of whose clients was drawn has them all.
  own = [[f'{seed} {name}' for name in names] for seed in range(8)]
  assert _both(values, _rng(1), clients=own) == _both(values, _rng(1))
  few = _both([np.array([1.0]), np.array([1.0]), np.array([4.0])], _rng(), clients=[['a'], ['a'], ['b']])
  assert (few.mean, few.low, few.high) == (2.0, 1.0, 4.0)
