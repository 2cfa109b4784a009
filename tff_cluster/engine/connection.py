"""A TFF execution context on one worker, whose calls end: what goes wrong is WorkerLost, never a wait without end.

TFF retries what it calls retryable without end, and a dead worker's answer is of that kind; a worker that hangs it
waits for for ever.
"""

import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import grpc
import tensorflow_federated as tff
from tensorflow_federated.proto.v0 import executor_pb2

_MAX_MESSAGE_BYTES = 2_000_000_000
_CHANNEL_OPTIONS = [
  ('grpc.max_receive_message_length', _MAX_MESSAGE_BYTES),
  ('grpc.max_send_message_length', _MAX_MESSAGE_BYTES),
  # A proxy from the environment would answer for the worker.
  ('grpc.enable_http_proxy', 0),
  # A worker of this machine is connected to once; by default a connection is left after half an hour without a call.
  ('grpc.client_idle_timeout_ms', (1 << 31) - 1),
]
_CALLS = ('GetExecutor', 'CreateValue', 'CreateStruct', 'CreateCall', 'CreateSelection', 'Compute')
# What cleans up behind a call; a worker that is lost has nothing left to clean.
_CLEANING = {'Dispose': executor_pb2.DisposeResponse, 'DisposeExecutor': executor_pb2.DisposeExecutorResponse}
_TICK_SECS = 1.0
_CLEANING_SECS = 5.0
_compiling = threading.Lock()


class WorkerLost(Exception):
  """A worker died, hangs, or answered an error. The message says what it did."""


class Watch(Protocol):
  """Knows how a worker is while a call to it is pending."""

  def begin(self) -> None:
    """A call begins."""

  def tick(self) -> str | None:
    """Called about once a second of waiting; returns why the worker is given up, None while it is not."""

  def cause(self, error: grpc.RpcError) -> str:
    """Returns what the worker did, for an error of a call."""


class _Unwatched:
  """A channel whose connectivity nobody follows: the thread that follows it fails, aloud, once the channel is closed."""

  def __init__(self, channel: grpc.Channel):
    self.unary_unary = channel.unary_unary

  def subscribe(self, callback: Any, try_to_connect: bool = False) -> None:
    """TFF asks for it, and needs it for nothing here."""


class _WatchedStub(tff.framework.RemoteExecutorGrpcStub):
  """A stub that gives a worker up, instead of waiting or trying again."""

  def __init__(self, channel: _Unwatched, watch: Watch):
    super().__init__(channel)
    self._watch = watch
    self._lost: str | None = None
    for name in _CALLS:
      setattr(self._stub, name, functools.partial(self._call, getattr(self._stub, name)))
    for name, nothing in _CLEANING.items():
      setattr(self._stub, name, functools.partial(self._clean, getattr(self._stub, name), nothing))

  def end(self) -> None:
    """Nothing is called any more; what is collected later has nothing to clean."""
    self._lost = 'was left'

  def _call(self, remote: Any, request: Any) -> Any:
    if self._lost is not None:
      raise WorkerLost(self._lost)
    self._watch.begin()
    pending = remote.future(request)
    while True:
      try:
        return pending.result(timeout=_TICK_SECS)
      except grpc.FutureTimeoutError:
        self._lost = self._watch.tick()
      except grpc.RpcError as error:
        self._lost = self._watch.cause(error)
      if self._lost is not None:
        pending.cancel()
        raise WorkerLost(self._lost)

  def _clean(self, remote: Any, nothing: Callable[[], Any], request: Any) -> Any:
    if self._lost is not None:
      return nothing()
    try:
      return remote(request, timeout=_CLEANING_SECS)
    except grpc.RpcError:
      return nothing()


class _Lane:
  """A worker's execution context for one call at a time: TFF's blocks its event loop with every call.

  Its number makes its executor another one than those of other lanes, which a worker tells apart by how many there are at each
  placement. An executor's threads wait for what they need, so two calls would go one after the other in it.
  """

  def __init__(self, channel: grpc.Channel, watch: Watch, number: int):
    self.stub = stub = _WatchedStub(_Unwatched(channel), watch)

    def executor(cardinalities: Any) -> Any:
      cardinalities.setdefault(tff.CLIENTS, 0)
      cardinalities[tff.SERVER] = number
      remote = tff.framework.RemoteExecutor(stub)
      remote.set_cardinalities(cardinalities)
      return remote

    self.executor = executor
    self.context = tff.framework.SyncExecutionContext(
      executor_fn=tff.framework.ResourceManagingExecutorFactory(executor),
      compiler_fn=compiled,
      transform_args=tff.tensorflow.transform_args,
      transform_result=tff.tensorflow.transform_result,
    )


class Connection:
  """A worker's execution context, for any number of threads."""

  def __init__(self, address: str, watch: Callable[[], Watch]):
    """Takes a worker; it is called when it is first used.

    Args:
      address: HOST:PORT of the worker, or another address that gRPC takes.
      watch: Makes what knows how it is, for the calls of one lane.
    """
    self._channel = grpc.insecure_channel(address, _CHANNEL_OPTIONS)
    self._watch = watch
    self._lanes: list[_Lane] = []
    self._idle: list[_Lane] = []
    self._numbers = itertools.count(1)

  def check(self) -> None:
    """Has the worker answer a call that asks nothing of it. Raises WorkerLost."""
    with self._lane() as lane:
      lane.executor({}).close()

  def invoke(self, computation: Any, argument: Any) -> Any:
    """Returns a computation's result.

    Raises:
      WorkerLost: if the worker dies, hangs or answers an error. It must not be used again.
    """
    with self._lane() as lane:
      return lane.context.invoke(computation, argument)

  def close(self) -> None:
    for lane in self._lanes:
      lane.stub.end()
    self._channel.close()

  @contextlib.contextmanager
  def _lane(self) -> Iterator[_Lane]:
    """Yields a lane that nobody else is in; the last one left has the most built already."""
    try:
      lane = self._idle.pop()
    except IndexError:
      lane = _Lane(self._channel, self._watch(), next(self._numbers))
      self._lanes.append(lane)
    try:
      yield lane
    finally:
      self._idle.append(lane)


def compiled(computation: tff.framework.ConcreteComputation) -> tff.framework.ConcreteComputation:
  """Compiles a computation for a worker, once a process; see _compiled."""
  with _compiling:
    return _compiled(computation)


# One for all connections: a worker that is started again, or one of several, has nothing compiled anew.
@functools.lru_cache
def _compiled(computation: tff.framework.ConcreteComputation) -> tff.framework.ConcreteComputation:
  """Compiles a computation for a worker, as TFF's native backend does but for Grappler.

  Run ahead of time, Grappler pulls every function into its caller, the training step into the loop over
  batches too, and there the gradient of a pooling layer is slow (see client_work.build_client_update).
  """
  block, _ = tff.tensorflow.replace_intrinsics_with_bodies(computation.to_building_block())
  desugared = tff.framework.ConcreteComputation(
    computation_proto=block.proto, context_stack=tff.framework.get_context_stack()
  )
  return tff.backends.native.transform_to_native_form(desugared)
