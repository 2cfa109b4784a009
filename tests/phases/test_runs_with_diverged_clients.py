"""Clients whose training goes to NaN: the others have the results that they have without them, and the run ends well.

Rows of two clients of a run and of one that comes later are finite, but enormous. All three diverge in every round.
"""

import dataclasses
import json
import warnings

import numpy as np
import pytest

from tests.conftest import clients_of_runs
from tff_cluster.base.errors import InputError
from tff_cluster.data import saved
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

CLIENTS, NEW, SICK, SICK_NEW = 12, 4, (1, 6), 2
CONFIG = ExperimentConfig(
  DataConfig(num_clients=CLIENTS, new_clients=NEW, rows_per_client=80, validation_fraction=0.2, num_groups=2),
  TrainingConfig(model='logistic', phase1_rounds=4, phase2_rounds=6, batch_size=10),
  (
    ClusteringConfig('kmeans', num_clusters=2),
    ClusteringConfig('kmeans', name='updates', num_clusters=2, signature='updates'),
    ClusteringConfig('dynamic_distance', distance_threshold='quantile:0.3'),
    ClusteringConfig('hierarchical', distance_threshold='validation', linkage='ward'),
    ClusteringConfig('bipartition', stationary_norm=0.5, stopping_norm=0.5, rounds_before_split=20),
    ClusteringConfig('planted'),
  ),
  EvaluationConfig(experts=True, local_training=True),
)


def run(config, folder):
  from tff_cluster.phases import run_experiment

  return run_experiment.run_experiment(config, folder.root, export_models=False).results


def scaled(population, factors):
  """Returns the population with float32 rows from 0 to 1, those of some clients multiplied."""

  def of(split):
    x = (split.x / 255.0).astype(np.float32)
    for client, factor in factors.items():
      x[split.offsets[client] : split.offsets[client + 1]] *= factor
    return dataclasses.replace(split, x=x)

  splits = {name: of(getattr(population, name)) for name in ('train', 'validation', 'test')}
  return dataclasses.replace(
    population, **splits, global_test_x=(population.global_test_x / 255.0).astype(np.float32)
  )


def clients(config, factors, new_factors, without=()):
  """Returns the clients that a run is to have, and those that come later."""
  from tff_cluster.data import new_clients, populate

  population, new = new_clients.split(populate.build_population(config.data), config.data)
  healthy = [k for k in range(population.num_clients) if k not in without]
  return scaled(population, factors).take(healthy), None if new is None else scaled(new, new_factors)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  folder = RunFolder(tmp_path_factory.mktemp('diverged') / 'run')
  # So large that measuring overflows as well, and not quite so large.
  with clients_of_runs(*clients(CONFIG, {SICK[0]: 3e38, SICK[1]: 1e30}, {SICK_NEW: 1e30})):
    return run(CONFIG, folder), folder


@pytest.fixture(scope='module')
def without(tmp_path_factory):
  """The same run of the other clients alone."""
  folder = RunFolder(tmp_path_factory.mktemp('without') / 'run')
  data = dataclasses.replace(CONFIG.data, num_clients=CLIENTS - len(SICK))
  with clients_of_runs(*clients(CONFIG, {}, {SICK_NEW: 1e30}, without=SICK)):
    return run(dataclasses.replace(CONFIG, data=data), folder)


def sick_ids(found):
  return [found.population.client_ids[k] for k in SICK]


def test_who_diverged_is_named_and_kept_in_the_largest_cluster(finished):
  found, folder = finished
  out = sick_ids(found)
  assert found.phase1.dropped_updates == len(SICK) * CONFIG.training.phase1_rounds
  for clustering in found.clusterings:
    if clustering.label == 'planted':
      assert clustering.excluded == ()  # What no method can know does not depend on updates.
      continue
    assert list(clustering.excluded) == out, clustering.label
    assert clustering.dropped_updates == len(SICK) * CONFIG.training.phase2_rounds
    (note,) = [text for text in clustering.notes if 'not finite' in text]
    assert f'({", ".join(out)})' in note
    homes = [members for members in clustering.clusters if set(members) & set(out)]
    assert len(homes) == 1 and set(out) < set(homes[0])
    healthy = [len(set(members) - set(out)) for members in clustering.clusters]
    assert len(set(homes[0]) - set(out)) == max(healthy) and min(healthy) > 0
    saved_clusters = folder.load_finished(folder.clusters(clustering.label), phase_files.Clusters)
    assert list(saved_clusters.excluded) == out


def test_their_rows_stay_visible_as_not_finite(finished):
  _, folder = finished
  for name in folder.load_finished(folder.phase1, phase_files.Phase1).signatures.values():
    vectors = files.load_rows(folder.store / name / 'vectors.npy')
    assert np.flatnonzero(~np.isfinite(vectors).all(axis=1)).tolist() == list(SICK)
  arrays = files.load_arrays(folder.arrays)
  healthy = np.setdiff1d(np.arange(CLIENTS - NEW), SICK)
  for kind in ('weights', 'updates'):
    assert np.isfinite(arrays[f'distances_{kind}'][np.ix_(healthy, healthy)]).all()
    assert np.isnan(arrays[f'distances_{kind}'][list(SICK)]).all()
    assert np.flatnonzero(np.isnan(arrays[f'embedding_{kind}']).all(axis=1)).tolist() == list(SICK)
  assert arrays['linkage_hierarchical'].shape == (len(healthy) - 1, 4)


def test_the_others_have_the_results_that_they_have_without_them(finished, without):
  found, _ = finished
  out, ids = set(sick_ids(found)), found.population.client_ids
  healthy = [k for k, client_id in enumerate(ids) if client_id not in out]
  assert [ids[k] for k in healthy] == without.population.client_ids
  for one, other in zip(found.clusterings, without.clusterings, strict=True):
    label = one.label
    assert sorted(sorted(set(c) - out) for c in one.clusters) == sorted(map(sorted, other.clusters)), label
    assert (one.threshold, one.signature) == (other.threshold, other.signature)
    own = np.array(one.evaluations['own'].client_accuracy)
    np.testing.assert_array_equal(own[healthy], other.evaluations['own'].client_accuracy, label)
    # Beside that of planted, which knows the groups of all clients.
    assert one.recovery == other.recovery, label
    assert [set(c) - out for c in joined_by(one)] == [set(c) for c in joined_by(other)]
    assert one.new_clients.fallback == other.new_clients.fallback
  (one,), (other,) = (r.clusterings[4].splits for r in (found, without))
  assert (one.round, one.verdict) == (other.round, 'split') and list(one.excluded) == sick_ids(found)
  for name in (
    'cross_similarity',
    'similarity_gap',
    'max_update_norm',
    'mean_update_norm',
    'mean_similarity',
  ):
    assert getattr(one, name) == getattr(other, name), name
  for one, other in zip(found.candidates, without.candidates, strict=True):
    assert one == other


def test_alone_they_stay_with_the_model_that_they_have(finished, without):
  found, folder = finished
  alone = np.array(found.local.evaluation.client_accuracy)
  healthy = np.setdiff1d(np.arange(CLIENTS - NEW), SICK)
  np.testing.assert_array_equal(alone[healthy], without.local.evaluation.client_accuracy)
  rounds = CONFIG.training.phase1_rounds + CONFIG.training.phase2_rounds
  assert found.local.dropped_updates == len(SICK) * rounds and without.local.dropped_updates == 0
  from tff_cluster.phases import run_experiment, session

  with session.opened(folder, folder.load_config(), run_experiment.Silent()) as experiment:
    initial = experiment.trainer.computations.model.weights
    x, y = experiment.population.test.client(SICK[1])
    # In float64, where the rows of this client do not overflow.
    logits = x.reshape(len(x), -1).astype(np.float64) @ np.float64(initial[0]) + initial[1]
    assert alone[SICK[1]] == pytest.approx(np.mean(np.argmax(logits, axis=1) == y))


def joined_by(clustering):
  """Returns for each new client the members of the clusters that it joined."""
  return [{i for row in rows for i in clustering.clusters[row]} for rows in clustering.new_clients.assigned]


def test_a_new_client_that_diverges_joins_the_largest_cluster_and_is_told(finished):
  found, _ = finished
  for clustering in found.clusterings[:5]:
    sizes = [len(members) for members in clustering.clusters]
    (row,) = clustering.new_clients.assigned[SICK_NEW]
    assert sizes[row] == max(sizes), clustering.label
    assert clustering.new_clients.fallback[SICK_NEW]


def test_losses_that_are_not_numbers_are_null_in_json(finished):
  found, folder = finished

  def refused(name):
    raise AssertionError(f'{name} is no JSON')

  for path in folder.root.rglob('*.json'):
    json.loads(path.read_text(), parse_constant=refused)
  assert found.phase1.evaluation.clients.loss is None
  assert np.isfinite(found.phase1.evaluation.global_test.loss)


def test_the_report_leaves_them_out_of_pictures_without_a_warning(finished):
  from tff_cluster.report import report

  found, folder = finished
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    # Of what earlier tests left to the garbage collector.
    warnings.simplefilter('ignore', ResourceWarning)
    page = report.write_report(folder.root).read_text()
  assert '20 updates of every client alone' in page
  assert '8 updates of Phase 1' in page and '12 updates of Phase 2 of kmeans' in page
  assert 'Scores are over the clients that were clustered: 2 clients of kmeans' in page
  assert f'({", ".join(sick_ids(found))})' in page
  # A distance matrix and a plane of each clustering (identical ones once), and a tree; none of the recursion.
  shown = {(str(sorted(c.clusters)), c.signature) for c in found.clusterings if c.splits is None}
  assert len(shown) >= 3
  assert page.count('Not shown: 2 clients whose updates were not finite.') == 2 * len(shown) + 1
  for kind in ('distances', 'embedding', 'dendrogram', 'similarities'):
    drawn = list((folder.root / 'figures').glob(f'{kind}_*.svg'))
    assert drawn and all(path.stat().st_size > 0 for path in drawn)


def test_clustering_questions_are_about_the_others(finished):
  from tff_cluster.studies.replay import study

  found, folder = finished
  signatures = study.run_signatures(folder, 'weights', 64)
  truths = study.run_truths(folder, signatures.client_ids)
  assert (
    signatures.num_clients == CLIENTS - NEW - len(SICK) and truths['group'].shape[1] == signatures.num_clients
  )
  questions = study.Questions((('l2', 'average'),), 5, (2, 8), ('mean',), True)
  rows = study.replay(signatures, questions, 0, truths).rows
  assert max(row.recovery['group'].ari for row in rows) == 1.0
  assert 'not clustered' in study.run_note(folder, 'weights', signatures.client_ids)
  assert study.run_note(folder, 'weights', found.population.client_ids) == ''


@pytest.mark.parametrize('dimension', [None, 64])
def test_clusters_start_from_the_mean_of_the_others(dimension, tmp_path):
  config = dataclasses.replace(
    CONFIG,
    data=dataclasses.replace(CONFIG.data, num_clients=6, new_clients=0),
    training=dataclasses.replace(
      CONFIG.training, phase1_rounds=1, phase2_rounds=1, sketch_dimension=dimension
    ),
    clusterings=(ClusteringConfig('kmeans', num_clusters=2), ClusteringConfig('planted')),
  )
  folder = RunFolder(tmp_path)
  saved.save_population(clients(config, {0: 1e30}, {})[0], folder.population)
  from tff_cluster.phases import client_signatures, phase1, run_experiment, session
  from tff_cluster.phases import clustering as clustering_lib

  with session.opened(folder, config, run_experiment.Silent()) as experiment:
    files.save_json(folder.config, config.to_json())
    phase1.run_phase1(experiment)
    sent = {}
    initial = experiment.trainer.computations.model.weights
    experiment.trainer.local_updates(
      initial, range(1, 6), 1, lambda k, u: sent.update({k + 1: np.float64(u)})
    )
    for clustering in config.clusterings:
      clustering_lib.run_clustering(folder, clustering, 0)
      assignment = folder.load_finished(folder.clusters(clustering.label), phase_files.Clusters).assignment
      starts = client_signatures.start_weights(experiment, assignment)
      for row, start in enumerate(starts):
        healthy = [k for k in assignment.members(row) if k != 0]
        expected = experiment.flatten(initial) + np.mean([sent[k] for k in healthy], axis=0)
        np.testing.assert_allclose(start, expected, atol=1e-6)


def test_fewer_than_two_clients_left_is_one_line_and_names_the_first(tmp_path):
  config = dataclasses.replace(
    CONFIG,
    data=dataclasses.replace(CONFIG.data, num_clients=4, new_clients=0),
    training=dataclasses.replace(CONFIG.training, phase1_rounds=1, phase2_rounds=1),
    clusterings=(ClusteringConfig('kmeans', num_clusters=2),),
  )
  population, _ = clients(config, dict.fromkeys((1, 2, 3), 1e30), {})
  first = population.client_ids[1]
  for _ in range(2):  # Also where the signatures are there already.
    with (
      clients_of_runs(population),
      pytest.raises(
        InputError, match=f'client {first}: .* 2 clients more.* fewer than 2 clients are left'
      ) as caught,
    ):
      run(config, RunFolder(tmp_path / 'run'))
    assert 'use a smaller learning_rate' in str(caught.value)
