"""Populations on disk."""

import os

import numpy as np
import pytest

from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.data.populate import build_population
from tff_cluster.data.saved import load_population, save_population
from tff_cluster.experiment.config import DataConfig
from tff_cluster.storage import files


@pytest.fixture(scope='module')
def population():
  return build_population(DataConfig(partition='pathological', num_clients=8, rows_per_client=20))


def test_what_is_loaded_is_what_was_saved(tmp_path, population):
  path = tmp_path / 'new folder' / 'population.npz'
  save_population(population, path)
  loaded = load_population(path)
  assert loaded.digest == population.digest
  assert loaded.name == population.name and loaded.client_ids == population.client_ids
  assert loaded.num_classes == population.num_classes and list(loaded.truths) == list(population.truths)
  for name in ('train', 'validation', 'test'):
    for field in ('x', 'y', 'offsets'):
      ours, theirs = (getattr(getattr(p, name), field) for p in (population, loaded))
      assert ours.dtype == theirs.dtype
      np.testing.assert_array_equal(ours, theirs)
  assert os.listdir(path.parent) == ['population.npz']


def test_any_altered_byte_of_the_data_is_noticed(tmp_path, population):
  path = tmp_path / 'population.npz'
  save_population(population, path)
  content = path.read_bytes()
  for position in np.linspace(200, len(content) - 30, 25).astype(int):
    altered = bytearray(content)
    altered[position] ^= 0x10
    path.write_bytes(bytes(altered))
    try:
      assert load_population(path).digest == population.digest
    except EnvironmentFault as error:
      assert '\n' not in str(error) and str(path) in str(error)


def test_data_that_does_not_have_its_digest_is_refused(tmp_path, population):
  path = tmp_path / 'population.npz'
  save_population(population, path)
  with np.load(path) as archive:
    arrays = dict(archive)
  arrays['test_y'] = (arrays['test_y'] + 1) % 10
  np.savez(path, **arrays)
  with pytest.raises(EnvironmentFault, match='checksum'):
    load_population(path)


@pytest.mark.parametrize('share', [0.0, 0.3, 0.999])
def test_a_cut_off_file_is_refused(tmp_path, population, share):
  path = tmp_path / 'population.npz'
  save_population(population, path)
  content = path.read_bytes()
  path.write_bytes(content[: int(share * len(content))])
  with pytest.raises(EnvironmentFault, match='damaged'):
    load_population(path)


def test_a_missing_file_is_named(tmp_path):
  with pytest.raises(EnvironmentFault, match=r'none\.npz does not exist'):
    load_population(tmp_path / 'none.npz')


def test_an_interrupted_write_keeps_what_was_there(tmp_path, population, monkeypatch):
  path = tmp_path / 'population.npz'
  save_population(population, path)
  before = path.read_bytes()

  def full(file, **_):
    file.write(b'half')
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(files.np, 'savez', full)
  with pytest.raises(EnvironmentFault, match='No space left on device'):
    save_population(population, path)
  assert path.read_bytes() == before
  assert os.listdir(tmp_path) == ['population.npz']


def test_a_place_that_cannot_be_written_is_named(tmp_path, population):
  (tmp_path / 'file').write_text('')
  with pytest.raises(EnvironmentFault, match='cannot write'):
    save_population(population, tmp_path / 'file' / 'population.npz')
