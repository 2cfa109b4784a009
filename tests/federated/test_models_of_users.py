"""Models that users bring, as functions of their weights: the same numbers as Keras gives, or one line."""

import numpy as np
import pytest

from tests.conftest import make_population
from tests.federated import user_layers
from tff_cluster.base import seeding
from tff_cluster.base.errors import InputError
from tff_cluster.data import population as population_lib

pytestmark = pytest.mark.tensorflow

SHAPE, CLASSES, SEED = (6,), 3, 2


def sequential(*layers):
  import tensorflow as tf

  tf.keras.utils.set_random_seed(7)
  return tf.keras.Sequential([tf.keras.layers.InputLayer(SHAPE), *layers])


def layer(name, *arguments, **options):
  import tensorflow as tf

  return getattr(tf.keras.layers, name)(*arguments, **options)


def from_keras(model, dtype=np.float32):
  from tff_cluster.federated import client_work

  return client_work.model_from_keras(model, dtype)


def losses(model, weights, x, y):
  import tensorflow as tf

  with tf.Graph().as_default() as graph:
    results = model.loss(tuple(map(tf.constant, weights)), tf.constant(x), tf.constant(y))
  with tf.compat.v1.Session(graph=graph) as session:
    each, predicted = session.run(results)
  return each, predicted


@pytest.fixture(scope='module')
def rows():
  rng = seeding.generator(0, 'rows of test_models_of_users')
  return rng.normal(size=(40, *SHAPE)).astype(np.float32), rng.integers(CLASSES, size=40).astype(np.int32)


def of_float64():
  import tensorflow as tf

  inputs = tf.keras.layers.InputLayer(SHAPE, dtype='float64')
  return tf.keras.Sequential([inputs, layer('Dense', CLASSES, dtype='float64')])


# Dropout and GaussianNoise are in the table of user_layers.py.
@pytest.mark.parametrize(
  ('make', 'dtype', 'reason'),
  [
    (lambda: sequential(layer('GaussianDropout', 0.2), layer('Dense', 3)), np.float32, 'draws random numbers'),
    (lambda: sequential(layer('AlphaDropout', 0.3), layer('Dense', 3)), np.float32, 'draws random numbers'),
    (of_float64, np.float32, 'has float64 weights; allowed: float32'),
    (lambda: sequential(layer('Lambda', lambda x: x[:, :3])), np.float32, 'makes 0 variables and has 0 trainable weights'),
    (lambda: user_layers.make('Embedding'), np.uint8, 'divided by 255'),
  ],
)  # fmt: skip
def test_models_that_tff_cannot_use_are_one_line(make, dtype, reason):
  with pytest.raises(InputError, match=reason) as caught:
    from_keras(make(), dtype)
  assert '\n' not in str(caught.value)


@pytest.mark.parametrize('ending', ['dense', 'function', 'activation', 'layer'])
def test_a_softmax_at_the_end_gives_the_loss_and_labels_of_the_logits(ending, rows):
  """The logits' own are those of NumPy: cross-entropy in nats."""
  import tensorflow as tf

  x, y = rows
  last = {
    'dense': lambda: [layer('Dense', CLASSES, activation='softmax')],
    'function': lambda: [layer('Dense', CLASSES, activation=tf.nn.softmax)],
    'activation': lambda: [layer('Dense', CLASSES), layer('Activation', 'softmax')],
    'layer': lambda: [layer('Dense', CLASSES), layer('Softmax')],
  }
  logits, probabilities = sequential(layer('Dense', CLASSES)), sequential(*last[ending]())
  weights = logits.get_weights()
  probabilities.set_weights(weights)
  kernel, bias = (w.astype(np.float64) for w in weights)
  outputs = x @ kernel + bias
  expected = np.log(np.exp(outputs).sum(axis=1)) - outputs[np.arange(len(y)), y]
  for keras_model in (logits, probabilities):
    found, labels = losses(from_keras(keras_model), weights, x, y)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
    np.testing.assert_array_equal(labels, outputs.argmax(axis=1))


def test_weights_and_sizes_are_those_of_the_keras_model():
  keras_model = sequential(layer('Dense', 8), layer('Dense', CLASSES))
  weights = keras_model.get_weights()
  model = from_keras(keras_model)
  for one, other in zip(model.weights, weights, strict=True):
    np.testing.assert_array_equal(one, other)
  assert model.num_parameters == 6 * 8 + 8 + 8 * 3 + 3
  assert model.num_bytes == 4 * model.num_parameters
  assert model.num_classes == CLASSES


def as_images(population):
  """Returns the population with float rows of shape (3, 2, 1)."""

  def image(split):
    return population_lib.Split(split.x.reshape(-1, 3, 2, 1), split.y, split.offsets)

  splits = [image(s) for s in (population.train, population.validation, population.test)]
  return population_lib.Population(
    'images', population.client_ids, *splits, splits[2].x, splits[2].y, population.num_classes
  )


def network():
  import tensorflow as tf

  layers, inputs = tf.keras.layers, tf.keras.Input((3, 2, 1))
  tf.keras.utils.set_random_seed(3)
  flat = layers.Flatten()(inputs)
  inner = layers.Dense(6, activation='tanh')(flat)
  return tf.keras.Model(inputs, layers.Dense(CLASSES, activation='softmax')(layers.Add()([inner, flat])))


def test_a_round_of_a_network_is_keras_own_training(tff_context):
  """One client, two epochs, against Keras's optimizer and loss with the same visit orders; layers are in user_layers.py."""
  import tensorflow as tf

  from tff_cluster.federated import process, trainer

  population = as_images(make_population(clients=2))
  computations = process.Computations(from_keras(network()), 0.2, 7)
  ours = trainer.Trainer(population, computations, 2, 1.0, SEED)
  state, _ = ours.round(ours.start(computations.model.weights), np.array([1]), 1)

  measured = ours.measure(ours.weights(state), population.test, range(2))

  # Made anew: TFF copies models inside graphs, which turns the classes of all Keras models into those of
  # TensorFlow 1 until the next model is made outside of one.
  keras_model = network()
  x, y = population.train.client(1)
  loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=False)
  optimizer = tf.keras.optimizers.SGD(0.2)
  rng = seeding.generator(SEED, 'visit order', 1, 'c01')
  for order in [rng.permutation(len(y)) for _ in range(2)]:
    for start in range(0, len(y), 7):
      batch = order[start : start + 7]
      with tf.GradientTape() as tape:
        value = loss(y[batch], keras_model(x[batch], training=True))
      variables = keras_model.trainable_variables
      optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
  for found, expected in zip(ours.weights(state), keras_model.get_weights(), strict=True):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

  for k in range(2):
    x, y = population.test.client(k)
    predicted = keras_model.predict(x, verbose=0).argmax(axis=1)
    assert measured.correct[k] == (predicted == y).sum()


def functions_of_update(*layers):
  """Returns the functions of TensorFlow that a client's update of a model is made of."""
  import tensorflow as tf
  import tensorflow_federated as tff

  from tff_cluster.federated import client_work

  model = from_keras(sequential(*layers))
  update = client_work.build_client_update(model, tff.learning.optimizers.build_sgdm(0.1), 5)
  with tf.Graph().as_default() as graph:
    specs = client_work.client_data_spec(model).items()
    rows = {name: tf.zeros([4 if n is None else n for n in s.shape], s.dtype) for name, s in specs}
    update([tf.constant(w) for w in model.weights], rows)
  return graph.as_graph_def().library.function


def test_a_training_step_is_a_flat_function_that_holds_the_pooling_and_its_gradient():
  """So that both become oneDNN's; a loop over batches takes a quarter longer otherwise."""
  pooled = layer('Reshape', (6, 1, 1)), layer('MaxPool2D', (2, 1)), layer('Flatten')
  functions = functions_of_update(layer('Dense', 6), *pooled, layer('Dense', CLASSES))
  (step,) = (function for function in functions if function.attr['_noinline'].b)
  kinds = {node.op for node in step.node_def}
  assert {'MaxPool', 'MaxPoolGrad'} <= kinds
  assert not {kind for kind in kinds if 'Call' in kind}


def test_layer_normalization_is_trained_without_the_operation_that_clients_cannot_share():
  functions = functions_of_update(layer('Dense', 6), layer('LayerNormalization'), layer('Dense', CLASSES))
  kinds = {node.op for function in functions for node in function.node_def}
  assert 'Rsqrt' in kinds
  assert not {kind for kind in kinds if kind.startswith('FusedBatchNorm')}


def test_weights_that_a_layer_makes_in_another_order_than_it_lists_them_keep_their_places(rows):
  import tensorflow as tf

  class Backwards(tf.keras.layers.Layer):
    def __init__(self, **options):
      super().__init__(**options)
      self.first, self.second = tf.keras.layers.Dense(6), tf.keras.layers.Dense(6)

    def call(self, inputs):
      return self.first(tf.tanh(self.second(inputs)))

  x, y = rows
  keras_model = sequential(Backwards(), layer('Dense', CLASSES))
  weights = keras_model.get_weights()
  expected = keras_model(x).numpy().argmax(axis=1)
  model = from_keras(keras_model)
  for one, other in zip(model.weights, weights, strict=True):
    np.testing.assert_array_equal(one, other)
  np.testing.assert_array_equal(losses(model, weights, x, y)[1], expected)
