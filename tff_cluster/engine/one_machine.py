"""A worker of this machine, whose computations survive it: it is started again, and its work repeated."""

import contextlib
import functools
import logging
import subprocess
import threading
from typing import Any

import grpc
import tensorflow_federated as tff

from tff_cluster.base import words
from tff_cluster.base.errors import EnvironmentFault, argument
from tff_cluster.engine import connection as connection_lib
from tff_cluster.engine import machine as machine_lib
from tff_cluster.engine import socket_relay
from tff_cluster.engine import worker as worker_lib

_LOG = logging.getLogger(__name__)


class ProcessWatch:
  """Watches a worker of this machine: it may take as long as it wants, as long as it works."""

  def __init__(self, worker: worker_lib.Worker, stall_timeout_secs: float):
    self._worker = worker
    self._patience = stall_timeout_secs
    self._seen, self._idle_ticks = 0, 0

  def begin(self) -> None:
    self._idle_ticks = 0

  def tick(self) -> str | None:
    if not self._worker.alive:
      return self._end()
    # Ticks are counted, not the clock: it jumps, and it goes on while this process is stopped.
    ticks = worker_lib.cpu_ticks(self._worker)
    self._idle_ticks = 0 if ticks is None or ticks != self._seen else self._idle_ticks + 1
    self._seen = ticks or 0
    if self._idle_ticks < self._patience:
      return None
    return f'hung (it did nothing for {self._idle_ticks:g} s): {worker_lib.last_line(self._worker)}'

  def cause(self, error: grpc.RpcError) -> str:
    # The connection breaks a moment before the kernel reports the end.
    with contextlib.suppress(subprocess.TimeoutExpired):
      self._worker.process.wait(timeout=0.5)
    return answer(error) if self._worker.alive else self._end()

  def _end(self) -> str:
    return f'ended (exit code {self._worker.process.returncode}): {worker_lib.last_line(self._worker)}'


def answer(error: grpc.RpcError) -> str:
  """Returns an error of a call in words."""
  return f'answered {error.code().name}: {words.first_line(error.details() or "", "without a reason")}'


class LocalContext(tff.framework.SyncContext):
  """Computes in a worker of this machine, and in another one when that fails."""

  def __init__(self, worker: worker_lib.Worker, machine: machine_lib.Machine, model: str | None = None):
    """Takes over a worker as worker.start returned it.

    Args:
      machine: How patient to be.
      model: What it trains, to be named where it dies of a fault of its own.

    Raises:
      EnvironmentFault: if it does not come up.
    """
    self._machine, self._model = machine, model
    self._worker = worker
    self._lock = threading.Lock()
    # Why the worker was given up, and whether that holds for calls that come later, too.
    self._fault: EnvironmentFault | None = None
    self._is_over = False
    self._door: socket_relay.Door
    self._connection: connection_lib.Connection
    self._connect()

  def invoke(self, comp: Any, arg: Any) -> Any:
    for failures in range(self._machine.worker_retries + 1):
      connection = self._usable()
      try:
        return connection.invoke(comp, arg)
      except connection_lib.WorkerLost as lost:
        with self._lock:
          self._begin_again(connection, lost, failures)
    raise AssertionError('not reached')

  @property
  def is_over(self) -> bool:
    """Whether it computes nothing any more."""
    return self._is_over

  def close(self) -> None:
    """Ends the worker, and with it the calls of all threads."""
    with self._lock:
      self._fault = self._fault or EnvironmentFault(f'the TFF worker was left; {machine_lib.SAVED}')
      self._is_over = True
      self._leave()

  def _usable(self) -> connection_lib.Connection:
    """Returns the connection to a worker, another one where the last was given up after many failures."""
    with self._lock:
      if self._fault is not None:
        if self._is_over or not self._machine.worker_retries:
          raise self._fault
        self._start()
      return self._connection

  def _leave(self) -> None:
    self._worker.stop()
    self._connection.close()
    self._door.close()

  def _begin_again(
    self, connection: connection_lib.Connection, lost: connection_lib.WorkerLost, failures: int
  ) -> None:
    """Starts another worker, once for all threads whose calls were lost; raises why not, in all of them."""
    if self._fault is not None:
      raise self._fault
    retries = self._machine.worker_retries
    times = f'{failures + 1} times in a row, at last it ' if failures else 'in the middle of a round: it '
    for_good = EnvironmentFault(f'the TFF worker failed {times}{lost}; {machine_lib.SAVED}')
    if connection is not self._connection:
      # Another thread was first to begin again.
      if failures == retries:
        raise for_good from lost
      return
    self._leave()  # From here on it is certain how it ended.
    try:
      if self._worker.died_of is not None:
        self._is_over = True
        raise EnvironmentFault(self._untrusted()) from lost
      if failures == retries:
        raise for_good from lost
      _LOG.warning(
        'the TFF worker %s; it is started again and its work repeated (%d of %d)', lost, failures + 1, retries
      )
      self._start()
    except EnvironmentFault as fault:
      self._fault = fault
      raise

  def _start(self) -> None:
    self._worker = worker_lib.start(self._worker.clients_in_parallel)
    self._connect()
    self._fault = None

  def _connect(self) -> None:
    machine, worker = self._machine, self._worker
    worker_lib.wait_until_serving(worker, machine.worker_start_timeout_secs)
    if not worker.private:
      _tell_that_it_is_open()
    watch = functools.partial(ProcessWatch, worker, machine.worker_stall_timeout_secs)
    self._door = socket_relay.Door(worker.connect)
    self._connection = connection_lib.Connection(self._door.address, watch)

  def _untrusted(self) -> str:
    trained = f' while it computed with {argument("model", self._model)}' if self._model else ''
    return (
      f'the TFF worker died of {self._worker.died_of}{trained}: {worker_lib.last_line(self._worker)}; its memory may have '
      'been wrong before that, so its numbers cannot be trusted and nothing is repeated. What it finished is saved and '
      f'may be wrong, too: to be sure, run anew in another {argument("output_dir")}, without what this run put into a {argument("store_dir")}'
    )


@functools.cache  # Once a process.
def _tell_that_it_is_open() -> None:
  _LOG.warning(
    'this system allows no private network (it needs root or user namespaces): while this runs, whoever reaches the port '
    "of TFF's worker on this machine can read and write all your files; docs/explanation/who_can_reach_a_run.md says more"
  )
