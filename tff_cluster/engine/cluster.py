"""Clients at work on the machines of a Dask cluster, through its scheduler.

A task is a chunk of a round's clients, whose sum is what travels home, or a few clients whose results do. What all tasks of a
call share (the computation, the model) is sent once a call, and a client's rows once a run: they stay where they were sent, and
Dask's scheduler takes tasks to them, or both to a worker that is free. Which worker a client comes to changes no bit (of the
same versions, on the same type of processor), because what it computes is a function of what it is sent, and chunks are added up
at home, in their order.

What is sent is lost with the worker that keeps it, and Dask then gives up the tasks that need it; they are sent again, with
all that they need, as often as machine.worker_retries says.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import logging
import math
import threading
import time
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import distributed
import distributed.versions

from tff_cluster.base import environment
from tff_cluster.base.errors import EnvironmentFault, Fault, InputError, argument
from tff_cluster.engine import dask_worker, side_by_side
from tff_cluster.engine import jobs as jobs_lib
from tff_cluster.engine import machine as machine_lib

_LOG = logging.getLogger(__name__)
# Calls that are in flight together; each is a thread here.
_MOST_AT_ONCE = 64
# Tasks of a call that are sent ahead, a thread of the cluster: more hide a slow worker, and wait for us with their results.
_AHEAD = 8
# Clients of a task that gives a result for each, and bytes that it may send or give; fewer where they can be spread wider.
_MOST_CLIENTS = 16
_TASK_BYTES = 8_000_000
_TICK_SECS = 1.0
# What is lost with a worker is found call by call, and told once.
_QUIET_SECS = 60.0
# What tells that a worker, the scheduler or the way there is lost; tasks tell all else by an error of their own.
_LOST = (
  concurrent.futures.CancelledError,
  distributed.CancelledError,
  distributed.KilledWorker,
  distributed.client.ClosedClientError,
  OSError,  # CommClosedError and TimeoutError among them.
)


@dataclasses.dataclass(eq=False)
class _Call:
  """A computation that is asked for, and what its tasks share, once that was sent."""

  what: dask_worker.Shared
  sent: distributed.Future | None = None


@dataclasses.dataclass(eq=False)
class _Task:
  """Some of the clients of a call."""

  jobs: Sequence[jobs_lib.Job]
  future: distributed.Future | None = None
  failures: int = 0


class _Workers:
  """Who is there.

  Attributes:
    address: Of the scheduler.
    threads: {address: threads} of each worker, as last seen.
  """

  def __init__(self, client: distributed.Client, machine: machine_lib.Machine):
    place = machine.cluster
    self._client, self._machine = client, machine
    self._lock = threading.Lock()
    self._looked = -math.inf
    self.address = place.address if place is not None else ''
    self.threads: Mapping[str, int] = {}

  @property
  def total(self) -> int:
    """Threads of all workers, at least one."""
    return max(sum(self.threads.values()), 1)

  def forget(self) -> None:
    """What was seen does not hold any more."""
    self._looked = -math.inf

  def wait(self) -> None:
    """Waits until the scheduler and a worker are there, as they were a second ago at most.

    Raises:
      EnvironmentFault: if they do not come in time.
      Cancelled: see side_by_side.check.
    """
    patience = self._machine.worker_start_timeout_secs
    deadline = time.monotonic() + patience
    while not self._look():
      side_by_side.check()
      if self._client.status == 'closed' or time.monotonic() > deadline:
        what = 'has no worker' if self._client.status == 'running' else 'was lost and did not come back'
        raise EnvironmentFault(
          f'the scheduler {self.address} {what} within {patience:g} s; allow more with {argument("worker_start_timeout_secs")}; '
          f'{machine_lib.SAVED}'
        )
      time.sleep(_TICK_SECS / 10)

  def _look(self) -> bool:
    with self._lock:
      if time.monotonic() - self._looked > _TICK_SECS or not self.threads:
        self.threads = {}
        if self._client.status == 'running':
          with contextlib.suppress(*_LOST):
            self.threads = self._client.nthreads()
        self._looked = time.monotonic()
      return bool(self.threads)


class Cluster:
  """The workers of a cluster. Sums, and whatever else is no client's, are computed in the TFF context of the calling thread.

  Attributes:
    apart, at_once: See jobs.Workers.
    dashboard: Address of the scheduler's dashboard; None where it has none.
    received: Bytes of the results that came here.
  """

  apart = True

  def __init__(self, client: distributed.Client, machine: machine_lib.Machine, slots: side_by_side.Slots):
    """Takes a client that is connected.

    Args:
      client: The connection to the scheduler.
      machine: How patient to be.
      slots: The cores of this machine.

    Raises:
      EnvironmentFault: if the cluster has no worker in time.
    """
    self._client, self._machine, self._slots = client, machine, slots
    self._workers = _Workers(client, machine)
    self._lock = threading.Lock()
    self._rows: dict[str, distributed.Future] = {}
    self._placed: collections.Counter[str] = collections.Counter()
    self._met: set[str] = set()
    self._told_since: float | None = None
    self.received = 0
    self._workers.wait()
    self.at_once = min(max(self._workers.total, slots.count), _MOST_AT_ONCE)
    self.dashboard = _dashboard(client)

  def each(
    self, computation: Any, shared: Sequence[Any], jobs: Sequence[jobs_lib.Job], result_bytes: int = 0
  ) -> Iterator[Any]:
    """See jobs.Workers.each."""
    groups = self._groups(jobs, result_bytes)
    for results in self._results(_call(computation, shared, adds_up=False), groups):
      yield from results

  def totals(
    self, computation: Any, shared: Sequence[Any], chunks: Sequence[Sequence[jobs_lib.Job]]
  ) -> list[Any]:
    """See jobs.Workers.totals; a chunk is a task."""
    call = _call(computation, shared, adds_up=True)
    return [total for results in self._results(call, chunks) for total in results]

  def busy(self, clients: int) -> contextlib.AbstractContextManager[None]:
    """See jobs.Workers.busy."""
    return self._slots.taken(clients)

  def _groups(self, jobs: Sequence[jobs_lib.Job], result_bytes: int) -> list[list[jobs_lib.Job]]:
    """Cuts clients that each have a result into tasks: few enough to be worth a message, many enough to be spread."""
    size = min(max(-(-len(jobs) // (3 * self._workers.total)), 1), _MOST_CLIENTS)
    found = []
    for first in range(0, len(jobs), size):
      some = jobs[first : first + size]
      # Rows that are kept travel apart.
      sizes = [result_bytes + _beside_bytes(job) + (0 if job.key else job.num_bytes) for job in some]
      found += [[some[k] for k in portion] for portion in jobs_lib.portions(sizes, _TASK_BYTES)]
    return found

  def _results(self, call: _Call, groups: Sequence[Sequence[jobs_lib.Job]]) -> Iterator[Sequence[Any]]:
    """Yields what the tasks of a call give, in order; so many are sent ahead that no worker waits for us."""
    ahead = _AHEAD * self._workers.total
    left, sent = iter(groups), collections.deque[_Task]()
    while True:
      while len(sent) < ahead and (jobs := next(left, None)) is not None:
        sent.append(task := _Task(jobs))
        self._send(call, task)
      if not sent:
        return
      yield self._result(call, sent)

  def _result(self, call: _Call, sent: collections.deque[_Task]) -> Sequence[Any]:
    """Waits for the first of the tasks, which leaves the queue; it is sent again where it was lost, and others with it."""
    task = sent.popleft()
    while True:
      assert task.future is not None
      try:
        self._wait(task.future)
        answer = task.future.result()
      except _LOST as error:
        lost = error
      except Fault as fault:
        ending = '' if machine_lib.SAVED in str(fault) else f'; {machine_lib.SAVED}'
        raise EnvironmentFault(f'{fault}{ending}') from None
      except Exception as error:
        if _is_unreadable(error):
          raise _unreadable(error) from error
        raise
      else:
        self._take(answer)
        return answer.results
      self._tell_loss(lost)
      self._send_again(call, task, lost)
      for other in sent:
        if other.future is not None and other.future.status == 'cancelled':
          self._send_again(call, other, lost)

  def _send_again(self, call: _Call, task: _Task, lost: BaseException) -> None:
    if task.failures == self._machine.worker_retries:
      times = f'{task.failures + 1} times in a row' if task.failures else 'in the middle of a round'
      raise EnvironmentFault(
        f'the same clients were lost {times} by workers of {self._workers.address}: {_words(lost)}; {machine_lib.SAVED}'
      ) from lost
    task.failures += 1
    self._send(call, task, again=task.failures > 1)

  def _send(self, call: _Call, task: _Task, again: bool = False) -> None:
    """Sends a task with all that it needs and that is not there, as soon as a worker is there.

    Args:
      again: Whether what seems to be there is not to be trusted.

    Raises:
      EnvironmentFault: if no worker comes in time.
    """
    deadline = time.monotonic() + 2 * self._machine.worker_start_timeout_secs
    key = f'{"chunk" if call.what.adds_up else "clients"}-{uuid.uuid4()}'
    while True:
      try:
        shared, rows = self._shared(call, again), self._kept(task.jobs, again)
        task.future = self._client.submit(
          dask_worker.work, shared, rows, [job.beside for job in task.jobs], key=key, pure=False
        )
        return
      except (*_LOST, KeyError) as lost:  # KeyError: rows were to go to a worker that is gone.
        if time.monotonic() > deadline:
          raise EnvironmentFault(
            f'nothing can be sent to the workers of {self._workers.address}: {_words(lost)}; {machine_lib.SAVED}'
          ) from lost
        self._workers.forget()
        time.sleep(_TICK_SECS / 10)
        self._workers.wait()

  def _shared(self, call: _Call, again: bool) -> distributed.Future:
    if call.sent is not None and call.sent.status == 'finished' and not again:
      return call.sent
    # Not broadcast: workers fetch it from each other with their first task, while Dask's broadcast waits for ever where a worker
    # is lost meanwhile.
    sent: distributed.Future = self._client.scatter([call.what], hash=False, timeout=_TICK_SECS)[0]
    call.sent = sent
    return sent

  def _kept(self, jobs: Sequence[jobs_lib.Job], again: bool) -> list[Any]:
    """Returns each client's rows: where they are kept, or themselves."""
    keys = [job.key() if job.key else None for job in jobs]
    with self._lock:
      missing = {
        key: dict(job.rows)
        for key, job in zip(keys, jobs, strict=True)
        if key is not None and (again or key not in self._rows or self._rows[key].status != 'finished')
      }
      if missing:
        # One worker for all, which often are a chunk together; the one with the fewest bytes for its threads.
        threads = self._client.nthreads()
        worker = min(sorted(threads), key=lambda name: self._placed[name] / threads[name], default=None)
        # Names that nobody has used: Dask does not take again what it has just lost.
        named = {f'rows-{key[:16]}-{uuid.uuid4().hex}': rows for key, rows in missing.items()}
        sent = self._client.scatter(named, workers=worker and [worker], hash=False, timeout=_TICK_SECS)
        self._rows |= dict(zip(missing, sent.values(), strict=True))
        self._placed[worker or ''] += sum(
          array.nbytes for rows in missing.values() for array in rows.values()
        )
      return [
        self._rows[key] if key is not None else dict(job.rows) for key, job in zip(keys, jobs, strict=True)
      ]

  def _wait(self, future: distributed.Future) -> None:
    """Waits until a task is done, but not longer without any worker than machine.worker_start_timeout_secs."""
    while True:
      try:
        # Not distributed.wait, which looks for a client of the whole process.
        future.exception(timeout=_TICK_SECS)
        return
      except distributed.TimeoutError:
        side_by_side.check()
        self._workers.wait()

  def _take(self, answer: dask_worker.Answer) -> None:
    """Counts what came, and tells of workers that may compute other bits."""
    with self._lock:
      self.received += sum(_array_bytes(each) for each in answer.results)
      if answer.worker in self._met:
        return
      self._met.add(answer.worker)
    difference = set(environment.about_worker()['instructions']) ^ set(answer.instructions)
    if difference:
      _LOG.warning(
        'the worker %s has another type of processor (%s): its bits can differ from those of this machine',
        answer.worker,
        ', '.join(sorted(difference)),
      )

  def _tell_loss(self, lost: BaseException) -> None:
    """Says that work was lost, once for all tasks that were lost at about the same time."""
    with self._lock:
      recently = self._told_since is not None and time.monotonic() - self._told_since < _QUIET_SECS
      self._told_since = time.monotonic()
    if not recently:
      _LOG.warning(
        'a worker of %s, or the way there, was lost (%s); its clients are sent again',
        self._workers.address,
        _words(lost),
      )


@contextlib.contextmanager
def connected(machine: machine_lib.Machine, slots: side_by_side.Slots) -> Iterator[Cluster]:
  """Yields the cluster that a machine names.

  Args:
    machine: Where its scheduler is, and how patient to be.
    slots: The cores of this machine.

  Raises:
    InputError: if certificates are missing, or are none.
    EnvironmentFault: if the scheduler cannot be reached, does not take the certificate, or has no worker in time.
  """
  with client(machine) as found:
    yield Cluster(found, machine, slots)


@contextlib.contextmanager
def client(machine: machine_lib.Machine) -> Iterator[distributed.Client]:
  """Yields the connection to the scheduler that a machine names; arguments and errors as for `connected`, without workers."""
  place = machine.cluster
  assert place is not None
  security = _security(place)
  with contextlib.ExitStack() as opened:
    # What Dask logs of losses is told in a line of ours.
    opened.enter_context(distributed.utils.silence_logging_cmgr(logging.CRITICAL + 1))
    opened.enter_context(warnings.catch_warnings())
    warnings.simplefilter('ignore', distributed.versions.VersionMismatchWarning)
    try:
      found = distributed.Client(
        place.address,
        security=security,
        timeout=machine.worker_start_timeout_secs,
        set_as_default=False,
        name='tff_cluster',
      )
    except (OSError, ValueError, RuntimeError) as error:
      raise EnvironmentFault(
        f'cannot connect to the scheduler {place.address}: {_words(_root(error))}'
      ) from error
    opened.callback(_leave, found)
    yield found


def as_completed(
  client: distributed.Client, futures: Iterable[distributed.Future], machine: machine_lib.Machine
) -> Iterator[tuple[distributed.Future, Any]]:
  """Yields futures with their results, in the order in which they are done; tasks whose worker is lost start again.

  Args:
    client: As `client` yields it.
    futures: Of tasks that need nothing but what was sent with them.
    machine: How patient to be.

  Raises:
    EnvironmentFault: if the scheduler is lost, no worker is there in time, or the same task was lost with several workers.
    What a task raises.
  """
  workers, left = _Workers(client, machine), list(futures)
  while left:
    done = [future for future in left if future.status != 'pending']
    for future in done:
      left.remove(future)
      try:
        yield future, future.result()
      except _LOST as lost:
        workers.wait()
        raise EnvironmentFault(
          f'a run was lost by workers of {workers.address}: {_words(lost)}; {machine_lib.SAVED}'
        ) from lost
      except Exception as error:
        if _is_unreadable(error):
          raise _unreadable(error) from error
        raise
    if not done:
      workers.wait()
      time.sleep(_TICK_SECS / 4)


def _leave(client: distributed.Client) -> None:
  with contextlib.suppress(*_LOST):
    client.close(timeout=2 * _TICK_SECS)


def _security(place: machine_lib.Scheduler) -> distributed.Security:
  """Returns the certificates, as they were given or as Dask's own configuration has them."""
  given = dict(zip(('tls_ca_file', 'tls_client_cert', 'tls_client_key'), place.tls or (), strict=False))
  encrypted = place.address.startswith('tls://')
  named = 'tls_ca' if place.tls else 'scheduler'
  try:
    security = distributed.Security(require_encryption=encrypted, **given)
    ready = security.get_connection_args('client')['ssl_context'] is not None
  except (OSError, ValueError) as error:  # ssl.SSLError is an OSError.
    raise InputError(f'the certificates for {place.address} cannot be used: {_words(error)}') from None
  if encrypted and not ready:
    raise InputError(
      f'{argument(named, place.address)}: TLS takes certificates; give {argument("tls_ca")}, {argument("tls_cert")} and '
      f"{argument('tls_key')}, or Dask's own configuration (distributed.comm.tls)"
    )
  return security


def _dashboard(client: distributed.Client) -> str | None:
  """Returns the address of the scheduler's dashboard; None where it has none.

  Raises:
    EnvironmentFault: if the scheduler does not have this package.
  """
  try:
    return client.dashboard_link if client.run_on_scheduler(dask_worker.has_dashboard) else None
  except Exception as error:
    raise _unreadable(error) if _is_unreadable(error) else error from None


def _is_unreadable(error: Exception) -> bool:
  """Tells whether a scheduler or worker failed because it lacks what the run has."""
  return isinstance(error, ImportError) or 'deserialization' in str(error)


def _unreadable(error: Exception) -> EnvironmentFault:
  return EnvironmentFault(
    f'the cluster cannot read what it is sent ({_words(error)}); install scheduler and workers from the same '
    f'requirements.lock, with this package; {machine_lib.SAVED}'
  )


def _call(computation: Any, shared: Sequence[Any], adds_up: bool) -> _Call:
  import numpy as np
  import tensorflow as tf

  values = [tf.nest.map_structure(np.asarray, value) for value in shared]
  packages = environment.about_worker()['packages']
  return _Call(dask_worker.Shared(_serialized(computation), values, adds_up, packages))


@functools.lru_cache
def _serialized(computation: Any) -> bytes:
  import tensorflow_federated as tff

  return tff.framework.serialize_computation(computation).SerializeToString()


def _array_bytes(structure: Any) -> int:
  import tensorflow as tf

  return sum(array.nbytes for array in tf.nest.flatten(structure))


def _beside_bytes(job: jobs_lib.Job) -> int:
  return sum(_array_bytes(value) for value in job.beside.values())


def _root(error: BaseException) -> BaseException:
  while error.__cause__ is not None:
    error = error.__cause__
  return error


def _words(error: BaseException) -> str:
  lines = [line.strip() for line in str(error).splitlines() if line.strip()]
  return f'{type(error).__name__}: {lines[0][:300]}' if lines else type(error).__name__
