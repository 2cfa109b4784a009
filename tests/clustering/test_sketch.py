"""Count sketches against the definition, and their promises: unbiased, better with dimension."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_up.clients import noise
from tests.made_up.refusals import refused
from tff_cluster.clustering import sketch


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(1, 40), st.integers(1, 12), st.integers(0, 5))
def test_is_its_definition(clients, features, dimension, seed):
  vectors = noise(seed, clients, features, dtype=np.float64)
  buckets, signs = sketch.projection(features, dimension, seed)
  by_hand = np.zeros((clients, dimension))
  for client in range(clients):
    for feature in range(features):
      by_hand[client, buckets[feature]] += signs[feature] * vectors[client, feature]
  found = sketch.sketch(vectors, dimension, seed)
  assert found.dtype == np.float32 and found.shape == (clients, dimension)
  np.testing.assert_allclose(found, by_hand, rtol=1e-6, atol=1e-6)


def test_projection_is_seeded_and_even():
  buckets, signs = sketch.projection(20_000, 16, 3)
  assert (buckets.dtype, signs.dtype) == (np.int32, np.int8)
  for again, equal in ((3, True), (4, False)):
    other = sketch.projection(20_000, 16, again)
    assert np.array_equal(other[0], buckets) == equal and np.array_equal(other[1], signs) == equal
  # 20,000 draws: each bucket expects 1,250 with a standard deviation of 34, each sign 10,000 with one of 71.
  assert np.abs(np.bincount(buckets, minlength=16) - 1250).max() < 6 * 34
  assert set(signs.tolist()) == {-1, 1} and abs(int(signs.sum())) < 6 * 142
  # Signs and buckets are independent of each other.
  assert np.abs(np.bincount(buckets, weights=signs, minlength=16)).max() < 6 * 36


def test_squared_distances_and_inner_products_are_unbiased():
  dimension = 20
  a, b = noise(1, 2, 60, dtype=np.float64)
  seeds = 1000
  sketches = np.array([sketch.sketch(np.stack([a, b]), dimension, seed) for seed in range(seeds)], np.float64)
  squared = ((sketches[:, 0] - sketches[:, 1]) ** 2).sum(axis=1)
  products = (sketches[:, 0] * sketches[:, 1]).sum(axis=1)
  for estimates, exact in ((squared, ((a - b) ** 2).sum()), (products, a @ b)):
    assert abs(estimates.mean() - exact) < 5 * estimates.std() / np.sqrt(seeds)
  assert squared.std() / ((a - b) ** 2).sum() < 1.1 * np.sqrt(2 / dimension)


def test_distortion_by_hand():
  vectors = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 8.0], [0.0, 0.0]])  # Distances 5, 8 and 5 twice, and 0.
  sketches = np.array([[0.0], [4.0], [8.0], [0.0]])  # Distances 4, 8 and 4 twice, and 0.
  found = sketch.distortion(vectors[:3], sketches[:3])
  assert (found.mean, found.maximum, found.pairs) == (pytest.approx(0.4 / 3), pytest.approx(0.2), 3)
  assert found.percentile_95 == pytest.approx(0.2)
  assert sketch.distortion(vectors, sketches).pairs == 5
  assert sketch.distortion(vectors[[0, 3]], sketches[[0, 3]]) == sketch.Distortion(0.0, 0.0, 0.0, 0)


def test_refusals():
  refused(
    sketch.sketch,
    (np.ones((2, 3)), 0, 0, 'sketch dimension 0: must be at least 1'),
    (np.ones(3), 2, 0, r'must be \[clients, features\], found shape \(3,\)'),
    (np.full((1, 3), 3e38), 1, 1, 'overflow; scale the vectors down'),
  )
  refused(sketch.projection, (0, 4, 0, 'a sketch of 0 features'), (3, 2**31, 0, r'below 2\*\*31'))
  refused(sketch.distortion, (np.ones((2, 3)), np.ones((3, 3)), '2 vectors and 3 sketches'))
