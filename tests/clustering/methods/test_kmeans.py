"""K-means against scikit-learn on the raw vectors."""

import numpy as np
import pytest
import threadpoolctl
from sklearn import cluster as sklearn_cluster

from tff_cluster.base.errors import InputError
from tff_cluster.clustering import methods
from tff_cluster.clustering.methods.kmeans import kmeans
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig


def groups(seed, count, members, features, spread=0.3, dtype=np.float32):
  rng = np.random.default_rng(seed)
  truth = rng.permutation(np.repeat(np.arange(count), members))
  centres = rng.normal(size=(count, features))
  return (centres[truth] + spread * rng.normal(size=(len(truth), features))).astype(dtype), truth


def together(labels):
  return labels[:, None] == labels[None, :]


@pytest.mark.parametrize(
  ('features', 'dtype'), [(5, np.float64), (39, np.float32), (40, np.float64), (3000, np.float32)]
)
def test_equals_scikit_learn_on_raw_vectors(features, dtype):
  vectors, truth = groups(0, 4, 10, features, spread=0.05, dtype=dtype)
  labels, inertia = kmeans(Signatures.numbered(vectors), 4, random_state=1)
  expected = sklearn_cluster.KMeans(4, n_init=50, random_state=2).fit(vectors.astype(np.float64))
  np.testing.assert_array_equal(together(labels), together(expected.labels_))
  np.testing.assert_array_equal(together(labels), together(truth))
  assert inertia == pytest.approx(expected.inertia_, rel=1e-9)


def test_the_starts_are_enough_to_find_what_many_runs_find():
  # One start ends about a tenth above the best of twenty.
  vectors = np.random.default_rng(5).normal(size=(40, 4))
  best = min(sklearn_cluster.KMeans(8, n_init=1, random_state=k).fit(vectors).inertia_ for k in range(20))
  found = [kmeans(Signatures.numbered(vectors), 8, random_state=seed)[1] for seed in range(3)]
  assert max(found) <= 1.02 * best


@pytest.mark.parametrize('num_clusters', [1, 3, 7, 12])
def test_inertia_is_that_of_its_own_labels_in_the_raw_space(num_clusters):
  vectors = np.random.default_rng(1).normal(size=(12, 500)).astype(np.float32)
  labels, inertia = kmeans(Signatures.numbered(vectors), num_clusters, random_state=0)
  assert len(np.unique(labels)) == num_clusters
  raw = vectors.astype(np.float64)
  by_hand = sum(((raw[labels == c] - raw[labels == c].mean(axis=0)) ** 2).sum() for c in range(num_clusters))
  assert inertia == pytest.approx(by_hand, rel=1e-9, abs=1e-9)


def test_same_seed_same_labels_whatever_the_threads():
  vectors = np.random.default_rng(2).normal(size=(60, 400)).astype(np.float32)
  results = []
  for threads in (1, 2, 4):
    with threadpoolctl.threadpool_limits(limits=threads):
      results.append(kmeans(Signatures.numbered(vectors), 5, random_state=3))
  for labels, inertia in results[1:]:
    np.testing.assert_array_equal(labels, results[0][0])
    assert inertia == results[0][1]


def test_shift_rotation_and_order_do_not_matter():
  rng = np.random.default_rng(3)
  vectors, truth = groups(4, 3, 8, 24, spread=0.1, dtype=np.float64)
  rotation = np.linalg.qr(rng.normal(size=(24, 24)))[0]
  order = rng.permutation(24)
  for moved in (vectors + 7.0, vectors @ rotation, vectors):
    labels, _ = kmeans(Signatures.numbered(moved), 3, random_state=0)
    np.testing.assert_array_equal(together(labels), together(truth))
  labels, _ = kmeans(Signatures.numbered(vectors[order]), 3, random_state=0)
  np.testing.assert_array_equal(together(labels), together(truth[order]))


@pytest.mark.parametrize('features', [2, 300])
def test_fewer_distinct_vectors_than_clusters(features):
  distinct = np.random.default_rng(5).normal(size=(3, features)).astype(np.float32)
  vectors = distinct[[0, 1, 2, 0, 1, 2, 0]]
  outcome = methods.cluster(
    ClusteringConfig(method='kmeans', num_clusters=5), Signatures.numbered(vectors), 0
  )
  assert outcome.assignment.clusters == [['0', '3', '6'], ['1', '4'], ['2', '5']]
  assert any('3 of the 5 clusters asked for have members' in note for note in outcome.notes)


def test_one_client_and_as_many_clusters_as_clients():
  labels, inertia = kmeans(Signatures.numbered(np.ones((1, 9))), 1, random_state=0)
  assert (labels.tolist(), inertia) == ([0], 0.0)
  outcome = methods.cluster(
    ClusteringConfig(method='kmeans', num_clusters=4), Signatures.numbered(np.eye(4)), 0
  )
  assert outcome.assignment.num_clusters == 4
  assert outcome.notes == ('every client is alone: there are as many clusters as clients',)


def test_wrong_numbers_of_clusters():
  signatures = Signatures.numbered(np.eye(3))
  with pytest.raises(InputError, match='num_clusters=4 is more than the 3 clients'):
    kmeans(signatures, 4, random_state=0)
  with pytest.raises(InputError, match='num_clusters=0: must be at least 1'):
    kmeans(signatures, 0, random_state=0)


def test_starts_come_from_the_seed_and_not_from_global_state():
  signatures = Signatures.numbered(np.random.default_rng(6).uniform(size=(40, 2)))
  config = ClusteringConfig(method='kmeans', num_clusters=9)
  first = methods.cluster(config, signatures, 0).assignment.membership
  np.random.seed(1)
  state = np.random.get_state()[1].copy()
  np.testing.assert_array_equal(methods.cluster(config, signatures, 0).assignment.membership, first)
  np.testing.assert_array_equal(np.random.get_state()[1], state)
