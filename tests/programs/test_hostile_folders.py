"""Folders and files that change under a run: taken away, damaged, of a later version, or dated by a clock that jumps.

One line each; nothing of it is used, nothing is overwritten, and where a run goes on it ends with the same digest. What users
keep in a run's folder stays as it is (test_folders_of_users.py).
"""

import itertools
import json
import logging
import os
import re
import shlex
import shutil
import time
import zipfile

import numpy as np
import pytest

from tests.programs.children import (
  SMALL,
  JumpingChild,
  UnreportedChild,
  beside_phases,
  check_text,
  digest,
  nothing_done,
  run_here,
  run_small,
)
from tff_cluster.base import seeding
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.experiment import results as results_lib
from tff_cluster.phases import model_export
from tff_cluster.storage import files, sealed_json

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures('without_report')]
KINDS = ('cut off', 'altered')


@pytest.fixture
def unread(copy):
  """A copy of a finished run that has to read its store once more."""
  for path in copy.glob('phase3/*.json'):
    path.unlink()
  return copy


@pytest.fixture
def refused(capsys):
  """Returns a function that runs on a folder and checks the exit code and the line that it ends with."""

  def called(folder, code, *words):
    capsys.readouterr()
    found = run_small(folder)
    captured = capsys.readouterr()
    check_text(found, beside_phases(captured.err), code, *words)
    assert captured.out == ''

  return called


def chosen(folder, pattern):
  """Returns a file that matches: of trajectories that of one cluster, of half of the clients."""
  return max(folder.glob(pattern), key=lambda path: (-len(cast(path)), path))


def cast(path):
  about = path.parent / 'determinants.json'
  return json.loads(about.read_text())['clients'] if about.exists() else ()


def damage(path, kind):
  """Cuts a file off, or alters a byte of what it says at a seeded place, so that JSON stays JSON."""
  whole = path.read_bytes()
  rng = seeding.generator(0, 'damage', path.name, kind)
  if kind == 'cut off':
    path.write_bytes(whole[: int(rng.integers(1, len(whole) - 3))])
    return
  places = np.arange(len(whole) // 3, 2 * len(whole) // 3)
  if path.suffix == '.json':
    body = whole[: whole.index(b',\n "sealed"')]
    places = [i for i, byte in enumerate(body) if chr(byte).isdigit() and not body[i - 1 : i].isspace()]
    places = places or [i for i, byte in enumerate(body) if chr(byte).isalnum()]
  place = int(rng.choice(places))
  path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])


def removable(folder):
  """Returns the files of a finished run that phases read from each other, one a kind, without shared artifacts and pages."""
  beside = ('store', 'tensorboard', 'config.json', 'results.json', 'arrays.npz')
  found = {}
  for path in sorted(folder.rglob('*')):
    name = path.relative_to(folder)
    if path.is_file() and path.suffix in ('.json', '.npz') and name.parts[0] not in beside:
      # What is made while clients train is of another kind than what other methods leave.
      found[re.sub('hierarchical|kmeans', 'LABEL', str(name))] = name
  return list(found.values())


def test_removing_any_damaged_file_has_it_made_again_as_its_line_says(copy, finished, refused, capsys):
  assert len(removable(finished)) > 12
  for name in removable(finished):
    path = copy / name
    # An altered byte of a small archive may be one that says nothing.
    damage(path, 'cut off' if path.suffix == '.npz' and path.parent != copy else 'altered')
    damaged = path.read_bytes()
    for again in {'phase3/kmeans.json', 'phase3/bipartition.json'} - {name.as_posix()}:
      (copy / again).unlink()
    refused(copy, 2, f'{path} is damaged', 'remove it to have it made again')
    assert path.read_bytes() == damaged
    path.unlink()
    assert run_small(copy) == 0, (name, capsys.readouterr().err)
    assert digest(copy) == digest(finished), name
    assert ' 0 trained' in capsys.readouterr().out, name
    assert path.exists()


# Files that a run keeps aside and makes again.
MADE_AGAIN = (
  'store/fedavg-*/round_00004.npz', 'store/signatures-*/vectors.npy', 'store/signatures-*/vectors.npy.json',
  'store/signatures-*/clients.json', 'results.json', 'arrays.npz',
)  # fmt: skip


@pytest.mark.parametrize(('name', 'kind'), zip(MADE_AGAIN, itertools.cycle(KINDS)))
def test_a_damaged_file_that_can_be_made_again_is_named_kept_aside_and_made_again(
  name, kind, unread, finished, capsys, caplog
):
  path = chosen(unread, name)
  damage(path, kind)
  damaged = path.read_bytes()
  with caplog.at_level(logging.WARNING):
    assert run_small(unread) == 0, capsys.readouterr().err
  (record,) = [r for r in caplog.records if r.name == files.__name__]
  assert f'{path} is damaged' in record.getMessage() and '\n' not in record.getMessage()
  asides = [p for p in unread.rglob('*.damaged') if p.read_bytes() == damaged]
  assert [p.name for p in asides] == [path.name + '.damaged']
  assert digest(unread) == digest(finished)


def make_newer(path):
  """Makes a file one that a later version has written."""
  if path.suffix == '.npz':
    with np.load(path) as archive:
      arrays = dict(archive)
    np.savez(path, **arrays, __format__=np.array(sealed_json.FORMAT + 1))
    return
  described = path.with_name(path.name + '.json') if path.suffix == '.npy' else path
  text = described.read_text()
  described.write_text(text.replace(f'"format": {sealed_json.FORMAT}', f'"format": {sealed_json.FORMAT + 1}'))
  assert described.read_text() != text


@pytest.mark.parametrize(
  'name',
  [
    'config.json',
    'population.npz',
    'store/fedavg-*/round_00004.npz',
    'store/signatures-*/vectors.npy',
    'results.json',
  ],
)
def test_a_file_of_a_later_version_is_named_and_left_alone(name, unread, refused):
  path = chosen(unread, name)
  if name == 'results.json':
    files.save_json(path, files.load_json(path) | {'schema': results_lib.SCHEMA + 1})
    words = ('results.json has schema', str(results_lib.SCHEMA + 1))
  else:
    make_newer(path)
    words = (str(path), 'file format 2')
  before = path.read_bytes()
  refused(unread, 1, *words)
  assert path.read_bytes() == before
  assert not list(unread.rglob('*.damaged'))


def test_what_stands_in_a_lock_and_how_old_files_are_does_not_matter(unread, finished, capsys):
  (unread / '.tff_cluster-lock').write_bytes(b'\xff\n\x00' * 50)
  for number, path in enumerate(sorted(unread.rglob('*'))):
    second = (0, 2**33)[number % 2]
    os.utime(path, (second, second))
  assert run_small(unread) == 0
  assert digest(unread) == digest(finished)
  assert ' 0 trained' in capsys.readouterr().out
  assert not (unread / '.tff_cluster-lock').exists()


def test_a_run_under_a_clock_that_jumps_gives_the_same_bits(finished, tmp_path):
  child = JumpingChild(
    'phases.run_all', *SMALL, f'--output_dir={tmp_path / "run"}', JUMPED=str(tmp_path / 'jumped')
  )
  code, _, err = child.finish()
  assert (code, err) == (0, '')
  assert int((tmp_path / 'jumped').read_text()) > 0
  assert digest(tmp_path / 'run') == digest(finished)
  assert child.left_over() == []


@pytest.mark.parametrize('second', [0, 2**33])
def test_a_clock_before_1980_or_after_2107_is_named_where_a_model_is_written(second, tmp_path):
  class Dated:
    def set_weights(self, weights):
      pass

    def save(self, path):
      # The zip file's own complaint, as under such a clock.
      with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr(zipfile.ZipInfo('weights', time.gmtime(second)[:6]), b'')

  with pytest.raises(EnvironmentFault, match='the clock of this machine') as caught:
    model_export.Exports(Dated).write(tmp_path / 'cluster_000.keras', [])
  assert '\n' not in str(caught.value) and list(tmp_path.iterdir()) == []


def removed(folder):
  """Removes a folder that is written to, as `rm -r` given again and again does."""
  while folder.exists():
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(('what', 'words'), [('output_dir', 'was removed'), ('store_dir', 'is not there')])
def test_a_folder_removed_while_the_run_goes_on_ends_it_and_does_not_come_back(what, words, tmp_path):
  folder, shared = tmp_path / 'run', tmp_path / 'store'
  child = UnreportedChild(
    'phases.run_all', *SMALL, '--phase1_rounds=500', f'--output_dir={folder}', f'--store_dir={shared}'
  )
  assert child.wait_for(shared, 'fedavg-*/latest_*.npz')
  removed(folder if what == 'output_dir' else shared)
  code, out, err = child.finish(timeout=60)
  check_text(code, err, 1, str(folder), words)
  assert nothing_done(out) and child.left_over() == []
  (left,) = tmp_path.iterdir()
  assert left == (shared if what == 'output_dir' else folder)
  assert not (list(shared.rglob('.*')) or (folder / '.tff_cluster-lock').exists())


def test_what_a_report_misses_is_made_by_the_commands_that_its_lines_name(copy, finished, capsys):
  missing = ('phase1.json', 'environment.json', 'clusterings/bipartition/similarities.npz', 'phase2/baseline.json', 'phase3/kmeans.json')  # fmt: skip
  for name in missing:
    (copy / name).unlink()
  for _ in missing:
    if run_here('phases.report', f'--output_dir={copy}') == 0:
      break
    line = capsys.readouterr().err
    command = shlex.split(re.search(r'run python -m (.*) first', line)[1])
    assert run_here(*command) == 0, (line, capsys.readouterr().err)
  assert run_here('phases.report', f'--output_dir={copy}') == 0, capsys.readouterr().err
  assert all((copy / name).exists() for name in missing)
  assert digest(copy) == digest(finished)
