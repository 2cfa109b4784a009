"""What fails leaves a configuration that can be read, and takes along what cannot stand without it."""

import pytest

from tff_cluster.base.errors import InputError, argument
from tff_cluster.experiment.config import ClusteringConfig, EvaluationConfig, ExperimentConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import failures

KMEANS = ClusteringConfig('kmeans', num_clusters=2)
FROM_KMEANS = ClusteringConfig('ifca', name='after', start='clustering', start_clustering='kmeans')
FEDEM = ClusteringConfig('fedem')
SPECTRAL = ClusteringConfig('spectral', num_clusters=2)


def config_of(*clusterings, **evaluation):
  return ExperimentConfig(clusterings=clusterings, evaluation=EvaluationConfig(**evaluation)).validated()


@pytest.mark.parametrize(
  ('clusterings', 'left', 'fell'),
  [
    ((KMEANS, FROM_KMEANS, SPECTRAL), (SPECTRAL,), {'after'}),
    ((KMEANS, FROM_KMEANS), (), {'after'}),
    ((KMEANS, FEDEM), (FEDEM,), {argument('aggregation', 'fine_tuned')}),
    # The rule falls because what it could train on falls.
    ((KMEANS, FROM_KMEANS, FEDEM), (FEDEM,), {'after', argument('aggregation', 'fine_tuned')}),
    ((KMEANS, SPECTRAL), (SPECTRAL,), set()),
  ],
)
def test_a_run_stays_readable_and_what_fell_is_named(clusterings, left, fell, tmp_path):
  folder, failed = RunFolder(tmp_path), {'kmeans': InputError('planted')}
  config = config_of(*clusterings, aggregation=('fine_tuned',))
  found = failures.drop(folder, config, failed)
  assert found == folder.load_config()
  assert found.clusterings == left and set(failed) == {'kmeans'} | fell
  rules = () if argument('aggregation', 'fine_tuned') in fell else ('fine_tuned',)
  assert found == config_of(*left, aggregation=rules)
  told = str(failures.ClusteringsFailed(failed, [each.label for each in left]))
  assert told.startswith('clustering kmeans: planted')
  assert ('clustering after: start_clustering=kmeans' in told) == ('after' in fell)
  assert ('aggregation=fine_tuned needs a clustering' in told) == (not rules)


def test_nothing_is_written_where_nothing_failed(tmp_path):
  config = config_of(KMEANS)
  assert failures.drop(RunFolder(tmp_path), config, {}) is config and not list(tmp_path.iterdir())
