"""What rounds cost, counted by hand from the cohorts, and how far clusterings come at FedAvg's cost, in each unit."""

import dataclasses

import numpy as np
import pytest

from tests.phases.whole_run import WholeRun, changed
from tff_cluster.base.cost import UNITS, Cost
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.phases import own_models
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

# Clients have 12 to 279 rows to train on, twice a round; two of the eight take part in a round.
CLIENTS, PHASE1, PHASE2, EPOCHS, MODELS = 8, 1, 5, 2, 3
LAST = PHASE1 + PHASE2
CONFIG = ExperimentConfig(
  DataConfig(num_clients=CLIENTS, partition='quantity_skew', validation_fraction=0.2),
  TrainingConfig(
    model='logistic', phase1_rounds=PHASE1, phase2_rounds=PHASE2, local_epochs=EPOCHS, cohort_fraction=0.25
  ),
  (
    ClusteringConfig('kmeans', num_clusters=2),
    ClusteringConfig('dynamic_distance', distance_threshold='quantile:0.5'),
    ClusteringConfig('ifca', num_clusters=MODELS),
    ClusteringConfig('ifca', name='warm', num_clusters=MODELS, start='warm'),
    ClusteringConfig('ifca', name='after', start='clustering', start_clustering='kmeans'),
  ),
)
# Number of models, and the round that they are from.
ALTERNATING = {'ifca': (MODELS, 0), 'warm': (MODELS, PHASE1), 'after': (2, PHASE1)}


@pytest.fixture(scope='module')
def runs(tmp_path_factory):
  """Runs with each budget; they share a store, so that the later ones find rounds that the first did not keep."""
  folder = tmp_path_factory.mktemp('budgets')
  return {
    unit: WholeRun(
      dataclasses.replace(CONFIG, evaluation=EvaluationConfig(budget=unit)),
      folder / unit,
      store_dir=str(folder / 'store'),
    )
    for unit in UNITS
  }


class Counted:
  """Costs counted by hand, from nothing but cohorts and rows."""

  def __init__(self, run):
    with run.opened() as experiment:
      everyone = np.arange(CLIENTS)
      members = {
        label: [np.flatnonzero(row) for row in run.membership(label)]
        for label in ('kmeans', 'dynamic_distance')
      }
      self._cohorts = [experiment.trainer.cohort(everyone, number) for number in range(LAST + 1)]
      self._of_clusters = {
        label: [
          [experiment.trainer.cohort(cluster, number) for cluster in clusters] for number in range(LAST + 1)
        ]
        for label, clusters in members.items()
      }
    self._rows = np.diff(run.population.train.offsets)
    self._size = run.results.training.model_bytes

  def trained(self, clients, down=None, forward=0):
    """Returns what it costs that clients train one model each, of so many that they receive together."""
    count, rows = len(clients), int(self._rows[clients].sum())
    down = count if down is None else down
    return Cost(count, down, count, down * self._size, count * self._size, EPOCHS * rows, forward * rows)

  def fedavg(self, rounds):
    return sum((self.trained(self._cohorts[number]) for number in rounds), Cost())

  def signatures(self):
    """Returns what weights cost of the clients that were not in the last round of Phase 1."""
    return self.trained(np.setdiff1d(np.arange(CLIENTS), self._cohorts[PHASE1]))

  def totals(self, label):
    """Returns what has been spent where the rounds of a clustering end with each, from that of its start on."""
    if label not in ALTERNATING:
      rounds = [
        sum((self.trained(cohort) for cohort in self._of_clusters[label][number]), Cost())
        for number in range(PHASE1 + 1, LAST + 1)
      ]
      return [sum(rounds[:count], self.signatures()) for count in range(PHASE2 + 1)]
    models, first = ALTERNATING[label]
    before = {'ifca': Cost() - self.fedavg(range(1, PHASE1 + 1)), 'warm': Cost(), 'after': self.signatures()}
    spent = [sum(self.rounds(label)[:count], before[label]) for count in range(LAST - first + 1)]
    if label == 'after':
      return spent
    return [
      spent[0],
      *(each + self._assigned(models, first, first + 1 + row) for row, each in enumerate(spent[1:])),
    ]

  def rounds(self, label):
    """Returns what each round of IFCA costs: a client receives all models, measures them, and trains and sends one."""
    models, first = ALTERNATING[label]
    costs = []
    for number in range(first + 1, LAST + 1):
      # Clusters that are given are trained first as they are.
      several = 0 if label == 'after' and number == first + 1 else models
      cohort = self._cohorts[number]
      costs.append(self.trained(cohort, len(cohort) * max(several, 1), several))
    return costs

  def _assigned(self, models, first, last):
    """Returns what it costs that the clients of no cohort measure the models in the end."""
    seen = set(np.concatenate(self._cohorts[first + 1 : last + 1]).tolist())
    rest = [client for client in range(CLIENTS) if client not in seen]
    sent, rows = models * len(rest), int(self._rows[rest].sum())
    return Cost(models_down=sent, bytes_down=sent * self._size, rows_forward=models * rows)


@pytest.fixture(scope='module')
def counted(runs):
  return Counted(runs['rounds'])


def test_trajectories_cost_what_their_cohorts_receive_train_and_send(runs, counted):
  results = runs['rounds'].results
  assert results.phase1.cost == counted.fedavg(range(1, PHASE1 + 1))
  assert results.baseline.cost == counted.fedavg(range(1, LAST + 1))
  for label in ('kmeans', 'dynamic_distance'):
    assert runs['rounds'].clustering(label).cost == counted.totals(label)[-1]


@pytest.mark.parametrize('label', ALTERNATING)
def test_a_client_of_ifca_receives_and_measures_all_models_and_trains_and_sends_one(label, runs, counted):
  run = runs['rounds']
  saved = files.load_arrays(run.folder.memberships(label))
  assert [Cost(*row) for row in saved['cost'].tolist()] == counted.rounds(label)
  assert run.clustering(label).cost == counted.totals(label)[-1]
  # Somebody was in no cohort, and is assigned all the same.
  assert label == 'after' or not saved['shares'][-2].any(axis=0).all()
  assert run.membership(label).any(axis=0).all()


@pytest.mark.parametrize('unit', UNITS)
def test_equal_cost_is_the_last_round_that_fedavg_could_pay(unit, runs, counted):
  budget = counted.fedavg(range(PHASE1 + 1, LAST + 1)).of(unit)
  stopped = []
  for clustering in runs[unit].results.clusterings:
    totals = counted.totals(clustering.label)
    if totals[-1].of(unit) <= budget:
      assert clustering.equal_cost is None
      continue
    first = LAST - len(totals) + 1
    last = next((row for row in reversed(range(len(totals))) if totals[row].of(unit) <= budget), 0)
    assert (clustering.equal_cost.round, clustering.equal_cost.cost) == (first + last, totals[last])
    stopped.append(clustering.label)
  # IFCA takes as many client-rounds as FedAvg, where its start took none.
  dear = {'kmeans', 'dynamic_distance', 'after'}
  assert set(stopped) >= dear | (set() if unit == 'rounds' else {'ifca', 'warm'})
  assert unit != 'rounds' or set(stopped) == dear


def test_models_at_equal_cost_are_those_of_a_run_that_ends_there_whatever_a_store_holds(runs, tmp_path):
  long = runs['bytes']
  label, equal_cost = next(
    (c.label, c.equal_cost) for c in long.results.clusterings[2:] if c.equal_cost.round > PHASE1
  )
  clustering = next(each for each in CONFIG.clusterings if each.label == label)
  alone = dataclasses.replace(CONFIG, clusterings=(CONFIG.clusterings[0], clustering))
  shorter = changed(alone, training={'phase2_rounds': equal_cost.round - PHASE1})
  short = WholeRun(shorter, tmp_path / 'short')
  own = short.clustering(label).evaluations['own']
  assert equal_cost.evaluation.client_accuracy == own.client_accuracy
  assert equal_cost.evaluation.clients == own.clients
  assert equal_cost.validation_accuracy == short.clustering(label).history.validation_accuracy[-1]
  # The rounds of the short run are a beginning of the long one, though it assigned clients that no cohort had.
  budget = dataclasses.replace(alone, evaluation=long.config.evaluation)
  after = WholeRun(budget, tmp_path / 'after', store_dir=short.store)
  assert after.clustering(label) == long.clustering(label)


def test_rounds_and_their_models_are_read_again_and_nothing_is_trained(runs):
  run = runs['passes']
  again = WholeRun(run.config, run.folder.root, store_dir=run.store)
  assert again.done.trained == 0 and again.results.digest == run.results.digest
  checkpoints = run.results.artifacts.clusterings['warm'][0]
  assert checkpoints.rounds == (run.clustering('warm').equal_cost.round, LAST)
  assert all(
    (run.folder.store / checkpoints.artifact / f'round_{n:05d}.npz').exists() for n in checkpoints.rounds
  )


def test_joined_predictions_are_measured_as_such(runs):
  with runs['rounds'].opened() as experiment:
    models = [experiment.initial_weights(position) for position in range(2)]
    shares = np.tile([[0.3], [0.7]], CLIENTS)
    test = experiment.population.test
    (found,) = own_models.scores(experiment, models, shares, True, (test,))
    joined = sum(
      share * experiment.trainer.predict(m, test.x).astype(float)
      for share, m in zip((0.3, 0.7), models, strict=True)
    )
  right = joined.argmax(axis=1) == test.y
  expected = [right[a:b].mean() for a, b in zip(test.offsets[:-1], test.offsets[1:], strict=True)]
  assert found.client_accuracy == pytest.approx(expected)


def test_what_starts_from_clusters_of_a_chosen_threshold_pays_all_cuts(tmp_path):
  rounds, config = 2, changed(CONFIG, {'partition': 'iid'}, {'cohort_fraction': 1.0, 'phase2_rounds': 3})
  clusterings = (
    ClusteringConfig('hierarchical', linkage='ward', distance_threshold=f'validation:{rounds}'),
    ClusteringConfig('ifca', name='after', start='clustering', start_clustering='hierarchical'),
  )
  run = WholeRun(dataclasses.replace(config, clusterings=clusterings), tmp_path / 'run')
  found, after = (run.clustering(each.label) for each in clusterings)
  cuts = len(found.choice.candidates)
  # Every client trains one model in every round of every cut, and has sent its weights in Phase 1.
  assert cuts > 1 and after.cost.client_rounds == CLIENTS * (rounds * cuts + 3)
  assert found.cost.client_rounds == CLIENTS * (rounds * (cuts - 1) + 3)
  rows = int(run.population.train.counts.sum())
  assert after.cost.rows_trained - found.cost.rows_trained == EPOCHS * rows * rounds


def test_without_a_phase_1_updates_and_the_weights_that_clusters_start_from_are_one_training(tmp_path):
  config = changed(CONFIG, training={'phase1_rounds': 0, 'phase2_rounds': 1, 'cohort_fraction': 1.0})
  kmeans = ClusteringConfig('kmeans', num_clusters=2, signature='updates')
  run = WholeRun(dataclasses.replace(config, clusterings=(kmeans,)), tmp_path / 'run')
  np.testing.assert_allclose(
    run.signatures('weights') - run.signatures('updates'),
    np.broadcast_to(run.signatures('weights')[0] - run.signatures('updates')[0], run.signatures().shape),
    atol=1e-6,
  )
  cost = run.clustering('kmeans').cost
  # Of the round by which clients are clustered, and of that of Phase 2.
  assert cost.client_rounds == cost.models_up == 2 * CLIENTS
