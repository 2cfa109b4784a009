"""Rules of Phase 3 that --aggregation names, in whole runs: NumPy on the exported models is the oracle."""

import dataclasses
import shutil
import sys

import numpy as np
import pytest

import phases.phase3
import phases.report
from tff_cluster.cli import program
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.data import saved
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import failures
from tff_cluster.storage import files as files_lib
from tff_cluster.studies import single_run

pytestmark = pytest.mark.tensorflow

LABEL = 'dynamic_distance'
CODE = '''
import numpy as np

GIVEN = {}
FAILS_ON = ''

def by_size(membership):
  """by number of members"""
  if FAILS_ON == membership.shape[0]:
    raise ValueError('out of luck')
  sizes = membership.sum(axis=1, keepdims=True)
  return sizes / sizes.sum()

def best(validation_accuracy, validation_loss, validation_rows, train_rows):
  """the cluster model that is best on validation rows"""
  GIVEN.setdefault('mixing', []).append([validation_accuracy, validation_loss, validation_rows, train_rows])
  return np.eye(len(validation_accuracy))[validation_accuracy.argmax(axis=0)].T

def among_own(probabilities, own_clusters, validation_probabilities, validation_labels):
  """mean over own clusters"""
  GIVEN.setdefault('rows', []).append([probabilities, own_clusters, validation_probabilities, validation_labels])
  return probabilities[own_clusters].mean(axis=0).argmax(axis=1)
'''
ADDED = ('my_rules:by_size', 'my_rules:best', 'my_rules:among_own', 'mean')
CONFIG = ExperimentConfig(
  DataConfig(num_clients=6, rows_per_client=60, num_groups=2),
  TrainingConfig(model='logistic', phase1_rounds=2, phase2_rounds=3, batch_size=10),
  (
    ClusteringConfig('kmeans', num_clusters=2),
    ClusteringConfig('dynamic_distance', distance_threshold='quantile:0.5'),
  ),
  EvaluationConfig(aggregation=ADDED),
)  # fmt: skip


@pytest.fixture(scope='module')
def my_rules(tmp_path_factory):
  folder = tmp_path_factory.mktemp('code')
  (folder / 'my_rules.py').write_text(CODE)
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(folder)
    yield __import__('my_rules')
  del sys.modules['my_rules']


@pytest.fixture(scope='module')
def done(my_rules, tmp_path_factory):
  path = tmp_path_factory.mktemp('rules') / 'run'
  return single_run.run_experiment(CONFIG, path), RunFolder(path)


@pytest.fixture(scope='module')
def by_hand(done):
  """(results of a clustering, population, float64[clusters, features + 1, classes] of its linear models)."""
  import tensorflow as tf

  results, folder = done[0].results, done[1]
  clustering = next(c for c in results.clusterings if c.label == LABEL)
  models = []
  for row in range(clustering.num_clusters):
    kernel, bias = tf.keras.models.load_model(folder.model(LABEL, row)).get_weights()
    models.append(np.vstack([kernel, bias]).astype(np.float64))
  return clustering, saved.load_population(folder.population), np.stack(models)


def logits(models, x):
  """float64[models, rows, classes]."""
  flat = x.reshape(len(x), -1).astype(np.float64) / 255
  return np.hstack([flat, np.ones((len(x), 1))]) @ models


def probabilities(models, x):
  found = np.exp(logits(models, x) - logits(models, x).max(axis=2, keepdims=True))
  return found / found.sum(axis=2, keepdims=True)


def member(clustering, population):
  return ClusterAssignment.from_clusters(clustering.clusters, population.client_ids).membership


def right(predictions, split, client):
  """The accuracy of predictions, but for a row that may be a tie in float32."""
  labels = split.client(client)[1]
  return pytest.approx((predictions == labels).mean(), abs=1.01 / len(labels))


def test_there_are_overlapping_clusters_to_tell_rules_apart(by_hand):
  clustering, population, _ = by_hand
  found = member(clustering, population)
  assert clustering.num_clusters > 2 and len(set(found.sum(axis=1))) > 1 and (found.sum(axis=0) > 1).any()


def test_a_mixing_rule_makes_the_model_of_its_matrix(by_hand):
  clustering, population, models = by_hand
  found = clustering.evaluations['by_size']
  sizes = member(clustering, population).sum(axis=1)
  np.testing.assert_allclose(np.array(found.mixing)[:, 0], sizes / sizes.sum())
  mixed = np.tensordot(sizes / sizes.sum(), models, 1)[None]
  for client, accuracy in enumerate(found.client_accuracy):
    predictions = logits(mixed, population.test.client(client)[0])[0].argmax(axis=1)
    assert accuracy == right(predictions, population.test, client)
  everybodys = logits(mixed, population.global_test_x)[0].argmax(axis=1) == population.global_test_y
  assert found.global_test.accuracy == pytest.approx(everybodys.mean(), abs=2 / len(everybodys))


def test_a_mixing_rule_sees_validation_rows(by_hand, my_rules):
  clustering, population, models = by_hand
  accuracy, loss, validation_rows, train_rows = next(
    given for given in my_rules.GIVEN['mixing'] if len(given[0]) == len(models)
  )
  np.testing.assert_array_equal(validation_rows, population.validation.counts)
  np.testing.assert_array_equal(train_rows, population.train.counts)
  for client in range(population.num_clients):
    x, y = population.validation.client(client)
    shares = probabilities(models, x)
    np.testing.assert_allclose(
      accuracy[:, client], (shares.argmax(axis=2) == y).mean(axis=1), atol=1.01 / len(y)
    )
    np.testing.assert_allclose(
      loss[:, client], -np.log(shares[:, np.arange(len(y)), y]).mean(axis=1), rtol=1e-3
    )
  expected = np.eye(len(models))[accuracy.argmax(axis=0)].T
  np.testing.assert_array_equal(clustering.evaluations['best'].mixing, expected)
  assert clustering.evaluations['best'].global_test is None


def test_a_rule_of_predictions_sees_rows_of_each_client_and_no_test_labels(by_hand, my_rules):
  clustering, population, models = by_hand
  found, rows = clustering.evaluations['among_own'], member(clustering, population) > 0
  calls = [given for given in my_rules.GIVEN['rows'] if len(given[0]) == len(models)]
  assert len(calls) == population.num_clients
  for client, (shares, own, seen, labels) in enumerate(calls):
    x, y = population.validation.client(client)
    np.testing.assert_array_equal(own, rows[:, client])
    np.testing.assert_allclose(shares, probabilities(models, population.test.client(client)[0]), atol=1e-5)
    np.testing.assert_allclose(seen, probabilities(models, x), atol=1e-5)
    np.testing.assert_array_equal(labels, y)
    predictions = shares[own].mean(axis=0).argmax(axis=1)
    assert found.client_accuracy[client] == (predictions == population.test.client(client)[1]).mean()
  assert found.global_test is None and found.clients.loss is None and found.mixing is None
  assert found.clients.mean_client_accuracy == pytest.approx(np.mean(found.client_accuracy))


def test_a_built_in_rule_of_predictions_for_clients_and_for_everybody(by_hand):
  clustering, population, models = by_hand
  found = clustering.evaluations['mean']
  for client, accuracy in enumerate(found.client_accuracy):
    shares = probabilities(models, population.test.client(client)[0])
    assert accuracy == right(shares.mean(axis=0).argmax(axis=1), population.test, client)
  predictions = probabilities(models, population.global_test_x).mean(axis=0).argmax(axis=1)
  correct = (predictions == population.global_test_y).mean()
  assert found.global_test.accuracy == pytest.approx(correct, abs=2 / len(predictions))


def test_they_stand_beside_the_built_in_ones(done):
  results, folder = done[0].results, done[1]
  assert [(r.name, r.kind) for r in results.rules] == [
    ('by_size', 'mixing'), ('best', 'mixing'), ('among_own', 'prediction'), ('mean', 'prediction'),
  ]  # fmt: skip
  for clustering in results.clusterings:
    names = list(clustering.evaluations)
    assert names == ['own', 'average', 'weighted', 'blended', 'by_size', 'best', 'among_own', 'mean']
  single_run.run_experiment(CONFIG, folder.root, report=True)
  page = (folder.root / 'report.html').read_text()
  assert all(rule.words in page for rule in results.rules)
  scorecard = (folder.root / 'scorecard.csv').read_text()
  assert all(f'{rule.name}_clients' in scorecard for rule in results.rules)


def test_they_change_nothing_else_and_can_join_a_finished_run(my_rules, done, tmp_path):
  store = str(done[1].store)
  none = dataclasses.replace(CONFIG, evaluation=EvaluationConfig())
  plain = single_run.run_experiment(none, tmp_path / 'run', store_dir=store)
  with_rules = {c.label: c for c in done[0].results.clusterings}
  for clustering in plain.results.clusterings:
    other = with_rules[clustering.label]
    shared = {name: other.evaluations[name] for name in clustering.evaluations}
    assert clustering == dataclasses.replace(other, evaluations=shared)
  joined = single_run.run_experiment(CONFIG, tmp_path / 'run', store_dir=store)
  assert joined.trained == 0 and joined.results.digest == done[0].results.digest != plain.results.digest
  calls = len(my_rules.GIVEN['mixing'])
  again = single_run.run_experiment(
    none, tmp_path / 'run', store_dir=store
  )  # As with clusterings: those there stay.
  assert again.results.digest == joined.results.digest and len(my_rules.GIVEN['mixing']) == calls


def test_they_join_a_finished_run_whose_models_have_been_pruned(my_rules, done, tmp_path):
  none = dataclasses.replace(CONFIG, evaluation=EvaluationConfig())
  single_run.run_experiment(none, tmp_path / 'run')
  for trajectory in RunFolder(tmp_path / 'run').store.glob('fedavg-*'):
    shutil.rmtree(trajectory)
  joined = single_run.run_experiment(CONFIG, tmp_path / 'run')
  assert joined.trained > 0 and joined.results.digest == done[0].results.digest


def test_phases_alone_measure_them_too(my_rules, done, tmp_path, capsys):
  folder = RunFolder(tmp_path / 'run')
  some = dataclasses.replace(CONFIG, evaluation=EvaluationConfig(aggregation=ADDED[:1]))
  single_run.run_experiment(some, folder.root, store_dir=str(done[1].store))
  files_lib.save_json(folder.config, CONFIG.to_json())

  def run(phase):
    return program.execute(phase.main, phase.define_flags, ['p', f'--output_dir={folder.root}'])

  assert run(phases.report) == 2
  assert (
    'has not measured --aggregation=my_rules:best on kmeans yet: run python -m phases.phase3'
    in capsys.readouterr().err
  )
  assert run(phases.phase3) == 0 and run(phases.report) == 0
  assert results_lib.read(folder.results).digest == done[0].results.digest


def test_a_rule_that_fails_leaves_the_run_and_all_else_is_finished(my_rules, done, tmp_path, monkeypatch):
  store, folder = str(done[1].store), RunFolder(tmp_path / 'run')
  counts = {c.label: c.num_clusters for c in done[0].results.clusterings}
  monkeypatch.setattr(my_rules, 'FAILS_ON', counts[LABEL])  # The second clustering.
  with pytest.raises(failures.ClusteringsFailed) as caught:
    single_run.run_experiment(CONFIG, folder.root, store_dir=store, report=True)
  message = (
    'aggregation=my_rules:by_size failed: ValueError: out of luck. What failed is not in the run any more'
  )
  assert str(caught.value).startswith(message) and caught.value.report is not None
  results = results_lib.read(folder.results)
  assert [rule.name for rule in results.rules] == ['best', 'among_own', 'mean']
  assert folder.load_config().evaluation.aggregation == ADDED[1:]
  assert all('by_size' not in c.evaluations and 'best' in c.evaluations for c in results.clusterings)
  monkeypatch.setattr(my_rules, 'FAILS_ON', '')
  mended = single_run.run_experiment(CONFIG, folder.root, store_dir=store)
  assert mended.trained == 0
  found = [{c.label: c for c in r.clusterings} for r in (mended.results, done[0].results)]
  assert found[0] == found[1]


def test_a_rule_whose_code_was_changed_is_measured_anew(my_rules, done, tmp_path, monkeypatch):
  (tmp_path / 'changing.py').write_text(
    'def same(membership):\n  return membership / membership.sum(axis=0)\n'
  )
  monkeypatch.syspath_prepend(tmp_path)
  config = dataclasses.replace(CONFIG, evaluation=EvaluationConfig(aggregation=('changing:same',)))
  found = []
  for code in (None, 'def same(membership):\n  return 0 * membership + 1 / len(membership)\n'):
    if code:
      (tmp_path / 'changing.py').write_text(code)
      del sys.modules['changing']
      monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    results = single_run.run_experiment(config, tmp_path / 'run', store_dir=str(done[1].store)).results
    found.append(results.clusterings[1].evaluations)
  assert found[0]['same'].client_accuracy == found[0]['own'].client_accuracy
  assert found[1]['same'].client_accuracy == found[1]['average'].client_accuracy
  del sys.modules['changing']
