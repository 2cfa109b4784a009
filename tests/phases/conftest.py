"""A run on planted groups that tests of all phases read: one method a kind of clusters, experts and local training."""

import dataclasses

import pytest

from tests.phases.whole_run import WholeRun
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)

CLIENTS, PHASE1, PHASE2 = 8, 3, 8
LABELS = ('kmeans', 'dynamic_distance', 'everybody')
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
TINY = dataclasses.replace(
  PLAIN,
  training=dataclasses.replace(CONFIG.training, phase1_rounds=1, phase2_rounds=1),
  clusterings=CONFIG.clusterings[:1],
)


@pytest.fixture(scope='session')
def planted(tmp_path_factory):
  return WholeRun(CONFIG, tmp_path_factory.mktemp('planted') / 'run')
