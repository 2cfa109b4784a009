"""Federated averaging as TFF computations: a round in one piece, and in parts that are put together elsewhere."""

import collections
from collections.abc import Mapping, Sequence

import tensorflow as tf
import tensorflow_federated as tff

from tff_cluster.federated import chunked_sum, optimizers
from tff_cluster.federated import client_work as client_work_lib


def build_initialize(
  model: client_work_lib.Model,
  server: optimizers.Server,
  result_type: tff.Type,
  factory: tff.aggregators.WeightedAggregationFactory | None,
) -> tff.Computation:
  """Returns () -> state@SERVER, tff.learning's LearningAlgorithmState with weights of zeros, before the first round."""

  @tff.tensorflow.computation
  def initial_weights():
    return tff.learning.models.ModelWeights(tuple(tf.zeros(w.shape, w.dtype) for w in model.weights), ())

  aggregate = _aggregation(result_type[0], factory)
  finalize = _finalizer(client_work_lib.model_weights_type(model), server)

  @tff.federated_computation
  def initialize():
    nothing = tff.federated_value((), tff.SERVER)
    weights = tff.federated_eval(initial_weights, tff.SERVER)
    state = tff.learning.templates.LearningAlgorithmState(
      weights, nothing, nothing, aggregate.initialize(), finalize.initialize()
    )
    return tff.federated_zip(state)

  return initialize


def build_fed_avg(
  initialize: tff.Computation, client_results: tff.Computation, finish_each: tff.Computation
) -> tff.templates.IterativeProcess:
  """Returns federated averaging: broadcast and our client work, then TFF's aggregator and finalizer.

  tff.learning.templates.compose_learning_process would put the same together for clients with data sets, and for no others. A data
  set is sent as a graph and made anew from it, which took 1 ms of processor time a client, a tenth of what a small model trains for.
  """

  @tff.federated_computation(initialize.type_signature.result, client_results.type_signature.parameter[1])
  def next_fn(state, clients):
    return finish_each(state, client_results(state.global_model_weights, clients))

  return tff.templates.IterativeProcess(initialize, next_fn)


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
  # Of what runs here AutoGraph has to translate one `if` of TFF's; it would take a second for all that is called beside it.
  as_it_is = tf.autograph.experimental.do_not_convert
  reject = as_it_is(tff.learning.templates.reject_non_finite_update)
  optimizer = server.build()
  optimizer.next = as_it_is(optimizer.next)

  @as_it_is
  def reject_and_measure(
    state: optimizers.State, update: Sequence[tf.Tensor]
  ) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
    rejected, found = reject(state, update)
    return rejected, found | {'update_norm': tf.linalg.global_norm(update)}

  return tff.learning.templates.build_apply_optimizer_finalizer(
    optimizer, weights_type, reject if server.is_mean else reject_and_measure
  )


def build_totals(model: client_work_lib.Model, local: optimizers.Local) -> tff.Computation:
  """Returns what trains a chunk of clients and adds up their weighted updates and counts, for `build_finish_mean`."""
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


def build_several_rounds(
  model: client_work_lib.Model, local: optimizers.Local, count: int
) -> tff.Computation:
  """Returns what is a round of each of several models in one call, with the bits of `next` where the model becomes the mean.

  ({weights [count, ...]}@SERVER, {client data, which: int32, the position of its model}@CLIENTS) -> <weights [count, ...],
  counts [count]>@SERVER. The clients of a model stand together. A model that has no clients, or none whose update is finite, stays as it is.
  """
  update_fn = client_work_lib.build_client_update(model, local)
  weight_specs = tuple(tf.TensorSpec(w.shape, w.dtype) for w in model.weights)
  stacked_type = tff.types.tensorflow_to_type(chunked_sum.stacked(weight_specs, count))
  data_spec = client_work_lib.client_data_spec(model, local) | {'which': tf.TensorSpec([], tf.int32)}
  data_type = tff.types.tensorflow_to_type(data_spec)
  specs = collections.OrderedDict(
    update=weight_specs, weight=tf.TensorSpec([], tf.float32), counts=client_work_lib.COUNTS
  )
  add_up = chunked_sum.build(specs, count)

  @tff.tensorflow.computation(stacked_type, data_type)
  def of_client(stacked, data):
    weights = tuple(arrays[data['which']] for arrays in stacked)
    update, weight, loss_sum, visited, finite = update_fn(weights, data)
    counts = collections.OrderedDict(loss_sum=loss_sum, rows=visited, dropped=1 - tf.cast(finite, tf.int32))
    update = tuple(each * weight for each in update)
    return collections.OrderedDict(update=update, weight=weight, counts=counts), data['last'], data['which']

  @tff.tensorflow.computation(stacked_type, tff.types.tensorflow_to_type(chunked_sum.stacked(specs, count)))
  def step(stacked, totals):
    def along(values, like):
      return tf.reshape(values, [count] + [1] * (like.shape.rank - 1))

    mean = [tf.divide(each, along(totals['weight'], each)) for each in totals['update']]
    finite = [tf.reduce_all(tf.math.is_finite(each), axis=list(range(1, each.shape.rank))) for each in mean]
    moves = tf.reduce_all(tf.stack(finite), axis=0)
    pairs = zip(stacked, mean, strict=True)
    return tuple(tf.where(along(moves, each), each - mean, each) for each, mean in pairs), totals['counts']

  @tff.federated_computation(
    tff.types.FederatedType(stacked_type, tff.SERVER), tff.types.FederatedType(data_type, tff.CLIENTS)
  )
  def several_rounds(stacked, data):
    value, last, which = tff.federated_map(of_client, (tff.federated_broadcast(stacked), data))
    return tff.federated_map(step, (stacked, add_up(value, last, which)))

  return several_rounds


def build_finish_mean(
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


def build_finish_each(
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
  """Returns what a learning process of tff.learning returns."""
  after = tff.learning.templates.LearningAlgorithmState(
    finalized.result, state.distributor, state.client_work, aggregator, finalized.state
  )
  measured = collections.OrderedDict(
    client_work=tff.federated_map(client_work_lib.measurements, counts), finalizer=finalized.measurements
  )
  return tff.learning.templates.LearningProcessOutput(tff.federated_zip(after), tff.federated_zip(measured))
