"""Runs in processes of this machine: the results of one after the other, shared work done once, and nothing left of what ends early."""

import dataclasses
import time

import pytest

from tests.programs.children import ForkedChild, left_in
from tff_cluster.base import environment
from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.engine import free_memory
from tff_cluster.engine.machine import Machine
from tff_cluster.experiment import memory_need
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import early_checks
from tff_cluster.phases.cost_estimates import Run
from tff_cluster.phases.run_experiment import Silent
from tff_cluster.storage import output_folders
from tff_cluster.studies import run_process, runs, runs_here
from tff_cluster.studies.comparison import runs as comparison

SILENT = Silent()
CONFIG = ExperimentConfig(
  DataConfig(num_clients=6, rows_per_client=30, validation_fraction=0.2, num_groups=2),
  TrainingConfig(model='logistic', phase1_rounds=2, phase2_rounds=1, batch_size=10, learning_rate=0.1),
  (ClusteringConfig('kmeans', num_clusters=2),),
  EvaluationConfig(),
)
THREE = dataclasses.replace(CONFIG, clusterings=(ClusteringConfig('kmeans', num_clusters=3),))


def planned(root):
  """Two runs on one Phase 1, and one with another seed."""
  same = [Run(name, config, RunFolder(root / name)) for name, config in (('two', CONFIG), ('three', THREE))]
  return [*same, *comparison.plan(CONFIG, (1,), root)]


def files(folder):
  found = (path for path in folder.rglob('*') if path.is_file() and 'tensorboard' not in path.parts)
  return sorted(path.relative_to(folder) for path in found)


@pytest.fixture
def processes(monkeypatch):
  """The processes that a test starts."""
  made, start = [], run_process.RunProcess
  monkeypatch.setattr(run_process, 'RunProcess', lambda *given: made.append(start(*given)) or made[-1])
  return made


@pytest.mark.parametrize(
  ('asked', 'cores', 'gigabytes', 'most'),
  [
    (0, 1, 100, 1), (0, 2, 100, 1), (0, 3, 100, 1), (0, 4, 100, 2), (0, 7, 100, 3), (0, 64, 100, 5),
    (1, 64, 100, 1), (2, 1, 100, 2), (9, 2, 100, 5), (0, 64, 6.2, 2), (0, 64, 0.5, 1), (0, 64, None, 5),
  ],
)  # fmt: skip
def test_as_many_runs_as_cores_memory_and_what_is_left_allow(
  asked, cores, gigabytes, most, tmp_path, monkeypatch
):
  monkeypatch.setattr(environment, 'available_cores', lambda: cores)
  monkeypatch.setattr(free_memory, 'available', lambda: gigabytes and int(gigabytes * 1e9))
  # A run takes 2.5 GB, this process 0.9 at most.
  monkeypatch.setattr(memory_need, 'PROCESS', int(0.9e9))
  monkeypatch.setattr(early_checks, 'needed', lambda *_: int(2.5e9))
  left = comparison.plan(CONFIG, range(5), tmp_path)
  assert runs_here.how_many(left, Machine(), asked) == most
  # Clients of all runs together fill the cores.
  assert most == 1 or runs_here.share(Machine(), most).clients_in_parallel == max(cores // most, 1)
  assert runs_here.share(Machine(clients_in_parallel=5), most).clients_in_parallel == 5


def test_fewer_runs_train_more_clients_each_and_need_more_memory_for_that(tmp_path, monkeypatch):
  monkeypatch.setattr(environment, 'available_cores', lambda: 16)
  monkeypatch.setattr(memory_need, 'PROCESS', 0)
  # 3 GB and 1 GB a client: of 8 runs with 2 clients each 3 fit, which would train 5 clients each and take 24 GB.
  monkeypatch.setattr(early_checks, 'needed', lambda *given: int((3 + given[2].clients_in_parallel) * 1e9))
  monkeypatch.setattr(free_memory, 'available', lambda: int(16.5e9))
  left = comparison.plan(CONFIG, range(8), tmp_path)
  assert runs_here.how_many(left, Machine(), 0) == 1
  monkeypatch.setattr(free_memory, 'available', lambda: int(24e9))
  assert runs_here.how_many(left, Machine(), 0) == 3


def test_more_runs_than_fit_into_memory_are_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(free_memory, 'available', lambda: int(6.2e9))
  monkeypatch.setattr(early_checks, 'needed', lambda *_: int(2.5e9))
  left = comparison.plan(CONFIG, range(5), tmp_path)
  told = r'^runs_in_parallel=3: 3 runs side by side need about 8.4 GB .* 6.2 GB are available; at most 2 fit$'
  with pytest.raises(InputError, match=told):
    runs_here.how_many(left, Machine(), 3)


def test_an_answer_keeps_the_fault_with_its_arguments():
  for fault in (InputError('\0argument seed=1: no'), EnvironmentFault('disk full')):
    found = run_process.Answer.from_line(run_process.Answer(3, 2, fault).to_line())
    assert (found.asked, found.trained, type(found.fault)) == (3, 2, type(fault))
    assert found.fault.on_command_line() == fault.on_command_line()


@pytest.mark.tensorflow
def test_runs_side_by_side_have_the_results_of_one_after_the_other_and_train_what_they_share_once(
  tmp_path, processes
):
  one, other = tmp_path / 'one', tmp_path / 'other'
  alone = runs.run_all(planned(one), one / 'store', SILENT)
  beside = runs.run_all(planned(other), other / 'store', SILENT, Machine(), runs_in_parallel=2)
  assert len(processes) == 2 and all(each.returncode is not None for each in processes)
  assert [done.results.digest for done in beside] == [done.results.digest for done in alone]
  assert [done.asked for done in beside] == [done.asked for done in alone]
  # Whichever of the two came first, and if both wanted it at the same moment.
  assert sum(done.trained for done in beside) == sum(done.trained for done in alone)
  assert beside[2].trained == alone[2].trained
  assert files(other) == files(one)
  assert [
    done.trained for done in runs.run_all(planned(other), other / 'store', SILENT, Machine(), 2)
  ] == 3 * [0]


@pytest.mark.tensorflow
def test_a_run_that_fails_ends_the_others_and_leaves_nothing(tmp_path, processes):
  # Known once its clients are drawn; the other run is about to train by then.
  unknown = (ClusteringConfig('planted', truth='nothing'),)
  wrong = Run('wrong', dataclasses.replace(CONFIG, clusterings=unknown), RunFolder(tmp_path / 'wrong'))
  with pytest.raises(InputError, match='truth=nothing'):
    runs.run_all([planned(tmp_path)[0], wrong], tmp_path / 'store', SILENT, Machine(), runs_in_parallel=2)
  assert processes and all(each.returncode is not None for each in processes)
  output_folders.release_all()
  assert left_in(tmp_path) == []


def test_nothing_is_trained_where_the_folder_of_a_later_run_cannot_be_had(tmp_path):
  first, second, _ = planned(tmp_path / 'out')
  second.folder.root.mkdir(parents=True)
  second.folder.results.write_text('mine')
  for at_once in (1, 2):
    with pytest.raises(InputError, match=r'three holds no run .* but results\.json of others'):
      runs.run_all([first, second], tmp_path / 'store', SILENT, Machine(), runs_in_parallel=at_once)
    output_folders.release_all()
  assert [path.relative_to(tmp_path) for path in tmp_path.rglob('*') if path.is_file()] == [
    second.folder.results.relative_to(tmp_path)
  ]
  assert not first.folder.root.exists() and not (tmp_path / 'store').exists()


def test_a_process_tells_what_is_wrong_with_a_run_and_takes_the_next(tmp_path):
  output_folders.lock(tmp_path / 'taken')
  process = run_process.RunProcess(Machine())
  try:
    told = {}
    for name in ('nothing', 'taken'):
      process.begin(tmp_path / name)
      told[name] = process.answer().fault
  finally:
    run_process.stop([process])
    output_folders.release_all()
  assert isinstance(told['nothing'], InputError) and 'holds no run' in str(told['nothing'])
  assert isinstance(told['taken'], EnvironmentFault) and 'is at work in' in str(told['taken'])
  assert process.returncode == 143 and not (tmp_path / 'nothing').exists()
  # Whoever asks one that has ended is told that there is no answer.
  ended = run_process.RunProcess(Machine())
  ended.terminate()
  ended.begin(tmp_path)
  assert ended.answer() is None and ended.returncode
  run_process.stop([ended])


@pytest.mark.tensorflow
def test_a_killed_program_leaves_no_process_and_the_same_runs_go_on(tmp_path):
  flags = (
    '--num_clients=6', '--rows_per_client=30', '--validation_fraction=0.2', '--num_groups=2', '--model=logistic', '--phase1_rounds=2',
    '--phase2_rounds=1', '--batch_size=10', '--learning_rate=0.1', '--clustering=kmeans,num_clusters=2', '--seeds=0,1',
  )  # fmt: skip
  root = tmp_path / 'run'
  child = ForkedChild('phases.compare', *flags, f'--output_dir={root}', '--runs_in_parallel=2')
  deadline = time.monotonic() + 120
  while len(child.workers()) < 4 and time.monotonic() < deadline:  # Two runs with a TFF worker each.
    time.sleep(0.05)
  assert len(child.workers()) == 4
  child.kill()
  assert child.left_over() == []
  found = runs.run_all(comparison.plan(CONFIG, (0, 1), root), root / 'store', SILENT)
  assert [done.results.config.training.seed for done in found] == [0, 1]
