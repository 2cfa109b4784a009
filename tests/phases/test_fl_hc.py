"""FL+HC (Briggs et al. 2020) on the common phases: clusters go on from the global model, and T is chosen by training."""

import numpy as np
import pytest
from scipy.cluster import hierarchy

from tests.phases.conftest import CLIENTS, PHASE1, PHASE2, PLAIN
from tests.phases.whole_run import WholeRun, changed, estimated
from tff_cluster.experiment import phase_files
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
# After one round of training one cluster is still ahead of the two groups, after nine it is not.
LATE = changed(
  CONFIG,
  {'partition': 'rotated'},
  {'phase1_rounds': 1, 'phase2_rounds': 8},
  clusterings=tuple(
    ClusteringConfig('hierarchical', name, signature='updates', linkage='ward', distance_threshold=threshold)
    for name, threshold in (('first', 'validation'), ('third', 'validation:3'), ('last', 'validation:last'))
  ),
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


def test_with_sketches_the_start_of_every_cut_costs_a_training_of_each_member(tmp_path):
  (chosen, _) = CONFIG.clusterings
  training = {
    'phase2_rounds': 1,
    'cluster_start': 'members_mean',
    'sketch_dimension': 64,
    'cohort_fraction': 1.0,
  }
  run = WholeRun(changed(CONFIG, training=training, clusterings=(chosen,)), tmp_path)
  choice = run.clustering('hierarchical').choice
  # A training for the start of each of its clusters and one for the round: all clients twice, of each cut but the one that is kept.
  assert choice.cost.client_rounds == 2 * CLIENTS * (len(choice.candidates) - 1)
  assert run.clustering('hierarchical').cost.client_rounds == choice.cost.client_rounds + 3 * CLIENTS


@pytest.fixture(scope='module')
def late(tmp_path_factory):
  return WholeRun(LATE, tmp_path_factory.mktemp('late') / 'run')


def test_a_late_choice_takes_the_cut_that_is_best_then_and_tells_what_one_round_would_have_taken(late):
  choices = {name: late.clustering(name).choice for name in ('first', 'third', 'last')}
  assert [choice.rounds for choice in choices.values()] == [1, 3, 8]
  counts = {name: [cut.num_clusters for cut in choice.candidates] for name, choice in choices.items()}
  assert counts == {'first': [1, 2, 3, 4, 6, 8], 'third': [1, 2, 4, 8], 'last': [1, 2, 4, 8]}
  assert choices['first'].best_after_one is None
  first = dict(zip(counts['first'], choices['first'].candidates, strict=True))
  for name in ('third', 'last'):
    choice = choices[name]
    validation = [round(cut.validation_accuracy, 9) for cut in choice.candidates]
    assert choice.chosen == validation.index(max(validation))
    early = [round(first[count].validation_accuracy, 9) for count in counts[name]]
    assert choice.best_after_one == early.index(max(early))
    # A choice looks at the round that it was asked to look at.
    chosen, history = choice.candidates[choice.chosen], late.clustering(name).history
    assert chosen.test_accuracy == history.test_accuracy[choice.rounds - 1]
    assert chosen.validation_accuracy == history.validation_accuracy[choice.rounds - 1]
  taken = {name: late.clustering(name).num_clusters for name in choices}
  assert taken == {name: counts[name][choice.chosen] for name, choice in choices.items()}
  # The planted groups are worth a cluster each after all rounds, and are not yet after one.
  assert taken['first'] < taken['last'] == LATE.data.num_groups
  assert late.clustering('last').recovery['group'].ari == 1.0
  assert late.clustering('last').notes[-1].endswith('on validation rows after 8 rounds')


@pytest.mark.parametrize(('name', 'rounds'), [('third', 3), ('last', 8)])
def test_a_late_choice_counts_every_round_of_the_cuts_that_were_not_kept_and_trains_none_twice(
  late, name, rounds
):
  clustering = late.clustering(name)
  merges = hierarchy.linkage(late.signatures('updates').astype(np.float64), 'ward')
  spent = []
  for cut in clustering.choice.candidates:
    sizes = np.bincount(hierarchy.fcluster(merges, cut.threshold, 'distance'))[1:]
    spent.append(rounds * sum(max(size // 2, 1) for size in sizes))
  kept = spent.pop(clustering.choice.chosen)
  assert clustering.choice.cost.client_rounds == sum(spent)
  # Validation rows are looked at once, in the round of the choice.
  assert clustering.choice.cost.rows_forward == 4 * CLIENTS * 16
  assert clustering.cost.client_rounds == kept // rounds * 8 + sum(spent) + CLIENTS
  phase2 = late.folder.load_finished(late.folder.phase2('last'), phase_files.Phase2)
  assert phase2.timing.client_rounds_trained == 0
  again = WholeRun(LATE, late.folder.root)
  assert again.done.trained == 0 and again.results.digest == late.results.digest


def test_an_estimate_counts_the_rounds_of_each_cut_once(tmp_path):
  config = changed(LATE, clusterings=LATE.clusterings[2:])
  # FedAvg has nine rounds of 4 clients. All 8 send an update. Cuts into 1, 2 and 4 train 4 clients a round, that into 8 all of them.
  assert estimated(config, tmp_path / 'run') == (9 * 4 + 8 + 8 * (4 + 4 + 4 + 8), 0)


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
