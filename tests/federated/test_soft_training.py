"""What methods with shares ask of the trainer: weights of rows, a pull beside the loss, losses of rows, means of updates."""

import numpy as np
import pytest

from tests.conftest import make_population
from tests.federated.small_trainer import BATCH, RATE, make_trainer, visit_orders
from tests.made_up.linear_model import cross_entropies, flat, sgd
from tff_cluster.base import seeding

pytestmark = pytest.mark.tensorflow
EVERYONE = np.arange(5)


@pytest.fixture(scope='module')
def population():
  return make_population()


@pytest.fixture(scope='module')
def trainer(population, tff_context):
  return make_trainer(population)


def trained(population, client, number, start, **options):
  orders = visit_orders(population, client, number)
  return sgd(start, *population.train.client(client), orders, BATCH, RATE, **options)


def updates_of(trainer, *args, **options):
  found = np.zeros((len(EVERYONE), trainer.computations.model.num_parameters), np.float32)
  trainer.local_updates(
    trainer.computations.model.weights,
    EVERYONE,
    2,
    lambda k, update: np.copyto(found[k], update),
    *args,
    **options,
  )
  return found


def test_the_losses_of_rows_are_multiplied_with_their_weights(population, trainer):
  start = trainer.computations.model.weights
  rng = seeding.generator(0, 'weights of rows')
  weights = [rng.uniform(size=population.train.counts[k]) for k in EVERYONE]
  state, figures = trainer.round(trainer.start(start), EVERYONE, 3, row_weights=weights)
  expected = [trained(population, k, 3, start, row_weights=weights[k]) for k in EVERYONE]
  mean = np.average(expected, axis=0, weights=population.train.counts)
  np.testing.assert_allclose(flat(trainer.weights(state)), mean, rtol=1e-4, atol=1e-5)
  assert figures['dropped'] == 0


def test_rows_that_weigh_one_are_plain_federated_averaging_bit_for_bit(population, trainer):
  start = trainer.start(trainer.computations.model.weights)
  ones = [np.ones(rows) for rows in population.train.counts]
  (weighted, one), (plain, other) = (
    trainer.round(start, EVERYONE, 1, row_weights=weights) for weights in (ones, None)
  )
  assert all(map(np.array_equal, trainer.weights(weighted), trainer.weights(plain)))
  assert one == other


def test_clients_are_pulled_to_where_they_start_or_to_an_anchor(population, trainer):
  start = trainer.computations.model.weights
  rng = seeding.generator(0, 'anchor')
  anchor = tuple(rng.normal(size=w.shape).astype(np.float32) for w in start)

  def pulled(client, to):
    return trained(population, client, 2, start, proximal_mu=2.0, anchor=to)

  found = updates_of(trainer, proximal_mu=2.0)
  for k in EVERYONE:
    np.testing.assert_allclose(flat(start) + found[k], pulled(k, None), rtol=1e-3, atol=2e-5)
  state, _ = trainer.round(trainer.start(start), EVERYONE, 2, pull=(2.0, anchor))
  mean = np.average([pulled(k, anchor) for k in EVERYONE], axis=0, weights=population.train.counts)
  np.testing.assert_allclose(flat(trainer.weights(state)), mean, rtol=1e-3, atol=2e-5)
  assert np.array_equal(updates_of(trainer, proximal_mu=0.0), updates_of(trainer))


def test_losses_of_rows_are_those_of_numpy_for_every_model(population, trainer):
  rng = seeding.generator(0, 'models')
  like = trainer.computations.model.weights
  models = [tuple(rng.normal(size=w.shape).astype(np.float32) for w in like) for _ in range(3)]
  found = trainer.row_losses(models, population.train, [3, 1])
  for losses, k in zip(found, (3, 1), strict=True):
    for row, model in zip(losses, models, strict=True):
      expected = cross_entropies(model, *population.train.client(k))
      np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-5)


def test_models_that_do_not_fit_into_a_message_go_in_several(population, trainer, monkeypatch):
  from tff_cluster.engine import jobs

  models = [trainer.computations.model.weights] * 3
  together = trainer.row_losses(models, population.train, EVERYONE)
  sent = []

  def few(sizes, most=0, portions=jobs.portions):
    found = list(portions(sizes, 2 * sizes[0]))
    sent.append(found)
    return iter(found)

  monkeypatch.setattr(jobs, 'portions', few)
  apart = trainer.row_losses(models, population.train, EVERYONE)
  assert [[0, 1], [2]] in sent
  assert all(map(np.array_equal, together, apart))


@pytest.mark.parametrize('clients', [1, 5])
def test_averaged_updates_are_a_round_bit_for_bit(population, trainer, clients):
  cohort = EVERYONE[:clients]
  start = trainer.start(trainer.computations.model.weights)
  state, _ = trainer.round(start, cohort, 2)
  updates = updates_of(trainer)[:clients]
  averaged = trainer.average(start, updates, population.train.counts[:clients])
  assert all(map(np.array_equal, trainer.weights(averaged), trainer.weights(state)))


@pytest.mark.parametrize('clients', [1, 3, 5, 11])
def test_a_mean_that_is_taken_here_has_the_bits_of_that_of_the_worker(trainer, clients):
  rng = np.random.default_rng(clients)
  like = trainer.computations.model.weights

  # Down to below the least normal number, which TensorFlow takes for 0.
  def drawn(*shape):
    return (rng.choice([-1, 1], shape) * 10.0 ** rng.uniform(-45, 3, shape)).astype(np.float32)

  for _ in range(20):
    start = trainer.start(tuple(drawn(*w.shape) for w in like))
    updates = drawn(clients, trainer.computations.model.num_parameters)
    updates[:, ::7] = 0.0
    updates[4:5] = np.nan
    weights = rng.uniform(0.0, 3.0, clients)
    here = trainer.average(start, updates, weights)
    # The sum is taken here and divided there; then all is done there.
    for elsewhere in (('is_mean',), ('is_mean', 'adds_up_chunks')):
      with pytest.MonkeyPatch.context() as patch:
        for name in elsewhere:
          patch.setattr(type(trainer.computations), name, False)
        there = trainer.average(start, updates, weights)
      for one, other in zip(trainer.state_arrays(here), trainer.state_arrays(there), strict=True):
        assert one.tobytes() == other.tobytes(), elsewhere


def test_updates_that_are_not_finite_are_left_out_of_a_mean(population, trainer):
  start = trainer.start(trainer.computations.model.weights)
  updates = updates_of(trainer)
  without = trainer.average(start, updates[[0, 2]], np.ones(2))
  updates[1] = np.nan
  averaged = trainer.average(start, updates[:3], np.ones(3))
  for one, other in zip(trainer.weights(averaged), trainer.weights(without), strict=True):
    np.testing.assert_allclose(one, other, atol=1e-6)
  assert trainer.average(start, updates[[1]], np.ones(1)) is start
