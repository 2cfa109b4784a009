"""A notebook's kernel, whose event loop runs while its cells do, calls the Python API."""

import time

import pytest

from tests.programs.notebooks import Notebook
from tff_cluster.storage import output_folders

pytestmark = pytest.mark.tensorflow

SETUP = """
import dataclasses
from tff_cluster.studies.single_run import run_experiment
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
config = ExperimentConfig(
  DataConfig(num_clients=6, num_groups=2, rows_per_client=40),
  TrainingConfig(model='logistic', phase1_rounds=2, phase2_rounds=2),
  (ClusteringConfig('kmeans', num_clusters=2),),
)
"""


@pytest.fixture(scope='module')
def notebook(tmp_path_factory):
  opened = Notebook(tmp_path_factory.mktemp('notebook'))
  opened.run(SETUP)
  yield opened
  opened.close()


def test_an_experiment_runs_in_a_cell_and_in_the_next_and_leaves_folder_and_machine_to_others(
  notebook, tmp_path
):
  call = f'done = run_experiment(config, {str(tmp_path / "run")!r}, report=True)\n'
  first = notebook.run(f'{call}print(done.trained > 0, done.report.exists(), done.results.digest)').split()
  again = notebook.run(f'{call}print(done.trained, done.report.exists(), done.results.digest)').split()
  assert first[:2] == ['True', 'True'] and again == ['0', *first[1:]]
  assert notebook.workers() == []
  # The kernel lives, and so its locks would.
  with output_folders.held(tmp_path / 'run'):
    pass


def test_an_interrupted_cell_ends_the_worker_and_a_later_one_goes_on(notebook, tmp_path):
  # More rounds than any machine trains before it is interrupted.
  clients, store = 6, tmp_path / 'run' / 'store'
  notebook.run(
    'def longer(rounds):\n  return dataclasses.replace(config, training=dataclasses.replace(config.training, phase1_rounds=rounds))'
  )
  cell = notebook.start(f'run_experiment(longer(5000), {str(tmp_path / "run")!r})')
  deadline = time.monotonic() + 240
  while not list(store.glob('fedavg-*/latest_*[2-9].npz')) and time.monotonic() < deadline:
    time.sleep(0.01)
  assert len(notebook.workers()) == 1
  notebook.interrupt()
  _, error = notebook.finish(cell)
  assert error.startswith('KeyboardInterrupt')
  assert notebook.workers() == []
  # The kernel lives, and so its locks would.
  with output_folders.held(tmp_path / 'run'):
    pass
  saved = max(int(path.stem.partition('_')[2]) for path in store.glob('fedavg-*/latest_*.npz'))
  rounds = saved + 3
  later = f'run_experiment(longer({rounds}), {str(tmp_path / "later")!r}, store_dir={str(store)!r})'
  trained = notebook.run(f'print({later}.trained)')
  # The rest of Phase 1, and two rounds of Phase 2 with and without clusters.
  assert saved >= 2 and int(trained) == clients * (rounds - saved + 2 + 2)
