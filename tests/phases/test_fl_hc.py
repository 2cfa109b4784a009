"""FL+HC (Briggs et al. 2020) on the common phases: clusters go on from the global model, and T is chosen by training."""

import numpy as np
import pytest
from scipy.cluster import hierarchy

from tests.phases.conftest import CLIENTS, PHASE1, PHASE2, PLAIN
from tests.phases.whole_run import WholeRun, changed
from tff_cluster.experiment.config import ClusteringConfig, EvaluationConfig, ExperimentConfig
from tff_cluster.phases import evaluation, threshold_choice

pytestmark = pytest.mark.tensorflow

TARGET = 0.4
CONFIG = changed(
  PLAIN,
  {'partition': 'label_permuted'},
  {'cohort_fraction': 0.5, 'cluster_start': 'global_model'},
  clusterings=(
    ClusteringConfig('hierarchical', signature='updates', linkage='ward', distance_threshold='validation'),
    ClusteringConfig('hierarchical', name='everybody', signature='updates', distance_threshold='1e9'),
  ),
  evaluation=EvaluationConfig(target_accuracy=TARGET),
)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  return WholeRun(CONFIG, tmp_path_factory.mktemp('fl_hc') / 'run')


def test_a_cluster_of_everybody_that_starts_from_the_global_model_is_the_baseline(finished):
  everybody, baseline = finished.clustering('everybody'), finished.results.baseline
  for name, column in everybody.history.to_json().items():
    assert column == baseline.history.to_json()[name][PHASE1:], name
  assert everybody.evaluations['own'].client_accuracy == baseline.evaluation.client_accuracy
  # Signatures are the updates only, so that no device sends its weights again.
  assert list(finished.phase1.signatures) == ['updates']


def test_the_cuts_are_scipys_at_the_counts_that_were_asked(finished):
  candidates = finished.clustering('hierarchical').choice.candidates
  merges = hierarchy.linkage(finished.signatures('updates').astype(np.float64), 'ward')
  cut = [len(set(hierarchy.fcluster(merges, each.threshold, 'distance'))) for each in candidates]
  counts = [candidate.num_clusters for candidate in candidates]
  assert cut == counts == threshold_choice.counts(CLIENTS) == [1, 2, 3, 4, 6, 8]


def test_the_best_cut_on_validation_rows_is_trained_and_test_rows_choose_nothing(finished):
  clustering, population = finished.clustering('hierarchical'), finished.population
  choice = clustering.choice
  validation = [round(c.validation_accuracy, 9) for c in choice.candidates]
  assert choice.chosen == validation.index(max(validation))
  test = [round(c.test_accuracy, 9) for c in choice.candidates]
  assert choice.best_on_test == test.index(max(test))
  chosen = choice.candidates[choice.chosen]
  assert (clustering.num_clusters, clustering.threshold) == (chosen.num_clusters, chosen.threshold)
  # The first round of Phase 2 is the round that the choice looked at.
  assert clustering.history.test_accuracy[0] == chosen.test_accuracy
  assert clustering.history.share_at_target[0] == chosen.share_at_target
  # Groups permute the labels: with one model for both nobody is served.
  assert chosen.num_clusters > 1
  for row in finished.membership('hierarchical'):
    assert population.truths['group'][:, row > 0].any(axis=1).sum() == 1


def test_the_cost_counts_the_update_round_the_cuts_that_were_not_kept_and_measuring_all_of_them(finished):
  clustering = finished.clustering('hierarchical')
  sizes = [len(members) for members in clustering.clusters]
  rounds = sum(max(size // 2, 1) for size in sizes) * PHASE2
  others = clustering.choice.cost.client_rounds
  assert clustering.cost.client_rounds == rounds + others + CLIENTS
  # Every client measures its model of each cut on the 16 rows that it validates on.
  cuts = len(clustering.choice.candidates)
  assert clustering.cost.rows_forward == clustering.choice.cost.rows_forward == cuts * CLIENTS * 16
  assert clustering.cost.models_down == clustering.cost.client_rounds + cuts * CLIENTS
  assert clustering.cost.models_up == clustering.cost.client_rounds
  assert others >= sum(threshold_choice.counts(CLIENTS)) / 2 - max(len(sizes), CLIENTS / 2)
  # Given again the choice trains nothing and has the same bits.
  again = WholeRun(CONFIG, finished.folder.root)
  assert again.done.trained == 0 and again.results.digest == finished.results.digest


def test_a_client_exactly_at_the_target_has_reached_it(finished):
  everybody = finished.clustering('everybody')
  share = np.mean(np.array(everybody.evaluations['own'].client_accuracy) >= TARGET)
  assert everybody.history.share_at_target[-1] == share
  assert 0 < share < 1

  class At99:
    config = ExperimentConfig(evaluation=EvaluationConfig(target_accuracy=0.99))

  exactly = np.array([[99 / 100, 198 / 200, 0.9899]])
  assert evaluation.history(At99(), np.array([1]), exactly, exactly).share_at_target == [2 / 3]


@pytest.mark.parametrize(
  ('accuracies', 'position'),
  [
    ([0.9, 0.976, 0.9760000000000001, 0.97], 1),
    # One row of one of a million clients with a thousand rows each.
    ([0.5, 0.5 + 1e-9], 1),
  ],
)
def test_rounding_of_means_makes_no_finer_cut_better(accuracies, position):
  assert threshold_choice.coarsest_best(accuracies) == position
