"""Signatures as whole vectors and as sketches: what clients send, what the server adds, and what it costs."""

import shutil

import numpy as np
import pytest

from tests.phases.conftest import CLIENTS, PHASE2, PLAIN, TINY
from tests.phases.whole_run import WholeRun, changed, opened, scaled
from tff_cluster.base.cost import Cost
from tff_cluster.clustering import sketch
from tff_cluster.data import populate, saved
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.config import ClusteringConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import client_signatures, clustering, phase1
from tff_cluster.storage import files
from tff_cluster.storage.artifacts import MissingArtifact

pytestmark = pytest.mark.tensorflow

KINDS, ROUNDS, DIVERGED, HEALTHY = ('weights', 'updates'), 2, 0, [1, 2, 3, 4, 5]
COPIED = [1, 4]  # Clients that come again later, with the same rows and names.


@pytest.fixture(scope='module', params=[None, 64])
def experiment(request, tmp_path_factory):
  """An experiment after Phase 1, of six clients: the training of one diverges."""
  on_updates = ClusteringConfig('kmeans', num_clusters=2, signature='updates', name='on_updates')
  config = changed(
    PLAIN,
    data={'num_clients': 6 + len(COPIED), 'new_clients': len(COPIED), 'rows_per_client': 40},
    training={'phase1_rounds': ROUNDS, 'phase2_rounds': 1, 'sketch_dimension': request.param, 'seed': 5},
    clusterings=(on_updates, ClusteringConfig('planted')),
  )
  folder = RunFolder(tmp_path_factory.mktemp('phase 1'))
  population = scaled(populate.build_population(config.data).take(range(6)), {DIVERGED: 1e30})
  saved.save_population(population, folder.population)
  saved.save_population(population.take(COPIED), folder.new_clients)
  files.save_json(folder.config, config.to_json())
  with opened(folder, config) as found:
    phase1.run_phase1(found)
    yield found


def sent_by(experiment):
  """Returns the global models by round, and by kind what each client sent, float32[clients, features]."""
  trainer = experiment.trainer
  kept = (ROUNDS - 1, ROUNDS)
  initial = trainer.computations.model.weights
  models = experiment.train('again', experiment.everyone, initial, 0, ROUNDS, kept).weights
  sent = {}
  for kind, before in zip(KINDS, kept, strict=True):
    updates = sent[kind] = np.empty((6, trainer.computations.model.num_parameters), np.float32)
    trainer.local_updates(models[before], range(6), before + 1, updates.__setitem__)
  return models, sent


def test_signatures_are_origin_plus_update_and_clusters_start_from_the_mean_of_the_others(experiment):
  models, sent = sent_by(experiment)
  folder, dimension = experiment.folder, experiment.config.training.sketch_dimension
  origins = {kind: client_signatures.origin(experiment, kind) for kind in KINDS}
  assert not origins['updates'].any()
  for kind in KINDS:
    found = client_signatures.load(folder, kind)
    assert found.client_ids == tuple(experiment.population.client_ids[k] for k in HEALTHY)
    if dimension is None:
      np.testing.assert_array_equal(found.vectors, origins[kind] + sent[kind][HEALTHY])
    else:
      # A sketch is linear, so those of the updates are what is left.
      expected = sketch.sketch(sent[kind][HEALTHY], dimension, 5)
      np.testing.assert_allclose(found.vectors - origins[kind], expected, atol=1e-5)
  # The mean of what the clients of the last round had is the model after it (McMahan 2017).
  rows = experiment.population.train.counts[HEALTHY]
  before, after = (experiment.flatten(models[number]) for number in (ROUNDS - 1, ROUNDS))
  np.testing.assert_allclose(rows / rows.sum() @ sent['weights'][HEALTHY], after - before, atol=1e-6)
  for each in experiment.config.clusterings:
    clustering.run_clustering(folder, each, 0)
    assignment = folder.load_finished(folder.clusters(each.label), phase_files.Clusters).assignment
    for row, start in enumerate(client_signatures.start_weights(experiment, assignment)):
      members = [k for k in assignment.members(row) if k != DIVERGED]
      mean = sent['weights'][members].mean(axis=0, dtype=np.float64)
      np.testing.assert_allclose(start, before + mean, atol=1e-6)


@pytest.mark.parametrize('kind', KINDS)
def test_a_newcomer_with_the_rows_and_name_of_a_participant_has_its_signature(kind, experiment):
  theirs = client_signatures.load(experiment.folder, kind)
  new = client_signatures.of_new_clients(experiment, kind)
  same = [HEALTHY.index(k) for k in COPIED]
  np.testing.assert_array_equal(new.vectors, theirs.vectors[same])
  assert new.client_ids == tuple(theirs.client_ids[k] for k in same)


def test_signatures_that_are_gone_say_which_phase_makes_them(experiment, tmp_path):
  folder = RunFolder(shutil.copytree(experiment.folder.root, tmp_path / 'run'))
  for name in ('clients.json', 'vectors.npy'):
    for path in folder.store.glob(f'signatures-*/{name}'):
      path.unlink()
    with pytest.raises(MissingArtifact, match=rf'no whole .*{name}\): run python -m phases\.phase1'):
      client_signatures.load(folder, 'weights')


def test_sketches_find_the_planted_groups_and_have_the_distortion_that_is_told_even_after_a_kill(
  planted, tmp_path
):
  store = shutil.copytree(planted.folder.store, tmp_path / 'store')
  config = changed(PLAIN, training={'sketch_dimension': 2000}, clusterings=PLAIN.clusterings[:1])

  def run():
    return WholeRun(config, tmp_path / 'run', store_dir=str(store))

  sketched = run()
  pairs = np.triu_indices(CLIENTS, 1)
  whole, sketches = (
    np.linalg.norm(rows[:, None] - rows[None], axis=2)[pairs]
    for rows in (each.signatures().astype(float) for each in (planted, sketched))
  )
  assert sketched.signatures().shape == (CLIENTS, 2000)
  assert sketched.clustering('kmeans').recovery['group'].ari == 1.0
  errors, told = np.abs(sketches - whole) / whole, sketched.results.training.sketch
  assert (told.dimension, told.distortion.pairs) == (2000, len(whole))  # All clients are in the sample.
  assert told.distortion.mean == pytest.approx(errors.mean(), rel=1e-3)
  assert told.distortion.maximum == pytest.approx(errors.max(), rel=1e-3)
  assert errors.max() < 0.2
  # One local round of each client more than without sketches, which all send beside: 2000 numbers of four bytes.
  rounds, size = CLIENTS * PHASE2 + CLIENTS, sketched.results.training.model_bytes
  expected = Cost(
    rounds, rounds, rounds + CLIENTS, rounds * size, rounds * size + CLIENTS * 8000, 64 * rounds
  )
  assert sketched.clustering('kmeans').cost == expected
  # As a kill leaves it that comes after the vectors.
  sketched.folder.phase1.unlink()
  (measured,) = store.glob('signatures-*/sketch.json')
  measured.unlink()
  again = run()
  assert again.results.digest == sketched.results.digest and again.done.trained == 0
  assert measured.exists()


def test_weights_of_clients_that_were_not_in_the_last_round_are_paid_for(tmp_path):
  run = WholeRun(changed(TINY, training={'cohort_fraction': 0.5}), tmp_path)
  # Half of the clients train in each of two rounds; the other half of the first trains once for their weights.
  half = CLIENTS // 2
  in_clusters = sum(max(int(size) // 2, 1) for size in run.membership('kmeans').sum(axis=1))
  assert run.clustering('kmeans').cost.client_rounds == in_clusters + half
  assert run.done.trained == half * 2 + in_clusters + half
