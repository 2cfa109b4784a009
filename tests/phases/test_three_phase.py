"""The main job on planted groups: every number of Phase 3 again in plain Keras and NumPy, from the exported models."""

import csv
import dataclasses
import json

import numpy as np
import pytest
from sklearn import metrics

from tff_cluster.base import digests
from tff_cluster.clustering import recovery
from tff_cluster.data import populate, saved
from tff_cluster.engine.machine import Machine
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import results
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

CLIENTS, PHASE1, PHASE2 = 8, 3, 8
DATA = DataConfig(num_clients=CLIENTS, rows_per_client=80, validation_fraction=0.2, num_groups=2)
CONFIG = ExperimentConfig(
  DATA,
  TrainingConfig(
    model='logistic', phase1_rounds=PHASE1, phase2_rounds=PHASE2, batch_size=10, learning_rate=0.1, seed=0
  ),
  (
    ClusteringConfig('kmeans', num_clusters=2),
    ClusteringConfig('dynamic_distance', distance_threshold='quantile:0.3'),
    ClusteringConfig('hierarchical', name='everybody', distance_threshold='1e9'),
  ),
)
LABELS = ('kmeans', 'dynamic_distance', 'everybody')
TINY = dataclasses.replace(
  CONFIG,
  training=dataclasses.replace(CONFIG.training, phase1_rounds=1, phase2_rounds=1),
  clusterings=CONFIG.clusterings[:1],
)


def run(config, path, **options):
  from tff_cluster.phases import run_experiment

  return run_experiment.run_experiment(config, path, **options)


def without(found, *names):
  return {name: value for name, value in found.items() if name not in names}


class Finished:
  """A finished run, its clients, and its exported models as Keras loads them."""

  def __init__(self, path, found):
    import tensorflow as tf

    self.folder, self.results = RunFolder(path), found
    self.population = saved.load_population(self.folder.population)
    self.models = {
      c['label']: [
        tf.keras.models.load_model(self.folder.model(c['label'], row)).get_weights()
        for row in range(c['num_clusters'])
      ]
      for c in found['clusterings']
    }
    self._keras = tf.keras.models.load_model(self.folder.model(found['clusterings'][0]['label'], 0))

  def clustering(self, label):
    return next(c for c in self.results['clusterings'] if c['label'] == label)

  def membership(self, label):
    position = {client_id: k for k, client_id in enumerate(self.population.client_ids)}
    matrix = np.zeros((self.clustering(label)['num_clusters'], CLIENTS))
    for row, members in enumerate(self.clustering(label)['clusters']):
      matrix[row, [position[m] for m in members]] = 1
    return matrix

  def mixed(self, label, shares):
    """Returns the weights of the mean of a clustering's models with these shares, float[models]."""
    return [
      np.tensordot(shares, np.stack(arrays).astype(np.float64), 1).astype(np.float32)
      for arrays in zip(*self.models[label], strict=True)
    ]

  def predict(self, weights, x):
    self._keras.set_weights(weights)
    return self._keras.predict(x.astype(np.float32) / np.float32(255), verbose=0)

  def accuracy(self, weights, x, y):
    return float(np.mean(self.predict(weights, x).argmax(axis=1) == y))

  def clients_predicted(self, weights_of):
    """Returns each client's test labels and what weights_of(k) predicts of them."""
    pairs = []
    for k in range(CLIENTS):
      x, y = self.population.test.client(k)
      pairs.append((y, self.predict(weights_of(k), x).argmax(axis=1)))
    return pairs


@pytest.fixture(scope='module')
def planted(tmp_path_factory):
  path = tmp_path_factory.mktemp('planted') / 'run'
  return Finished(path, run(CONFIG, path).results)


def shares_of(run, label, name):
  """Returns float64[models, clients], from the papers' words (Rohith et al. 2020, sections 5.2.4 and 6.3)."""
  member = run.membership(label)
  models = len(member)
  if name == 'average':
    return np.full((models, CLIENTS), 1 / models)
  if name == 'weighted':
    best = np.array(run.clustering(label)['best_validation'])
    return np.repeat((best / best.sum())[:, None], CLIENTS, axis=1)
  blend = np.eye(models) if name == 'own' else (np.eye(models) + np.full((models, models), 1 / models)) / 2
  shares = np.zeros((models, CLIENTS))
  for k in range(CLIENTS):
    mine = np.flatnonzero(member[:, k])
    shares[:, k] = blend[:, mine].mean(axis=1)
  return shares


def test_the_planted_groups_are_found_and_clustering_wins_by_a_wide_margin(planted):
  kmeans = planted.clustering('kmeans')
  assert kmeans['recovery']['group'] == dict.fromkeys(recovery.SCORES, 1.0)
  own = kmeans['evaluations']['own']['clients']['mean_client_accuracy']
  baseline = planted.results['baseline']['evaluation']['clients']['mean_client_accuracy']
  # The groups disagree on 4 of 10 labels, so that no single model can do better than 0.8 for everybody.
  assert baseline < 0.8
  assert own > baseline + 0.1
  overlapping = planted.clustering('dynamic_distance')
  assert overlapping['evaluations']['own']['clients']['mean_client_accuracy'] > baseline + 0.1
  truth = next(iter(planted.population.truths.values()))
  for row in planted.membership('dynamic_distance'):
    assert (truth[:, row > 0].any(axis=1)).sum() == 1  # No cluster mixes the groups.


def test_the_fixture_has_disjoint_and_overlapping_clusterings(planted):
  assert [planted.clustering(label)['overlapping'] for label in LABELS] == [False, True, False]
  assert (
    planted.clustering('dynamic_distance')['memberships']
    == planted.membership('dynamic_distance').sum() / CLIENTS
  )
  assert planted.clustering('everybody')['num_clusters'] == 1
  counts = planted.population.train.counts
  assert (counts == counts[0]).all()


def trajectory(finished, start_round, members, last):
  """Returns the weights after a round, as the store has them, and what determined the trajectory."""
  wanted = [finished.population.client_digests[k] for k in members]
  for folder in finished.folder.store.glob('fedavg-*'):
    determinants = json.loads((folder / 'determinants.json').read_text())
    if (determinants['start_round'], determinants['clients']) == (start_round, wanted):
      arrays = files.load_arrays(folder / f'round_{last:05d}.npz')
      leaves = [arrays[name] for name in sorted(arrays) if name.startswith('state_')]
      return [next(a for a in leaves if a.shape == shape) for shape in ((784, 10), (10,))], determinants
  raise AssertionError('no such trajectory')


def test_one_cluster_of_everybody_is_federated_averaging_without_clusters(planted):
  expected, _ = trajectory(planted, 0, range(CLIENTS), PHASE1 + PHASE2)
  (found,) = planted.models['everybody']
  for one, other in zip(found, expected, strict=True):
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
  baseline = planted.results['baseline']['evaluation']
  own = planted.clustering('everybody')['evaluations']['own']
  np.testing.assert_allclose(own['client_accuracy'], baseline['client_accuracy'], atol=0.02)
  assert own['global']['loss'] == pytest.approx(baseline['global']['loss'], rel=1e-3)


def test_devices_weights_average_to_the_global_model_of_phase_1(planted):
  expected, _ = trajectory(planted, 0, range(CLIENTS), PHASE1)
  vectors = vectors_of(planted)
  flat = np.concatenate([w.ravel() for w in expected])
  np.testing.assert_allclose(vectors.mean(axis=0, dtype=np.float64), flat, atol=2e-6)
  assert np.linalg.norm(vectors - flat, axis=1).min() > 0.01  # They are the devices' own.


def vectors_of(finished):
  name = json.loads(finished.folder.phase1.read_text())['signatures']['weights']
  return files.load_rows(finished.folder.store / name / 'vectors.npy')


def test_clusters_start_from_the_plain_mean_of_their_members(planted):
  vectors = vectors_of(planted).astype(np.float64)
  for row in planted.membership('kmeans'):
    members = np.flatnonzero(row)
    mean = vectors[members].mean(axis=0).astype(np.float32)
    _, determinants = trajectory(planted, PHASE1, members, PHASE1 + PHASE2)
    # The sums are exact in float64, so the bits are known.
    assert determinants['start_weights'] == digests.of_arrays([mean[:7840].reshape(784, 10), mean[7840:]])


@pytest.mark.parametrize('label', LABELS)
def test_exported_models_are_the_trained_ones(label, planted):
  for row, weights in zip(planted.membership(label), planted.models[label], strict=True):
    trained, _ = trajectory(planted, PHASE1, np.flatnonzero(row), PHASE1 + PHASE2)
    for one, other in zip(weights, trained, strict=True):
      np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize('name', ['own', 'average', 'weighted', 'blended'])
@pytest.mark.parametrize('label', LABELS)
def test_evaluations_are_what_keras_measures(label, name, planted):
  found = planted.clustering(label)['evaluations'][name]
  shares = shares_of(planted, label, name)
  mixing = np.array(found['mixing'])
  np.testing.assert_allclose(np.broadcast_to(mixing, shares.shape), shares, atol=1e-12)
  pairs = planted.clients_predicted(lambda k: planted.mixed(label, shares[:, k]))
  each = [float(np.mean(true == predicted)) for true, predicted in pairs]
  assert found['client_accuracy'] == each
  clients = found['clients']
  assert clients['mean_client_accuracy'] == pytest.approx(np.mean(each))
  assert clients['highest_client_accuracy'] == max(each)
  assert clients['share_at_highest'] == each.count(max(each)) / CLIENTS
  true, predicted = (np.concatenate(column) for column in zip(*pairs, strict=True))
  assert clients['accuracy'] == pytest.approx(metrics.accuracy_score(true, predicted))
  for kind, function in (('precision', metrics.precision_score), ('recall', metrics.recall_score)):
    assert clients[kind] == pytest.approx(function(true, predicted, average='macro', zero_division=0)), kind


@pytest.mark.parametrize('name', ['average', 'weighted', 'own', 'blended'])
@pytest.mark.parametrize('label', LABELS)
def test_global_metrics_are_what_keras_measures_and_only_of_one_model_for_everybody(label, name, planted):
  found = planted.clustering(label)['evaluations'][name]['global']
  shares = shares_of(planted, label, name)
  if (shares != shares[:, :1]).any():
    assert found is None
    return
  x, true = planted.population.global_test_x, planted.population.global_test_y
  logits = planted.predict(planted.mixed(label, shares[:, 0]), x).astype(np.float64)
  predicted = logits.argmax(axis=1)
  assert found['accuracy'] == float(np.mean(predicted == true))
  assert found['precision'] == pytest.approx(
    metrics.precision_score(true, predicted, average='macro', zero_division=0)
  )
  assert found['recall'] == pytest.approx(
    metrics.recall_score(true, predicted, average='macro', zero_division=0)
  )
  loss = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(true)), true]
  assert found['loss'] == pytest.approx(loss.mean(), rel=1e-4)


@pytest.mark.parametrize('label', LABELS)
def test_cluster_scores_are_of_each_clusters_model_on_its_members_and_on_the_global_test_set(label, planted):
  found, member = planted.clustering(label)['cluster_scores'], planted.membership(label)
  population, models = planted.population, len(member)
  for kind, blend in (('unblended', np.eye(models)), ('blended', (np.eye(models) + 1 / models) / 2)):
    for row in range(models):
      weights = planted.mixed(label, blend[:, row])
      rows = [population.test.client(k) for k in np.flatnonzero(member[row])]
      x, y = (np.concatenate(column) for column in zip(*rows, strict=True))
      assert found[kind]['members'][row] == planted.accuracy(weights, x, y)
      assert found[kind]['global'][row] == planted.accuracy(
        weights, population.global_test_x, population.global_test_y
      )


def test_disjoint_clients_use_their_clusters_model_as_it_is(planted):
  mixing = np.array(planted.clustering('kmeans')['evaluations']['own']['mixing'])
  np.testing.assert_array_equal(mixing, planted.membership('kmeans'))


@pytest.mark.parametrize('label', LABELS)
def test_best_validation_is_the_highest_of_the_rounds_and_history_the_mean_of_the_clients(label, planted):
  clustering, member = planted.clustering(label), planted.membership(label)
  each = {'validation_accuracy': [], 'test_accuracy': []}
  for row in range(len(member)):
    with open(planted.folder.metrics(f'{label}/cluster_{row:03d}')) as stream:
      rounds = list(csv.DictReader(stream))
    assert [int(r['round']) for r in rounds] == list(range(PHASE1 + 1, PHASE1 + PHASE2 + 1))
    for name, columns in each.items():
      columns.append([float(r[name]) for r in rounds])
  # All clients have as many validation rows, so the mean over clients is that over rows.
  assert clustering['best_validation'] == pytest.approx([max(c) for c in each['validation_accuracy']])
  assert clustering['history']['rounds'] == list(range(PHASE1 + 1, PHASE1 + PHASE2 + 1))
  if not clustering['overlapping']:
    sizes = member.sum(axis=1)
    for name, columns in each.items():
      np.testing.assert_allclose(clustering['history'][name], sizes @ np.array(columns) / CLIENTS)
  last = clustering['history']['test_accuracy'][-1]
  by_model = [
    [np.mean(planted.predict(planted.models[label][row], x).argmax(axis=1) == y) for row in np.flatnonzero(member[:, k])]
    for k in range(CLIENTS)
    for x, y in [planted.population.test.client(k)]
  ]  # fmt: skip
  assert last == pytest.approx(np.mean([np.mean(each) for each in by_model]))


def test_the_ledger_counts_every_membership(planted):
  parameters = 784 * 10 + 10
  training = planted.results['training']
  assert (training['parameters'], training['model_bytes']) == (parameters, 4 * parameters)
  for label in LABELS:
    rounds = int(planted.membership(label).sum()) * PHASE2
    assert planted.clustering(label)['ledger'] == {
      'client_rounds': rounds,
      'bytes_up': rounds * 4 * parameters,
      'bytes_down': rounds * 4 * parameters,
    }
  assert planted.results['phase1']['ledger']['client_rounds'] == CLIENTS * PHASE1
  assert planted.results['baseline']['ledger']['client_rounds'] == CLIENTS * (PHASE1 + PHASE2)


HISTORY = {'rounds', 'validation_accuracy', 'test_accuracy', 'share_at_target'}
GLOBAL = {'accuracy', 'precision', 'recall', 'loss'}
METRICS = GLOBAL | {'mean_client_accuracy', 'highest_client_accuracy', 'share_at_highest'}
EVALUATION = {'global', 'clients', 'client_accuracy'}
KEYS = {
  'top': {'schema', 'digest', 'config', 'population', 'training', 'phase1', 'baseline', 'local', 'new_clients', 'clusterings', 'candidates',
          'cross_validation', 'environment', 'timing', 'artifacts', 'summary', 'rules'},
  'population': {'name', 'digest', 'client_ids', 'num_classes', 'rows', 'label_counts', 'truths'},
  'stage': {'rounds', 'ledger', 'history', 'evaluation', 'dropped_updates'},
  'clustering': {'label', 'method', 'title', 'approach', 'basis', 'one_cluster', 'kind', 'told', 'dial', 'parameters', 'signature', 'clusters', 'num_clusters', 'overlapping', 'memberships',
                 'notes', 'threshold', 'choice', 'splits', 'recovery', 'ledger', 'history', 'best_validation', 'cluster_scores',
                 'evaluations', 'experts', 'equal_cost', 'new_clients'},
  'candidate': {'method', 'title', 'told', 'parameters', 'signature', 'num_clusters', 'memberships', 'silhouette', 'recovery', 'notes'},
  'environment': {'python', 'packages', 'machine', 'cores', 'started'},
  'timing': {'name', 'seconds', 'client_rounds_asked', 'client_rounds_trained'},
}  # fmt: skip


def check_evaluation(found, more=frozenset()):
  assert found.keys() == EVALUATION | more
  assert found['clients'].keys() == METRICS and len(found['client_accuracy']) == CLIENTS
  assert found['global'] is None or found['global'].keys() == GLOBAL


def test_results_json_has_what_its_schema_says(planted):
  found = files.load_json(planted.folder.results)
  assert found == planted.results
  assert found.keys() == KEYS['top']
  assert all(key in results.__doc__ for keys in KEYS.values() for key in keys)
  assert found['schema'] == results.SCHEMA and found['cross_validation'] is None
  assert ExperimentConfig.from_json(found['config']) == CONFIG
  population = found['population']
  assert population.keys() == KEYS['population']
  assert population['rows'] == {
    'train': len(planted.population.train.y), 'validation': len(planted.population.validation.y),
    'test': len(planted.population.test.y), 'global_test': len(planted.population.global_test_y),
  }  # fmt: skip
  for stage, rounds in (('phase1', PHASE1), ('baseline', PHASE1 + PHASE2)):
    assert found[stage].keys() == KEYS['stage']
    assert found[stage]['rounds'] == rounds and found[stage]['dropped_updates'] == 0
    assert found[stage]['history'].keys() == HISTORY
    assert all(len(column) == rounds for column in found[stage]['history'].values())
    check_evaluation(found[stage]['evaluation'])
  assert [c['label'] for c in found['clusterings']] == list(LABELS)
  for clustering in found['clusterings']:
    assert clustering.keys() == KEYS['clustering']
    assert clustering['cluster_scores'].keys() == {'unblended', 'blended'}
    for scores in clustering['cluster_scores'].values():
      assert scores.keys() == {'members', 'global'}
      assert all(len(column) == clustering['num_clusters'] for column in scores.values())
    assert clustering['evaluations'].keys() == {'own', 'average', 'weighted', 'blended'}
    for evaluation in clustering['evaluations'].values():
      check_evaluation(evaluation, {'mixing'})
    assert clustering['recovery'].keys() == {'group'}
  assert all(c.keys() == KEYS['candidate'] for c in found['candidates'])
  assert found['environment'].keys() == KEYS['environment']
  assert all(t.keys() == KEYS['timing'] for t in found['timing'])
  # The baseline goes on with Phase 1, and a cluster that two clusterings find is trained once.
  clusters = {tuple(members) for c in found['clusterings'] for members in c['clusters']}
  trained = sum(t['client_rounds_trained'] for t in found['timing'])
  assert trained == CLIENTS * (PHASE1 + PHASE2) + PHASE2 * sum(map(len, clusters))


def test_arrays_beside_the_results_fit_them(planted):
  arrays = files.load_arrays(planted.folder.arrays)
  vectors = vectors_of(planted).astype(np.float64)
  expected = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
  np.testing.assert_allclose(arrays['distances_weights'], expected, rtol=1e-4, atol=1e-5)
  assert arrays['embedding_weights'].shape == (CLIENTS, 2)
  assert arrays['linkage_everybody'].shape == (CLIENTS - 1, 4)
  assert arrays.keys() == {'distances_weights', 'embedding_weights', 'linkage_everybody'}


def test_asked_again_it_trains_nothing_and_says_the_same(planted):
  again = run(CONFIG, planted.folder.root)
  assert (again.asked, again.trained) == (0, 0)
  assert without(again.results, 'environment') == without(planted.results, 'environment')


def test_test_rows_and_planted_truth_reach_no_training_clustering_or_weighting(
  planted, tmp_path, monkeypatch
):
  rng = np.random.default_rng(0)
  population = populate.build_population(CONFIG.data)
  shuffled = {
    'test': dataclasses.replace(population.test, y=rng.permutation(population.test.y)),
    'global_test_y': rng.permutation(population.global_test_y),
    'truths': {'group': population.truths['group'][:, rng.permutation(CLIENTS)]},
  }
  changed = dataclasses.replace(population, **shuffled)
  monkeypatch.setattr(populate, 'build_population', lambda *arguments: changed)
  other = Finished(tmp_path, run(CONFIG, tmp_path).results)
  for label in LABELS:
    one, two = planted.clustering(label), other.clustering(label)
    assert one['clusters'] == two['clusters'] and one['threshold'] == two['threshold']
    assert one['best_validation'] == two['best_validation']
    assert one['evaluations']['weighted']['mixing'] == two['evaluations']['weighted']['mixing']
    for weights, others in zip(planted.models[label], other.models[label], strict=True):
      assert all(np.array_equal(a, b) for a, b in zip(weights, others, strict=True))
  assert other.clustering('kmeans')['evaluations']['own']['clients']['mean_client_accuracy'] < 0.4


def test_equal_runs_have_equal_digests_in_any_folder_and_another_seed_has_another(tmp_path):
  one = run(TINY, tmp_path / 'one', machine=Machine(clients_in_parallel=1)).results
  two = run(TINY, tmp_path / 'elsewhere' / 'two', machine=Machine(clients_in_parallel=3)).results
  assert without(one, 'environment', 'timing') == without(two, 'environment', 'timing')
  seed = dataclasses.replace(TINY, training=dataclasses.replace(TINY.training, seed=4))
  three = run(seed, tmp_path / 'three').results
  assert len({one['digest'], two['digest'], three['digest']}) == 2
  assert three['digest'] != one['digest']
  assert three['population'] == one['population']
  # What one seed built was used for the other: alone in its process it is the same run.
  from tff_cluster.phases import live_experiment

  live_experiment._computations.clear()
  again = run(seed, tmp_path / 'again').results
  assert again['digest'] == three['digest']


@pytest.mark.parametrize(
  'change',
  [
    lambda r: r['baseline']['evaluation']['client_accuracy'].__setitem__(0, 0.123),
    lambda r: r['clusterings'][0]['evaluations']['own']['clients'].__setitem__('recall', 0.5),
    lambda r: r['clusterings'][0]['clusters'][0].reverse(),
    lambda r: r['config']['training'].__setitem__('learning_rate', 0.2),
    lambda r: r['population'].__setitem__('digest', 'x'),
  ],
)
def test_the_digest_covers_every_number(change, planted):
  changed = json.loads(json.dumps(planted.results))
  assert results.with_digest(changed)['digest'] == planted.results['digest']
  change(changed)
  assert results.with_digest(changed)['digest'] != planted.results['digest']


def test_the_digest_leaves_out_where_and_when(planted):
  changed = json.loads(json.dumps(planted.results))
  changed['environment'], changed['timing'] = {'python': 'x'}, []
  changed['config']['data']['data_dir'] = '/elsewhere'
  assert results.with_digest(changed)['digest'] == planted.results['digest']


def test_without_groups_clustering_does_not_claim_to_help(tmp_path):
  data = DataConfig(num_clients=CLIENTS, rows_per_client=80, validation_fraction=0.2, partition='iid')
  found = run(dataclasses.replace(CONFIG, data=data), tmp_path).results
  baseline = found['baseline']['evaluation']['clients']['mean_client_accuracy']
  assert baseline > 0.85
  for clustering in found['clusterings']:
    assert clustering['recovery'] == {}
    own = clustering['evaluations']['own']['clients']['mean_client_accuracy']
    assert own < baseline + 0.02
    assert own > baseline - 0.06


def settings_of(training):
  from tff_cluster.phases import live_experiment

  config = dataclasses.replace(CONFIG, training=training)
  population = populate.build_population(CONFIG.data)
  return live_experiment.Experiment(RunFolder('nowhere'), config, population, progress=None).settings


def test_every_training_setting_but_the_rounds_names_other_artifacts():
  others = {
    'model': '2nn', 'cohort_fraction': 0.5, 'batch_size': 7, 'local_epochs': 2, 'learning_rate': 0.2, 'seed': 99,
    'phase1_rounds': 77, 'phase2_rounds': 78, 'sketch_dimension': 64, 'cluster_start': 'global_model',
    'initializer': 'fan_in_uniform', 'aggregator': 'robust',
  }  # fmt: skip
  # Start weights are part of a trajectory's name themselves.
  no_part_of_a_round = ('phase1_rounds', 'phase2_rounds', 'sketch_dimension', 'cluster_start', 'initializer')
  training = CONFIG.training
  assert others.keys() == {f.name for f in dataclasses.fields(config_lib.TrainingConfig)}
  before = digests.of_json(settings_of(training))
  for name, value in others.items():
    changed = digests.of_json(settings_of(dataclasses.replace(training, **{name: value})))
    assert (changed == before) == (name in no_part_of_a_round), name
