"""The TFF computations of the suite, built once a process and used for every cluster and every seed."""

import collections
import copy
import dataclasses
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar, cast

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_cluster.federated import chunked_sum, optimizers
from tff_cluster.federated import client_work as client_work_lib

_T = TypeVar('_T')
_building = threading.RLock()  # One property builds another one.


class _BuiltOnce(Generic[_T]):
  """A property that is computed at its first use, for an object and all that share what it has built."""

  def __init__(self, build: Callable[['Computations'], _T]):
    self._build = build
    self.__doc__ = build.__doc__

  def __get__(self, owner: 'Computations', kind: type) -> _T:
    name = self._build.__name__
    with _building:
      if name not in owner.built:
        owner.built[name] = self._build(owner)
    return cast(_T, owner.built[name])


class Computations:
  """Everything that runs in the worker; each computation is built when it is first used, and once.

  Attributes:
    model: The model that they train.
    local: How clients train.
    server: How the server steps.
    built: What was built so far, by name.
  """

  def __init__(
    self,
    model: client_work_lib.Model,
    local: optimizers.Local,
    server: optimizers.Server = optimizers.MEAN,
    aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  ):
    """Takes what determines the computations.

    Args:
      model: The model.
      local: How clients train.
      server: How the server steps; default: the model becomes the mean (McMahan 2017).
      aggregator: How updates are aggregated; default: the mean weighted by rows (McMahan 2017). Any of
        TFF's weighted factories fits.
    """
    self.model = model
    self.built: dict[str, object] = {}
    self.local = local
    self.server = server
    self._aggregator = aggregator
    self._variants: dict[optimizers.Local, Computations] = {}

  def with_weights(self, weights: Sequence[np.ndarray]) -> 'Computations':
    """Returns these computations for a model of the same architecture with other initial weights; what is built is shared.

    No computation holds weights: the worker is sent them.
    """
    other = copy.copy(self)
    other.model = dataclasses.replace(self.model, weights=tuple(np.asarray(w, np.float32) for w in weights))
    return other

  def varied(
    self, proximal_mu: float | None = None, weighs_rows: bool = False, brings_anchor: bool = False
  ) -> 'Computations':
    """Returns these computations for clients that train in another way, see optimizers.Local; they are built once, too."""
    mu = self.local.proximal_mu if proximal_mu is None else proximal_mu
    local = dataclasses.replace(
      self.local, proximal_mu=mu, weighs_rows=weighs_rows, brings_anchor=brings_anchor
    )
    if local == self.local:
      return self
    with _building:
      if local not in self._variants:
        self._variants[local] = Computations(self.model, local, self.server, self._aggregator)
    return self._variants[local].with_weights(self.model.weights)

  @property
  def alone(self) -> 'Computations':
    """These computations without aggregator and optimizer of the server: those of a client that trains for itself."""
    if self.adds_up_chunks and self.server.is_mean:
      return self
    return self._alone.with_weights(self.model.weights)

  @_BuiltOnce
  def _alone(self) -> 'Computations':
    return Computations(self.model, self.local)

  @property
  def adds_up_chunks(self) -> bool:
    """Whether a round is a mean, which is added up chunk by chunk; other aggregators take every client's update."""
    return self._aggregator is None

  @_BuiltOnce
  def learning_process(self) -> tff.learning.templates.LearningProcess:
    """FedAvg. One process serves all clusters: each cluster is one state."""
    return build_fed_avg(self.model, self.local, self.server, self._aggregator)

  @_BuiltOnce
  def totals(self) -> tff.Computation:
    """({weights}@SERVER, {client data}@CLIENTS) -> <sum=<update, weight>, counts>@SERVER, a round's sums over clients.

    `update` is the sum of updates (before minus after) times their weights; chunks are added up as in a round.
    """
    return _build_totals(self.model, self.local)

  @_BuiltOnce
  def finish_mean(self) -> tff.Computation:
    """(state@SERVER, {totals}@CLIENTS, a client a chunk) -> <state, metrics>: the rest of a round of learning_process."""
    totals_type = self.totals.type_signature.result.member
    return _build_finish_mean(self.model, self.server, totals_type, self.learning_process.state_type)

  @_BuiltOnce
  def add_totals(self) -> tff.Computation:
    """({totals}@CLIENTS) -> {totals}@SERVER, their sum, one after the other."""

    @tff.federated_computation(tff.types.FederatedType(self.totals.type_signature.result.member, tff.CLIENTS))
    def add_totals(totals):
      return tff.federated_sum(totals)

    return add_totals

  @_BuiltOnce
  def client_results(self) -> tff.Computation:
    """({weights}@SERVER, {client data}@CLIENTS) -> <result, counts>@CLIENTS: a round of learning_process up to its sums."""
    client_result = client_work_lib.build_client_result(self.model, self.local)
    weights_type, data_type = client_result.type_signature.parameter

    @tff.federated_computation(
      tff.types.FederatedType(weights_type, tff.SERVER), tff.types.FederatedType(data_type, tff.CLIENTS)
    )
    def client_results(weights, data):
      return tff.federated_map(client_result, (tff.federated_broadcast(weights), data))

    return client_results

  @_BuiltOnce
  def finish_each(self) -> tff.Computation:
    """(state@SERVER, {client results}@CLIENTS) -> <state, metrics>: the rest of a round, for any aggregator."""
    return _build_finish_each(
      self.model,
      self.server,
      self.client_results.type_signature.result.member,
      self.learning_process.state_type,
      self._aggregator,
    )

  @_BuiltOnce
  def local_updates(self) -> tff.Computation:
    """({weights}@SERVER, {client data}@CLIENTS) -> {float32[features]}@CLIENTS.

    What each client's weights became minus what they were, times its scale, flattened in the order of the
    weights; NaN where it is not finite.
    """
    local_update = self._local_update

    @tff.federated_computation(*self._round_types)
    def local_updates(weights, data):
      return tff.federated_map(local_update, (tff.federated_broadcast(weights), data))

    return local_updates

  @_BuiltOnce
  def local_sketches(self) -> tff.Computation:
    """({weights}@SERVER, {projection}@SERVER, {client data}@CLIENTS) -> {float32[dimension]}@CLIENTS.

    Each client projects its update before it sends it: feature f is added, with sign signs[f], to entry
    buckets[f] (clustering.sketch draws both).
    """
    projection_type = tff.types.tensorflow_to_type(
      collections.OrderedDict(
        buckets=tf.TensorSpec([None], tf.int32),
        signs=tf.TensorSpec([None], tf.int8),
        dimension=tf.TensorSpec([], tf.int32),
      )
    )
    local_update = self._local_update

    @tff.tensorflow.computation(local_update.type_signature.result, projection_type)
    def project(update, projection):
      signed = update * tf.cast(projection['signs'], tf.float32)
      return tf.math.unsorted_segment_sum(signed, projection['buckets'], projection['dimension'])

    @tff.federated_computation(
      self._round_types[0], tff.types.FederatedType(projection_type, tff.SERVER), self._round_types[1]
    )
    def local_sketches(weights, projection, data):
      updates = tff.federated_map(local_update, (tff.federated_broadcast(weights), data))
      return tff.federated_map(project, (updates, tff.federated_broadcast(projection)))

    return local_sketches

  @_BuiltOnce
  def evaluate(self) -> tff.Computation:
    """({weights}@SERVER, {x, y}@CLIENTS) -> {counts int32[3, classes], loss_sum float32}@CLIENTS; see scores.Scores."""
    return _build_evaluate(self.model)

  @_BuiltOnce
  def evaluate_each(self) -> tff.Computation:
    """({x, y, weights}@CLIENTS) -> as `evaluate`, where every client brings the model that it measures."""
    return _build_evaluate_each(self.model)

  @_BuiltOnce
  def row_losses(self) -> tff.Computation:
    """({weights, stacked [models, ...]}@SERVER, {x, y}@CLIENTS) -> {float32[models, rows]}@CLIENTS, each row's cross-entropy."""
    return _build_row_losses(self.model)

  @_BuiltOnce
  def predict(self) -> tff.Computation:
    """({weights}@SERVER, {x}@CLIENTS) -> {float32[rows, classes]}@CLIENTS, the model's probabilities."""
    model = self.model
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

  @_BuiltOnce
  def _local_update(self) -> tff.Computation:
    update_fn = client_work_lib.build_client_update(self.model, self.local)
    data_type = tff.types.tensorflow_to_type(client_work_lib.client_data_spec(self.model, self.local))

    @tff.tensorflow.computation(self.model.weights_type, data_type)
    def local_update(weights, data):
      update, _, _, _, finite = update_fn(weights, data)
      flat = tf.concat([tf.reshape(-u, [-1]) for u in update], axis=0)
      # A zero update would pass for a client that has nothing to learn.
      return tf.where(finite, flat, tf.fill(tf.shape(flat), float('nan')))

    return local_update

  @property
  def _round_types(self) -> tuple[tff.Type, tff.Type]:
    data_type = tff.types.tensorflow_to_type(client_work_lib.client_data_spec(self.model, self.local))
    return (
      tff.types.FederatedType(self.model.weights_type, tff.SERVER),
      tff.types.FederatedType(data_type, tff.CLIENTS),
    )


def build_fed_avg(
  model: client_work_lib.Model,
  local: optimizers.Local,
  server: optimizers.Server,
  aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> tff.learning.templates.LearningProcess:
  """Returns federated averaging, composed of broadcast, our client work, aggregator and finalizer."""

  @tff.tensorflow.computation
  def initial_weights():
    return tff.learning.models.ModelWeights(tuple(tf.zeros(w.shape, w.dtype) for w in model.weights), ())

  weights_type = initial_weights.type_signature.result
  client_work = client_work_lib.build_client_work(model, local)
  result_type = client_work.next.type_signature.result.result.member
  return tff.learning.templates.compose_learning_process(
    initial_weights,
    tff.learning.templates.build_broadcast_process(weights_type),
    client_work,
    _aggregation(result_type, aggregator),
    _finalizer(weights_type, server),
  )


class _WithoutChunks(tff.aggregators.WeightedAggregationFactory):
  """An aggregator of TFF, which is not told where chunks end."""

  def __init__(self, inner: tff.aggregators.WeightedAggregationFactory):
    self._inner = inner

  def create(self, value_type: tff.Type, weight_type: tff.Type) -> tff.templates.AggregationProcess:
    inner: tff.templates.AggregationProcess = self._inner.create(value_type.update, weight_type)

    @tff.federated_computation(
      inner.initialize.type_signature.result,
      tff.types.FederatedType(value_type, tff.CLIENTS),
      tff.types.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      return inner.next(state, value.update, weight)

    return tff.templates.AggregationProcess(inner.initialize, next_fn)


def _aggregation(
  result_type: tff.Type, factory: tff.aggregators.WeightedAggregationFactory | None
) -> tff.templates.AggregationProcess:
  """Returns the aggregator for clients' results <update=<update, last>, update_weight>."""
  made: chunked_sum.Mean | _WithoutChunks = _WithoutChunks(factory) if factory else chunked_sum.Mean()
  return made.create(result_type.update, result_type.update_weight)


def _finalizer(weights_type: tff.Type, server: optimizers.Server) -> tff.learning.templates.FinalizerProcess:
  """Returns the server's step, which leaves model and memory as they are where the mean update is not finite.

  A server that does not move the model by the mean update itself measures that update's norm, `update_norm`.
  """
  reject = tff.learning.templates.reject_non_finite_update

  def reject_and_measure(
    state: optimizers.State, update: Sequence[tf.Tensor]
  ) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
    rejected, found = reject(state, update)
    return rejected, found | {'update_norm': tf.linalg.global_norm(update)}

  return tff.learning.templates.build_apply_optimizer_finalizer(
    server.build(), weights_type, reject if server.is_mean else reject_and_measure
  )


def _build_totals(model: client_work_lib.Model, local: optimizers.Local) -> tff.Computation:
  client_result = client_work_lib.build_client_result(model, local)
  weights_type, data_type = client_result.type_signature.parameter
  update_type = client_result.type_signature.result[0].update.update
  weighted = chunked_sum.build_weighted(update_type)
  specs = collections.OrderedDict(
    update=tff.types.type_to_tf_tensor_specs(update_type), weight=tf.TensorSpec([], tf.float32)
  )
  add_up, count_up = chunked_sum.build(specs), chunked_sum.build(client_work_lib.COUNTS)

  @tff.federated_computation(
    tff.types.FederatedType(weights_type, tff.SERVER), tff.types.FederatedType(data_type, tff.CLIENTS)
  )
  def totals(weights, data):
    result, counts = tff.federated_map(client_result, (tff.federated_broadcast(weights), data))
    last = result.update.last
    sent = tff.federated_map(weighted, (result.update.update, result.update_weight))
    return tff.federated_zip(collections.OrderedDict(sum=add_up(sent, last), counts=count_up(counts, last)))

  return totals


def _build_finish_mean(
  model: client_work_lib.Model, server: optimizers.Server, totals_type: tff.Type, state_type: tff.Type
) -> tff.Computation:
  """Returns what federated averaging does once the sums of all chunks are there, with the bits of its `next`."""
  divide = chunked_sum.build_divide(totals_type.sum.update)
  finalize = _finalizer(client_work_lib.model_weights_type(model), server)

  @tff.federated_computation(state_type, tff.types.FederatedType(totals_type, tff.CLIENTS))
  def finish_mean(state, totals):
    total = tff.federated_sum(totals)
    mean = tff.federated_map(divide, total.sum)
    return _output(
      state, finalize.next(state.finalizer, state.global_model_weights, mean), state.aggregator, total.counts
    )

  return finish_mean


def _build_finish_each(
  model: client_work_lib.Model,
  server: optimizers.Server,
  result_type: tff.Type,
  state_type: tff.Type,
  factory: tff.aggregators.WeightedAggregationFactory | None,
) -> tff.Computation:
  """Returns what federated averaging does once every client has its result, with the bits of its `next`."""
  aggregate, finalize = (
    _aggregation(result_type[0], factory),
    _finalizer(client_work_lib.model_weights_type(model), server),
  )
  count_up = chunked_sum.build(client_work_lib.COUNTS)

  @tff.federated_computation(state_type, tff.types.FederatedType(result_type, tff.CLIENTS))
  def finish_each(state, results):
    result, counts = results[0], results[1]
    aggregated = aggregate.next(state.aggregator, result.update, result.update_weight)
    finalized = finalize.next(state.finalizer, state.global_model_weights, aggregated.result)
    return _output(state, finalized, aggregated.state, count_up(counts, result.update.last))

  return finish_each


def _output(
  state: tff.Value, finalized: tff.Value, aggregator: tff.Value, counts: tff.Value
) -> tff.learning.templates.LearningProcessOutput:
  """Returns a learning process's output, as compose_learning_process puts it together."""
  after = tff.learning.templates.LearningAlgorithmState(
    finalized.result, state.distributor, state.client_work, aggregator, finalized.state
  )
  measured = collections.OrderedDict(
    client_work=tff.federated_map(client_work_lib.measurements, counts), finalizer=finalized.measurements
  )
  return tff.learning.templates.LearningProcessOutput(tff.federated_zip(after), tff.federated_zip(measured))


def _build_evaluate(model: client_work_lib.Model) -> tff.Computation:
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


def _build_evaluate_each(model: client_work_lib.Model) -> tff.Computation:
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


def _build_row_losses(model: client_work_lib.Model, batch_size: int = 100) -> tff.Computation:
  stacked_type = tff.types.tensorflow_to_type(
    tuple(tf.TensorSpec([None, *w.shape], w.dtype) for w in model.weights)
  )
  data_type = _rows_type(model)

  # A call, not inlined, as in client_work.sgd_step.
  @functools.partial(
    tf.function, autograph=False, reduce_retracing=True, experimental_attributes={'_noinline': True}
  )
  def losses_of(weights, x, y):
    return model.loss(weights, client_work_lib.scaled(x), y)[0]

  @functools.partial(tf.function, autograph=False)
  def losses(stacked, x, y):
    rows, models = tf.shape(y)[0], tf.shape(stacked[0])[0]
    batches = (rows + batch_size - 1) // batch_size

    def one_model(model, found):
      weights = tuple(arrays[model] for arrays in stacked)  # Copied: once a model, not once a batch.

      def one_batch(batch, found):
        start = batch * batch_size
        stop = tf.minimum(start + batch_size, rows)
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
  model: client_work_lib.Model, batch_size: int = 250
) -> Callable[[Sequence[tf.Tensor], tf.Tensor, tf.Tensor], Mapping[str, tf.Tensor]]:
  """Returns (weights, x, y) -> {counts int32[3, classes], loss_sum float32}."""
  classes = model.num_classes

  @functools.partial(tf.function, autograph=False)
  def count(weights, x, y):
    rows = tf.shape(y)[0]

    def one_batch(start, counts, loss_sum):
      stop = tf.minimum(start + batch_size, rows)
      each, predicted = model.loss(weights, client_work_lib.scaled(x[start:stop]), y[start:stop])
      labels = y[start:stop]
      kinds = (labels, predicted, tf.boolean_mask(labels, tf.equal(labels, predicted)))
      found = tf.stack([tf.math.bincount(kind, minlength=classes) for kind in kinds])
      # With one class the static shape would get lost.
      counts += tf.ensure_shape(found, [3, classes])
      return start + batch_size, counts, loss_sum + tf.reduce_sum(each)

    first = (tf.constant(0), tf.zeros([3, classes], tf.int32), tf.constant(0.0))
    _, counts, loss_sum = tf.while_loop(lambda start, *_: start < rows, one_batch, first)
    return collections.OrderedDict(counts=counts, loss_sum=loss_sum)

  return count
