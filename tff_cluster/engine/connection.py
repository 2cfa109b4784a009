"""Calls of TFF's worker, which end: what goes wrong is WorkerLost, never a wait without end.

TFF's own client of the executor protocol retries what it calls retryable without end, and a dead worker's answer is of that
kind; a worker that hangs it waits for for ever. It also takes about as long a call as a small model trains for: values are
copied again and again (messages.py), and a computation is sent with each of its calls. Here it is sent once.
"""

import collections
import contextlib
import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import grpc
import tensorflow_federated as tff
from tensorflow_federated.proto.v0 import executor_pb2, executor_pb2_grpc

from tff_cluster.engine import free_memory, messages

_MAX_MESSAGE_BYTES = 2_000_000_000
_CHANNEL_OPTIONS = [
  ('grpc.max_receive_message_length', _MAX_MESSAGE_BYTES),
  ('grpc.max_send_message_length', _MAX_MESSAGE_BYTES),
  # A proxy from the environment would answer for the worker.
  ('grpc.enable_http_proxy', 0),
  # A worker of this machine is connected to once; by default a connection is left after half an hour without a call.
  ('grpc.client_idle_timeout_ms', (1 << 31) - 1),
]
_TICK_SECS = 1.0
_CLOSING_SECS = 2.0
# Executors of a lane, one for each number of clients; what one was sent stays in the worker's memory.
_MAX_EXECUTORS = 10
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


class _Calls:
  """The methods of a worker. One that is lost is given up, instead of waited for or called again.

  Attributes:
    watch: Knows how the worker is.
  """

  def __init__(self, channel: grpc.Channel, watch: Watch):
    self.watch = watch
    self._stub = executor_pb2_grpc.ExecutorGroupStub(channel)
    self._lost: str | None = None
    self._cleaning: grpc.Future | None = None

  def end(self) -> None:
    """Nothing is called any more."""
    self._lost = 'was left'

  def call(self, method: str, request: Any) -> Any:
    """Returns the answer to a request. Raises WorkerLost."""
    if self._lost is not None:
      raise WorkerLost(self._lost)
    self.watch.begin()
    pending = self._begin(method, request)
    while True:
      try:
        return pending.result(timeout=_TICK_SECS)
      except grpc.FutureTimeoutError:
        self._lost = self.watch.tick()
      except grpc.RpcError as error:
        self._lost = self.watch.cause(error)
      if self._lost is not None:
        pending.cancel()
        raise WorkerLost(self._lost)

  def clean(self, method: str, request: Any) -> None:
    """Has the worker forget something, without waiting for it; a worker that is lost has nothing left to forget."""
    if self._lost is None:
      # Kept until the next one: a call that nobody holds is cancelled.
      with contextlib.suppress(WorkerLost):
        self._cleaning = self._begin(method, request)

  def _begin(self, method: str, request: Any) -> grpc.Future:
    try:
      return getattr(self._stub, method).future(request)
    except ValueError as error:
      # Another thread, which found the worker dead, has closed the channel since.
      self._lost = 'was left'
      raise WorkerLost(self._lost) from error
    except grpc.RpcError as error:  # What cannot be put into a message.
      self._lost = self.watch.cause(error)
      raise WorkerLost(self._lost) from error


@dataclasses.dataclass(eq=False)
class _Executor:
  """What a worker computes with for a number of clients.

  Attributes:
    id: Its name in the worker.
    functions: The computations that were sent to it, with their names there, by where they are in our memory.
  """

  id: executor_pb2.ExecutorId
  functions: dict[int, tuple[tff.framework.ConcreteComputation, executor_pb2.ValueRef]] = dataclasses.field(
    default_factory=dict
  )


class _Lane:
  """One call of a worker at a time.

  Its number makes its executors other ones than those of other lanes, which a worker tells apart by how many there are at each
  placement. An executor's threads wait for what they need, so two calls would go one after the other in it.
  """

  def __init__(self, channel: grpc.Channel, watch: Watch, number: int):
    self.calls = _Calls(channel, watch)
    self._number = number
    self._executors: collections.OrderedDict[int, _Executor] = collections.OrderedDict()

  def executor(self, clients: int) -> _Executor:
    """Returns the executor for a number of clients."""
    if clients not in self._executors:
      request = executor_pb2.GetExecutorRequest()
      for placement, count in ((tff.CLIENTS, clients), (tff.SERVER, self._number)):
        request.cardinalities.add(cardinality=count).placement.uri = placement.uri
      self._executors[clients] = _Executor(self.calls.call('GetExecutor', request).executor)
    self._executors.move_to_end(clients)
    if len(self._executors) > _MAX_EXECUTORS:
      _, oldest = self._executors.popitem(last=False)
      self.calls.clean('DisposeExecutor', executor_pb2.DisposeExecutorRequest(executor=oldest.id))
    return self._executors[clients]

  def invoke(self, computation: tff.framework.ConcreteComputation, argument: Any) -> Any:
    """Returns a computation's result, as TFF's contexts do."""
    kind = computation.type_signature
    executor = self.executor(0 if argument is None else messages.num_clients(argument, kind.parameter))
    call = executor_pb2.CreateCallRequest(
      executor=executor.id, function_ref=self._function(executor, compiled(computation))
    )
    used = executor_pb2.DisposeRequest(executor=executor.id)
    if argument is not None:
      given = executor_pb2.CreateValueRequest(executor=executor.id)
      messages.fill(given.value, argument, kind.parameter)
      call.argument_ref.CopyFrom(self.calls.call('CreateValue', given).value_ref)
      used.value_ref.append(call.argument_ref)
      del given  # As large as all that the clients have.
    called = self.calls.call('CreateCall', call).value_ref
    used.value_ref.append(called)
    answer = self.calls.call(
      'Compute', executor_pb2.ComputeRequest(executor=executor.id, value_ref=called)
    ).value
    self.calls.clean('Dispose', used)
    return tff.types.type_to_py_container(messages.read(answer, kind.result), kind.result)

  def _function(
    self, executor: _Executor, computation: tff.framework.ConcreteComputation
  ) -> executor_pb2.ValueRef:
    if id(computation) not in executor.functions:
      request = executor_pb2.CreateValueRequest(executor=executor.id)
      request.value.computation.CopyFrom(tff.framework.serialize_computation(computation))
      executor.functions[id(computation)] = computation, self.calls.call('CreateValue', request).value_ref
    return executor.functions[id(computation)][1]


class Connection:
  """A worker, called from any number of threads."""

  def __init__(self, address: str, watch: Callable[[], Watch]):
    """Takes a worker; it is called when it is first used.

    Args:
      address: HOST:PORT of the worker, or another address that gRPC takes.
      watch: Makes what knows how it is, for the calls of one lane.
    """
    free_memory.keep_freed()
    self._channel = grpc.insecure_channel(address, _CHANNEL_OPTIONS)
    self._watch = watch
    self._lanes: list[_Lane] = []
    self._idle: list[_Lane] = []
    self._numbers = itertools.count(1)

  def invoke(self, computation: Any, argument: Any) -> Any:
    """Returns a computation's result.

    Raises:
      WorkerLost: if the worker dies, hangs or answers an error. It must not be used again.
    """
    with self._lane() as lane:
      return lane.invoke(computation, argument)

  def close(self) -> None:
    """Leaves the worker. For gRPC it waits seconds at most: a signal that came while it was at work can have left it waiting for ever."""
    for lane in self._lanes:
      lane.calls.end()
    closing = threading.Thread(target=self._channel.close, daemon=True)
    closing.start()
    closing.join(_CLOSING_SECS)

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
