"""Spreads the clients of a computation over several workers; what has no clients, or adds them up, is computed here.

Workers take a few clients at a time from a common list, so that a fast one does more, the clients of one that is lost
go to the others, and one that comes later takes part. Which worker a client comes to changes no bit (of the same
versions, on the same type of processor): each client's result comes back alone, in the clients' order, and is added up
by one worker of this machine as it would have been without others. TFF's own MergeableCompExecutionContext adds up on
the workers instead, which sends less; but then the bits of a sum depend on who took part and who was faster.
"""

import collections
import dataclasses
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

import tensorflow_federated as tff

from tff_cluster.base.errors import EnvironmentFault, argument
from tff_cluster.engine import connection as connection_lib
from tff_cluster.engine import machine as machine_lib
from tff_cluster.engine import one_machine as one_machine_lib
from tff_cluster.engine import remote_worker as remote_worker_lib

_LOG = logging.getLogger(__name__)
# Portions that a worker gets of a round where all are equally fast; more: less waiting at the end, more messages.
_PORTIONS = 3
_MAX_PORTION = 32
_RETRY_SECS = 2.0


@dataclasses.dataclass(eq=False)
class _Task:
  """One computation on some of the clients."""

  computation: Any
  argument: Any
  result: list[Any] | None = None
  failures: int = 0


class SpreadContext(tff.framework.SyncContext):
  """Computes on workers of other machines, and on one of this machine what is not a client's."""

  def __init__(self, server: one_machine_lib.LocalContext, machine: machine_lib.Machine):
    """Starts to connect; workers that are not there yet may come later.

    Args:
      server: Computes what is not a client's.
      machine: The addresses, and how patient to be.
    """
    self._server, self._machine = server, machine
    self._changed = threading.Condition()
    self._waiting: collections.deque[_Task] = collections.deque()
    self._fault: BaseException | None = None
    self._closed = False
    self._causes: dict[str, str] = {}
    self._working: set[str] = set()
    for address in machine.addresses:
      worker = remote_worker_lib.RemoteWorker(address, machine)
      threading.Thread(target=self._serve, args=(worker,), daemon=True).start()

  def invoke(self, comp: Any, arg: Any) -> Any:
    kind = comp.type_signature
    if not (isinstance(kind.result, tff.types.FederatedType) and kind.result.placement is tff.CLIENTS):
      return self._server.invoke(comp, arg)
    connection_lib.compiled(comp)  # Here, so that the workers' threads find it compiled.
    tasks = [_Task(comp, part) for part in _portions(kind.parameter, arg, len(self._machine.addresses))]
    with self._changed:
      self._waiting.extend(tasks)
      self._changed.notify_all()
    try:
      self._wait(tasks)
    finally:
      with self._changed:
        self._waiting.clear()
    return [result for task in tasks for result in task.result or ()]

  def close(self) -> None:
    """Leaves the workers."""
    with self._changed:
      self._closed = True
      self._changed.notify_all()

  def _wait(self, tasks: Sequence[_Task]) -> None:
    """Waits until all tasks are done. Raises the fault that keeps them from it."""
    alone_since: float | None = None
    with self._changed:
      while any(task.result is None for task in tasks):
        if self._fault is not None:
          raise self._fault
        if self._working:
          alone_since = None
        elif alone_since is None:
          alone_since = time.monotonic()
        elif time.monotonic() - alone_since > self._machine.worker_start_timeout_secs:
          told = '; '.join(f'{address} {cause}' for address, cause in sorted(self._causes.items()))
          raise EnvironmentFault(
            f'none of the {argument("workers")} is there: {told}; {one_machine_lib.SAVED}'
          )
        self._changed.wait(timeout=1.0)

  def _serve(self, worker: remote_worker_lib.RemoteWorker) -> None:
    """Has one worker do tasks, until the context is closed."""
    met = False
    while not self._closed:
      try:
        worker.connect()
        if not met:
          met = True
          self._tell_difference(worker)
      except connection_lib.WorkerLost as lost:
        self._absent(worker, str(lost))
        continue
      except BaseException as fault:
        self._fail(fault)
        return
      task = self._next(worker)
      if task is None:
        break
      try:
        result = worker.invoke(task.computation, task.argument)
      except connection_lib.WorkerLost as lost:
        self._give_back(worker, task, str(lost))
      except BaseException as fault:
        self._fail(fault)
        return
      else:
        with self._changed:
          task.result = result
          self._changed.notify_all()
    worker.leave()

  def _next(self, worker: remote_worker_lib.RemoteWorker) -> _Task | None:
    with self._changed:
      self._working.add(worker.address)
      if self._causes.pop(worker.address, None) is not None:
        _LOG.warning('the worker %s is there', worker.address)
      self._changed.notify_all()
      while not (self._waiting or self._closed):
        self._changed.wait()
      return None if self._closed else self._waiting.popleft()

  def _absent(self, worker: remote_worker_lib.RemoteWorker, cause: str) -> None:
    with self._changed:
      self._working.discard(worker.address)
      if worker.address not in self._causes:
        _LOG.warning('the worker %s %s; the others go on without it', worker.address, cause)
      self._causes[worker.address] = cause
      self._changed.wait(timeout=_RETRY_SECS)

  def _give_back(self, worker: remote_worker_lib.RemoteWorker, task: _Task, cause: str) -> None:
    worker.leave()
    with self._changed:
      self._working.discard(worker.address)
      self._causes[worker.address] = cause
      _LOG.warning('the worker %s %s; its clients go to another one', worker.address, cause)
      task.failures += 1
      if task.failures > self._machine.worker_retries:
        self._fault = EnvironmentFault(
          f'the same clients failed on workers {task.failures} times, at last on {worker.address}, which {cause}; '
          f'{one_machine_lib.SAVED}'
        )
      self._waiting.appendleft(task)
      self._changed.notify_all()

  def _fail(self, fault: BaseException) -> None:
    with self._changed:
      self._fault = fault
      self._changed.notify_all()

  def _tell_difference(self, worker: remote_worker_lib.RemoteWorker) -> None:
    difference = worker.differs_in()
    if difference:
      _LOG.warning(
        'the worker %s has another type of processor (%s): its bits can differ from those of this machine',
        worker.address,
        difference,
      )


def _portions(kind: tff.Type, argument: Any, workers: int) -> list[Any]:
  """Returns the argument of a computation in parts, each with some of the clients and all of the rest."""
  if isinstance(kind, tff.types.FederatedType):
    return [argument[part] for part in _slices(len(argument), workers)]
  values = tff.structure.to_elements(argument)
  at_clients = [t.placement is tff.CLIENTS for t in kind]
  count = next(len(value) for (_, value), here in zip(values, at_clients, strict=True) if here)
  return [
    tff.structure.Struct(
      [(name, value[part] if here else value) for (name, value), here in zip(values, at_clients, strict=True)]
    )
    for part in _slices(count, workers)
  ]


def _slices(count: int, workers: int) -> Sequence[slice]:
  size = min(max(-(-count // (_PORTIONS * workers)), 1), _MAX_PORTION)
  return [slice(start, min(start + size, count)) for start in range(0, count, size)]
