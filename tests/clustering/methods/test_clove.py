"""CLoVE: its matching by brute force over permutations, its groups by planted truth and scikit-learn."""

import itertools

import numpy as np
import pytest
from sklearn import cluster as sklearn_cluster
from sklearn import metrics

from tests.clustering.methods.fake_federation import FEATURES, Fake, groups, models_of, state_of, vector_of
from tests.made_up.clients import together
from tff_cluster.clustering.methods import clove, ifca


def options(count, **given):
  return clove.METHOD.read({'num_clusters': count} | given)


@pytest.mark.parametrize(('models', 'count'), [(1, 1), (3, 3), (4, 4), (5, 2), (4, 3)])
def test_the_matching_has_the_least_loss_of_all(models, count):
  rng = np.random.default_rng(10 * models + count)
  losses = rng.uniform(size=(models, 9))
  labels = rng.permutation(np.arange(9) % count)

  def total(order):
    return sum(losses[order[label], client] for client, label in enumerate(labels))

  best = min(itertools.permutations(range(models), count), key=total)
  np.testing.assert_array_equal(clove.matched(losses, labels), np.array(best)[labels])


def one_best_model(seed=0):
  """Returns clients of three groups, all of which like the first of three models best, and the truth."""
  targets, truth = groups(seed, 3, 4)
  center = targets.mean(axis=0)
  rng = np.random.default_rng(seed)
  return Fake(targets), np.stack([center, *(center + rng.normal(size=(2, FEATURES)) * 4)]), truth


def test_planted_groups_are_found_in_the_first_round_where_ifca_collapses():
  federation, vectors, truth = one_best_model()
  start = state_of(vectors, clients=12)
  collapsed = ifca.METHOD.step(ifca.METHOD.read({'num_clusters': 3}), federation, start, 1)
  np.testing.assert_array_equal(collapsed.membership[0], 1.0)
  state = clove.METHOD.step(options(3), federation, start, 1)
  np.testing.assert_array_equal(together(state.membership.argmax(axis=0)), together(truth))
  for number in range(2, 20):
    state = clove.METHOD.step(options(3), federation, state, number)
  np.testing.assert_array_equal(together(state.membership.argmax(axis=0)), together(truth))
  for client, k in enumerate(state.membership.argmax(axis=0)):
    mean = federation.targets[truth == truth[client]].mean(axis=0)
    np.testing.assert_allclose(vector_of(state.models[k].weights), mean, atol=0.02)


@pytest.mark.parametrize('seed', range(3))
def test_groups_are_those_of_scikit_learn_and_models_the_means_weighted_by_rows(seed):
  rng = np.random.default_rng(seed)
  federation = Fake(rng.normal(size=(15, FEATURES)), rng.integers(5, 50, 15))
  vectors = rng.normal(size=(3, FEATURES))
  losses = federation.losses([model.weights for model in models_of(vectors)], np.arange(15))
  best = sklearn_cluster.KMeans(3, n_init=40, random_state=seed).fit(losses.T)
  after = clove.METHOD.step(options(3), federation, state_of(vectors, clients=15), 5)
  found = after.membership.argmax(axis=0)
  np.testing.assert_array_equal(together(found), together(best.labels_))
  expected = federation.fed_avg(5, models_of(vectors), [np.flatnonzero(found == k) for k in range(3)])
  for model, same in zip(after.models, expected, strict=True):
    assert all(map(np.array_equal, model.weights, same.weights))


@pytest.mark.parametrize('planted', [2, 3, 5])
def test_the_silhouette_finds_the_planted_number(planted):
  truth = np.tile(np.arange(planted), 4)
  # All groups are as far from each other, and one model is in each corner.
  targets = 4.0 * np.eye(planted, FEATURES)[truth] + 0.1 * np.random.default_rng(0).normal(
    size=(len(truth), FEATURES)
  )
  federation, vectors = Fake(targets), np.eye(6, FEATURES)
  state = state_of(vectors, clients=len(targets))
  after = clove.METHOD.step(options(6, choose_number=True), federation, state, 1)
  np.testing.assert_array_equal(together(after.membership.argmax(axis=0)), together(truth))
  for k in np.flatnonzero(~after.membership.any(axis=1)):
    assert after.models[k] is state.models[k]
  assert clove.METHOD.told_number(options(6, choose_number=True)) is None
  assert clove.METHOD.told_number(options(6)) == 6


def test_a_larger_number_must_be_better_by_a_tenth():
  rng = np.random.default_rng(4)
  for _ in range(20):
    losses = rng.uniform(size=(4, 8))
    scores = {}
    for count in range(2, 5):
      labels = sklearn_cluster.AgglomerativeClustering(count, linkage='ward').fit_predict(losses.T)
      scores[count] = metrics.silhouette_score(losses.T, labels)
    expected = 2
    for count in (3, 4):
      expected = count if scores[count] > 1.1 * scores[expected] else expected
    assert clove._chosen_number(losses, 4) == expected


@pytest.mark.parametrize(
  ('silhouettes', 'expected'),
  [
    ((-0.20, -0.21, -0.22), 2),
    ((-0.20, -0.19, -0.17), 4),
    ((-0.20, 0.01, 0.0105), 3),
    ((0.20, 0.21, 0.23), 4),
  ],
)
def test_a_larger_number_must_be_better_by_a_tenth_below_zero_too(silhouettes, expected, monkeypatch):
  def silhouette(vectors, labels):
    return silhouettes[len(set(labels)) - 2]

  monkeypatch.setattr(metrics, 'silhouette_score', silhouette)
  assert clove._chosen_number(np.random.default_rng(0).uniform(size=(4, 8)), 4) == expected


def test_cohorts_that_are_smaller_than_models_and_losses_that_are_not_finite():
  federation, vectors, _ = one_best_model()
  federation = Fake(federation.targets[:2])
  after = clove.METHOD.step(options(3), federation, state_of(vectors, clients=2), 1)
  np.testing.assert_array_equal(after.membership.sum(axis=0), 1.0)
  assert after.membership.sum(axis=1).max() == 1.0
  alone = clove.METHOD.step(options(3, choose_number=True), federation, state_of(vectors, clients=2), 1)
  assert sorted(alone.membership.sum(axis=1)) == [0.0, 0.0, 2.0]
  broken = np.array([[1.0, np.inf], [2.0, 4.0]])
  np.testing.assert_array_equal(clove._finite(broken), [[1.0, 8.0], [2.0, 4.0]])
  np.testing.assert_array_equal(clove._finite(np.full((2, 2), np.inf)), 1.0)
  np.testing.assert_array_equal(clove._finite(np.array([[0.0, 0.0], [np.inf, 0.0]])), [[0, 0], [1, 0]])


def test_who_is_not_drawn_stays_and_a_diverged_client_is_left_out():
  targets, truth = groups(0, 2, 6)
  rows = np.arange(10, 22)
  federation = Fake(targets, rows, drawn=0.5, diverging=('c00', 'c01', 'c02'))
  state = state_of(targets[:2], 1 - truth)
  cohort = federation.cohort(2)
  healthy = np.setdiff1d(cohort, [0, 1, 2])
  assert len(healthy) < len(cohort) and set(truth[healthy]) == {0, 1}
  after = clove.METHOD.step(options(2), federation, state, 2)
  # Losses are told by all of the cohort, whose models are the targets of a client of each group.
  expected = np.where(np.isin(np.arange(12), cohort), truth, 1 - truth)
  np.testing.assert_array_equal(after.membership, np.eye(2)[:, expected])
  users = [healthy[truth[healthy] == k] for k in range(2)]
  for model, same in zip(after.models, Fake(targets, rows).fed_avg(2, state.models, users), strict=True):
    assert all(map(np.array_equal, model.weights, same.weights))


def test_no_group_of_clients_is_left_on_a_model_that_exploded():
  targets, truth = groups(0, 3, 6)
  federation = Fake(targets)
  rng = np.random.default_rng(0)
  vectors = np.stack(
    [targets[truth == 0].mean(axis=0), targets[truth == 1].mean(axis=0), rng.normal(size=FEATURES)]
  )
  vectors[2] = np.inf
  state = clove.METHOD.step(options(3), federation, state_of(vectors, clients=18), 1)
  assert not state.membership[2].any() and (state.membership.sum(axis=0) == 1).all()
