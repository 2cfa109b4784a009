"""The comparison of somebody's model with Keras: what it lets pass, and each fault that it must find."""

import numpy as np
import pytest

from tests.federated import user_layers
from tff_cluster.base import seeding
from tff_cluster.base.errors import InputError

pytestmark = pytest.mark.tensorflow
SHAPE = user_layers.VECTOR


@pytest.fixture(scope='module')
def rows():
  rng = seeding.generator(0, 'rows of test_model_check')
  return rng.normal(size=(40, *SHAPE)).astype(np.float32), rng.integers(3, size=40).astype(np.int32)


def made_of(*layers):
  def make():
    import tensorflow as tf

    tf.keras.backend.reset_uids()
    tf.keras.utils.set_random_seed(7)
    inputs = tf.keras.layers.InputLayer(SHAPE)
    return tf.keras.Sequential([inputs, *(layer(tf.keras.layers) for layer in layers)])

  return make


def dense(units):
  return lambda keras: keras.Dense(units, activation='tanh')


def last(keras):
  return keras.Dense(3)


def checked(make, rows):
  from tff_cluster.federated import client_work, model_check

  model_check.check(make, client_work.model_from_keras(make(), np.float32), *rows)


def test_models_that_are_right_pass(rows):
  checked(made_of(dense(16), lambda keras: keras.LayerNormalization(), last), rows)
  one_row = tuple(array[:1] for array in rows)
  checked(made_of(dense(16), last, lambda keras: keras.Softmax()), one_row)


def forgetful(keras):
  class Times(keras.Layer):
    def __init__(self, factor=1.0, **options):
      super().__init__(**options)
      self.factor = factor

    def call(self, inputs):
      return inputs * self.factor

    def get_config(self):
      return super().get_config()  # The factor is left out.

  return Times(1.1)


def two_faced(keras):
  class TwoFaced(keras.Layer):
    def call(self, inputs, training=False):
      return inputs * 2.0 if training else inputs

  return TwoFaced()


def fused(keras):
  import tensorflow as tf

  def normalized(x):
    ones, image = tf.ones([16]), tf.reshape(x, [-1, 1, 1, 16])
    return tf.reshape(tf.compat.v1.nn.fused_batch_norm(image, ones, ones)[0], [-1, 16])

  return keras.Lambda(normalized)


def hidden_softmax(keras):
  import tensorflow as tf

  return keras.Lambda(lambda x: tf.nn.softmax(x))


@pytest.mark.parametrize(
  ('layers', 'reason'),
  [
    ((dense(16), forgetful, last), 'trains otherwise in the worker than by Keras|predicts otherwise'),
    ((dense(16), two_faced, last), 'something else while it trains'),
    ((dense(16), fused, last), 'uses FusedBatchNorm'),
    ((dense(16), last, hidden_softmax), 'its last layer is no softmax'),
    ((lambda keras: keras.Embedding(1, 4), lambda keras: keras.Flatten(), last), 'fails'),
  ],
)
def test_each_fault_is_one_line_that_tells_what_differed(layers, reason, rows):
  with pytest.raises(InputError, match=reason) as caught:
    checked(made_of(*layers), rows)
  assert '\n' not in str(caught.value)


def test_one_bit_of_one_client_side_by_side_is_found(rows, monkeypatch):
  from tff_cluster.federated import model_check

  updates = model_check._updates

  def one_bit_off(computations, work):
    found = updates(computations, work)
    if len(found) > 4:  # Those side by side.
      found[7] = found[7].copy()
      found[7][3] = np.nextafter(found[7][3], np.float32(1))
    return found

  monkeypatch.setattr(model_check, '_updates', one_bit_off)
  with pytest.raises(InputError, match='of 24 clients side by side 1 got other bits than alone'):
    checked(made_of(dense(16), last), rows)


@pytest.mark.parametrize(('share', 'passes'), [(1e-4, True), (0.05, False)])
def test_a_worker_without_onednn_must_agree_within_rounding(share, passes, rows, monkeypatch):
  from tff_cluster.federated import model_check

  in_worker = model_check._in_worker

  def altered(computations, clients, onednn=True):
    found = in_worker(computations, clients, onednn)
    if not onednn:
      found.updates[:] = [update * np.float32(1 + share) for update in found.updates]
    return found

  monkeypatch.setattr(model_check, '_in_worker', altered)
  if passes:
    checked(made_of(dense(16), last), rows)
  else:
    with pytest.raises(InputError, match='than by a worker without oneDNN: the update of dense'):
      checked(made_of(dense(16), last), rows)


def test_an_embedding_of_bytes_is_refused():
  from tff_cluster.federated import client_work

  with pytest.raises(InputError, match='divided by 255'):
    client_work.model_from_keras(user_layers.make('Embedding'), np.uint8)


def test_equal_models_have_equal_digests_whatever_was_made_before():
  from tff_cluster.federated import client_work

  def digest(name):
    return client_work.model_from_keras(user_layers.make(name), np.float32).graph

  first = {name: digest(name) for name in ('LSTM', 'swish', 'MultiHeadAttention', 'gelu')}
  assert {name: digest(name) for name in reversed(first)} == first
  assert len(set(first.values())) == len(first)
