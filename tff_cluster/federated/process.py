"""The TFF computations of the suite, built once a process and used for every cluster."""

import collections
import dataclasses

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_cluster.federated import client_work as client_work_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Computations:
  """Everything that runs in the worker.

  Attributes:
    model: The model that they train.
    learning_process: FedAvg as a tff.learning.templates.LearningProcess. One process serves all
      clusters: each cluster is one state.
    local_updates: ({weights}@SERVER, {client data}@CLIENTS) -> {update float32[features]}@CLIENTS, what
      each client's weights became minus what they were, flattened in the order of the weights; NaN
      where training was not finite.
    evaluate: ({weights}@SERVER, {x, y}@CLIENTS) -> {confusion int32[classes, classes], loss_sum float32}@CLIENTS.
  """

  model: client_work_lib.Model
  learning_process: tff.learning.templates.LearningProcess
  local_updates: tff.Computation
  evaluate: tff.Computation


def build(
  model: client_work_lib.Model,
  learning_rate: float,
  batch_size: int,
  aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> Computations:
  """Returns the computations for a model and its client work.

  Args:
    model: The model.
    learning_rate: Client learning rate of SGD.
    batch_size: Rows of a batch, 0 for all rows at once.
    aggregator: How updates are aggregated; default: the mean weighted by rows (McMahan 2017). Any of TFF's
      weighted factories fits.
  """
  optimizer = tff.learning.optimizers.build_sgdm(learning_rate)
  return Computations(
    model,
    build_fed_avg(model, optimizer, batch_size, aggregator),
    _build_local_updates(model, optimizer, batch_size),
    _build_evaluate(model),
  )


def build_fed_avg(
  model: client_work_lib.Model,
  optimizer: tff.learning.optimizers.Optimizer,
  batch_size: int,
  aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> tff.learning.templates.LearningProcess:
  """Returns federated averaging, composed of broadcast, our client work, aggregator and finalizer."""

  @tff.tensorflow.computation
  def initial_weights():
    return tff.learning.models.ModelWeights(tuple(tf.zeros(w.shape, w.dtype) for w in model.weights), ())

  weights_type = initial_weights.type_signature.result
  client_work = client_work_lib.build_client_work(model, optimizer, batch_size)
  result_type = client_work.next.type_signature.result.result.member
  aggregator = aggregator or tff.aggregators.MeanFactory()
  return tff.learning.templates.compose_learning_process(
    initial_weights,
    tff.learning.templates.build_broadcast_process(weights_type),
    client_work,
    aggregator.create(result_type.update, result_type.update_weight),
    tff.learning.templates.build_apply_optimizer_finalizer(
      tff.learning.optimizers.build_sgdm(1.0), weights_type
    ),
  )


def _build_local_updates(
  model: client_work_lib.Model, optimizer: tff.learning.optimizers.Optimizer, batch_size: int
) -> tff.Computation:
  update_fn = client_work_lib.build_client_update(model, optimizer, batch_size)
  data_type = tff.types.tensorflow_to_type(client_work_lib.client_data_spec(model))

  @tff.tensorflow.computation(model.weights_type, data_type)
  def local_update(weights, data):
    update, _, _, _, finite = update_fn(weights, data)
    flat = tf.concat([tf.reshape(-u, [-1]) for u in update], axis=0)
    # A zero update would pass for a client that has nothing to learn.
    return tf.where(finite, flat, tf.fill(tf.shape(flat), float('nan')))

  @tff.federated_computation(
    tff.types.FederatedType(model.weights_type, tff.SERVER), tff.types.FederatedType(data_type, tff.CLIENTS)
  )
  def local_updates(weights, data):
    return tff.federated_map(local_update, (tff.federated_broadcast(weights), data))

  return local_updates


def _build_evaluate(model: client_work_lib.Model, batch_size: int = 250) -> tff.Computation:
  data_type = tff.types.tensorflow_to_type(
    collections.OrderedDict(x=model.x_spec, y=tf.TensorSpec([None], tf.int32))
  )
  classes = model.num_classes

  @tf.function
  def count(weights, x, y):
    confusion, loss_sum = tf.zeros([classes * classes], tf.int32), tf.constant(0.0)
    rows = tf.shape(y)[0]
    for start in tf.range(0, rows, batch_size):
      stop = tf.minimum(start + batch_size, rows)
      each, predicted = model.loss(weights, client_work_lib.scaled(x[start:stop]), y[start:stop])
      confusion += tf.math.bincount(y[start:stop] * classes + predicted, minlength=classes * classes)
      loss_sum += tf.reduce_sum(each)
    return collections.OrderedDict(confusion=tf.reshape(confusion, [classes, classes]), loss_sum=loss_sum)

  @tff.tensorflow.computation(model.weights_type, data_type)
  def evaluate_client(weights, data):
    return count(weights, data['x'], data['y'])

  @tff.federated_computation(
    tff.types.FederatedType(model.weights_type, tff.SERVER), tff.types.FederatedType(data_type, tff.CLIENTS)
  )
  def evaluate(weights, data):
    return tff.federated_map(evaluate_client, (tff.federated_broadcast(weights), data))

  return evaluate


def flatten(weights: tuple[np.ndarray, ...]) -> np.ndarray:
  """Returns float32[features], the weights one after the other."""
  return np.concatenate([np.ravel(w) for w in weights]).astype(np.float32, copy=False)


def unflatten(vector: np.ndarray, like: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
  """Returns float32 arrays of the shapes of `like`; the inverse of flatten."""
  pieces = np.split(np.asarray(vector, np.float32), np.cumsum([w.size for w in like])[:-1])
  return tuple(piece.reshape(w.shape) for piece, w in zip(pieces, like, strict=True))
