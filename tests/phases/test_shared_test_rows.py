"""Runs whose clients are all tested on the whole test set with their group's labels (Sattler et al. 2019, equation 7)."""

import numpy as np
import pytest

from tests.made_up.linear_model import probabilities
from tests.phases.conftest import CLIENTS, PLAIN
from tests.phases.whole_run import WholeRun, accuracy, changed
from tff_cluster.experiment.config import ClusteringConfig, EvaluationConfig

pytestmark = pytest.mark.tensorflow

CONFIG = changed(
  PLAIN,
  {'partition': 'label_permuted', 'test_rows': 'all', 'num_clients': CLIENTS + 2, 'new_clients': 2},
  clusterings=(
    ClusteringConfig('kmeans', num_clusters=2),
    # So wide that clusters mix the groups, and clients are in several.
    ClusteringConfig('dynamic_distance', distance_threshold='quantile:0.8'),
    ClusteringConfig('fedem', num_clusters=2),
  ),
  evaluation=EvaluationConfig(aggregation=('mean',)),
)


@pytest.fixture(scope='module')
def done(tmp_path_factory):
  return WholeRun(CONFIG, tmp_path_factory.mktemp('shared') / 'run', export_models=True)


def test_every_client_has_the_accuracy_of_its_model_on_the_whole_test_set(done):
  population = done.population
  group = population.truths['group'].argmax(axis=0)
  assert len(set(group)) == 2 and done.results.population.rows.test == CLIENTS * len(population.global_test_y)
  kmeans, (one, two) = done.clustering('kmeans'), done.models['kmeans']
  membership = done.membership('kmeans')
  found = kmeans.evaluations['own'].client_accuracy
  for client in range(CLIENTS):
    model = (one, two)[membership[:, client].argmax()]
    assert found[client] == pytest.approx(accuracy(model, population.test, client))
  # One model and one group are one number.
  fedavg = done.results.baseline.evaluation.client_accuracy
  assert len(set(fedavg)) == 2
  assert [len({fedavg[k] for k in np.flatnonzero(group == g)}) for g in range(2)] == [1, 1]
  mixed = done.clustering('dynamic_distance')
  membership, models = done.membership('dynamic_distance'), done.models['dynamic_distance']
  assert (membership.sum(axis=0) > 1).any()
  for client in range(CLIENTS):
    own = [models[k] for k in np.flatnonzero(membership[:, client])]
    mean = [np.mean([weights[i] for weights in own], axis=0) for i in range(2)]
    assert mixed.evaluations['own'].client_accuracy[client] == pytest.approx(
      accuracy(mean, population.test, client)
    )


def test_joined_predictions_and_rules_of_predictions_are_asked_on_the_same_rows(done):
  population, clustering = done.population, done.clustering('fedem')
  x = population.global_test_x
  outputs = np.stack([probabilities(weights, x) for weights in done.models['fedem']])
  shares = np.array(clustering.shares)
  outputs_of_kmeans = np.stack([probabilities(weights, x) for weights in done.models['kmeans']])
  for client in range(CLIENTS):
    y = population.test.client(client)[1]
    joined = np.tensordot(shares[:, client], outputs, 1).argmax(axis=1)
    assert clustering.evaluations['own'].client_accuracy[client] == pytest.approx(
      np.mean(joined == y), abs=1.01 / len(y)
    )
    mean = outputs_of_kmeans.mean(axis=0).argmax(axis=1)
    found = done.clustering('kmeans').evaluations['mean'].client_accuracy[client]
    assert found == pytest.approx(np.mean(mean == y), abs=1.01 / len(y))
