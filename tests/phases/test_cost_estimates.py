"""Estimates beside what runs then ask for and train."""

from pathlib import Path

import pytest

from tests.phases.whole_run import WholeRun, changed, estimated
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig

pytestmark = pytest.mark.tensorflow

PHASE1, PHASE2 = 2, 4
OVERLAPPING = ClusteringConfig(
  'dynamic_distance', distance_threshold='quantile:0.7', variant='neighbourhoods'
)
CONFIG = ExperimentConfig(
  DataConfig(num_clients=6, partition='label_swapped', num_groups=2, rows_per_client=20),
  TrainingConfig(model='logistic', phase1_rounds=PHASE1, phase2_rounds=PHASE2),
  (OVERLAPPING,),
)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  return WholeRun(CONFIG, tmp_path_factory.mktemp('estimates') / 'run')


def test_rounds_behind_the_last_one_of_a_shorter_run_are_of_no_use_to_it(finished, tmp_path):
  shorter = changed(CONFIG, training={'phase2_rounds': PHASE2 - 1}, clusterings=())
  asked, stored = estimated(shorter, tmp_path / 'told', Path(finished.store))
  run = WholeRun(shorter, tmp_path / 'run', store_dir=finished.store)
  # It goes on from Phase 1, whose rounds alone were kept before.
  assert run.done.trained == asked - stored == (PHASE2 - 1) * CONFIG.data.num_clients


@pytest.mark.parametrize(('method', 'all_given'), [('ifca', True), ('clove', True), ('fesem', False)])
def test_a_client_of_several_given_clusters_trains_each_of_them_first_where_the_method_does(
  finished, method, all_given, tmp_path
):
  start = ClusteringConfig(method, start='clustering', start_clustering=OVERLAPPING.label)
  config = changed(CONFIG, clusterings=(OVERLAPPING, start))
  alone, _ = estimated(CONFIG, finished.folder.root)
  asked, _ = estimated(config, finished.folder.root)
  memberships, clients = int(finished.membership(OVERLAPPING.label).sum()), CONFIG.data.num_clients
  assert memberships > clients  # Else nothing would be told apart.
  first = memberships if all_given else clients
  assert asked - alone == first + (PHASE2 - 1) * clients
  assert WholeRun(config, tmp_path / 'run', store_dir=finished.store).done.trained == asked - alone
