"""Artifacts under way: several processes at one, pruned while one waits for it, removals that were killed."""

import concurrent.futures
import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.programs.children import call
from tff_cluster.engine import side_by_side
from tff_cluster.storage import artifacts, files, saved_rounds, sealed_json

ROOT = pathlib.Path(__file__).parents[2]
DETERMINANTS = {'seed': 1, 'clients': ['a', 'b']}


@pytest.fixture
def shelf(tmp_path):
  return artifacts.Store(tmp_path / 'store')


@contextlib.contextmanager
def locked(folder):
  """Locks a folder, as another process that works on it does."""
  descriptor = os.open(folder, os.O_RDONLY)
  fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
  yield
  os.close(descriptor)


def contents(folder):
  return {path: path.read_bytes() for path in folder.rglob('*') if path.is_file()}


def test_an_artifact_that_is_pruned_while_one_waits_for_it_is_made_again(shelf):
  folder = shelf.artifact('fedavg', DETERMINANTS)

  def wait():
    with shelf.working_on(folder):
      files.save_arrays(folder / 'latest_00001.npz', {'x': np.ones(2)})
      # The lock is on the folder of this name, not on what was there before.
      with pytest.raises(BlockingIOError), locked(folder):
        pass

  with concurrent.futures.ThreadPoolExecutor() as pool:
    with locked(folder):
      waiting = pool.submit(wait)
      time.sleep(0.1)
      folder.rename(folder.with_name('.gone.tmp'))
    waiting.result(timeout=10)
  assert json.loads((folder / 'determinants.json').read_text()) == DETERMINANTS
  assert [(artifact.folder, artifact.content) for artifact in shelf.artifacts()] == [(folder, 'rounds 1')]


def test_artifacts_are_named_by_what_determines_them(shelf):
  one = shelf.artifact('fedavg', DETERMINANTS)
  assert one == shelf.artifact('fedavg', dict(reversed(DETERMINANTS.items())))
  assert json.loads((one / 'determinants.json').read_text()) == DETERMINANTS
  other, signatures = shelf.artifact('fedavg', {}), shelf.artifact('signatures', DETERMINANTS)
  assert len({one, other, signatures}) == 3
  assert one.name.startswith('fedavg-') and signatures.name.startswith('signatures-')


def test_every_kind_of_artifact_says_in_words_what_it_has(shelf):
  made = {
    'fedavg': ('round_00010.npz', 'rounds 10'),
    'signatures': ('vectors.npy', 'vectors'),
    'start': ('vectors.npy', 'vectors'),
    'similarity': ('similarity.npz', 'similarities'),
    'global_scores': (f'{"0a1b" * 16}.npz', 'models scored: 1'),
    'other': ('some.txt', 'nothing yet'),
  }
  for kind, (name, _) in made.items():
    (shelf.artifact(kind, DETERMINANTS) / name).write_bytes(b'x')
  assert {a.kind: a.content for a in shelf.artifacts()} == {kind: words for kind, (_, words) in made.items()}


def test_artifacts_that_others_work_on_come_once_they_are_left_alone_or_else_last(shelf):
  folders = [shelf.artifact('fedavg', {'number': number}) for number in range(4)]
  folders.append(shelf.place('fedavg', {'number': 'not there yet'}))
  with locked(folders[0]):
    with locked(folders[2]):
      order = shelf.idle_first(folders)
      assert [next(order), next(order)] == [1, 3]
    assert list(order) == [2, 4, 0]
  assert list(shelf.idle_first(folders)) == [0, 1, 2, 3, 4]
  assert not folders[4].exists()


def started(program, argument):
  pipes = dict.fromkeys(('stdin', 'stdout', 'stderr'), subprocess.PIPE)
  return subprocess.Popen([sys.executable, '-c', program, str(argument)], cwd=ROOT, text=True, **pipes)


MAKER = """
import pathlib, sys
from tff_cluster.storage import artifacts
shelf = artifacts.Store(pathlib.Path(sys.argv[1]))
print('ready', flush=True)
sys.stdin.readline()
for number in range(25):
  with shelf.working_on(shelf.artifact('fedavg', {'number': number})):
    pass
"""


def test_processes_that_make_the_same_artifacts_at_once_do_not_sweep_each_others_files(shelf):
  makers = [started(MAKER, shelf.root) for _ in range(3)]
  assert [maker.stdout.readline() for maker in makers] == ['ready\n'] * 3
  for maker in makers:
    maker.stdin.write('go\n')
    maker.stdin.flush()
  assert [maker.communicate(timeout=60)[1] for maker in makers] == [''] * 3
  assert len(shelf.artifacts()) == 25
  assert not list(shelf.root.rglob('.*'))


def test_what_a_killed_removal_left_is_no_hindrance_and_is_removed(shelf):
  folder = shelf.artifact('fedavg', DETERMINANTS)
  left = folder.with_name(f'.tff_cluster-removed-{folder.name}')
  files.save_arrays(left / 'round_00001.npz', {})
  assert shelf.remove(shelf.artifacts()[0])
  assert list(shelf.root.iterdir()) == []
  files.save_arrays(left / 'round_00001.npz', {})
  # One that is under way is left to who does it.
  with locked(left):
    shelf.finish_removals()
    assert left.exists()
  shelf.finish_removals()
  assert list(shelf.root.iterdir()) == []


def test_files_of_a_later_version_are_named_and_left_alone(tmp_path):
  files.save_json(tmp_path / 'a.json', {'x': 1})
  text = (tmp_path / 'a.json').read_text().replace('"format": 1', '"format": 2')
  (tmp_path / 'a.json').write_text(text)
  files.save_arrays(tmp_path / 'a.npz', {'x': np.ones(2), '__format__': np.array(2)})
  files.save_rows(tmp_path / 'a.npy', 2, 2, lambda rows: rows.fill(1))
  (tmp_path / 'a.npy.json').write_text(text)
  before = contents(tmp_path)
  for load, name in ((files.load_json, 'a.json'), (files.load_arrays, 'a.npz'), (files.load_rows, 'a.npy')):
    with pytest.raises(sealed_json.NewerFile, match=rf'{name}.* is of file format 2'):
      load(tmp_path / name)
  assert contents(tmp_path) == before


# Folders and files that are not ours, by name or by what they hold.
FOREIGN = (
  'photos-2021/determinants.json',
  f'fedavg-{"0a" * 12}/determinants.json',
  f'.tff_cluster-removed-fedavg-{"0c" * 12}/thesis.txt',
  f'.tff_cluster-removed-photos-{"0d" * 11}/round_00001.npz',
)


def test_what_was_used_within_so_many_days_is_kept(shelf, capsys):
  today, days = time.time(), {'older': 400, 'old': 31, 'recent': 29}
  folders = {name: shelf.artifact('fedavg', {'name': name}) for name in days}
  for (name, folder), size in zip(folders.items(), (1500, 2000, 700), strict=True):
    described = folder / 'determinants.json'
    (folder / 'round_00003.npz').write_bytes(bytes(size - described.stat().st_size))
    os.utime(described, (today - 86400 * days[name],) * 2)
  date, name = datetime.date.fromtimestamp(today - 86400 * 29), folders['recent'].name
  told = [f'    700 B  used {date}  {name}  rounds 3', f'1 artifacts, 700 B in {shelf.root}']
  pruned = call('store', [f'--store_dir={shelf.root}', '--prune_unused_days=30'], capsys)
  removed = 'removed 2 artifacts, 3.5 kB; 0 in use, or with files of others in them'
  assert (pruned.code, pruned.out.splitlines()) == (0, [removed, *told])
  assert list(shelf.root.iterdir()) == [folders['recent']]
  assert call('store', [f'--store_dir={shelf.root}'], capsys).out.splitlines() == told


def test_pruning_removes_what_was_written_and_nothing_else(shelf, tmp_path):
  for name in FOREIGN:
    (shelf.root / name).parent.mkdir(parents=True)
    (shelf.root / name).write_text('{"seed": 1}')
  linked = tmp_path / 'linked'
  shelf.artifact('fedavg', {'number': 0}).rename(linked)
  (shelf.root / shelf.place('fedavg', {'number': 0}).name).symlink_to(linked)
  before = contents(tmp_path)
  ours = shelf.artifact('fedavg', {'number': 1})
  half = '.tff_cluster-0123456789abcdef-round_00003.npz'
  for name in ('round_00001.npz', 'latest_00002.npz.damaged', half):
    (ours / name).write_bytes(b'x')
  assert [artifact.folder for artifact in shelf.artifacts()] == [ours]
  shelf.finish_removals()
  assert shelf.remove(shelf.artifacts()[0])
  assert not ours.exists()
  assert contents(tmp_path) == before


def test_reading_models_or_vectors_counts_as_use(shelf):
  ours = shelf.artifact('fedavg', {'number': 1})
  saved_rounds.save(
    ours, 3, True, {name: np.zeros(1) for name in saved_rounds.COLUMNS}, [np.ones(2, np.float32)]
  )
  os.utime(ours / 'determinants.json', (0, 0))
  like = (np.zeros(2, np.float32),)
  saved_rounds.load(shelf, saved_rounds.Checkpoints(ours.name, 0, (3,)), like, 'train it')
  (listed,) = shelf.artifacts()
  assert listed.last_used > 1e9
  shelf.use('fedavg-of-nobody')
  assert len(list(shelf.root.iterdir())) == 1


@pytest.mark.parametrize('name', ['thesis.txt', 'round_1.npz', 'deep/a.npz'])
def test_an_artifact_in_which_somebody_keeps_something_is_not_removed(name, shelf):
  folder = shelf.artifact('fedavg', DETERMINANTS)
  (folder / 'round_00004.npz').write_bytes(b'x')
  (folder / name).parent.mkdir(exist_ok=True)
  (folder / name).write_text('mine')
  (artifact,) = shelf.artifacts()
  assert artifact.content == 'rounds 4'
  assert not shelf.remove(artifact)
  assert (folder / name).read_text() == 'mine' and (folder / 'round_00004.npz').exists()


def test_an_artifact_whose_description_is_damaged_gets_it_again(shelf):
  folder = shelf.artifact('fedavg', DETERMINANTS)
  (folder / 'determinants.json').write_text('{"seed"')
  assert shelf.artifacts() == []
  assert shelf.artifact('fedavg', DETERMINANTS) == folder
  assert [artifact.folder for artifact in shelf.artifacts()] == [folder]


WAITER = """
import pathlib, sys
from tff_cluster.storage import artifacts
print('waits', flush=True)
with artifacts.Store(pathlib.Path(sys.argv[1]).parent).working_on(pathlib.Path(sys.argv[1])):
  pass
"""


def test_who_waits_for_an_artifact_can_be_interrupted(shelf):
  folder = shelf.artifact('fedavg', DETERMINANTS)
  with shelf.working_on(folder):
    waiter = started(WAITER, folder)
    assert waiter.stdout.readline() == 'waits\n'
    with pytest.raises(subprocess.TimeoutExpired):
      waiter.wait(timeout=0.3)
    waiter.send_signal(signal.SIGINT)
    assert 'KeyboardInterrupt' in waiter.communicate(timeout=30)[1]


def test_who_waits_for_an_artifact_stops_where_work_beside_it_failed(shelf):
  folder = shelf.artifact('fedavg', DETERMINANTS)

  def work(fails):
    if fails:
      time.sleep(0.2)  # The other one waits by then.
      raise ValueError('full disk')
    with shelf.working_on(folder):
      pass

  with locked(folder), pytest.raises(ValueError, match='full disk'):
    side_by_side.each(work, (False, True), 2)
  with locked(folder):  # Nobody has it.
    pass


def test_what_a_run_removes_while_a_store_is_listed_is_passed_over(shelf, monkeypatch):
  shelf.artifact('fedavg', DETERMINANTS)
  (artifact,) = shelf.artifacts()
  known = artifacts._own_files
  monkeypatch.setattr(artifacts, '_own_files', lambda folder: [*known(folder), folder / 'latest_00009.npz'])
  assert shelf.artifacts() == [artifact]
  monkeypatch.setattr(artifacts, '_content', lambda folder: folder.with_name('gone').stat())
  assert shelf.artifacts() == []
  assert not artifacts._is_artifact(
    artifact.folder.with_name(f'fedavg-{"0" * 24}')
  )  # Gone once it was listed.


def test_an_artifact_that_a_run_began_to_use_after_it_was_listed_stays(shelf):
  shelf.artifact('fedavg', DETERMINANTS)
  (described,) = (each.folder / 'determinants.json' for each in shelf.artifacts())
  os.utime(described, (1e9, 1e9))
  (listed,) = shelf.artifacts()
  shelf.use(listed.folder.name)
  assert not shelf.remove(listed) and listed.folder.exists()
  (listed,) = shelf.artifacts()
  assert shelf.remove(listed) and not listed.folder.exists()
