"""Phase 2: where clusters start, what they end with, what it costs, and what it is at FedAvg's cost."""

import csv
import dataclasses
import json

import numpy as np
import pytest

from tests.phases.conftest import CLIENTS, CONFIG, LABELS, PHASE1, PHASE2, PLAIN
from tests.phases.whole_run import WholeRun, changed
from tff_cluster.base import digests
from tff_cluster.base.cost import Cost
from tff_cluster.experiment.config import ClusteringConfig
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow


def trajectory(run, start_round, members, last):
  """Returns the weights after a round, as the store has them, and what determined the trajectory."""
  wanted = [run.population.client_digests[k] for k in members]
  for folder in run.folder.store.glob('fedavg-*'):
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
  baseline, own = planted.results.baseline.evaluation, planted.clustering('everybody').evaluations['own']
  np.testing.assert_allclose(own.client_accuracy, baseline.client_accuracy, atol=0.02)
  assert own.global_test.loss == pytest.approx(baseline.global_test.loss, rel=1e-3)


def test_clusters_start_from_the_plain_mean_of_their_members(planted):
  vectors = planted.signatures().astype(np.float64)
  for row in planted.membership('kmeans'):
    members = np.flatnonzero(row)
    mean = vectors[members].mean(axis=0).astype(np.float32)
    _, determinants = trajectory(planted, PHASE1, members, PHASE1 + PHASE2)
    # The sums are exact in float64, so the bits are known.
    assert determinants['start_weights'] == digests.of_arrays([mean[:7840].reshape(784, 10), mean[7840:]])


@pytest.mark.parametrize('label', LABELS)
def test_exported_models_are_the_trained_ones_best_validation_is_the_highest_of_the_rounds_and_history_the_mean(
  label, planted
):
  clustering, member = planted.clustering(label), planted.membership(label)
  for row, weights in zip(member, planted.models[label], strict=True):
    trained, _ = trajectory(planted, PHASE1, np.flatnonzero(row), PHASE1 + PHASE2)
    assert all(np.array_equal(one, other) for one, other in zip(weights, trained, strict=True))
  history, rounds = clustering.history, list(range(PHASE1 + 1, PHASE1 + PHASE2 + 1))
  validation, test = [], []
  for row in range(len(member)):
    with open(planted.folder.metrics(f'{label}/cluster_{row:03d}')) as stream:
      lines = list(csv.DictReader(stream))
    assert [int(line['round']) for line in lines] == rounds
    validation.append([float(line['validation_accuracy']) for line in lines])
    test.append([float(line['test_accuracy']) for line in lines])
  # All clients have as many rows, so the mean over clients is that over rows.
  assert clustering.best_validation == pytest.approx([max(column) for column in validation])
  assert history.rounds == rounds
  if not clustering.overlapping:
    sizes = member.sum(axis=1)
    np.testing.assert_allclose(history.validation_accuracy, sizes @ np.array(validation) / CLIENTS)
    np.testing.assert_allclose(history.test_accuracy, sizes @ np.array(test) / CLIENTS)
  # A client in several clusters counts with the mean over their models.
  by_model = np.zeros(member.shape)
  for row, k in zip(*np.nonzero(member), strict=True):
    x, y = planted.population.test.client(k)
    by_model[row, k] = np.mean(planted.predict(planted.models[label][row], x).argmax(axis=1) == y)
  assert history.test_accuracy[-1] == pytest.approx(np.mean(by_model.sum(axis=0) / member.sum(axis=0)))


def test_the_cost_counts_every_membership(planted):
  results, parameters = planted.results, 784 * 10 + 10
  assert (results.training.parameters, results.training.model_bytes) == (parameters, 4 * parameters)
  for label in LABELS:
    # All clients train on 64 of their 80 rows, once a round.
    rounds = int(planted.membership(label).sum()) * PHASE2
    size = rounds * 4 * parameters
    assert planted.clustering(label).cost == Cost(rounds, rounds, rounds, size, size, 64 * rounds)
  assert results.phase1.cost.client_rounds == CLIENTS * PHASE1
  assert results.baseline.cost.client_rounds == CLIENTS * (PHASE1 + PHASE2)


def test_a_clustering_that_costs_more_is_measured_where_fedavg_would_stop(planted, tmp_path):
  dear = planted.clustering('dynamic_distance')
  each = sum(len(members) for members in dear.clusters)
  affordable = CLIENTS * PHASE2 // each
  assert each > CLIENTS and 0 < affordable < PHASE2
  found = dear.equal_cost
  assert (found.round, found.cost.client_rounds) == (PHASE1 + affordable, each * affordable)
  # A run of so many rounds ends with the same models.
  shorter = changed(PLAIN, training={'phase2_rounds': affordable}, clusterings=CONFIG.clusterings[1:2])
  again = WholeRun(shorter, tmp_path, store_dir=planted.store)
  own = again.clustering('dynamic_distance').evaluations['own']
  assert found.evaluation == dataclasses.replace(own, mixing=None)
  # Validation rows are in the history, but where the models are those that clusters start from.
  assert found.validation_accuracy is None and found.round in dear.history.rounds
  assert all(planted.clustering(label).equal_cost is None for label in ('kmeans', 'everybody', 'planted'))


def test_where_not_even_a_round_can_be_paid_the_start_is_measured(planted, tmp_path):
  # The round in which updates are sent costs as much as the only round of Phase 2.
  one = changed(
    PLAIN,
    training={'phase2_rounds': 1, 'cluster_start': 'global_model'},
    clusterings=(ClusteringConfig('kmeans', num_clusters=2, signature='updates'),),
  )
  results = WholeRun(one, tmp_path, store_dir=planted.store).results
  found = results.clusterings[0].equal_cost
  assert (found.round, found.cost.client_rounds) == (PHASE1, CLIENTS)
  assert found.evaluation.client_accuracy == results.phase1.evaluation.client_accuracy
  assert found.validation_accuracy == pytest.approx(results.phase1.history.validation_accuracy[-1])
  assert results.personalized == []
