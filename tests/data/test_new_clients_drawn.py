"""Who takes no part: drawn from the data seed, with rows and groups as they would have, and left out of all others."""

import dataclasses

import numpy as np
import pytest

from tff_cluster.data import new_clients
from tff_cluster.data.populate import build_population
from tff_cluster.data.source import Source
from tff_cluster.experiment.config import DataConfig

DATA = DataConfig(num_clients=12, rows_per_client=20, partition='rotated', num_groups=3)


def drawn(**changes):
  config = dataclasses.replace(DATA, **changes)
  return new_clients.split(build_population(config), config)


@pytest.mark.parametrize('number', [1, 11])
def test_every_client_is_on_one_side_with_the_rows_that_it_has_anyway(number):
  everyone = build_population(DATA)
  taking_part, new = drawn(new_clients=number)
  assert (taking_part.num_clients, new.num_clients) == (12 - number, number)
  assert sorted(taking_part.client_ids + new.client_ids) == sorted(everyone.client_ids)
  digest_of = dict(zip(everyone.client_ids, everyone.client_digests, strict=True))
  group_of = dict(zip(everyone.client_ids, everyone.truths['group'].T.tolist(), strict=True))
  for side in (taking_part, new):
    assert list(side.client_ids) == sorted(side.client_ids)
    assert side.client_digests == tuple(digest_of[i] for i in side.client_ids)
    assert side.truths['group'].T.tolist() == [group_of[i] for i in side.client_ids]
    np.testing.assert_array_equal(side.global_test_x, everyone.global_test_x)
    np.testing.assert_array_equal(side.global_test_y, everyone.global_test_y)


def test_the_draw_follows_the_data_seed_and_without_new_clients_everybody_takes_part():
  ids = [drawn(new_clients=4, data_seed=seed)[1].client_ids for seed in (*range(4), 3)]
  assert ids[3] == ids[-1] and len(set(ids)) == 4
  taking_part, new = drawn()
  assert new is None and taking_part.digest == build_population(DATA).digest


def test_the_global_test_set_of_writers_has_no_row_of_a_new_client():
  rows = np.arange(300)
  x = np.repeat(rows[:, None], 4, axis=1).astype(np.float32)
  source = Source(
    'owned', x, (rows % 3).astype(np.int32), 3, None, None, np.repeat([f'w{k}' for k in range(10)], 30)
  )
  config = DataConfig(dataset='file', data_file='x', partition='by_writer', num_clients=10, new_clients=4)
  taking_part, new = new_clients.split(build_population(config, source=source), config)
  of_all = build_population(dataclasses.replace(config, new_clients=0), source=source)
  held = set(taking_part.test.x[:, 0].tolist())
  assert set(taking_part.global_test_x[:, 0].tolist()) == held and len(taking_part.global_test_y) == len(held)
  assert not held & set(new.test.x[:, 0].tolist())
  assert set(of_all.global_test_x[:, 0].tolist()) == held | set(new.test.x[:, 0].tolist())
