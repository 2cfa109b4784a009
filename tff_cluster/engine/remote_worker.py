"""A worker on another machine, as python -m phases.worker serves it (see engine/worker_service.py)."""

import contextlib
import json
import socket
from typing import Any

import grpc

from tff_cluster.base import environment
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.engine import connection as connection_lib
from tff_cluster.engine import machine as machine_lib
from tff_cluster.engine import one_machine, worker_service

# A machine that is gone does not refuse a connection, it is silent.
_STATUS_SECS = 5.0
# Statuses in a row that may fail while a call is pending, about one a second.
_MAX_MISSES = 5
_NO_WORKER = 'is no worker of python -m phases.worker'
# What is read of a status.
_TOLD = {'packages', 'instructions', 'cpu_ticks', 'last_line'}


class RemoteWorker:
  """Connects to a worker when it is needed, and again after it was lost.

  Attributes:
    address: HOST:PORT.
  """

  def __init__(self, address: str, machine: machine_lib.Machine):
    self.address = address
    self._machine = machine
    self._connection: connection_lib.Connection | None = None

  def connect(self) -> None:
    """Connects, where there is no connection.

    Raises:
      WorkerLost: if the worker is not there, or does not answer.
      EnvironmentFault: if it computes with other versions of TensorFlow or TFF than this process.
    """
    if self._connection is None:
      self._check(self.status())
      watch = _RemoteWatch(self, self._machine.worker_stall_timeout_secs)
      connection = connection_lib.Connection(self.address, lambda: watch)
      try:
        connection.check()  # Its service answers while the worker itself is started again.
      except connection_lib.WorkerLost:
        connection.close()
        raise
      self._connection = connection

  def invoke(self, computation: Any, argument: Any) -> Any:
    """Returns a computation's result. Raises WorkerLost; then `leave` comes next."""
    assert self._connection is not None
    return self._connection.invoke(computation, argument)

  def leave(self) -> None:
    """Closes the connection."""
    if self._connection is not None:
      self._connection.close()
      self._connection = None

  def status(self) -> dict[str, Any]:
    """Returns what the worker tells about itself.

    Raises:
      WorkerLost: if it does not answer, or not as a worker does.
    """
    return self._ask(worker_service.STATUS)

  def revive(self) -> None:
    """Has a worker that hangs replaced, where it can be reached."""
    with contextlib.suppress(connection_lib.WorkerLost):
      self._ask(worker_service.REVIVE)

  def differs_in(self) -> str:
    """Returns in which instruction sets its processor differs from this one's; '' where in none."""
    ours, theirs = set(environment.about_worker()['instructions']), set(self.status()['instructions'])
    return ', '.join(sorted(ours ^ theirs))

  def _ask(self, word: bytes) -> dict[str, Any]:
    host, _, port = self.address.rpartition(':')
    try:
      with socket.create_connection((host, int(port)), timeout=_STATUS_SECS) as asked:
        asked.sendall(word)
        with asked.makefile('rb') as answer:
          found = json.loads(answer.readline(1 << 20))
    except OSError as error:
      raise connection_lib.WorkerLost(f'cannot be reached: {error.strerror or error}') from error
    except ValueError as error:
      raise connection_lib.WorkerLost(_NO_WORKER) from error
    if not isinstance(found, dict) or not found.keys() >= _TOLD:
      raise connection_lib.WorkerLost(_NO_WORKER)
    return found

  def _check(self, status: dict[str, Any]) -> None:
    ours = environment.about_worker()['packages']
    theirs = status.get('packages')
    if theirs != ours:
      raise EnvironmentFault(
        f'the worker {self.address} has {_told(theirs)}, this process {_told(ours)}; install both from the same '
        'requirements.lock'
      )


class _RemoteWatch:
  """Watches a worker through its status: it must be reachable, and work."""

  def __init__(self, worker: RemoteWorker, stall_timeout_secs: float):
    self._worker, self._patience = worker, stall_timeout_secs
    self._seen, self._idle_ticks, self._misses = None, 0, 0

  def begin(self) -> None:
    self._idle_ticks = self._misses = 0

  def tick(self) -> str | None:
    try:
      status = self._worker.status()
    except connection_lib.WorkerLost as lost:
      self._misses += 1
      return str(lost) if self._misses >= _MAX_MISSES else None
    self._misses = 0
    ticks = status['cpu_ticks']
    self._idle_ticks = 0 if ticks is None or ticks != self._seen else self._idle_ticks + 1
    self._seen = ticks
    if self._idle_ticks < self._patience:
      return None
    self._worker.revive()
    return f'hung (it did nothing for {self._idle_ticks:g} s): {status["last_line"]}'

  def cause(self, error: grpc.RpcError) -> str:
    return one_machine.answer(error)


def _told(packages: Any) -> str:
  return ', '.join(f'{name} {version}' for name, version in dict(packages or {}).items()) or 'no versions'
