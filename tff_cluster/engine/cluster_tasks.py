"""The tasks of a call on a Dask cluster: sent a batch at a time, sent again where they are lost, answered in their order.

What is sent is lost with the worker that keeps it, and Dask then gives up the tasks that need it; they are sent again, with
all that they need, as often as machine.worker_retries says.
"""

import collections
import dataclasses
import itertools
import logging
import threading
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence

import distributed

from tff_cluster.base import cancelling
from tff_cluster.base.errors import EnvironmentFault, Fault
from tff_cluster.engine import cluster_connection as connection
from tff_cluster.engine import cluster_workers, dask_worker, kept_rows
from tff_cluster.engine import jobs as jobs_lib
from tff_cluster.engine import machine as machine_lib

_LOG = logging.getLogger(__name__)
# Tasks of a call that are sent ahead, a thread of the cluster: more hide a slow worker, and wait for us with their results.
_AHEAD = 8
# Bytes of what is sent, and of results that are fetched, in one go. A message to the scheduler has a part of them, since Dask warns of
# tasks above 10 MB: rows that are kept travel apart.
_BATCH_BYTES = 64_000_000
_IN_MESSAGE = 8
# What is lost with a worker is found call by call, and told once.
_QUIET_SECS = 60.0


@dataclasses.dataclass(eq=False)
class Call:
  """A computation that is asked for, and what its tasks share.

  Attributes:
    what: What they share.
    sent: Where it is, once it was sent.
    answer_bytes: Of a task; 0 until there is one.
  """

  what: dask_worker.Shared
  sent: distributed.Future | None = None
  answer_bytes: int = 0


@dataclasses.dataclass(eq=False)
class _Task:
  """Some of the clients of a call; `failures` are those in a row. See cluster_workers.Placed."""

  jobs: Sequence[jobs_lib.Job]
  worker: str = ''
  future: distributed.Future | None = None
  failures: int = 0

  @property
  def status(self) -> str:
    assert self.future is not None
    return str(self.future.status)


class Tasks:
  """Has the workers of a cluster do the tasks of calls.

  Attributes:
    workers: Who is there.
    rows: What they keep.
  """

  def __init__(self, client: distributed.Client, machine: machine_lib.Machine):
    self._client, self._machine = client, machine
    self.workers = cluster_workers.Workers(client, machine)
    self.rows = kept_rows.KeptRows(client)
    self._lock = threading.Lock()
    self._told_since: float | None = None

  def answers(self, call: Call, groups: Sequence[Sequence[jobs_lib.Job]]) -> Iterator[dask_worker.Answer]:
    """Yields what a task for each group of clients gives, in order; so many are sent ahead that no worker waits for us."""
    left, sent = iter(groups), collections.deque[_Task]()
    while True:
      room = _AHEAD * self.workers.total - len(sent)
      if 2 * room >= len(sent):
        new = [_Task(jobs) for jobs in itertools.islice(left, room)]
        sent += new
        self._send(call, new)
      if not sent:
        return
      yield from self._next(call, sent)

  def _next(self, call: Call, sent: collections.deque[_Task]) -> list[dask_worker.Answer]:
    """Waits for the first of the tasks, which leaves the queue with those after it that are done; what was lost is sent again."""
    most = max(_BATCH_BYTES // (call.answer_bytes or _BATCH_BYTES), 1)
    while True:
      self._wait(sent[0])
      done = itertools.takewhile(lambda task: task.status == 'finished', itertools.islice(sent, most))
      ready = list(done) or [sent[0]]
      try:
        found = self._fetched(ready)
      except connection.LOST as lost:
        if len(ready) == 1:
          self._tell_loss(lost)
          others = [task for task in itertools.islice(sent, 1, None) if task.status == 'cancelled']
          self._send_again(call, [*ready, *others], lost)
        # Which of several was lost shows when they are fetched one by one.
        most = 1
      else:
        for _ in ready:
          sent.popleft()
        call.answer_bytes = max(answer.num_bytes for answer in found)
        return found

  def _wait(self, task: _Task) -> None:
    """Waits until a task is done, but not longer without any worker than machine.worker_start_timeout_secs."""
    assert task.future is not None
    while not task.future.done():
      try:
        # Not distributed.wait, which looks for a client of the whole process.
        task.future.exception(timeout=connection.TICK_SECS)
      except distributed.TimeoutError:
        cancelling.check()
        self.workers.wait()

  def _fetched(self, tasks: Sequence[_Task]) -> list[dask_worker.Answer]:
    try:
      return self._client.gather([task.future for task in tasks])
    except connection.LOST:
      raise
    except Fault as fault:
      ending = '' if machine_lib.SAVED in str(fault) else f'; {machine_lib.SAVED}'
      raise EnvironmentFault(f'{fault}{ending}') from None
    except Exception as error:
      if (unreadable := connection.unreadable(error)) is not None:
        raise unreadable from error
      raise

  def _send_again(self, call: Call, tasks: Sequence[_Task], lost: BaseException) -> None:
    for task in tasks:
      if task.failures == self._machine.worker_retries:
        times = f'{task.failures + 1} times in a row' if task.failures else 'in the middle of a round'
        raise EnvironmentFault(
          f'the same clients were lost {times} by workers of {self.workers.address}: {connection.words(lost)}; '
          f'{machine_lib.SAVED}'
        ) from lost
      task.failures += 1
    # What seems to be there is trusted once.
    self._send(call, [task for task in tasks if task.failures == 1])
    self._send(call, [task for task in tasks if task.failures > 1], again=True)

  def _send(self, call: Call, tasks: Sequence[_Task], again: bool = False) -> None:
    """Sends tasks with all that they need and that is not there, as soon as a worker is there.

    Args:
      again: Whether what seems to be there is not to be trusted.

    Raises:
      EnvironmentFault: if no worker comes in time.
    """
    for batch in jobs_lib.portions([self._bytes(task, again) for task in tasks], _BATCH_BYTES):
      left, unreached = [tasks[k] for k in batch], set[str]()
      deadline = time.monotonic() + 2 * self._machine.worker_start_timeout_secs
      while left:
        try:
          errors = self._sent(call, left, unreached, again)
        # KeyError: rows did not get to the worker from which another one was to have them.
        except (*connection.LOST, KeyError) as error:
          self._wait_to_send(error, deadline)
          continue
        left = [task for task in left if task.worker in errors]
        unreached |= errors.keys()
        if left:
          self._wait_to_send(errors[left[0].worker], deadline)

  def _sent(
    self, call: Call, tasks: Sequence[_Task], unreached: Collection[str], again: bool
  ) -> Mapping[str, Exception]:
    """Sends tasks, to others than those workers if there are any; returns what workers could not be reached, with errors."""
    self.workers.place(tasks, [self.rows.keepers(task.jobs) for task in tasks], unreached)
    shared = self._shared(call, again)
    by_worker: dict[str, list[_Task]] = {}
    for task in tasks:
      by_worker.setdefault(task.worker, []).append(task)
    lost = self.rows.send(
      {worker: [job for task in some for job in task.jobs] for worker, some in by_worker.items()}, again
    )
    for worker in by_worker.keys() - lost.keys():
      self._start(call, shared, by_worker[worker], worker)
    return lost

  def _start(self, call: Call, shared: distributed.Future, tasks: Sequence[_Task], worker: str) -> None:
    kind = 'chunk' if call.what.adds_up else 'clients'
    found = self._client.map(
      dask_worker.work,
      [shared] * len(tasks),
      [self.rows.of(task.jobs) for task in tasks],
      [[job.beside for job in task.jobs] for task in tasks],
      key=[f'{kind}-{uuid.uuid4()}' for _ in tasks],
      workers=[worker],
      allow_other_workers=True,
      pure=False,
    )
    for task, future in zip(tasks, found, strict=True):
      task.future = future

  def _shared(self, call: Call, again: bool) -> distributed.Future:
    if call.sent is not None and call.sent.status == 'finished' and not again:
      return call.sent
    # Not broadcast: workers fetch it from each other with their first task, while Dask's broadcast waits for ever where a worker
    # is lost meanwhile.
    sent: distributed.Future = self._client.scatter([call.what], hash=False, timeout=connection.TICK_SECS)[0]
    call.sent = sent
    return sent

  def _wait_to_send(self, lost: BaseException, deadline: float) -> None:
    """Waits a moment; raises EnvironmentFault after the deadline."""
    if time.monotonic() > deadline:
      raise EnvironmentFault(
        f'nothing can be sent to the workers of {self.workers.address}: {connection.words(lost)}; {machine_lib.SAVED}'
      ) from lost
    self.workers.forget()
    time.sleep(connection.TICK_SECS / 10)

  def _bytes(self, task: _Task, again: bool) -> int:
    """Returns how much of a batch a task is."""
    kept = sum(job.num_bytes for job in self.rows.missing(task.jobs, again).values())
    return kept + _IN_MESSAGE * sum(job.message_bytes for job in task.jobs)

  def _tell_loss(self, lost: BaseException) -> None:
    """Says that work was lost, once for all tasks that were lost at about the same time."""
    with self._lock:
      recently = self._told_since is not None and time.monotonic() - self._told_since < _QUIET_SECS
      self._told_since = time.monotonic()
    if not recently:
      _LOG.warning(
        'a worker of %s, or the way there, was lost (%s); its clients are sent again',
        self.workers.address,
        connection.words(lost),
      )
