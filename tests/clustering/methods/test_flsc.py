"""FLSC by brute force over all sets of models; with one model a client it is IFCA."""

import itertools

import numpy as np
import pytest

from tests.clustering.methods.fake_federation import (
  FEATURES,
  RATE,
  Fake,
  groups,
  models_of,
  state_of,
  vector_of,
)
from tests.made_up.refusals import refused
from tff_cluster.clustering.methods import flsc, ifca

MODELS, CLIENTS = 4, 10


def options(num_joined=2, count=MODELS):
  return flsc.METHOD.read({'num_clusters': count, 'num_joined': num_joined})


def made_up(seed, **given):
  rng = np.random.default_rng(seed)
  federation = Fake(rng.normal(size=(CLIENTS, FEATURES)), rng.integers(5, 50, CLIENTS), **given)
  return federation, rng.normal(size=(MODELS, FEATURES))


@pytest.mark.parametrize('num_joined', [1, 2, 3, 4])
def test_a_round_by_brute_force(num_joined):
  federation, vectors = made_up(num_joined)
  models, everyone = models_of(vectors), np.arange(CLIENTS)
  losses = federation.losses([model.weights for model in models], everyone)
  joined, weights = [], []
  for client in everyone:
    sets = itertools.combinations(range(MODELS), num_joined)
    joined.append(min(sets, key=lambda some: sum(losses[k, client] for k in some)))
    start = np.mean([vector_of(models[k].weights) for k in joined[-1]], axis=0)
    update = RATE * (federation.targets[client] - start)
    weights.append(start + update)
  after = flsc.METHOD.step(options(num_joined), federation, state_of(vectors, clients=CLIENTS), 3)
  for k in range(MODELS):
    users = [client for client in everyone if k in joined[client]]
    np.testing.assert_array_equal(np.flatnonzero(after.membership[k]), users)
    np.testing.assert_array_equal(after.membership[k, users], 1 / num_joined)
    expected = np.mean([weights[client] for client in users], axis=0) if users else vectors[k]
    # The noise of local work.
    np.testing.assert_allclose(vector_of(after.models[k].weights), expected, atol=0.02)
  assert federation.known == [True]


def test_with_one_model_a_client_it_is_ifca():
  federation, vectors = made_up(1, drawn=0.6)
  ifca_options = ifca.METHOD.read({'num_clusters': MODELS})
  one, other = (state_of(vectors, clients=CLIENTS) for _ in range(2))
  for number in range(1, 5):
    one = flsc.METHOD.step(options(1), federation, one, number)
    other = ifca.METHOD.step(ifca_options, federation, other, number)
    np.testing.assert_array_equal(one.membership, other.membership)
    for a, b in zip(one.models, other.models, strict=True):
      np.testing.assert_array_equal(vector_of(a.weights), vector_of(b.weights))


def test_planted_mixtures_of_two_groups_are_found_and_models_end_where_they_must():
  """A client whose optimum is between two of three corners joins these two.

  Seen from the mean of all, a model is x times its corner's direction, its two kinds of clients start from -x/2 times the third
  corner's, want -2 of it, and come rate r nearer; the mean of them is the model again: x = ((1 - r) x / 2 + 2 r) / 2.
  """
  corners = 4.0 * np.eye(3, FEATURES)
  pairs = [(0, 1), (0, 2), (1, 2)] * 4
  targets = np.array([corners[list(pair)].mean(axis=0) for pair in pairs])
  federation, state = Fake(targets), state_of(0.1 * corners, clients=len(pairs))
  for number in range(1, 40):
    state = flsc.METHOD.step(options(2, 3), federation, state, number)
  assert [tuple(np.flatnonzero(column)) for column in state.membership.T] == pairs
  center, x = targets.mean(axis=0), RATE / (1 - (1 - RATE) / 4)
  for k, model in enumerate(state.models):
    expected = center + x * (np.eye(3, FEATURES)[k] - center / 4)
    np.testing.assert_allclose(vector_of(model.weights), expected, atol=0.02)
  own = state.own.T @ [vector_of(model.weights) for model in state.models]
  np.testing.assert_allclose(own - center, x / 4 * (targets - center), atol=0.02)


def test_the_first_round_trains_the_clusters_of_the_start_as_they_are():
  federation, vectors = made_up(2)
  state = state_of(vectors, np.arange(CLIENTS) % MODELS)
  given = type(state)(state.models, state.membership, state.since, given=True)
  after = flsc.METHOD.step(options(), federation, given, 1)
  np.testing.assert_array_equal(after.membership, state.membership)
  assert federation.known == [False]


def test_a_diverged_client_is_left_out_and_a_model_that_nobody_joined_stays():
  targets, _ = groups(0, 2, 3)
  vectors = [*targets[:2], np.full(FEATURES, 60.0)]
  after = flsc.METHOD.step(options(2, 3), Fake(targets, diverging=('c05',)), state_of(vectors, clients=6), 1)
  fewer = flsc.METHOD.step(options(2, 3), Fake(targets[:5]), state_of(vectors, clients=5), 1)
  assert (after.membership[:, 5] == [0.5, 0.5, 0.0]).all()
  for model, same in zip(after.models, fewer.models, strict=True):
    assert all(map(np.array_equal, model.weights, same.weights))
  np.testing.assert_array_equal(vector_of(after.models[2].weights), vectors[2])


def test_newcomers_join_as_many_and_all_where_models_are_fewer():
  losses = np.array([[3.0, 1.0], [1.0, 1.0], [2.0, np.inf]])
  expected = np.array([[0.0, 0.5], [0.5, 0.5], [0.5, 0.0]])
  np.testing.assert_array_equal(flsc.METHOD.estimate(options(), losses), expected)
  np.testing.assert_array_equal(flsc.METHOD.estimate(options(), losses[:1]), [[1.0, 1.0]])


def test_a_model_that_exploded_is_joined_by_nobody_who_has_another():
  losses = np.array([[3.0, np.inf, np.inf], [np.inf, 1.0, np.inf], [np.inf, 2.0, np.inf]])
  expected = np.array([[1.0, 0.0, 0.5], [0.0, 0.5, 0.5], [0.0, 0.5, 0.0]])
  np.testing.assert_array_equal(flsc.METHOD.estimate(options(), losses), expected)


def test_wrong_numbers_are_one_line():
  refused(
    flsc.METHOD.read,
    ({'num_joined': 5, 'num_clusters': 4}, r'^num_joined=5: must be at most num_clusters=4$'),
    ({'num_joined': 0}, r'^num_joined=0: must be at least 1$'),
  )
  flsc.METHOD.read({'num_joined': 5, 'start': 'clustering', 'start_clustering': 'kmeans'})
