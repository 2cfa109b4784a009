"""Methods that alternate: in whatever order models and clients come, the same clients train the same models."""

import dataclasses

import numpy as np
import pytest

from tests.clustering.methods.fake_federation import Fake, groups, state_of, vector_of
from tff_cluster.clustering import methods

MODELS, ROUNDS = 3, 4
ALTERNATING = sorted(name for name, method in methods.METHODS.items() if method.alternates)


def clients_of(seed):
  targets, truth = groups(seed, MODELS, 4, spread=0.3)
  rng = np.random.default_rng(seed)
  starts = targets[:MODELS] + 0.3 * rng.normal(size=(MODELS, targets.shape[1]))
  return Fake(targets, rng.integers(5, 50, len(targets)), drawn=0.75), state_of(starts, truth)


def rounds(name, federation, state):
  """Returns memberships after each round, and the models after the last."""
  method, memberships = methods.METHODS[name], []
  for number in range(1, ROUNDS + 1):
    state = method.step(method.read({'num_clusters': MODELS}), federation, state, number)
    memberships.append(state.membership)
  return np.array(memberships), np.array([vector_of(model.weights) for model in state.models])


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('name', ALTERNATING)
def test_models_in_another_order(name, seed):
  federation, state = clients_of(seed)
  order = np.roll(np.arange(MODELS), seed + 1)
  permuted = dataclasses.replace(
    state, models=tuple(state.models[k] for k in order), membership=state.membership[order]
  )
  memberships, models = rounds(name, federation, state)
  again, permuted_models = rounds(name, federation, permuted)
  np.testing.assert_allclose(again, memberships[:, order], atol=1e-9)
  np.testing.assert_allclose(permuted_models, models[order], atol=1e-6)


@pytest.mark.parametrize('known', [True, False])
@pytest.mark.parametrize('name', ALTERNATING)
def test_clients_in_another_order(name, known):
  federation, state = clients_of(7)
  if not known:
    state = dataclasses.replace(state, membership=np.zeros_like(state.membership))
  order = np.random.default_rng(0).permutation(len(federation.rows))
  permuted = dataclasses.replace(state, membership=state.membership[:, order], since=state.since[order])
  memberships, models = rounds(name, federation, state)
  again, permuted_models = rounds(name, federation.permuted(order), permuted)
  # Where the method numbers the clusters by their first members, they may have other numbers.
  rows = [int(np.argmin(np.abs(models - model).sum(axis=1))) for model in permuted_models]
  assert sorted(rows) == list(range(MODELS))
  np.testing.assert_allclose(again, memberships[:, rows][:, :, order], atol=1e-9)
  np.testing.assert_allclose(permuted_models, models[rows], atol=1e-6)
