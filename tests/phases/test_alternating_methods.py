"""Each method that alternates, on real clients: FedAvg with one cluster, its costs, its groups and its newcomers."""

import dataclasses
import shutil

import numpy as np
import pytest
from sklearn import cluster as sklearn_cluster

from tests.made_up.linear_model import cross_entropies, flat, probabilities
from tests.phases.alternating_run import cost, costs, cross_entropy, models, saved
from tests.phases.conftest import PLAIN
from tests.phases.whole_run import Stopped, WholeRun, accuracy, changed, estimated, opened
from tff_cluster.clustering.methods import ifca
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
    sent: Models that a client is sent in a round, of three, `asked`, on how many of them it measures its rows, and `trained`, how
      many it trains.
    soft: Whether newcomers have shares in all models.
  """

  equal: bool
  one: dict = dataclasses.field(default_factory=dict)
  sent: int = 3
  asked: int = 3
  trained: int = 1
  soft: bool = False


METHODS = {
  'ifca': Expected(equal=True),
  'hypcluster': Expected(equal=False),
  'fesem': Expected(equal=True, sent=1, asked=0),
  'wecfl': Expected(equal=False, sent=1, asked=0),
  'flsc': Expected(equal=True, one={'num_joined': 1}),
  'clove': Expected(equal=False),
  'fedem': Expected(equal=False, trained=3, soft=True),
}
CONFIG = changed(
  PLAIN,
  {'num_clients': CLIENTS + 2, 'new_clients': 2, 'partition': 'quantity_skew', 'num_groups': 4},
  {'phase1_rounds': 1, 'phase2_rounds': LAST - 1, 'cohort_fraction': 0.75},
  clusterings=tuple(ClusteringConfig(name, name=f'{name}_3', num_clusters=3) for name in METHODS),
)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  return WholeRun(CONFIG, tmp_path_factory.mktemp('methods that alternate') / 'run')


@pytest.mark.parametrize('name', METHODS)
def test_what_clients_are_sent_and_do_is_counted(finished, name):
  _, arrays = saved(finished, f'{name}_3')
  expected, rows = METHODS[name], finished.population.train.counts
  with finished.opened() as experiment:
    # In the last round, clients that no cohort ever had are asked as well.
    for number in range(1, LAST):
      cohort = experiment.trainer.cohort(experiment.everyone, number)
      trained = rows[cohort].sum() * CONFIG.training.local_epochs
      size = len(cohort)
      count, asked = expected.trained, expected.asked * rows[cohort].sum()
      line = cost(finished, count * size, expected.sent * size, count * size, count * trained, asked)
      assert costs(arrays)[number - 1] == line


def test_a_dry_run_counts_what_the_run_then_asks_for(finished, tmp_path):
  expected = finished.done.asked
  assert estimated(CONFIG, tmp_path / 'new') == (expected, 0) and not (tmp_path / 'new').exists()
  assert estimated(CONFIG, finished.folder.root) == (expected, expected)


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
  found, arrays = saved(finished, f'{name}_3')
  history, centers = lloyd_by_hand(finished, name)
  assigned = history >= 0
  np.testing.assert_array_equal(arrays['shares'].argmax(axis=1)[assigned], history[assigned])
  for position, model in zip(found.models, models(finished, f'{name}_3'), strict=True):
    np.testing.assert_allclose(flat(model), centers[position], atol=1e-5)


def test_newcomers_join_the_models_with_the_least_losses(finished):
  with finished.opened() as experiment:
    train = experiment.new_clients.train
  for name in (name for name, expected in METHODS.items() if not expected.soft):
    losses = np.array([cross_entropy(model, train) for model in models(finished, f'{name}_3')])
    count = 2 if name == 'flsc' else 1
    expected = [sorted(order[:count].tolist()) for order in np.argsort(losses, axis=0).T]
    assert finished.clustering(f'{name}_3').new_clients.assigned == expected


def test_a_client_of_several_models_is_measured_with_their_mean(finished):
  membership, own = np.array(finished.clustering('flsc_3').shares) > 0, models(finished, 'flsc_3')
  assert (membership.sum(axis=0) == 2).all()
  for client in range(CLIENTS):
    mean = [np.mean([own[k][i] for k in np.flatnonzero(membership[:, client])], axis=0) for i in range(2)]
    found = finished.clustering('flsc_3').evaluations['own'].client_accuracy[client]
    assert found == pytest.approx(accuracy(mean, finished.population.test, client))


def joined(own, shares, split, client):
  """Returns the accuracy of predictions joined by shares on a client's rows."""
  x, y = split.client(client)
  return np.mean(sum(s * probabilities(w, x) for s, w in zip(shares, own, strict=True)).argmax(axis=1) == y)


def test_a_client_of_fedem_predicts_with_the_mean_of_its_models_predictions_by_shares(finished):
  clustering, own = finished.clustering('fedem_3'), models(finished, 'fedem_3')
  shares, test = np.array(clustering.shares), finished.population.test
  np.testing.assert_allclose(shares.sum(axis=0), 1.0)
  expected = [joined(own, shares[:, client], test, client) for client in range(CLIENTS)]
  np.testing.assert_allclose(clustering.evaluations['own'].client_accuracy, expected)
  assert clustering.history.test_accuracy[-1] == pytest.approx(np.mean(expected))


def test_newcomers_of_fedem_have_the_shares_that_em_finds_on_their_training_rows(finished):
  own, new = models(finished, 'fedem_3'), finished.clustering('fedem_3').new_clients
  with finished.opened() as experiment:
    train, test = experiment.new_clients.train, experiment.new_clients.test
  for client in range(2):
    likely = np.exp([-cross_entropies(model, *train.client(client)) for model in own])
    shares = np.full(3, 1 / 3)
    for _ in range(2000):
      responsible = shares[:, None] * likely
      shares = (responsible / responsible.sum(axis=0)).mean(axis=1)
    np.testing.assert_allclose(new.shares[client], shares, atol=2e-3)
    assert new.client_accuracy[client] == pytest.approx(joined(own, new.shares[client], test, client))


@pytest.fixture(scope='module')
def of_all_clients(tmp_path_factory):
  """FedSoft where all clients take part in every round."""
  clusterings = tuple(
    ClusteringConfig('fedsoft', name=f'soft_{count}', num_clusters=count, attraction=attraction)
    for count, attraction in ((1, 0.0), (3, 2.0))
  )
  config = changed(CONFIG, training={'cohort_fraction': 1.0}, clusterings=clusterings)
  return WholeRun(config, tmp_path_factory.mktemp('fedsoft') / 'run')


def test_with_one_cluster_and_no_attraction_fedsoft_is_fedavg(of_all_clients):
  baseline = of_all_clients.folder.load_finished(
    of_all_clients.folder.baseline, phase_files.Baseline
  ).trajectory
  record = files.load_arrays(of_all_clients.folder.store / baseline.artifact / f'round_{LAST:05d}.npz')
  (model,) = models(of_all_clients, 'soft_1')
  assert all(map(np.array_equal, model, saved_rounds.model(record, 2)))


def test_a_client_of_fedsoft_has_the_mixture_of_models_of_which_it_starts(of_all_clients):
  clustering, own = of_all_clients.clustering('soft_3'), models(of_all_clients, 'soft_3')
  shares = np.array(clustering.shares)
  for client in range(CLIENTS):
    mixture = [sum(s * model[i] for s, model in zip(shares[:, client], own, strict=True)) for i in range(2)]
    found = clustering.evaluations['own'].client_accuracy[client]
    assert found == pytest.approx(accuracy(mixture, of_all_clients.population.test, client))


def test_what_clients_of_fedsoft_are_sent_and_do_is_counted(of_all_clients):
  _, arrays = saved(of_all_clients, 'soft_3')
  rows = of_all_clients.population.train.counts.sum()
  trained = rows * CONFIG.training.local_epochs
  assert costs(arrays) == [cost(of_all_clients, CLIENTS, 3 * CLIENTS, CLIENTS, trained, 3 * rows)] * LAST


def test_where_clients_make_one_step_the_attraction_of_fedsoft_changes_nothing_and_a_note_says_so(tmp_path):
  clusterings = (
    ClusteringConfig('fedsoft', name='pulled', num_clusters=2),
    ClusteringConfig('fedsoft', name='free', num_clusters=2, attraction=0.0),
  )
  run = WholeRun(changed(CONFIG, training={'batch_size': 0}, clusterings=clusterings), tmp_path / 'run')
  told = {
    label: [n for n in run.clustering(label).notes if 'attraction' in n] for label in ('pulled', 'free')
  }
  words = 'attraction=0.1 has no effect, because a client makes one step a round'
  assert told == {'pulled': [words], 'free': []}
  for one, other in zip(models(run, 'pulled'), models(run, 'free'), strict=True):
    assert all(map(np.array_equal, one, other))


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
  expected = alternation.train(with_momentum, f'{name}_3')
  (made,) = set(with_momentum.store.root.glob('alternating-*')) - kept
  shutil.rmtree(made)
  monkeypatch.setattr(federation.Clients, 'cohort', stopping)
  with pytest.raises(Stopped):
    alternation.train(with_momentum, f'{name}_3')
  found = alternation.train(with_momentum, f'{name}_3')
  assert set(rounds[2:]) == set(range(2, LAST + 1))
  assert found.keys() == expected.keys()
  assert all(np.array_equal(found[key], expected[key], equal_nan=True) for key in expected)


def test_rounds_of_an_earlier_version_of_a_method_are_not_gone_on_with(with_momentum, monkeypatch):
  alternation.train(with_momentum, 'ifca_3')
  trained = with_momentum.trained
  alternation.train(with_momentum, 'ifca_3')
  assert with_momentum.trained == trained
  monkeypatch.setattr(ifca.IFCA, 'revision', 1)
  record = alternation.train(with_momentum, 'ifca_3')
  assert with_momentum.trained == trained + record['cost'][:, 0].sum()
