"""CFL (Sattler et al. 2019): the recursion trains, tests and splits as Algorithm 2 says, and goes on to the same bits."""

import numpy as np
import pytest

from tests.phases.conftest import CLIENTS, PLAIN
from tests.phases.whole_run import Stopped, WholeRun, accuracy, accuracy_of, changed, opened
from tff_cluster.base.errors import InputError
from tff_cluster.experiment.config import ClusteringConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import run_experiment
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

PHASE1, LAST, PAUSE = 6, 20, 4
CFL = ClusteringConfig('bipartition', stationary_norm=0.3, stopping_norm=0.45, rounds_before_split=PAUSE)
CONFIG = changed(
  PLAIN,
  {'partition': 'label_permuted', 'validation_fraction': 0.1},
  {'phase1_rounds': PHASE1, 'phase2_rounds': LAST - PHASE1, 'batch_size': 20},
  clusterings=(CFL,),
)


def with_norms(data=(), rounds=(PHASE1, LAST - PHASE1), **norms):
  """Returns the experiment with other norms or guards."""
  training = {'phase1_rounds': rounds[0], 'phase2_rounds': rounds[1]}
  return changed(CONFIG, data, training, clusterings=(CFL.changed(**norms),))


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  return WholeRun(CONFIG, tmp_path_factory.mktemp('cfl') / 'run')


def by_hand(folder):
  """Algorithm 2 once more, on the trainer alone: its tests, and each client's last model."""
  tests, models = [], {}
  with opened(folder, CONFIG) as experiment:
    trainer = experiment.trainer

    def cluster(members, weights, number, first_test):
      state = trainer.start(weights)
      while number < LAST:
        number += 1
        sent = np.empty((len(members), trainer.computations.model.num_parameters))
        trainer.local_updates(trainer.weights(state), members, number, sent.__setitem__)
        updates = dict(zip(members, sent, strict=True))
        state, _ = trainer.round(state, np.array(members), number)
        rows = experiment.population.train.counts[members]
        stationary = np.linalg.norm(rows @ sent / rows.sum()) < CFL.options.stationary_norm
        if number < first_test or number == LAST or len(members) == 1 or not stationary:
          continue
        if np.linalg.norm(sent, axis=1).max() < CFL.options.stopping_norm:
          tests.append((number, members, None))
          first_test = LAST
          continue
        halves = best_halves(members, updates)
        tests.append((number, members, halves))
        for half in halves:
          cluster(half, trainer.weights(state), number, number + CFL.options.rounds_before_split)
        return
      models.update(dict.fromkeys(members, trainer.weights(state)))

    cluster(list(range(CLIENTS)), trainer.computations.model.weights, 0, PHASE1)
  return tests, models


def best_halves(members, updates):
  """All bi-partitions of equation 6."""

  def cosine(a, b):
    return updates[a] @ updates[b] / np.linalg.norm(updates[a]) / np.linalg.norm(updates[b])

  found = []
  for bits in range(1, 2 ** (len(members) - 1)):
    other = [k for i, k in enumerate(members) if bits >> i & 1]
    one = [k for k in members if k not in other]
    found.append((max(cosine(a, b) for a in one for b in other), sorted([one, other])))
  return min(found)[1]


def test_the_recursion_is_algorithm_2(finished, tmp_path):
  tests, models = by_hand(RunFolder(tmp_path))
  (clustering,), ids = finished.results.clusterings, finished.population.client_ids

  def positions(clients):
    return [ids.index(client_id) for client_id in clients]

  told = [
    (s.round, positions(s.cluster), sorted(map(positions, s.halves)) if s.halves else None)
    for s in clustering.splits
  ]
  assert told == sorted(tests, key=lambda test: (test[0], test[1]))
  assert any(halves for *_, halves in tests) and any(halves is None for *_, halves in tests)
  each_round = files.load_arrays(finished.folder.client_accuracy('bipartition'))['test']
  assert each_round.shape == (LAST, CLIENTS)
  own = clustering.evaluations['own'].client_accuracy
  np.testing.assert_allclose(each_round[-1], own, rtol=1e-6)
  assert [accuracy(models[k], finished.population.test, k) for k in range(CLIENTS)] == pytest.approx(own)


def test_the_planted_groups_are_found_and_every_test_says_what_it_decided_on(finished):
  (clustering,) = finished.results.clusterings
  assert clustering.recovery['group'].ari == 1.0
  assert [split.verdict for split in clustering.splits] == ['split', 'stopped', 'stopped']
  baseline = finished.results.baseline.evaluation
  assert accuracy_of(clustering.evaluations['own']) > accuracy_of(baseline) + 0.3
  matrices = files.load_arrays(finished.folder.arrays)
  for number, split in enumerate(clustering.splits):
    similarity = matrices[f'similarity_bipartition_{number:03d}']
    assert similarity.shape == (len(split.cluster),) * 2
    np.testing.assert_allclose(np.diag(similarity), 1.0, atol=1e-6)
    assert split.mean_update_norm < CFL.options.stationary_norm
    assert (split.max_update_norm >= CFL.options.stopping_norm) == (split.verdict != 'stopped')
    # The mean of vectors is no longer than the longest of them.
    assert split.mean_update_norm <= split.max_update_norm
    if split.halves:
      rows, columns = ([split.cluster.index(i) for i in half] for half in split.halves)
      across = similarity[np.ix_(rows, columns)].max()
      assert split.cross_similarity == pytest.approx(across, abs=1e-6)


def test_rounds_before_the_first_split_are_the_baselines_and_nothing_else_is_sent(finished):
  results, (clustering,) = finished.results, finished.results.clusterings
  each_round = files.load_arrays(finished.folder.arrays)['client_accuracy_bipartition']
  first = clustering.splits[0].round
  baseline = results.baseline.history.test_accuracy
  np.testing.assert_allclose(each_round[:first].mean(axis=1), baseline[:first], rtol=1e-6)
  np.testing.assert_allclose(each_round[PHASE1:].mean(axis=1), clustering.history.test_accuracy, rtol=1e-6)
  assert clustering.history.rounds == list(range(PHASE1 + 1, LAST + 1))
  assert clustering.cost.client_rounds == CLIENTS * (LAST - PHASE1)


class Interrupting(run_experiment.Silent):
  """Raises at the n-th sign of progress."""

  def __init__(self, left):
    self.left = left

  def update(self, n=1, **figures):
    self.left -= 1
    if self.left < 0:
      raise Stopped


def test_interrupted_again_and_again_it_goes_on_to_the_same_bits(finished, tmp_path):
  for moment in (3, 9, 15, 26, 40):
    with pytest.raises(Stopped):
      WholeRun(CONFIG, tmp_path / 'run', progress=Interrupting(moment))
  again = WholeRun(CONFIG, tmp_path / 'run')
  assert again.results.digest == finished.results.digest
  assert again.done.trained < finished.done.trained


def test_a_split_that_a_guard_forbids_is_tested_again_and_who_is_never_stationary_is_never_tested(
  finished, tmp_path
):
  others = (CFL.changed(min_cluster_size=5), CFL.changed(name='restless', stationary_norm=1e-6))
  run = WholeRun(changed(CONFIG, clusterings=others), tmp_path, store_dir=finished.store)
  guarded, restless = run.results.clusterings
  assert guarded.num_clusters == restless.num_clusters == 1
  moments = range(PHASE1, LAST, PAUSE)
  assert [(s.round, s.verdict) for s in guarded.splits] == [(number, 'kept') for number in moments]
  assert guarded.splits[0].halves == finished.results.clusterings[0].splits[0].halves
  assert 'min_cluster_size' in guarded.splits[0].reason and 'min_cluster_size' in ' '.join(guarded.notes)
  assert restless.splits == [] and 'stationary_norm' in restless.notes[0]
  assert restless.history.test_accuracy == run.results.baseline.history.test_accuracy[PHASE1:]


def test_norms_that_stop_groups_in_conflict_are_contradicted_and_others_proposed(tmp_path):
  """The first test finds no update as long as eps_2, which is far too large."""
  conflict, rounds = {'num_clients': 12, 'partition': 'label_swapped'}, (20, 4)
  stopped = WholeRun(with_norms(conflict, rounds, stopping_norm=100.0), tmp_path / 'run')
  (clustering,) = stopped.results.clusterings
  (test,) = clustering.splits
  assert (test.verdict, clustering.num_clusters) == ('stopped', 1)
  assert test.reason.startswith('no client’s update is longer than stopping_norm=100; the longest is 0.')
  found = test.two_kinds
  groups = np.argmax(stopped.results.population.truths['group'], axis=0)
  position = {client_id: k for k, client_id in enumerate(stopped.population.client_ids)}
  assert [len({groups[position[i]] for i in half}) for half in found.halves] == [1, 1]
  assert found.words in clustering.notes
  assert f'stopping_norm={found.stopping_norm:g}' in found.words
  # What is proposed splits, there and then, into what was seen.
  proposed = with_norms(
    conflict, rounds, stationary_norm=found.stationary_norm, stopping_norm=found.stopping_norm
  )
  again = WholeRun(proposed, tmp_path / 'split', store_dir=stopped.store).results
  (split, *_) = again.clusterings[0].splits
  assert (split.verdict, split.round, split.halves) == ('split', test.round, found.halves)


def test_norms_that_stop_clients_of_one_kind_are_not_contradicted(tmp_path):
  one_kind = {'num_clients': 12, 'partition': 'iid', 'num_groups': 4}
  config = with_norms(one_kind, (PHASE1, 1), stationary_norm=9.0, stopping_norm=100.0)
  (clustering,) = WholeRun(config, tmp_path).results.clusterings
  (test,) = clustering.splits
  assert (test.verdict, test.two_kinds, clustering.num_clusters, clustering.notes) == ('stopped', None, 1, [])


def test_the_table_of_times_has_all_that_was_trained_and_other_clusterings_change_nothing(
  tmp_path, monkeypatch
):
  from tff_cluster.federated import trainer as trainer_lib

  trained = []

  def counted(name, position):
    original = getattr(trainer_lib.Trainer, name)

    def count(self, *arguments, **options):
      trained.append(len(arguments[position]))
      return original(self, *arguments, **options)

    monkeypatch.setattr(trainer_lib.Trainer, name, count)

  counted('round', 1)
  counted('local_updates', 1)
  alone = with_norms(rounds=(2, 3), stationary_norm=9.0, stopping_norm=0.001, rounds_before_split=1)
  chosen = ClusteringConfig('hierarchical', distance_threshold='validation')
  both = WholeRun(changed(alone, clusterings=(*alone.clusterings, chosen)), tmp_path / 'run')
  rows = {row.name: row for row in both.results.timing}
  # Phase 1 keeps every client's own weights: as a client's round they come with the last round, and are no other one.
  own_weights = CLIENTS
  assert (
    sum(r.client_rounds_trained for r in rows.values()) == sum(trained) - own_weights == both.done.trained
  )
  recursion = both.clustering('bipartition')
  # All clients train in every round, of which Phase 1 asked for its own; at a test their updates are made once more.
  again = sum(len(test.cluster) for test in recursion.splits)
  assert again > CLIENTS and rows['Clustering, bipartition'].client_rounds_asked == CLIENTS * 3 + again
  phase2 = rows['Phase 2, bipartition']
  assert (phase2.client_rounds_asked, phase2.client_rounds_trained) == (0, 0)
  assert rows['Clustering, hierarchical'].client_rounds_trained > 0
  assert both.clustering('hierarchical').splits is None
  (by_itself,) = WholeRun(alone, tmp_path / 'alone', store_dir=both.store).results.clusterings
  assert by_itself == recursion


def test_all_clients_must_take_part():
  with pytest.raises(InputError, match=r'^cohort_fraction=0\.5: bipartition .* needs 1\.0'):
    changed(CONFIG, training={'cohort_fraction': 0.5}).validated()
