"""Seeds as tasks of a Dask cluster: the same results as here, with a store that is shared or comes home."""

import contextlib
import dataclasses

import pytest

from tests.engine.dask_cluster import DaskCluster
from tff_cluster.base.errors import InputError
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.phases.run_experiment import Silent
from tff_cluster.studies import runs as studies_runs
from tff_cluster.studies.comparison import runs

pytestmark = pytest.mark.tensorflow

CONFIG = ExperimentConfig(
  DataConfig(num_clients=6, rows_per_client=30, validation_fraction=0.2, num_groups=2),
  TrainingConfig(model='logistic', phase1_rounds=1, phase2_rounds=1, batch_size=10, learning_rate=0.1),
  (ClusteringConfig('kmeans', num_clusters=2),),
  EvaluationConfig(),
)


@pytest.fixture(scope='module')
def dask(tmp_path_factory):
  made = DaskCluster(tmp_path_factory.mktemp('dask'))
  made.start_worker(threads=2, preload=None)
  yield made
  made.end()


def test_seeds_have_the_results_of_this_machine_and_their_artifacts_come_home(dask, tmp_path, monkeypatch):
  def on_cluster(name, store, config=CONFIG, seeds=(0, 1)):
    return runs.run(config, seeds, tmp_path / name, store, Silent(), dask.machine())

  def digests(found):
    return [done.results.digest for _, done in found]

  here = runs.run(CONFIG, (0, 1), tmp_path / 'here', tmp_path / 'store here', Silent())
  shared = on_cluster('shared', tmp_path / 'shared store')
  assert digests(shared) == digests(here) and [d.trained for _, d in shared] == [d.trained for _, d in here]

  # A machine that does not see the store.
  monkeypatch.setattr(studies_runs, '_marked', lambda store: contextlib.nullcontext('no such file'))
  home = tmp_path / 'home'
  assert digests(on_cluster('apart', home)) == digests(here)

  def artifacts(store):
    return sorted(str(path.relative_to(store)) for path in store.rglob('*') if path.is_file())

  assert artifacts(home) == artifacts(tmp_path / 'shared store') == artifacts(tmp_path / 'store here')
  # What came home is used: asked again, nothing travels, and a seed more is the only one that trains.
  again = on_cluster('apart', home, seeds=(0, 1, 2))
  assert digests(again)[:2] == digests(here) and [d.trained > 0 for _, d in again] == [False, False, True]
  assert not list(tmp_path.rglob('.tff_cluster-[0-9a-f]*'))

  many = dataclasses.replace(
    CONFIG, clusterings=(*CONFIG.clusterings, ClusteringConfig('spectral', num_clusters=7))
  )
  with pytest.raises(InputError, match='num_clusters=7'):
    on_cluster('many', home, many, (0,))
