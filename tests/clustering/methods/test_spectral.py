"""Spectral clustering against scikit-learn's on the same graph, the normalised cut itself, and planted directions."""

import itertools
import warnings

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import distance as scipy_distance
from sklearn import cluster as sklearn_cluster
from sklearn import neighbors

from tests.made_up.clients import together
from tff_cluster.base import seeding
from tff_cluster.base.errors import InputError
from tff_cluster.clustering import methods
from tff_cluster.clustering.methods.spectral import AFFINITIES, affinity_matrix
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig


def directions(seed, count, members, features=40, spread=0.3):
  """Vectors of very unequal lengths along planted directions: float32[count * members, features], and the truth."""
  rng = np.random.default_rng(seed)
  truth = rng.permutation(np.repeat(np.arange(count), members))
  axes = np.linalg.qr(rng.normal(size=(features, count)))[0].T
  vectors = axes[truth] + spread / np.sqrt(features) * rng.normal(size=(len(truth), features))
  return (vectors * rng.uniform(0.01, 100.0, size=(len(truth), 1))).astype(np.float32), truth


def sklearn_spectral(count, given, **parameters):
  """Fitted with the seed that the method draws from seed 0."""
  seed = seeding.integer_seed(0, 'spectral clustering', count)
  with threadpoolctl.threadpool_limits(limits=1):
    return sklearn_cluster.SpectralClustering(count, random_state=seed, **parameters).fit(given)


def clustered(vectors, count, affinity='cosine', seed=0):
  """The outcome; warnings are errors."""
  config = ClusteringConfig('spectral', num_clusters=count, affinity=affinity)
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    return methods.cluster(config, Signatures.numbered(vectors), seed)


def labels_of(*given, **others):
  return clustered(*given, **others).assignment.labels


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), count=st.integers(2, 5), members=st.integers(4, 9))
def test_planted_directions_are_found_whatever_the_lengths(seed, count, members):
  vectors, truth = directions(seed, count, members)
  np.testing.assert_array_equal(together(labels_of(vectors, count, seed=seed % 7)), together(truth))


@pytest.mark.parametrize('move', [1.0, 1e-4])
def test_weights_that_moved_little_from_one_start_are_told_apart(move):
  # What clients send after one round: nearly parallel, with cosine distances down to 1e-8.
  vectors, truth = directions(3, 4, 8, features=1000)
  moved = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
  start = np.random.default_rng(4).normal(size=1000) / np.sqrt(1000)
  labels = labels_of((start + move * moved).astype(np.float64), 4)
  np.testing.assert_array_equal(together(labels), together(truth))


@settings(max_examples=6)
@given(seed=st.integers(0, 10**6), clients=st.integers(8, 30))
def test_graphs_are_those_of_scikit_learn_and_of_the_definition(seed, clients):
  vectors = np.random.default_rng(seed).normal(size=(clients, 3))
  signatures = Signatures.numbered(vectors)
  cosine = 1.0 - scipy_distance.squareform(scipy_distance.pdist(vectors, 'cosine'))
  np.testing.assert_allclose(affinity_matrix(signatures, 'cosine'), (1.0 + cosine) / 2.0, atol=1e-12)
  gamma = 0.5 / np.median(scipy_distance.pdist(vectors)) ** 2
  rbf = sklearn_spectral(2, vectors, n_init=1, affinity='rbf', gamma=gamma).affinity_matrix_
  np.testing.assert_allclose(affinity_matrix(signatures, 'rbf'), rbf, atol=1e-12)
  nearest = {'affinity': 'nearest_neighbors', 'n_neighbors': min(10, clients)}
  graph = sklearn_spectral(2, vectors, n_init=1, **nearest).affinity_matrix_.toarray()
  np.testing.assert_allclose(affinity_matrix(signatures, 'nearest_neighbors'), graph, atol=1e-12)


@pytest.mark.parametrize('affinity', AFFINITIES)
@pytest.mark.parametrize('count', [2, 7])
def test_clusters_are_those_of_scikit_learn_on_the_same_graph(affinity, count):
  vectors = np.random.default_rng(count).normal(size=(30, 4))
  graph = affinity_matrix(Signatures.numbered(vectors), affinity)
  expected = sklearn_spectral(count, graph, affinity='precomputed', n_init=50).labels_
  np.testing.assert_array_equal(together(labels_of(vectors, count, affinity)), together(expected))


def normalised_cut(graph, labels):
  """Sum over the clusters of the weight that leaves them, relative to their weight (Shi and Malik 2000)."""
  members = labels[None, :] == np.unique(labels)[:, None]
  return sum(graph[m][:, ~m].sum() / graph[m].sum() for m in members)


def test_two_clusters_are_the_best_of_all_normalised_cuts():
  # Two clouds of directions; among all 511 ways to part the ten, none cuts less.
  angles = np.array([0.0, 0.1, 0.25, 0.3, 0.45, 1.6, 1.75, 1.8, 1.95, 2.1])
  signatures = Signatures.numbered(np.stack([np.cos(angles), np.sin(angles)], axis=1))
  graph = (1.0 + np.cos(angles[:, None] - angles[None, :])) / 2.0
  np.testing.assert_allclose(affinity_matrix(signatures, 'cosine'), graph, atol=1e-12)
  halves = [half for half in itertools.product((0, 1), repeat=9) if any(half)]
  cuts = {half: normalised_cut(graph, np.array([0, *half])) for half in halves}
  labels = labels_of(signatures.vectors, 2)
  assert min(cuts, key=cuts.get) == tuple(labels[1:]) == (0, 0, 0, 0, 1, 1, 1, 1, 1)


def test_weights_of_edges_by_hand():
  # A right angle, a straight one and a zero vector, which has no direction.
  signatures = Signatures.numbered([[3.0, 0.0], [0.0, 0.5], [-7.0, 0.0], [0.0, 0.0]])
  np.testing.assert_allclose(
    affinity_matrix(signatures, 'cosine'),
    [[1.0, 0.5, 0.0, 0.5], [0.5, 1.0, 0.5, 0.5], [0.0, 0.5, 1.0, 0.5], [0.5, 0.5, 0.5, 1.0]],
    atol=1e-12,
  )
  line = Signatures.numbered([[0.0], [0.0], [1.0], [2.0], [2.0]])
  # Eight pairs differ, by 1 1 2 2 2 2 1 1: their median is 1.5, and that of all ten pairs 1.
  expected = np.exp(-0.5 * (np.array([[0, 0, 1, 2, 2]]) / 1.5) ** 2)
  np.testing.assert_allclose(affinity_matrix(line, 'rbf')[:1], expected, rtol=1e-12)


def test_a_far_client_is_no_neighbour_back():
  points = np.concatenate([np.arange(11.0), [1000.0]])[:, None]
  found = affinity_matrix(Signatures.numbered(points), 'nearest_neighbors')
  np.testing.assert_array_equal(np.diag(found), 1.0)
  # The nearest of 1000 are itself and 10, 9, ..., 2; none of them has it among its own ten.
  np.testing.assert_array_equal(found[11], [0.0] * 2 + [0.5] * 9 + [1.0])
  links = neighbors.kneighbors_graph(points, 10, include_self=True).toarray()
  np.testing.assert_array_equal(found[11], (0.5 * (links + links.T))[11])
  # Of more equal clients than neighbours the last is linked to itself and the first nine, which are not linked back.
  equal = affinity_matrix(Signatures.numbered(np.ones((13, 2))), 'nearest_neighbors')
  np.testing.assert_array_equal(np.diag(equal), 1.0)
  np.testing.assert_array_equal(equal[12], [0.5] * 9 + [0.0] * 3 + [1.0])


def test_so_few_clients_that_all_are_neighbours_are_refused_with_nearest_neighbors():
  vectors = np.random.default_rng(1).normal(size=(11, 4)) + np.where(np.arange(11) % 2, 9.0, -9.0)[:, None]
  outcome = clustered(vectors, 2, 'nearest_neighbors')
  assert outcome.assignment.clusters == [[str(k) for k in range(first, 11, 2)] for first in (0, 1)]
  message = 'links each client with the 10 nearest, itself among them, which are all of 10 clients'
  with pytest.raises(InputError, match=message):
    clustered(vectors[:10], 2, 'nearest_neighbors')
  asked = ClusteringConfig('spectral', num_clusters=2, affinity='nearest_neighbors')
  asked.rule.check_experiment(asked.options, 11, 1.0)
  with pytest.raises(InputError, match=f'{message} that take part'):
    asked.rule.check_experiment(asked.options, 10, 1.0, ' that take part')


@pytest.mark.parametrize('affinity', AFFINITIES)
def test_equal_vectors_share_a_cluster(affinity):
  distinct = np.random.default_rng(5).normal(size=(3, 6)).astype(np.float32)
  outcome = clustered(distinct[[0, 1, 2, 0, 1, 2, 0]], 5, affinity)
  assert outcome.assignment.clusters == [['0', '3', '6'], ['1', '4'], ['2', '5']]
  assert any('3 of the 5 clusters asked for have members' in note for note in outcome.notes)
  everybody = clustered(np.ones((4, 3)), 2, affinity)
  assert everybody.assignment.clusters == [['0', '1', '2', '3']]
  assert 'all clients are in one cluster' in everybody.notes


def test_parallel_vectors_are_one_direction_and_a_graph_in_more_parts_than_clusters_is_noted():
  parallel = np.outer([1.0, 3.0, 0.7, -2.0, -0.1], [1.0, 2.0, 3.0]).astype(np.float32)
  assert clustered(parallel, 3).assignment.clusters == [['0', '1', '2'], ['3', '4']]
  vectors = np.repeat([[0.0], [1e3], [1e6]], 12, axis=0) + np.random.default_rng(1).normal(size=(36, 1))
  two, three = (clustered(vectors, count, 'nearest_neighbors') for count in (2, 3))
  assert any('falls into 3 parts without a link, more than the 2 clusters' in note for note in two.notes)
  assert three.assignment.labels.tolist() == [0] * 12 + [1] * 12 + [2] * 12 and three.notes == ()
  assert two.assignment.num_clusters == 2


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from(AFFINITIES), st.booleans())
def test_twins_are_never_parted(seed, count, affinity, wide):
  # On a plane (1 + cos) / 2 has rank 3, so that more clusters hang on eigenvectors that are arbitrary.
  rng = np.random.default_rng(seed)
  distinct = rng.normal(size=(7, 30 if wide else 2))
  chosen = np.concatenate([np.arange(7), rng.integers(7, size=9)])
  labels = labels_of(distinct[chosen], count, affinity)
  np.testing.assert_array_equal(labels, labels[:7][chosen])
  assert 1 <= len(np.unique(labels)) <= count


@pytest.mark.parametrize('affinity', AFFINITIES)
def test_one_client_one_cluster_and_as_many_clusters_as_clients(affinity):
  vectors = np.random.default_rng(2).normal(size=(5, 4))
  assert labels_of(vectors[:1], 1, affinity).tolist() == [0]
  assert labels_of(vectors, 1, affinity).tolist() == [0] * 5
  if affinity != 'nearest_neighbors':
    assert len(set(labels_of(vectors, 4, affinity))) == 4
  outcome = clustered(vectors, 5, affinity)
  assert outcome.assignment.labels.tolist() == [0, 1, 2, 3, 4]
  assert 'every client is alone: there are as many clusters as clients' in outcome.notes
  with pytest.raises(InputError, match='affinity=poly: allowed are cosine, rbf, nearest_neighbors'):
    affinity_matrix(Signatures.numbered(vectors), 'poly')
  with pytest.raises(InputError, match='num_clusters=6 is more than the 5 clients'):
    clustered(vectors, 6, affinity)
  # In units of the median distance one client is so far that the square overflows.
  if affinity == 'rbf':
    far = labels_of(np.array([[0.0], [1e-10], [3e-10], [1e150], [4e-10]]), 2, 'rbf')
    assert far.tolist() == [0, 0, 0, 1, 0]


def test_the_seed_decides_and_neither_global_state_nor_threads_do():
  vectors = np.random.default_rng(6).normal(size=(40, 20))
  first = clustered(vectors, 12).assignment.membership
  np.random.seed(1)
  state = np.random.get_state()[1].copy()
  for threads in (1, 4):
    with threadpoolctl.threadpool_limits(limits=threads):
      np.testing.assert_array_equal(clustered(vectors, 12).assignment.membership, first)
  np.testing.assert_array_equal(np.random.get_state()[1], state)
  others = (clustered(vectors, 12, seed=seed).assignment.membership for seed in range(1, 6))
  assert any(not np.array_equal(first, other) for other in others)
