"""WeCFL: its rounds are steps of scikit-learn's k-means with the clients' rows as weights."""

import numpy as np
import pytest

from tests.clustering.methods.fake_federation import FEATURES, Fake, groups, state_of
from tests.clustering.methods.lloyd import check_a_round, options
from tff_cluster.clustering.methods import wecfl


@pytest.mark.filterwarnings('ignore::sklearn.exceptions.ConvergenceWarning')
@pytest.mark.parametrize('seed', range(5))
def test_a_round_is_a_step_of_lloyd_with_rows_as_weights(seed):
  check_a_round(wecfl.METHOD, seed, weighted=True)


def test_a_client_with_many_rows_makes_a_cluster_of_its_own_at_first():
  """Points 0, 1, 3: of equal weight {0, 1} and {3}; where 0 weighs a hundred, {0} and {1, 3} have the least inertia."""
  targets = np.zeros((3, FEATURES))
  targets[:, 0] = (0.0, 1.0, 3.0)
  for rows, expected in (([10, 10, 10], [0, 0, 1]), ([1000, 10, 1], [0, 1, 1])):
    after = wecfl.METHOD.step(
      options(2), Fake(targets, rows), state_of(np.zeros((2, FEATURES)), clients=3), 1
    )
    np.testing.assert_array_equal(after.membership.argmax(axis=0), expected)


def test_one_cluster_is_the_mean_weighted_by_rows():
  targets, _ = groups(0, 2, 2)
  federation = Fake(targets, rows=[1, 2, 3, 4])
  start = state_of(np.zeros((1, FEATURES)), clients=4)
  after = wecfl.METHOD.step(options(1), federation, start, 1)
  (expected,) = federation.fed_avg(1, start.models, [np.arange(4)])
  assert all(map(np.array_equal, after.models[0].weights, expected.weights))
