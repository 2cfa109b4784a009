"""Numbers of a comparison: worst decile, target, harm and signs by hand, and intervals with the same draws for all."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.made_up import comparison_runs, in_json
from tests.made_up.comparison_runs import FEDAVG, LOCAL, constant
from tff_cluster.base import seeding
from tff_cluster.scorecard import paired_statistics
from tff_cluster.scorecard.contenders import CLIENT_ROUNDS, ROUNDS, read_contenders
from tff_cluster.scorecard.intervals import Interval, cautious_intervals

_SHARES = st.floats(0, 1, allow_nan=False)


def _measure(accuracies, earlier=None, target=0.99):
  runs = in_json.typed_runs(comparison_runs.make(accuracies, earlier))
  return paired_statistics.measure(read_contenders(runs), target, samples=400)


def test_worst_decile_by_hand():
  assert paired_statistics.worst_decile(np.array([0.9])) == 0.9
  # Nine clients have no tenth, so one of them counts; of 11 one, of 20 two.
  assert paired_statistics.worst_decile(np.array([0.5, 0.1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3])) == 0.1
  assert paired_statistics.worst_decile(np.array([0.2, 0.3, *[0.9] * 9])) == 0.2
  assert paired_statistics.worst_decile(np.array([0.2, *[0.9] * 18, 0.3])) == pytest.approx(0.25)


@hypothesis.settings(max_examples=50)
@hypothesis.given(hnp.arrays(np.float64, st.integers(1, 45), elements=_SHARES), st.randoms())
def test_worst_decile_is_a_mean_of_clients_and_knows_no_order(accuracy, random):
  worst = paired_statistics.worst_decile(accuracy)
  assert accuracy.min() - 1e-12 <= worst <= accuracy.mean() + 1e-12
  shuffled = accuracy.tolist()
  random.shuffle(shuffled)
  assert paired_statistics.worst_decile(np.array(shuffled)) == pytest.approx(worst)


# Two seeds of four clients. Differences of `kmeans` to FedAvg: 0, −0.2, +0.1, 0 and −0.1, −0.1, +0.3, −0.1; to
# everybody alone: 0, 0, +0.3, +0.3 and +0.1, −0.1, +0.3, −0.1.
_FOUR = {
  FEDAVG: [[0.5, 0.7, 0.6, 0.5], [0.6, 0.6, 0.5, 0.6]],
  LOCAL: [[0.5, 0.5, 0.4, 0.2], [0.4, 0.6, 0.5, 0.6]],
  'kmeans': [[0.5, 0.5, 0.7, 0.5], [0.5, 0.5, 0.8, 0.5]],
}


def test_a_summary_by_hand():
  found = _measure(_FOUR, target=0.7).summary('kmeans', ROUNDS)
  assert found.mean.mean == pytest.approx((2.2 / 4 + 2.3 / 4) / 2)
  assert (found.worst_decile, found.at_target) == (0.5, 0.25)
  assert paired_statistics.at_target(np.array([0.989, 99 / 100, 1.0, 0.1 * 9.9]), 0.99) == 0.75
  fedavg, local = found.over_fedavg, found.over['local']
  # One of four and three of four clients are worse off than with FedAvg, none and two than alone.
  assert (fedavg.harmed, local.harmed) == ((0.25 + 0.75) / 2, (0.0 + 0.5) / 2)
  assert fedavg.interval.mean == pytest.approx((-0.1 / 4 + 0.0 / 4) / 2)
  assert (fedavg.clients.better, fedavg.clients.worse, fedavg.clients.equal) == (2, 4, 2)
  # Two or fewer, or four or more, of six: 2 (1 + 6 + 15) / 64.
  assert fedavg.clients.p_value == pytest.approx(2 * (1 + 6 + 15) / 64)
  # The second seed's differences sum to zero: a tie, so one seed is left.
  assert (fedavg.seeds.better, fedavg.seeds.worse, fedavg.seeds.equal) == (0, 1, 1)
  assert fedavg.seeds.p_value == 1.0


def test_references_are_not_compared_with_themselves():
  found = _measure(_FOUR)
  expected = np.mean(np.array(_FOUR[FEDAVG]) - np.array(_FOUR[LOCAL]))
  for budget in (ROUNDS, CLIENT_ROUNDS):
    fedavg = found.summary(FEDAVG, budget)
    assert fedavg.over_fedavg is None and found.summary(LOCAL, budget).over['local'] is None
    assert fedavg.over['local'].interval.mean == pytest.approx(expected)
  without = _measure({name: _FOUR[name] for name in (FEDAVG, 'kmeans')})
  kmeans = without.summary('kmeans', ROUNDS)
  assert [kind for kind, difference in kmeans.over.items() if difference is not None] == ['fedavg']


def _random(seed, mean):
  return np.clip(np.random.default_rng(seed).normal(mean, 0.1, (3, 8)), 0, 1).tolist()


def test_intervals_are_of_differences_over_seeds_and_clients_with_the_draws_of_the_first_seed():
  values = {FEDAVG: _random(0, 0.5), 'kmeans': _random(1, 0.6), 'other': _random(2, 0.6)}
  found = _measure(values)
  for name in ('kmeans', 'other'):
    differences = list(np.array(values[name]) - np.array(values[FEDAVG]))
    gain = found.summary(name, ROUNDS).gain
    for level, interval in ((0.95, gain.interval), (0.9, gain.inner)):
      generator = seeding.generator(0, 'comparison')
      assert [interval] == cautious_intervals(differences, generator, samples=400, levels=[level])
  assert found.summary('kmeans', CLIENT_ROUNDS).gain == found.summary('kmeans', ROUNDS).gain


def test_the_matrix_has_every_overlapping_contender_against_every_disjoint_one_and_the_oracle():
  levels = {FEDAVG: 0.5, 'kmeans': 0.6, 'overlap': 0.7, 'planted': 0.9, 'overmore': 0.6}
  accuracies = {name: constant(level) for name, level in levels.items()}
  found = _measure(accuracies, {'overlap': constant(0.55)})
  kinds = {'kmeans': ('disjoint',), 'planted': ('oracle',)}
  names = [(over, other, kinds[other]) for over in ('overlap', 'overmore') for other in kinds]
  for budget, differences in ((ROUNDS, [0.1, -0.2, 0.0, -0.3]), (CLIENT_ROUNDS, [-0.05, -0.35, 0.0, -0.3])):
    pairs = found.pairs[budget]
    assert [(p.overlapping, p.other, p.other_kinds) for p in pairs] == names
    assert [p.difference.interval.mean for p in pairs] == pytest.approx(differences)
  # What validation rows choose is found at each budget; here they say what test rows say.
  assert [found.chosen[budget].overlapping.name for budget in (ROUNDS, CLIENT_ROUNDS)] == [
    'overlap',
    'overmore',
  ]
  assert _measure({FEDAVG: constant(0.5), 'kmeans': constant(0.6)}).chosen == {
    ROUNDS: None,
    CLIENT_ROUNDS: None,
  }


@pytest.mark.parametrize(
  ('interval', 'side', 'words'),
  [
    (Interval(0.02, 0.01, 0.03), 'above', '+2.0 points (95% interval +1.0 to +3.0 points)'),
    (Interval(-0.02, -0.03, -0.01), 'below', '−2.0 points (95% interval −3.0 to −1.0 points)'),
    (Interval(0.02, -0.01, 0.05), 'unclear', '+2.0 points (95% interval −1.0 to +5.0 points)'),
    (Interval(0.02, None, None), 'unclear', '+2.0 points (no interval: one client)'),
  ],
)
def test_sides_and_words_of_a_difference(interval, side, words):
  signs = paired_statistics.sign_test(np.array([1.0]))
  found = paired_statistics.Difference(interval, interval, signs, signs, 0.0)
  assert (found.side, found.words) == (side, words)
