"""CFL (Sattler et al. 2019): the recursion trains, tests and splits as Algorithm 2 says, and goes on to the same bits."""

import dataclasses

import numpy as np
import pytest

from tests.phases.whole_run import Stopped
from tff_cluster.base.errors import InputError
from tff_cluster.data import saved
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import run_experiment
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

CLIENTS, PHASE1, LAST, PAUSE = 8, 6, 20, 4
CFL = ClusteringConfig('bipartition', stationary_norm=0.3, stopping_norm=0.45, rounds_before_split=PAUSE)
CONFIG = ExperimentConfig(
  DataConfig(num_clients=CLIENTS, rows_per_client=80, num_groups=2, partition='label_permuted'),
  TrainingConfig(model='logistic', phase1_rounds=PHASE1, phase2_rounds=LAST - PHASE1, batch_size=20),
  (CFL,),
)


def run(path, config=CONFIG, progress=None):
  return run_experiment.run_experiment(config, path, progress=progress)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  path = tmp_path_factory.mktemp('cfl') / 'run'
  return run(path), RunFolder(path)


def updates_of(trainer, weights, members, number):
  found = {}
  trainer.local_updates(weights, members, number, lambda i, u: found.update({members[i]: u.astype(float)}))
  return found


def by_hand(folder, config=CONFIG):
  """Algorithm 2 once more, on the trainer alone: its tests, and each client's last model."""
  from tff_cluster.phases import session

  cfl, tests, models = config.clusterings[0], [], {}
  with session.opened(folder, config, run_experiment.Silent()) as experiment:
    trainer = experiment.trainer

    def cluster(members, weights, number, first_test):
      state = trainer.start(weights)
      while number < LAST:
        number += 1
        updates = updates_of(trainer, trainer.weights(state), members, number)
        state, _ = trainer.round(state, np.array(members), number)
        rows = experiment.population.train.counts[members]
        mean = sum(n * updates[k] for n, k in zip(rows, members, strict=True)) / rows.sum()
        if number < first_test or number == LAST or len(members) == 1:
          continue
        if np.linalg.norm(mean) >= cfl.options.stationary_norm:
          continue
        if max(np.linalg.norm(u) for u in updates.values()) < cfl.options.stopping_norm:
          tests.append((number, members, None))
          first_test = LAST
          continue
        halves = best_halves(members, updates)
        tests.append((number, members, halves))
        for half in halves:
          cluster(half, trainer.weights(state), number, number + cfl.options.rounds_before_split)
        return
      models.update(dict.fromkeys(members, trainer.weights(state)))

    cluster(list(range(CLIENTS)), trainer.computations.model.weights, 0, config.training.phase1_rounds)
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
  done, folder = finished
  tests, models = by_hand(RunFolder(tmp_path))
  splits = done.results.clusterings[0].splits
  ids = done.results.population.client_ids
  told = [
    (
      s.round,
      [ids.index(i) for i in s.cluster],
      sorted([ids.index(i) for i in half] for half in s.halves) if s.halves else None,
    )
    for s in splits
  ]
  assert told == sorted(tests, key=lambda test: (test[0], test[1]))
  assert any(halves for *_, halves in tests) and any(halves is None for *_, halves in tests)
  population = saved.load_population(folder.population)
  accuracy = files.load_arrays(folder.client_accuracy('bipartition'))['test']
  assert accuracy.shape == (LAST, CLIENTS)
  own = done.results.clusterings[0].evaluations['own'].client_accuracy
  np.testing.assert_allclose(accuracy[-1], own, rtol=1e-6)
  for k in range(CLIENTS):
    x, y = population.test.client(k)
    kernel, bias = models[k]
    predicted = np.argmax(x.reshape(len(x), -1).astype(np.float64) / 255 @ kernel + bias, axis=1)
    assert np.mean(predicted == y) == pytest.approx(own[k])


def test_the_planted_groups_are_found_and_the_clients_gain(finished):
  (clustering,) = finished[0].results.clusterings
  assert clustering.recovery['group'].ari == 1.0
  assert [split.verdict for split in clustering.splits] == ['split', 'stopped', 'stopped']
  own = clustering.evaluations['own'].clients.mean_client_accuracy
  assert own > finished[0].results.baseline.evaluation.clients.mean_client_accuracy + 0.3


def test_every_test_says_what_it_decided_on(finished):
  (clustering,) = finished[0].results.clusterings
  matrices = files.load_arrays(finished[1].arrays)
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
  results, (clustering,) = finished[0].results, finished[0].results.clusterings
  accuracy = files.load_arrays(finished[1].arrays)['client_accuracy_bipartition']
  first = clustering.splits[0].round
  baseline = results.baseline.history.test_accuracy
  np.testing.assert_allclose(accuracy[:first].mean(axis=1), baseline[:first], rtol=1e-6)
  np.testing.assert_allclose(accuracy[PHASE1:].mean(axis=1), clustering.history.test_accuracy, rtol=1e-6)
  assert clustering.history.rounds == list(range(PHASE1 + 1, LAST + 1))
  assert clustering.ledger.client_rounds == CLIENTS * (LAST - PHASE1)


class Interrupting(run_experiment.Silent):
  """Raises at the n-th sign of progress."""

  def __init__(self, left):
    self.left = left

  def update(self, n=1, **figures):
    self.left -= 1
    if self.left < 0:
      raise Stopped


@pytest.mark.parametrize('moment', [3, 9, 15, 26, 40])
def test_interrupted_anywhere_it_goes_on_to_the_same_bits(moment, finished, tmp_path):
  with pytest.raises(Stopped):
    run(tmp_path / 'run', progress=Interrupting(moment))
  again = run(tmp_path / 'run')
  assert again.results.digest == finished[0].results.digest
  assert again.trained < finished[0].trained


def test_a_split_that_a_guard_forbids_is_tested_again(finished, tmp_path):
  guarded = CFL.changed(min_cluster_size=5)
  done = run(tmp_path / 'run', dataclasses.replace(CONFIG, clusterings=(guarded,)))
  (clustering,) = done.results.clusterings
  assert clustering.num_clusters == 1
  assert [(s.round, s.verdict) for s in clustering.splits] == [
    (number, 'kept') for number in range(PHASE1, LAST, PAUSE)
  ]
  first = finished[0].results.clusterings[0].splits[0]
  assert clustering.splits[0].halves == first.halves
  assert 'min_cluster_size' in clustering.splits[0].reason and 'min_cluster_size' in ' '.join(
    clustering.notes
  )


def test_clients_that_agree_are_not_split(tmp_path):
  iid = dataclasses.replace(CONFIG, data=DataConfig(num_clients=CLIENTS, rows_per_client=80, partition='iid'))
  (clustering,) = run(tmp_path / 'run', iid).results.clusterings
  assert clustering.num_clusters == 1
  assert [split.verdict for split in clustering.splits] == ['stopped']


def test_a_cluster_that_is_never_stationary_is_never_tested(tmp_path):
  restless = CFL.changed(stationary_norm=1e-6)
  done = run(tmp_path / 'run', dataclasses.replace(CONFIG, clusterings=(restless,)))
  (clustering,) = done.results.clusterings
  assert clustering.splits == [] and clustering.num_clusters == 1
  assert 'stationary_norm' in clustering.notes[0]
  baseline = done.results.baseline
  assert clustering.history.test_accuracy == baseline.history.test_accuracy[PHASE1:]


def stopped_by_its_norms(data, phase1=PHASE1):
  """A run whose first test finds no update as long as eps_2, which is far too large."""
  training = dataclasses.replace(CONFIG.training, phase1_rounds=phase1, phase2_rounds=4)
  return ExperimentConfig(data, training, (CFL.changed(stopping_norm=100.0),))


def test_norms_that_stop_groups_in_conflict_are_contradicted_and_others_proposed(tmp_path):
  data = dataclasses.replace(CONFIG.data, num_clients=12, partition='label_swapped')
  config = stopped_by_its_norms(data, phase1=20)
  results = run(tmp_path / 'run', config).results
  (clustering,) = results.clusterings
  (test,) = clustering.splits
  assert (test.verdict, clustering.num_clusters) == ('stopped', 1)
  assert test.reason.startswith('no client’s update is longer than stopping_norm=100; the longest is 0.')
  found = test.two_kinds
  groups = np.argmax(results.population.truths['group'], axis=0)
  position = {client_id: k for k, client_id in enumerate(results.population.client_ids)}
  assert [len({groups[position[i]] for i in half}) for half in found.halves] == [1, 1]
  assert found.words in clustering.notes
  assert f'stopping_norm={found.stopping_norm:g}' in found.words
  # What is proposed splits, there and then, into what was seen.
  proposed = {name: getattr(found, name) for name in ('stationary_norm', 'stopping_norm')}
  changed = dataclasses.replace(config, clusterings=(CFL.changed(**proposed),))
  (split, *_) = run(tmp_path / 'split', changed).results.clusterings[0].splits
  assert (split.verdict, split.round, split.halves) == ('split', test.round, found.halves)


def test_norms_that_stop_clients_of_one_kind_are_not_contradicted(tmp_path):
  data = DataConfig(num_clients=12, rows_per_client=80, partition='iid')
  (clustering,) = run(tmp_path / 'run', stopped_by_its_norms(data, phase1=20)).results.clusterings
  (test,) = clustering.splits
  assert test.verdict == 'stopped' and test.two_kinds is None
  assert clustering.notes == []


def test_the_table_of_times_has_all_that_was_trained(tmp_path, monkeypatch):
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
  chosen = ClusteringConfig('hierarchical', distance_threshold='validation')
  done = run(tmp_path / 'run', dataclasses.replace(CONFIG, clusterings=(CFL, chosen)))
  rows = {row.name: row for row in done.results.timing}
  # Phase 1 keeps every client's own weights: as a client's round they come with the last round, and are no other one.
  own_weights = CLIENTS
  assert sum(row.client_rounds_trained for row in rows.values()) == sum(trained) - own_weights == done.trained
  recursion = rows['Clustering, bipartition']
  tests = done.results.clusterings[0].splits
  # All clients train in every round; at a test their updates are made once more.
  again = sum(len(test.cluster) for test in tests)
  assert recursion.client_rounds_asked == CLIENTS * LAST + again
  assert rows['Phase 2, bipartition'].client_rounds_trained == 0
  assert rows['Clustering, hierarchical'].client_rounds_trained > 0


def test_it_stands_beside_other_clusterings_of_the_same_phase_1(finished, tmp_path):
  two = dataclasses.replace(CONFIG, clusterings=(ClusteringConfig('kmeans', num_clusters=2), CFL))
  found = run(tmp_path / 'run', two).results.clusterings
  assert found[0].splits is None
  assert found[1] == finished[0].results.clusterings[0]


def test_all_clients_must_take_part():
  some = dataclasses.replace(CONFIG.training, cohort_fraction=0.5)
  with pytest.raises(InputError, match=r'^cohort_fraction=0\.5: bipartition .* needs 1\.0'):
    dataclasses.replace(CONFIG, training=some).validated()
