"""What one message to the worker cannot hold is refused before training."""

import numpy as np
import pytest

from tff_cluster.base.errors import InputError
from tff_cluster.data.population import Population, Split
from tff_cluster.federated import message_sizes

MEGABYTES = 100  # Of a row, which takes no memory here.


def population_of(*counts):
  def split(counts):
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    x = np.broadcast_to(np.float32(0), (offsets[-1], MEGABYTES * 250_000))
    return Split(x, np.zeros(offsets[-1], np.int32), offsets)

  few = split([1] * len(counts))
  names = tuple(f'c{k}' for k in range(len(counts)))
  return Population('made up', names, split(counts), few, few, few.x, few.y, 1)


def test_a_client_may_fill_the_message():
  message_sizes.check(population_of(17, 1), 0.5, 1)
  message_sizes.check(population_of(9, 8), 1.0, 1)


@pytest.mark.parametrize(
  ('counts', 'fraction', 'words'),
  [
    ((19, 1), 0.5, r'hold 1\.9 GB of training rows, TFF sends at most 1\.8 GB a round; .* rows_per_client'),
    ((4, 11, 1, 9), 0.5, r'hold 2\.0 GB .* a smaller .*cohort_fraction'),
  ],
)
def test_the_largest_cohort_must_fit(counts, fraction, words):
  with pytest.raises(InputError, match=words):
    message_sizes.check(population_of(*counts), fraction, 1)


def test_updates_that_an_aggregator_takes_at_once_must_fit():
  message_sizes.check_updates(270, 6_650_000)
  with pytest.raises(
    InputError, match=r'the updates of 320 clients at once, 2\.1 GB, .* a smaller .*cohort_fraction'
  ):
    message_sizes.check_updates(320, 6_650_000)


def test_orders_of_visits_travel_too():
  population = population_of(17, 1)
  message_sizes.check(population, 0.5, 1_000_000)
  for epochs in (3_000_000, 10**17, 10**18 - 1):
    with pytest.raises(InputError, match='GB of training rows'):
      message_sizes.check(population, 0.5, epochs)
  with pytest.raises(InputError, match=r'use a smaller .*local_epochs'):
    message_sizes.check(population, 0.5, 10**9)
