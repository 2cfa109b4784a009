"""A user's own .npz: what is read and what is refused, in one line."""

import dataclasses
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.data import sources
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.npz_file import load_npz
from tff_cluster.data.populate import build_population


def _write(path, **arrays):
  file = path / 'own.npz'
  np.savez(file, **arrays)
  return str(file)


def _good(**changes):
  """Arrays of six rows that can be read, but for what is changed."""
  return {'x': np.linspace(0, 1, 24).reshape(6, 4), 'y': np.arange(6) % 3, **changes}


def test_reads_numbers_labels_owners_and_groups(tmp_path):
  good = _good()
  source = load_npz(
    _write(tmp_path, **good, client_id=np.array([7, 7, 8, 8, 9, 9]), group=np.array(list('bbaabb')))
  )
  assert source.name == 'own' and source.num_classes == 3 and source.test_x is None
  assert source.train_x.dtype == np.float32 and source.train_y.dtype == np.int32
  np.testing.assert_allclose(source.train_x, good['x'], rtol=1e-6)
  assert source.train_owner.tolist() == ['7', '7', '8', '8', '9', '9']
  assert source.train_group.tolist() == [1, 1, 0, 0, 1, 1]


def test_a_file_may_say_which_rows_are_for_testing(tmp_path):
  is_test = np.arange(6) % 3 == 2
  good = _good(client_id=np.arange(6) % 2, group=np.arange(6) // 3, is_test=is_test)
  file = _write(tmp_path, **good)
  source = load_npz(file)
  np.testing.assert_allclose(source.test_x, good['x'][is_test], rtol=1e-6)
  np.testing.assert_allclose(source.train_x, good['x'][~is_test], rtol=1e-6)
  assert source.test_y.tolist() == [2, 2] and source.train_y.tolist() == [0, 1, 0, 1]
  assert (source.test_owner.tolist(), source.test_group.tolist()) == (['0', '1'], [0, 1])
  assert source.num_classes == 3  # A label may be among one of them only.
  config = DataConfig(dataset='file', data_file=file, partition='by_writer', num_clients=2)
  population = build_population(config)
  np.testing.assert_array_equal(population.test.x, source.test_x)
  # All rows count, of which two thirds are for training; a label that only test rows have is there.
  outline = sources.check(config)
  assert (outline.rows, outline.missing_classes) == (6, 0)
  with pytest.raises(
    InputError, match=r'^test_fraction=0\.3 does not apply to data_file=.*, which has is_test$'
  ):
    sources.load(dataclasses.replace(config, test_fraction=0.3))


def test_only_bytes_stay_whole_numbers_and_labels_may_have_gaps(tmp_path):
  x = np.arange(12).reshape(6, 2)
  for dtype, kept in ((np.uint8, np.uint8), (np.int16, np.float32), (bool, np.float32)):
    source = load_npz(_write(tmp_path, x=x.astype(dtype), y=np.arange(6) * 2))
    assert source.train_x.dtype == kept and source.num_classes == 11
    np.testing.assert_array_equal(source.train_x, x.astype(dtype))


@pytest.mark.parametrize(
  'arrays, says',
  [
    ({'x': np.zeros((3, 2))}, "no array 'y'"),
    (_good(z=np.zeros(6)), "unknown array 'z'"),
    (_good(is_test=np.ones(6, bool)), 'is_test is True in all rows'),
    (_good(is_test=np.zeros(6, bool)), 'is_test is False in all rows'),
    (_good(is_test=np.arange(6) % 2), 'is_test has dtype int64 and shape [6]; expected bool [rows]'),
    (_good(is_test=np.arange(5) > 2), 'is_test has 5 rows, x has 6'),
    (_good(y=np.zeros(5, int)), 'y has 5 rows, x has 6'),
    (_good(client_id=np.zeros(7, int)), 'client_id has 7 rows'),
    (_good(x=np.full((6, 2), np.nan)), 'NaN'),
    (_good(x=np.where(np.arange(12).reshape(6, 2) == 7, np.inf, 0.0)), 'row 3'),
    (_good(x=np.full((6, 2), 1e300)), 'too large'),
    (_good(x=np.zeros((0, 4)), y=np.zeros(0, int)), 'shape [0, 4]'),
    (_good(x=np.array([['a']] * 6)), 'dtype'),
    (_good(y=np.arange(6) - 2), 'label -2'),
    (_good(y=np.array([0, 1, 2**40, 0, 0, 0])), 'label 1099511627776'),
    (_good(y=np.zeros(6)), 'dtype float64'),
    (_good(client_id=np.zeros(6)), 'client_id has dtype float64'),
    (_good(group=np.int64(3)), 'group has shape []'),
    (_good(client_id=np.array([b'\xff'] * 6)), 'UTF-8'),
    (_good(client_id=np.array(['a', 'b\ud800'] * 3)), 'client_id has text that is not Unicode'),
    (_good(group=np.array([0x110000] * 6, np.uint32).view('U1')), 'group has text that is not Unicode'),
    (_good(x=np.array([[None, 1]] * 6, dtype=object)), 'Python objects'),
    (_good(y=np.int64(3)), 'y has shape []'),
  ],
)
def test_wrong_content_is_refused_in_one_line(tmp_path, arrays, says):
  path = _write(tmp_path, **arrays)
  with pytest.raises(InputError) as caught:
    load_npz(path)
  assert says in str(caught.value) and path in str(caught.value)
  assert '\n' not in str(caught.value)


def test_missing_file_folder_and_npy_are_refused(tmp_path):
  np.save(tmp_path / 'one.npy', np.zeros(3))
  for name, says in (('none.npz', 'no such file'), ('', 'not a file'), ('one.npy', 'not an .npz')):
    with pytest.raises(InputError, match=says):
      load_npz(str(tmp_path / name))


def test_unreadable_file_is_the_machines_fault(tmp_path, monkeypatch):
  path = _write(tmp_path, **_good())
  monkeypatch.setattr('builtins.open', mock.Mock(side_effect=PermissionError(13, 'Permission denied')))
  with pytest.raises(EnvironmentFault, match='Permission denied'):
    load_npz(path)


@pytest.mark.parametrize('save', [np.savez, np.savez_compressed])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_cut_off_or_altered_files_never_crash(tmp_path, save, data):
  path = tmp_path / 'own.npz'
  save(path, **_good())
  content = bytearray(path.read_bytes())
  size = len(content)
  if data.draw(st.booleans()):
    content = content[: data.draw(st.integers(0, size - 1))]
    expected = (InputError,)
  else:
    content[data.draw(st.integers(0, size - 1))] ^= data.draw(st.integers(1, 255))
    expected = (InputError, EnvironmentFault)
  path.write_bytes(content)
  try:
    load_npz(str(path))
  except expected as error:
    assert '\n' not in str(error)
  else:
    # A flipped bit in a part that carries nothing (a time stamp) is harmless; a missing end never is.
    assert len(content) == size


def test_owners_that_a_partition_does_not_keep_are_told(tmp_path, caplog):
  path = _write(tmp_path, **_good(), client_id=np.arange(6) // 2)
  for partition, told in (('by_writer', 0), ('iid', 1), ('iid', 0)):  # Once a process.
    caplog.clear()
    sources.load(DataConfig(dataset='file', data_file=path, partition=partition, num_clients=3))
    assert len(caplog.records) == told
    if told:
      assert 'client_id' in caplog.text and 'by_writer keeps them' in caplog.text
