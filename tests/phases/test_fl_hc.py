"""FL+HC (Briggs et al. 2020) on the common phases: clusters go on from the global model, and T is chosen by training."""

import dataclasses

import numpy as np
import pytest
from scipy.cluster import hierarchy

from tff_cluster.data import saved
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import threshold_choice
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

CLIENTS, PHASE1, PHASE2 = 8, 3, 4
TARGET = 0.5
CONFIG = ExperimentConfig(
  DataConfig(num_clients=CLIENTS, rows_per_client=80, validation_fraction=0.2, num_groups=2, partition='label_permuted'),
  TrainingConfig(
    model='logistic', phase1_rounds=PHASE1, phase2_rounds=PHASE2, batch_size=10, cohort_fraction=0.5,
    cluster_start='global_model',
  ),
  (
    ClusteringConfig('hierarchical', signature='updates', linkage='ward', distance_threshold='validation'),
    ClusteringConfig('hierarchical', name='everybody', signature='updates', distance_threshold='1e9'),
  ),
  EvaluationConfig(target_accuracy=TARGET),
)  # fmt: skip


def run(config, path):
  from tff_cluster.phases import run_experiment

  return run_experiment.run_experiment(config, path)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  path = tmp_path_factory.mktemp('fl_hc') / 'run'
  return run(CONFIG, path), RunFolder(path)


def signatures_of(folder):
  artifact = folder.store / files.load_json(folder.phase1)['signatures']['updates']
  return np.array(files.load_rows(artifact / 'vectors.npy'))


def test_a_cluster_of_everybody_that_starts_from_the_global_model_is_the_baseline(finished):
  (_, everybody), baseline = finished[0].results['clusterings'], finished[0].results['baseline']
  for name in ('rounds', 'test_accuracy', 'validation_accuracy', 'share_at_target'):
    assert everybody['history'][name] == baseline['history'][name][PHASE1:]
  assert everybody['evaluations']['own']['client_accuracy'] == baseline['evaluation']['client_accuracy']


def test_signatures_are_the_updates_only_and_no_device_sends_its_weights_again(finished):
  assert list(files.load_json(finished[1].phase1)['signatures']) == ['updates']


def test_the_cuts_are_scipys_at_the_counts_that_were_asked(finished):
  choice = finished[0].results['clusterings'][0]['choice']
  merges = hierarchy.linkage(signatures_of(finished[1]).astype(np.float64), 'ward')
  for candidate in choice['candidates']:
    labels = hierarchy.fcluster(merges, candidate['threshold'], 'distance')
    assert len(set(labels)) == candidate['num_clusters']
  assert (
    [c['num_clusters'] for c in choice['candidates']]
    == threshold_choice.counts(CLIENTS)
    == [1, 2, 3, 4, 6, 8]
  )


def test_the_best_cut_on_validation_rows_is_trained_and_test_rows_choose_nothing(finished):
  clustering, population = (
    finished[0].results['clusterings'][0],
    saved.load_population(finished[1].population),
  )
  choice = clustering['choice']
  validation = [round(c['validation_accuracy'], 9) for c in choice['candidates']]
  assert choice['chosen'] == validation.index(max(validation))
  chosen = choice['candidates'][choice['chosen']]
  assert clustering['num_clusters'] == chosen['num_clusters']
  assert clustering['threshold'] == chosen['threshold']
  # The first round of Phase 2 is the round that the choice looked at.
  assert clustering['history']['test_accuracy'][0] == chosen['test_accuracy']
  assert clustering['history']['share_at_target'][0] == chosen['share_at_target']
  # Groups permute the labels: with one model for both nobody is served.
  group = dict(zip(population.client_ids, population.truths['group'].argmax(axis=0), strict=True))
  assert chosen['num_clusters'] > 1
  assert all(len({group[member] for member in members}) == 1 for members in clustering['clusters'])
  test = [round(c['test_accuracy'], 9) for c in choice['candidates']]
  assert choice['best_on_test'] == test.index(max(test))


def test_the_ledger_counts_the_update_round_and_the_cuts_that_were_not_kept(finished):
  clustering = finished[0].results['clusterings'][0]
  sizes = [len(members) for members in clustering['clusters']]
  rounds = sum(max(size // 2, 1) for size in sizes) * PHASE2
  others = clustering['choice']['other_client_rounds']
  assert clustering['ledger']['client_rounds'] == rounds + others + CLIENTS
  assert others >= sum(threshold_choice.counts(CLIENTS)) / 2 - max(len(sizes), CLIENTS / 2)


def test_share_at_target_counts_clients_from_the_counts(finished):
  results = finished[0].results
  own = np.array(results['clusterings'][1]['evaluations']['own']['client_accuracy'])
  assert results['clusterings'][1]['history']['share_at_target'][-1] == np.mean(own >= TARGET)
  assert 0 < np.mean(own >= TARGET) < 1


def test_a_client_exactly_at_the_target_has_reached_it():
  from tff_cluster.phases import evaluation

  class At99:
    config = ExperimentConfig(evaluation=EvaluationConfig(target_accuracy=0.99))

  accuracy = np.array([[99 / 100, 198 / 200, 0.9899]])
  history = evaluation.history(At99(), np.array([1]), accuracy, accuracy)
  assert history['share_at_target'] == [2 / 3]


def test_given_again_the_choice_trains_nothing_and_has_the_same_bits(finished):
  again = run(CONFIG, finished[1].root)
  assert again.trained == 0 and again.results['digest'] == finished[0].results['digest']


def test_without_planted_groups_of_equal_cuts_the_coarsest_is_kept(tmp_path):
  data = dataclasses.replace(CONFIG.data, partition='iid', num_groups=4, rows_per_client=40)
  config = dataclasses.replace(CONFIG, data=data, clusterings=CONFIG.clusterings[:1])
  results = run(config, tmp_path / 'iid').results
  candidates = results['clusterings'][0]['choice']['candidates']
  chosen = candidates[results['clusterings'][0]['choice']['chosen']]
  # Of equal ones the coarsest is kept.
  better = [c for c in candidates if c['validation_accuracy'] >= chosen['validation_accuracy']]
  assert chosen == better[0]
  assert saved.load_population(RunFolder(tmp_path / 'iid').population).truths == {}


@pytest.mark.parametrize(
  ('accuracies', 'position'),
  [
    ([0.9, 0.976, 0.9760000000000001, 0.97], 1),
    ([0.9760000000000001, 0.976], 0),
    # One row of one of a million clients with a thousand rows each.
    ([0.5, 0.5 + 1e-9], 1),
    ([0.1 + 0.2, 0.3, 0.2], 0),
    ([1.0], 0),
  ],
)
def test_rounding_of_means_makes_no_finer_cut_better(accuracies, position):
  assert threshold_choice.coarsest_best(accuracies) == position
