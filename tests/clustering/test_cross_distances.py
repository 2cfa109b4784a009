"""Distances between two sets of vectors against SciPy's cdist, in one block and in many."""

import numpy as np
import pytest
from scipy.spatial import distance as scipy_distance

from tests.made_up.clients import SCIPY_NAMES, noise
from tff_cluster.base.errors import InputError
from tff_cluster.clustering.cross_distances import cross_distances
from tff_cluster.clustering.distances import BLOCK_BYTES, pairwise_distances
from tff_cluster.experiment.config import METRICS


@pytest.mark.parametrize('metric', METRICS)
@pytest.mark.parametrize('dtype', [np.float32, np.float64])
@pytest.mark.parametrize('block_bytes', [BLOCK_BYTES, 1000])
def test_equals_scipy(tmp_path, metric, dtype, block_bytes):
  rows, columns = noise(0, 7, 301, dtype=dtype), noise(1, 4, 301, dtype=dtype)
  np.save(tmp_path / 'rows.npy', rows)
  found = cross_distances(np.load(tmp_path / 'rows.npy', mmap_mode='r'), columns, metric, block_bytes)
  exact = scipy_distance.cdist(rows.astype(np.float64), columns.astype(np.float64), SCIPY_NAMES[metric])
  assert found.dtype == np.float64
  np.testing.assert_allclose(found, exact, rtol=1e-12, atol=0)


@pytest.mark.parametrize('metric', METRICS)
def test_agrees_with_the_distances_that_clusterings_use(metric):
  # Two clients without a direction, and two that are nearly parallel.
  vectors = noise(2, 12, 90)
  vectors[3:5] = 0.0
  vectors[5] = vectors[6] * (1 + 1e-6)
  np.testing.assert_allclose(
    cross_distances(vectors[:9], vectors[[3, 6, 9, 10]], metric),
    pairwise_distances(vectors, metric)[:9][:, [3, 6, 9, 10]],
    rtol=1e-5,
    atol=1e-13,
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
