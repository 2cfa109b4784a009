"""Altered updates and robust aggregators, against federated averaging written in NumPy."""

import dataclasses

import numpy as np
import pytest

from tests.conftest import make_population
from tests.federated.small_trainer import (
  BATCH,
  RATE,
  Stopped,
  assert_same,
  go,
  make_trainer,
  visit_orders,
  with_aggregator,
)
from tests.made_up.linear_model import flat, sgd
from tff_cluster.base.errors import InputError

pytestmark = pytest.mark.tensorflow

SCALES = np.array([1.0, -1.0, 1.0, 2.5, 1.0], np.float32)


def with_scales(population, scales):
  return dataclasses.replace(population, update_scales=np.asarray(scales, np.float32))


def numpy_updates(population, weights, number):
  """float64[clients, features], trained minus start, of honest clients."""
  trained = [
    sgd(weights, *population.train.client(k), visit_orders(population, k, number), BATCH, RATE)
    for k in range(population.num_clients)
  ]
  return np.array(trained) - flat(weights)


def one_round(trainer, clients, state=None, number=1):
  state = trainer.start(trainer.computations.model.weights) if state is None else state
  after, figures = trainer.round(state, np.asarray(clients), number)
  return flat(trainer.weights(after)), figures, after


def test_a_round_is_the_numpy_mean_of_scaled_updates(tff_context):
  population = with_scales(make_population(), SCALES)
  trainer = make_trainer(population)
  start = trainer.computations.model.weights
  ours, figures, _ = one_round(trainer, range(5))
  sent = SCALES[:, None] * numpy_updates(population, start, 1)
  expected = flat(start) + np.average(sent, axis=0, weights=population.train.counts)
  np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)
  assert figures['dropped'] == 0
  honest, _, _ = one_round(make_trainer(make_population()), range(5))
  assert np.abs(honest - expected).max() > 0.01


def test_what_clients_send_for_clustering_is_scaled_too_and_honest_ones_keep_their_bits(tff_context):
  honest, mixed = make_trainer(make_population()), make_trainer(with_scales(make_population(), SCALES))
  start = honest.computations.model.weights
  updates = np.zeros((2, 5, honest.computations.model.num_parameters), np.float32)
  for trainer, rows in zip((honest, mixed), updates, strict=True):
    trainer.local_updates(start, range(5), 1, rows.__setitem__)
  np.testing.assert_array_equal(updates[1], SCALES[:, None] * updates[0])
  sent = SCALES[:, None] * numpy_updates(mixed.population, start, 1)
  np.testing.assert_allclose(updates[1], sent, rtol=1e-3, atol=1e-5)
  np.testing.assert_allclose(mixed.mean_update(start, range(5), 1), sent.mean(axis=0), rtol=1e-3, atol=1e-5)


def test_a_client_that_sends_nan_is_dropped_and_counted(tff_context):
  population = with_scales(make_population(), [1, np.nan, 1, 1, np.nan])
  trainer = make_trainer(population)
  ours, figures, _ = one_round(trainer, range(5))
  without, alone, _ = one_round(trainer, [0, 2, 3])
  assert (figures['dropped'], alone['dropped']) == (2, 0)
  np.testing.assert_array_equal(ours, without)
  assert figures['train_loss'] == pytest.approx(alone['train_loss'])
  # Where nobody else trains, the model stays, and nobody's training diverged.
  start, only = trainer.start(trainer.computations.model.weights), [1, 4]
  after, figures = trainer.round(start, np.array(only), 1)
  np.testing.assert_array_equal(flat(trainer.weights(after)), flat(trainer.computations.model.weights))
  assert figures['dropped'] == 2


@pytest.mark.parametrize(
  ('name', 'scales'),
  [
    ('clipping', [1, 1, -1e6, 1, 1]),
    ('zeroing', [1, 1, -1e6, 1, 1]),
    ('robust', [1, 1, -1e6, 1, 1]),
    # Zeroing sees no outlier in an update that has only its sign turned.
    ('zeroing', SCALES),
  ],
)
def test_a_robust_round_is_the_numpy_mean_of_clipped_updates_without_the_huge_one(name, scales, tff_context):
  population = with_scales(make_population(), scales)
  trainer = with_aggregator(make_trainer(population), name)
  start = trainer.computations.model.weights
  sent = population.update_scales[:, None] * numpy_updates(population, start, 1)
  if name != 'clipping' and min(scales) == -1e6:
    sent[2] = 0.0  # It keeps its weight.
  if name != 'zeroing':
    sent /= np.maximum(1.0, np.linalg.norm(sent, axis=1))[:, None]  # TFF's first clipping norm is 1.
  expected = flat(start) + np.average(sent, axis=0, weights=population.train.counts)
  ours, _, _ = one_round(trainer, range(5))
  np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-4)


def test_mean_is_the_default_and_other_names_are_refused(tff_context):
  from tff_cluster.experiment import config
  from tff_cluster.federated import aggregators

  assert aggregators.build('mean') is None
  assert all(aggregators.build(name) is not None for name in config.AGGREGATORS if name != 'mean')
  with pytest.raises(InputError, match=r'^aggregator=median: allowed are mean, zeroing, clipping, robust'):
    aggregators.build('median')


def test_a_robust_trajectory_goes_on_with_the_same_bits(tff_context, tmp_path):
  population = with_scales(make_population(clients=4), [1, -30, 1, 1])
  trainer = with_aggregator(make_trainer(population, cohort_fraction=0.75), 'robust')
  whole, _ = go(trainer, tmp_path / 'whole', 6, keep=range(1, 7))
  for stop in (1, 3, 5):
    folder = tmp_path / f'stopped_{stop}'
    with pytest.raises(Stopped):
      go(trainer, folder, 6, stop_at=stop)
    outcome, _ = go(trainer, folder, 6, keep=(6,))
    assert outcome.client_rounds_trained == (6 - stop) * 3
    assert_same(outcome, whole, 6)
  # The bounds moved on the way: from a fresh state round 6 would be another one.
  fresh, _, _ = one_round(trainer, trainer.cohort(np.arange(4), 6), trainer.start(whole.weights[5]), 6)
  assert np.abs(fresh - flat(whole.weights[6])).max() > 1e-6


def test_every_trajectory_starts_with_fresh_bounds(tff_context):
  trainer = with_aggregator(make_trainer(make_population()), 'robust')
  first = trainer.start(trainer.computations.model.weights)
  before = trainer.state_arrays(first)
  _, _, after = one_round(trainer, range(5), first)
  again = trainer.state_arrays(trainer.start(trainer.weights(after)))
  moved = trainer.state_arrays(after)
  weights = len(trainer.weights(after))
  for one, other in zip(before[weights:], again[weights:], strict=True):
    np.testing.assert_array_equal(one, other)
  assert any(
    not np.array_equal(one, other) for one, other in zip(before[weights:], moved[weights:], strict=True)
  )


def test_honest_clients_by_themselves_have_the_trajectory_that_they_would_have_without_malicious_ones(
  tff_context, tmp_path
):
  from tff_cluster.federated import trajectory
  from tff_cluster.storage import artifacts as artifacts_lib

  honest, mixed = make_trainer(make_population()), make_trainer(with_scales(make_population(), SCALES))
  start, store = honest.computations.model.weights, artifacts_lib.Store(tmp_path)

  def place(trainer, members):
    return trajectory.Trajectory(trainer, store, {}, np.array(members), start, 0).place

  assert place(honest, [0, 2, 4]) == place(mixed, [0, 2, 4])
  assert place(honest, [0, 1, 2]) != place(mixed, [0, 1, 2])
