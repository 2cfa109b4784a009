"""Sums over clients in chunks: in one order, and so with the same bits, on one machine and on a cluster.

A cohort is cut into chunks of at most four clients; where, its size says alone. The clients of a chunk are added up one after
the other, and then the chunks are. On one machine a worker does all of it in one call, in which every client says whether it is
the last of its chunk. On a cluster each chunk is a task, whose sum is all that travels home (engine/cluster.py).
"""

import collections
from typing import Protocol, TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

# More: fewer sums travel home on a cluster, and fewer workers share a small cohort.
_MOST_CLIENTS = 4
_LEAST_NORMAL = np.finfo(np.float32).tiny
# Numbers above it add up to 0 or to what is far above the least normal number, as a sum is a multiple of their last places.
_TINY_SUMS_BELOW = 1e-25
# A nested structure of tf.TensorSpec, and one of tensors.
Specs: TypeAlias = object
Tensors: TypeAlias = object


def chunks(count: int) -> list[np.ndarray]:
  """Returns int64[clients] of each chunk of so many clients, positions in their order; sizes differ by one at most."""
  return np.array_split(np.arange(count), max(-(-count // _MOST_CLIENTS), 1))


def is_last(count: int) -> np.ndarray:
  """Returns bool[count], which clients are the last of their chunk."""
  last = np.zeros(count, bool)
  last[[chunk[-1] for chunk in chunks(count) if len(chunk)]] = True
  return last


def mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
  """Returns float32[features], the mean of float32[clients, features] by float32[clients], in NumPy and with the bits of `Mean`.

  But for products whose rounding alone brings them to the least normal number, 1.2e-38.
  """
  total, weight = sum_of(values, weights)
  with np.errstate(over='ignore', divide='ignore', invalid='ignore'):
    return flushed(total / weight)


def sum_of(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.float32]:
  """Returns float32[features], the sum of values times weights, and that of the weights; see `mean`."""
  weights = flushed(weights)
  total, weight, has_tiny = np.zeros(values.shape[1], np.float32), np.float32(0), False
  with np.errstate(over='ignore', divide='ignore', invalid='ignore'):
    for chunk in chunks(len(values)):
      chunk_total, chunk_weight = np.zeros_like(total), np.float32(0)
      for k in chunk:
        weighted = flushed(values[k]) * weights[k]
        has_tiny |= bool(np.min(np.abs(weighted), where=weighted != 0.0, initial=1.0) < _TINY_SUMS_BELOW)
        chunk_total += flushed(weighted)
        if has_tiny:
          chunk_total = flushed(chunk_total)
        chunk_weight += weights[k]
      total += chunk_total
      if has_tiny:
        total = flushed(total)
      weight += chunk_weight
  return total, weight


def flushed(values: np.ndarray) -> np.ndarray:
  """Returns float32 numbers as TensorFlow has them, which takes those below the least normal one for 0, with their sign."""
  small = (np.abs(values) < _LEAST_NORMAL) & (values != 0.0)
  return np.where(small, np.copysign(np.float32(0), values), values) if small.any() else values


class Sum(Protocol):
  """See build."""

  def __call__(self, value: tff.Value, last: tff.Value, which: tff.Value | None = None) -> tff.Value: ...


def build(specs: Specs, sums: int | None = None) -> Sum:
  """Returns ({value}@CLIENTS, {bool}@CLIENTS, who is the last of its chunk, ...) -> {sum}@SERVER, for a federated computation.

  The last client must be the last of a chunk: what comes after the end of the last chunk is no part of the sum.

  Args:
    specs: What a value is.
    sums: How many sums there are, each of some clients, who say which one is theirs: {int32}@CLIENTS. They are stacked then,
      [sums, ...], and each has the bits of a sum of its own. None: one sum.
  """
  total_specs = specs if sums is None else stacked(specs, sums)
  value_type = tff.types.tensorflow_to_type(total_specs)
  sent_specs = collections.OrderedDict(value=specs, last=tf.TensorSpec([], tf.bool))
  if sums is not None:
    sent_specs['which'] = tf.TensorSpec([], tf.int32)
  sent_type = tff.types.tensorflow_to_type(sent_specs)
  state_type = tff.types.tensorflow_to_type(collections.OrderedDict(total=total_specs, chunk=specs))

  def zeros(like: Specs) -> Tensors:
    return tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), like)

  @tff.tensorflow.computation
  def zero():
    return collections.OrderedDict(total=zeros(total_specs), chunk=zeros(specs))

  @tff.tensorflow.computation(state_type, sent_type)
  def accumulate(state, sent):
    total, chunk = state['total'], _added(state['chunk'], sent['value'])

    def end_of_chunk() -> Tensors:
      after = _added(total, chunk) if sums is None else _added_to(sent['which'], total, chunk)
      return after, zeros(specs)

    total, chunk = tf.cond(sent['last'], end_of_chunk, lambda: (total, chunk))
    return collections.OrderedDict(total=total, chunk=chunk)

  @tff.tensorflow.computation(state_type, state_type)
  def merge(one, other):
    return tf.nest.map_structure(tf.add, one, other)

  @tff.tensorflow.computation(state_type)
  def report(state):
    return state['total']

  assert report.type_signature.result.is_equivalent_to(value_type)

  def total(value: tff.Value, last: tff.Value, which: tff.Value | None = None) -> tff.Value:
    sent = collections.OrderedDict(value=value, last=last)
    if which is not None:
      sent['which'] = which
    sent = tff.federated_zip(sent)
    return tff.federated_aggregate(sent, zero(), accumulate, merge, report)

  return total


class Mean(tff.aggregators.WeightedAggregationFactory):
  """The mean weighted by the clients' weights (McMahan 2017), of updates <update, last> that say where chunks end.

  tff.aggregators.MeanFactory gives the same bits for cohorts of one chunk.
  """

  def create(self, value_type: tff.Type, weight_type: tff.Type) -> tff.templates.AggregationProcess:
    """Returns the process; its result is a mean of the type of `value_type.update`."""
    specs = tff.types.type_to_tf_tensor_specs(value_type.update)
    add_up = build(
      collections.OrderedDict(
        update=specs, weight=tf.TensorSpec(weight_type.shape, tf.as_dtype(weight_type.dtype))
      )
    )
    weighted, divide = build_weighted(value_type.update), build_divide(value_type.update)

    @tff.federated_computation
    def init_fn():
      return tff.federated_value((), tff.SERVER)

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.types.FederatedType(value_type, tff.CLIENTS),
      tff.types.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      sent = tff.federated_map(weighted, (value.update, weight))
      mean = tff.federated_map(divide, add_up(sent, value.last))
      return tff.templates.MeasuredProcessOutput(state, mean, tff.federated_value((), tff.SERVER))

    return tff.templates.AggregationProcess(init_fn, next_fn)


def build_weighted(update_type: tff.Type) -> tff.Computation:
  """Returns (update, weight) -> <update times weight, weight>."""

  @tff.tensorflow.computation(update_type, tff.TensorType(np.float32))
  def weighted(update, weight):
    product = tf.nest.map_structure(lambda each: each * weight, update)
    return collections.OrderedDict(update=product, weight=weight)

  return weighted


def build_divide(update_type: tff.Type) -> tff.Computation:
  """Returns <sum of update times weight, sum of weights> -> mean."""
  specs = tff.types.type_to_tf_tensor_specs(update_type)
  total_type = tff.types.tensorflow_to_type(
    collections.OrderedDict(update=specs, weight=tf.TensorSpec([], tf.float32))
  )

  @tff.tensorflow.computation(total_type)
  def divide(total):
    return tf.nest.map_structure(lambda each: tf.divide(each, total['weight']), total['update'])

  return divide


def stacked(specs: Specs, count: int) -> Specs:
  """Returns the specs of several such values, one after the other: [count, ...]."""
  return tf.nest.map_structure(lambda spec: tf.TensorSpec([count, *spec.shape], spec.dtype), specs)


def _added(one: Tensors, other: Tensors) -> Tensors:
  return tf.nest.map_structure(tf.add, one, other)


def _added_to(which: tf.Tensor, sums: Tensors, other: Tensors) -> Tensors:
  """Returns stacked sums, one of which something is added to."""

  def add(each: tf.Tensor, added: tf.Tensor) -> tf.Tensor:
    if not added.shape.num_elements():
      return each
    return tf.tensor_scatter_nd_add(each, [[which]], added[tf.newaxis])

  return tf.nest.map_structure(add, sums, other)
