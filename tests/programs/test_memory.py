"""The memory that runs are said to need, beside what they take: resident, this process and its worker together."""

import functools
import pathlib
import re
import tempfile
import threading

import numpy as np
import pytest

from benchmarks import common
from tests.programs.children import UnreportedChild
from tff_cluster.experiment import memory_need

pytestmark = pytest.mark.tensorflow

# How far the estimate may be from the peak, either way.
FACTOR = 2.0
# Resident bytes of libraries that a fork has in common with the process that it comes from, and never looks at itself.
SHARED = 300_000_000
SHORT = ('--phase1_rounds=1', '--phase2_rounds=1', '--learning_rate=0.01', '--clients_in_parallel=2')
FILE = ('--dataset=file', '--partition=iid', '--data_file={data}')


def save(path, rows, features, labels):
  rng = np.random.default_rng(0)
  y = np.asarray(labels)[rng.integers(len(labels), size=rows)]
  y[: len(labels)] = labels
  np.savez(path, x=rng.normal(size=(rows, features)).astype(np.float32), y=y)
  return path


def peak_and_output(*arguments):
  """Runs phases.run_all; returns the highest resident bytes of its processes together, and what it printed."""
  child = UnreportedChild('phases.run_all', *arguments)
  levels, done = [0], threading.Event()

  def look():
    while not done.wait(0.1):
      tree = common.process_tree(child.process.pid)
      levels.append(sum(common.memory_of(process.pid, 'VmRSS') for process in tree))

  watcher = threading.Thread(target=look)
  watcher.start()
  try:
    code, out, err = child.finish(timeout=900)
  finally:
    done.set()
    watcher.join()
  assert code == 0, err
  return max(levels), out


# Rows, features, labels and flags. The models have 1.2 million parameters each.
LARGE_MODELS = (
  160, 6_000, (0, 1, 2), ('--model=2nn', '--num_clients=8', '--clustering=kmeans,num_clusters=3'),
)  # fmt: skip
MANY_ROWS = (
  20_000, 1_000, (0, 1, 2), ('--model=logistic', '--num_clients=10', '--clustering=kmeans,num_clusters=2'),
)  # fmt: skip
# One stray label. Tables of classes x classes, one a client, took more than the machine has.
MANY_CLASSES = (
  48, 8, (0, 20_000), ('--model=logistic', '--num_clients=4', '--clustering=kmeans,num_clusters=2'),
)  # fmt: skip


@functools.cache
def measured(rows, features, labels, flags):
  """Returns the highest resident bytes of such a run, and what it said that it would need."""
  with tempfile.TemporaryDirectory() as folder:
    data = save(pathlib.Path(folder) / 'rows.npz', rows, features, labels)
    given = [flag.format(data=data) for flag in (*FILE, *SHORT, *flags)]
    peak, out = peak_and_output(f'--output_dir={folder}/run', *given)
  return peak, float(re.search(r'^memory: about ([0-9.]+) GB', out, re.M)[1]) * 1e9


@pytest.mark.parametrize(
  'asked', [LARGE_MODELS, MANY_ROWS, MANY_CLASSES], ids=['large models', 'many rows', 'many classes']
)
def test_the_estimate_is_about_what_a_run_takes(asked):
  peak, estimate = measured(*asked)
  assert peak / FACTOR < estimate < (peak + SHARED) * FACTOR, (estimate, peak)
  # Rows and models are counted beside the processes themselves; a run of many classes has few of both.
  beside = peak - measured(*MANY_CLASSES)[0]
  assert beside / FACTOR < estimate - memory_need.PROCESS, (estimate, beside)
