"""One set of aggregators for vectors of any length, and what of them is stock TFF."""

import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow

VECTOR = np.random.default_rng(1).normal(size=300).astype(np.float32)
SEED = np.array([1, 2], np.int32)


def test_each_aggregator_is_built_once_and_for_its_length(tff_context, monkeypatch):
  from tff_cluster.federated import compression, single_client

  built = []
  quantized = compression.Quantized

  class Counted(quantized):
    def __init__(self, *arguments):
      built.append(arguments)
      super().__init__(*arguments)

  monkeypatch.setattr(compression, 'Quantized', Counted)
  channels = single_client.Aggregators()
  for vector in (VECTOR, VECTOR[:7], VECTOR):
    assert channels.noisy(vector, SEED, 2.0**10, 0.0).tolist() == vector.tolist()
    found = channels.quantized(vector, SEED, 2, 'nearest')
    assert len(np.unique(found)) <= 4 and found.shape == vector.shape
  assert channels.num_bytes(300, 2) < channels.num_bytes(300, 4) < VECTOR.nbytes
  assert sorted(built) == [(7, 2, 'nearest'), (300, 2, 'nearest'), (300, 4, 'nearest')]


def test_rounding_to_the_nearest_level_is_stock_tff(tff_context):
  import tensorflow_federated as tff

  from tff_cluster.federated import compression

  factory = tff.aggregators.EncodedSumFactory.quantize_above_threshold(3, 0, stochastic=False)
  process = factory.create(tff.TensorType(np.float32, [300]))
  stock = np.asarray(process.next(process.initialize(), [VECTOR]).result)
  assert np.array_equal(compression.Quantized(300, 3, 'nearest').receive(VECTOR, SEED), stock)
