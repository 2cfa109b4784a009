"""Signatures as whole vectors and as sketches: what clients send, what the server adds, and what it costs."""

import shutil

import numpy as np
import pytest

from tests.phases.whole_run import WholeRun, opened
from tff_cluster.clustering import sketch
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import client_signatures, phase1
from tff_cluster.storage import files
from tff_cluster.storage.artifacts import MissingArtifact

pytestmark = pytest.mark.tensorflow


def experiment(sketch_dimension, cohort_fraction=1.0):
  return ExperimentConfig(
    DataConfig(partition='label_permuted', num_clients=8, num_groups=2),
    TrainingConfig(
      model='logistic',
      phase1_rounds=4,
      phase2_rounds=2,
      local_epochs=3,
      batch_size=10,
      sketch_dimension=sketch_dimension,
      cohort_fraction=cohort_fraction,
    ),
    (ClusteringConfig('kmeans', num_clusters=2),),
  )


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
  return WholeRun(experiment(None), tmp_path_factory.mktemp('whole') / 'run')


@pytest.fixture(scope='module')
def sketched(tmp_path_factory):
  return WholeRun(experiment(2000), tmp_path_factory.mktemp('sketched') / 'run')


def test_sketches_find_the_planted_groups_too_and_have_the_distortion_that_is_told(whole, sketched):
  pairs = np.triu_indices(8, 1)

  def distances(run):
    rows = run.signatures().astype(float)
    return np.linalg.norm(rows[:, None] - rows[None], axis=2)[pairs]

  assert whole.signatures().shape == (8, 7_850) and sketched.signatures().shape == (8, 2000)
  assert all(run.clustering('kmeans').recovery['group'].ari == 1.0 for run in (whole, sketched))
  errors = np.abs(distances(sketched) - distances(whole)) / distances(whole)
  told = sketched.results.training.sketch
  assert (told.dimension, told.distortion.pairs) == (2000, 28)  # All 8 clients are in the sample.
  assert told.distortion.mean == pytest.approx(errors.mean(), rel=1e-3)
  assert told.distortion.maximum == pytest.approx(errors.max(), rel=1e-3)
  assert errors.max() < 0.2
  assert whole.results.training.sketch is None


def test_clusters_start_from_the_same_means_whether_or_not_the_weights_were_sent(whole, sketched):
  vectors, member = whole.signatures(), sketched.membership('kmeans')
  paths = list(sketched.folder.store.glob('start-*/vectors.npy'))
  starts = [np.array(files.load_rows(path)[0]) for path in paths]
  assert len(starts) == 2
  for mean in (vectors[row > 0].mean(axis=0) for row in member):
    assert min(np.abs(mean - start).max() for start in starts) < 1e-5
  # One local round of each client more than without sketches.
  assert sketched.done.asked == whole.done.asked + 8
  assert sketched.clustering('kmeans').ledger.client_rounds == 8 * 2 + 8


def test_weights_of_clients_that_were_not_in_the_last_round_are_paid_for(tmp_path):
  # Of 8 clients 4 train in each of 4 and 2 rounds; the other 4 of the last round train once for their weights.
  run = WholeRun(experiment(None, cohort_fraction=0.5), tmp_path, export_models=False)
  in_clusters = sum(max(int(size) // 2, 1) for size in run.membership('kmeans').sum(axis=1)) * 2
  assert run.clustering('kmeans').ledger.client_rounds == in_clusters + 4
  assert run.done.trained == 4 * (4 + 2) + in_clusters + 4


def test_a_run_killed_before_it_measured_its_sketches_goes_on(sketched, tmp_path):
  folder = RunFolder(shutil.copytree(sketched.folder.root, tmp_path / 'run'))
  # What comes after the vectors.
  folder.phase1.unlink()
  (measured,) = folder.store.glob('signatures-*/sketch.json')
  measured.unlink()
  again = WholeRun(sketched.config, folder.root)
  assert again.results.digest == sketched.results.digest and again.done.trained == 0
  assert measured.exists()


@pytest.mark.parametrize('name', ['vectors.npy', 'clients.json'])
def test_signatures_that_are_gone_say_which_phase_makes_them(name, whole, tmp_path):
  folder = RunFolder(shutil.copytree(whole.folder.root, tmp_path / 'run'))
  for path in folder.store.glob(f'signatures-*/{name}'):
    path.unlink()
  with pytest.raises(MissingArtifact, match=r'run python -m phases\.phase1'):
    client_signatures.load(folder, 'weights')


@pytest.mark.parametrize('dimension', [None, 64])
def test_signatures_are_origin_plus_update(dimension, tmp_path):
  rounds, folder = 3, RunFolder(tmp_path)
  training = TrainingConfig(
    model='logistic', phase1_rounds=rounds, batch_size=10, sketch_dimension=dimension, seed=5
  )
  on_updates = ClusteringConfig('kmeans', num_clusters=2, signature='updates', name='on_updates')
  clusterings = (ClusteringConfig('kmeans', num_clusters=2), on_updates)
  config = ExperimentConfig(DataConfig(num_clients=4, rows_per_client=40), training, clusterings)
  files.save_json(folder.config, config.to_json())
  with opened(folder, config) as running:
    phase1.run_phase1(running)
    origins = {kind: client_signatures.origin(running, kind) for kind in ('weights', 'updates')}
    trainer = running.trainer
    initial = trainer.computations.model.weights
    outcome = running.train('again', running.everyone, initial, 0, rounds, (rounds - 1,))
    updates = np.empty((4, trainer.computations.model.num_parameters), np.float32)
    trainer.local_updates(
      outcome.weights[rounds - 1], range(4), rounds, lambda k, u: np.copyto(updates[k], u)
    )
    shares = running.population.train.counts / running.population.train.counts.sum()
    after = running.flatten(outcome.weights[rounds])
  saved = {kind: client_signatures.load(folder, kind).vectors for kind in origins}
  assert not origins['updates'].any() and origins['updates'].shape == saved['updates'][0].shape
  if dimension is None:
    assert np.array_equal(saved['weights'], origins['weights'] + updates)
    # The mean of what the clients of the last round had is the model after it (McMahan 2017).
    moved = saved['weights'] - origins['weights']
    np.testing.assert_allclose(shares @ moved, after - origins['weights'], atol=1e-6)
  else:
    # A sketch is linear, so those of the updates are what is left.
    expected = sketch.sketch(updates, dimension, 5)
    np.testing.assert_allclose(saved['weights'] - origins['weights'], expected, atol=1e-5)
