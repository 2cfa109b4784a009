"""What a worker of a cluster does with a run: what it takes there, and what goes home."""

import signal
import subprocess
import sys
import types

import distributed
import pytest

from tff_cluster.base import environment
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.engine.machine import Machine
from tff_cluster.storage import travel
from tff_cluster.studies import run_on_worker, run_process

ANSWER = run_process.Answer(asked=3, trained=2, fault=None)


@pytest.fixture
def worked(monkeypatch):
  """Returns a function that has a worker do a run, in which files are written, and returns what it has left."""
  monkeypatch.setattr(distributed, 'get_worker', lambda: types.SimpleNamespace(address='here'))

  def do(sent, written, mark):
    def done(folder, machine, here):
      travel.put(folder, written)
      return ANSWER

    monkeypatch.setattr(run_on_worker, '_done', done)
    return run_on_worker.run(run_on_worker.Asked(sent, mark, 1, environment.about_worker()['packages']))

  return do


def test_what_a_run_leaves_as_it_was_sent_does_not_go_home(worked, tmp_path):
  sent = {'config.json': b'{}', 'notes.txt': b'before', 'metrics/phase1.csv': b'round\n'}
  ran = worked(sent, {'metrics/phase1.csv': b'round\n1\n', 'phase1.json': b'{}'}, str(tmp_path / 'not seen'))
  assert ran.answer == ANSWER
  assert ran.files == {'metrics/phase1.csv': b'round\n1\n', 'phase1.json': b'{}'}


def test_what_killed_runs_left_on_a_workers_machine_goes_with_the_next_one(worked, tmp_path, monkeypatch):
  monkeypatch.setattr(run_on_worker.tempfile, 'tempdir', str(tmp_path))
  (tmp_path / '.tff_cluster-run-killed00' / 'store').mkdir(parents=True)
  worked({}, {'phase1.json': b'{}'}, str(tmp_path / 'not seen'))
  assert list(tmp_path.iterdir()) == []


@pytest.fixture
def scripted(monkeypatch):
  """Returns a function that has a worker do a run for a task, for which a script runs; and the processes that did."""
  started = []

  class Scripted(run_process.RunProcess):
    def __init__(self, script, errors):
      pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, 'stderr': errors}
      self._process = subprocess.Popen([sys.executable, '-c', script], text=True, **pipes)
      started.append(self)

  def do(script, folder, **tasks):
    here = types.SimpleNamespace(
      address='tls://w:1', get_current_task=lambda: 'asked', state=types.SimpleNamespace(tasks=tasks)
    )
    monkeypatch.setattr(run_process, 'RunProcess', lambda _, errors: Scripted(script, errors))
    return run_on_worker._done(folder, Machine(), here)

  monkeypatch.setattr(run_on_worker, '_TICK_SECS', 0.05)
  yield do, started
  run_process.stop([each for each in started if each.returncode is None])


@pytest.mark.parametrize('tasks', [{}, {'asked': types.SimpleNamespace(state='cancelled')}])
def test_a_task_that_is_cancelled_ends_its_process(tasks, scripted, tmp_path):
  do, started = scripted
  with pytest.raises(EnvironmentFault, match=r'^this run is not wanted any more$'):
    do('import time; time.sleep(60)', tmp_path, **tasks)
  assert [process.returncode for process in started] == [-signal.SIGTERM]


def test_a_run_whose_process_dies_is_told_with_its_last_words(scripted, tmp_path):
  wanted = {'asked': types.SimpleNamespace(state='executing')}
  words = r'^a run ended on the worker tls://w:1 \(exit code 3\): out of paper$'
  script = 'import sys; print("first\\nout of paper", file=sys.stderr); sys.exit(3)'
  with pytest.raises(EnvironmentFault, match=words):
    scripted[0](script, tmp_path, **wanted)
