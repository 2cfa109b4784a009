"""What is looked at before TensorFlow is imported."""

from tff_cluster.engine import machine
from tff_cluster.experiment import memory_need
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig
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
