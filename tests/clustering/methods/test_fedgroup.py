"""FedGroup's measure against scikit-learn and NumPy, its groups against brute force, and planted directions."""

import numpy as np
import pytest
from scipy.spatial import distance as scipy_distance
from sklearn import cluster as sklearn_cluster
from sklearn import decomposition, metrics

from tests.made_up.clients import grouped
from tests.made_up.refusals import refused
from tff_cluster.clustering import methods
from tff_cluster.clustering.methods import fedgroup
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig


def clustered(vectors, num_clusters, seed=0, **options):
  config = ClusteringConfig('fedgroup', num_clusters=num_clusters, **options)
  return methods.cluster(config, Signatures.numbered(vectors), seed)


def directions(seed, groups=4, members=8, features=60):
  """Returns updates of very different lengths around one direction a group, and the truth."""
  vectors, truth = grouped(seed, groups, members, features, spread=0.2, dtype=np.float64)
  lengths = np.exp(np.random.default_rng(seed).uniform(-3.0, 3.0, size=len(vectors)))
  return lengths[:, None] * vectors / np.linalg.norm(vectors, axis=1, keepdims=True), truth


@pytest.mark.parametrize(('clients', 'features'), [(12, 40), (40, 7)])
def test_the_measure_is_that_of_scikit_learn(clients, features):
  updates = np.random.default_rng(1).normal(size=(clients, features))
  found = fedgroup.decomposed_cosines(updates @ updates.T, 5)
  # As the authors' code has it: columns are clients, and the decomposition gives directions as long as an update.
  svd = decomposition.TruncatedSVD(5, algorithm='arpack')
  expected = metrics.pairwise.cosine_similarity(updates, svd.fit_transform(updates.T).T)
  order = np.argsort(-svd.singular_values_)
  np.testing.assert_allclose(np.abs(found), np.abs(expected[:, order]), atol=1e-9)
  # A direction's sign moves no distance.
  np.testing.assert_allclose(scipy_distance.pdist(found), scipy_distance.pdist(expected), atol=1e-9)


def test_vectors_without_a_direction_and_few_directions():
  updates = np.array([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 4.0, 0.0], [3.0, 4.0, 0.0]])
  found = fedgroup.decomposed_cosines(updates @ updates.T, 3)
  np.testing.assert_array_equal(found[1], 0.0)
  np.testing.assert_array_equal(found[:, 2], 0.0)
  np.testing.assert_allclose(np.linalg.norm(found[[0, 2, 3]], axis=1), 1.0)
  assert clustered(np.zeros((3, 4)), 2).assignment.num_clusters == 1
  assert clustered(np.ones((1, 4)), 1).assignment.clusters == [['0']]
  # Cosines of equal vectors differ by rounding, and make no groups.
  equal = np.tile(np.random.default_rng(0).normal(size=7), (8, 1))
  assert clustered(equal, 2).assignment.num_clusters == 1


@pytest.mark.parametrize('seed', range(3))
def test_groups_are_those_of_k_means_on_the_measure_and_lengths_do_not_matter(seed):
  updates, truth = directions(seed)
  found = clustered(updates.astype(np.float32), 4, seed)
  _, _, axes = np.linalg.svd(updates, full_matrices=False)
  points = updates @ axes[:4].T / np.linalg.norm(updates, axis=1, keepdims=True)
  expected = sklearn_cluster.KMeans(4, n_init=20, random_state=1).fit(points)
  for labels in (expected.labels_, truth):
    assert metrics.adjusted_rand_score(labels, found.assignment.labels) == 1.0
  # On the updates themselves k-means sees lengths.
  raw = sklearn_cluster.KMeans(4, n_init=20, random_state=1).fit(updates)
  assert metrics.adjusted_rand_score(truth, raw.labels_) < 0.5


def test_clients_that_do_not_make_the_groups_join_by_the_least_cosine_dissimilarity():
  updates, truth = directions(5, groups=3, members=12)
  found = clustered(updates, 3, pretrain_scale=4)
  assert '12 of 36 clients made the groups, and the others joined them' in found.notes
  assert metrics.adjusted_rand_score(truth, found.assignment.labels) == 1.0
  # Without any structure the rule alone decides: each is where brute force puts it, or made the groups.
  updates = np.random.default_rng(2).normal(size=(30, 5))
  first = fedgroup._drawn(0, 30, 2, 6)
  labels = clustered(updates, 2, pretrain_scale=3).assignment.labels
  means = [updates[[k for k in first if labels[k] == group]].mean(axis=0) for group in (0, 1)]
  rest = np.setdiff1d(np.arange(30), first)
  dissimilarity = scipy_distance.cdist(updates[rest], means, 'cosine') / 2
  assert len(first) == 6 and len(rest) == 24
  np.testing.assert_array_equal(labels[rest], dissimilarity.argmin(axis=1))
  assert clustered(updates, 2, pretrain_scale=15).notes == ()


def test_draws_come_from_the_seed():
  updates = np.random.default_rng(3).normal(size=(40, 6))
  options = {'num_clusters': 3, 'pretrain_scale': 4}
  one, again, other = (clustered(updates, seed=seed, **options).assignment.clusters for seed in (1, 1, 2))
  assert one == again != other


def test_updates_are_clustered_unless_weights_are_asked_for():
  for given, kind in (
    ({}, 'updates'),
    ({'signature': 'weights'}, 'weights'),
    ({'signature': 'updates'}, 'updates'),
  ):
    config = ClusteringConfig('fedgroup', num_clusters=2, **given)
    assert config.signature == config.options.signature == kind
    assert ClusteringConfig.from_json(config.to_json()) == config
  assert ClusteringConfig('kmeans').signature == ClusteringConfig('bipartition').signature == 'weights'


def test_wrong_numbers():
  refused(
    clustered,
    (np.eye(3), 4, 'num_clusters=4 is more than the 3 clients'),
    (np.full((2, 3), 1e200), 2, 'inner products of these vectors overflow'),
  )
