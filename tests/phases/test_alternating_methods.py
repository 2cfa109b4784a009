"""Each method that alternates, on real clients: FedAvg with one cluster, its costs, its groups and its newcomers."""

import dataclasses
import shutil

import numpy as np
import pytest
from sklearn import cluster as sklearn_cluster

from tests.phases.conftest import PLAIN
from tests.phases.test_alternation import cross_entropy, saved
from tests.phases.whole_run import Stopped, WholeRun, accuracy, changed, opened
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.config import ClusteringConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import alternation, federation
from tff_cluster.storage import files, saved_rounds

pytestmark = pytest.mark.tensorflow

CLIENTS, LAST = 8, 3


@dataclasses.dataclass(frozen=True)
class Expected:
  """What is known of a method.

  Attributes:
    equal: Whether all clients weigh the same; else as many as they have rows.
    one: Options beside one cluster.
    sent: Models that a client is sent in a round, of three, and `asked`, on how many of them it measures its rows.
    trained: Models that it trains.
    newcomer: Models that a newcomer joins, of three.
  """

  equal: bool
  one: dict = dataclasses.field(default_factory=dict)
  sent: int = 3
  asked: int = 3
  trained: int = 1
  newcomer: int = 1


METHODS = {
  'ifca': Expected(equal=True),
  'hypcluster': Expected(equal=False),
  'fesem': Expected(equal=True, sent=1, asked=0),
  'wecfl': Expected(equal=False, sent=1, asked=0),
  'flsc': Expected(equal=True, one={'num_joined': 1}, newcomer=2),
  'clove': Expected(equal=False),
  'fedem': Expected(equal=False, trained=3, newcomer=3),
}
CONFIG = changed(
  PLAIN,
  {'num_clients': CLIENTS + 2, 'new_clients': 2, 'partition': 'quantity_skew', 'num_groups': 4},
  {'phase1_rounds': 1, 'phase2_rounds': LAST - 1, 'cohort_fraction': 0.75},
  clusterings=tuple(ClusteringConfig(name, num_clusters=3) for name in METHODS),
)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  return WholeRun(CONFIG, tmp_path_factory.mktemp('methods that alternate') / 'run')


def models(run, label):
  """Returns the models of a clustering's clusters after the last round."""
  phase2 = run.folder.load_finished(run.folder.phase2(label), phase_files.Phase2)
  paths = [run.folder.store / each.artifact / f'round_{LAST:05d}.npz' for each in phase2.trajectories]
  return [
    saved_rounds.model(files.load_arrays(path), 2, each.position)
    for path, each in zip(paths, phase2.trajectories, strict=True)
  ]


@pytest.mark.parametrize('name', METHODS)
def test_what_clients_are_sent_and_do_is_counted(finished, name):
  _, arrays = saved(finished, name)
  expected, rows = METHODS[name], finished.population.train.counts
  with finished.opened() as experiment:
    # In the last round, clients that no cohort ever had are asked as well.
    for number in range(1, LAST):
      cohort = experiment.trainer.cohort(experiment.everyone, number)
      size, visited = len(cohort), rows[cohort].sum()
      trained = expected.trained * size
      line = [trained, expected.sent * size, trained, expected.trained * visited, expected.asked * visited]
      assert arrays['cost'][number - 1].tolist() == line


def lloyd_by_hand(run, name):
  """Rounds by distance of weights once more, on the trainer alone; returns each round's labels (-1: none yet), and the centers."""
  labels, history = np.full(CLIENTS, -1), []
  with run.opened() as experiment:
    trainer = experiment.trainer
    weights = np.ones(CLIENTS) if METHODS[name].equal else experiment.population.train.counts
    centers = np.tile(experiment.flatten(experiment.initial_weights(0)).astype(np.float64), (3, 1))
    for number in range(1, LAST + 1):
      cohort = trainer.cohort(experiment.everyone, number)
      usual = centers[labels[labels >= 0]].mean(axis=0) if number > 1 else centers[0]
      vectors = np.array([centers[labels[k]] if labels[k] >= 0 else usual for k in cohort])
      for row, k in enumerate(cohort):
        start, update = vectors[row].astype(np.float32), np.empty((1, vectors.shape[1]))
        trainer.local_updates(experiment.unflatten(start), [k], number, update.__setitem__)
        vectors[row] += update[0]
      if number == 1:
        found = (
          sklearn_cluster.KMeans(3, n_init=20, random_state=0).fit(vectors, None, weights[cohort]).labels_
        )
        found = np.array([list(dict.fromkeys(found)).index(label) for label in found])
      else:
        found = np.square(vectors[:, None] - centers).sum(axis=2).argmin(axis=1)
      for k in set(found):
        centers[k] = np.average(vectors[found == k], axis=0, weights=weights[cohort][found == k])
      labels[cohort] = found
      history.append(labels.copy())
    return np.array(history), centers


@pytest.mark.parametrize('name', ['fesem', 'wecfl'])
def test_rounds_by_distance_of_weights_are_lloyds(finished, name):
  found, arrays = saved(finished, name)
  history, centers = lloyd_by_hand(finished, name)
  assigned = history >= 0
  np.testing.assert_array_equal(arrays['shares'].argmax(axis=1)[assigned], history[assigned])
  for position, model in zip(found.models, models(finished, name), strict=True):
    np.testing.assert_allclose(np.concatenate(list(map(np.ravel, model))), centers[position], atol=1e-5)


def test_newcomers_join_the_models_with_the_least_losses(finished):
  with finished.opened() as experiment:
    train = experiment.new_clients.train
  for name, expected in METHODS.items():
    losses = np.array([cross_entropy(model, train) for model in models(finished, name)])
    best = [sorted(order[: expected.newcomer].tolist()) for order in np.argsort(losses, axis=0).T]
    assert finished.clustering(name).new_clients.assigned == best


def test_a_client_of_several_models_is_measured_with_their_mean(finished):
  membership, own = np.array(saved(finished, 'flsc')[0].membership), models(finished, 'flsc')
  assert (np.sort(membership, axis=0)[-2:] == 0.5).all()
  for client in range(CLIENTS):
    mean = [np.mean([own[k][i] for k in np.flatnonzero(membership[:, client])], axis=0) for i in range(2)]
    found = finished.clustering('flsc').evaluations['own'].client_accuracy[client]
    assert found == pytest.approx(accuracy(mean, finished.population.test, client))


@pytest.fixture(scope='module')
def with_momentum(tmp_path_factory):
  """An experiment whose server remembers earlier rounds, with each method twice: with three clusters, and one."""
  one = [
    ClusteringConfig(name, name=f'{name}_1', num_clusters=1, **expected.one)
    for name, expected in METHODS.items()
  ]
  training = {'server_optimizer': 'momentum', 'server_learning_rate': 0.5}
  config = changed(CONFIG, training=training, clusterings=(*CONFIG.clusterings, *one))
  with opened(RunFolder(tmp_path_factory.mktemp('momentum') / 'run'), config) as experiment:
    yield experiment


@pytest.mark.parametrize('name', METHODS)
def test_with_one_cluster_it_is_fedavg_and_so_with_a_server_optimizer(with_momentum, name):
  trainer = with_momentum.trainer
  state = trainer.start(with_momentum.initial_weights(0))
  for number in range(1, LAST + 1):
    cohort = trainer.cohort(with_momentum.everyone, number)
    state, _ = trainer.round(state, cohort, number, equal=METHODS[name].equal)
  found = saved_rounds.model(alternation.train(with_momentum, f'{name}_1'), 2)
  assert all(map(np.array_equal, found, trainer.weights(state)))


@pytest.mark.parametrize('name', METHODS)
def test_stopped_rounds_go_on_to_the_same_bits_with_what_the_server_remembers(
  with_momentum, name, monkeypatch
):
  cohort, rounds = federation.Clients.cohort, []

  def stopping(clients, number):
    rounds.append(number)
    if rounds == [1, 2]:
      raise Stopped
    return cohort(clients, number)

  kept = set(with_momentum.store.root.glob('alternating-*'))
  expected = alternation.train(with_momentum, name)
  (made,) = set(with_momentum.store.root.glob('alternating-*')) - kept
  shutil.rmtree(made)
  monkeypatch.setattr(federation.Clients, 'cohort', stopping)
  with pytest.raises(Stopped):
    alternation.train(with_momentum, name)
  found = alternation.train(with_momentum, name)
  assert set(rounds[2:]) == set(range(2, LAST + 1))
  assert found.keys() == expected.keys()
  assert all(np.array_equal(found[key], expected[key], equal_nan=True) for key in expected)
