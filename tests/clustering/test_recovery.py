"""Scores of recovery: by hand, against scikit-learn, and against their definitions in plain loops."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from tests.made_up.clients import as_sets, memberships
from tests.made_up.refusals import refused
from tff_cluster.clustering import overlap_scores, recovery
from tff_cluster.clustering.assignment import ClusterAssignment


def omega_by_loops(a, b):
  """Collins and Dent 1988, pair by pair, with exact shares."""
  pairs = list(itertools.combinations(range(a.shape[1]), 2))
  shared = [[int(sum(m[:, i] * m[:, j])) for i, j in pairs] for m in (a, b)]
  observed = sum(x == y for x, y in zip(*shared, strict=True)) / len(pairs)
  levels = range(max(len(a), len(b)) + 1)
  expected = sum(shared[0].count(j) * shared[1].count(j) for j in levels) / len(pairs) ** 2
  return 1.0 if expected == 1.0 else (observed - expected) / (1.0 - expected)


@settings(max_examples=80)
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


@settings(max_examples=80)
@given(labellings)
def test_omega_of_disjoint_clusterings_is_the_adjusted_rand_index(labels):
  a, b = (np.arange(4)[:, None] == np.array(side) for side in labels)
  expected = metrics.adjusted_rand_score(*labels)
  assert recovery.omega_index(a, b) == pytest.approx(expected, abs=1e-12)
  # Rows of the truth may be empty.
  assignment = ClusterAssignment.from_labels(labels[0], tuple(map(str, range(len(labels[0])))))
  found = recovery.recovery(assignment, b.astype(float))
  assert (found.ari, found.omega) == pytest.approx((expected, expected), abs=1e-12)
  assert found.nmi == pytest.approx(metrics.normalized_mutual_info_score(*labels), abs=1e-12)


def test_clusters_or_groups_that_overlap():
  # Shares of a mixture count as membership.
  truth = np.array([[1.0, 0.7, 0.0, 0.0], [0.0, 0.3, 1.0, 1.0]])
  exact = ClusterAssignment.from_clusters(['ab', 'bcd'], tuple('abcd'))
  # Client b has as much of either cluster: half of what differs is (|0.5 - 0.7| + |0.5 - 0.3|) / 2, of one client in four.
  found = recovery.recovery(exact, truth)
  assert found == recovery.Recovery(None, None, 1.0, 1.0, 1.0, 1.0, 1.0, pytest.approx(0.05))
  known = ClusterAssignment(exact.membership, exact.client_ids, truth)
  assert recovery.recovery(known, truth) == dataclasses.replace(found, share_error=0.0)
  disjoint = recovery.recovery(ClusterAssignment.from_clusters(['ab', 'cd'], tuple('abcd')), truth)
  # Pairs ab ac ad bc bd cd: truth 1 0 0 1 1 1, found 1 0 0 0 0 1: as in the second example by hand.
  assert disjoint.ari is None and disjoint.omega == pytest.approx(0.4)
  overlapping = ClusterAssignment.from_clusters(['ab', 'bc'], tuple('abc'))
  found = recovery.recovery(overlapping, np.array([[1, 1, 0], [0, 0, 1]]))
  assert (found.ari, found.nmi) == (None, None)
  # BCubed of a, b, c: precision (1 + 1) / 2, (1 + 1/2 + 0) / 3 and (0 + 1) / 2; everybody has the whole of its group.
  assert (found.bcubed_precision, found.bcubed_recall, found.bcubed_f) == pytest.approx((2 / 3, 1.0, 0.8))
  # ONMI: all four clusters have the entropy H = log2 3 - 2/3. {a, b} is found, which leaves 0 on both sides. {b, c} and {c}
  # share one client, one is in {b, c} only and one in neither: together log2 3, so that log2 3 - H = 2/3 is left of each.
  entropy = np.log2(3) - 2 / 3
  assert found.onmi == pytest.approx((2 * entropy - 2 / 3) / (2 * entropy))


def test_what_sums_recovery_up():
  disjoint, overlapping = (recovery.Recovery(ari, ari, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25) for ari in (0.75, None))
  truth, mixed = np.eye(2), np.array([[0.1, 0.9], [0.9, 0.1]])
  assert recovery.summed_up([disjoint], [truth]) == ('ARI', [0.75])
  assert recovery.summed_up([disjoint, overlapping], [truth, truth]) == ('Omega', [0.5, 0.5])
  # Who is in every group is in the right ones, whatever the shares.
  assert recovery.summed_up([overlapping], [mixed]) == ('share match', [0.75])
  # So is who is in every cluster.
  assert recovery.summed_up([overlapping], [truth], members_tell=False) == ('share match', [0.75])
  assert (
    recovery.all_in_all(mixed) and not recovery.all_in_all(truth) and not recovery.all_in_all(np.ones((1, 2)))
  )


def test_wrong_truths():
  assignment = ClusterAssignment.from_labels([0, 1], ('a', 'b'))
  refused(
    recovery.recovery,
    (assignment, np.ones((1, 3)), r'truth must be \[groups, 2 clients\], found shape \(1, 3\)'),
    (assignment, np.array([[1.0, 0.0]]), 'gives client b no group'),
  )


# Shares of clients in up to four clusters, in sixteenths, which floats hold exactly.
columns = st.lists(st.integers(0, 16), min_size=3, max_size=3).map(
  lambda cuts: np.diff([0, *sorted(cuts), 16]) / 16
)


def shares(clients, rows):
  """A strategy of float[rows, clients], columns sum to 1; rows may be empty."""
  return st.lists(columns, min_size=clients, max_size=clients).map(
    lambda found: np.stack([np.append(c[: rows - 1], 1 - c[: rows - 1].sum()) for c in found], axis=1)
  )


some_shares = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4)).flatmap(
  lambda sizes: st.tuples(shares(sizes[0], sizes[1]), shares(sizes[0], sizes[2]))
)


def share_error_by_brute_force(estimated, planted):
  """The least mean of half the L1 distance over all ways to give clusters to groups, empty ones added."""
  size = max(len(estimated), len(planted))
  a, b = (np.vstack([side, np.zeros((size - len(side), side.shape[1]))]) for side in (estimated, planted))
  ways = itertools.permutations(range(size))
  return min(float(np.mean(np.abs(a - b[list(way)]).sum(axis=0) / 2)) for way in ways)


@settings(max_examples=150)
@given(some_shares, st.randoms(use_true_random=False))
def test_the_share_error_equals_brute_force_and_is_0_for_equal_shares_only(pair, random):
  estimated, planted = pair
  expected = share_error_by_brute_force(estimated, planted)
  found = recovery.share_error(estimated, planted)
  assert found == pytest.approx(expected, abs=1e-12) and 0.0 <= found < 1.0
  assert recovery.share_error(planted, estimated) == pytest.approx(expected, abs=1e-12)
  order = random.sample(range(len(planted)), len(planted))
  assert recovery.share_error(estimated, planted[order]) == pytest.approx(expected, abs=1e-12)
  assert recovery.share_error(planted[order], planted) == 0.0
  # Empty clusters and groups change nothing: where the others are equal there is an order in which all are.
  assert (found == 0.0) == (expected == 0.0)


@settings(max_examples=50)
@given(labellings)
def test_of_disjoint_clusters_it_is_the_share_of_clients_outside_their_groups_cluster(labels):
  found, truth = (ClusterAssignment.from_labels(side, tuple(map(str, range(len(side))))) for side in labels)
  scores = recovery.recovery(found, truth.membership)
  table = metrics.cluster.contingency_matrix(*labels)
  table = np.pad(table, [(0, 4 - size) for size in table.shape])
  most = max(sum(table[k, way[k]] for k in range(4)) for way in itertools.permutations(range(4)))
  assert scores.share_error == pytest.approx(1 - most / len(labels[0]))


@pytest.mark.parametrize(
  ('estimated', 'planted', 'error'),
  [
    # Everybody in one cluster, three of four clients in one group: the fourth is wrong.
    ([[1, 1, 1, 1]], [[1, 1, 1, 0], [0, 0, 0, 1]], 0.25),
    # 10:90 and 90:10, of which a disjoint clustering misses a tenth and equal shares miss 0.4.
    ([[1, 0], [0, 1]], [[0.1, 0.9], [0.9, 0.1]], 0.1),
    ([[0.5, 0.5], [0.5, 0.5]], [[0.1, 0.9], [0.9, 0.1]], 0.4),
    # The third cluster has no group: (0 + 0.1 + 0.1) / 2 for the first client, 0.3 for the second.
    ([[0.6, 0.3], [0.3, 0.4], [0.1, 0.3]], [[0.6, 0.3], [0.4, 0.7]], 0.2),
  ],
)
def test_share_errors_by_hand(estimated, planted, error):
  assert recovery.share_error(np.array(estimated), np.array(planted)) == pytest.approx(error)


def test_clusters_with_the_same_shares_count_as_one_in_every_score():
  # Two models for each of two planted groups: FLSC where a client joins two of four.
  twice = np.repeat(np.eye(2), 4, axis=1).repeat(2, axis=0)
  clients = tuple(map(str, range(8)))
  found = recovery.recovery(ClusterAssignment(twice, clients, twice / 2), np.repeat(np.eye(2), 4, axis=1))
  assert found == recovery.recovery(ClusterAssignment(twice[::2], clients), twice[::2])
  assert dataclasses.astuple(found) == (1.0,) * 7 + (0.0,)


def test_groups_that_are_told_without_shares_count_with_as_much_of_each():
  # Clients of two digits each, as the pathological partition plants them.
  digits = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
  exact = ClusterAssignment(digits, tuple('abc'))
  assert recovery.recovery(exact, digits).share_error == 0.0
  alone = ClusterAssignment.from_clusters(['abc'], tuple('abc'))
  assert recovery.recovery(alone, digits).share_error == pytest.approx(0.5)


def whole(cover):
  """Returns the cover with a last cluster of those who are in none."""
  return np.vstack([cover, ~cover.any(axis=0)]).astype(float)


any_covers = st.integers(1, 7).flatmap(lambda n: st.tuples(memberships(n), memberships(n)))
whole_covers = any_covers.map(lambda pair: tuple(whole(cover) for cover in pair))


def cover(clients, *clusters):
  return np.array([[client in cluster for client in range(1, clients + 1)] for cluster in clusters], float)


def nmi_by_definition(a, b):
  """McDaid, Greene and Hurley 2011 over sets of sets, pair by pair; nothing is left out."""
  n = a.shape[1]

  def h(count):
    return -count / n * math.log2(count / n) if count else 0.0

  def entropy(x):
    return scipy.stats.entropy([len(x), n - len(x)], base=2)

  def left(x, cover):
    best = entropy(x)
    for y in cover:
      p11, p10, p01 = len(x & y), len(x - y), len(y - x)
      p00 = n - p11 - p10 - p01
      if h(p11) + h(p00) >= h(p10) + h(p01) - 1e-9:
        best = min(best, scipy.stats.entropy([p11, p10, p01, p00], base=2) - entropy(y))
    return best

  a, b = as_sets(a), as_sets(b)
  of_a, of_b = sum(map(entropy, a)), sum(map(entropy, b))
  told = of_a - sum(left(x, b) for x in a) + of_b - sum(left(y, a) for y in b)
  return told / 2 / max(of_a, of_b) if max(of_a, of_b) else 1.0


@settings(max_examples=100)
@given(any_covers)
def test_nmi_equals_the_definition(pair):
  found = overlap_scores.overlapping_nmi(*pair)
  assert found == pytest.approx(nmi_by_definition(*pair), abs=1e-12)
  # To the bit, whichever comes first, and where they are equal.
  assert overlap_scores.overlapping_nmi(*pair[::-1]) == found
  assert overlap_scores.overlapping_nmi(pair[0], pair[0][::-1]) == 1.0


def test_nmi_by_hand():
  # Each cluster of half the clients has 1 bit. {1,2} is found; {1,3} is independent of it, so that 1 bit is left.
  # (1 - 0 + 2 - 1) / 2 = 1 of max(1, 2). (The normalisation of Lancichinetti et al. would give 3/4.)
  assert overlap_scores.overlapping_nmi(cover(4, {1, 2}), cover(4, {1, 2}, {1, 3})) == pytest.approx(0.5)
  # {1,2,3} and {4} have H = 2 - 3/4 log2 3 each, {1,2} and {3,4} 1. {1,2,3} with {1,2}, and {4} with {3,4}: shares 1/2, 1/4
  # and 1/4, together 3/2 bits. The other pairs have h(P11) + h(P00) = 1/2 against 1 and tell nothing. Left: 3/2 - 1 of each
  # on one side, 3/2 - H on the other. (2 H - 1 + 2 - 3 + 2 H) / 2 = 2 H - 1 of 2.
  entropy = 2 - 0.75 * math.log2(3)
  found = overlap_scores.overlapping_nmi(cover(4, {1, 2, 3}, {4}), cover(4, {1, 2}, {3, 4}))
  assert found == pytest.approx(entropy - 0.5)


# Clients in both clusters, in the first only, in the second only, in neither. First 24 and 1 of 32 clients, none in common,
# which tell of each other: h(7/32) = 0.480 bit against h(3/4) + h(1/32) = 0.468. Then two ties: h(1/2) + h(1/8) is
# h(1/4) + h(1/8).
@pytest.mark.parametrize('counts', [(0, 24, 1, 7), (4, 1, 2, 1), (4, 2, 1, 1)])
def test_pairs_at_the_edge_of_telling(counts):
  first, second = (np.repeat(member, counts) for member in ([1, 1, 0, 0], [1, 0, 1, 0]))
  expected = metrics.normalized_mutual_info_score(first, second, average_method='max')
  assert expected > 0.01
  assert overlap_scores.overlapping_nmi(first[None], second[None]) == pytest.approx(expected)


def bcubed_by_loops(found, truth):
  """Amigó et al. 2009, client by client, in fractions."""

  def side(one, other):
    means = []
    for e in range(one.shape[1]):
      shares = []
      for f in range(one.shape[1]):
        mine, theirs = (int((m[:, e] * m[:, f]).sum()) for m in (one, other))
        if mine:
          shares.append(Fraction(min(mine, theirs), mine))
      means.append(sum(shares) / len(shares))
    return sum(means) / len(means)

  precision, recall = side(found, truth), side(truth, found)
  return float(precision), float(recall), float(2 * precision * recall / (precision + recall))


def numbers(score):
  return score.precision, score.recall, score.f


@settings(max_examples=80)
@given(whole_covers)
def test_bcubed_equals_the_definition(pair):
  assert numbers(overlap_scores.bcubed(*pair)) == pytest.approx(bcubed_by_loops(*pair), abs=1e-12)


# The example of Amigó et al. 2009 for overlapping clustering: seven items, of which two are in two categories. The scores
# are worked out here.
CATEGORIES = cover(7, {1, 2, 3}, {1, 2, 4, 5}, {6, 7})


@pytest.mark.parametrize(
  ('clusters', 'precision', 'recall'),
  [
    ([{1, 2, 3}, {1, 2, 4, 5}, {6, 7}], 1, 1),
    # One cluster twice. Item 1 shares 3, 3, 2, 1, 1 clusters with items 1 to 5 and 2, 2, 1, 1, 1 categories: precision
    # (2/3 + 2/3 + 1/2 + 1 + 1) / 5 = 23/30, item 2 the same; item 3 has 1/2, the other four 1.
    ([{1, 2, 3}] * 2 + [{1, 2, 4, 5}, {6, 7}], Fraction(181, 210), 1),
    # Items 1 and 2 in one cluster only: recall (1/2 + 1/2 + 1 + 0 + 0) / 5 = 2/5 each; items 4 and 5 have 1/2 each.
    ([{1, 2, 3}, {4, 5}, {6, 7}], 1, Fraction(24, 35)),
    # The two categories in one cluster: precision 1, 1, 3/5, 4/5, 4/5, 1, 1; recall 4/5 for items 1 and 2.
    ([{1, 2, 3, 4, 5}, {6, 7}], Fraction(31, 35), Fraction(33, 35)),
  ],
)
def test_bcubed_by_hand(clusters, precision, recall):
  f = 2 * precision * recall / Fraction(precision + recall)
  expected = (float(precision), float(recall), float(f))
  found = overlap_scores.bcubed(cover(7, *clusters), CATEGORIES)
  assert numbers(found) == pytest.approx(expected)
  turned = overlap_scores.bcubed(CATEGORIES, cover(7, *clusters))
  assert (turned.precision, turned.recall) == (found.recall, found.precision)


def test_blocks_change_nothing(monkeypatch):
  rng = np.random.default_rng(0)
  a, b = (whole(rng.random((clusters, 40)) < 0.3) for clusters in (7, 5))
  nmi, bcubed = overlap_scores.overlapping_nmi(a, b), numbers(overlap_scores.bcubed(a, b))
  # Less than half of the clients, or of the clusters, at a time; then one.
  for cells in (100, 1):
    monkeypatch.setattr(overlap_scores, '_CELLS', cells)
    assert overlap_scores.overlapping_nmi(a, b) == nmi
    assert numbers(overlap_scores.bcubed(a, b)) == pytest.approx(bcubed, abs=1e-12)


def test_wrong_covers():
  for score in (overlap_scores.overlapping_nmi, overlap_scores.bcubed):
    refused(
      score,
      (np.ones((2, 3)), np.ones((2, 4)), r'over the same clients, found \(2, 3\) and \(2, 4\)$'),
      (np.ones(3), np.ones((1, 3)), r'found \(3,\) and \(1, 3\)$'),
      (np.ones((1, 0)), np.ones((1, 0)), r'at least one client, found none$'),
    )
  # BCubed needs everybody somewhere.
  refused(
    overlap_scores.bcubed,
    (cover(3, {1, 2}), np.ones((1, 3)), r'^client number 2 is in no cluster of found$'),
    (np.ones((1, 3)), cover(3, {2, 3}), r'^client number 0 is in no cluster of truth$'),
  )
