"""A Dask cluster on loopback whose clients only sleep: the scheduler is a process, workers are threads of a few others.

  python -m benchmarks.sleeping_cluster PARENT scheduler
  python -m benchmarks.sleeping_cluster PARENT workers --address=tcp://127.0.0.1:PORT --count=100

PARENT is the process that started it, with which it ends.
A task sleeps `shared.values[0]` seconds for each of its clients, one after the other, and gives what `shared.values[1]` is.
"""

import asyncio
import contextlib
import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psutil

from benchmarks import common
from tff_cluster.engine import worker_launcher

# What Dask does in every worker for its dashboard, which would be done on as many machines, and not on this one.
_QUIET = {
  'distributed.worker.profile.enabled': False,
  'distributed.admin.system-monitor.interval': '1h',
}


@dataclasses.dataclass(frozen=True)
class SleepingCluster:
  """A cluster that runs.

  Attributes:
    address: Of its scheduler.
    processes: {'scheduler', 'workers'}: their processes.
  """

  address: str
  processes: Mapping[str, Sequence[subprocess.Popen[str]]]

  def cpu_seconds(self) -> dict[str, float]:
    """Returns the processor time that scheduler, workers and this process ('run') have taken so far."""
    pids = {name: [each.pid for each in some] for name, some in self.processes.items()}
    pids['run'] = [psutil.Process().pid]
    return {name: sum(_cpu_seconds(pid) for pid in some) for name, some in pids.items()}


@contextlib.contextmanager
def started(workers: int, processes: int) -> Iterator[SleepingCluster]:
  """Yields a cluster of so many workers of one thread each, that many processes hold; it ends with the block."""
  with contextlib.ExitStack() as opened:
    scheduler = _program(opened, 'scheduler')
    assert scheduler.stdout is not None
    address = scheduler.stdout.readline().strip()
    shares = [len(range(k, workers, processes)) for k in range(min(processes, workers))]
    others = [_program(opened, 'workers', f'--address={address}', f'--count={count}') for count in shares]
    yield SleepingCluster(address, {'scheduler': [scheduler], 'workers': others})


def work(shared: Any, rows: Sequence[Any], beside: Sequence[Any]) -> Any:
  """Takes the place of dask_worker.work."""
  import distributed

  from tff_cluster.engine import dask_worker

  seconds, total = shared.values
  time.sleep(float(seconds) * len(rows))
  return dask_worker.Answer([total], distributed.get_worker().address, ())


def _program(opened: contextlib.ExitStack, *arguments: str) -> subprocess.Popen[str]:
  process = subprocess.Popen(
    [sys.executable, '-m', 'benchmarks.sleeping_cluster', str(os.getpid()), *arguments],
    cwd=common.ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
  )  # fmt: skip
  opened.callback(process.wait)
  opened.callback(process.kill)
  return process


def _cpu_seconds(pid: int) -> float:
  times = psutil.Process(pid).cpu_times()
  return times.user + times.system


async def _schedule() -> None:
  import distributed

  async with distributed.Scheduler(host='127.0.0.1', port=0, dashboard=False) as scheduler:
    print(scheduler.address, flush=True)
    await scheduler.finished()


async def _serve(address: str, count: int) -> None:
  import dask
  import distributed

  from tff_cluster.engine import dask_worker

  dask_worker.work = work  # type: ignore[assignment]
  with dask.config.set(_QUIET):
    workers = [distributed.Worker(address, nthreads=1, memory_limit=0) for _ in range(count)]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))


def main() -> int:
  parser = common.parser(__doc__)
  parser.add_argument('parent', type=int, help='process that started this one')
  parser.add_argument('role', choices=('scheduler', 'workers'))
  parser.add_argument('--address', help='of the scheduler')
  parser.add_argument('--count', type=int, default=1, help='of workers; default: %(default)s')
  flags = parser.parse_args()
  worker_launcher.end_with(flags.parent)
  asyncio.run(_schedule() if flags.role == 'scheduler' else _serve(flags.address, flags.count))
  return 0


if __name__ == '__main__':
  sys.exit(main())
