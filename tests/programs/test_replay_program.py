"""phases.replay on a run and on files."""

import csv

import numpy as np
import pytest

from tests.made_up import after_phase_1
from tests.programs.children import files, run_here
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig

STARTED = ExperimentConfig(
  DataConfig(num_clients=12), clusterings=(ClusteringConfig(method='dynamic_distance'),)
)
GROUPS = np.repeat(np.arange(3), 4)


def vectors():
  return np.eye(3)[GROUPS] * 9 + np.random.default_rng(0).normal(size=(12, 3)) * 0.01


@pytest.fixture
def run(tmp_path):
  """A run with 12 clients in three planted groups, as if its Phase 1 had just ended."""
  return after_phase_1.make(tmp_path / 'run', STARTED, GROUPS)


def call(*arguments):
  return run_here('phases.replay', *map(str, arguments))


def table(folder):
  with open(folder / 'replay.csv', newline='') as file:
    return list(csv.DictReader(file))


def test_a_run(run, capsys):
  before = files(run.root)
  assert call(f'--output_dir={run.root}') == 0
  out = capsys.readouterr().out
  assert 'group: 3 planted groups, 12 clients' in out and 'k-means' in out and 'K = 3' in out
  rows = table(run.root)
  # K from 2 to 10 by three methods that are told it; the made-up clients' rows are of no group.
  assert len(rows) == 11 * 20 + 3 * 9 + 4
  assert sum(row['clustering'].startswith('pacfl,num_clusters=') for row in rows) == 9
  assert {row['silhouette'] for row in rows if row['method'] == 'pacfl'} == {''}
  for row in rows:
    if row['method'] == 'pacfl':
      continue
    if row['clusters'] == '3' and row['memberships'] == '1.0':
      assert (row['ari_group'], row['nmi_group'], row['omega_group']) == ('1.0', '1.0', '1.0')
    else:
      assert row['omega_group'] != '1.0'
  after = files(run.root)
  made = {path.name for path in after.keys() - before.keys()}
  assert made == {'replay.csv', 'replay.json', 'replay.svg', 'replay.png'}
  assert all(after[path] == content for path, content in before.items())


def test_thresholds_that_are_told_to_be_exact_are(run, capsys):
  assert call(f'--output_dir={run.root}', '--metrics=l2', '--linkages=ward') == 0
  (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith('l2 ward')]
  low, high = (float(part) for part in line.split('1.00')[0].removeprefix('l2 ward').split(' <= T < '))
  # Ward's distance of two groups of four whose centres are 9 * sqrt(2) apart is sqrt(4) times that.
  assert 0 < low < 0.2 and high == pytest.approx(18 * np.sqrt(2), rel=1e-2)


def test_a_file(tmp_path, capsys):
  np.savez(tmp_path / 'v.npz', signatures=vectors())
  folder = tmp_path / 'out'
  given = f'--signatures_file={tmp_path}/v.npz'
  assert call(given, f'--output_dir={folder}', '--seed=3', '--memory_mb=1') == 0
  out = capsys.readouterr().out
  assert '12 clients, no planted groups known' in out
  assert 'not asked, because the training rows of the clients are not at hand: pacfl\n' in out
  assert 'pacfl' not in {row['method'] for row in table(folder)}
  assert sorted(file.name for file in folder.iterdir()) == [
    'replay.csv',
    'replay.json',
    'replay.png',
    'replay.svg',
  ]
  assert 'ari_group' not in table(folder)[0]


def test_only_what_is_asked(run):
  arguments = ['--metrics=cosine', '--linkages=single,average', '--num_thresholds=3', '--cluster_counts=5']
  assert call(f'--output_dir={run.root}', '--distance_thresholds=none', '--nosilhouettes', *arguments) == 0
  rows = table(run.root)
  assert [(row['metric'], row['linkage'], row['num_clusters']) for row in rows] == [
    ('', '', '5'),
    *[('cosine', 'single', '')] * 3,
    *[('cosine', 'average', '')] * 3,
    *[('', '', '5')] * 2,
  ]
  assert {row['silhouette'] for row in rows} == {''}


def test_sketches_of_a_run_without_its_population_which_has_no_truths(run, capsys):
  run.population.unlink()
  assert call(f'--output_dir={run.root}', '--sketch_dimension=64', '--metrics=l2') == 0
  out = capsys.readouterr().out
  assert 'sketches of 64 numbers: Euclidean distances are off by' in out and 'no planted groups known' in out
