"""Every layer of docs/models.md: a client's update is that of Keras and a gradient tape, or the layer is refused."""

import pathlib

import numpy as np
import pytest

from tests.federated import user_layers
from tff_cluster.base import seeding
from tff_cluster.base.errors import InputError
from tff_cluster.models import build

pytestmark = pytest.mark.tensorflow
# A client's rows are two batches of two sizes.
ROWS, BATCH, RATE, COPIES, SEED = 17, 9, 0.1, 3, 6
DOCS = pathlib.Path(__file__).parents[2] / 'docs' / 'models.md'


def taken_apart(name, monkeypatch):
  from tff_cluster.federated import client_work

  monkeypatch.setattr(build, '_imported', lambda name: lambda shape, classes: user_layers.make(name))
  return client_work.model_from_keras(
    build.build(name, user_layers.shape(name), user_layers.CLASSES, 0), np.float32
  )


def rows_for(name, shape):
  rng = seeding.generator(0, 'rows of test_layers_of_users', name)
  x = rng.integers(10, size=(ROWS, *shape)) if 'Embedding' in name else rng.normal(size=(ROWS, *shape))
  return x.astype(np.float32), rng.integers(user_layers.CLASSES, size=ROWS).astype(np.int32)


def trained_by_keras(keras_model, x, y, order):
  """Returns what plain gradient descent changes of the weights, float32[features]."""
  import tensorflow as tf

  from tff_cluster.federated import keras_graph

  step = 0
  loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  weights = keras_model.trainable_variables
  before = [w.numpy() for w in weights]
  for epoch in order:
    for start in range(0, len(y), BATCH):
      batch = epoch[start : start + BATCH]
      keras_graph.draw_from(keras_model, tf.constant([SEED, step]))
      step += 1
      with tf.GradientTape() as tape:
        value = loss(y[batch], keras_model(x[batch], training=True))
      for weight, gradient in zip(weights, tape.gradient(value, weights), strict=True):
        weight.assign_sub(RATE * tf.convert_to_tensor(gradient))
  return np.concatenate([np.ravel(w.numpy() - b) for w, b in zip(weights, before, strict=True)])


@pytest.mark.parametrize('name', [name for name in user_layers.names() if not user_layers.refusal(name)[0]])
def test_a_layer_trains_as_in_keras_and_with_equal_bits_side_by_side(name, tff_context, monkeypatch):
  from tff_cluster.federated import client_work, optimizers, tff_computations

  x, y = rows_for(name, user_layers.shape(name))
  rng = seeding.generator(0, 'orders of test_layers_of_users')
  order = rng.permutation(len(y))[None].astype(np.int32)
  expected = trained_by_keras(user_layers.make(name), x, y, order)
  model = taken_apart(name, monkeypatch)
  computations = tff_computations.Computations(model, optimizers.Local(RATE, BATCH))
  work = {'x': x, 'y': y, **client_work.beside_rows(order, seed=SEED if model.draws else None)}
  found = [
    np.asarray(u) for u in computations.local_updates(list(computations.model.weights), [work] * COPIES)
  ]
  assert np.linalg.norm(expected) > 1e-3
  np.testing.assert_allclose(found[0], expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
  assert {update.tobytes() for update in found} == {found[0].tobytes()}


@pytest.mark.parametrize('name', [name for name in user_layers.names() if user_layers.refusal(name)[0]])
def test_a_layer_is_refused_with_the_reason_that_the_table_gives(name, monkeypatch):
  with pytest.raises(InputError, match=user_layers.refusal(name)[0]) as caught:
    taken_apart(name, monkeypatch)
  assert '\n' not in str(caught.value)


def test_the_table_of_the_docs_is_that_of_the_tests():
  """To write it anew: print(tests.federated.user_layers.table())."""
  assert user_layers.table() in DOCS.read_text()
