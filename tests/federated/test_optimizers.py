"""Optimizers of clients and of the server, penalties and decay, against rounds written in NumPy."""

import numpy as np
import pytest

from tests.conftest import make_population
from tests.federated.test_malicious_updates import flat
from tests.federated.test_same_bits import SHAPES
from tests.federated.test_training import BATCH, EPOCHS, make_trainer, softmax, visit_orders
from tff_cluster.base import seeding
from tff_cluster.models import build

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


def gradient_of_loss(weights, x, y):
  """Of the mean cross-entropy of multinomial logistic regression, weights float64[features * classes + classes]."""
  kernel, bias = np.split(weights, [-CLASSES])
  error = softmax(x @ kernel.reshape(-1, CLASSES) + bias)
  error[np.arange(len(y)), y] -= 1.0
  return np.concatenate([(x.T @ error / len(y)).ravel(), error.mean(axis=0)])


def numpy_client(start, x, y, orders, rate=RATE, optimizer='sgd', momentum=0.9, weight_decay=0.0, proximal_mu=0.0, anchor=None, rows=lambda x, step: x):  # fmt: skip
  """Returns the weights after a client's epochs; `rows` alters the rows of a step."""
  weights, steps, stepper = start.astype(np.float64), 0, Stepper(optimizer, rate, momentum)
  anchor = weights if anchor is None else anchor
  for order in orders:
    for batch in np.split(order, range(BATCH, len(order), BATCH)):
      gradient = gradient_of_loss(weights, rows(x[batch], steps), y[batch])
      gradient = gradient + weight_decay * weights + proximal_mu * (weights - anchor)
      weights, steps = stepper.step(weights, gradient), steps + 1
  return weights


@pytest.fixture(scope='module')
def population():
  return make_population()


def model_of(population, name='logistic'):
  from tff_cluster.federated import client_work

  keras_model = build.build(name, population.input_shape, population.num_classes, 11)
  return client_work.model_from_keras(keras_model, np.float32)


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
  expected = numpy_client(start, x, y, orders, **options, anchor=anchor)
  np.testing.assert_allclose(start - flat(update), expected, **CLOSE)
  assert (float(weight), float(visited), bool(finite)) == (7.0, EPOCHS * len(y), True)
  # What is left out would show.
  for name in options:
    without = numpy_client(
      start, x, y, orders, **{k: v for k, v in options.items() if k != name}, anchor=anchor
    )
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


@pytest.mark.parametrize('name', ['2nn', 'mnist_cnn'])
def test_the_default_is_a_plain_loop_of_sgd_bit_for_bit(name, tff_context):
  """The loop as it was before there were options."""
  import functools

  import tensorflow as tf
  import tensorflow_federated as tff

  from tff_cluster.federated import client_work, optimizers, tff_computations

  population = make_population(clients=2, rows=11, shape=SHAPES[name])
  model, size = model_of(population, name), 4
  computations = tff_computations.Computations(model, optimizers.Local(0.05, size))
  spec = client_work.client_data_spec(model, computations.local)
  assert list(spec) == ['x', 'y', 'order', 'scale', 'weight', 'last']
  sgd = tff.learning.optimizers.build_sgdm(0.05)

  @functools.partial(tf.function, autograph=False, experimental_attributes={'_noinline': True})
  def step_of(state, weights, x, y):
    with tf.GradientTape() as tape:
      tape.watch(weights)
      loss = tf.reduce_mean(model.loss(weights, x, y)[0])
    gradients = tape.gradient(loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return sgd.next(state, weights, gradients)

  @tff.tensorflow.computation(model.weights_type, tff.types.tensorflow_to_type(spec))
  def plain(weights, data):
    batches = (tf.shape(data['y'])[0] + size - 1) // size

    def step(number, state, weights):
      start = (number % batches) * size
      visit = data['order'][number // batches, start : tf.minimum(start + size, tf.shape(data['y'])[0])]
      state, weights = step_of(state, weights, tf.gather(data['x'], visit), tf.gather(data['y'], visit))
      return number + 1, state, weights

    specs = tuple(tf.TensorSpec(w.shape, w.dtype) for w in model.weights)
    state, steps = sgd.initialize(specs), tf.shape(data['order'])[0] * batches
    first = (tf.constant(0), state, tuple(weights))
    *_, after = tf.while_loop(lambda number, *_: number < steps, step, first, parallel_iterations=10)
    return tf.concat([tf.reshape(b - a, [-1]) for a, b in zip(after, tuple(weights), strict=True)], axis=0)

  x, y = population.train.client(1)
  work = {'x': x, 'y': y, **client_work.beside_rows(np.array(visit_orders(population, 1, 1)))}
  (found,) = computations.local_updates(list(model.weights), [work])
  expected = -np.asarray(plain(list(model.weights), work))
  assert np.any(expected != 0) and np.asarray(found).tobytes() == expected.tobytes()


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
      trained.append(numpy_client(weights, *population.train.client(k), orders, rate, **options))
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
  after, figures = trainer.round(state, np.arange(5), 2, may_diverge=True)
  population.train.x[:] = x
  assert (figures['dropped'], figures['update_norm']) == (5, 0.0)
  for one, other in zip(trainer.state_arrays(state), trainer.state_arrays(after), strict=True):
    np.testing.assert_array_equal(one, other)
