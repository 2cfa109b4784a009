"""What rounds that alternated came to, against plain loops and by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_up import in_json
from tff_cluster.clustering import membership_history as history
from tff_cluster.experiment.result_parts import Clustering

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
  length, _, clients = shares.shape
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
  assert found.rounds_of_changes == tuple(first + 2 + place for place, count in enumerate(moved) if count)
  ages = [first + length - each for each in since.tolist()]
  assert (found.oldest, found.mean_age) == (max(ages), pytest.approx(np.mean(ages)))
  assert (found.first_round, found.rounds, found.last_round) == (first, length, first + length)


@pytest.mark.parametrize(
  ('last', 'told', 'start', 'empty', 'all_in_one'),
  [
    ([[1, 1, 1]], 1, 'random', 0, False),  # One model has nobody to lose clients to.
    ([[1, 1, 1], [0, 0, 0]], 2, 'random', 1, True),
    ([[1, 1, 0], [0, 0, 1], [0, 0, 0]], 3, 'random', 1, False),
    # A model that is nobody's largest one is not without clients; one of which nobody has more than a hundredth is.
    ([[0.6, 0.7, 0.8], [0.4, 0.3, 0.2]], 2, 'random', 0, False),
    ([[0.6, 0.7, 0.995], [0.392, 0.295, 0.0], [0.008, 0.005, 0.005]], 3, 'random', 1, False),
    # Two models of which all clients have as much are one.
    ([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [0, 0, 0]], 3, 'random', 1, True),
    # A method that chooses how many models it takes leaves none without clients; a given start counts as told.
    ([[1, 1, 0], [0, 0, 1], [0, 0, 0]], None, 'random', 0, False),
    ([[1, 1, 0], [0, 0, 1], [0, 0, 0]], None, 'clustering', 1, False),
    ([[1, 1, 0], [0, 0, 1], [0, 0, 0]], None, 'clustering, chooses', 0, False),
  ],
)
def test_two_ways_to_collapse(last, told, start, empty, all_in_one):
  shares = np.array(last, float)
  kept = shares[shares.any(axis=1)]
  members = [[f'c{k}' for k in np.flatnonzero(row)] for row in kept]
  clustering = in_json.record(
    Clustering,
    {
      'clusters': members, 'num_clusters': len(members), 'told': told,
      'shares': None if np.isin(kept, (0, 1)).all() else kept.tolist(),
      'alternation': {'num_models': len(shares), 'start': start.partition(',')[0]},
      'parameters': {'choose_number': 'chooses' in start},
    },
  )  # fmt: skip
  found = clustering.collapse
  assert (found.num_models, found.empty_models, found.all_in_one) == (len(shares), empty, all_in_one)
  assert found.happened == (empty > 0 or all_in_one)


def test_models_are_called_by_the_clusters_that_they_are_at_the_end():
  found = history.summarise(np.ones((1, 4, 2)), np.ones(2, int), 'random', 0, [2, 0])
  assert found.names == ['cluster 1', 'model 1', 'cluster 0', 'model 3']
