"""Classical scaling against principal components, and silhouettes against scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics

from tests.made_up.clients import scipy_distances
from tff_cluster.clustering import embedding


def distances_of(points):
  return scipy_distances(points, 'l2')


@pytest.mark.parametrize('seed', range(2))
def test_equals_principal_components_with_settled_signs(seed):
  points = np.random.default_rng(seed).normal(size=(20, 4))
  left, singular, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
  expected = (left * singular)[:, :2]
  expected *= np.sign(expected[np.abs(expected).argmax(axis=0), [0, 1]])
  for moved in (points, -points, points * [-1, 1, -1, 1]):
    np.testing.assert_allclose(embedding.classical_scaling(distances_of(moved)), expected, atol=1e-8)


def test_degenerate_inputs_are_padded_with_zeros():
  np.testing.assert_array_equal(embedding.classical_scaling(np.zeros((1, 1))), [[0.0, 0.0]])
  np.testing.assert_array_equal(embedding.classical_scaling(np.zeros((4, 4))), np.zeros((4, 2)))
  pair = embedding.classical_scaling(np.array([[0.0, 6.0], [6.0, 0.0]]))
  np.testing.assert_allclose(pair, [[3, 0], [-3, 0]])


def test_scaling_by_lanczos_iterations_equals_that_by_all_axes(monkeypatch):
  distances = distances_of(np.random.default_rng(3).normal(size=(40, 6)) * [9, 7, 1, 1, 1, 1])
  expected = embedding.classical_scaling(distances)
  monkeypatch.setattr(embedding, '_MOST_AXES', 10)
  found = embedding.classical_scaling(distances)
  np.testing.assert_allclose(found, expected, atol=1e-8)
  np.testing.assert_array_equal(embedding.classical_scaling(distances), found)
  np.testing.assert_array_equal(embedding.classical_scaling(np.zeros((20, 20))), np.zeros((20, 2)))


def test_silhouette_equals_scikit_learn_and_is_none_where_undefined():
  points = np.random.default_rng(3).normal(size=(9, 3))
  distances, labels = distances_of(points), [0, 1, 0, 2, 2, 1, 0, 1, 2]
  found = embedding.silhouette(distances, np.array(labels))
  assert found == pytest.approx(metrics.silhouette_score(points, labels))
  for undefined in ([0] * 9, range(9)):
    assert embedding.silhouette(distances, np.array(undefined)) is None
