"""Folders for a block alone: they go with it, and those that killed processes left with the next one."""

import os
import signal
import subprocess
import sys

import pytest

from tff_cluster.storage import temporary_folder

KILLED = """
import pathlib, sys
from tff_cluster.storage import temporary_folder
with temporary_folder.made(pathlib.Path(sys.argv[1]), 'run', ['run']) as folder:
  (folder / 'run').mkdir()
  (folder / 'run' / 'half').write_text('x')
  print(folder, flush=True)
  sys.stdin.readline()
"""


def test_a_folder_is_gone_after_its_block_however_that_ends(tmp_path):
  with pytest.raises(KeyError), temporary_folder.made(tmp_path, 'run', ['run']) as folder:
    (folder / 'run').mkdir()
    raise KeyError
  assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(tmp_path):
  command = [sys.executable, '-c', KILLED, str(tmp_path)]
  with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
    there = other.stdout.readline().strip()
    with temporary_folder.made(tmp_path, 'run', ['run']):
      assert os.path.exists(f'{there}/run/half')
    other.send_signal(signal.SIGKILL)
  assert [str(path) for path in tmp_path.iterdir()] == [there]
  with temporary_folder.made(tmp_path, 'run', ['run']) as mine:
    assert list(tmp_path.iterdir()) == [mine]


def test_folders_that_may_be_a_users_stay(tmp_path):
  elsewhere = tmp_path / 'elsewhere'
  elsewhere.mkdir()
  (elsewhere / 'run').mkdir()
  holds_more, named, of_another_use = (
    tmp_path / f'.tff_cluster-{end}' for end in ('run-holdmore', 'run-my own', 'download-abcdefgh')
  )
  for folder in (holds_more, named, of_another_use):
    (folder / 'run').mkdir(parents=True)
  (holds_more / 'thesis.tex').write_text('mine')
  link = tmp_path / '.tff_cluster-run-linked00'
  link.symlink_to(elsewhere)
  before = sorted(tmp_path.rglob('*'))
  with temporary_folder.made(tmp_path, 'run', ['run']):
    pass
  assert sorted(tmp_path.rglob('*')) == before


def test_files_take_their_places_together_and_those_of_a_user_stay(tmp_path):
  kept, named = tmp_path / 'kept', tmp_path / 'linked'
  named.symlink_to(kept)

  def write(content, *names, fails=False):
    with temporary_folder.replacing(named, ['a', 'b', 'about'], last='about') as new:
      for name in names:
        (new / name).write_text(content)
      if fails:
        raise KeyError

  def found():
    return {path.name: path.read_text() for path in kept.iterdir()}

  with pytest.raises(KeyError):
    write('first', 'a', 'b', fails=True)
  assert not kept.exists()
  write('first', 'a', 'b', 'about')
  assert found() == dict.fromkeys(('a', 'b', 'about'), 'first')
  (kept / 'notes').write_text('mine')
  with pytest.raises(KeyError):
    write('second', 'a', 'about', fails=True)
  assert found() == dict.fromkeys(('a', 'b', 'about'), 'first') | {'notes': 'mine'}
  write('second', 'a', 'about')
  assert found() == {'a': 'second', 'about': 'second', 'notes': 'mine'}
  assert sorted(path.name for path in tmp_path.iterdir()) == ['kept', 'linked']
