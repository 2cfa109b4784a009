"""ClusterAssignment: canonical order, views, and refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_up.clients import together
from tests.made_up.refusals import refused
from tff_cluster.clustering.assignment import ClusterAssignment

IDS = ('w3', 'w1', 'w2')


@st.composite
def members_and_ids(draw):
  size = draw(st.integers(1, 6))
  ids = tuple(f'c{k}' for k in draw(st.permutations(range(size))))
  extra = draw(st.lists(st.frozensets(st.sampled_from(ids), min_size=1), max_size=5, unique=True))
  return [sorted(members) for members in extra if len(members) < size] + [list(ids)], ids


@settings(max_examples=50)
@given(members_and_ids(), st.randoms(use_true_random=False))
def test_equal_clusterings_are_equal_arrays(case, random):
  clusters, ids = case
  shuffled = [random.sample(members, len(members)) for members in random.sample(clusters, len(clusters))]
  first = ClusterAssignment.from_clusters(clusters, ids)
  other = ClusterAssignment.from_clusters(shuffled, ids)
  np.testing.assert_array_equal(other.membership, first.membership)
  assert other.client_ids == ids
  assert sorted(map(sorted, first.clusters)) == sorted(map(sorted, clusters))


@settings(max_examples=50)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_labels_round_trip(labels):
  assignment = ClusterAssignment.from_labels(labels, [str(k) for k in range(len(labels))])
  np.testing.assert_array_equal(together(assignment.labels), together(labels))
  assert assignment.labels[0] == 0 and not assignment.is_overlapping
  assert assignment.num_clusters == len(set(labels))


def test_overlap():
  assignment = ClusterAssignment.from_clusters([['w2', 'w1'], ['w3', 'w1']], IDS)
  np.testing.assert_array_equal(assignment.membership, [[1, 1, 0], [0, 1, 1]])
  assert assignment.clusters == [['w3', 'w1'], ['w1', 'w2']]
  assert assignment.members(1).tolist() == [1, 2]
  assert (assignment.num_clusters, assignment.num_clients, assignment.is_overlapping) == (2, 3, True)
  with pytest.raises(ValueError, match='overlapping'):
    _ = assignment.labels


def test_refusals():
  refused(
    ClusterAssignment,
    (np.ones((1, 2)), IDS, r'must be \[clusters, 3 clients\], found shape \(1, 2\)'),
    (np.array([[1, 0.5, 1]]), IDS, 'zeros and ones only'),
    (np.array([[1, 1, 1], [0, 0, 0]]), IDS, 'cluster 1 has no member'),
    (np.array([[1, 0, 1]]), IDS, 'client w1 is in no cluster'),
    (np.ones((1, 3)), ('a', 'b', 'a'), 'must be distinct'),
    (np.array([[1, 1, 0], [0, 0, 1], [1, 1, 0]]), IDS, 'same members'),
  )
  unknown = "cluster 1 names client 'w9', which is not among the 3 clients"
  refused(ClusterAssignment.from_clusters, ([['w1', 'w2', 'w3'], ['w9']], IDS, unknown))


def test_equal_clusters_do_not_overlap():
  ids = ('a', 'b', 'c', 'd')
  twice = ClusterAssignment.from_clusters([ids, ids], ids, np.full((2, 4), 0.5))
  assert not twice.is_overlapping and twice.labels.tolist() == [0] * 4
  pairs, halves = [['a', 'b'], ['c', 'd']] * 2, [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]] * 2
  assert not ClusterAssignment.from_clusters(pairs, ids, halves).is_overlapping
  assert ClusterAssignment.from_clusters([['a', 'b', 'c'], ['b', 'c', 'd']], ids).is_overlapping
  # All clients are in both, and have another share of each.
  shares = [[0.5, 0.2, 0.2, 0.2], [0.5, 0.8, 0.8, 0.8]]
  assert ClusterAssignment.from_clusters([ids, ids], ids, shares).is_overlapping
