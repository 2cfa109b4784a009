"""Clients at work on the machines of a Dask cluster, through its scheduler.

A task is a chunk of a round's clients, whose sum is what travels home, or a few clients whose results do. What all tasks of a
call share (the computation, the model) is sent once a call, and a client's rows once a run: they stay where they were sent, and
tasks go to them, or both to a worker that is free. Which worker a client comes to changes no bit (of the
same versions, on the same type of processor), because what it computes is a function of what it is sent, and chunks are added up
at home, in their order.
"""

import contextlib
import functools
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import distributed

from tff_cluster.base import environment
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.engine import cluster_connection as connection
from tff_cluster.engine import cluster_tasks, cluster_workers, dask_worker, side_by_side
from tff_cluster.engine import jobs as jobs_lib
from tff_cluster.engine import machine as machine_lib

_LOG = logging.getLogger(__name__)
# Calls that are in flight together; each is a thread here.
_MOST_AT_ONCE = 64
# Clients of a task that gives a result for each, and bytes that it may send or give; fewer where they can be spread wider.
_MOST_CLIENTS = 16
_TASK_BYTES = 8_000_000


class Cluster:
  """The workers of a cluster. Sums, and whatever else is no client's, are computed in the TFF context of the calling thread.

  Attributes:
    apart, at_once: See jobs.Workers.
    dashboard: Address of the scheduler's dashboard; None where it has none.
    received: Bytes of the results that came here.
    met: Addresses of the workers that results came from.
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
    self._tasks, self._slots = cluster_tasks.Tasks(client, machine), slots
    self._lock = threading.Lock()
    self.met: set[str] = set()
    self.received = 0
    self._tasks.workers.wait()
    self.at_once = min(max(self._tasks.workers.total, slots.count), _MOST_AT_ONCE)
    self.dashboard = connection.dashboard(client)

  def each(
    self, computation: Any, shared: Sequence[Any], jobs: Sequence[jobs_lib.Job], result_bytes: int = 0
  ) -> Iterator[Any]:
    """See jobs.Workers.each."""
    return self._results(_call(computation, shared, adds_up=False), self._groups(jobs, result_bytes))

  def totals(
    self, computation: Any, shared: Sequence[Any], chunks: Sequence[Sequence[jobs_lib.Job]]
  ) -> Iterator[Any]:
    """See jobs.Workers.totals; a chunk is a task."""
    return self._results(_call(computation, shared, adds_up=True), chunks)

  def busy(self, clients: int) -> contextlib.AbstractContextManager[None]:
    """See jobs.Workers.busy."""
    return self._slots.taken(clients)

  def _groups(self, jobs: Sequence[jobs_lib.Job], result_bytes: int) -> list[list[jobs_lib.Job]]:
    """Cuts clients that each have a result into tasks: few enough to be worth a message, many enough to be spread."""
    size = min(max(-(-len(jobs) // (3 * self._tasks.workers.total)), 1), _MOST_CLIENTS)
    found = []
    for first in range(0, len(jobs), size):
      some = jobs[first : first + size]
      sizes = [result_bytes + job.message_bytes for job in some]
      found += [[some[k] for k in portion] for portion in jobs_lib.portions(sizes, _TASK_BYTES)]
    return found

  def _results(self, call: cluster_tasks.Call, groups: Sequence[Sequence[jobs_lib.Job]]) -> Iterator[Any]:
    """Yields the results of all tasks, in order."""
    for answer in self._tasks.answers(call, groups):
      self._take(answer)
      yield from answer.results

  def _take(self, answer: dask_worker.Answer) -> None:
    """Counts what came, and tells of workers that may compute other bits."""
    with self._lock:
      self.received += answer.num_bytes
      if answer.worker in self.met:
        return
      self.met.add(answer.worker)
    difference = set(environment.about_worker()['instructions']) ^ set(answer.instructions)
    if difference:
      _LOG.warning(
        'the worker %s has another type of processor (%s): its bits can differ from those of this machine',
        answer.worker,
        ', '.join(sorted(difference)),
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
  with connection.client(machine) as found:
    yield Cluster(found, machine, slots)


def as_completed(
  client: distributed.Client, futures: Iterable[distributed.Future], machine: machine_lib.Machine
) -> Iterator[tuple[distributed.Future, Any]]:
  """Yields futures with their results, in the order in which they are done; tasks whose worker is lost start again.

  Args:
    client: As cluster_connection.client yields it.
    futures: Of tasks that need nothing but what was sent with them.
    machine: How patient to be.

  Raises:
    EnvironmentFault: if the scheduler is lost, no worker is there in time, or the same task was lost with several workers.
    What a task raises.
  """
  workers, left = cluster_workers.Workers(client, machine), list(futures)
  while left:
    done = [future for future in left if future.status != 'pending']
    for future in done:
      left.remove(future)
      try:
        yield future, future.result()
      except connection.LOST as lost:
        workers.wait()
        raise EnvironmentFault(
          f'a run was lost by workers of {workers.address}: {connection.words(lost)}; {machine_lib.SAVED}'
        ) from lost
      except Exception as error:
        if (fault := connection.unreadable(error)) is not None:
          raise fault from error
        raise
    if not done:
      workers.wait()
      time.sleep(connection.TICK_SECS / 4)


def _call(computation: Any, shared: Sequence[Any], adds_up: bool) -> cluster_tasks.Call:
  import numpy as np
  import tensorflow as tf

  values = [tf.nest.map_structure(np.asarray, value) for value in shared]
  packages = environment.about_worker()['packages']
  return cluster_tasks.Call(dask_worker.Shared(_serialized(computation), values, adds_up, packages))


@functools.lru_cache
def _serialized(computation: Any) -> bytes:
  import tensorflow_federated as tff

  return tff.framework.serialize_computation(computation).SerializeToString()
