"""How long a replay takes against one pass over the pairwise distances: python -m benchmarks.replay

Four families of metric and linkage times 20 thresholds, from a memory-mapped file of 100 clients times 1,663,370
features (the MNIST CNN) with four planted groups. The file is made from a seed in a temporary folder and removed.
Measured in turns, medians: the whole replay from opening the file to the last clustering; one pass over the
distances of each metric; and SciPy's float64 pdist, which is also what the errors are taken against.

Ends with one JSON line: seconds; ratio_to_one_pass, the replay over one pass of each metric that is asked;
ratio_to_pass_of a single metric, and of SciPy's Euclidean pdist; working_memory_mb (growth without the pages of
the mapped file, which the system takes back when it needs them); relative_error of the Euclidean distances; ari,
the best of each family.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile
import time
from typing import Any

import numpy as np
from scipy.spatial import distance as scipy_distance

from benchmarks import common, planted
from tff_cluster.base.errors import InputError
from tff_cluster.clustering import distances as distances_lib
from tff_cluster.clustering import recovery, replay
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import METRICS

FAMILIES = (('l2', 'ward'), ('l2', 'average'), ('cosine', 'average'), ('l1', 'complete'))
_GROUPS = 4


@common.program
def main() -> object:
  parser = common.parser(__doc__)
  parser.add_argument('--clients', type=int, default=100, help='default: %(default)s')
  parser.add_argument('--features', type=int, default=1_663_370, help='of a client; default: %(default)s')
  parser.add_argument('--num_thresholds', type=int, default=20, help='of a family; default: %(default)s')
  parser.add_argument('--repeats', type=int, default=3, help='default: %(default)s')
  parser.add_argument('--memory_mb', type=int, default=64, help='of working copies; default: %(default)s')
  parser.add_argument('--seed', type=int, default=0, help='default: %(default)s')
  given = parser.parse_args()
  if given.clients < 2 or min(given.features, given.num_thresholds, given.repeats, given.memory_mb) < 1:
    raise InputError(
      '--clients is at least 2; --features, --num_thresholds, --repeats and --memory_mb are at least 1'
    )
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / 'vectors.npy'
    _write(path, given)
    result = _measure(path, given)
  for name, seconds in result['seconds'].items():
    print(f'{name:>24}: {seconds:7.2f} s')
  for name, ratio in result['ratio_to_pass_of'].items():
    print(f'replay / one pass of {name}: {ratio:.2f}')
  print(f'replay / one pass of each of {", ".join(METRICS)}: {result["ratio_to_one_pass"]:.2f}')
  return result


def _write(path: pathlib.Path, given: argparse.Namespace) -> None:
  rows = np.lib.format.open_memmap(path, 'w+', np.float32, (given.clients, given.features))
  for row, vector in zip(
    rows, planted.vectors(given.clients, given.features, _GROUPS, 1.0, given.seed), strict=True
  ):
    row[:] = vector
  rows.flush()


def _measure(path: pathlib.Path, given: argparse.Namespace) -> dict[str, Any]:
  truth = np.eye(_GROUPS)[:, planted.groups(given.clients, _GROUPS)]
  block_bytes = given.memory_mb * 2**20
  seconds: dict[str, list[float]] = {}
  found: dict[str, np.ndarray] = {}
  working = 0.0

  def timed(name: str, started: float) -> None:
    seconds.setdefault(name, []).append(time.perf_counter() - started)

  for _ in range(given.repeats):
    started = time.perf_counter()
    with planted.AnonymousPeak() as peak:
      signatures = Signatures.numbered(np.load(path, mmap_mode='r'), block_bytes)
      grid = replay.Grid(FAMILIES, given.num_thresholds)
      answers = list(replay.Replay(signatures, given.seed).answers(grid))
      memberships = [answer.assignment.membership for answer in answers if answer.assignment]
    timed('replay', started)
    # The first one counts: later ones find memory that this process has kept.
    working = max(working, peak.mb)
    for metric in METRICS:
      started = time.perf_counter()
      found[metric] = distances_lib.pairwise_distances(np.load(path, mmap_mode='r'), metric, block_bytes)
      timed(metric, started)
    started = time.perf_counter()
    exact = scipy_distance.pdist(np.load(path).astype(np.float64), 'euclidean')
    timed('scipy_pdist_euclidean', started)
  medians = {name: statistics.median(values) for name, values in seconds.items()}
  passes = {name: value for name, value in medians.items() if name != 'replay'}
  ari = {' '.join(family): 0.0 for family in FAMILIES}
  for answer, membership in zip(answers, memberships, strict=True):
    family = f'{answer.config.options.metric} {answer.config.options.linkage}'
    ari[family] = max(ari[family], recovery.omega_index(membership, truth))
  return {
    'clients': given.clients,
    'features': given.features,
    'families': len(FAMILIES),
    'thresholds': given.num_thresholds,
    'clusterings': len(answers),
    'memory_mb': given.memory_mb,
    'working_memory_mb': round(working, 1),
    'seconds': {name: round(value, 3) for name, value in medians.items()},
    'ratio_to_one_pass': round(medians['replay'] / sum(passes[metric] for metric in METRICS), 2),
    'ratio_to_pass_of': {name: round(medians['replay'] / value, 2) for name, value in passes.items()},
    'relative_error': float(np.max(np.abs(distances_lib.condensed(found['l2']) / exact - 1.0))),
    'ari': ari,
  }


if __name__ == '__main__':
  sys.exit(main())
