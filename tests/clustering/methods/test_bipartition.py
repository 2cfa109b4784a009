"""The split of eq. 6 against brute force over all halves, SciPy's single linkage, and splits made by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster import hierarchy

from tests.made_up.clients import scipy_distances
from tests.made_up.refusals import refused
from tff_cluster.clustering import halves as lib
from tff_cluster.clustering import methods
from tff_cluster.clustering.recursion import Trained
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig

# Parting 0 from 1 costs 0.9 and 2 from 3 costs 0.8; parting both pairs from each other 0.3 (clients 1 and 2). Every
# client has a similarity of at least 0.8 to the other of its pair, so the gap is 0.5.
PAIRS = np.array([[1.0, 0.9, 0.1, -0.2], [0.9, 1.0, 0.3, -0.5], [0.1, 0.3, 1.0, 0.8], [-0.2, -0.5, 0.8, 1.0]])


def symmetric(upper, clients, diagonal=1.0):
  """The matrix with these entries above the diagonal, row after row."""
  matrix = np.diag(np.broadcast_to(diagonal, clients).astype(float))
  rows, columns = np.triu_indices(clients, 1)
  matrix[rows, columns] = matrix[columns, rows] = upper
  return matrix


def optima(similarity):
  """The lowest highest similarity across, and bool[optima, clients], the halves that have it; client 0 is False."""
  numbers = np.arange(1, 2 ** (len(similarity) - 1))
  halves = (numbers[:, None] >> np.arange(-1, len(similarity) - 1)) & 1 > 0
  halves[:, 0] = False
  costs = np.array([highest_across(similarity, half) for half in halves])
  return costs.min(), halves[costs == costs.min()]


def highest_across(similarity, labels):
  return similarity[np.asarray(labels)[:, None] != np.asarray(labels)].max()


def gap_by_definition(similarity, labels):
  clients = range(len(labels))
  own = [[similarity[i, j] for j in clients if j != i and labels[j] == labels[i]] for i in clients]
  bests = [max(values) for values in own if values]
  return min(bests) - highest_across(similarity, labels) if bests else 0.0


def similarities_of(vectors):
  return lib.similarities(Signatures.numbered(vectors))


# Few values make ties, of which most such matrices have many; integers need not be cosines.
ELEMENTS = (st.floats(-1.0, 1.0), st.sampled_from([-1.0, -0.1, 0.3, 0.5]), st.integers(-3, 3))


@st.composite
def similarity_matrices(draw):
  # The diagonal does not matter.
  clients, elements = draw(st.integers(2, 8)), draw(st.sampled_from(ELEMENTS))
  pairs = clients * (clients - 1) // 2
  upper, diagonal = (draw(st.lists(elements, min_size=n, max_size=n)) for n in (pairs, clients))
  return symmetric(upper, clients, diagonal)


@settings(max_examples=150)
@given(similarity_matrices())
def test_equals_brute_force(similarity):
  labels, cross_similarity = lib.bipartition(similarity)
  assert labels.dtype == np.int64 and labels.shape == (len(similarity),)
  assert labels[0] == 0 and set(labels.tolist()) == {0, 1}
  lowest, halves = optima(similarity)
  assert cross_similarity == lowest == highest_across(similarity, labels)
  assert (halves == labels.astype(bool)).all(axis=1).sum() == 1
  gap = gap_by_definition(similarity, labels)
  assert gap >= 0.0
  for other in (labels, 1 - labels, np.where(labels, 40, -3)):
    assert lib.similarity_gap(similarity, other) == gap


@settings(max_examples=50)
@given(st.integers(2, 60), st.integers(0, 2**32 - 1))
def test_equals_the_last_merge_of_single_linkage(clients, seed):
  vectors = np.random.default_rng(seed).normal(size=(clients, 5))
  merges = hierarchy.linkage(vectors, 'single', 'cosine')
  expected = hierarchy.cut_tree(merges, n_clusters=2)[:, 0]
  labels, cross_similarity = lib.bipartition(similarities_of(vectors))
  np.testing.assert_array_equal(labels, expected != expected[0])
  assert cross_similarity == pytest.approx(1.0 - merges[-1, 2], abs=1e-12)


@pytest.mark.parametrize(
  ('similarity', 'labels', 'cross_similarity', 'gap'),
  [
    (PAIRS, [0, 0, 1, 1], 0.3, 0.5),
    # A chain is cut at its weakest link, 0.7, where complete linkage would make pairs.
    (symmetric([0.9, 0.0, 0.0, 0.8, 0.0, 0.7], 4), [0, 0, 0, 1], 0.7, 0.1),
    # A client alone has no gap of its own: 0.9 of the others, less 0.5 across.
    (symmetric([0.9, 0.5, 0.2], 3), [0, 0, 1], 0.5, 0.4),
    # Two distributions at a stationary point, eq. 4.
    (np.outer([1, -1, 1, -1, -1], [1, -1, 1, -1, -1]), [0, 1, 0, 1, 1], -1.0, 2.0),
  ],
)
def test_by_hand(similarity, labels, cross_similarity, gap):
  found = lib.bipartition(similarity)
  assert (found[0].tolist(), found[1]) == (labels, cross_similarity)
  assert lib.similarity_gap(similarity, found[0]) == pytest.approx(gap)


def test_zero_updates_are_like_each_other_and_like_nobody_else():
  found = similarities_of(np.array([[0.0, 0.0], [4.0, 3.0], [0.0, 0.0], [1.0, 0.0]]))
  np.testing.assert_allclose(found, [[1, 0, 1, 0], [0, 1, 0, 0.8], [1, 0, 1, 0], [0, 0.8, 0, 1]], atol=1e-15)
  labels, cross_similarity = lib.bipartition(found)
  assert (labels.tolist(), cross_similarity) == ([0, 1, 0, 1], 0.0)
  # Equal updates are parted at a similarity of one.
  equal = similarities_of(np.full((5, 7), 0.3))
  np.testing.assert_array_equal(equal, 1.0)
  assert lib.bipartition(equal)[1] == 1.0


@pytest.mark.parametrize('groups', [[0] * 11 + [1], [1, 0, 0, 1, 1, 1, 0]])
def test_planted_groups_are_found(groups):
  rng = np.random.default_rng(1)
  vectors = rng.normal(size=(2, 300))[groups] + 0.3 * rng.normal(size=(len(groups), 300))
  vectors *= rng.uniform(0.1, 10.0, size=(len(groups), 1))  # Lengths do not matter.
  signatures = Signatures(vectors.astype(np.float32), tuple(f'c{k}' for k in range(len(groups))))
  outcome = methods.cluster(ClusteringConfig('bipartition'), signatures, seed=0)
  labels = np.array(groups) != groups[0]
  np.testing.assert_array_equal(outcome.assignment.labels, labels)
  assert outcome.assignment.client_ids == signatures.client_ids
  cosines = 1.0 - scipy_distances(signatures.vectors, 'cosine')
  np.testing.assert_allclose(lib.similarities(signatures), cosines, atol=1e-5)
  assert outcome.figures == {
    'cross_similarity': pytest.approx(highest_across(cosines, labels), abs=1e-9),
    'similarity_gap': pytest.approx(gap_by_definition(cosines, labels), abs=1e-9),
  }
  assert (outcome.threshold, outcome.linkage) == (None, None)


THREE = symmetric([0.9, 0.5, 0.2], 3)  # Halves of 2 and 1, a cross similarity of 0.5 and a gap of 0.4.
FOUR = symmetric([0.75, 0.25, 0.25, 0.25, 0.25, 0.75], 4)  # Halves of 2; 0.75 - 0.25 has no rounding.
HALF = 'a half of 1 client, at least {} asked for (min_cluster_size)'
GAP = 'a similarity gap of 0.4, at least {} asked for (min_similarity_gap)'
CROSS = 'a cross similarity of 0.5, at most {} asked for (max_cross_similarity)'


@pytest.mark.parametrize(
  ('similarity', 'guards', 'reason'),
  [
    (THREE, (1, 0.39), ''),
    (THREE, (2, 0.0), HALF.format(2)),
    (THREE, (3, 1.0), f'{HALF.format(3)}; {GAP.format(1)}'),
    (THREE, (1, 0.45, -1.0), f'{GAP.format(0.45)}; {CROSS.format(-1)}'),
    # What just meets the guards is split.
    (FOUR, (2, 0.5, 0.25), ''),
    (FOUR, (2, 0.5, np.nextafter(0.25, 0.0)), 'a cross similarity of 0.25, at most 0.25 asked for (max_cross_similarity)'),
    (FOUR, (2, np.nextafter(0.5, 1.0)), 'a similarity gap of 0.5, at least 0.5 asked for (min_similarity_gap)'),
  ],
)  # fmt: skip
def test_guards(similarity, guards, reason):
  split = lib.guarded(similarity, *guards)
  labels, cross_similarity = lib.bipartition(similarity)
  assert (split.reason, split.labels.tolist(), split.cross_similarity) == (
    reason,
    labels.tolist(),
    cross_similarity,
  )
  assert split.gap == pytest.approx(gap_by_definition(similarity, labels))


def test_a_forbidden_split_leaves_one_cluster_and_says_why():
  signatures = Signatures.numbered(np.array([[1.0, 0.0], [4.0, 3.0], [-3.0, 4.0]]))
  outcome = methods.cluster(ClusteringConfig('bipartition', min_cluster_size=2), signatures, 0)
  assert outcome.assignment.clusters == [['0', '1', '2']]
  assert outcome.notes[-1] == f'not split: {HALF.format(2)}'
  # Cosines 0.8, -0.6 and 0.
  assert outcome.figures == pytest.approx({'cross_similarity': 0.0, 'similarity_gap': 0.8}, abs=1e-12)
  split = methods.cluster(ClusteringConfig('bipartition'), signatures, 0)
  assert split.assignment.clusters == [['0', '1'], ['2']] and split.notes == outcome.notes[:1]
  assert 'halves of 2 and 1 client:' in split.notes[0] and 'the similarity gap 0.8' in split.notes[0]
  alone = methods.cluster(ClusteringConfig('bipartition'), Signatures.numbered(np.ones((1, 3))), 0)
  assert alone.assignment.clusters == [['0']] and alone.notes == ('not split: there is one client',)
  assert alone.figures == {'cross_similarity': None, 'similarity_gap': None}


def test_wrong_similarities_and_labels():
  for function in (lib.bipartition, lib.guarded, lambda s: lib.similarity_gap(s, np.arange(len(s)) % 2)):
    refused(
      function,
      (np.ones((1, 1)), 'similarities of 1 client: a split needs at least 2'),
      (np.ones((2, 3)), r'must be \[clients, clients\], found shape \(2, 3\)'),
      (symmetric([0.1, np.nan, 0.2], 3), 'NaN or an infinity'),
      (
        np.array([[1.0, 0.25], [0.5, 1.0]]),
        'must be symmetric, found 0.25 for clients 0 and 1, 0.5 for 1 and 0',
      ),
    )
  labels = ([0, 0, 0, 0], [0, 1, 2, 0], [0, 1], [[0, 1], [1, 0]])
  refused(lib.similarity_gap, *((PAIRS, wrong, '4 clients in two halves are needed') for wrong in labels))


def updates(seed, groups, clients, noise, features=300, mean=0.0):
  """Updates at a stationary point: a direction a group and noise of the given norm, which sum to zero, plus a common part."""
  rng = np.random.default_rng(seed)
  directions = rng.normal(size=(groups, features)) if groups > 1 else np.zeros((1, features))
  directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-9)
  found = directions[np.arange(clients) % groups]
  found = found + noise * rng.normal(size=(clients, features)) / np.sqrt(features)
  return found - found.mean(axis=0) + mean * rng.normal(size=features) / np.sqrt(features)


@pytest.mark.parametrize('groups', [2, 3, 4])
@pytest.mark.parametrize('clients', [8, 24])
def test_clear_groups_are_of_two_kinds(groups, clients):
  for seed in range(5):
    found = lib.two_kinds(similarities_of(updates(seed, groups, clients, noise=0.4)))
    assert found is not None
    # No group lies on both sides.
    assert all(len(set(found.labels[np.arange(clients) % groups == g])) == 1 for g in range(groups))


@pytest.mark.parametrize(('clients', 'features'), [(6, 300), (8, 10), (12, 5), (20, 300)])
def test_the_noise_of_one_group_is_of_one_kind(clients, features):
  found = [lib.two_kinds(similarities_of(updates(seed, 1, clients, 1.0, features))) for seed in range(40)]
  # Nothing keeps noise from looking like groups now and then.
  assert sum(each is not None for each in found) <= 1


def test_what_tells_nothing():
  apart = updates(0, 1, 12, 0.2)
  apart += np.ones(300) * np.where(np.arange(12) == 5, -1.0, 1.0 / 11)[:, None]
  clear = updates(0, 2, 6, noise=0.1)
  assert lib.two_kinds(similarities_of(clear)) is not None
  same_way = similarities_of(updates(0, 2, 12, noise=0.3, mean=3.0))
  split = lib.guarded(same_way)
  assert split.cross_similarity > 0.5 and split.gap > 0.05
  # One client apart; a handful of clients; clients that pull the same way, however their groups differ.
  for nothing in (similarities_of(apart), similarities_of(clear[:5]), same_way):
    assert lib.two_kinds(nothing) is None


class Disagreeing:
  """A federation of three groups, whose updates point in three directions while a cluster holds several of them."""

  client_ids = tuple(f'c{k}' for k in range(6))
  initial, first_round, last_round = 'initial', 2, 9

  def __init__(self):
    self.trained = []

  def train(self, members, start, start_round, stop):
    self.trained.append((members.tolist(), start, start_round))
    number = next((r for r in range(start_round + 1, self.last_round) if stop(r, 0.1)), self.last_round)
    return Trained(number, 0.1, f'before {number}', f'after {number}')

  def compare(self, members, base, number):
    sent = ([0, 1, 0.2], [0.1, 1, 0], [1, 0, 0], [1, 0.1, 0], [-1, 0, 0], [-1, 0.1, 0])
    updates = np.array(sent)[members]
    norms = np.linalg.norm(updates, axis=1)
    same = len({int(k) // 2 for k in members}) == 1
    return updates @ updates.T / np.outer(norms, norms), norms * (0.1 if same else 1.0)


def test_it_splits_without_knowing_who_trains():
  clustering = ClusteringConfig('bipartition', stationary_norm=0.2, stopping_norm=0.5, rounds_before_split=3)
  clients = Disagreeing()
  found = clustering.rule.rounds(clustering.options, clients)
  assert clustering.rule.splits and clustering.rule.trains
  assert [(s.members, s.start_round, s.end_round, s.parent) for s in found.segments] == [
    ([0, 1, 2, 3, 4, 5], 0, 2, None),
    ([0, 1, 2, 3], 2, 5, 0),
    ([4, 5], 2, 9, 0),
    ([0, 1], 5, 9, 1),
    ([2, 3], 5, 9, 1),
  ]
  verdicts = [(test.round, test.cluster, test.verdict) for test, _ in found.tests]
  assert verdicts == sorted(verdicts) and [v for *_, v in verdicts].count('split') == 2
  # Halves go on from the model that was tested; a stopped cluster is trained on to the end from its own start.
  assert ([0, 1], 'after 5', 5) in clients.trained and ([0, 1, 2, 3, 4, 5], 'initial', 0) in clients.trained
