"""Who is there of a Dask cluster, and which of its workers a task is for.

Dask's scheduler sends a task to a worker that has something of what it needs already. What all tasks of a call share begins on one
worker, so without rows elsewhere all tasks would go there, and other workers would get theirs by work stealing only. So the worker of
each task is chosen here; Dask takes the task elsewhere where that worker is lost, paused, or busy while others are idle.
"""

import collections
import contextlib
import heapq
import math
import threading
import time
import weakref
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import distributed

from tff_cluster.base import cancelling
from tff_cluster.base.errors import EnvironmentFault, argument
from tff_cluster.engine import cluster_connection as connection
from tff_cluster.engine import machine as machine_lib


class Placed(Protocol):
  """What has a worker.

  Attributes:
    worker: The address of the worker that it is for.
    future: Of Dask; None where it is not sent yet.
  """

  worker: str
  future: distributed.Future | None


class Workers:
  """Who is there, and how much each of them has to do.

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
    # Tasks that nobody waits for any more leave by themselves.
    self._placed: weakref.WeakSet[Placed] = weakref.WeakSet()
    self._given: collections.Counter[str] = collections.Counter()

  @property
  def total(self) -> int:
    """Threads of all workers, at least one."""
    return max(sum(self.threads.values()), 1)

  def forget(self) -> None:
    """What was seen does not hold any more."""
    self._looked = -math.inf

  def wait(self) -> Mapping[str, int]:
    """Waits until the scheduler and a worker are there, as they were a second ago at most; returns their threads.

    Raises:
      EnvironmentFault: if they do not come in time.
      Cancelled: see cancelling.check.
    """
    patience = self._machine.worker_start_timeout_secs
    deadline = time.monotonic() + patience
    while not (threads := self._look()):
      cancelling.check()
      if self._client.status == 'closed' or time.monotonic() > deadline:
        what = 'has no worker' if self._client.status == 'running' else 'was lost and did not come back'
        raise EnvironmentFault(
          f'the scheduler {self.address} {what} within {patience:g} s; allow more with {argument("worker_start_timeout_secs")}; '
          f'{machine_lib.SAVED}'
        )
      time.sleep(connection.TICK_SECS / 10)
    return threads

  def place(
    self, tasks: Sequence[Placed], keepers: Sequence[Collection[str]], without: Collection[str] = ()
  ) -> None:
    """Chooses a worker for each of some tasks: one that keeps its rows, or else the one with the least to do.

    Nobody gets more than its share of all that is to be done, by its threads. So a worker that came late gets tasks of clients whose
    rows are elsewhere.

    Args:
      tasks: Tasks that are to be sent; `worker` is set, and `future` is None.
      keepers: For each task, the workers that keep rows of its clients, the best first.
      without: Workers that could not be reached, which are chosen only where there are no others.

    Raises:
      EnvironmentFault: if no worker is there in time.
    """
    there = self.wait()
    threads = {name: n for name, n in there.items() if name not in without} or there
    with self._lock:
      left = self._left(threads, tasks)
      share = (left.total() + len(tasks)) / sum(threads.values())
      homeless = []
      for task, names in zip(tasks, keepers, strict=True):
        free = (name for name in names if name in threads and left[name] < math.ceil(share * threads[name]))
        if (name := next(free, None)) is None:
          homeless.append(task)
        else:
          self._give(task, name, left)
      idlest = [((left[name] / n, self._given[name] / n), name) for name, n in threads.items()]
      heapq.heapify(idlest)
      for task in homeless:
        _, name = idlest[0]
        self._give(task, name, left)
        heapq.heapreplace(idlest, ((left[name] / threads[name], self._given[name] / threads[name]), name))

  def _left(self, threads: Mapping[str, int], tasks: Sequence[Placed]) -> collections.Counter[str]:
    """Returns how many tasks each worker has to do, without those that are to be placed."""
    self._placed.difference_update(tasks)
    done = [task for task in self._placed if task.future is not None and task.future.status != 'pending']
    self._placed.difference_update(done)
    return collections.Counter(task.worker for task in self._placed if task.worker in threads)

  def _give(self, task: Placed, name: str, left: collections.Counter[str]) -> None:
    task.worker, task.future = name, None
    self._placed.add(task)
    left[name] += 1
    self._given[name] += 1

  def _look(self) -> Mapping[str, int]:
    with self._lock:
      if self._client.status != 'running':
        self.threads = {}
      elif time.monotonic() - self._looked > connection.TICK_SECS or not self.threads:
        found: Mapping[str, int] = {}
        with contextlib.suppress(*connection.LOST):
          found = self._client.nthreads()
        self.threads, self._looked = found, time.monotonic()
      return self.threads
