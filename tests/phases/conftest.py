"""Runs on planted groups that tests of several phases read."""

import dataclasses

import pytest

from tests.phases.whole_run import WholeRun, changed
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)

CLIENTS, PHASE1, PHASE2 = 8, 4, 5
LABELS = ('kmeans', 'dynamic_distance', 'everybody')
# One method a kind of clusters, experts and local training.
CONFIG = ExperimentConfig(
  DataConfig(num_clients=CLIENTS, rows_per_client=80, validation_fraction=0.2, num_groups=2),
  TrainingConfig(
    model='logistic', phase1_rounds=PHASE1, phase2_rounds=PHASE2, batch_size=10, learning_rate=0.1, seed=0
  ),
  (
    ClusteringConfig('kmeans', num_clusters=2),
    ClusteringConfig('dynamic_distance', distance_threshold='quantile:0.3'),
    ClusteringConfig('hierarchical', name='everybody', distance_threshold='1e9'),
    ClusteringConfig('planted'),
  ),
  EvaluationConfig(experts=True, local_training=True),
)
PLAIN = dataclasses.replace(CONFIG, clusterings=CONFIG.clusterings[:3], evaluation=EvaluationConfig())
TINY = changed(PLAIN, training={'phase1_rounds': 1, 'phase2_rounds': 1}, clusterings=CONFIG.clusterings[:1])

NEW = 4
# Clients that come later. The second clustering is overlapping, costs more than FedAvg and is measured at equal cost.
WITH_NEW = changed(
  PLAIN,
  data={'num_clients': CLIENTS + NEW, 'new_clients': NEW},
  clusterings=(
    CONFIG.clusterings[0],
    CONFIG.clusterings[1],
    ClusteringConfig('hierarchical', signature='updates', distance_threshold='validation', linkage='ward'),
    ClusteringConfig('fedgroup', num_clusters=2),
    ClusteringConfig('pacfl', num_clusters=2),
    ClusteringConfig('planted'),
    ClusteringConfig('bipartition', stationary_norm=9.0, stopping_norm=0.001, rounds_before_split=20),
    # So wide that clusters mix the groups, and clients are in clusters whose models differ much.
    ClusteringConfig('dynamic_distance', name='wide', distance_threshold='quantile:0.8'),
  ),
)


@pytest.fixture(scope='session')
def planted(tmp_path_factory):
  return WholeRun(CONFIG, tmp_path_factory.mktemp('planted') / 'run', export_models=True)


@pytest.fixture(scope='session')
def with_new(tmp_path_factory):
  return WholeRun(WITH_NEW, tmp_path_factory.mktemp('new clients') / 'run')
