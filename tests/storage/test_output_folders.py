"""Folders that a process works in: nobody else does, and what is taken away is named, and not written to, nor what replaced it."""

import fcntl
import functools
import os
import shutil
import signal
import subprocess
import sys

import pytest

from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.storage import artifacts, files, output_folders

pytestmark = pytest.mark.usefixtures('folders_let_go')
LOST = 'was removed or replaced'


@pytest.fixture
def run(tmp_path):
  return output_folders.lock(tmp_path / 'run')


def test_a_folder_that_was_removed_is_named_and_does_not_come_back(run):
  shutil.rmtree(run)
  refused(
    f'output_dir={run} {LOST} while',
    lambda: files.save_json(run / 'deep' / 'a.json', 1),
    lambda: files.save_file(run / 'a.keras', lambda path: path.write_text('x')),
    lambda: artifacts.Store(run / 'store').artifact('fedavg', {}),
  )
  assert not run.exists()
  assert str(run) in str(output_folders.lost())


def refused(match, *writes):
  """Expects one line of each of these functions."""
  for write in writes:
    with pytest.raises(EnvironmentFault, match=match) as caught:
      write()
    assert '\n' not in str(caught.value)


def test_a_folder_half_removed_is_lost_through_a_link_as_well_as_soon_as_its_lock_is_gone(tmp_path):
  run = tmp_path / 'run'
  run.mkdir()
  (tmp_path / 'link').symlink_to(run)
  output_folders.lock(tmp_path / 'link')
  (run / 'results.json').write_text('{}')
  os.unlink(run / '.tff_cluster-lock')
  for name in (run, tmp_path / 'link'):
    refused(LOST, functools.partial(files.save_json, name / 'results.json', 1))
  assert (run / 'results.json').read_text() == '{}'


def test_a_run_that_was_put_in_its_place_is_left_alone(run):
  shutil.move(run, run.with_name('moved'))
  run.mkdir()
  (run / '.tff_cluster-lock').write_text('somebody else')
  refused(LOST, lambda: files.save_json(run / 'a.json', 1))
  output_folders.release_all()
  assert [path.name for path in run.iterdir()] == ['.tff_cluster-lock']
  assert (run / '.tff_cluster-lock').read_text() == 'somebody else'


def test_other_folders_can_be_written_and_the_same_one_be_made_anew(run, tmp_path):
  shutil.rmtree(run)
  files.save_json(tmp_path / 'elsewhere' / 'a.json', 1)
  again = output_folders.lock(run)
  files.save_json(again / 'a.json', 1)
  assert output_folders.lost() is None and output_folders.is_ours(run)
  output_folders.release_all()
  assert [path.name for path in run.iterdir()] == ['a.json']
  # What was let go is forgotten.
  assert output_folders.lost() is None and not output_folders.is_ours(run)
  shutil.rmtree(run)
  output_folders.check(run / 'a.json')


def test_a_shared_store_that_was_removed_is_named_and_does_not_come_back(run, tmp_path):
  run_claim.claim_output_dir(run, ExperimentConfig(), str(tmp_path / 'shared')).write()
  artifact = artifacts.Store(run / 'store').artifact('fedavg', {'a': 1})
  files.save_json(artifact / 'a.json', 1)
  shutil.rmtree(tmp_path / 'shared')
  refused(
    r'the store .*shared of the run in .* is not there',
    lambda: files.save_json(artifact / 'a.json', 2),
    lambda: artifacts.Store(run / 'store').artifact('fedavg', {'a': 1}),
  )
  assert not (tmp_path / 'shared').exists()


HOLDER = """
import sys
from tff_cluster.storage import output_folders
output_folders.lock(sys.argv[1])
print('held', flush=True)
sys.stdin.readline()
"""


def hold(folder):
  process = subprocess.Popen(
    [sys.executable, '-c', HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
  )
  assert process.stdout.readline() == 'held\n'
  return process


def test_two_processes_do_not_share_a_folder_and_a_killed_one_holds_nothing(tmp_path):
  with hold(tmp_path) as other:
    with pytest.raises(EnvironmentFault, match=rf'another run \(process {other.pid}\)'):
      output_folders.lock(tmp_path)
    other.communicate('go\n')
  assert other.returncode == 0
  assert list(tmp_path.iterdir()) == []
  with hold(tmp_path) as other:
    other.kill()
  assert (tmp_path / '.tff_cluster-lock').exists()
  output_folders.lock(tmp_path)


def is_locked(folder):
  """Tells whether another process could not have the folder."""
  with open(folder / '.tff_cluster-lock') as stream:
    try:
      fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      return stream.read() == str(os.getpid())
    return False


def test_a_folder_is_held_for_a_block_but_not_taken_from_who_had_it_before(tmp_path):
  with output_folders.held(tmp_path / 'run') as folder, output_folders.held(folder):
    assert is_locked(folder)
  assert not folder.exists()
  output_folders.lock(folder)
  with output_folders.held(folder):
    pass
  assert is_locked(folder)


def test_an_unused_folder_is_removed_and_others_stay(tmp_path):
  there = tmp_path / 'there'
  there.mkdir()
  used = output_folders.lock(tmp_path / 'used')
  (used / 'results').write_text('x')
  for name in ('new', 'there', 'above/below/new', 'used/below/new'):
    output_folders.lock(tmp_path / name)
  output_folders.release_all()
  assert sorted(path.name for path in tmp_path.iterdir()) == ['there', 'used']
  assert [path.name for path in used.iterdir()] == ['results']


KILLED = """
import os, signal, sys, time
from tff_cluster.storage import output_folders
output_folders.lock(sys.argv[1])
if os.fork():
  os.kill(os.getpid(), signal.SIGKILL)
print(os.getpid(), flush=True)
sys.stdin.readline()
output_folders.release_all()
print('let go', flush=True)
time.sleep(60)
"""


def test_a_forked_process_that_outlives_a_killed_run_neither_keeps_its_folder_nor_gives_it_away(tmp_path):
  run = tmp_path / 'run'
  command = [sys.executable, '-c', KILLED, str(run)]
  with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killed:
    child = int(killed.stdout.readline())
    try:
      assert killed.wait(timeout=30) == -signal.SIGKILL
      with output_folders.held(run):
        assert is_locked(run)
        killed.stdin.write('go\n')
        killed.stdin.flush()
        assert killed.stdout.readline() == 'let go\n'
        assert is_locked(run)
    finally:
      os.kill(child, signal.SIGKILL)
  assert list(run.iterdir()) == []
