"""Malicious clients: who they are, what becomes of their rows, and that nobody else's move."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tff_cluster.data import malicious
from tff_cluster.data.populate import build_population
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment.config import DataConfig

SPLITS = ('train', 'validation', 'test')
CONFIG = DataConfig(num_clients=10, rows_per_client=20, partition='label_swapped', num_groups=2)


@pytest.fixture(scope='module')
def honest():
  return build_population(CONFIG)


def attacked(**changes):
  return build_population(dataclasses.replace(CONFIG, malicious_clients=0.3, **changes))


def bad(population):
  return population.truths['malicious'][1] > 0


def same_rows(one, other, k, splits=SPLITS):
  return all(
    np.array_equal(ours, theirs)
    for split in splits
    for ours, theirs in zip(getattr(one, split).client(k), getattr(other, split).client(k), strict=True)
  )


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 300), st.floats(0.001, 0.5), st.integers(0, 50))
def test_the_share_is_rounded_and_neither_none_nor_all(clients, share, seed):
  drawn = malicious.draw(DataConfig(malicious_clients=share, data_seed=seed), clients)
  assert drawn.shape == (clients,) and drawn.dtype == bool
  # At most half a client away from the share, but for the one that there always is.
  assert drawn.sum() == 1 or abs(drawn.sum() - share * clients) <= 0.5
  assert 1 <= drawn.sum() < clients


@pytest.mark.parametrize(
  ('attack', 'given_scale', 'scale'),
  [('sign_flip', None, -1.0), ('sign_flip', 3.0, -3.0), ('scaled', None, 10.0), ('nan', None, np.nan)],
)
def test_altered_updates_move_no_row(honest, attack, given_scale, scale):
  assert honest.update_scales is None and list(honest.truths) == ['group']
  population = attacked(attack=attack, attack_scale=given_scale)
  who = bad(population)
  assert who.sum() == 3 and list(population.truths) == ['group', 'malicious']
  np.testing.assert_array_equal(population.truths['malicious'].sum(axis=0), np.ones(10))
  np.testing.assert_array_equal(population.truths['group'], honest.truths['group'])
  assert population.update_scales.dtype == np.float32
  np.testing.assert_array_equal(population.update_scales, np.where(who, np.float32(scale), np.float32(1)))
  assert all(same_rows(population, honest, k) for k in range(10))
  moved = np.array(population.client_digests) != honest.client_digests
  assert moved.tolist() == who.tolist() and population.digest != honest.digest


def test_flipped_labels_are_those_of_malicious_clients_in_training_and_validation_only(honest):
  population = attacked(attack='label_flip')
  assert population.update_scales is None
  for k, malicious_one in enumerate(bad(population)):
    assert same_rows(population, honest, k, ('test',))
    if not malicious_one:
      assert same_rows(population, honest, k)
      assert population.client_digests[k] == honest.client_digests[k]
      continue
    for split in ('train', 'validation'):
      (x, y), (real_x, real_y) = (getattr(p, split).client(k) for p in (population, honest))
      np.testing.assert_array_equal(x, real_x)
      # Ten digits: 0 is called 9, 1 is called 8, ...
      np.testing.assert_array_equal(y, [[9, 8, 7, 6, 5, 4, 3, 2, 1, 0][label] for label in real_y])
      assert y.dtype == np.int32
  np.testing.assert_array_equal(population.global_test_y, honest.global_test_y)


def test_attacks_on_the_same_seed_have_the_same_clients():
  draws = [bad(attacked(attack=attack)) for attack in config_lib.ATTACKS]
  assert all(np.array_equal(draws[0], other) for other in draws)
  assert not np.array_equal(draws[0], bad(attacked(data_seed=1)))
