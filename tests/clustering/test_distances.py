"""Distances against SciPy's pdist in float64, on easy and on cancelling inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial import distance as scipy_distance

from tff_cluster.base.errors import InputError
from tff_cluster.clustering import distances as distances_lib

SCIPY_NAMES = {'l1': 'cityblock', 'l2': 'euclidean', 'cosine': 'cosine'}


@pytest.fixture(params=['pdist', 'blocks'])
def path(request, monkeypatch):
  """Both ways to compute: small inputs through pdist, and what large inputs go through."""
  if request.param == 'blocks':
    monkeypatch.setattr(distances_lib, '_PDIST_WORK', -1)
    monkeypatch.setattr(distances_lib, '_PRODUCT_COLUMNS', 37)
  return request.param


def scipy_distances(vectors, metric):
  return scipy_distance.squareform(scipy_distance.pdist(np.asarray(vectors, np.float64), SCIPY_NAMES[metric]))


def noise(seed, *shape, dtype=np.float32):
  return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize('metric', list(SCIPY_NAMES))
@pytest.mark.parametrize('dtype', [np.float32, np.float64])
def test_equals_scipy(path, metric, dtype):
  vectors = noise(0, 23, 200, dtype=dtype)
  found = distances_lib.pairwise_distances(vectors, metric)
  assert found.dtype == np.float64
  np.testing.assert_allclose(found, scipy_distances(vectors, metric), rtol=1e-5, atol=0)
  np.testing.assert_array_equal(found, found.T)
  np.testing.assert_array_equal(np.diag(found), 0.0)


@pytest.mark.parametrize('offset', [0.0, 1e3, 1e6])
@pytest.mark.parametrize('gap', [1.0, 1e-2, 1e-4, 1e-6])
def test_euclidean_near_duplicates(path, offset, gap):
  # Float64 vectors: groups of four that are much closer to each other than to the rest, far off the origin.
  centres = np.repeat(noise(1, 5, 120, dtype=np.float64), 4, axis=0)
  vectors = offset + centres + gap * noise(2, 20, 120, dtype=np.float64)
  exact = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
  np.testing.assert_allclose(distances_lib.pairwise_distances(vectors, 'l2'), exact, rtol=1e-5, atol=0)


def test_euclidean_every_scale_at_once(path):
  # Client k lies 10**-k away from the origin: each pair of neighbours cancels at its own level.
  directions = noise(3, 12, 60, dtype=np.float64)
  vectors = directions * 10.0 ** -np.arange(12)[:, None]
  exact = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
  np.testing.assert_allclose(distances_lib.pairwise_distances(vectors, 'l2'), exact, rtol=1e-5, atol=0)


def test_euclidean_groups_within_groups_within_groups(path):
  # Two groups of two of two, apart by 1, 1e-6 and 1e-12: centring once on a member still cancels.
  vectors = np.zeros((8, 45))
  for level, (gap, axis) in enumerate(
    zip((1.0, 1e-6, 1e-12), noise(11, 3, 45, dtype=np.float64), strict=True)
  ):
    vectors += gap * axis * (np.arange(8)[:, None] >> (2 - level) & 1)
  exact = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
  np.testing.assert_allclose(distances_lib.pairwise_distances(vectors, 'l2'), exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize('scale', [1e-30, 1e-22, 1e25, 1e37])
def test_euclidean_where_float32_squares_leave_their_range(path, scale):
  vectors = (noise(4, 9, 80) * np.float32(scale)).astype(np.float32)
  found = distances_lib.pairwise_distances(vectors, 'l2')
  np.testing.assert_allclose(found, scipy_distances(vectors, 'l2'), rtol=1e-5, atol=0)


def test_one_diverged_client_does_not_blur_the_others(path):
  vectors = noise(5, 10, 90)
  vectors[3] *= 1e7
  found = distances_lib.pairwise_distances(vectors, 'l2')
  np.testing.assert_allclose(found, scipy_distances(vectors, 'l2'), rtol=1e-5, atol=0)


@pytest.mark.parametrize('gap', [1e-1, 1e-3, 1e-5])
def test_cosine_near_parallel(path, gap):
  # In the plane of two orthonormal axes the angle is known, and 1 - cos(a) = 2 sin(a / 2)**2 does not cancel.
  axes = np.linalg.qr(noise(6, 70, 2, dtype=np.float64))[0].T
  angles = np.array([0.0, gap, 2.5 * gap, 1.2, 1.2 + gap])
  lengths = np.array([1.0, 30.0, 0.2, 5.0, 1e4])
  vectors = lengths[:, None] * (np.cos(angles)[:, None] * axes[0] + np.sin(angles)[:, None] * axes[1])
  exact = 2.0 * np.sin(np.subtract.outer(angles, angles) / 2.0) ** 2
  np.testing.assert_allclose(
    distances_lib.pairwise_distances(vectors, 'cosine'), exact, rtol=1e-5, atol=1e-18
  )


@pytest.mark.parametrize('metric', list(SCIPY_NAMES))
def test_duplicates_are_exactly_zero_apart(path, metric):
  vectors = noise(7, 30, 110)
  vectors[10:20] = vectors[3]
  vectors[20:22] = vectors[25]
  found = distances_lib.pairwise_distances(vectors, metric)
  same = (vectors[:, None] == vectors[None]).all(axis=2)
  np.testing.assert_array_equal(found == 0.0, same)
  np.testing.assert_array_equal(distances_lib.pairwise_distances(vectors[10:20], metric), 0.0)


def test_zero_vectors_in_cosine(path):
  vectors = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [-3.0, 0.0]])
  expected = [
      [0, 1, 1, 0, 1],
      [1, 0, 1, 1, 2],
      [1, 1, 0, 1, 1],
      [0, 1, 1, 0, 1],
      [1, 2, 1, 1, 0],
  ]  # fmt: skip
  np.testing.assert_allclose(distances_lib.pairwise_distances(vectors, 'cosine'), expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize('metric', list(SCIPY_NAMES))
def test_one_client_and_one_feature(path, metric):
  np.testing.assert_array_equal(distances_lib.pairwise_distances(np.ones((1, 5)), metric), [[0.0]])
  assert distances_lib.pairwise_distances(np.array([[1.0], [4.0]]), metric).shape == (2, 2)


@pytest.mark.parametrize('metric', list(SCIPY_NAMES))
def test_memory_mapped_and_tiny_blocks(tmp_path, path, metric):
  vectors = noise(8, 12, 333)
  np.save(tmp_path / 'x.npy', vectors)
  mapped = np.load(tmp_path / 'x.npy', mmap_mode='r')
  found = distances_lib.pairwise_distances(mapped, metric, block_bytes=1)
  np.testing.assert_allclose(found, scipy_distances(vectors, metric), rtol=1e-5)


def test_ties_of_small_inputs_are_ties():
  # A 3-4-5 lattice: every distance that is 5 on paper is 5 exactly, and equal distances are equal.
  points = np.array([[0, 0], [3, 4], [4, 3], [5, 0], [0, 5]], np.float32)
  found = distances_lib.pairwise_distances(points, 'l2')
  np.testing.assert_array_equal(found[0, 1:], 5.0)


def test_overflow_and_unknown_metric_are_told(path):
  with pytest.raises(InputError, match='l2 distances of these vectors overflow'):
    distances_lib.pairwise_distances(np.array([[1e200, 0.0], [0.0, 1e200]]), 'l2')
  with pytest.raises(InputError, match="metric 'manhattan': allowed are l1, l2, cosine"):
    distances_lib.pairwise_distances(np.ones((2, 2)), 'manhattan')


@settings(max_examples=60, deadline=None)
@given(
  hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 7), st.integers(1, 5)),
    elements=st.integers(-3, 3).map(float) | st.floats(-1e3, 1e3, width=32).filter(lambda v: abs(v) > 1e-3),
  )
)
def test_blocked_euclidean_of_anything(vectors):
  blocked = np.sqrt(distances_lib._squared_l2(vectors, None, 1))
  exact = np.sqrt(((vectors[:, None] - vectors[None]) ** 2).sum(axis=2))
  np.testing.assert_allclose(blocked, exact, rtol=1e-5, atol=0)


def test_centred_gram_is_the_gram_of_the_centred_vectors():
  vectors = noise(9, 8, 50) + 100
  centred = np.asarray(vectors, np.float64) - np.asarray(vectors, np.float64).mean(axis=0)
  np.testing.assert_allclose(distances_lib.centred_gram(vectors), centred @ centred.T, rtol=1e-9, atol=1e-9)
