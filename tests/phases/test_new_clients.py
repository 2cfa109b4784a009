"""Clients that come later: assigned from one local update, measured, and without a trace in any other number."""

import contextlib
import dataclasses

import numpy as np
import pytest

from tests.conftest import clients_of_runs
from tests.phases.whole_run import Stopped, opened
from tff_cluster.base.errors import InputError
from tff_cluster.clustering import recovery
from tff_cluster.data import saved
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

CLIENTS, NEW, PHASE1, PHASE2 = 12, 4, 4, 6
DATA = DataConfig(
  num_clients=CLIENTS, new_clients=NEW, rows_per_client=80, validation_fraction=0.2, num_groups=2
)
CFL = ClusteringConfig('bipartition', stationary_norm=0.5, stopping_norm=0.5, rounds_before_split=20)
CLUSTERINGS = (
  ClusteringConfig('kmeans', num_clusters=2),
  ClusteringConfig('kmeans', name='updates', num_clusters=2, signature='updates'),
  ClusteringConfig('dynamic_distance', distance_threshold='quantile:0.3'),
  ClusteringConfig('hierarchical', distance_threshold='validation', linkage='ward'),
  ClusteringConfig('planted'),
  CFL,
  # So wide that clusters mix the groups, and clients are in clusters whose models differ much.
  ClusteringConfig('dynamic_distance', name='wide', distance_threshold='quantile:0.8'),
)
CONFIG = ExperimentConfig(
  DATA,
  TrainingConfig(
    model='logistic', phase1_rounds=PHASE1, phase2_rounds=PHASE2, batch_size=10, learning_rate=0.1, seed=0
  ),
  CLUSTERINGS,
)
TINY = dataclasses.replace(
  CONFIG,
  training=dataclasses.replace(CONFIG.training, phase1_rounds=1, phase2_rounds=2),
  clusterings=(CLUSTERINGS[0], CLUSTERINGS[2], CLUSTERINGS[4]),
)


def run(config, path, **options):
  from tff_cluster.phases import run_experiment

  return run_experiment.run_experiment(config, path, export_models=False, **options)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  path = tmp_path_factory.mktemp('new clients')
  return run(CONFIG, path / 'run', store_dir=str(path / 'store')).results, RunFolder(path / 'run')


def without_new(found):
  """Returns what results say of the clients that took part."""
  plain = found.to_json()
  for name in ('new_clients', 'config', 'digest', 'environment', 'timing'):
    del plain[name]
  for clustering in plain['clusterings']:
    del clustering['new_clients']
  return plain


def test_every_newcomer_is_put_with_its_group_and_regrets_nothing(finished):
  found, _ = finished
  truth, new_truth = (np.array(part.truths['group']) for part in (found.population, found.new_clients))
  assert new_truth.shape == (2, NEW) and len(found.population.client_ids) == CLIENTS - NEW
  assert 0 < new_truth[0].sum() < NEW  # Of both groups.
  position = {client_id: k for k, client_id in enumerate(found.population.client_ids)}
  fedavg = np.array(found.new_clients.fedavg.client_accuracy)
  for clustering in found.clusterings[:-1]:
    new, overlapping = clustering.new_clients, clustering.overlapping
    for client, clusters in enumerate(new.assigned):
      for row in clusters:
        members = [position[i] for i in clustering.clusters[row]]
        assert (truth[:, members] == new_truth[:, [client]]).all(), clustering.label
      assert overlapping or len(clusters) == 1
    own, each = np.array(new.client_accuracy), np.array(new.cluster_accuracy)
    assert each.shape == (clustering.num_clusters, NEW)
    np.testing.assert_array_equal(new.regret, each.max(axis=0) - own)
    # The groups disagree on 4 of 10 labels: the wrong model is right on about half of the rows.
    assert own.mean() > fedavg.mean() + 0.1
    if not overlapping:
      assert new.fallback == [False] * NEW and new.regret == [0.0] * NEW
      assert new.recovery['group'] == recovery.Recovery(*[1.0] * len(recovery.SCORES))
  assert any(len(c) > 1 for c in found.clusterings[2].new_clients.assigned)


def test_what_it_costs(finished):
  found, _ = finished
  spent = {c.label: c.new_clients.ledger for c in found.clusterings}
  assert {label: each.client_rounds for label, each in spent.items()} == dict.fromkeys(spent, NEW) | {
    'planted': 0
  }
  assert spent['kmeans'].bytes_up == NEW * found.training.model_bytes
  # What the clients that took part spent does not count new clients: 6 rounds of 8 clients.
  assert found.baseline.ledger.client_rounds == (CLIENTS - NEW) * (PHASE1 + PHASE2)
  assert found.clusterings[0].ledger.client_rounds == (CLIENTS - NEW) * PHASE2


def test_the_accuracies_are_those_of_the_models_on_their_rows(finished):
  found, folder = finished
  with opened(folder, CONFIG) as experiment:
    from tff_cluster.phases import cluster_training

    last, test = PHASE1 + PHASE2, saved.load_population(folder.new_clients).test

    def right(weights, client):
      x, y = test.client(client)
      kernel, bias = weights
      return np.mean(np.argmax(x.reshape(len(x), -1) / 255 @ np.float64(kernel) + bias, axis=1) == y)

    for clustering in found.clusterings:
      new = clustering.new_clients
      trained = cluster_training.train_clusters(experiment, clustering.label)
      models = trained.models(last)
      for client, clusters in enumerate(new.assigned):
        for row, model in enumerate(models):
          assert new.cluster_accuracy[row][client] == pytest.approx(right(model, client))
        mean = [np.mean([np.float64(models[row][part]) for row in clusters], axis=0) for part in (0, 1)]
        assert new.client_accuracy[client] == pytest.approx(right(mean, client))
    wide = found.clusterings[-1].new_clients
    firsts = [wide.cluster_accuracy[clusters[0]][k] for k, clusters in enumerate(wide.assigned)]
    assert firsts != wide.client_accuracy
    initial = experiment.trainer.computations.model.weights
    baseline = experiment.train('again', experiment.everyone, initial, 0, last)
    for client, accuracy in enumerate(found.new_clients.fedavg.client_accuracy):
      assert accuracy == pytest.approx(right(baseline.weights[last], client))


@pytest.mark.parametrize('kind', ['weights', 'updates'])
@pytest.mark.parametrize('dimension', [None, 64])
def test_a_newcomer_with_the_rows_and_name_of_a_participant_has_its_signature(
  finished, tmp_path, kind, dimension
):
  _, folder = finished
  config = dataclasses.replace(
    TINY,
    training=dataclasses.replace(TINY.training, sketch_dimension=dimension),
    clusterings=tuple(c for c in CLUSTERINGS[:2] if c.signature == kind),
  )
  population = saved.load_population(folder.population)
  saved.save_population(population, tmp_path / 'population.npz')
  saved.save_population(population.take([1, 4]), tmp_path / 'new_clients.npz')
  files.save_json(RunFolder(tmp_path).config, config.to_json())
  from tff_cluster.phases import client_signatures, phase1

  with opened(RunFolder(tmp_path), config) as experiment:
    phase1.run_phase1(experiment)
    theirs = client_signatures.load(RunFolder(tmp_path), kind)
    new = client_signatures.of_new_clients(experiment, kind)
    np.testing.assert_array_equal(new.vectors, theirs.vectors[[1, 4]])
    assert new.client_ids == tuple(population.client_ids[k] for k in (1, 4))


def test_down_the_tree_goes_the_update_of_the_round_that_was_split(finished):
  found, folder = finished
  clustering = next(c for c in found.clusterings if c.label == 'bipartition')
  (split,) = clustering.splits
  with opened(folder, CONFIG) as experiment:
    initial, number = experiment.trainer.computations.model.weights, split.round
    keep = (number - 1,)
    base = experiment.train('again', experiment.everyone, initial, 0, number, keep).weights[number - 1]

    def updates(trainer, clients):
      sent = {}
      trainer.local_updates(base, clients, number, lambda i, u: sent.update({i: np.float64(u)}))
      return np.stack([sent[i] / np.linalg.norm(sent[i]) for i in range(len(clients))])

    cosine = (
      updates(experiment.trainer, experiment.everyone) @ updates(experiment.new_client_trainer, range(NEW)).T
    )
  ids = found.population.client_ids
  nearest = [ids[int(np.argmax(column))] for column in cosine.T]
  assigned = [clustering.clusters[row] for (row,) in clustering.new_clients.assigned]
  assert all(client in members for client, members in zip(nearest, assigned, strict=True))


def test_others_never_notice_that_there_are_new_clients(finished, tmp_path):
  """The same clients in a run without new clients, and beside new clients with other rows, have the same results."""
  found, folder = finished
  alone, population = RunFolder(tmp_path / 'alone'), saved.load_population(folder.population)
  config = dataclasses.replace(
    CONFIG, data=dataclasses.replace(DATA, num_clients=CLIENTS - NEW, new_clients=0)
  )
  with clients_of_runs(population):
    plain = run(config, alone.root).results
  assert plain.new_clients is None and all(c.new_clients is None for c in plain.clusterings)
  assert without_new(plain) == without_new(found)
  assert not alone.new_clients.exists() and not (alone.root / 'new_clients').exists()
  new = saved.load_population(folder.new_clients)
  upside_down = {
    name: dataclasses.replace(split, x=split.x[:, ::-1], y=((split.y + 3) % 10).astype(np.int32))
    for name in ('train', 'validation', 'test')
    for split in [getattr(new, name)]
  }
  # What was trained without any new client a moment ago need not be trained again.
  with clients_of_runs(population, dataclasses.replace(new, **upside_down)):
    changed = run(CONFIG, tmp_path / 'other', store_dir=str(alone.store)).results
  assert without_new(changed) == without_new(found)
  assert changed.clusterings[0].new_clients != found.clusterings[0].new_clients


def test_an_interrupted_run_ends_with_the_same_bits(finished, tmp_path, monkeypatch):
  """Stopped in front of the first file of new clients, and of those of three kinds of clusterings."""
  found, folder = finished
  whole, stops = files.save_json, []
  moments = {'baseline.json', 'clustering_kmeans.json', 'clustering_bipartition.json', 'clustering_wide.json'}

  def stopping(path, value):
    if path.parent.name == 'new_clients' and path.name in moments - set(stops):
      stops.append(path.name)
      raise Stopped
    whole(path, value)

  monkeypatch.setattr(files, 'save_json', stopping)
  options = {'store_dir': str(folder.root.parent / 'store')}
  done = None
  while done is None:
    with contextlib.suppress(Stopped):
      done = run(CONFIG, tmp_path / 'run', **options)
  assert set(stops) == moments
  assert done.results.digest == found.digest
  again = run(CONFIG, tmp_path / 'run', **options)
  assert (again.asked, again.trained, again.results.digest) == (0, 0, found.digest)


def test_a_group_without_a_participant_has_no_cluster(tmp_path, finished):
  population = saved.load_population(finished[1].population)
  one = population.take(np.flatnonzero(population.truths['group'][0] > 0))
  clusterings = (ClusteringConfig('hierarchical', distance_threshold='1e9'), ClusteringConfig('planted'))
  with clients_of_runs(one, saved.load_population(finished[1].new_clients)):
    found = run(dataclasses.replace(TINY, clusterings=clusterings), tmp_path / 'run').results
  everybody, planted = (clustering.new_clients for clustering in found.clusterings)
  other_group = np.array(found.new_clients.truths['group'])[1] > 0
  assert planted.fallback == other_group.tolist() and everybody.fallback == [False] * NEW
  assert planted.assigned == everybody.assigned == [[0]] * NEW


def test_new_clients_that_do_not_fit(tmp_path):
  for changes, message in (
    (
      {'new_clients': CLIENTS},
      f'new_clients={CLIENTS} of num_clients={CLIENTS}: at least one client must take part',
    ),
    ({'new_clients': 11}, 'num_clusters=2 is more than the 1 clients that take part'),
    ({'new_clients': -1}, 'new_clients=-1: must be at least 0'),
  ):
    with pytest.raises(InputError) as caught:
      run(dataclasses.replace(CONFIG, data=dataclasses.replace(DATA, **changes)), tmp_path / 'run')
    assert message in str(caught.value) and '\n' not in str(caught.value)


def test_a_file_whose_rows_changed_is_noticed_whoever_holds_them(tmp_path):
  from tff_cluster.phases import session

  rng = np.random.default_rng(0)
  rows = {
    'x': rng.normal(size=(120, 3)).astype(np.float32),
    'y': np.arange(120) % 3,
    'client_id': np.repeat(np.arange(6), 20),
  }
  path = tmp_path / 'rows.npz'
  np.savez(path, **rows)
  data = DataConfig(dataset='file', data_file=str(path), partition='by_writer', num_clients=6, new_clients=2)
  config, folder = dataclasses.replace(CONFIG, data=data), RunFolder(tmp_path / 'run')
  first = session.clients(folder, config)
  new = saved.load_population(folder.new_clients)
  assert (first.num_clients, new.num_clients) == (4, 2)
  assert session.clients(folder, config).digest == first.digest
  changed = rows['x'].copy()
  changed[np.flatnonzero((rows['x'] == new.train.x[0]).all(axis=1))] += 1
  np.savez(path, **(rows | {'x': changed}))
  with pytest.raises(InputError, match='has other rows than the run'):
    session.clients(folder, config)
