"""TFF computations that measure models on clients' rows: counts and losses, losses of each row, probabilities."""

import collections
import functools
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf
import tensorflow_federated as tff

from tff_cluster.federated import client_work as client_work_lib

# Rows of a batch, where a model is measured.
_ROWS_OF_COUNTS, _ROWS_OF_LOSSES = 250, 60


def build_evaluate(model: client_work_lib.Model) -> tff.Computation:
  """Returns what counts labels, predictions and hits of one model on the rows of each client; see Computations.evaluate."""
  count, data_type = _counting(model), _rows_type(model)

  @tff.tensorflow.computation(model.weights_type, data_type)
  def evaluate_client(weights, data):
    return count(weights, data['x'], data['y'])

  @tff.federated_computation(
    tff.types.FederatedType(model.weights_type, tff.SERVER), tff.types.FederatedType(data_type, tff.CLIENTS)
  )
  def evaluate(weights, data):
    return tff.federated_map(evaluate_client, (tff.federated_broadcast(weights), data))

  return evaluate


def build_evaluate_each(model: client_work_lib.Model) -> tff.Computation:
  """Returns what counts as `build_evaluate` does, where every client brings the model that it measures."""
  count = _counting(model)
  given = tff.types.StructWithPythonType(
    [*tff.structure.iter_elements(_rows_type(model)), ('weights', model.weights_type)],
    collections.OrderedDict,
  )

  @tff.tensorflow.computation(given)
  def evaluate_client(client):
    return count(client['weights'], client['x'], client['y'])

  @tff.federated_computation(tff.types.FederatedType(given, tff.CLIENTS))
  def evaluate_each(clients):
    return tff.federated_map(evaluate_client, clients)

  return evaluate_each


def build_row_losses(model: client_work_lib.Model) -> tff.Computation:
  """Returns what measures the cross-entropy of several models on each row of each client; see Computations.row_losses."""
  stacked_type = tff.types.tensorflow_to_type(
    tuple(tf.TensorSpec([None, *w.shape], w.dtype) for w in model.weights)
  )
  data_type = _rows_type(model)

  # A call, not inlined, as the training steps of client_work.
  @functools.partial(
    tf.function, autograph=False, reduce_retracing=True, experimental_attributes={'_noinline': True}
  )
  def losses_of(weights, x, y):
    return model.loss(weights, x, y)[0]

  @functools.partial(tf.function, autograph=False)
  def losses(stacked, x, y):
    rows, models = tf.shape(y)[0], tf.shape(stacked[0])[0]
    batches = (rows + _ROWS_OF_LOSSES - 1) // _ROWS_OF_LOSSES
    x = client_work_lib.scaled(x)  # Once, not once a model.

    def one_model(model, found):
      weights = tuple(arrays[model] for arrays in stacked)  # Copied: once a model, not once a batch.

      def one_batch(batch, found):
        start = batch * _ROWS_OF_LOSSES
        stop = tf.minimum(start + _ROWS_OF_LOSSES, rows)
        each = losses_of(weights, x[start:stop], y[start:stop])
        return batch + 1, found.write(model * batches + batch, each)

      _, found = tf.while_loop(lambda batch, _: batch < batches, one_batch, (tf.constant(0), found))
      return model + 1, found

    found = tf.TensorArray(tf.float32, models * batches, infer_shape=False, element_shape=[None])
    _, found = tf.while_loop(lambda model, _: model < models, one_model, (tf.constant(0), found))
    return tf.reshape(found.concat(), [models, rows])

  @tff.tensorflow.computation(stacked_type, data_type)
  def of_client(stacked, data):
    return losses(tuple(stacked), data['x'], data['y'])

  @tff.federated_computation(
    tff.types.FederatedType(stacked_type, tff.SERVER), tff.types.FederatedType(data_type, tff.CLIENTS)
  )
  def row_losses(stacked, data):
    return tff.federated_map(of_client, (tff.federated_broadcast(stacked), data))

  return row_losses


def _rows_type(model: client_work_lib.Model) -> tff.Type:
  return tff.types.tensorflow_to_type(
    collections.OrderedDict(x=model.x_spec, y=tf.TensorSpec([None], tf.int32))
  )


def _counting(
  model: client_work_lib.Model,
) -> Callable[[Sequence[tf.Tensor], tf.Tensor, tf.Tensor], Mapping[str, tf.Tensor]]:
  """Returns (weights, x, y) -> {counts int32[3, classes], loss_sum float32}."""
  classes = model.num_classes

  @functools.partial(tf.function, autograph=False)
  def count(weights, x, y):
    rows = tf.shape(y)[0]

    def one_batch(start, counts, loss_sum):
      stop = tf.minimum(start + _ROWS_OF_COUNTS, rows)
      each, predicted = model.loss(weights, client_work_lib.scaled(x[start:stop]), y[start:stop])
      labels = y[start:stop]
      kinds = (labels, predicted, tf.boolean_mask(labels, tf.equal(labels, predicted)))
      found = tf.stack([tf.math.bincount(kind, minlength=classes) for kind in kinds])
      # With one class the static shape would get lost.
      counts += tf.ensure_shape(found, [3, classes])
      return start + _ROWS_OF_COUNTS, counts, loss_sum + tf.reduce_sum(each)

    first = (tf.constant(0), tf.zeros([3, classes], tf.int32), tf.constant(0.0))
    _, counts, loss_sum = tf.while_loop(lambda start, *_: start < rows, one_batch, first)
    return collections.OrderedDict(counts=counts, loss_sum=loss_sum)

  return count


def build_predict(model: client_work_lib.Model) -> tff.Computation:
  """Returns what gives the probabilities float32[rows, classes] of one model for the rows of each client."""
  rows_type = tff.types.tensorflow_to_type(collections.OrderedDict(x=model.x_spec))

  @tff.tensorflow.computation(model.weights_type, rows_type)
  def predict_rows(weights, rows):
    return model.probabilities(weights, client_work_lib.scaled(rows['x']))

  @tff.federated_computation(
    tff.types.FederatedType(model.weights_type, tff.SERVER), tff.types.FederatedType(rows_type, tff.CLIENTS)
  )
  def predict(weights, rows):
    return tff.federated_map(predict_rows, (tff.federated_broadcast(weights), rows))

  return predict
