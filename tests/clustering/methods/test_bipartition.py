"""The split of eq. 6 against brute force over all halves, SciPy's single linkage, and splits made by hand."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from scipy.spatial import distance as scipy_distance
from sklearn.utils.estimator_checks import check_estimator

from tff_cluster.base.errors import InputError
from tff_cluster.clustering import distances as distances_lib
from tff_cluster.clustering import estimators, methods
from tff_cluster.clustering.alternating import Trained
from tff_cluster.clustering.methods import bipartition as lib
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig

# Parting 0 from 1 costs 0.9 and 2 from 3 costs 0.8; parting both pairs from each other 0.3 (clients 1 and 2). Every
# client has a similarity of at least 0.8 to the other of its pair, so the gap is 0.5.
PAIRS = np.array([[1.0, 0.9, 0.1, -0.2], [0.9, 1.0, 0.3, -0.5], [0.1, 0.3, 1.0, 0.8], [-0.2, -0.5, 0.8, 1.0]])


def symmetric(upper, clients):
  """The matrix with these entries above the diagonal, row after row, and ones on it."""
  matrix = np.eye(clients)
  rows, columns = np.triu_indices(clients, 1)
  matrix[rows, columns] = matrix[columns, rows] = upper
  return matrix


def all_halves(clients):
  """bool[2 ** (clients - 1) - 1, clients], every way to part the clients, once: client 0 is False."""
  numbers = np.arange(1, 2 ** (clients - 1))
  return np.concatenate(
    [np.zeros((len(numbers), 1), bool), (numbers[:, None] >> np.arange(clients - 1)) & 1 > 0], axis=1
  )


def optima(similarity):
  """The lowest highest similarity across, and bool[optima, clients], the halves that have it."""
  halves = all_halves(len(similarity))
  across = halves[:, :, None] != halves[:, None, :]
  costs = np.where(across, similarity, -np.inf).max(axis=(1, 2))
  return costs.min(), halves[costs == costs.min()]


def highest_across(similarity, labels):
  labels = np.asarray(labels)
  return max(
    similarity[i, j] for i in range(len(labels)) for j in range(len(labels)) if labels[i] != labels[j]
  )


def gap_by_definition(similarity, labels):
  clients = range(len(labels))
  own = [[similarity[i, j] for j in clients if j != i and labels[j] == labels[i]] for i in clients]
  bests = [max(values) for values in own if values]
  return min(bests) - highest_across(similarity, labels) if bests else 0.0


def assert_halves(labels, clients):
  assert labels.dtype == np.int64 and labels.shape == (clients,)
  assert labels[0] == 0 and set(labels.tolist()) == {0, 1}


def planted(seed, groups, features=300, spread=0.3):
  """Updates of groups along random directions, of unequal lengths: float32[clients, features]."""
  rng = np.random.default_rng(seed)
  directions = rng.normal(size=(max(groups) + 1, features))
  vectors = directions[list(groups)] + spread * rng.normal(size=(len(groups), features))
  return (vectors * rng.uniform(0.1, 10.0, size=(len(groups), 1))).astype(np.float32)


@st.composite
def similarity_matrices(draw, elements):
  clients = draw(st.integers(2, 10))
  pairs = clients * (clients - 1) // 2
  return symmetric(draw(st.lists(elements, min_size=pairs, max_size=pairs)), clients)


random_matrices = similarity_matrices(st.floats(-1.0, 1.0))
# Few values make ties, of which most such matrices have many; integers need not be cosines.
tied_matrices = similarity_matrices(st.sampled_from([-1.0, -0.1, 0.3, 0.5]))
integer_matrices = similarity_matrices(st.integers(-3, 3))


@settings(max_examples=300, deadline=None)
@given(st.one_of(random_matrices, tied_matrices, integer_matrices))
def test_equals_brute_force(similarity):
  labels, cross_similarity = lib.bipartition(similarity)
  assert_halves(labels, len(similarity))
  lowest, halves = optima(similarity)
  assert cross_similarity == lowest == highest_across(similarity, labels)
  assert (halves == labels.astype(bool)).all(axis=1).sum() == 1
  gap = lib.similarity_gap(similarity, labels)
  assert gap == gap_by_definition(similarity, labels) >= 0.0


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 60), st.integers(0, 2**32 - 1))
def test_equals_the_last_merge_of_single_linkage(clients, seed):
  vectors = np.random.default_rng(seed).normal(size=(clients, 5))
  merges = hierarchy.linkage(vectors, 'single', 'cosine')
  expected = hierarchy.cut_tree(merges, n_clusters=2)[:, 0]
  labels, cross_similarity = lib.bipartition(lib.similarities(Signatures.numbered(vectors)))
  np.testing.assert_array_equal(labels, expected != expected[0])
  assert cross_similarity == pytest.approx(1.0 - merges[-1, 2], abs=1e-12)


@pytest.mark.parametrize(
  ('similarity', 'labels', 'cross_similarity', 'gap'),
  [
    (PAIRS, [0, 0, 1, 1], 0.3, 0.5),
    # The order of the pairs' clients does not matter: 0 2 | 1 3.
    (PAIRS[np.ix_([0, 2, 1, 3], [0, 2, 1, 3])], [0, 1, 0, 1], 0.3, 0.5),
    # A chain is cut at its weakest link, 0.7, where complete linkage would make pairs.
    (symmetric([0.9, 0.0, 0.0, 0.8, 0.0, 0.7], 4), [0, 0, 0, 1], 0.7, 0.1),
    # A client alone has no gap of its own: 0.9 of the others, less 0.5 across.
    (symmetric([0.9, 0.5, 0.2], 3), [0, 0, 1], 0.5, 0.4),
    # Two distributions at a stationary point, eq. 4.
    (np.outer([1, -1, 1, -1, -1], [1, -1, 1, -1, -1]), [0, 1, 0, 1, 1], -1.0, 2.0),
    (symmetric([-0.25], 2), [0, 1], -0.25, 0.0),
  ],
)
def test_by_hand(similarity, labels, cross_similarity, gap):
  found = lib.bipartition(similarity)
  assert (found[0].tolist(), found[1]) == (labels, cross_similarity)
  assert lib.similarity_gap(similarity, found[0]) == pytest.approx(gap)


def test_the_diagonal_does_not_matter():
  other = PAIRS.copy()
  np.fill_diagonal(other, [-7.0, 0.0, 9.0, 0.85])
  labels, cross_similarity = lib.bipartition(other)
  assert (labels.tolist(), cross_similarity) == ([0, 0, 1, 1], 0.3)
  assert lib.similarity_gap(other, labels) == pytest.approx(0.5)


@settings(max_examples=100, deadline=None)
@given(st.one_of(random_matrices, tied_matrices), st.randoms(use_true_random=False))
def test_permuting_clients_permutes_the_halves(similarity, random):
  order = list(range(len(similarity)))
  random.shuffle(order)
  labels, cross_similarity = lib.bipartition(similarity)
  permuted, permuted_cross = lib.bipartition(similarity[np.ix_(order, order)])
  assert permuted_cross == cross_similarity
  if len(optima(similarity)[1]) == 1:
    np.testing.assert_array_equal(permuted, labels[order] != labels[order[0]])


@settings(max_examples=50, deadline=None)
@given(random_matrices)
def test_relabelling_changes_no_gap(similarity):
  labels, _ = lib.bipartition(similarity)
  gap = lib.similarity_gap(similarity, labels)
  assert lib.similarity_gap(similarity, 1 - labels) == gap
  assert lib.similarity_gap(similarity, np.where(labels, 40, -3)) == gap


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_scaling_updates_changes_nothing(clients, seed):
  rng = np.random.default_rng(seed)
  vectors = rng.normal(size=(clients, 4))
  scales = 10.0 ** rng.uniform(-4, 4, size=(clients, 1))
  one = lib.bipartition(lib.similarities(Signatures.numbered(vectors)))
  other = lib.bipartition(lib.similarities(Signatures.numbered(vectors * scales)))
  np.testing.assert_array_equal(other[0], one[0])
  assert other[1] == pytest.approx(one[1], abs=1e-12)


@pytest.mark.parametrize('blocks', [False, True])
def test_similarities_are_cosines(monkeypatch, blocks):
  if blocks:
    monkeypatch.setattr(distances_lib, '_PDIST_WORK', -1)
    monkeypatch.setattr(distances_lib, '_PRODUCT_COLUMNS', 37)
  vectors = planted(3, [0, 1, 2] * 4)
  found = lib.similarities(Signatures.numbered(vectors))
  units = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
  np.testing.assert_allclose(found, units @ units.T, atol=1e-5)
  np.testing.assert_array_equal(found, found.T)
  np.testing.assert_array_equal(np.diag(found), 1.0)


def test_zero_updates_are_like_each_other_and_like_nobody_else():
  found = lib.similarities(Signatures.numbered(np.array([[0.0, 0.0], [4.0, 3.0], [0.0, 0.0], [1.0, 0.0]])))
  np.testing.assert_allclose(found, [[1, 0, 1, 0], [0, 1, 0, 0.8], [1, 0, 1, 0], [0, 0.8, 0, 1]], atol=1e-15)
  labels, cross_similarity = lib.bipartition(found)
  assert (labels.tolist(), cross_similarity) == ([0, 1, 0, 1], 0.0)


def test_equal_updates_are_parted_at_a_similarity_of_one():
  similarity = lib.similarities(Signatures.numbered(np.full((5, 7), 0.3)))
  np.testing.assert_array_equal(similarity, 1.0)
  labels, cross_similarity = lib.bipartition(similarity)
  assert_halves(labels, 5)
  assert cross_similarity == 1.0
  assert lib.similarity_gap(similarity, labels) == 0.0


@pytest.mark.parametrize('groups', [[0, 1] * 6, [0] * 11 + [1], [1, 0, 0, 1, 1, 1, 0]])
def test_planted_groups_are_found(groups):
  signatures = Signatures(planted(1, groups), tuple(f'c{k}' for k in range(len(groups))))
  outcome = methods.cluster(ClusteringConfig(method='bipartition'), signatures, seed=0)
  labels = np.array(groups) != groups[0]
  np.testing.assert_array_equal(outcome.assignment.labels, labels)
  assert outcome.assignment.client_ids == signatures.client_ids
  cosines = 1.0 - scipy_distance.squareform(scipy_distance.pdist(signatures.vectors, 'cosine'))
  assert outcome.figures == {
    'cross_similarity': pytest.approx(highest_across(cosines, labels), abs=1e-9),
    'similarity_gap': pytest.approx(gap_by_definition(cosines, labels), abs=1e-9),
  }
  assert (outcome.threshold, outcome.linkage) == (None, None)


@pytest.mark.parametrize('groups', [[0, 1, 2, 3] * 5, [0, 1, 2] * 2])
def test_no_planted_group_is_cut(groups):
  labels, _ = lib.bipartition(lib.similarities(Signatures.numbered(planted(2, groups))))
  assert_halves(labels, len(groups))
  for group in set(groups):
    assert len(set(labels[np.array(groups) == group].tolist())) == 1


def test_many_clients():
  vectors = np.random.default_rng(4).normal(size=(2000, 30))
  similarity = lib.similarities(Signatures.numbered(vectors))
  started = time.process_time()
  split = lib.guarded(similarity)
  assert time.process_time() - started < 5.0
  merges = hierarchy.linkage(distances_lib.condensed(1.0 - similarity), 'single')
  assert split.cross_similarity == pytest.approx(1.0 - merges[-1, 2], abs=1e-12)
  across = split.labels[:, None] != split.labels[None]
  assert split.cross_similarity == similarity[across].max()
  assert split.gap >= 0.0


@pytest.mark.parametrize(
  ('guards', 'reason'),
  [
    ((1, 0.0), ''),
    ((1, 0.39), ''),
    ((2, 0.0), 'a half of 1 client, at least 2 asked for (min_cluster_size)'),
    ((1, 0.45), 'a similarity gap of 0.4, at least 0.45 asked for (min_similarity_gap)'),
    (
      (3, 1.0),
      'a half of 1 client, at least 3 asked for (min_cluster_size); '
      'a similarity gap of 0.4, at least 1 asked for (min_similarity_gap)',
    ),
    ((1, 0.0, 0.5), ''),
    ((1, 0.0, 0.49), 'a cross similarity of 0.5, at most 0.49 asked for (max_cross_similarity)'),
    (
      (1, 0.45, -1.0),
      'a similarity gap of 0.4, at least 0.45 asked for (min_similarity_gap); '
      'a cross similarity of 0.5, at most -1 asked for (max_cross_similarity)',
    ),
  ],
)
def test_guards(guards, reason):
  split = lib.guarded(symmetric([0.9, 0.5, 0.2], 3), *guards)
  assert (split.labels.tolist(), split.cross_similarity, split.reason) == ([0, 0, 1], 0.5, reason)
  assert split.gap == pytest.approx(0.4)


def test_what_just_meets_the_guards_is_split():
  # 0.75 - 0.25 has no rounding.
  similarity = symmetric([0.75, 0.25, 0.25, 0.25, 0.25, 0.75], 4)
  assert lib.guarded(similarity, 2, 0.5).reason == ''
  assert lib.guarded(similarity, 2, 0.5, 0.25).reason == ''
  assert 'a half of 2 clients' in lib.guarded(similarity, 3, 0.0).reason
  assert 'a cross similarity of 0.25' in lib.guarded(similarity, 2, 0.5, np.nextafter(0.25, 0.0)).reason
  assert 'a similarity gap of 0.5' in lib.guarded(similarity, 2, np.nextafter(0.5, 1.0)).reason


def test_a_forbidden_split_leaves_one_cluster_and_says_why():
  signatures = Signatures.numbered(np.array([[1.0, 0.0], [4.0, 3.0], [-3.0, 4.0]]))
  config = ClusteringConfig(method='bipartition', min_cluster_size=2)
  outcome = methods.cluster(config, signatures, 0)
  assert outcome.assignment.clusters == [['0', '1', '2']]
  assert outcome.notes[-1] == 'not split: a half of 1 client, at least 2 asked for (min_cluster_size)'
  # Cosines 0.8, -0.6 and 0.
  assert outcome.figures['cross_similarity'] == pytest.approx(0.0, abs=1e-12)
  assert outcome.figures['similarity_gap'] == pytest.approx(0.8)
  split = methods.cluster(ClusteringConfig(method='bipartition'), signatures, 0)
  assert split.assignment.clusters == [['0', '1'], ['2']]
  assert split.notes == outcome.notes[:1]
  assert 'halves of 2 and 1 client:' in split.notes[0] and 'the similarity gap 0.8' in split.notes[0]


def test_one_client_is_one_cluster():
  signatures = Signatures.numbered(np.ones((1, 3)))
  outcome = methods.cluster(ClusteringConfig(method='bipartition'), signatures, 0)
  assert outcome.assignment.clusters == [['0']]
  assert outcome.notes == ('not split: there is one client',)
  assert outcome.figures == {'cross_similarity': None, 'similarity_gap': None}


@pytest.mark.parametrize(
  ('similarity', 'message'),
  [
    (np.ones((1, 1)), 'similarities of 1 client: a split needs at least 2'),
    (np.ones((0, 0)), 'similarities of 0 clients'),
    (np.ones((2, 3)), r'must be \[clients, clients\], found shape \(2, 3\)'),
    (np.ones(3), r'found shape \(3,\)'),
    (symmetric([0.1, np.nan, 0.2], 3), 'NaN or an infinity'),
    (symmetric([0.1, np.inf, 0.2], 3), 'NaN or an infinity'),
    (np.array([[1.0, 0.25], [0.5, 1.0]]), 'must be symmetric, found 0.25 for clients 0 and 1, 0.5 for 1 and 0'),
  ],
)  # fmt: skip
def test_wrong_similarities(similarity, message):
  for function in (lib.bipartition, lib.guarded, lambda s: lib.similarity_gap(s, np.arange(len(s)) % 2)):
    with pytest.raises(InputError, match=message) as caught:
      function(similarity)
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize('labels', [[0, 0, 0, 0], [0, 1, 2, 0], [0, 1], [[0, 1], [1, 0]]])
def test_wrong_labels(labels):
  with pytest.raises(InputError, match='4 clients in two halves are needed'):
    lib.similarity_gap(PAIRS, labels)


@pytest.mark.parametrize(
  ('guards', 'message'),
  [
    ((0, 0.0), 'min_cluster_size=0: must be at least 1'),
    ((1, -0.5), 'min_similarity_gap=-0.5: must be a number of at least 0'),
    ((1, float('nan')), 'min_similarity_gap=nan'),
    ((1, 0.0, 1.5), 'max_cross_similarity=1.5: must be from -1 to 1'),
    ((1, 0.0, float('nan')), 'max_cross_similarity=nan'),
  ],
)
def test_wrong_guards(guards, message):
  with pytest.raises(InputError, match=message):
    lib.guarded(PAIRS, *guards)


def updates(rng, groups, clients, noise, features, mean=0.0):
  """Updates at a stationary point: a direction a group and noise of the given norm, which sum to zero, plus a common part."""
  directions = rng.normal(size=(groups, features)) if groups > 1 else np.zeros((1, features))
  directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-9)
  found = directions[np.arange(clients) % groups]
  found = found + noise * rng.normal(size=(clients, features)) / np.sqrt(features)
  common = rng.normal(size=features) / np.sqrt(features)
  return found - found.mean(axis=0) + mean * common


def similarities_of(vectors):
  return lib.similarities(Signatures.numbered(vectors))


@pytest.mark.parametrize('groups', [2, 3, 4])
@pytest.mark.parametrize('clients', [8, 12, 24])
def test_clear_groups_are_of_two_kinds(groups, clients):
  for seed in range(10):
    vectors = updates(np.random.default_rng(seed), groups, clients, noise=0.4, features=300)
    found = lib.two_kinds(similarities_of(vectors))
    assert found is not None
    # No group lies on both sides.
    assert all(len(set(found.labels[np.arange(clients) % groups == g])) == 1 for g in range(groups))


@pytest.mark.parametrize(('clients', 'features'), [(6, 300), (8, 10), (8, 300), (12, 5), (20, 10), (20, 300)])
def test_the_noise_of_one_group_is_of_one_kind(clients, features):
  found = [
    lib.two_kinds(similarities_of(updates(np.random.default_rng(seed), 1, clients, 1.0, features)))
    for seed in range(40)
  ]
  # Nothing keeps noise from looking like groups now and then.
  assert sum(each is not None for each in found) <= 1


def test_clients_that_pull_the_same_way_are_of_one_kind_however_their_groups_differ():
  vectors = updates(np.random.default_rng(0), 2, 12, noise=0.3, features=300, mean=3.0)
  similarity = similarities_of(vectors)
  labels, cross = lib.bipartition(similarity)
  assert cross > 0.5 and lib.similarity_gap(similarity, labels) > 0.05
  assert lib.two_kinds(similarity) is None


def test_one_client_apart_and_a_handful_of_clients_tell_nothing():
  apart = updates(np.random.default_rng(0), 1, 12, 0.2, 300)
  apart += np.ones(300) * np.where(np.arange(12) == 5, -1.0, 1.0 / 11)[:, None]
  assert lib.two_kinds(similarities_of(apart)) is None
  clear = updates(np.random.default_rng(0), 2, 6, noise=0.1, features=300)
  assert lib.two_kinds(similarities_of(clear)) is not None
  assert lib.two_kinds(similarities_of(clear[:5])) is None


def test_the_estimator_equals_the_function():
  vectors = planted(5, [0, 1, 1, 0, 2])
  model = estimators.Bipartition().fit(vectors)
  labels, cross_similarity = lib.bipartition(lib.similarities(Signatures.numbered(vectors)))
  np.testing.assert_array_equal(model.labels_, labels)
  np.testing.assert_array_equal(estimators.Bipartition().fit_predict(vectors), labels)
  assert (model.cross_similarity_, model.n_features_in_) == (cross_similarity, 300)


def test_scikit_learn_accepts_the_estimator():
  check_estimator(estimators.Bipartition())


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
    updates = np.array(
      [[0.0, 1.0, 0.2], [0.1, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.1, 0.0], [-1.0, 0, 0], [-1.0, 0.1, 0]]
    )
    updates = updates[members]
    norms = np.linalg.norm(updates, axis=1)
    same = len({int(k) // 2 for k in members}) == 1
    return updates @ updates.T / np.outer(norms, norms), norms * (0.1 if same else 1.0)


def test_it_alternates_without_knowing_who_trains():
  clustering = ClusteringConfig('bipartition', stationary_norm=0.2, stopping_norm=0.5, rounds_before_split=3)
  clients = Disagreeing()
  found = clustering.rule.rounds(clustering.options, clients)
  assert clustering.rule.alternates
  assert [(s.members.tolist(), s.start_round, s.end_round, s.parent) for s in found.segments] == [
    ([0, 1, 2, 3, 4, 5], 0, 2, None),
    ([0, 1, 2, 3], 2, 5, 0),
    ([4, 5], 2, 9, 0),
    ([0, 1], 5, 9, 1),
    ([2, 3], 5, 9, 1),
  ]
  verdicts = [(test['round'], test['positions'], test['verdict']) for test, _ in found.tests]
  assert verdicts == sorted(verdicts) and [v for *_, v in verdicts].count('split') == 2
  # Halves go on from the model that was tested; a stopped cluster is trained on to the end from its own start.
  assert ([0, 1], 'after 5', 5) in clients.trained and ([0, 1, 2, 3, 4, 5], 'initial', 0) in clients.trained
