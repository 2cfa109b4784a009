"""Optimizers of clients and of the server, penalties and decay, against rounds written in NumPy."""

import numpy as np
import pytest

from tests.conftest import make_population
from tests.federated.small_trainer import BATCH, EPOCHS, make_trainer, model_of, visit_orders
from tests.made_up.linear_model import flat, sgd
from tff_cluster.base import seeding

pytestmark = pytest.mark.tensorflow
RATE, CLASSES = 0.1, 3
CLOSE = {'rtol': 1e-3, 'atol': 2e-5}


class Stepper:
  """A rule of the textbooks, float64: `step` takes weights and gradient, and gives the weights after it.

  Momentum as Polyak has it; Adam in the order of operations that Kingma and Ba give at the end of their section 2; Yogi of Zaheer et
  al. 2018. Both with the constants that TFF documents.
  """

  def __init__(self, name, rate, momentum=0.9):
    self.name, self.rate, self.momentum = name, rate, momentum
    self.time, self.mean, self.square = 0, 0.0, 1e-6 if name == 'yogi' else 0.0

  def step(self, weights, gradient):
    if self.name == 'sgd':
      return weights - self.rate * gradient
    if self.name == 'momentum':
      self.mean = self.momentum * self.mean + gradient
      return weights - self.rate * self.mean
    self.time += 1
    self.mean = 0.9 * self.mean + 0.1 * gradient
    if self.name == 'adam':
      self.square = 0.999 * self.square + 0.001 * gradient**2
    else:
      self.square = self.square - 0.001 * np.sign(self.square - gradient**2) * gradient**2
    rate = self.rate * np.sqrt(1 - 0.999**self.time) / (1 - 0.9**self.time)
    return weights - rate * self.mean / (np.sqrt(self.square) + {'adam': 1e-7, 'yogi': 1e-3}[self.name])


def by_hand(start, x, y, orders, rate=RATE, optimizer='sgd', momentum=0.9, **penalties):
  step = Stepper(optimizer, rate, momentum).step
  return sgd(start, x, y, orders, BATCH, rate, step=step, **penalties)


@pytest.fixture(scope='module')
def population():
  return make_population()


def like(model, vector):
  pieces = np.split(vector.astype(np.float32), np.cumsum([w.size for w in model.weights])[:-1])
  return tuple(piece.reshape(w.shape) for piece, w in zip(pieces, model.weights, strict=True))


CLIENTS = [
  {'optimizer': 'momentum', 'momentum': 0.5},
  {'optimizer': 'momentum'},
  {'optimizer': 'adam'},
  {'weight_decay': 0.7},
  {'proximal_mu': 3.0},
  {'optimizer': 'momentum', 'weight_decay': 0.3, 'proximal_mu': 1.5},
  {'optimizer': 'adam', 'weight_decay': 0.3, 'proximal_mu': 1.5},
]


@pytest.mark.parametrize('options', CLIENTS, ids=str)
@pytest.mark.parametrize('anchored', [False, True])
def test_a_client_steps_as_in_numpy(options, anchored, population):
  from tff_cluster.federated import client_work, optimizers

  model, (x, y) = model_of(population), population.train.client(3)
  orders, start = visit_orders(population, 3, 1), flat(model.weights)
  anchor = seeding.generator(0, 'anchor').normal(size=start.size) if anchored else None
  brought = None if anchor is None else like(model, anchor)
  data = {'x': x, 'y': y, **client_work.beside_rows(np.array(orders), weight=7.0, anchor=brought)}
  local = optimizers.Local(RATE, BATCH, brings_anchor=anchored, **options)
  update, weight, _, visited, finite = client_work.build_client_update(model, local)(model.weights, data)
  expected = by_hand(start, x, y, orders, **options, anchor=anchor)
  np.testing.assert_allclose(start - flat(update), expected, **CLOSE)
  assert (float(weight), float(visited), bool(finite)) == (7.0, EPOCHS * len(y), True)
  # What is left out would show.
  for name in options:
    without = by_hand(start, x, y, orders, **{k: v for k, v in options.items() if k != name}, anchor=anchor)
    assert np.abs(without - expected).max() > 10 * CLOSE['atol']


def test_penalties_pull_rows_of_an_embedding_that_no_batch_looks_at():
  import tensorflow as tf

  from tff_cluster.federated import client_work, optimizers

  layers = [tf.keras.layers.Embedding(9, 2), tf.keras.layers.Flatten(), tf.keras.layers.Dense(CLASSES)]
  model = client_work.model_from_keras(
    tf.keras.Sequential([tf.keras.layers.InputLayer((4,)), *layers]), np.float32
  )
  x, y = np.array([[0, 1, 2, 3]], np.float32), np.array([1], np.int32)
  data = {'x': x, 'y': y, **client_work.beside_rows(np.zeros((2, 1)))}
  local = optimizers.Local(RATE, 0, weight_decay=0.5, proximal_mu=0.25)
  table = client_work.build_client_update(model, local)(model.weights, data)[0][0].numpy()
  start, after = model.weights[0][4:], model.weights[0][4:]
  for _ in range(2):
    after = after - RATE * (0.5 * after + 0.25 * (after - start))
  np.testing.assert_allclose(table[4:], start - after, rtol=1e-4)


def test_by_default_clients_are_handed_nothing_that_belongs_to_an_option(population):
  from tff_cluster.federated import client_work, optimizers

  spec = client_work.client_data_spec(model_of(population), optimizers.Local(RATE, BATCH))
  assert list(spec) == ['x', 'y', 'order', 'scale', 'weight', 'last']


ROUNDS = {
  'sgd at half the rate': ({}, {'learning_rate': 0.5}),
  'momentum': ({'learning_rate_decay': 0.5}, {'optimizer': 'momentum', 'learning_rate': 0.7, 'momentum': 0.8}),
  'adam': ({'optimizer': 'momentum', 'learning_rate_decay': 0.5}, {'optimizer': 'adam', 'learning_rate': 0.05}),
  'yogi': (
    {'optimizer': 'adam', 'weight_decay': 0.3, 'proximal_mu': 1.5, 'learning_rate_decay': 0.25},
    {'optimizer': 'yogi', 'learning_rate': 0.05},
  ),
}  # fmt: skip


@pytest.mark.parametrize(('local', 'server'), ROUNDS.values(), ids=ROUNDS.keys())
def test_rounds_follow_numpy(local, server, population, tff_context):
  """The server's gradient is the mean update, before minus after (Reddi et al. 2021, algorithm 2)."""
  trainer, everyone = make_trainer(population, rate=RATE, server=server, **local), np.arange(5)
  state = trainer.start(trainer.computations.model.weights)
  weights = flat(trainer.computations.model.weights)
  stepper = Stepper(server.get('optimizer', 'sgd'), server['learning_rate'], server.get('momentum', 0.9))
  options = {name: value for name, value in local.items() if name != 'learning_rate_decay'}
  shares = population.train.counts / population.train.counts.sum()
  for number in (1, 2, 3):
    rate, trained = RATE * local.get('learning_rate_decay', 1.0) ** (number - 1), []
    for k in everyone:
      orders = visit_orders(population, k, number)
      trained.append(by_hand(weights, *population.train.client(k), orders, rate, **options))
    update = weights - shares @ trained
    before, (state, figures) = state, trainer.round(state, everyone, number)
    assert figures['update_norm'] == pytest.approx(np.linalg.norm(update), rel=1e-3)
    weights = stepper.step(weights, update)
    np.testing.assert_allclose(flat(trainer.weights(state)), weights, **CLOSE)
  sent = np.zeros((5, weights.size))
  start = trainer.weights(before)
  trainer.local_updates(start, everyone, 3, sent.__setitem__)
  np.testing.assert_allclose(flat(start) + sent, trained, **CLOSE)


def test_a_round_without_a_finite_update_changes_neither_model_nor_memory(population, tff_context):
  trainer = make_trainer(population, server={'optimizer': 'adam', 'learning_rate': 0.05})
  state, _ = trainer.round(trainer.start(trainer.computations.model.weights), np.arange(5), 1)
  x = population.train.x
  population.train.x[:] = np.inf
  after, figures = trainer.round(state, np.arange(5), 2)
  population.train.x[:] = x
  assert (figures['dropped'], figures['update_norm']) == (5, 0.0)
  for one, other in zip(trainer.state_arrays(state), trainer.state_arrays(after), strict=True):
    np.testing.assert_array_equal(one, other)
