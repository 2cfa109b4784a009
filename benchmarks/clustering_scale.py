"""How clustering grows with the number of clients: python -m benchmarks.clustering_scale

Clients with planted groups send count sketches; every disjoint method (k-means, and hierarchical clustering with
every metric and linkage) clusters 100, 1,000 and 10,000 of them, each in a process of its own whose seconds and
peak memory are measured. `seconds` is the clustering, from sketches in memory to the clusters in memory; the
process's own start is not in it, its memory is. Thresholds lie between the distances within and across groups,
which the planted groups tell.

Writes clustering_scale.svg and .png into --output_dir and ends with one JSON line: sizes [{clients,
sketch_seconds, distortion (Euclidean distances of 200 clients), methods {name: {seconds, peak_mb, clusters,
ari}}}], and the worst of the largest size: worst_seconds, worst_peak_mb.
"""

import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks import common, planted, scale_figure
from tff_cluster.base.errors import InputError
from tff_cluster.clustering import distances as distances_lib
from tff_cluster.clustering import methods, recovery, sketch
from tff_cluster.clustering.methods import hierarchical
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import LINKAGES, METRICS, ClusteringConfig
from tff_cluster.report.figures import base
from tff_cluster.storage.files import write_file

FAMILIES = tuple((m, link) for m in METRICS for link in LINKAGES if hierarchical.fits(m, link))
NAMES = ('kmeans', *(' '.join(family) for family in FAMILIES))
_SAMPLE = 200
# The spread of the groups' centres against that of their members, for each feature.
_SEPARATION = 1.5


@common.program
def main() -> object:
  parser = common.parser(__doc__)
  parser.add_argument(
    '--clients', type=int, nargs='+', default=[100, 1_000, 10_000], help='default: %(default)s'
  )
  parser.add_argument(
    '--features', type=int, default=20_000, help='numbers a client before sketching; default: %(default)s'
  )
  parser.add_argument('--dimension', type=int, default=512, help='numbers a sketch; default: %(default)s')
  parser.add_argument('--num_groups', type=int, default=10, help='default: %(default)s')
  parser.add_argument('--methods', nargs='+', choices=NAMES, default=NAMES, help='default: all of them')
  parser.add_argument('--seed', type=int, default=0, help='default: %(default)s')
  parser.add_argument(
    '--output_dir', type=pathlib.Path, default=pathlib.Path('runs/benchmarks'), help='default: %(default)s'
  )
  parser.add_argument('--child', nargs=3, help=argparse.SUPPRESS)
  given = parser.parse_args()
  if given.child:
    return _cluster(*given.child, given.num_groups, given.seed)
  if not 2 <= given.num_groups < min(_SAMPLE, *given.clients) or min(given.features, given.dimension) < 1:
    raise InputError(
      f'--num_groups is at least 2, below {_SAMPLE} and below every number of --clients; --features and --dimension '
      'are at least 1'
    )
  sizes = [_measure(clients, given) for clients in given.clients]
  svg, png = base.render(scale_figure.growth(sizes))
  for ending, content in (('svg', svg), ('png', png)):
    path = given.output_dir / f'clustering_scale.{ending}'
    write_file(path, content)
    print(path)
  largest = sizes[-1]['methods'].values()
  return {
    'features': given.features,
    'dimension': given.dimension,
    'groups': given.num_groups,
    'sizes': sizes,
    'worst_seconds': max(method['seconds'] for method in largest),
    'worst_peak_mb': max(method['peak_mb'] for method in largest),
  }


def _measure(clients: int, given: argparse.Namespace) -> dict[str, Any]:
  """Measures all methods on this many clients, and prints a line each."""
  sketches = np.empty((clients, given.dimension), np.float32)
  chosen = np.unique(np.linspace(0, clients - 1, min(clients, _SAMPLE)).round().astype(int))
  sample = []
  seconds = 0.0
  vectors = planted.vectors(clients, given.features, given.num_groups, _SEPARATION, given.seed)
  for client, vector in enumerate(vectors):
    started = time.perf_counter()
    sketches[client] = sketch.sketch(vector[None], given.dimension, given.seed)[0]
    seconds += time.perf_counter() - started
    if client in chosen:
      sample.append(vector)
  distortion = sketch.distortion(np.array(sample), sketches[chosen])
  print(
    f'{clients:,} clients: sketched in {seconds:.1f} s, distances off by {distortion.mean:.1%} on average, '
    f'{distortion.maximum:.1%} at most'
  )
  thresholds = _thresholds(sketches[chosen], planted.groups(clients, given.num_groups)[chosen])
  measured = {}
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / 'sketches.npy'
    np.save(path, sketches)
    for name in given.methods:
      arguments = ['--child', name, str(path), thresholds[name]]
      same = [f'--num_groups={given.num_groups}', f'--seed={given.seed}']
      done = subprocess.run(
        [sys.executable, '-m', 'benchmarks.clustering_scale', *arguments, *same],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
      )
      measured[name] = json.loads(done.stdout)
      print(
        f'  {name:16} {measured[name]["seconds"]:7.2f} s {measured[name]["peak_mb"]:6,.0f} MiB, '
        f'{measured[name]["clusters"]:,} clusters, ARI {measured[name]["ari"]:.3f}'
      )
  return {
    'clients': clients,
    'sketch_seconds': round(seconds, 3),
    'distortion': dataclasses.asdict(distortion),
    'methods': measured,
  }


def _thresholds(sketches: np.ndarray, groups: np.ndarray) -> dict[str, str]:
  """Returns for each method a threshold between the distances within and across the planted groups."""
  same = groups[:, None] == groups[None, :]
  np.fill_diagonal(same, False)
  found = {'kmeans': ''}
  for metric, linkage in FAMILIES:
    distances = distances_lib.pairwise_distances(sketches, metric)
    within, across = np.median(distances[same]), np.median(distances[groups[:, None] != groups[None, :]])
    # Ward's heights grow with the size of what is merged: a larger share of the way lies within groups.
    middle = (within + across) / 2 * (1.5 if linkage == 'ward' else 1.0)
    found[f'{metric} {linkage}'] = repr(float(middle))
  return found


def _cluster(name: str, path: str, threshold: str, num_groups: int, seed: int) -> dict[str, Any]:
  """Clusters in this process."""
  vectors = np.load(path)
  if name == 'kmeans':
    config = ClusteringConfig(method='kmeans', num_clusters=num_groups)
  else:
    metric, linkage = name.split(' ')
    config = ClusteringConfig(
      method='hierarchical', metric=metric, linkage=linkage, distance_threshold=threshold
    )
  started = time.perf_counter()
  outcome = methods.cluster(config, Signatures.numbered(vectors), seed)
  seconds = time.perf_counter() - started
  peak = planted.memory_mb('VmHWM')
  return {
    'seconds': round(seconds, 3),
    'peak_mb': round(peak, 1),
    'clusters': outcome.assignment.num_clusters,
    'ari': recovery.ari(planted.groups(len(vectors), num_groups), outcome.assignment.labels),
  }


if __name__ == '__main__':
  sys.exit(main())
