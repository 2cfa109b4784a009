"""Clients that come later: assigned from one local update, measured, and without a trace in any other number."""

import contextlib
import dataclasses

import numpy as np
import pytest

from tests.conftest import clients_of_runs
from tests.phases.conftest import CLIENTS, NEW, PHASE1, PHASE2, WITH_NEW
from tests.phases.whole_run import Stopped, WholeRun, accuracy, changed
from tff_cluster.base.cost import Cost
from tff_cluster.base.errors import InputError
from tff_cluster.clustering import recovery
from tff_cluster.data import saved
from tff_cluster.experiment.config import DataConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope='module')
def newcomers(with_new):
  return saved.load_population(with_new.folder.new_clients)


def without_new(found):
  """Returns what results say of the clients that took part."""
  plain = found.to_json()
  for name in ('new_clients', 'config', 'digest', 'environment', 'timing'):
    del plain[name]
  for clustering in plain['clusterings']:
    del clustering['new_clients']
  return plain


def bytes_of_vectors(train):
  """Returns what clients send of their rows by PACFL: of each label at most three vectors, of a float32 a pixel."""
  labels = [np.unique(train.client(k)[1], return_counts=True)[1] for k in range(len(train.counts))]
  return sum(int(np.minimum(counts, 3).sum()) for counts in labels) * train.x[0].size * 4


def test_every_newcomer_is_put_with_its_group_regrets_nothing_and_costs_a_round(with_new, newcomers):
  found = with_new.results
  truth, new_truth = (np.array(part.truths['group']) for part in (found.population, found.new_clients))
  assert new_truth.shape == (2, NEW) and len(found.population.client_ids) == CLIENTS
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
      assert new.recovery['group'] == recovery.Recovery(
        **dict.fromkeys(recovery.SCORES, 1.0) | {'share_error': 0.0}
      )
  assert any(len(clusters) > 1 for clusters in with_new.clustering('dynamic_distance').new_clients.assigned)
  # What it costs.
  spent = {c.label: c.new_clients.cost for c in found.clusterings}
  rounds = {label: each.client_rounds for label, each in spent.items()}
  # A method that reads training rows has newcomers train nothing.
  assert rounds == dict.fromkeys(spent, NEW) | {'planted': 0, 'pacfl': 0}
  assert spent['kmeans'].bytes_up == NEW * found.training.model_bytes
  # What the clients that took part spent does not count new clients.
  assert found.baseline.cost.client_rounds == CLIENTS * (PHASE1 + PHASE2)
  assert with_new.clustering('kmeans').cost.client_rounds == CLIENTS * PHASE2
  # Of its training rows a client sent three singular vectors a label, a number a pixel; the others sent what they trained.
  for label, more in (('pacfl', bytes_of_vectors(with_new.population.train)), ('kmeans', 0)):
    cost = with_new.clustering(label).cost
    assert cost.bytes_up == cost.models_up * found.training.model_bytes + more
  # So does one that comes later, which is sent nothing and trains nothing.
  assert spent['pacfl'] == Cost(bytes_up=bytes_of_vectors(newcomers.train))


def test_accuracies_are_of_the_models_and_down_the_tree_goes_the_update_of_the_round_that_was_split(
  with_new, newcomers
):
  from tff_cluster.phases import cluster_training

  found, last = with_new.results, PHASE1 + PHASE2
  with with_new.opened() as experiment:
    for clustering in found.clusterings:
      new = clustering.new_clients
      models = cluster_training.train_clusters(experiment, clustering.label).models(last)
      for client, clusters in enumerate(new.assigned):
        for row, model in enumerate(models):
          expected = accuracy(model, newcomers.test, client)
          assert new.cluster_accuracy[row][client] == pytest.approx(expected)
        mean = [np.mean([np.float64(models[row][part]) for row in clusters], axis=0) for part in (0, 1)]
        assert new.client_accuracy[client] == pytest.approx(accuracy(mean, newcomers.test, client))
    (split,) = with_new.clustering('bipartition').splits
    initial = experiment.trainer.computations.model.weights
    keep = (split.round - 1, last)
    fedavg = experiment.train('again', experiment.everyone, initial, 0, last, keep).weights

    def directions(trainer, clients):
      sent = {}
      trainer.local_updates(
        fedavg[split.round - 1], clients, split.round, lambda k, u: sent.update({k: np.float64(u)})
      )
      return np.stack([sent[k] / np.linalg.norm(sent[k]) for k in range(len(clients))])

    theirs = directions(experiment.trainer, experiment.everyone)
    cosine = theirs @ directions(experiment.new_client_trainer, range(NEW)).T
  # Models whose mean is not one of them, or the means above would show nothing.
  wide = found.clusterings[-1].new_clients
  firsts = [wide.cluster_accuracy[clusters[0]][k] for k, clusters in enumerate(wide.assigned)]
  assert firsts != wide.client_accuracy
  for client, found_accuracy in enumerate(found.new_clients.fedavg.client_accuracy):
    assert found_accuracy == pytest.approx(accuracy(fedavg[last], newcomers.test, client))
  clustering = with_new.clustering('bipartition')
  for nearest, (row,) in zip(cosine.argmax(axis=0), clustering.new_clients.assigned, strict=True):
    assert found.population.client_ids[nearest] in clustering.clusters[row]


def test_others_never_notice_that_there_are_new_clients(with_new, newcomers, tmp_path):
  """The same clients in a run without new clients, and beside new clients with other rows, have the same results."""
  found, population = with_new.results, with_new.population
  without = changed(WITH_NEW, data={'num_clients': CLIENTS, 'new_clients': 0})
  with clients_of_runs(population):
    alone = WholeRun(without, tmp_path / 'alone')
  assert alone.results.new_clients is None and all(c.new_clients is None for c in alone.results.clusterings)
  assert without_new(alone.results) == without_new(found)
  assert not alone.folder.new_clients.exists() and not (alone.folder.root / 'new_clients').exists()
  upside_down = {
    name: dataclasses.replace(split, x=split.x[:, ::-1], y=((split.y + 3) % 10).astype(np.int32))
    for name in ('train', 'validation', 'test')
    for split in [getattr(newcomers, name)]
  }
  # What was trained without any new client a moment ago need not be trained again.
  with clients_of_runs(population, dataclasses.replace(newcomers, **upside_down)):
    other = WholeRun(WITH_NEW, tmp_path / 'other', store_dir=alone.store).results
  assert without_new(other) == without_new(found)
  assert other.clusterings[0].new_clients != found.clusterings[0].new_clients


def test_an_interrupted_run_ends_with_the_same_bits(with_new, tmp_path, monkeypatch):
  """Stopped in front of the files of new clients of two kinds of clusterings, and of FedAvg's."""
  whole, stops = files.save_json, []
  moments = {'clustering_kmeans.json', 'clustering_bipartition.json', 'baseline.json'}

  def stopping(path, value):
    if path.parent.name == 'new_clients' and path.name in moments - set(stops):
      stops.append(path.name)
      raise Stopped
    whole(path, value)

  monkeypatch.setattr(files, 'save_json', stopping)
  again = None
  while again is None:
    with contextlib.suppress(Stopped):
      again = WholeRun(WITH_NEW, tmp_path / 'run', store_dir=with_new.store)
  assert set(stops) == moments
  assert again.results.digest == with_new.results.digest


def test_more_clusters_than_clients_that_take_part(tmp_path):
  config = changed(WITH_NEW, data={'new_clients': CLIENTS + NEW - 1})
  with pytest.raises(InputError, match='num_clusters=2 is more than the 1 client that'):
    WholeRun(config, tmp_path / 'run')


def test_a_file_whose_rows_changed_is_noticed_whoever_holds_them(tmp_path):
  from tff_cluster.phases import session

  rows = {
    'x': np.random.default_rng(0).normal(size=(120, 3)).astype(np.float32),
    'y': np.arange(120) % 3,
    'client_id': np.repeat(np.arange(6), 20),
  }
  path = tmp_path / 'rows.npz'
  np.savez(path, **rows)
  data = DataConfig(dataset='file', data_file=str(path), partition='by_writer', num_clients=6, new_clients=2)
  config, folder = dataclasses.replace(WITH_NEW, data=data), RunFolder(tmp_path / 'run')
  first = session.clients(folder, config)
  new = saved.load_population(folder.new_clients)
  assert (first.num_clients, new.num_clients) == (4, 2)
  assert session.clients(folder, config).digest == first.digest
  rows['x'][np.flatnonzero((rows['x'] == new.train.x[0]).all(axis=1))] += 1
  np.savez(path, **rows)
  with pytest.raises(InputError, match='has other rows than the run'):
    session.clients(folder, config)
