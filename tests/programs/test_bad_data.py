"""Data, folders and disks that are wrong: one line that helps, the right exit code, finished work kept.

And data that only looks wrong: tiny, lopsided and extreme, which has to work.
"""

import json
import os
import re
import subprocess
import time

import numpy as np
import pytest

from phases import run_all
from tests.programs.children import Child, left_in, nothing_done
from tff_cluster.cli import program
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

CLIENTS, CLASSES = 6, 3
SHORT = ('--model=logistic', '--phase1_rounds=1', '--phase2_rounds=1', f'--num_clients={CLIENTS}')
KMEANS = '--clustering=kmeans,num_clusters=2'
BY_OWNER = ('--dataset=file', '--partition=by_writer')


def arrays(counts=(12,) * CLIENTS, seed=0):
  """Returns the arrays of a data file: learnable rows of clients with these numbers of rows."""
  rng = np.random.default_rng(seed)
  owner = np.repeat([f'w{k}' for k in range(len(counts))], counts)
  y = np.arange(len(owner)) % CLASSES
  return {
    'x': (np.eye(4)[y] * 3 + rng.normal(size=(len(owner), 4))).astype(np.float32),
    'y': y,
    'client_id': owner,
  }


def save(path, **changes):
  np.savez(path, **(arrays() | changes))
  return path


def call(folder, *flags):
  """Runs phases.run_all in this process and returns its exit code."""
  return program.execute(run_all.main, run_all.define_flags, ['p', f'--output_dir={folder}', *SHORT, *flags])


def results(folder):
  return json.loads((folder / 'results.json').read_text())


def check_line(code, capsys, expected, *words):
  captured = capsys.readouterr()
  check_text(code, captured.err, expected, *words)
  assert nothing_done(captured.out)


def check_text(code, err, expected, *words):
  assert code == expected, err
  assert err.startswith('error: ') and err.count('\n') == 1 and err.endswith('\n'), err
  assert 'Traceback' not in err
  for word in words:
    assert word in err


def test_thresholds_that_part_or_merge_everybody_work_and_say_so(tmp_path, capsys):
  data = save(tmp_path / 'own.npz')
  expected = {'0': (CLIENTS, 'every client is alone'), '1e9': (1, 'all clients are in one cluster')}
  asked = [
    f'--clustering={method},distance_threshold={threshold},name={method}_{len(threshold)}'
    for method in ('dynamic_distance', 'hierarchical')
    for threshold in expected
  ]
  code = call(tmp_path / 'run', *BY_OWNER, f'--data_file={data}', *asked)
  assert code == 0, capsys.readouterr().err
  for found in results(tmp_path / 'run')['clusterings']:
    clusters, note = expected[found['parameters']['distance_threshold']]
    assert found['num_clusters'] == clusters
    assert any(note in text for text in found['notes']), found['notes']
    assert not found['overlapping']
  assert (tmp_path / 'run' / 'report.html').stat().st_size > 0


def test_as_many_clusters_as_clients_work_and_more_do_not(tmp_path, capsys):
  data = save(tmp_path / 'own.npz')
  flags = (*BY_OWNER, f'--data_file={data}')
  assert call(tmp_path / 'run', *flags, f'--clustering=kmeans,num_clusters={CLIENTS}') == 0
  assert any('every client is alone' in text for text in results(tmp_path / 'run')['clusterings'][0]['notes'])
  capsys.readouterr()
  code = call(tmp_path / 'more', *flags, f'--clustering=kmeans,num_clusters={CLIENTS + 1}')
  check_line(code, capsys, 2, f'num_clusters={CLIENTS + 1} is more than the {CLIENTS} clients')
  assert not (tmp_path / 'more').exists()


def test_clients_with_fewer_rows_than_a_batch_and_of_very_different_sizes_work(tmp_path, capsys):
  data = save(tmp_path / 'own.npz', **arrays(counts=(4, 5, 7, 90, 30, 4)))
  assert call(tmp_path / 'run', *BY_OWNER, f'--data_file={data}', KMEANS, '--batch_size=64') == 0
  found = results(tmp_path / 'run')
  assert found['population']['rows']['train'] < 140
  assert min(map(sum, found['population']['label_counts'])) <= 3
  assert found['phase1']['dropped_updates'] == 0


def test_clients_of_one_class_and_a_class_of_one_client_work(tmp_path, capsys):
  owner = arrays()['client_id']
  y = np.where(owner == 'w0', 0, np.where(owner == 'w1', 2, 1))
  data = save(tmp_path / 'own.npz', y=y)
  assert call(tmp_path / 'run', *BY_OWNER, f'--data_file={data}', KMEANS) == 0
  found = results(tmp_path / 'run')
  assert [sum(count > 0 for count in counts) for counts in found['population']['label_counts']] == [
    1
  ] * CLIENTS


def test_clients_that_are_all_equal_give_one_cluster_and_a_note(tmp_path, capsys):
  label = 2  # Of whose classes two have no rows.
  data = save(tmp_path / 'own.npz', x=np.zeros((72, 4), np.float32), y=np.full(72, label))
  assert call(tmp_path / 'run', *BY_OWNER, f'--data_file={data}', KMEANS) == 0
  assert results(tmp_path / 'run')['population']['num_classes'] == label + 1
  (found,) = results(tmp_path / 'run')['clusterings']
  assert found['num_clusters'] == 1
  assert any('other signatures are equal' in text for text in found['notes'])


def test_a_single_client_works(tmp_path, capsys):
  data = save(tmp_path / 'own.npz', **arrays(counts=(20,)))
  flags = ('--num_clients=1', '--clustering=kmeans,num_clusters=1', '--clustering=dynamic_distance')
  assert call(tmp_path / 'run', *BY_OWNER, f'--data_file={data}', *flags) == 0, capsys.readouterr().err
  assert [c['num_clusters'] for c in results(tmp_path / 'run')['clusterings']] == [1, 1]


def test_a_data_file_that_changed_since_is_noticed_and_finished_work_kept(tmp_path, capsys):
  data, folder = save(tmp_path / 'own.npz'), tmp_path / 'run'
  flags = (*BY_OWNER, f'--data_file={data}', KMEANS)
  assert call(folder, *flags) == 0
  before = results(folder)
  kept = {p: p.read_bytes() for p in folder.rglob('*.npz')}
  x = arrays()['x']
  x[17, 2] += 0.5
  save(data, x=x)
  capsys.readouterr()
  check_line(
    call(folder, *flags), capsys, 2, f'--data_file={data} has other rows', 'choose another --output_dir'
  )
  # Also where something is left to train.
  (folder / 'phase3' / 'kmeans.json').unlink()
  check_line(call(folder, *flags), capsys, 2, 'has other rows')
  assert {p: p.read_bytes() for p in folder.rglob('*.npz')} == kept
  # The old rows under another name are still the same experiment.
  moved = save(tmp_path / 'moved.npz')
  assert call(folder, *BY_OWNER, f'--data_file={moved}', KMEANS) == 0
  assert results(folder)['digest'] == before['digest']


def test_a_learning_rate_that_diverges_is_one_line(tmp_path, capsys):
  data = save(tmp_path / 'own.npz', x=arrays()['x'] * 1000)
  code = call(
    tmp_path / 'run', *BY_OWNER, f'--data_file={data}', KMEANS, '--learning_rate=1e38', '--local_epochs=9'
  )
  check_line(code, capsys, 2, 'smaller --learning_rate')


def mounted(folder, options):
  folder.mkdir()
  command = ['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', str(folder)]
  if os.geteuid() or subprocess.run(command, capture_output=True).returncode:
    pytest.skip('only root can mount a disk')


@pytest.fixture
def small_disk(tmp_path):
  folder = tmp_path / 'disk'
  mounted(folder, 'size=16m')
  yield folder
  subprocess.run(['umount', str(folder)], check=True)


@pytest.fixture
def read_only_disk(tmp_path):
  folder = tmp_path / 'disk'
  mounted(folder, 'size=1m,ro')
  yield folder
  subprocess.run(['umount', str(folder)], check=True)


def fill(folder, leave=0):
  """Leaves this many bytes of room on the disk."""
  descriptor = os.open(folder / 'ballast', os.O_WRONLY | os.O_CREAT)
  size = 1 << 20
  while size:
    try:
      os.write(descriptor, bytes(size))
    except OSError:
      size //= 2
  os.ftruncate(descriptor, os.fstat(descriptor).st_size - leave)
  os.close(descriptor)


def test_a_disk_that_is_full_once_the_clients_are_saved(small_disk, tmp_path):
  data = save(tmp_path / 'own.npz', **arrays(counts=(1000,) * CLIENTS))
  fill(small_disk, leave=40_000)
  code, out, err = Child(
    'phases.run_all', f'--output_dir={small_disk / "run"}', *SHORT, *BY_OWNER, f'--data_file={data}', KMEANS
  ).finish()
  check_text(code, err, 1, 'No space left on device', str(small_disk))
  assert nothing_done(out)


def test_a_disk_that_fills_up_during_a_run(small_disk, tmp_path):
  data, folder = save(tmp_path / 'own.npz'), small_disk / 'run'
  flags = (f'--output_dir={folder}', *SHORT, '--phase1_rounds=30', *BY_OWNER, f'--data_file={data}', KMEANS)
  child = Child('phases.run_all', *flags)
  assert child.wait_for(folder, 'store/fedavg-*/latest_0000[3-9].npz')
  fill(small_disk)
  code, out, err = child.finish()
  check_text(code, err, 1, 'No space left on device', str(folder))
  assert nothing_done(out) and child.left_over() == []
  (newest,) = folder.glob('store/fedavg-*/latest_*.npz')
  done = int(newest.stem.rpartition('_')[2])
  assert len(files.load_arrays(newest)['train_loss']) == done >= 3
  (small_disk / 'ballast').unlink()
  code, out, err = Child('phases.run_all', *flags).finish()
  assert code == 0, err
  asked, trained = map(int, re.search(r'^client-rounds: (\d+) asked for, (\d+) trained$', out, re.M).groups())
  assert asked - trained >= done * CLIENTS
  assert left_in(folder) == []


def test_a_folder_that_cannot_be_written(read_only_disk, tmp_path):
  data = save(tmp_path / 'own.npz')
  flags = (*SHORT, *BY_OWNER, f'--data_file={data}', KMEANS)
  for folder in (read_only_disk, read_only_disk / 'run'):
    begun = time.monotonic()
    code, out, err = Child('phases.run_all', f'--output_dir={folder}', *flags).finish()
    check_text(code, err, 1, 'Read-only file system', str(read_only_disk))
    assert out == ''
    assert time.monotonic() - begun < 10  # Before anything slow is imported.
