"""Connects TFF to a worker: a call to a worker that has died fails at once instead of waiting for ever."""

import atexit
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import tensorflow_federated as tff
from tensorflow_federated.python.core.backends.native import compiler
from tensorflow_federated.python.core.environments.tensorflow_backend import tensorflow_tree_transformations
from tensorflow_federated.python.core.environments.tensorflow_frontend import tensorflow_computation
from tensorflow_federated.python.core.impl.computation import computation_impl
from tensorflow_federated.python.core.impl.context_stack import context_stack_impl
from tensorflow_federated.python.core.impl.execution_contexts import sync_execution_context
from tensorflow_federated.python.core.impl.executor_stacks import python_executor_stacks
from tensorflow_federated.python.core.impl.executors import remote_executor, remote_executor_grpc_stub

from tff_cluster import stock_context
from tff_cluster.errors import EnvironmentFault
from tff_cluster.federated import worker as worker_lib

atexit.register(stock_context.drop)

_MAX_MESSAGE_BYTES = 2_000_000_000
_CHANNEL_OPTIONS = [
  ('grpc.max_receive_message_length', _MAX_MESSAGE_BYTES),
  ('grpc.max_send_message_length', _MAX_MESSAGE_BYTES),
  # The worker is on this machine; a proxy from the environment would answer for it.
  ('grpc.enable_http_proxy', 0),
]
# A living worker that refuses this many calls in a row is not going to answer.
_MAX_REFUSALS = 20
_CALLS = (
    'get_executor', 'create_value', 'create_struct', 'create_call', 'create_selection', 'compute', 'dispose',
)  # fmt: skip


class _WatchedStub(remote_executor_grpc_stub.RemoteExecutorGrpcStub):
  """A stub that tells a broken connection to a dead worker from one that is worth trying again.

  TFF retries what it calls retryable without end, and a dead worker's answer is of that kind.
  """

  def __init__(self, channel: grpc.Channel, worker: worker_lib.Worker):
    super().__init__(channel)
    for name in _CALLS:
      setattr(self, name, _watched(getattr(self, name), worker))


def _watched(call: Callable[[Any], Any], worker: worker_lib.Worker) -> Callable[[Any], Any]:
  refusals = 0

  def wrapped(request: Any) -> Any:
    nonlocal refusals
    try:
      answer = call(request)
      refusals = 0
      return answer
    except grpc.RpcError as error:
      with contextlib.suppress(Exception):
        worker.process.wait(timeout=0.5)
      refusals += 1
      if worker.alive and refusals < _MAX_REFUSALS:
        raise
      if worker.alive:
        raise EnvironmentFault(
          f'the TFF worker refused {refusals} calls in a row, the last with: {error}'
        ) from error
      raise EnvironmentFault(
        f'the TFF worker ended in the middle of a round (exit code {worker.process.returncode}): '
        f'{worker_lib.last_line(worker)}; what was finished is saved, give the same command again to go on'
      ) from error

  return wrapped


def _compiled(computation: computation_impl.ConcreteComputation) -> computation_impl.ConcreteComputation:
  """Compiles a computation for the worker, as TFF's native backend does but for Grappler.

  Run ahead of time, Grappler pulls every function into its caller, the training step into the loop over
  batches too, and there the gradient of a pooling layer is slow (see client_work.build_client_update).
  """
  block, _ = tensorflow_tree_transformations.replace_intrinsics_with_bodies(computation.to_building_block())
  desugared = computation_impl.ConcreteComputation(
    computation_proto=block.proto, context_stack=context_stack_impl.context_stack
  )
  return compiler.transform_to_native_form(desugared)


@contextlib.contextmanager
def connected(worker: worker_lib.Worker, timeout_secs: float = 60.0) -> Iterator[None]:
  """Installs a TFF execution context on the worker; stops the worker on the way out.

  Args:
    worker: A worker as worker.start returned it.
    timeout_secs: How long to wait until it serves.

  Raises:
    EnvironmentFault: if the worker does not come up.
  """
  try:
    deadline = time.monotonic() + timeout_secs
    worker_lib.wait_until_serving(worker, timeout_secs)
    channel = grpc.insecure_channel(f'127.0.0.1:{worker.port}', _CHANNEL_OPTIONS)
    try:
      grpc.channel_ready_future(channel).result(timeout=max(deadline - time.monotonic(), 1.0))
    except grpc.FutureTimeoutError as error:
      raise EnvironmentFault(f'the TFF worker did not answer within {timeout_secs:g} s') from error
    stub = _WatchedStub(channel, worker)

    def executor(cardinalities: Any) -> remote_executor.RemoteExecutor:
      cardinalities.setdefault(tff.CLIENTS, 0)
      remote = remote_executor.RemoteExecutor(stub)
      remote.set_cardinalities(cardinalities)
      return remote

    context = sync_execution_context.SyncExecutionContext(
      executor_fn=python_executor_stacks.ResourceManagingExecutorFactory(executor_stack_fn=executor),
      compiler_fn=_compiled,
      transform_args=tensorflow_computation.transform_args,
      transform_result=tensorflow_computation.transform_result,
    )
    with context_stack_impl.context_stack.install(context):
      yield
    channel.close()
  finally:
    worker.stop()
