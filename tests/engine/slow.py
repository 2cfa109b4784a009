"""TFF computations that take a while, for tests of what happens meanwhile."""

import collections
import functools
import time

import numpy as np

STEPS = 100_000


def sleep_and_double(number):
  """Returns twice a number, after half a second."""
  time.sleep(0.5)
  return 2 * number


def total(steps=STEPS):
  """Returns what the computations give for a client with so many steps."""
  return steps * (steps - 1) // 2


@functools.cache
def slow_totals():
  """Returns {int64}@CLIENTS -> {int64}@CLIENTS; STEPS steps take about a quarter of a second."""
  import tensorflow as tf
  import tensorflow_federated as tff

  @tff.tensorflow.computation(np.int64)
  def count(steps):
    zero = tf.constant(0, tf.int64)
    _, found = tf.while_loop(lambda n, _: n < steps, lambda n, total: (n + 1, total + n), (zero, zero))
    return found

  @tff.federated_computation(tff.types.FederatedType(np.int64, tff.CLIENTS))
  def totals(steps):
    return tff.federated_map(count, steps)

  return totals


@functools.cache
def slow_sum():
  """Returns {int64}@CLIENTS -> {int64}@SERVER, the sum of slow_totals."""
  import tensorflow_federated as tff

  totals = slow_totals()

  @tff.federated_computation(tff.types.FederatedType(np.int64, tff.CLIENTS))
  def added(steps):
    return tff.federated_sum(totals(steps))

  return added


@functools.cache
def slow_results():
  """Returns {<steps=int64>}@CLIENTS -> {int64}@CLIENTS, as slow_totals."""
  import tensorflow_federated as tff

  one = slow_totals()
  kind = tff.types.tensorflow_to_type(_spec())

  @tff.tensorflow.computation(kind)
  def steps_of(client):
    return client['steps']

  @tff.federated_computation(tff.types.FederatedType(kind, tff.CLIENTS))
  def results(clients):
    return one(tff.federated_map(steps_of, clients))

  return results


@functools.cache
def slow_result_sum():
  """Returns {<steps=int64>}@CLIENTS -> {int64}@SERVER, the sum of slow_results."""
  import tensorflow_federated as tff

  results = slow_results()

  @tff.federated_computation(results.type_signature.parameter)
  def added(clients):
    return tff.federated_sum(results(clients))

  return added


def _spec():
  import tensorflow as tf

  return collections.OrderedDict(steps=tf.TensorSpec([], tf.int64))
