"""The comparison of somebody's model with Keras: what it lets pass, and each fault that it must find."""

import contextlib
import threading

import numpy as np
import pytest

from tests.federated import user_layers
from tff_cluster.base import seeding
from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.engine import machine as machine_lib

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


def dense(keras):
  return keras.Dense(16, activation='tanh')


def last(keras):
  return keras.Dense(3)


def checked(make, rows):
  from tff_cluster.federated import client_work, model_check

  model_check.check(make, client_work.model_from_keras(make(), np.float32), *rows)


def branching(keras):
  import tensorflow as tf

  class Branching(keras.Layer):
    def call(self, inputs):
      if tf.reduce_sum(inputs) > 0:  # Of a tensor: AutoGraph must translate it.
        return inputs * 2.0
      return inputs - 1.0

  return Branching()


def test_its_workers_have_the_patience_of_the_machine(rows):
  from tff_cluster.federated import client_work, model_check

  make = made_of(dense, last)
  model = client_work.model_from_keras(make(), np.float32)
  # On a busy machine the worker can be up within a millisecond of ours.
  hasty = machine_lib.Machine(worker_start_timeout_secs=1e-9)
  with pytest.raises(EnvironmentFault, match=r'did not come up within 1e-09 s'):
    model_check.check(make, model, *rows, machine=hasty)


def test_a_model_that_is_right_passes_on_one_row(rows):
  dropout, softmax = (lambda keras: keras.Dropout(0.5)), (lambda keras: keras.Softmax())
  checked(made_of(dense, dropout, last, softmax), tuple(array[:1] for array in rows))


@pytest.mark.parametrize('ends', ['logits', 'softmax', 'activation'])
def test_a_model_of_the_double_softmax_is_compared_with_that_loss_and_no_other(ends, rows):
  from tff_cluster.federated import client_work, model_check

  endings = {
    'logits': [last],
    'softmax': [last, lambda keras: keras.Softmax()],
    'activation': [lambda keras: keras.Dense(3, activation='softmax')],
  }
  make = made_of(dense, *endings[ends])
  model = client_work.model_from_keras(make(), np.float32, double_softmax=True)
  model_check.check(make, model, *rows, double_softmax=True)
  with pytest.raises(InputError, match='trains otherwise in the worker than by Keras'):
    model_check.check(make, model, *rows)


def test_autograph_translates_none_of_our_functions(rows):
  """It takes as long as TensorFlow's tracing. Keras asks for it where a layer's call needs it, see the branches above."""
  from tff_cluster.federated import client_work, optimizers, tff_computations

  seen = []

  def spy(keras):
    import tensorflow as tf

    def told(x):
      seen.append(tf.__internal__.autograph.control_status_ctx().status.name)
      return x

    return keras.Lambda(told)

  computations = tff_computations.Computations(
    client_work.model_from_keras(made_of(spy, last)(), np.float32), optimizers.Local(0.1, 32)
  )
  for name in ('local_updates', 'learning_process', 'evaluate', 'evaluate_each', 'predict'):
    seen.clear()
    getattr(computations, name)
    assert set(seen) == {'UNSPECIFIED'}, name


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


def own_dropout(keras):
  import tensorflow as tf

  class OwnDropout(keras.Dropout):
    def call(self, inputs, training=False):
      return inputs * tf.random.uniform(tf.shape(inputs)) if training else inputs

  return OwnDropout(0.5)


def hidden_softmax(keras):
  import tensorflow as tf

  return keras.Lambda(lambda x: tf.nn.softmax(x))


def broken_gradient(keras):
  import tensorflow as tf

  @tf.custom_gradient
  def broken(x):
    def gradient(_):
      raise ValueError('this gradient\nis broken')

    return x, gradient

  return keras.Lambda(lambda x: broken(x))


@pytest.mark.parametrize(
  ('layers', 'reason'),
  [
    ((dense, forgetful, last), 'trains otherwise in the worker than by Keras|predicts otherwise'),
    ((dense, two_faced, last), 'something else while it trains'),
    ((dense, fused, last), 'uses FusedBatchNorm'),
    ((dense, own_dropout, last), 'draws random numbers .RandomUniform; .* or use keras.layers.Dropout'),
    ((dense, last, hidden_softmax), 'its last layer is no softmax'),
    ((lambda keras: keras.Embedding(1, 4), lambda keras: keras.Flatten(), last), 'fails'),
    ((dense, broken_gradient, last), 'fails on the first 1 training rows: ValueError: this gradient'),
  ],
)
def test_each_fault_is_one_line_that_tells_what_differed(layers, reason, rows):
  with pytest.raises(InputError, match=reason) as caught:
    checked(made_of(*layers), rows)
  assert '\n' not in str(caught.value)


@pytest.fixture
def altered(monkeypatch):
  """Returns a function that has updates changed, found as a list, where so many clients are asked for."""
  from tff_cluster.federated import model_check

  updates = model_check._updates

  def install(clients, change):
    def changed(computations, work):
      found = [update.copy() for update in updates(computations, work)]
      if len(found) == clients:
        change(found)
      return found

    monkeypatch.setattr(model_check, '_updates', changed)

  return install


PLAIN, ALONE, BESIDE = 4, 8, 24


def test_one_bit_of_one_client_side_by_side_is_found(rows, altered):
  def one_bit_off(found):
    found[7][3] = np.nextafter(found[7][3], np.float32(1))

  altered(BESIDE, one_bit_off)
  with pytest.raises(InputError, match='of 24 clients side by side 1 got other bits than alone'):
    checked(made_of(dense, last), rows)


@pytest.mark.parametrize(
  ('clients', 'share', 'whose'),
  [
    (PLAIN, 0.05, 'a worker without oneDNN: the update of dense'),
    (ALONE, 0.05, 'Keras: the update of dense'),
    (ALONE, 1e-4, None),
  ],
)
def test_workers_must_agree_within_rounding(clients, share, whose, rows, altered):
  def longer(found):
    for update in found[:4]:  # Those of one step.
      update *= np.float32(1 + share)

  altered(clients, longer)
  with contextlib.nullcontext() if whose is None else pytest.raises(InputError, match=f'than by {whose}'):
    checked(made_of(dense, last), rows)


@pytest.fixture
def started(monkeypatch):
  """Returns the workers that are started while a test lasts, each with its clients in parallel and whether it has oneDNN."""
  from tff_cluster.federated import model_check

  found, start = [], model_check.worker_lib.start

  def recorded(clients_in_parallel, onednn=True):
    found.append((start(clients_in_parallel, onednn=onednn), clients_in_parallel, onednn))
    return found[-1][0]

  monkeypatch.setattr(model_check.worker_lib, 'start', recorded)
  return found


def before_updates(monkeypatch, act):
  """Has a function called with each list of clients before their updates are computed."""
  from tff_cluster.federated import model_check

  updates = model_check._updates

  def acted(computations, work):
    act(work)
    return updates(computations, work)

  monkeypatch.setattr(model_check, '_updates', acted)


def test_workers_compute_at_the_same_time_what_is_compiled_once_and_all_have_ended(
  rows, started, monkeypatch
):
  from tff_cluster.engine import connection
  from tff_cluster.federated import keras_graph

  at_once, all_there, built = [], threading.Barrier(3), []
  outputs = keras_graph.KerasGraph.outputs

  def met(work):
    all_there.wait(60)  # Never passed where one is asked after the other.
    at_once.append(len(work))

  def counted(graph, *inputs):
    built.append(graph)
    return outputs(graph, *inputs)

  before_updates(monkeypatch, met)
  monkeypatch.setattr(keras_graph.KerasGraph, 'outputs', counted)
  connection._compiled.cache_clear()
  checked(made_of(dense, branching, lambda keras: keras.LayerNormalization(), last), rows)
  assert sorted(at_once) == [PLAIN, ALONE, BESIDE]
  assert sorted(kind for _, *kind in started) == [[1, False], [1, True], [4, True]]
  assert not any(worker.alive for worker, *_ in started)
  assert len(built) == 3  # To take the model apart, the training step, and predictions.
  assert connection._compiled.cache_info().misses == 2


def test_nothing_is_left_where_it_ends_early(rows, started, monkeypatch):
  from tff_cluster.federated import model_check

  def interrupted(*_):
    raise KeyboardInterrupt

  monkeypatch.setattr(model_check, '_by_keras', interrupted)
  with pytest.raises(KeyboardInterrupt):
    checked(made_of(dense, last), rows)
  assert len(started) == 3 and not any(worker.alive for worker, *_ in started)
  assert not [thread for thread in threading.enumerate() if thread.name.startswith('model_check')]


def test_a_worker_that_ends_while_it_computes_is_told_of_the_model(rows, started, monkeypatch):
  def killed(work):
    if len(work) == PLAIN:
      (plain,) = [worker for worker, _, onednn in started if not onednn]
      plain.process.kill()

  before_updates(monkeypatch, killed)
  with pytest.raises(InputError, match=r'fails in the worker without oneDNN, which ended \(exit code -9\)'):
    checked(made_of(dense, last), rows)


def test_a_worker_that_does_not_come_up_is_no_fault_of_the_model(rows, monkeypatch):
  from tff_cluster.federated import model_check

  start = model_check.worker_lib.start

  def dead(*arguments, **options):
    worker = start(*arguments, **options)
    worker.process.kill()
    return worker

  monkeypatch.setattr(model_check.worker_lib, 'start', dead)
  with pytest.raises(EnvironmentFault, match='ended at start'):
    checked(made_of(dense, last), rows)


def test_equal_models_have_equal_digests_whatever_was_made_before():
  from tff_cluster.federated import client_work

  def digest(name):
    return client_work.model_from_keras(user_layers.make(name), np.float32).graph

  first = {
    name: digest(name)
    for name in ('GRU, SimpleRNN', ', '.join(user_layers.ACTIVATIONS), 'MultiHeadAttention', 'Lambda')
  }
  assert {name: digest(name) for name in reversed(first)} == first
  assert len(set(first.values())) == len(first)


@pytest.mark.parametrize(
  ('one', 'other'),
  [
    (
      lambda tf, x: tf.function(lambda a, b: a - b)(x, x * x),
      lambda tf, x: tf.function(lambda a, b: b - a)(x, x * x),
    ),
    (
      lambda tf, x: tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.nn.relu(x - h)), (0, x))[1],
      lambda tf, x: tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.nn.relu(h - x)), (0, x))[1],
    ),
    (
      lambda tf, x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.nn.relu(x), lambda: tf.tanh(x)),
      lambda tf, x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(x), lambda: tf.nn.relu(x)),
    ),
    (
      lambda tf, x: tf.switch_case(
        tf.argmax(x[0], output_type=tf.int32), [lambda: tf.nn.relu(x), lambda: tf.tanh(x)]
      ),
      lambda tf, x: tf.switch_case(
        tf.argmax(x[0], output_type=tf.int32), [lambda: tf.tanh(x), lambda: tf.nn.relu(x)]
      ),
    ),
  ],
  ids=['function', 'loop', 'condition', 'switch'],
)
def test_what_a_layer_does_within_functions_is_part_of_the_digest(one, other):
  import tensorflow as tf

  from tff_cluster.federated import client_work

  def digest(call):
    layers = tf.keras.layers
    given = [layers.InputLayer((4,)), layers.Lambda(lambda x: call(tf, x)), layers.Dense(3)]
    return client_work.model_from_keras(tf.keras.Sequential(given), np.float32).graph

  assert digest(one) == digest(one) != digest(other)
