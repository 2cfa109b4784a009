"""What goes to a worker for a call, and what stays there after it."""

import collections
import contextlib
import threading
import time
import types

import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow


@contextlib.contextmanager
def opened(monkeypatch):
  """Yields the connection to a new worker, and what it is asked: the names of its methods with the requests."""
  from tff_cluster.engine import connection, context, worker

  asked = []
  for name in ('call', 'clean'):
    real = getattr(connection._Calls, name)

    def heard(calls, method, request, real=real):
      asked.append((method, request))
      return real(calls, method, request)

    monkeypatch.setattr(connection._Calls, name, heard)
  with context.connected(worker.start(1)):
    import tensorflow_federated as tff

    yield tff.framework.get_context_stack().current._connection, asked


def total():
  import tensorflow as tf
  import tensorflow_federated as tff

  @tff.tensorflow.computation(tff.TensorType(np.float32, [None]))
  def of_one(rows):
    return tf.reduce_sum(rows)

  @tff.federated_computation(tff.types.FederatedType(tff.TensorType(np.float32, [None]), tff.CLIENTS))
  def of_all(clients):
    return tff.federated_sum(tff.federated_map(of_one, clients))

  return of_all


def test_a_computation_is_sent_once_to_an_executor_and_what_it_was_given_is_forgotten(monkeypatch):
  computation = total()
  with opened(monkeypatch) as (_, asked):
    for clients in (1, 2, 2, 2):
      assert computation([np.full(3, 2, np.float32)] * clients) == 6 * clients
  methods = collections.Counter(method for method, _ in asked)
  assert methods == {'GetExecutor': 2, 'CreateValue': 2 + 4, 'CreateCall': 4, 'Compute': 4, 'Dispose': 4}
  made = [request.value.WhichOneof('value') for method, request in asked if method == 'CreateValue']
  assert collections.Counter(made) == {'computation': 2, 'federated': 4}
  forgotten = [request for method, request in asked if method == 'Dispose']
  assert [len(request.value_ref) for request in forgotten] == [2] * 4


def test_executors_of_a_lane_do_not_pile_up(monkeypatch):
  from tff_cluster.engine import connection

  monkeypatch.setattr(connection, '_MAX_EXECUTORS', 3)
  computation = total()
  with opened(monkeypatch) as (_, asked):
    for clients in (1, 2, 3, 1, 4, 1, 2):
      assert computation([np.ones(3, np.float32)] * clients) == 3 * clients
  methods = [method for method, _ in asked]
  # That of two clients is left for four, and made again in place of that of three.
  assert methods.count('GetExecutor') == 5 and methods.count('DisposeExecutor') == 2


def test_no_argument_is_no_message(monkeypatch):
  import tensorflow_federated as tff

  answer = tff.tensorflow.computation(lambda: np.int32(42))
  with opened(monkeypatch) as (_, asked):
    assert answer() == 42
  assert [method for method, _ in asked] == ['GetExecutor', 'CreateValue', 'CreateCall', 'Compute', 'Dispose']


def test_a_channel_that_another_thread_has_closed_is_a_lost_worker():
  import grpc
  from tensorflow_federated.proto.v0 import executor_pb2

  from tff_cluster.engine import connection

  channel, watch = grpc.insecure_channel('unix-abstract:nobody'), types.SimpleNamespace(begin=lambda: None)
  cleaning, calling = connection._Calls(channel, watch), connection._Calls(channel, watch)
  channel.close()
  cleaning.clean('Dispose', executor_pb2.DisposeRequest())
  for calls in (cleaning, calling):
    with pytest.raises(connection.WorkerLost, match='was left'):
      calls.call('Compute', executor_pb2.ComputeRequest())


def test_a_channel_that_never_closes_is_left_after_a_moment(monkeypatch):
  from tff_cluster.engine import connection

  monkeypatch.setattr(connection, '_CLOSING_SECS', 0.1)
  stuck = threading.Event()
  left = connection.Connection('unix-abstract:nobody', lambda: None)
  monkeypatch.setattr(left, '_channel', types.SimpleNamespace(close=stuck.wait))
  begun = time.monotonic()
  left.close()
  assert 0.1 <= time.monotonic() - begun < 5
  stuck.set()
