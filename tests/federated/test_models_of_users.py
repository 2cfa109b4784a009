"""Models that users bring, as functions of their weights: the same numbers as Keras gives, or one line."""

import numpy as np
import pytest
from scipy import special

from tests.federated import user_layers
from tff_cluster.base import seeding
from tff_cluster.base.errors import InputError

pytestmark = pytest.mark.tensorflow

SHAPE, CLASSES = (6,), 3


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
    (of_float64, np.float32, 'has float64 weights; allowed: float32'),
    (lambda: sequential(layer('Lambda', lambda x: x[:, :3])), np.float32, 'makes 0 variables and has 0 trainable weights'),
    (lambda: user_layers.make('Embedding'), np.uint8, 'divided by 255'),
  ],
)  # fmt: skip
def test_models_that_tff_cannot_use_are_one_line(make, dtype, reason):
  with pytest.raises(InputError, match=reason) as caught:
    from_keras(make(), dtype)
  assert '\n' not in str(caught.value)


@pytest.mark.parametrize('ending', ['none', 'dense', 'function', 'activation', 'layer'])
def test_the_loss_and_labels_are_numpys_whether_or_not_a_softmax_is_at_the_end(ending, rows):
  """The loss is cross-entropy in nats."""
  import tensorflow as tf

  x, y = rows
  last = {
    'none': lambda: [layer('Dense', CLASSES)],
    'dense': lambda: [layer('Dense', CLASSES, activation='softmax')],
    'function': lambda: [layer('Dense', CLASSES, activation=tf.nn.softmax)],
    'activation': lambda: [layer('Dense', CLASSES), layer('Activation', 'softmax')],
    'layer': lambda: [layer('Dense', CLASSES), layer('Softmax')],
  }
  keras_model = sequential(*last[ending]())
  weights = keras_model.get_weights()
  kernel, bias = (w.astype(np.float64) for w in weights)
  outputs = x @ kernel + bias
  expected = np.log(np.exp(outputs).sum(axis=1)) - outputs[np.arange(len(y)), y]
  found, labels = losses(from_keras(keras_model), weights, x, y)
  np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
  np.testing.assert_array_equal(labels, outputs.argmax(axis=1))


@pytest.mark.parametrize('ending', ['none', 'dense', 'layer'])
def test_the_double_softmax_and_its_gradient_are_numpys(ending, rows):
  """PyTorch's CrossEntropyLoss on probabilities: log(sum(exp(p))) - p[y], with p = softmax(z)."""
  import tensorflow as tf

  from tff_cluster.federated import client_work

  x, y = rows
  last = {
    'none': [layer('Dense', CLASSES)],
    'dense': [layer('Dense', CLASSES, activation='softmax')],
    'layer': [layer('Dense', CLASSES), layer('Softmax')],
  }
  keras_model = sequential(*last[ending])
  kernel, bias = (w.astype(np.float64) for w in keras_model.get_weights())
  model = client_work.model_from_keras(keras_model, np.float32, double_softmax=True)

  shares, right = special.softmax(x @ kernel + bias, axis=1), np.eye(CLASSES)[y]
  expected = np.log(np.exp(shares).sum(axis=1)) - shares[np.arange(len(y)), y]
  found, labels = losses(model, model.weights, x, y)
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  np.testing.assert_array_equal(labels, shares.argmax(axis=1))
  # d loss / d p = softmax(p) - right; through the Jacobian of the first softmax, diag(p) - p p'.
  towards = special.softmax(shares, axis=1) - right
  of_outputs = shares * (towards - (shares * towards).sum(axis=1, keepdims=True)) / len(y)
  with tf.GradientTape() as tape:
    weights = [tf.Variable(w) for w in model.weights]
    loss = tf.reduce_mean(model.loss(weights, tf.constant(x), tf.constant(y))[0])
  of_kernel, of_bias = tape.gradient(loss, weights)
  np.testing.assert_allclose(of_kernel, x.T @ of_outputs, rtol=1e-3, atol=1e-6)
  np.testing.assert_allclose(of_bias, of_outputs.sum(axis=0), rtol=1e-3, atol=1e-6)


def functions_of_update(*layers):
  """Returns the functions of TensorFlow that a client's update of a model is made of."""
  import tensorflow as tf

  from tff_cluster.federated import client_work, optimizers

  model = from_keras(sequential(*layers))
  local = optimizers.Local(0.1, 5)
  update = client_work.build_client_update(model, local)
  with tf.Graph().as_default() as graph:
    specs = client_work.client_data_spec(model, local).items()
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
  assert model.num_parameters == 2 * (6 * 6 + 6) + 6 * 3 + 3
  assert model.num_bytes == 4 * model.num_parameters and model.num_classes == CLASSES
  np.testing.assert_array_equal(losses(model, weights, x, y)[1], expected)
