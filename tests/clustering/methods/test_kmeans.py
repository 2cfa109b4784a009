"""K-means against scikit-learn on the raw vectors."""

import numpy as np
import pytest
import threadpoolctl
from sklearn import cluster as sklearn_cluster

from tests.made_up.clients import grouped, noise, together
from tests.made_up.refusals import refused
from tff_cluster.clustering import methods
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig


def clustered(vectors, num_clusters, seed=0):
  config = ClusteringConfig('kmeans', num_clusters=num_clusters)
  return methods.cluster(config, Signatures.numbered(vectors), seed)


@pytest.mark.parametrize(('features', 'dtype'), [(5, np.float64), (40, np.float64), (300, np.float32)])
def test_equals_scikit_learn_on_raw_vectors(features, dtype):
  vectors, truth = grouped(0, 4, 10, features, spread=0.05, dtype=dtype)
  found = clustered(vectors, 4)
  labels = found.assignment.labels
  expected = sklearn_cluster.KMeans(4, n_init=20, random_state=2).fit(vectors.astype(np.float64))
  np.testing.assert_array_equal(together(labels), together(expected.labels_))
  np.testing.assert_array_equal(together(labels), together(truth))
  assert found.figures == {'inertia': pytest.approx(expected.inertia_, rel=1e-9)}


def test_the_starts_are_enough_to_find_what_many_runs_find():
  # One start ends about a tenth above the best of a dozen.
  vectors = np.random.default_rng(5).normal(size=(40, 4))
  best = min(sklearn_cluster.KMeans(8, n_init=1, random_state=k).fit(vectors).inertia_ for k in range(12))
  found = [clustered(vectors, 8, seed).figures['inertia'] for seed in range(2)]
  assert max(found) <= 1.02 * best


def test_starts_come_from_the_seed_and_neither_from_global_state_nor_threads():
  vectors = np.random.default_rng(6).uniform(size=(60, 2))
  first = clustered(vectors, 9)
  np.random.seed(1)
  state = np.random.get_state()[1].copy()
  for threads in (1, 4):
    with threadpoolctl.threadpool_limits(limits=threads):
      again = clustered(vectors, 9)
    np.testing.assert_array_equal(again.assignment.membership, first.assignment.membership)
    assert again.figures == first.figures
  np.testing.assert_array_equal(np.random.get_state()[1], state)


def test_one_client_and_as_many_clusters_as_clients_or_more():
  alone = clustered(np.ones((1, 9)), 1)
  assert (alone.assignment.clusters, alone.figures) == ([['0']], {'inertia': 0.0})
  outcome = clustered(np.eye(4), 4)
  assert outcome.assignment.num_clusters == 4
  assert outcome.notes == ('every client is alone: there are as many clusters as clients',)
  refused(clustered, (np.eye(3), 4, 'num_clusters=4 is more than the 3 clients'))
  for features in (2, 300):
    distinct = clustered(noise(5, 3, features)[[0, 1, 2, 0, 1, 2, 0]], 5)
    assert distinct.assignment.clusters == [['0', '3', '6'], ['1', '4'], ['2', '5']]
    assert any('3 of the 5 clusters asked for have members' in note for note in distinct.notes)


@pytest.mark.parametrize('features', [2, 20])
def test_vectors_whose_squares_overflow_are_told_and_slightly_smaller_ones_are_clustered(features):
  vectors, truth = grouped(0, 2, 3, features, 0.05, np.float64)
  assert (together(clustered(vectors * 1e150, 2).assignment.labels) == together(truth)).all()
  words = 'the l2 distances of these vectors overflow; scale the vectors down'
  refused(lambda scale: clustered(vectors * scale, 2), (1e155, words), (1e200, words), (1e307, words))
