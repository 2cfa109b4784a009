"""Rounds against a federated averaging loop written in NumPy."""

import numpy as np
import pytest

from tests.conftest import make_population
from tests.federated.small_trainer import (
  BATCH,
  RATE,
  make_trainer,
  visit_orders,
)
from tests.made_up.linear_model import cross_entropies, flat, logits, sgd
from tff_cluster.base import seeding
from tff_cluster.data import population as population_lib

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope='module')
def population():
  return make_population()


@pytest.fixture(scope='module')
def trainer(population, tff_context):
  return make_trainer(population)


def test_rounds_follow_a_numpy_fedavg_loop(population, trainer):
  state = trainer.start(trainer.computations.model.weights)
  expected = trainer.computations.model.weights
  clients = np.arange(population.num_clients)
  for number in (1, 2, 3):
    state, figures = trainer.round(state, clients, number)
    trained = [
      sgd(expected, *population.train.client(k), visit_orders(population, k, number), BATCH, RATE)
      for k in clients
    ]
    expected = np.average(trained, axis=0, weights=population.train.counts)
    assert figures['dropped'] == 0
    np.testing.assert_allclose(flat(trainer.weights(state)), expected, rtol=1e-4, atol=1e-5)


def test_device_weights_of_the_last_round_average_to_the_global_model(population, trainer):
  state = trainer.start(trainer.computations.model.weights)
  clients = np.arange(population.num_clients)
  state, _ = trainer.round(state, clients, 1)
  before = trainer.weights(state)
  updates = np.zeros((len(clients), trainer.computations.model.num_parameters))
  trainer.local_updates(before, clients, 2, updates.__setitem__)
  state, _ = trainer.round(state, clients, 2)
  mean = np.average(flat(before) + updates, axis=0, weights=population.train.counts)
  np.testing.assert_allclose(mean, flat(trainer.weights(state)), atol=2e-6)


def test_batch_size_0_takes_all_rows_of_a_client_at_once(population, tff_context):
  trainer = make_trainer(population, batch=0, epochs=1)
  state, _ = trainer.round(trainer.start(trainer.computations.model.weights), np.array([3]), 1)
  x, y = population.train.client(3)
  expected = sgd(trainer.computations.model.weights, x, y, [np.arange(len(y))], len(y), RATE)
  np.testing.assert_allclose(flat(trainer.weights(state)), expected, rtol=1e-4, atol=1e-5)
  # So does every number that no client has rows for, beyond int32 too.
  for batch in (len(y), 2**31 - 1, 10**17):
    other = make_trainer(population, batch=batch, epochs=1)
    after, figures = other.round(other.start(other.computations.model.weights), np.array([3]), 1)
    assert figures['train_loss'] > 0.0
    np.testing.assert_array_equal(other.weights(after)[0], trainer.weights(state)[0])


def test_measures_agree_with_numpy(population, trainer):
  weights = trainer.computations.model.weights
  scores = trainer.measure(weights, population.test, [4, 0])
  for row, k in enumerate((4, 0)):
    x, y = population.test.client(k)
    predicted = logits(weights, x).argmax(axis=1)
    counts = [[np.sum(kind == label) for label in range(3)] for kind in (y, predicted, y[y == predicted])]
    np.testing.assert_array_equal(scores.counts[row], counts)
    np.testing.assert_allclose(scores.loss_sum[row], cross_entropies(weights, x, y).sum(), rtol=1e-5)
  everywhere = trainer.measure_global(weights)
  assert everywhere.total.tolist() == [len(population.global_test_y)]
  assert everywhere.correct.sum() == trainer.measure(weights, population.test, range(5)).correct.sum()


def test_uint8_rows_are_divided_by_255(tff_context):
  floats = make_population(shape=(4,), seed=3)

  def as_uint8(split):
    x = np.clip(128 + 30 * split.x, 0, 255).astype(np.uint8)
    return population_lib.Split(x, split.y, split.offsets)

  splits = [as_uint8(s) for s in (floats.train, floats.validation, floats.test)]
  population = population_lib.Population(
    'bytes', floats.client_ids, *splits, splits[2].x, splits[2].y, floats.num_classes
  )
  trainer = make_trainer(population)
  state, _ = trainer.round(trainer.start(trainer.computations.model.weights), np.array([1]), 1)
  x, y = population.train.client(1)
  orders = visit_orders(population, 1, 1)
  expected = sgd(trainer.computations.model.weights, x / 255.0, y, orders, BATCH, RATE)
  np.testing.assert_allclose(flat(trainer.weights(state)), expected, rtol=1e-4, atol=1e-5)


def test_a_client_that_diverges_is_dropped_and_a_cohort_that_does_is_an_error(tff_context):
  population = make_population(clients=3)
  start, stop = population.train.offsets[1], population.train.offsets[2]
  population.train.x[start:stop] *= 1e30
  trainer = make_trainer(population)
  state = trainer.start(trainer.computations.model.weights)
  after, figures = trainer.round(state, np.arange(3), 1)
  assert figures['dropped'] == 1 and np.isfinite(figures['train_loss'])
  without, _ = trainer.round(state, np.array([0, 2]), 1)
  np.testing.assert_array_equal(trainer.weights(after)[0], trainer.weights(without)[0])
  same, figures = trainer.round(state, np.array([1]), 1)
  assert figures['dropped'] == 1
  np.testing.assert_array_equal(trainer.weights(same)[0], trainer.weights(state)[0])
  finite = {}
  trainer.local_updates(
    trainer.weights(state), range(3), 1, lambda k, update: finite.update({k: np.isfinite(update).any()})
  )
  # Not a zero update, which would pass for a client that has nothing to learn.
  assert finite == {0: True, 1: False, 2: True}


def test_cohorts_depend_on_members_and_round_only(population, tff_context):
  trainer = make_trainer(population, cohort_fraction=0.5)
  members = np.array([0, 2, 3, 4])
  cohorts = [trainer.cohort(members, number) for number in range(1, 30)]
  assert all(len(c) == 2 and set(c) <= set(members) and list(c) == sorted(c) for c in cohorts)
  assert len({tuple(c) for c in cohorts}) == 6
  np.testing.assert_array_equal(cohorts[4], trainer.cohort(members, 5))
  assert len(trainer.cohort(np.array([2]), 1)) == 1


def test_computations_with_other_weights_share_what_is_built(population, trainer):
  mine = trainer.computations
  before = [w.copy() for w in mine.model.weights]
  other = mine.with_weights([w + 1 for w in mine.model.weights])
  assert other.learning_process is mine.learning_process and other.evaluate is mine.evaluate
  for own, old, new in zip(mine.model.weights, before, other.model.weights, strict=True):
    np.testing.assert_array_equal(own, old)
    np.testing.assert_array_equal(new, old + 1)


def test_sketches_are_projected_updates_and_the_mean_update_is_their_mean(population, trainer):
  weights, features = trainer.computations.model.weights, trainer.computations.model.num_parameters
  updates, sketches = np.zeros((5, features)), np.zeros((5, 7))
  trainer.local_updates(weights, range(5), 4, updates.__setitem__)
  rng = seeding.generator(0, 'test projection')
  buckets, signs = rng.integers(7, size=features), rng.choice([-1, 1], size=features)
  trainer.local_sketches(weights, range(5), 4, (buckets, signs), 7, sketches.__setitem__)
  expected = np.zeros((5, 7))
  for feature in range(features):
    expected[:, buckets[feature]] += signs[feature] * updates[:, feature]
  np.testing.assert_allclose(sketches, expected, atol=1e-5)
  some = [1, 3, 4]
  np.testing.assert_allclose(trainer.mean_update(weights, some, 4), updates[some].mean(axis=0), atol=1e-6)


def test_models_that_travel_with_their_users_score_as_those_that_are_sent_once(
  population, trainer, monkeypatch
):
  from tff_cluster.federated import measurer

  rng = seeding.generator(0, 'test models')
  sizes = [w.shape for w in trainer.computations.model.weights]
  models = [tuple(rng.normal(size=size).astype(np.float32) for size in sizes) for _ in range(4)]
  users = [np.array([0, 2]), np.array([1]), np.array([4, 0, 3]), np.array([2])]
  calls, each = [], trainer.workers.each
  monkeypatch.setattr(trainer.workers, 'each', lambda *asked: calls.append(len(asked[2])) or each(*asked))
  together = trainer.measure_each(models, population.test, users)
  monkeypatch.setattr(measurer, '_MODELS_AT_ONCE', 0)
  apart = trainer.measure_each(models, population.test, users)
  assert calls == [7, 2, 1, 3, 1]
  np.testing.assert_array_equal(together.counts, apart.counts)
  np.testing.assert_array_equal(together.loss_sum, apart.loss_sum)
  assert len({tuple(row.ravel()) for row in together.counts}) > 1


def test_a_model_that_many_use_travels_once(population, trainer, monkeypatch):
  sent, each = [], trainer.workers.each
  monkeypatch.setattr(trainer.workers, 'each', lambda *asked: sent.append(asked[1:]) or each(*asked))
  trainer.measure_each([trainer.computations.model.weights], population.test, [np.arange(5)])
  ((common, jobs),) = sent
  assert len(common) == 1 and len(jobs) == 5 and not any(job.beside for job in jobs)


def test_rows_that_clients_share_are_measured_once_for_each_model_and_group(population, trainer, monkeypatch):
  """With the scores of clients that hold copies."""
  x, y = population.global_test_x, population.global_test_y
  groups = np.array([1, 0, 1, 0, 2])
  shared = population_lib.SharedSplit(x, np.stack([y, (y + 1) % 3, (y + 2) % 3]), groups)
  labels = np.concatenate([shared.client(k)[1] for k in range(5)])
  copies = population_lib.Split(np.tile(x, (5, 1)), labels, np.arange(6) * len(y))
  rng = seeding.generator(1, 'test models')
  sizes = [w.shape for w in trainer.computations.model.weights]
  models = [tuple(rng.normal(size=size).astype(np.float32) for size in sizes) for _ in range(2)]
  asked, each = [], trainer.workers.each
  monkeypatch.setattr(trainer.workers, 'each', lambda *given: asked.append(len(given[2])) or each(*given))
  users = [np.array([4, 2, 0]), np.array([3, 1, 0])]

  def measured(split):
    splits = trainer.measure_splits(models[0], (population.validation, split), [3, 0, 2, 1])
    return [*splits, trainer.measure_each(models, split, users)]

  for ours, theirs in zip(measured(shared), measured(copies), strict=True):
    np.testing.assert_array_equal(ours.counts, theirs.counts)
    np.testing.assert_array_equal(ours.loss_sum, theirs.loss_sum)
  assert asked == [4 + 2, 2 + 2, 4 + 4, 6]
