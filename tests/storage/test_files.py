"""Files are whole or not there: interrupted writes, damage, full disks."""

import contextlib
import errno
import gc
import json
import os
import pathlib
import resource
import signal
import stat
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tests
from tests.made_up.disks import disk
from tff_cluster.base import digests
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.storage import files

ROOT = pathlib.Path(__file__).parents[2]
ROWS, COLUMNS = 100, 1000  # 400 kB: many pages.


def fill(array):
  array[:] = np.arange(array.size, dtype=np.float32).reshape(array.shape) * 0.5 - 7


WRITERS = {
  'json': lambda path: files.save_json(path, {'numbers': list(range(5000))}),
  'arrays': lambda path: files.save_arrays(path, {'x': np.arange(10_000)}),
  'file': lambda path: files.save_file(path, lambda temporary: temporary.write_bytes(b'x' * 50_000)),
  'rows': lambda path: files.save_rows(path, ROWS, COLUMNS, fill),
}


def names(folder):
  return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def file(tmp_path):
  path = tmp_path / 'file.npz'
  path.write_bytes(b'old')
  return path


class Planted(Exception):
  pass


def test_arrays_whose_writing_a_signal_ends_leave_nothing_that_complains_later(file, monkeypatch):
  complaints = []
  monkeypatch.setattr(sys, 'unraisablehook', complaints.append)

  unharmed = zipfile.ZipFile.open

  def interrupted(archive, name, mode='r', **options):
    if name == 'second.npy':
      raise KeyboardInterrupt
    return unharmed(archive, name, mode, **options)

  monkeypatch.setattr(zipfile.ZipFile, 'open', interrupted)
  with pytest.raises(KeyboardInterrupt):
    files.save_arrays(file, {'first': np.ones(3), 'second': np.ones(3)})
  gc.collect()
  assert complaints == [] and file.read_bytes() == b'old' and names(file.parent) == [file.name]


@pytest.mark.parametrize('error', [Planted, KeyboardInterrupt])
def test_an_exception_leaves_the_old_content_and_no_other_file(error, file):
  def write(temporary):
    assert temporary.suffix == file.suffix
    temporary.write_bytes(b'half')
    raise error

  with pytest.raises(error), files.replacing(file) as stream:
    stream.write(b'new')
    stream.flush()
    raise error
  with pytest.raises(error):
    files.save_file(file, write)
  assert file.read_bytes() == b'old'
  assert names(file.parent) == ['file.npz']


def test_readers_see_the_old_content_until_the_block_ends_and_who_has_it_open_to_its_end(file):
  with open(file, 'rb', buffering=0) as reader:
    assert reader.read(1) == b'o'
    with files.replacing(file) as stream:
      stream.write(b'new')
      stream.flush()
      assert file.read_bytes() == b'old'
    assert file.read_bytes() == b'new'
    assert reader.read() == b'ld'  # The new content is another file, not a change of this one.
    files.save_file(file, lambda temporary: temporary.write_bytes(b'newer'))
    assert (reader.seek(0), reader.read()) == (0, b'old')
  assert file.read_bytes() == b'newer' and names(file.parent) == ['file.npz']


def save_in_every_way(folder):
  """Writes a file by each of the ways that the store knows, and returns their paths."""
  paths = {name: folder / 'new' / name for name in ('json', 'npz', 'npy', 'keras')}
  files.save_json(paths['json'], {})
  files.save_arrays(paths['npz'], {'x': np.zeros(3)})
  files.save_rows(paths['npy'], 1, 1, lambda rows: None)
  files.save_file(paths['keras'], lambda temporary: temporary.write_bytes(b'library'))
  return [*paths.values(), folder / 'new' / 'npy.json']


@pytest.mark.parametrize(('mask', 'file_mode', 'folder_mode'), [(0o077, 0o600, 0o700), (0o002, 0o664, 0o775)])
def test_new_files_have_the_permissions_that_the_umask_leaves_and_keep_their_own(
  mask, file_mode, folder_mode, tmp_path
):
  before = os.umask(mask)
  try:
    paths = save_in_every_way(tmp_path)
    assert {path.stat().st_mode & 0o777 for path in paths} == {file_mode}
    assert (tmp_path / 'new').stat().st_mode & 0o777 == folder_mode
    for path in paths:
      path.chmod(0o600)
    with files.replacing(paths[0]):
      (temporary,) = tmp_path.glob('new/.tff_cluster-*')
      assert temporary.stat().st_mode & 0o777 == 0o600
    save_in_every_way(tmp_path)
    # The checksum of rows is removed before they are written, and made anew.
    assert {path.stat().st_mode & 0o777 for path in paths if path.name != 'npy.json'} == {0o600}
  finally:
    os.umask(before)


KILLED = """
import os, pathlib, sys
from tff_cluster.storage import files
path = pathlib.Path(sys.argv[1])
def die(array):
  array[:2] = 1
  os.kill(os.getpid(), 9)
if sys.argv[2] == 'rows':
  files.save_rows(path, 4, 5, die)
with files.replacing(path) as stream:
  stream.write(b'new')
  stream.flush()
  os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize('kind', ['block', 'rows'])
def test_what_a_killed_process_leaves_is_removed_by_a_sweep_or_the_next_that_writes_the_file(kind, file):
  done = subprocess.run([sys.executable, '-c', KILLED, str(file), kind], cwd=ROOT)
  assert done.returncode == -signal.SIGKILL
  assert file.read_bytes() == b'old'
  (left,) = set(file.parent.iterdir()) - {file}
  files.sweep(file.parent)
  assert names(file.parent) == ['file.npz']
  for kind in ('arrays', 'file'):
    left.write_text('half')
    other = file.with_name('.tff_cluster-0123456789abcdef-file2.npz')
    other.write_text('of another file')
    WRITERS[kind](file)
    assert names(file.parent) == [other.name, 'file.npz']


def test_a_file_that_is_written_is_not_swept(file):
  with files.replacing(file) as stream:
    stream.write(b'new')
    files.sweep(file.parent)
    with files.replacing(file) as other:
      other.write(b'newer')
    assert file.read_bytes() == b'newer'
  assert file.read_bytes() == b'new' and names(file.parent) == ['file.npz']


LEFT_OVER = f'.tff_cluster-{"0f" * 8}-a.npz'
# Names of others: those of other programs, and what is nearly ours.
OTHERS = (
  '.hidden', '.a.npz.x1y2.tmp', LEFT_OVER[1:], LEFT_OVER.replace('0f', '0g'), LEFT_OVER.replace('0f', '0'),
  LEFT_OVER.removesuffix('-a.npz'), f'my{LEFT_OVER}',
)  # fmt: skip


def test_sweep_removes_nothing_else(tmp_path):
  below = tmp_path / 'deep' / LEFT_OVER
  below.parent.mkdir()
  aim = tmp_path.with_name('aim')
  for path in (below, aim, *(tmp_path / name for name in OTHERS)):
    path.write_text('mine')
  link, folder = (tmp_path / LEFT_OVER.replace('0f', token) for token in ('1e', '2d'))
  link.symlink_to(aim)
  folder.mkdir()
  (folder / 'thesis.txt').write_text('mine')
  os.mkfifo(tmp_path / LEFT_OVER.replace('0f', '3c'))
  before = sorted(tmp_path.rglob('*'))
  (tmp_path / LEFT_OVER).write_text('left over')
  if os.geteuid() == 0:  # Only root can give a file to somebody else.
    theirs = tmp_path / LEFT_OVER.replace('0f', '4b')
    theirs.write_text('theirs')
    os.chown(theirs, 12345, 12345)
    before = sorted([*before, theirs])
  files.sweep(tmp_path)
  assert sorted(tmp_path.rglob('*')) == before
  assert aim.read_text() == 'mine' and (folder / 'thesis.txt').read_text() == 'mine'


def test_what_is_set_aside_replaces_nothing(tmp_path):
  path = tmp_path / 'a.npz'
  (tmp_path / 'a.npz.damaged').write_text('mine')
  for content in ('one', 'two'):
    path.write_text(content)
    files.set_aside(path, files.DamagedFile(f'{path} is damaged'))
  assert names(tmp_path) == ['a.npz.damaged', 'a.npz.damaged-2', 'a.npz.damaged-3']
  assert [found.read_text() for found in sorted(tmp_path.iterdir())] == ['mine', 'one', 'two']


@contextlib.contextmanager
def no_room():
  """Limits this process to files of 4 kB; Python turns the signal that goes with it into an OSError.

  For one call only: the output of the tests may be such a file.
  """
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
  resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, before)


@pytest.mark.filterwarnings('error')  # Nothing may complain on stderr beside the one line.
@pytest.mark.parametrize('write', WRITERS.values(), ids=WRITERS)
def test_no_room_or_no_folder_is_one_line_keeps_the_old_content_and_leaves_no_file(write, file):
  with no_room(), pytest.raises(EnvironmentFault, match=os.strerror(errno.EFBIG)) as caught:
    write(file)
  assert str(file) in str(caught.value) and '\n' not in str(caught.value)
  with pytest.raises(EnvironmentFault, match=rf'^cannot write {file}/below: '):
    write(file / 'below')
  assert file.read_bytes() == b'old'
  assert names(file.parent) == ['file.npz']


@pytest.mark.parametrize('kind', ['json', 'file', 'rows'])
def test_a_file_is_on_the_disk_before_it_has_its_name(kind, file, monkeypatch):
  """After a power cut, a name must not lead to what had not been written yet."""
  seen = []

  def sync(descriptor):
    about = os.fstat(descriptor)
    seen.append((stat.S_ISDIR(about.st_mode), about.st_size, file.read_bytes() == b'old'))
    tests.SYNC(descriptor)

  monkeypatch.setattr(os, 'fsync', sync)
  WRITERS[kind](file)
  of_file = [(size, unnamed) for is_folder, size, unnamed in seen if not is_folder]
  assert (file.stat().st_size, True) in of_file
  # Written through its own descriptor, what is renamed is in the folder on the disk, too.
  assert kind == 'file' or seen[-1][0]


@pytest.fixture
def small_disk(tmp_path):
  with disk(tmp_path / 'disk', 'size=64k') as folder:
    yield folder


def test_rows_that_a_full_disk_does_not_take_are_not_taken_for_whole(small_disk):
  path = small_disk / 'rows.npy'
  files.save_rows(path, 4, 5, fill)
  with pytest.raises(EnvironmentFault, match=os.strerror(errno.ENOSPC)):
    WRITERS['rows'](path)
  with pytest.raises(FileNotFoundError):
    files.load_rows(path)
  assert names(small_disk) == ['rows.npy']


@pytest.mark.parametrize('content', [b'', b'{"a": 1', b'\xff\xfe', b'{"a": 1}{'])
def test_json_that_is_damaged_is_named(content, tmp_path):
  (tmp_path / 'a.json').write_bytes(content)
  assert damaged(files.load_json, tmp_path / 'a.json') is None


@given(
  arrays=st.dictionaries(
    st.text('abcxyz_0123456789', min_size=1, max_size=8),
    hnp.arrays(
      st.sampled_from([np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_]),
      hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    ),
    max_size=4,
  )
)
@settings(max_examples=40)
def test_arrays_come_back_with_names_dtypes_and_shapes(tmp_path_factory, arrays):
  path = tmp_path_factory.getbasetemp() / 'arrays.npz'
  files.save_arrays(path, arrays)
  found = files.load_arrays(path)
  assert found.keys() == arrays.keys()
  for name, array in arrays.items():
    assert found[name].dtype == array.dtype and found[name].shape == array.shape
    np.testing.assert_array_equal(found[name], array)


def damaged(load, path):
  """Returns what load(path) gives, or None where it says in one line that the file is damaged."""
  try:
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')
      return load(path)
  except files.DamagedFile as error:
    assert f'{path} is damaged' in str(error) and '\n' not in str(error)
    assert 'remove it' in str(error)
    return None


ARRAYS = {
  'x': np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3),
  'n': np.array([7]),
}


@pytest.mark.parametrize(
  ('save', 'load'),
  [
    (lambda path: files.save_arrays(path, ARRAYS), files.load_arrays),
    (lambda path: files.save_rows(path, 6, 5, fill), files.load_rows),
  ],
  ids=['arrays', 'rows'],
)
def test_a_file_that_is_cut_off_or_altered_anywhere_is_damaged_or_says_the_same(save, load, tmp_path):
  path = tmp_path / 'a.npz'
  save(path)
  whole = path.read_bytes()
  expected = digests_of(load(path))
  for length in range(0, len(whole), 7):
    path.write_bytes(whole[:length])
    assert damaged(load, path) is None, length
  noticed = 0
  for position in range(len(whole)):
    mask = 0x01 if position % 2 else 0xFF
    path.write_bytes(whole[:position] + bytes([whole[position] ^ mask]) + whole[position + 1 :])
    found = damaged(load, path)
    noticed += found is None
    assert found is None or digests_of(found) == expected, position
  # The rest is dates and names of the zip format, which nobody reads, and a header that says the same in other characters.
  assert noticed > len(whole) / 2


def digests_of(found):
  arrays = found if isinstance(found, dict) else {'': found}
  return {name: digests.of_arrays([array]) for name, array in arrays.items()}


def test_a_file_that_the_machine_cannot_read_is_not_damaged(tmp_path, monkeypatch):
  path = tmp_path / 'a.npz'
  files.save_arrays(path, {'x': np.arange(3.0)})

  def too_many(*_, **__):
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

  monkeypatch.setattr(np, 'load', too_many)
  with pytest.raises(OSError, match='Too many open files'):
    files.load_or_none(path)
  monkeypatch.undo()
  assert names(tmp_path) == ['a.npz'] and files.load_arrays(path)['x'].tolist() == [0.0, 1.0, 2.0]


def test_numbers_that_are_changed_behind_the_zips_own_checksum_are_noticed(tmp_path):
  path = tmp_path / 'a.npz'
  files.save_arrays(path, ARRAYS)
  with np.load(path) as archive:
    stored = dict(archive)
  for name, change in (('x', stored['x'] + 1), ('n', stored['n'].astype(np.int32)), ('x', stored['x'].T)):
    np.savez(path, **(stored | {name: change}))
    assert damaged(files.load_arrays, path) is None
  np.savez(path, **{('y' if name == 'x' else name): array for name, array in stored.items()})
  assert damaged(files.load_arrays, path) is None
  np.savez(path, x=np.zeros(3))
  assert damaged(files.load_arrays, path) is None


def test_rows_come_back_mapped_and_read_only(tmp_path):
  path = tmp_path / 'rows.npy'
  WRITERS['rows'](path)
  expected = np.empty((ROWS, COLUMNS), np.float32)
  fill(expected)
  found = files.load_rows(path)
  assert isinstance(found, np.memmap) and not found.flags.writeable
  np.testing.assert_array_equal(found, expected)
  np.testing.assert_array_equal(np.load(path), expected)
  assert names(tmp_path) == ['rows.npy', 'rows.npy.json']
  with open(path, 'r+b') as stream:
    stream.seek(-1, os.SEEK_END)
    stream.write(b'?')
  assert damaged(files.load_rows, path) is None


def test_rows_whose_checksum_is_gone_or_that_were_half_filled_are_not_there(tmp_path):
  def fails(array):
    array[0] = 1
    raise Planted

  path, checksum = tmp_path / 'rows.npy', tmp_path / 'rows.npy.json'
  files.save_rows(path, 2, 3, fill)
  before = path.read_bytes()
  checksum.write_text(json.dumps(['something else']))
  assert damaged(files.load_rows, path) is None
  with pytest.raises(Planted):
    files.save_rows(path, 2, 3, fails)
  assert path.read_bytes() == before and names(tmp_path) == ['rows.npy']
  for load in (files.load_json, files.load_arrays, files.load_rows):
    with pytest.raises(FileNotFoundError):
      load(path if load == files.load_rows else tmp_path / 'nothing')
