"""Distances between two sets of vectors against SciPy's cdist, in one block and in many."""

import numpy as np
import pytest
from scipy.spatial import distance as scipy_distance

from tff_cluster.base.errors import InputError
from tff_cluster.clustering.cross_distances import cross_distances
from tff_cluster.clustering.distances import BLOCK_BYTES, pairwise_distances
from tff_cluster.experiment.config import METRICS

SCIPY_NAMES = {'l1': 'cityblock', 'l2': 'euclidean', 'cosine': 'cosine'}
ONE, MANY = BLOCK_BYTES, 1000


def noise(seed, *shape, dtype=np.float32):
  return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize('metric', METRICS)
@pytest.mark.parametrize('dtype', [np.float32, np.float64])
@pytest.mark.parametrize('block_bytes', [ONE, MANY])
def test_equals_scipy(metric, dtype, block_bytes):
  rows, columns = noise(0, 7, 301, dtype=dtype), noise(1, 4, 301, dtype=dtype)
  found = cross_distances(rows, columns, metric, block_bytes)
  exact = scipy_distance.cdist(rows.astype(np.float64), columns.astype(np.float64), SCIPY_NAMES[metric])
  assert found.dtype == np.float64
  np.testing.assert_allclose(found, exact, rtol=1e-12, atol=0)


@pytest.mark.parametrize('metric', METRICS)
@pytest.mark.parametrize('block_bytes', [ONE, MANY])
def test_agrees_with_the_distances_that_clusterings_use(metric, block_bytes):
  vectors = noise(2, 12, 90)
  vectors[3] = 0.0
  vectors[4] = 0.0
  vectors[5] = vectors[6] * (1 + 1e-6)
  np.testing.assert_allclose(
    cross_distances(vectors[:9], vectors[[3, 6, 9, 10]], metric, block_bytes),
    pairwise_distances(vectors, metric)[:9][:, [3, 6, 9, 10]],
    rtol=1e-5,
    atol=1e-13,
  )


def test_zero_vectors_are_at_cosine_distance_1_to_others_and_0_to_each_other():
  found = cross_distances(
    np.eye(2, 3) * [[1.0], [0.0]], np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), 'cosine'
  )
  np.testing.assert_array_equal(found, [[1.0, 1.0], [0.0, 1.0]])


@pytest.mark.parametrize('metric', METRICS)
def test_a_read_only_memmap_is_fine(tmp_path, metric):
  np.save(tmp_path / 'rows.npy', noise(3, 5, 40))
  mapped = np.load(tmp_path / 'rows.npy', mmap_mode='r')
  np.testing.assert_array_equal(
    cross_distances(mapped, noise(4, 2, 40), metric, MANY),
    cross_distances(noise(3, 5, 40), noise(4, 2, 40), metric, MANY),
  )


@pytest.mark.parametrize(
  ('rows', 'columns', 'metric', 'message'),
  [
    (np.ones((2, 3)), np.ones((1, 3)), 'l3', "metric 'l3': allowed are l1, l2, cosine"),
    (np.ones((2, 3)), np.ones((1, 4)), 'l2', 'vectors of 3 and of 4 features'),
    (np.full((1, 2), 1e200), np.zeros((1, 2)), 'l2', 'the l2 distances of these vectors overflow'),
    (np.full((1, 2), 1e200), np.ones((1, 2)), 'cosine', 'the cosine distances of these vectors overflow'),
    (np.full((1, 2), 1e308), np.full((1, 2), -1e308), 'l1', 'the l1 distances of these vectors overflow'),
  ],
)
def test_bad_input_is_told_in_one_line(rows, columns, metric, message):
  with pytest.raises(InputError, match=message) as caught:
    cross_distances(rows, columns, metric)
  assert '\n' not in str(caught.value)
