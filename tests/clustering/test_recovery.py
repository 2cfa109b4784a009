"""Recovery scores: by hand, against scikit-learn, and against a plain double loop."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from tests.made_up.clients import memberships
from tff_cluster.base.errors import InputError
from tff_cluster.clustering import recovery
from tff_cluster.clustering.assignment import ClusterAssignment


def omega_by_loops(a, b):
  """Collins and Dent 1988, pair by pair, with exact shares."""
  pairs = list(itertools.combinations(range(a.shape[1]), 2))
  shared = [[int(sum(m[:, i] * m[:, j])) for i, j in pairs] for m in (a, b)]
  observed = sum(x == y for x, y in zip(*shared, strict=True)) / len(pairs)
  levels = range(max(len(a), len(b)) + 1)
  expected = sum(shared[0].count(j) * shared[1].count(j) for j in levels) / len(pairs) ** 2
  return 1.0 if expected == 1.0 else (observed - expected) / (1.0 - expected)


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 7).flatmap(lambda n: st.tuples(memberships(n), memberships(n))))
def test_omega_equals_the_definition(pair):
  assert recovery.omega_index(*pair) == pytest.approx(omega_by_loops(*pair), abs=1e-12)
  assert recovery.omega_index(*pair[::-1]) == recovery.omega_index(*pair)


@pytest.mark.parametrize(
  ('a', 'b', 'omega'),
  [
    # Clients 1 2 3. A: {1,2},{2,3}; B: {1,2},{1,2,3}. Shared clusters of (12, 13, 23): A 1 0 1, B 2 1 1.
    # Observed: one of three pairs agrees. By chance: level 1 is 2 * 2 pairs of 9; levels 0 and 2 have none in B or
    # A. (1/3 - 4/9) / (1 - 4/9) = -1/5.
    ([[1, 1, 0], [0, 1, 1]], [[1, 1, 0], [1, 1, 1]], -0.2),
    # Clients 1 2 3 4. A: {1,2,3},{3,4}; B: {1,2},{3,4}. Pairs 12 13 14 23 24 34: A 1 1 0 1 0 1, B 1 0 0 0 0 1.
    # Observed 4/6; by chance (level 0: 2 * 4, level 1: 4 * 2) 16/36. (24/36 - 16/36) / (20/36) = 2/5.
    ([[1, 1, 1, 0], [0, 0, 1, 1]], [[1, 1, 0, 0], [0, 0, 1, 1]], 0.4),
    # One client; all together in both; all together against all alone.
    ([[1]], [[1], [1]], 1.0),
    ([[1, 1, 1]], [[1, 1, 1]], 1.0),
    ([[1, 1, 1]], np.eye(3), 0.0),
  ],
)
def test_omega_by_hand_and_at_the_edges(a, b, omega):
  assert recovery.omega_index(np.array(a), np.array(b)) == pytest.approx(omega)


labellings = st.integers(2, 12).flatmap(
  lambda n: st.tuples(*(st.lists(st.integers(0, 3), min_size=n, max_size=n) for _ in range(2)))
)


@settings(max_examples=150, deadline=None)
@given(labellings)
def test_omega_of_disjoint_clusterings_is_the_adjusted_rand_index(labels):
  a, b = (np.arange(4)[:, None] == np.array(side) for side in labels)
  assert recovery.omega_index(a, b) == pytest.approx(metrics.adjusted_rand_score(*labels), abs=1e-12)


def test_recovery_of_disjoint_groups():
  truth = np.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]])
  assignment = ClusterAssignment.from_labels([7, 7, 2, 2, 2, 2], tuple('abcdef'))
  found = recovery.recovery(assignment, truth)
  labels = [0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1]
  assert found.ari == pytest.approx(metrics.adjusted_rand_score(*labels))
  assert found.nmi == pytest.approx(metrics.normalized_mutual_info_score(*labels))
  assert found.omega == pytest.approx(found.ari)
  perfect = ClusterAssignment.from_labels([4, 4, 4, 1, 1, 1], tuple('abcdef'))
  assert vars(recovery.recovery(perfect, truth)) == pytest.approx(dict.fromkeys(recovery.SCORES, 1.0))


def test_shares_of_a_mixture_count_as_membership():
  truth = np.array([[1.0, 0.7, 0.0, 0.0], [0.0, 0.3, 1.0, 1.0]])
  exact = ClusterAssignment.from_clusters(['ab', 'bcd'], tuple('abcd'))
  assert recovery.recovery(exact, truth) == recovery.Recovery(None, None, 1.0, 1.0, 1.0, 1.0, 1.0)
  disjoint = ClusterAssignment.from_clusters(['ab', 'cd'], tuple('abcd'))
  found = recovery.recovery(disjoint, truth)
  assert found.ari is None
  # Pairs ab ac ad bc bd cd: truth 1 0 0 1 1 1, found 1 0 0 0 0 1: as in the second example by hand.
  assert found.omega == pytest.approx(0.4)


def test_overlapping_result_against_disjoint_truth():
  overlapping = ClusterAssignment.from_clusters(['ab', 'bc'], tuple('abc'))
  found = recovery.recovery(overlapping, np.array([[1, 1, 0], [0, 0, 1]]))
  assert (found.ari, found.nmi) == (None, None)
  # BCubed of a, b, c: precision (1 + 1) / 2, (1 + 1/2 + 0) / 3 and (0 + 1) / 2; everybody has the whole of its group.
  expected = {'bcubed_precision': 2 / 3, 'bcubed_recall': 1.0, 'bcubed_f': 0.8}
  assert {name: getattr(found, name) for name in expected} == pytest.approx(expected)
  # ONMI: all four clusters have the entropy H = log2 3 - 2/3. {a, b} is found, which leaves 0 on both sides. {b, c} and {c}
  # share one client, one is in {b, c} only and one in neither: together log2 3, so that log2 3 - H = 2/3 is left of each.
  entropy = np.log2(3) - 2 / 3
  assert found.onmi == pytest.approx((2 * entropy - 2 / 3) / (2 * entropy))


def test_wrong_truths():
  assignment = ClusterAssignment.from_labels([0, 1], ('a', 'b'))
  with pytest.raises(InputError, match=r'truth must be \[groups, 2 clients\], found shape \(1, 3\)'):
    recovery.recovery(assignment, np.ones((1, 3)))
  with pytest.raises(InputError, match='gives client b no group'):
    recovery.recovery(assignment, np.array([[1.0, 0.0]]))
