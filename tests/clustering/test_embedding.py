"""Classical scaling and silhouette."""

import numpy as np
import pytest
from scipy.spatial import distance as scipy_distance
from sklearn import metrics

from tff_cluster.clustering import embedding
from tff_cluster.clustering.assignment import ClusterAssignment


def distances_of(points):
  return scipy_distance.cdist(points, points)


def test_points_of_a_plane_come_back_up_to_movement():
  points = np.random.default_rng(0).normal(size=(12, 2)) * [3, 1]
  found = embedding.classical_scaling(distances_of(points))
  np.testing.assert_allclose(distances_of(found), distances_of(points), atol=1e-9)
  np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
  assert found[:, 0].var() > found[:, 1].var()


def test_equals_principal_components():
  points = np.random.default_rng(1).normal(size=(20, 9))
  centred = points - points.mean(axis=0)
  left, singular, _ = np.linalg.svd(centred, full_matrices=False)
  expected = (left * singular)[:, :3]
  found = embedding.classical_scaling(distances_of(points), 3)
  np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)


@pytest.mark.parametrize('seed', range(5))
def test_signs_are_settled(seed):
  points = np.random.default_rng(seed).normal(size=(10, 4))
  for moved in (points, -points, points * [-1, 1, -1, 1]):
    found = embedding.classical_scaling(distances_of(moved))
    assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()
    np.testing.assert_allclose(found, embedding.classical_scaling(distances_of(points)), atol=1e-8)


def test_degenerate_inputs_are_padded_with_zeros():
  np.testing.assert_array_equal(embedding.classical_scaling(np.zeros((1, 1))), [[0.0, 0.0]])
  np.testing.assert_array_equal(embedding.classical_scaling(np.zeros((4, 4))), np.zeros((4, 2)))
  np.testing.assert_allclose(
    embedding.classical_scaling(np.array([[0.0, 6.0], [6.0, 0.0]])), [[3, 0], [-3, 0]]
  )


def test_silhouette_equals_scikit_learn_and_is_none_where_undefined():
  points = np.random.default_rng(3).normal(size=(9, 3))
  ids = tuple('abcdefghi')
  labels = [0, 1, 0, 2, 2, 1, 0, 1, 2]
  found = embedding.silhouette(distances_of(points), ClusterAssignment.from_labels(labels, ids))
  assert found == pytest.approx(metrics.silhouette_score(points, labels))
  for undefined in ([0] * 9, range(9)):
    assert (
      embedding.silhouette(distances_of(points), ClusterAssignment.from_labels(list(undefined), ids)) is None
    )
  overlap = ClusterAssignment.from_clusters(['abcde', 'efghi'], ids)
  assert embedding.silhouette(distances_of(points), overlap) is None
