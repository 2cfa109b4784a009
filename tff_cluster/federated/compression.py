"""Quantization of what a single client sends, by TFF's encoded aggregator."""

import contextlib
import functools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from absl import logging
from tensorflow_model_optimization.python.core.internal import tensor_encoding
from tensorflow_model_optimization.python.core.internal.tensor_encoding.stages import stages_impl

from tff_cluster.base.errors import InputError

# 'nearest' is what quantize_above_threshold does with stochastic=False; 'random' is its default, but seeded: TFF's own takes no seed, and a
# worker whose operations are deterministic refuses to draw without one.
ROUNDINGS = ('nearest', 'random')


@tensor_encoding.core.tf_style_adaptive_encoding_stage
class SeededQuantizationStage(tensor_encoding.core.AdaptiveEncodingStageInterface):
  """UniformQuantizationEncodingStage with random rounding whose draws come from a seed int32[2] in its state.

  A number between two levels is rounded up with the probability that makes it right on average. Every round moves the
  seed on.
  """

  ENCODED_VALUES_KEY = stages_impl.UniformQuantizationEncodingStage.ENCODED_VALUES_KEY

  def __init__(self, bits: int):
    self._levels = stages_impl.UniformQuantizationEncodingStage(bits, stochastic=False)

  @property
  def name(self) -> str:
    return 'seeded_quantization'

  @property
  def compressible_tensors_keys(self) -> list[str]:
    return [self.ENCODED_VALUES_KEY]

  @property
  def commutes_with_sum(self) -> bool:
    return False

  @property
  def decode_needs_input_shape(self) -> bool:
    return False

  @property
  def state_update_aggregation_modes(self) -> dict:
    return {}

  def initial_state(self) -> dict:
    return {'seed': tf.zeros([2], tf.int32)}

  def update_state(self, state: dict, state_update_tensors: dict) -> dict:
    del state_update_tensors  # There are none.
    return {'seed': state['seed'] + tf.constant([0, 1])}

  def get_params(self, state: dict) -> tuple[dict, dict]:
    encode, decode = self._levels.get_params()
    return {**encode, 'seed': state['seed']}, decode

  def encode(self, x: tf.Tensor, encode_params: dict) -> tuple[dict, dict]:
    low, high = tf.reduce_min(x), tf.reduce_max(x)
    steps = tf.cast(encode_params[self._levels.MAX_INT_VALUE_PARAMS_KEY], x.dtype)
    place = tf.math.divide_no_nan(x - low, high - low) * steps
    floor = tf.floor(place)
    draw = tf.random.stateless_uniform(tf.shape(x), encode_params['seed'], dtype=x.dtype, alg='philox')
    values = floor + tf.cast(draw < place - floor, x.dtype)
    return {
      self.ENCODED_VALUES_KEY: values,
      self._levels.MIN_MAX_VALUES_KEY: tf.stack([low, high]),
    }, {}

  def decode(
    self,
    encoded_tensors: dict,
    decode_params: dict,
    num_summands: int | None = None,
    shape: tf.Tensor | None = None,
  ) -> tf.Tensor:
    return self._levels.decode(encoded_tensors, decode_params, num_summands, shape)


class Quantized:
  """What a server gets of one client whose vector is quantized. Needs an installed TFF context.

  A vector becomes its smallest and its largest number and, for each number, the number of one of 2**bits levels
  between them.

  Attributes:
    process: tff.aggregators.EncodedSumFactory's, for {float32[features]}@CLIENTS.
    num_bytes: Bytes that a client sends, as TFF packs them: 28 bits in every 32.
  """

  def __init__(self, features: int, bits: int, rounding: str):
    """Takes what determines the computations.

    Args:
      features: Numbers a vector.
      bits: Bits a number, 1 to 16.
      rounding: 'nearest', or 'random': up or down, right on average.

    Raises:
      InputError: if bits or rounding are others.
    """
    if not 1 <= bits <= 16:
      raise InputError(f'{bits} bits: TFF quantizes to 1 to 16')
    if rounding not in ROUNDINGS:
      raise InputError(f'rounding {rounding!r}: allowed are {", ".join(ROUNDINGS)}')

    def encoder(spec: tf.TensorSpec) -> tensor_encoding.core.GatherEncoder:
      made = _seeded_encoder(bits) if rounding == 'random' else _plain_encoder(bits)
      return tensor_encoding.encoders.as_gather_encoder(made, spec)

    with _without_warnings():
      factory = tff.aggregators.EncodedSumFactory(encoder)
      self.process = factory.create(tff.TensorType(np.float32, [features]))
      self.num_bytes = _sent_bytes(encoder(tf.TensorSpec([features], tf.float32)), features)

  def receive(self, vector: np.ndarray, seed: np.ndarray) -> np.ndarray:
    """Returns float32[features], the vector as the server gets it.

    Args:
      vector: float32[features].
      seed: int32[2], for random rounding.
    """
    # The only state of such a process is the seed, if it has one.
    leaves = [np.asarray(seed, np.int32) for _ in tf.nest.flatten(self._state)]
    state = tf.nest.pack_sequence_as(self._state, leaves)
    return np.asarray(self.process.next(state, [vector]).result)

  @functools.cached_property
  def _state(self) -> object:
    return self.process.initialize()


def _plain_encoder(bits: int) -> tensor_encoding.core.Encoder:
  return tensor_encoding.encoders.uniform_quantization(bits, stochastic=False)


def _seeded_encoder(bits: int) -> tensor_encoding.core.Encoder:
  """Returns what tensor_encoding.encoders.uniform_quantization composes, with the seeded stage in the middle."""
  flat, packed = stages_impl.FlattenEncodingStage(), stages_impl.BitpackingEncodingStage(bits)
  return (
    tensor_encoding.core.EncoderComposer(packed)
    .add_parent(SeededQuantizationStage(bits), SeededQuantizationStage.ENCODED_VALUES_KEY)
    .add_parent(flat, flat.ENCODED_VALUES_KEY)
    .make()
  )


def _sent_bytes(encoder: tensor_encoding.core.GatherEncoder, features: int) -> int:
  params, _, _ = encoder.get_params(encoder.initial_state())
  encoded = encoder.encode(tf.zeros([features]), params)[0]
  return sum(np.asarray(part).nbytes for part in tf.nest.flatten(encoded))


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
  """While it lasts, the packing of bits does not warn, several times for each number of bits, that it takes some memory."""
  before = logging.get_verbosity()
  logging.set_verbosity(logging.ERROR)
  try:
    yield
  finally:
    logging.set_verbosity(before)
