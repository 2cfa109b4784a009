"""What a worker of a cluster does with a run: what it takes there, and what goes home."""

import types

import distributed
import pytest

from tff_cluster.base import environment
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
