"""FeSEM: its rounds are steps of Lloyd's iteration on the clients' weights, by scikit-learn and by hand."""

import itertools

import numpy as np
import pytest

from tests.clustering.methods.fake_federation import FEATURES, Fake, groups, models_of, state_of, vector_of
from tests.clustering.methods.lloyd import CLIENTS, check_a_round, options
from tests.made_up.clients import together
from tff_cluster.base.errors import InputError
from tff_cluster.clustering import methods
from tff_cluster.clustering.methods import fesem


@pytest.mark.filterwarnings('ignore::sklearn.exceptions.ConvergenceWarning')
@pytest.mark.parametrize('seed', range(5))
def test_a_round_is_a_step_of_lloyd(seed):
  check_a_round(fesem.METHOD, seed, weighted=False)


def test_first_all_train_from_the_first_model_and_k_means_over_what_they_send_makes_the_clusters():
  targets, _ = groups(3, 3, 2, spread=0.4)
  federation = Fake(targets)
  centers = np.random.default_rng(1).normal(size=(3, FEATURES))
  after = fesem.METHOD.step(options(3), federation, state_of(centers, clients=6), 1)
  start = models_of(centers)[0].weights
  vectors = np.stack([vector_of(start) + federation.update(1, start, k) for k in range(6)])
  np.testing.assert_array_equal(federation.starts, [[vector_of(start)]])

  def inertia(labels):
    return sum(vectors[labels == k].var(axis=0).sum() * (labels == k).sum() for k in set(labels))

  best = min((np.array(labels) for labels in itertools.product(range(3), repeat=6)), key=inertia)
  found = after.membership.argmax(axis=0)
  np.testing.assert_array_equal(together(found), together(best))
  for k, model in enumerate(after.models):
    np.testing.assert_allclose(vector_of(model.weights), vectors[found == k].mean(axis=0), atol=1e-6)


def test_who_is_not_drawn_stays_and_has_no_part_in_the_means():
  targets, truth = groups(0, 2, 10)
  federation = Fake(targets, drawn=0.5)
  state = state_of(targets[:2], 1 - truth)
  cohort = federation.cohort(4)
  others = np.setdiff1d(np.arange(CLIENTS), cohort)
  after = fesem.METHOD.step(options(2), federation, state, 4)
  np.testing.assert_array_equal(after.membership[:, others], state.membership[:, others])
  np.testing.assert_array_equal(after.since, np.where(np.isin(np.arange(CLIENTS), cohort), 4, 0))
  again = Fake(np.where(np.isin(np.arange(CLIENTS), cohort)[:, None], targets, 99.0), drawn=0.5)
  for model, same in zip(after.models, fesem.METHOD.step(options(2), again, state, 4).models, strict=True):
    assert all(map(np.array_equal, model.weights, same.weights))


def test_a_client_of_which_nothing_is_known_trains_from_the_mean_of_the_models_as_they_are_used():
  targets, _ = groups(5, 2, 2)
  state = state_of(targets[:2], [0, 1, 0, 0])
  state.membership[:, 3] = 0.0
  federation = Fake(targets)
  after = fesem.METHOD.step(options(2), federation, state, 2)
  (starts,) = federation.starts
  first, second = (vector_of(model.weights) for model in state.models)
  assert any(np.allclose(start, (2 * first + second) / 3, atol=1e-6) for start in starts)
  assert after.membership[:, 3].sum() == 1.0 and after.since[3] == 2


def test_a_diverged_client_is_left_out_and_stays_where_it_was():
  targets, truth = groups(0, 2, 3)
  clean, diverged = Fake(targets[:5]), Fake(targets, diverging=('c05',))
  for labels in (None, truth):
    state = state_of(targets[:2], labels, 6)
    after = fesem.METHOD.step(options(2), diverged, state, 3)
    fewer = fesem.METHOD.step(
      options(2), clean, state_of(targets[:2], labels if labels is None else labels[:5], 5), 3
    )
    np.testing.assert_array_equal(after.membership[:, :5], fewer.membership)
    np.testing.assert_array_equal(after.membership[:, 5], state.membership[:, 5])
    assert after.since[5] == 0
    for model, same in zip(after.models, fewer.models, strict=True):
      assert all(map(np.array_equal, model.weights, same.weights))


def test_a_cluster_that_nobody_is_assigned_to_keeps_its_center():
  targets, truth = groups(2, 2, 4)
  state = state_of([*targets[:2], np.full(FEATURES, 50.0)], truth)
  after = fesem.METHOD.step(options(3), Fake(targets), state, 1)
  assert after.models[2] is state.models[2]
  assert not after.membership[2].any()


def test_fewer_clients_than_clusters_begin_with_one_each():
  targets, _ = groups(2, 2, 1)
  after = fesem.METHOD.step(options(4), Fake(targets), state_of(np.eye(4, FEATURES), clients=2), 1)
  np.testing.assert_array_equal(after.membership, np.eye(4, 2))


def test_clients_of_a_start_in_several_clusters_train_from_their_mean():
  targets, _ = groups(2, 2, 2)
  state = state_of(targets[:2], [0, 1, 0, 0])
  state.membership[:, 3] = 0.5
  federation = Fake(targets)
  fesem.METHOD.step(options(2), federation, state, 1)
  (starts,) = federation.starts
  mean = np.mean([vector_of(model.weights) for model in state.models], axis=0)
  assert any(np.allclose(start, mean, atol=1e-6) for start in starts)


@pytest.mark.parametrize('name', ['fesem', 'wecfl'])
def test_noise_that_would_change_nothing_is_refused(name):
  method = methods.find(name)
  assert method.read({'start': 'warm', 'num_clusters': 3}).start == 'warm'
  with pytest.raises(InputError, match=f'^start_noise=0.2 has no effect on {name}, .* leave it out$'):
    method.read({'start': 'warm', 'start_noise': 0.2})
