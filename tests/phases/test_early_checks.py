"""What is looked at before TensorFlow is imported."""

import pytest

from tff_cluster.data import populate
from tff_cluster.engine import machine
from tff_cluster.experiment import memory_need
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
from tff_cluster.models import builtin
from tff_cluster.phases import early_checks


def test_rows_that_every_group_has_are_counted_for_each(monkeypatch, tmp_path):
  asked = []
  known = memory_need.of_config
  monkeypatch.setattr(
    memory_need, 'of_config', lambda config, rows, *rest: asked.append(rows) or known(config, rows, *rest)
  )
  for group_rows in ('split', 'all'):
    data = DataConfig(partition='rotated', num_groups=3, group_rows=group_rows)
    config = ExperimentConfig(data, clusterings=(ClusteringConfig('kmeans'),))
    assert early_checks.check(config, machine.ONE_WORKER, [tmp_path]).startswith('memory: about')
  assert asked == [1797, 3 * 1797]  # Of scikit-learn's digits.


def test_a_run_that_goes_on_needs_what_it_needed_at_first(monkeypatch, tmp_path):
  asked = []
  monkeypatch.setattr(memory_need, 'check', lambda needed, available: asked.append(needed))
  config, many = (
    ExperimentConfig(training=TrainingConfig('mnist_cnn')),
    machine.Machine(clients_in_parallel=64),
  )
  early_checks.check(config, many, [tmp_path])
  population = populate.build_population(config.data)
  parameters, _ = builtin.size('mnist_cnn', population.input_shape, 10)
  early_checks.check_memory(config, population, many, parameters)
  assert asked[1] == pytest.approx(asked[0], rel=0.01)
