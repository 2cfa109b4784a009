"""Dropout: its draws against TensorFlow's stateless ones asked for by hand, and no dropout where a model is measured."""

import dataclasses

import numpy as np
import pytest

from tests.conftest import make_population
from tests.federated.small_trainer import BATCH, SEED, visit_orders
from tests.made_up.linear_model import flat, sgd
from tff_cluster.base import seeding
from tff_cluster.data import population as population_lib

pytestmark = pytest.mark.tensorflow
RATE, DROPPED = 0.1, 0.4


def make_trainer(population, *dropped):
  import tensorflow as tf

  from tff_cluster.federated import client_work, optimizers, tff_computations, trainer

  tf.keras.utils.set_random_seed(3)
  shape, layers = population.input_shape, tf.keras.layers
  chain = [layers.InputLayer(shape), *map(layers.Dropout, dropped), layers.Dense(population.num_classes)]
  model = client_work.model_from_keras(tf.keras.Sequential(chain), np.float32)
  computations = tff_computations.Computations(model, optimizers.Local(RATE, BATCH))
  return trainer.Trainer(population, computations, 2, 1.0, SEED)


@pytest.fixture(scope='module')
def population():
  return make_population()


@pytest.fixture(scope='module')
def trainer(population, tff_context):
  return make_trainer(population, DROPPED)


def test_rounds_follow_numpy_with_the_masks_of_the_seed(population, trainer):
  import tensorflow as tf

  state, weights = trainer.start(trainer.computations.model.weights), flat(trainer.computations.model.weights)
  shares, kept = population.train.counts / population.train.counts.sum(), []
  for number in (1, 2):
    state, _ = trainer.round(state, np.arange(5), number)
    trained = []
    for k in range(5):
      seed = seeding.integer_seed(SEED, 'dropout', number, population.client_ids[k])

      def masked(x, step, seed=seed):
        of_layer = tf.random.experimental.stateless_fold_in(tf.constant([seed, step]), 0)
        drawn = tf.random.stateless_uniform(
          x.shape, tf.random.experimental.stateless_fold_in(of_layer, 0), alg='philox'
        ).numpy()
        kept.append(np.mean(drawn >= DROPPED))
        return np.where(drawn >= DROPPED, x / (1 - DROPPED), 0.0)

      orders = visit_orders(population, k, number)
      trained.append(sgd(weights, *population.train.client(k), orders, BATCH, RATE, altered=masked))
    weights = shares @ trained
    np.testing.assert_allclose(flat(trainer.weights(state)), weights, rtol=1e-3, atol=2e-5)
  assert np.mean(kept) == pytest.approx(1 - DROPPED, abs=0.05) and len(set(kept)) > 5


def test_every_round_and_client_drops_something_else_and_a_repetition_the_same(population, trainer):
  weights = trainer.computations.model.weights
  # Clients with the same single row: what tells their updates apart is what they drop.
  x, y = (np.repeat(array[:1], 5, axis=0) for array in (population.train.x, population.train.y))
  alike = dataclasses.replace(population, train=population_lib.Split(x, y, np.arange(6)))
  alike_trainer = type(trainer)(alike, trainer.computations, 2, 1.0, SEED)

  def updates(number, clients=(0, 1, 2, 3, 4)):
    found = {}
    alike_trainer.local_updates(
      weights, clients, number, lambda i, u: found.update({clients[i]: u.tobytes()})
    )
    return found

  first = updates(1)
  assert len(set(first.values())) == 5 and set(first.values()).isdisjoint(updates(2).values())
  assert updates(1, [4, 2, 0]) == {k: first[k] for k in (0, 2, 4)}


def test_a_model_is_measured_without_dropout(population, trainer):
  plain = make_trainer(population)
  weights = plain.computations.model.weights
  assert not plain.computations.model.draws and trainer.computations.model.draws
  x = population.global_test_x
  assert trainer.predict(weights, x).tobytes() == plain.predict(weights, x).tobytes()
  ours, theirs = (t.measure(weights, population.test, range(5)) for t in (trainer, plain))
  np.testing.assert_array_equal(ours.counts, theirs.counts)
  np.testing.assert_array_equal(ours.loss_sum, theirs.loss_sum)


def test_dropout_of_nothing_is_no_draw(population, tff_context):
  assert not make_trainer(population, 0.0).computations.model.draws
