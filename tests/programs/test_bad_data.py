"""Data, folders and disks that are wrong: one line that helps, the right exit code, finished work kept.

And data that only looks wrong: tiny, lopsided and extreme, which has to work. Files of rows that are refused for what is in
them are in test_wrong_files.py, clients that diverge in tests/phases.
"""

import json
import os
import re

import numpy as np
import pytest

from tests.made_up.disks import disk
from tests.programs.children import (
  ForkedChild,
  UnreportedChild,
  check_text,
  left_in,
  nothing_done,
  run_here,
)
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


def flags_of(folder, data, *more):
  return (f'--output_dir={folder}', *SHORT, *BY_OWNER, f'--data_file={data}', *more)


def call(folder, data, *more):
  """Runs phases.run_all in this process and returns its exit code."""
  return run_here('phases.run_all', *flags_of(folder, data, *more))


def results(folder):
  return json.loads((folder / 'results.json').read_text())


@pytest.fixture
def works(tmp_path, capsys):
  """Returns a function that runs on changed arrays, and returns the results."""

  def worked(*more, **changes):
    code = call(tmp_path / 'run', save(tmp_path / 'own.npz', **changes), *more)
    assert code == 0, capsys.readouterr().err
    return results(tmp_path / 'run')

  return worked


def check_line(code, capsys, expected, *words):
  captured = capsys.readouterr()
  check_text(code, captured.err, expected, *words)
  assert nothing_done(captured.out)


def test_clusterings_that_part_or_merge_everybody_work_and_say_so(works, tmp_path):
  apart, together = (CLIENTS, 'every client is alone'), (1, 'all clients are in one cluster')
  expected = {
    'dynamic_distance,distance_threshold=0': apart,
    'hierarchical,distance_threshold=1e9': together,
    f'kmeans,num_clusters={CLIENTS}': apart,
  }
  found = works(*(f'--clustering={asked}' for asked in expected))['clusterings']
  for clustering, (clusters, note) in zip(found, expected.values(), strict=True):
    assert clustering['num_clusters'] == clusters and not clustering['overlapping']
    assert any(note in text for text in clustering['notes']), clustering['notes']
  assert (tmp_path / 'run' / 'report.html').stat().st_size > 0


def test_clients_of_very_different_sizes_and_of_one_class_each_work(works, without_report):
  """Some have fewer rows than a batch, one has hundreds of times the rows of the others, one has a class alone."""
  made = arrays(counts=(4, 5, 7, 12_000, 30, 4))
  owner = made['client_id']
  made['y'] = np.where(owner == 'w0', 0, np.where(owner == 'w1', 2, 1))
  found = works(KMEANS, '--batch_size=64', **made)
  counts = np.array(found['population']['label_counts'])
  sizes = counts.sum(axis=1)
  assert min(sizes) <= 3 and sizes[3] > 300 * sorted(sizes)[-2]
  assert ((counts > 0).sum(axis=1) == 1).all()
  assert found['population']['rows']['train'] < len(owner) and found['phase1']['dropped_updates'] == 0
  assert 'excluded' not in found['clusterings'][0]
  json.dumps(found, allow_nan=False)


def test_clients_that_are_all_equal_give_one_cluster_and_a_note(works, without_report):
  label = 2  # Of whose classes two have no rows.
  found = works(KMEANS, x=np.zeros((72, 4), np.float32), y=np.full(72, label))
  assert found['population']['num_classes'] == label + 1
  (clustering,) = found['clusterings']
  assert clustering['num_clusters'] == 1
  assert any('cannot tell more of the clients apart' in text for text in clustering['notes'])


def test_a_single_client_works(works):
  flags = ('--num_clients=1', '--clustering=kmeans,num_clusters=1', '--clustering=dynamic_distance')
  assert [c['num_clusters'] for c in works(*flags, **arrays(counts=(20,)))['clusterings']] == [1, 1]


def test_where_all_diverge_it_is_one_line(tmp_path, capsys):
  data = save(tmp_path / 'own.npz', x=arrays()['x'] * 1000)
  code = call(tmp_path / 'run', data, KMEANS, '--learning_rate=1e38', '--local_epochs=9')
  check_line(code, capsys, 2, 'smaller --learning_rate')


def test_a_data_file_that_changed_since_is_noticed_and_finished_work_kept(
  works, tmp_path, capsys, without_report
):
  data, folder = tmp_path / 'own.npz', tmp_path / 'run'
  before = works(KMEANS)
  kept = {p: p.read_bytes() for p in folder.rglob('*.npz')}
  x = arrays()['x']
  x[17, 2] += 0.5
  save(data, x=x)
  capsys.readouterr()
  (folder / 'phase3' / 'kmeans.json').unlink()  # Something is left to do.
  words = (f'--data_file={data} has other rows', 'choose another --output_dir')
  check_line(call(folder, data, KMEANS), capsys, 2, *words)
  assert {p: p.read_bytes() for p in folder.rglob('*.npz')} == kept
  # The old rows under another name are still the same experiment.
  assert call(folder, save(tmp_path / 'moved.npz'), KMEANS) == 0
  assert results(folder)['digest'] == before['digest']


@pytest.fixture
def small_disk(tmp_path):
  with disk(tmp_path / 'disk', 'size=16m') as folder:
    yield folder


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
  code, out, err = ForkedChild('phases.run_all', *flags_of(small_disk / 'run', data, KMEANS)).finish()
  check_text(code, err, 1, 'No space left on device', str(small_disk))
  assert nothing_done(out)


def test_a_disk_that_fills_up_during_a_run(small_disk, tmp_path):
  folder = small_disk / 'run'
  flags = flags_of(folder, save(tmp_path / 'own.npz'), KMEANS, '--phase1_rounds=30')
  child = ForkedChild('phases.run_all', *flags)
  assert child.wait_for(folder, 'store/fedavg-*/latest_0000[3-9].npz')
  fill(small_disk)
  code, out, err = child.finish()
  check_text(code, err, 1, 'No space left on device', str(folder))
  assert nothing_done(out) and child.left_over() == []
  (newest,) = folder.glob('store/fedavg-*/latest_*.npz')
  done = int(newest.stem.rpartition('_')[2])
  assert len(files.load_arrays(newest)['train_loss']) == done >= 3
  (small_disk / 'ballast').unlink()
  code, out, err = UnreportedChild('phases.run_all', *flags).finish()
  assert code == 0, err
  asked, trained = map(int, re.search(r'^client-rounds: (\d+) asked for, (\d+) trained$', out, re.M).groups())
  assert asked - trained >= done * CLIENTS
  assert left_in(folder) == []


def test_a_folder_that_cannot_be_written(tmp_path, capsys):
  data = save(tmp_path / 'own.npz')
  with disk(tmp_path / 'disk', 'size=1m,ro') as read_only:
    for folder in (read_only, read_only / 'run'):
      code = call(folder, data, KMEANS)
      captured = capsys.readouterr()
      check_text(code, captured.err, 1, 'Read-only file system', str(read_only))
      assert captured.out == ''
