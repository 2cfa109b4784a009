"""Populations on disk; damage of any byte is a matter of tests/storage/test_files.py."""

import dataclasses
import os

import numpy as np
import pytest

from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.data.populate import build_population
from tff_cluster.data.saved import load_population, save_population
from tff_cluster.experiment.config import DataConfig


@pytest.mark.parametrize('malicious', [0.0, 0.3])
def test_what_is_loaded_is_what_was_saved(tmp_path, malicious):
  attack = 'nan' if malicious else 'sign_flip'
  config = DataConfig(num_clients=8, rows_per_client=20, malicious_clients=malicious, attack=attack)
  population = build_population(config)
  path = tmp_path / 'new folder' / 'population.npz'
  save_population(population, path)
  loaded = load_population(path)
  assert loaded.digest == population.digest and loaded.client_digests == population.client_digests
  assert loaded.name == population.name and loaded.client_ids == population.client_ids
  assert loaded.num_classes == population.num_classes and list(loaded.truths) == list(population.truths)
  np.testing.assert_array_equal(loaded.update_scales, population.update_scales)
  assert (loaded.update_scales is None) == (malicious == 0.0)
  for name in ('train', 'validation', 'test'):
    for field in ('x', 'y', 'offsets'):
      ours, theirs = (getattr(getattr(p, name), field) for p in (population, loaded))
      assert ours.dtype == theirs.dtype
      np.testing.assert_array_equal(ours, theirs)
  assert os.listdir(path.parent) == ['population.npz']


def test_test_rows_that_are_shared_are_saved_once(tmp_path):
  config = DataConfig(num_clients=8, rows_per_client=20, test_rows='all')
  population = build_population(config)
  save_population(population, tmp_path / 'shared.npz')
  loaded = load_population(tmp_path / 'shared.npz')
  assert loaded.digest == population.digest and loaded.client_digests == population.client_digests
  assert loaded.test.x is loaded.global_test_x
  save_population(build_population(dataclasses.replace(config, test_rows='split')), tmp_path / 'split.npz')
  assert os.path.getsize(tmp_path / 'shared.npz') < os.path.getsize(tmp_path / 'split.npz')


def test_a_missing_file_is_named(tmp_path):
  with pytest.raises(EnvironmentFault, match=r'none\.npz does not exist'):
    load_population(tmp_path / 'none.npz')
