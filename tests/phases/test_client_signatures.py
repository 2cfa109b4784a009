"""Signatures as whole vectors and as sketches, in whole runs on planted groups."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import client_signatures
from tff_cluster.phases.run_experiment import run_experiment
from tff_cluster.storage import files
from tff_cluster.storage.artifacts import MissingArtifact

pytestmark = pytest.mark.tensorflow


def experiment(sketch_dimension):
  return ExperimentConfig(
    DataConfig(partition='label_permuted', num_clients=8, num_groups=2),
    TrainingConfig(
      model='logistic',
      phase1_rounds=4,
      phase2_rounds=2,
      local_epochs=3,
      batch_size=10,
      sketch_dimension=sketch_dimension,
    ),
    (ClusteringConfig('kmeans', num_clusters=2),),
  )


@pytest.fixture(scope='module')
def runs(tmp_path_factory):
  folders = {}
  for dimension in (None, 2000):
    folder = tmp_path_factory.mktemp('signatures') / str(dimension)
    folders[dimension] = (RunFolder(folder), run_experiment(experiment(dimension), folder))
  return folders


def vectors(folder):
  name = json.loads(folder.phase1.read_text())['signatures']['weights']
  return np.array(files.load_rows(folder.store / name / 'vectors.npy'))


def test_sketches_are_small_and_find_the_planted_groups_too(runs):
  whole, sketched = vectors(runs[None][0]), vectors(runs[2000][0])
  assert whole.shape == (8, 7_850) and sketched.shape == (8, 2000)
  for _, done in runs.values():
    (clustering,) = done.results['clusterings']
    assert clustering['recovery']['group']['ari'] == 1.0, clustering['clusters']


def test_sketches_have_the_distances_that_the_report_of_their_distortion_says(runs):
  whole, sketched = vectors(runs[None][0]), vectors(runs[2000][0])
  pairs = np.triu_indices(8, 1)

  def distances(rows):
    return np.linalg.norm(rows[:, None].astype(float) - rows[None], axis=2)[pairs]

  errors = np.abs(distances(sketched) - distances(whole)) / distances(whole)
  report = runs[2000][1].results['training']['sketch']
  assert (
    report['dimension'] == 2000 and report['distortion']['pairs'] == 28
  )  # All 8 clients are in the sample.
  assert report['distortion']['mean'] == pytest.approx(errors.mean(), rel=1e-3)
  assert report['distortion']['maximum'] == pytest.approx(errors.max(), rel=1e-3)
  assert errors.max() < 0.2
  assert runs[None][1].results['training']['sketch'] is None


def test_clusters_start_from_the_same_means_whether_or_not_the_weights_were_sent(runs):
  whole, (folder, done) = vectors(runs[None][0]), runs[2000]
  (clustering,) = done.results['clusterings']
  ids = done.results['population']['client_ids']
  starts = [np.array(files.load_rows(path)[0]) for path in folder.store.glob('start-*/vectors.npy')]
  expected = [whole[[ids.index(i) for i in members]].mean(axis=0) for members in clustering['clusters']]
  assert len(starts) == 2
  for mean in expected:
    assert min(np.abs(mean - start).max() for start in starts) < 1e-5
  # One local round of each client more than without sketches.
  assert done.asked == runs[None][1].asked + 8
  assert clustering['ledger']['client_rounds'] == 8 * 2 + 8


def test_weights_of_clients_that_were_not_in_the_last_round_are_paid_for(tmp_path):
  # Of 8 clients 4 train in each of 4 and 2 rounds; the other 4 of the last round train once for their weights.
  config = experiment(None)
  training = dataclasses.replace(config.training, cohort_fraction=0.5)
  done = run_experiment(dataclasses.replace(config, training=training), tmp_path)
  (clustering,) = done.results['clusterings']
  in_clusters = sum(max(len(members) // 2, 1) for members in clustering['clusters']) * 2
  assert clustering['ledger']['client_rounds'] == in_clusters + 4
  assert done.trained == 4 * (4 + 2) + in_clusters + 4


def test_a_run_killed_before_it_measured_its_sketches_goes_on(runs, tmp_path):
  folder, done = runs[2000]
  shutil.copytree(folder.root, tmp_path / 'run')
  again = RunFolder(tmp_path / 'run')
  # What comes after the vectors.
  again.phase1.unlink()
  (sketch,) = again.store.glob('signatures-*/sketch.json')
  sketch.unlink()
  found = run_experiment(experiment(2000), again.root)
  assert found.results['digest'] == done.results['digest'] and found.trained == 0
  assert sketch.exists()


@pytest.mark.parametrize('name', ['vectors.npy', 'clients.json'])
def test_signatures_that_are_gone_say_which_phase_makes_them(name, runs, tmp_path):
  shutil.copytree(runs[None][0].root, tmp_path / 'run')
  folder = RunFolder(tmp_path / 'run')
  for path in folder.store.glob(f'signatures-*/{name}'):
    path.unlink()
  with pytest.raises(MissingArtifact, match=r'run python -m phases\.phase1'):
    client_signatures.load(folder, 'weights')
