"""Methods that alternate, where the start gives clusters: the first round trains these as they are."""

import dataclasses

import numpy as np
import pytest

from tests.clustering.methods.fake_federation import FEATURES, Fake, groups, state_of, vector_of
from tff_cluster.clustering import methods

MODELS, CLIENTS, ROUND = 3, 12, 5
ALTERNATING = sorted(name for name, method in methods.METHODS.items() if method.alternates)


@pytest.mark.parametrize('name', ALTERNATING)
def test_each_given_cluster_is_a_round_of_fedavg_of_its_clients(name):
  rng = np.random.default_rng(0)
  targets, truth = groups(0, MODELS, CLIENTS // MODELS)
  federation = Fake(targets, rng.integers(5, 50, CLIENTS))
  federation.first_round = ROUND - 1
  # Clusters that no method would find; their models are all the same, as from the global model.
  labels, start = rng.permutation(truth), np.full(FEATURES, 0.5)
  state = state_of([start] * MODELS, labels)
  state = dataclasses.replace(state, since=state.since + ROUND - 1, given=True)
  method = methods.METHODS[name]
  after = method.step(method.read({'num_clusters': MODELS}), federation, state, ROUND)
  np.testing.assert_array_equal(after.membership, state.membership)
  assert (after.since == ROUND - 1).all()
  for k, model in enumerate(after.models):
    members = np.flatnonzero(labels == k)
    ends = [start + federation.update(ROUND, state.models[k].weights, client) for client in members]
    # Some take the plain mean, others that by rows; the tests of each say which.
    means = [np.average(ends, axis=0, weights=weights) for weights in (None, federation.rows[members])]
    found = [np.allclose(vector_of(model.weights), mean, rtol=0.0, atol=1e-6) for mean in means]
    assert sum(found) == 1


@pytest.mark.parametrize('name', sorted(set(ALTERNATING) - {'fedsoft'}))
def test_who_is_not_drawn_has_no_part_in_the_first_round_of_a_given_cluster(name):
  targets, truth = groups(1, MODELS, CLIENTS // MODELS)
  federation, method = Fake(targets, drawn=0.5), methods.METHODS[name]
  cohort = federation.cohort(ROUND)
  state = dataclasses.replace(state_of(targets[:MODELS], truth[::-1]), given=True)
  after = method.step(method.read({'num_clusters': MODELS}), federation, state, ROUND)
  np.testing.assert_array_equal(after.membership, state.membership)
  for k, model in enumerate(after.models):
    members = np.intersect1d(np.flatnonzero(truth[::-1] == k), cohort)
    updates = [federation.update(ROUND, state.models[k].weights, client) for client in members]
    moved = np.mean(updates, axis=0) if len(members) else np.zeros(FEATURES)
    np.testing.assert_allclose(vector_of(model.weights), targets[k] + moved, atol=1e-6)
