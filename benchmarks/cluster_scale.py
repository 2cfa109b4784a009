"""What Dask's scheduler and our use of it cost: rounds on many workers whose clients only sleep.

The scheduler is a process of its own on this machine, and so are the run and a few processes that hold the workers, a thread
each (sleeping_cluster.py). A chunk of clients sleeps as long as its client-rounds would take, one after the other, and gives
arrays of the size that is asked for. So what is measured is what comes on top of the clients' own work. There is no network and no
encryption in it, and this machine's cores, which on a cluster would be as many machines', can be its limit: so the processor time
is told apart. The scheduler's and the run's are what a cluster pays for a task, whatever it is made of.

The last line of the output is one JSON object:

  rounds           for each number of workers, clients and seconds: seconds of a round; `efficiency`, the clients' own seconds, shared
                   by the workers, over the round's; `possible`, what of it tasks allow, since the last workers wait for the last
                   tasks; `busiest`, the most tasks of a worker, over its share
  first_round      for each number of workers and clients: seconds of a round that sends all rows, of clients that do nothing
  idle_round       the same once rows are there, and for each task: `ms`, milliseconds; `cpu_ms`, those of processor time, of the
                   scheduler, the run and all workers; `bytes` that come to the run and go from it, without the sums
  tasks_per_second that scheduler and run could take, by their processor time in the last idle round; null where that is less
                   than a tick of its clock
  load             what ran on each core in the minute before
"""

import argparse
import atexit
import collections
import contextlib
import functools
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import common, sleeping_cluster
from tff_cluster.base.errors import InputError
from tff_cluster.engine import stock_context


@common.program
def main() -> object:
  parser = common.parser(__doc__)
  parser.add_argument(
    '--workers', type=int, nargs='+', default=[20, 50, 100, 200], help='default: %(default)s'
  )
  parser.add_argument('--clients', type=int, nargs='+', default=[1000, 10000], help='default: %(default)s')
  parser.add_argument(
    '--seconds', type=float, nargs='+', default=[0.4, 2.0], help='of a client-round; default: %(default)s'
  )
  parser.add_argument(
    '--parameters', type=int, default=1000, help='of what a chunk gives; default: %(default)s'
  )
  parser.add_argument('--rows', type=int, default=10, help='of a client, of 784 bytes; default: %(default)s')
  parser.add_argument('--processes', type=int, default=2, help='that hold the workers; default: %(default)s')
  flags = parser.parse_args()
  if (
    min(*flags.workers, *flags.clients, flags.parameters, flags.rows, flags.processes) < 1
    or min(flags.seconds) <= 0
  ):
    raise InputError('every number is at least 1, and --seconds above 0')
  return measure(flags)


def measure(flags: argparse.Namespace) -> dict[str, Any]:
  """Returns what the JSON line says; see the module's docstring."""
  found: dict[str, Any] = {'rounds': [], 'first_round': [], 'idle_round': [], 'load': common.load()}
  for workers in flags.workers:
    with _connected(workers, flags.processes) as (cluster, tasks):
      for clients in flags.clients:
        run = _Rounds(cluster, tasks, clients, flags.parameters, flags.rows)
        size = {'workers': workers, 'clients': clients}
        found['first_round'].append(size | {'seconds': round(run.round(0.0), 2)})
        found['idle_round'].append(size | run.costs())
        for seconds in flags.seconds:
          took = run.round(seconds)
          found['rounds'].append(size | {'client_seconds': seconds} | run.told(seconds, took, workers))
          print(f'{workers} workers, {clients} clients of {seconds:g} s: {took:.2f} s', flush=True)
  return found | {'tasks_per_second': tasks_per_second(found['idle_round'][-1]['cpu_ms'])}


def tasks_per_second(cpu_ms: Mapping[str, float]) -> dict[str, int | None]:
  """Returns the tasks that scheduler and run could take in a second, by the milliseconds of processor time of one task."""
  return {name: round(1000 / cpu_ms[name]) if cpu_ms[name] else None for name in ('scheduler', 'run')}


class _Rounds:
  """Rounds of so many clients, who all take part."""

  def __init__(
    self, cluster: sleeping_cluster.SleepingCluster, tasks: Any, clients: int, parameters: int, rows: int
  ):
    from tff_cluster.engine import jobs
    from tff_cluster.federated import chunked_sum

    self._cluster, self._tasks, self._clients = cluster, tasks, clients
    self._sum = np.zeros(parameters, np.float32)
    of_client: dict[str, np.ndarray] = {'x': np.zeros((rows, 784), np.uint8), 'y': np.zeros(rows, np.int32)}
    beside = {'order': np.zeros((1, rows), np.int32), 'last': np.asarray(False)}
    given = [
      jobs.Job(of_client, beside, functools.partial('{}-{}'.format, clients, n)) for n in range(clients)
    ]
    self._chunks = [[given[k] for k in chunk] for chunk in chunked_sum.chunks(clients)]
    self._busiest = 0

  def round(self, seconds: float) -> float:
    """Returns the seconds of a round whose clients sleep that long."""
    from tff_cluster.engine import cluster_tasks, dask_worker

    call = cluster_tasks.Call(dask_worker.Shared(b'', [np.float64(seconds), self._sum], True, {}))
    began = time.perf_counter()
    found = collections.Counter(answer.worker for answer in self._tasks.answers(call, self._chunks))
    took = time.perf_counter() - began
    self._busiest = max(found.values())
    return took

  def told(self, seconds: float, took: float, workers: int) -> dict[str, Any]:
    """Returns what is told of the last round."""
    tasks = len(self._chunks)
    return {
      'seconds': round(took, 2),
      'efficiency': round(self._clients * seconds / workers / took, 3),
      'possible': round(tasks / workers / -(-tasks // workers), 3),
      'busiest': round(self._busiest / (tasks / workers), 2),
    }

  def costs(self) -> dict[str, Any]:
    """Returns what a round of clients that do nothing costs, for each task."""
    tasks, before = len(self._chunks), self._cluster.cpu_seconds()
    with _bytes_counted() as count:
      took = self.round(0.0)
    cpu = {name: value - before[name] for name, value in self._cluster.cpu_seconds().items()}
    count['in'] -= tasks * self._sum.nbytes
    return {
      'seconds': round(took, 2),
      'ms': round(1000 * took / tasks, 2),
      'cpu_ms': {name: round(1000 * value / tasks, 2) for name, value in cpu.items()},
      'bytes': {name: round(value / tasks) for name, value in count.items()},
    }


@contextlib.contextmanager
def _connected(workers: int, processes: int) -> Iterator[tuple[sleeping_cluster.SleepingCluster, Any]]:
  """Yields a cluster, once all of its workers are there, and what has it do tasks."""
  # TensorFlow, which is imported for nothing but sizes, and Dask say much.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  warnings.simplefilter('ignore')
  from tff_cluster.engine import cluster_connection, cluster_tasks, machine

  with sleeping_cluster.started(workers, processes) as cluster:
    there = machine.Machine(scheduler=cluster.address)
    with cluster_connection.client(there) as client:
      client.wait_for_workers(workers)
      tasks = cluster_tasks.Tasks(client, there)
      tasks.workers.wait()
      yield cluster, tasks


@contextlib.contextmanager
def _bytes_counted() -> Iterator[collections.Counter[str]]:
  """Yields the bytes that come ('in') and go ('out') on Dask's connections of this process, as they do."""
  from distributed.comm import tcp

  count: collections.Counter[str] = collections.Counter()
  write, read = tcp.TCP.write, tcp.read_bytes_rw

  async def counted_write(*given: Any, **options: Any) -> int:
    sent = await write(*given, **options)
    count['out'] += sent
    return sent

  async def counted_read(stream: Any, n: int) -> Any:
    count['in'] += n
    return await read(stream, n)

  with (
    mock.patch.object(tcp.TCP, 'write', counted_write),
    mock.patch.object(tcp, 'read_bytes_rw', counted_read),
  ):
    yield count


if __name__ == '__main__':
  atexit.register(stock_context.drop)
  sys.exit(main())
