"""Clipping and noise of one client's vector against NumPy and the normal distribution."""

import numpy as np
import pytest
from scipy import stats

pytestmark = pytest.mark.tensorflow

FEATURES = 4000
VECTOR = (np.arange(FEATURES, dtype=np.float32) - 1234) / 1000
NORM = float(np.linalg.norm(VECTOR.astype(np.float64)))


@pytest.fixture(scope='module')
def privatized(tff_context):
  from tff_cluster.federated import privacy

  return privacy.Privatized(FEATURES)


def test_without_noise_and_below_the_clip_norm_the_vector_comes_back(privatized):
  # At a power of two: TFF multiplies by clip / clip, which elsewhere can be a bit off 1.
  assert np.array_equal(privatized.receive(VECTOR, [3, 4], 2.0**20, 0.0), VECTOR)
  np.testing.assert_allclose(privatized.receive(VECTOR, [3, 4], NORM * 1.1, 0.0), VECTOR, rtol=1e-6)


def test_a_longer_vector_is_scaled_down_to_the_clip_norm(privatized):
  found = privatized.receive(VECTOR, [3, 4], 7.0, 0.0)
  np.testing.assert_allclose(found, VECTOR.astype(np.float64) * 7.0 / NORM, rtol=1e-5, atol=1e-9)


def test_noise_is_normal_with_standard_deviation_z_times_c(privatized):
  noise = privatized.receive(VECTOR, [5, 6], 0.125, 3.0) - privatized.receive(VECTOR, [5, 6], 0.125, 0.0)
  scaled = noise.astype(np.float64) / (3.0 * 0.125)
  # Both have a chance of one in a million or so to fail for a true normal, and the seed is fixed.
  low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], FEATURES)
  assert low < np.sum(scaled**2) < high
  assert stats.kstest(scaled, 'norm').pvalue > 1e-6
  assert abs(np.corrcoef(scaled[1:], scaled[:-1])[0, 1]) < 5 / np.sqrt(FEATURES)


def test_seeds_name_the_noise_in_any_process(privatized):
  from tff_cluster.federated import privacy

  def noise(seed, process=privatized):
    return process.receive(np.zeros(FEATURES, np.float32), seed, 1.0, 1.0)

  one = noise([7, 8])
  assert np.array_equal(one, noise([7, 8]))
  assert np.array_equal(one, noise([7, 8], privacy.Privatized(FEATURES)))
  for other in ([7, 9], [8, 8], [8, 7]):
    assert abs(np.corrcoef(one, noise(other))[0, 1]) < 5 / np.sqrt(FEATURES)


def test_the_aggregator_sums_over_a_cohort_and_moves_its_seed_on(privatized):
  # It is TFF's aggregator, so it also serves a round of several clients: each clipped, noise once.
  state = privatized.process.initialize()
  state = state._replace(
    query_state=state.query_state._replace(l2_norm_clip=np.float32(1.0), stddev=np.float32(0.0))
  )
  two = privatized.process.next(state, [VECTOR, -2 * VECTOR])
  np.testing.assert_allclose(np.asarray(two.result), np.zeros(FEATURES), atol=1e-6)
  assert np.asarray(two.state.query_state.seed).tolist() == [0, 1]
