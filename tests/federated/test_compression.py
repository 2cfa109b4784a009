"""Quantization of one client's vector against NumPy."""

import numpy as np
import pytest
from scipy import stats

from tff_cluster.base.errors import InputError

FEATURES = 2000
VECTOR = np.random.default_rng(0).normal(size=FEATURES).astype(np.float32)
SEED = [3, 4]

pytestmark = pytest.mark.tensorflow


def quantized(bits, rounding, features=FEATURES):
  from tff_cluster.federated import compression

  return compression.Quantized(features, bits, rounding)


@pytest.mark.parametrize(
  ('bits', 'rounding'), [(3, 'nearest'), (16, 'nearest'), (1, 'random'), (8, 'random')]
)
def test_numbers_go_to_the_nearest_level_or_up_or_down_and_are_right_on_average(tff_context, bits, rounding):
  found = quantized(bits, rounding).receive(VECTOR, SEED)
  assert len(np.unique(found)) <= 2**bits
  low, high = VECTOR.min().astype(np.float64), VECTOR.max().astype(np.float64)
  assert found.min() == pytest.approx(low) and found.max() == pytest.approx(high)
  # Where each number was between level 0 and level 2**bits - 1, and where it is.
  place, raw = ((array.astype(np.float64) - low) / (high - low) * (2**bits - 1) for array in (VECTOR, found))
  number = raw.round()
  assert np.abs(raw - number).max() < 0.02
  if rounding == 'nearest':
    # Where a number lies halfway between two levels, float32 and float64 may differ.
    assert np.abs(number - place).max() < 0.5 + 0.02
    return
  assert (number >= np.floor(place - 1e-3)).all() and (number <= np.ceil(place + 1e-3)).all()
  share = place - np.floor(place)
  up = (number - np.floor(place)).sum()
  assert abs(up - share.sum()) < stats.norm.isf(1e-6) * np.sqrt((share * (1 - share)).sum())


def test_seeds_name_the_rounding(tff_context):
  channel = quantized(2, 'random')
  one = channel.receive(VECTOR, SEED)
  assert np.array_equal(one, channel.receive(VECTOR, SEED))
  assert np.array_equal(one, quantized(2, 'random').receive(VECTOR, SEED))
  assert not np.array_equal(one, channel.receive(VECTOR, [3, 5]))


@pytest.mark.parametrize('rounding', ['nearest', 'random'])
def test_equal_numbers_and_extremes_come_back(tff_context, rounding):
  channel = quantized(1, rounding, 3)
  for vector in ([2.5, 2.5, 2.5], [-1.0, 3.0, 3.0], [0.0, 0.0, 0.0]):
    assert channel.receive(np.array(vector, np.float32), SEED).tolist() == vector


@pytest.mark.parametrize('bits', [1, 5, 12, 16])
def test_bytes_are_those_of_28_bits_in_every_32(bits):
  # 2000 numbers of `bits` bits in words of 4 bytes, and two extremes of 4 bytes; a few words are padding.
  words = (quantized(bits, 'nearest').num_bytes - 8) / 4
  assert words == quantized(bits, 'random').num_bytes / 4 - 2
  assert 0 <= words - FEATURES * bits / 28 < 4


def test_wrong_arguments():
  for bits, rounding, message in (
    (0, 'nearest', '0 bits: TFF quantizes to 1 to 16'),
    (8, 'up', "rounding 'up': allowed are nearest, random"),
  ):
    with pytest.raises(InputError, match=message):
      quantized(bits, rounding)
