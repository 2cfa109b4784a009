"""The experiment in one call: from any thread, as often as wanted, with its report where asked, and without its folder after it."""

import dataclasses
import threading

import pytest

from tff_cluster.base.errors import InputError
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
from tff_cluster.studies import single_run

CONFIG = ExperimentConfig(
  DataConfig(num_clients=6, num_groups=2, rows_per_client=40),
  TrainingConfig(model='logistic', phase1_rounds=2, phase2_rounds=1),
  (ClusteringConfig('kmeans', num_clusters=2),),
)


def test_a_wrong_configuration_is_told_before_a_folder_is_made(tmp_path):
  wrong = dataclasses.replace(CONFIG, data=dataclasses.replace(CONFIG.data, num_clients=0))
  with pytest.raises(InputError, match=r'^num_clients=0'):
    single_run.run_experiment(wrong, tmp_path / 'run')
  assert not (tmp_path / 'run').exists()


def test_a_call_that_fails_lets_go_of_the_folder(tmp_path, monkeypatch):
  def fail(config, folder, *_):
    run_claim.claim_output_dir(folder, config).write()
    assert lock.exists()
    raise InputError('planted')

  lock = tmp_path / 'run' / '.tff_cluster-lock'
  monkeypatch.setattr(single_run.algorithm, 'run_experiment', fail)
  with pytest.raises(InputError, match='planted'):
    single_run.run_experiment(CONFIG, tmp_path / 'run')
  assert not lock.exists()


@pytest.mark.tensorflow
def test_calls_from_several_threads_give_what_a_call_from_this_one_gives(tmp_path):
  here = single_run.run_experiment(CONFIG, tmp_path / 'here', export_models=False, report=True)
  assert here.report == tmp_path / 'here/report.html' and 'kmeans' in here.report.read_text()
  found = {}

  def call(name):
    found[name] = single_run.run_experiment(CONFIG, tmp_path / name, export_models=False)

  # Two at once, and the second one twice into the same folder.
  threads = [threading.Thread(target=call, args=(name,)) for name in ('one', 'other', 'other')]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert {done.results.digest for done in found.values()} == {here.results.digest}
  assert (found['one'].trained, found['other'].trained) == (here.trained, 0)
  assert found['one'].report is None and not (tmp_path / 'one/report.html').exists()
