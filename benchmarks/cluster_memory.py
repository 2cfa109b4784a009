"""Whether workers of a cluster grow: many runs, finished and killed, one after the other on the same two workers.

A scheduler and two workers of one thread on this machine (tcp on loopback). Every run is a program of its own, 6 clients and
four rounds of the model; every second one is killed at some moment. After each portion of runs the resident memory of the workers,
each with its TFF worker, is read.

The last line of the output is one JSON object:

  mb        megabytes (10^6 bytes) of each worker after each portion
  growth_mb_per_run  of the two together, from the first portion to the last
  runs      {finished, killed}
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from benchmarks import common
from tests.engine.dask_cluster import DaskCluster
from tff_cluster.base import seeding

_FLAGS = (
  '--dataset=digits', '--partition=label_swapped', '--num_clients=6', '--num_groups=2', '--rows_per_client=60',
  '--phase1_rounds=2', '--phase2_rounds=2', '--clustering=kmeans,num_clusters=2', '--noexport_models',
)  # fmt: skip


@common.program
def main() -> object:
  parser = common.parser(__doc__)
  parser.add_argument('--runs', type=int, default=50, help='default: %(default)s')
  parser.add_argument(
    '--portion', type=int, default=10, help='runs between two readings; default: %(default)s'
  )
  parser.add_argument('--model', default='2nn', help='default: %(default)s')
  parser.add_argument(
    '--kill_after', type=float, nargs=2, default=(8.0, 20.0), help='seconds; default: %(default)s'
  )
  flags = parser.parse_args()
  with tempfile.TemporaryDirectory() as place:
    return measure(pathlib.Path(place), flags.runs, flags.portion, flags.model, *flags.kill_after)


def measure(
  place: pathlib.Path, runs: int, portion: int, model: str, earliest: float, latest: float
) -> dict[str, object]:
  """Returns what the JSON line says; see the module's docstring."""
  cluster, generator = DaskCluster(place), seeding.generator(0, 'benchmark kills')
  levels: list[list[int]] = []
  count = {'finished': 0, 'killed': 0}
  try:
    workers = [cluster.start_worker(threads=1) for _ in range(2)]
    for number in range(runs):
      command = ['-m', 'phases.run_all', *_FLAGS, f'--model={model}', f'--seed={number}']
      command += [f'--scheduler={cluster.address}', f'--output_dir={place / str(number)}']
      run = subprocess.Popen(
        [sys.executable, *command], cwd=common.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {'TF_CPP_MIN_LOG_LEVEL': '3'},
      )  # fmt: skip
      try:
        run.wait(generator.uniform(earliest, latest) if number % 2 else None)
      except subprocess.TimeoutExpired:
        run.kill()
        run.wait()
      count['finished' if run.returncode == 0 else 'killed'] += 1
      if (number + 1) % portion == 0:
        trees = [common.process_tree(worker.process.pid) for worker in workers]
        levels.append([round(sum(common.memory_of(p.pid, 'VmRSS') for p in tree) / 1e6) for tree in trees])
        print(f'after {number + 1} runs: {levels[-1]} MB', flush=True)
  finally:
    cluster.end()
  growth = (sum(levels[-1]) - sum(levels[0])) / max(portion * (len(levels) - 1), 1) if levels else 0.0
  return {'mb': levels, 'growth_mb_per_run': round(growth, 2), 'runs': count}


if __name__ == '__main__':
  sys.exit(main())
