"""What rounds that alternated came to, against plain loops and by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tff_cluster.clustering import membership_history as history

# Shares of a client after a round: one model, several equal ones, one that has most, or nothing known.
_COLUMNS = ([1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [0, 0.5, 0.5], [0.2, 0.7, 0.1], [0, 0, 0])


@st.composite
def rounds(draw):
  """float64[rounds, 3, clients]; of every client something is known in the end."""
  clients, length = draw(st.integers(1, 5)), draw(st.integers(1, 6))
  column = st.sampled_from(_COLUMNS)
  every = [[draw(column) for _ in range(clients)] for _ in range(length)]
  every[-1] = [draw(st.sampled_from(_COLUMNS[:-1])) for _ in range(clients)]
  return np.array(every).transpose(0, 2, 1)


def models_of(column):
  """The models in which a client has its largest share, as a set."""
  return {k for k, share in enumerate(column) if share > 0 and share == max(column)}


@given(rounds(), st.integers(0, 9))
def test_rounds_are_summed_up_as_loops_do_it(shares, first):
  length, count, clients = shares.shape
  ways = [[models_of(shares[r, :, k]) for k in range(clients)] for r in range(length)]
  since = np.arange(clients) % length + first + 1
  found = history.summarise(shares, since, 'random', first, [0])
  for r, of_round in enumerate(history.own_models(shares)):
    assert [set(np.flatnonzero(column)) for column in of_round.T] == ways[r]
  moved = [
    sum(bool(a) and a != b for a, b in zip(before, after, strict=True))
    for before, after in itertools.pairwise(ways)
  ]
  assert found.changed == [0, *moved]
  taken = set().union(*ways[-1])
  assert found.empty_models == count - len(taken)
  assert found.all_in_one == (len({tuple(column) for column in shares[-1].T}) == 1)
  assert found.collapsed == (len(taken) < count or found.all_in_one)
  ages = [first + length - each for each in since.tolist()]
  assert (found.oldest, found.mean_age) == (max(ages), pytest.approx(np.mean(ages)))
  assert (found.first_round, found.rounds, found.last_round) == (first, length, first + length)


@pytest.mark.parametrize(
  ('last', 'empty', 'all_in_one'),
  [
    ([[1, 1, 1]], 0, False),  # One model has nobody to lose clients to.
    ([[1, 1, 1], [0, 0, 0]], 1, True),
    ([[1, 1, 0], [0, 0, 1], [0, 0, 0]], 1, False),
    # Nobody's largest share is in the second one.
    ([[0.6, 0.7, 0.8], [0.4, 0.3, 0.2]], 1, False),
    # Two models of which all clients have as much are one.
    ([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [0, 0, 0]], 1, True),
  ],
)
def test_two_ways_to_collapse(last, empty, all_in_one):
  found = history.summarise(np.array([last], float), np.ones(3, int), 'warm', 0, [0])
  assert (found.empty_models, found.all_in_one, found.changed) == (empty, all_in_one, [0])
  assert (found.oldest, found.mean_age) == (0, 0.0)


def test_models_are_called_by_the_clusters_that_they_are_at_the_end():
  found = history.summarise(np.ones((1, 4, 2)), np.ones(2, int), 'random', 0, [2, 0])
  assert found.names == ['cluster 1', 'model 1', 'cluster 0', 'model 3']
