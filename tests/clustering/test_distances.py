"""Distances and connected components against SciPy, on easy and on cancelling inputs, and however the work is divided."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csgraph
from scipy.spatial import distance as scipy_distance

from tests.made_up.clients import SCIPY_NAMES, noise, scipy_distances, together
from tests.made_up.refusals import refused
from tff_cluster.clustering import connected_components
from tff_cluster.clustering import distances as distances_lib
from tff_cluster.clustering.cross_distances import cross_distances
from tff_cluster.clustering.distances import BLOCK_BYTES, pairwise_distances
from tff_cluster.experiment.config import METRICS

WIDE = np.float64


@pytest.fixture(params=['pdist', 'blocks', 'tiles'])
def path(request, monkeypatch):
  """All ways to compute: small inputs through pdist, what large inputs go through, and what many clients go through."""
  if request.param != 'pdist':
    monkeypatch.setattr(distances_lib, '_PDIST_WORK', -1)
    monkeypatch.setattr(distances_lib, '_PRODUCT_COLUMNS', 37)
  if request.param == 'tiles':
    monkeypatch.setattr(distances_lib, '_TILE_ROWS', 7)
    monkeypatch.setattr(distances_lib, '_L1_ROWS', 5)
    monkeypatch.setattr(distances_lib, '_L1_COLUMNS', 11)


@pytest.mark.parametrize('metric', METRICS)
@pytest.mark.parametrize(('clients', 'dtype'), [(2, np.float32), (23, np.float32), (43, np.float64)])
def test_equals_scipy(path, metric, clients, dtype, tmp_path):
  vectors = noise(0, clients, 200, dtype=dtype)
  found = distances_lib.pairwise_distances(vectors, metric)
  assert found.dtype == np.float64
  np.testing.assert_allclose(found, scipy_distances(vectors, metric), rtol=1e-5, atol=0)
  np.testing.assert_array_equal(found, found.T)
  np.testing.assert_array_equal(np.diag(found), 0.0)
  np.save(tmp_path / 'x.npy', vectors)
  mapped = np.load(tmp_path / 'x.npy', mmap_mode='r')
  in_tiny_blocks = distances_lib.pairwise_distances(mapped, metric, block_bytes=1)
  np.testing.assert_allclose(in_tiny_blocks, found, rtol=1e-5)
  np.testing.assert_array_equal(distances_lib.pairwise_distances(vectors[:1], metric), [[0.0]])


def near_duplicates(offset, gap):
  """Groups of four that are much closer to each other than to the rest, far off the origin."""
  return offset + np.repeat(noise(1, 5, 120, dtype=WIDE), 4, axis=0) + gap * noise(2, 20, 120, dtype=WIDE)


def groups_within_groups():
  """Two groups of two of two, apart by 1, 1e-6 and 1e-12: centring once on a member still cancels."""
  gaps = zip((1.0, 1e-6, 1e-12), noise(11, 3, 45, dtype=WIDE), strict=True)
  return sum(
    gap * axis * (np.arange(8)[:, None] >> (2 - level) & 1) for level, (gap, axis) in enumerate(gaps)
  )


CANCELLING = {
  **{f'{o:g} {g:g}': near_duplicates(o, g) for o in (0.0, 1e6) for g in (1.0, 1e-2, 1e-6)},
  # Client k lies 10**-k away from the origin: each pair of neighbours cancels at its own level.
  'every scale at once': noise(3, 12, 60, dtype=WIDE) * 10.0 ** -np.arange(12)[:, None],
  'groups within groups within groups': groups_within_groups(),
  # Squares in float32 leave their range.
  **{f'scaled by {scale:g}': noise(4, 9, 80) * np.float32(scale) for scale in (1e-30, 1e37)},
  'one diverged client': noise(5, 10, 90) * np.where(np.arange(10) == 3, np.float32(1e7), 1)[:, None],
}


@pytest.mark.parametrize('vectors', CANCELLING.values(), ids=CANCELLING)
def test_euclidean_where_norms_cancel_or_leave_their_range(path, vectors):
  wide = vectors.astype(np.float64)
  exact = np.linalg.norm(wide[:, None] - wide[None], axis=2)
  np.testing.assert_allclose(distances_lib.pairwise_distances(vectors, 'l2'), exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize('gap', [1e-1, 1e-5])
def test_cosine_near_parallel_and_without_a_direction(path, gap):
  # In the plane of two orthonormal axes the angle is known, and 1 - cos(a) = 2 sin(a / 2)**2 does not cancel.
  axes = np.linalg.qr(noise(6, 70, 2, dtype=WIDE))[0].T
  angles = np.array([0.0, gap, 2.5 * gap, 1.2, 1.2 + gap])
  lengths = np.array([1.0, 30.0, 0.2, 5.0, 1e4])
  vectors = lengths[:, None] * (np.cos(angles)[:, None] * axes[0] + np.sin(angles)[:, None] * axes[1])
  exact = np.ones((7, 7))
  exact[:5, :5] = 2.0 * np.sin(np.subtract.outer(angles, angles) / 2.0) ** 2
  exact[5:, 5:] = 0.0  # Two zero vectors.
  found = distances_lib.pairwise_distances(np.vstack([vectors, np.zeros((2, 70))]), 'cosine')
  np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-18)


@pytest.mark.parametrize('gap', [1e-3, 1e-5])
def test_cosine_of_float32_vectors_that_are_all_nearly_parallel(path, gap):
  vectors = (noise(7, 1, 4000) + gap * noise(8, 20, 4000)).astype(np.float32)
  wide = vectors.astype(WIDE)
  unit = wide / np.sqrt(np.square(wide).sum(axis=1, keepdims=True))
  exact = scipy_distance.cdist(unit, unit, 'sqeuclidean') / 2.0
  np.testing.assert_allclose(pairwise_distances(vectors, 'cosine'), exact, rtol=1e-5, atol=1e-18)


@pytest.mark.parametrize('metric', METRICS)
def test_duplicates_are_exactly_zero_apart(path, metric):
  vectors = noise(7, 30, 110)
  vectors[10:20] = vectors[3]
  vectors[20:22] = vectors[25]
  found = distances_lib.pairwise_distances(vectors, metric)
  np.testing.assert_array_equal(found == 0.0, (vectors[:, None] == vectors[None]).all(axis=2))
  np.testing.assert_array_equal(distances_lib.pairwise_distances(vectors[10:20], metric), 0.0)


def test_ties_of_small_inputs_are_ties():
  # A 3-4-5 lattice: every distance that is 5 on paper is 5 exactly, and equal distances are equal.
  points = np.array([[0, 0], [3, 4], [4, 3], [5, 0], [0, 5]], np.float32)
  found = distances_lib.pairwise_distances(points, 'l2')
  np.testing.assert_array_equal(found[0, 1:], 5.0)


def test_overflow_and_unknown_metric_are_told(path):
  refused(
    distances_lib.pairwise_distances,
    (np.array([[1e200, 0.0], [0.0, 1e200]]), 'l2', 'l2 distances of these vectors overflow'),
    (np.ones((2, 2)), 'manhattan', "metric 'manhattan': allowed are l1, l2, cosine"),
  )


@settings(max_examples=40)
@given(
  hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 7), st.integers(1, 5)),
    elements=st.integers(-3, 3).map(float) | st.floats(-1e3, 1e3, width=32).filter(lambda v: abs(v) > 1e-3),
  )
)
def test_blocked_euclidean_of_anything(vectors):
  blocked = np.sqrt(distances_lib._squared_l2(vectors, None, 1))
  exact = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
  np.testing.assert_allclose(blocked, exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize('metric', METRICS)
@pytest.mark.parametrize('tile_rows', [8, 1024])
def test_the_number_of_cores_does_not_matter(monkeypatch, metric, tile_rows):
  monkeypatch.setattr(distances_lib, '_PDIST_WORK', -1)
  monkeypatch.setattr(distances_lib, '_TILE_ROWS', tile_rows)
  monkeypatch.setattr(distances_lib, '_PRODUCT_COLUMNS', 64)
  vectors = noise(2, 20, 700)
  results = []
  for cores in (1, 2, 5):
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid, cores=cores: set(range(cores)))
    results.append(distances_lib.pairwise_distances(vectors, metric))
  np.testing.assert_array_equal(results[1:], [results[0]] * 2)


def test_memory_decides_how_many_blocks_are_worked_on_at_once(monkeypatch):
  monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: set(range(8)))
  assert distances_lib._threads(100, 16 * 100 * 16384, 16384) == 1
  assert distances_lib._threads(100, 3 * 16 * 100 * 16384, 16384) == 3
  assert distances_lib._threads(100, 2**40, 16384) == 8
  assert distances_lib._threads(10**6, 1, 16384) == 1


@pytest.mark.parametrize('metric', METRICS)
@pytest.mark.parametrize(('dtype', 'block_bytes'), [(np.float32, BLOCK_BYTES), (np.float64, 1000)])
def test_cross_distances_equal_scipys(tmp_path, metric, dtype, block_bytes):
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


def test_bad_input_is_told_in_one_line():
  refused(
    cross_distances,
    (np.ones((2, 3)), np.ones((1, 3)), 'l3', "metric 'l3': allowed are l1, l2, cosine"),
    (np.ones((2, 3)), np.ones((1, 4)), 'l2', 'vectors of 3 and of 4 features'),
    (np.full((1, 2), 1e200), np.ones((1, 2)), 'cosine', 'the cosine distances of these vectors overflow'),
    (np.full((1, 2), 1e308), np.full((1, 2), -1e308), 'l1', 'the l1 distances of these vectors overflow'),
  )


@settings(max_examples=100)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.floats(0, 0.5))
def test_components_equal_scipys(size, seed, density):
  links = np.random.default_rng(seed).random((size, size)) < density
  links |= links.T
  found = connected_components.components(links)
  _, expected = csgraph.connected_components(links, directed=False)
  np.testing.assert_array_equal(together(found), together(expected))
  _, first = np.unique(found, return_index=True)
  assert (np.diff(first) > 0).all() and found[0] == 0
