"""Cluster models as experts: what the rules see is what the models give, and the numbers are theirs."""

import dataclasses

import numpy as np
import pytest
import scipy.special

from tff_cluster.aggregation.rules import fedex
from tff_cluster.data import saved
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import run_experiment
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

CONFIG = ExperimentConfig(
  DataConfig(num_clients=6, rows_per_client=60, partition='pathological'),
  TrainingConfig(model='logistic', phase1_rounds=1, phase2_rounds=4, batch_size=10, cluster_start='global_model'),
  (ClusteringConfig('spectral', num_clusters=3),),
  EvaluationConfig(experts=True),
)  # fmt: skip


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  path = tmp_path_factory.mktemp('experts') / 'run'
  return run_experiment.run_experiment(CONFIG, path).results, RunFolder(path)


def outputs_by_hand(folder, clusters):
  """Softmax of each cluster's linear model on the global test set, from the exported models' weights."""
  import tensorflow as tf

  population = saved.load_population(folder.population)
  x = population.global_test_x.reshape(len(population.global_test_x), -1).astype(np.float64) / 255
  found = []
  for row in range(clusters):
    kernel, bias = tf.keras.models.load_model(folder.model('spectral', row)).get_weights()
    logits = x @ kernel.astype(np.float64) + bias
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    found.append(shares / shares.sum(axis=1, keepdims=True))
  return np.stack(found), population.global_test_y


def test_experts_are_the_cluster_models_and_rules_are_the_rules(finished):
  results, folder = finished
  (clustering,) = results['clusterings']
  found = clustering['experts']
  outputs, labels = outputs_by_hand(folder, clustering['num_clusters'])
  assert found['num_experts'] == clustering['num_clusters'] == 3 and found['num_samples'] == len(labels)
  np.testing.assert_allclose(
    found['expert_accuracy'], (outputs.argmax(axis=2) == labels).mean(axis=1), atol=1e-9
  )
  np.testing.assert_allclose(found['expert_accuracy'], clustering['cluster_scores']['unblended']['global'])
  true = outputs[:, np.arange(len(labels)), labels]
  np.testing.assert_allclose(found['expert_loss'], -np.log(np.maximum(true, 1e-7)).mean(axis=1), rtol=1e-4)
  twice = -scipy.special.log_softmax(outputs, axis=2)[:, np.arange(len(labels)), labels].mean(axis=1)
  np.testing.assert_allclose(found['expert_loss_twice'], twice, rtol=1e-4)
  predictions, weights = fedex.fedex(outputs)
  # A sample or two may be a tie within float32.
  assert found['accuracy']['fedex'] == pytest.approx(np.mean(predictions == labels), abs=3 / len(labels))
  np.testing.assert_allclose(found['weights'], weights, atol=5e-3)
  rules = {'fedex', 'mean', 'vote', 'confidence', 'oracle', 'gate'}
  assert found['accuracy'].keys() == found['agreement'].keys() == rules
  assert found['accuracy']['oracle'] >= max(found['expert_accuracy'])


def test_nobody_asks_for_experts_by_default(finished, tmp_path):
  config = dataclasses.replace(CONFIG, evaluation=EvaluationConfig())
  (clustering,) = run_experiment.run_experiment(config, tmp_path / 'run').results['clusterings']
  assert clustering['experts'] is None
  same = finished[0]['clusterings'][0]
  assert {k: v for k, v in clustering.items() if k != 'experts'} == {
    k: v for k, v in same.items() if k != 'experts'
  }


def test_an_expert_alone_is_every_rule(tmp_path):
  one = dataclasses.replace(CONFIG, clusterings=(ClusteringConfig('kmeans', num_clusters=1),))
  results = run_experiment.run_experiment(one, tmp_path / 'run').results
  found = results['clusterings'][0]['experts']
  baseline = results['baseline']['evaluation']['global']['accuracy']
  for rule in ('fedex', 'mean', 'vote', 'confidence', 'oracle'):
    assert found['accuracy'][rule] == pytest.approx(found['expert_accuracy'][0]) == pytest.approx(baseline)
  assert found['order_sensitivity']['changed'] == 0.0
  assert files.load_json(RunFolder(tmp_path / 'run').phase3('kmeans'))['experts'] == found
