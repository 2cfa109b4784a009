"""What Dask's scheduler and our use of it cost: rounds on many workers whose clients only sleep.

One process holds scheduler and workers (a thread each). A chunk of clients sleeps as long as its client-rounds would take, one
after the other, and gives arrays of the size that is asked for. So what is measured is what comes on top of the clients' own
work, as far as one process can show it; network and serialization are not in it, and the threads share this machine's cores.

The last line of the output is one JSON object:

  rounds              for each number of clients and workers: seconds of a round, and efficiency: the clients' own seconds,
                      shared by the workers, over the round's
  tasks_per_second    that the scheduler takes where tasks do nothing
  milliseconds_per_task  its inverse
  bytes_home          of a round of 100 clients with 1,663,370 parameters: one sum a chunk, and every update
  load                what ran on each core in the minute before
"""

import argparse
import json
import sys
import time
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import common
from tff_cluster.base.errors import EnvironmentFault, InputError

_PARAMETERS = 1_663_370


def main() -> int:
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
  )
  parser.add_argument(
    '--workers', type=int, nargs='+', default=[20, 50, 100, 200], help='default: %(default)s'
  )
  parser.add_argument('--clients', type=int, nargs='+', default=[1000, 10000], help='default: %(default)s')
  parser.add_argument('--seconds', type=float, default=0.4, help='of a client-round; default: %(default)s')
  parser.add_argument(
    '--parameters', type=int, default=1000, help='of what a chunk gives; default: %(default)s'
  )
  flags = parser.parse_args()
  if min(flags.workers + flags.clients) < 1 or flags.seconds < 0:
    print('--workers and --clients are at least 1, --seconds at least 0', file=sys.stderr)
    return InputError.exit_code
  try:
    print(json.dumps(measure(flags.workers, flags.clients, flags.seconds, flags.parameters)))
  except (InputError, EnvironmentFault) as error:
    print(error, file=sys.stderr)
    return error.exit_code
  return 0


def measure(workers: list[int], clients: list[int], seconds: float, parameters: int) -> dict[str, Any]:
  """Returns what the JSON line says; see the module's docstring."""
  load, found = common.load(), []
  for count in workers:
    for number in clients:
      took = _round(count, number, seconds, parameters)
      efficiency = number * seconds / count / took
      found.append(
        {'workers': count, 'clients': number, 'seconds': round(took, 2), 'efficiency': round(efficiency, 3)}
      )
      print(f'{count} workers, {number} clients: {took:.2f} s, efficiency {efficiency:.3f}', flush=True)
  idle = _round(max(workers), max(clients), 0.0, 1)
  from tff_cluster.federated import chunked_sum

  tasks = len(chunked_sum.chunks(max(clients)))
  model = 4 * _PARAMETERS
  return {
    'rounds': found,
    'tasks_per_second': round(tasks / idle, 1),
    'milliseconds_per_task': round(1000 * idle / tasks, 2),
    'bytes_home': {'sums': len(chunked_sum.chunks(100)) * model, 'updates': 100 * model},
    'load': load,
  }


def _round(workers: int, clients: int, seconds: float, parameters: int) -> float:
  """Returns the seconds of a round, the second one; rows travel with their clients, which are tiny."""
  import distributed

  from tff_cluster.base import environment
  from tff_cluster.engine import cluster, dask_worker, jobs, machine, side_by_side
  from tff_cluster.federated import chunked_sum

  def asleep(shared: Any, rows: Any, beside: Any) -> dask_worker.Answer:
    time.sleep(seconds * len(rows))
    here = distributed.get_worker()
    about = environment.about_worker()
    return dask_worker.Answer([np.zeros(parameters, np.float32)], here.address, about['instructions'])

  rows = {'x': np.zeros((1, 1), np.uint8), 'y': np.zeros(1, np.int32)}
  given = [jobs.Job(rows, {'last': np.asarray(False)}) for _ in range(clients)]
  chunks = [[given[k] for k in chunk] for chunk in chunked_sum.chunks(clients)]
  call = cluster._Call(dask_worker.Shared(b'', [np.zeros(parameters, np.float32)], True, {}))
  with (
    mock.patch.object(dask_worker, 'work', asleep),
    distributed.LocalCluster(
      n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=':0', memory_limit=0
    ) as local,
    distributed.Client(local, set_as_default=False) as client,
  ):
    client.wait_for_workers(workers)
    ours = cluster.Cluster(client, machine.Machine(), side_by_side.Slots(1))
    took = 0.0
    for _ in range(2):
      began = time.perf_counter()
      for _answer in ours._results(call, chunks):
        pass
      took = time.perf_counter() - began
  return took


if __name__ == '__main__':
  sys.exit(main())
