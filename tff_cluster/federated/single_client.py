"""Everything that a single client's vector can go through on its way to the server, built once."""

import functools

import numpy as np

from tff_cluster.federated import compression, privacy


class Aggregators:
  """TFF's aggregators for a cohort of one. Each is built when it is first needed; needs an installed TFF context."""

  def __init__(self):
    self._privatized = functools.cache(privacy.Privatized)
    self._quantized = functools.cache(compression.Quantized)

  def noisy(
    self, vector: np.ndarray, seed: np.ndarray, clip_norm: float, noise_multiplier: float
  ) -> np.ndarray:
    """Returns float32[features]; see privacy.Privatized.receive."""
    return self._privatized(len(vector)).receive(vector, seed, clip_norm, noise_multiplier)

  def quantized(self, vector: np.ndarray, seed: np.ndarray, bits: int, rounding: str) -> np.ndarray:
    """Returns float32[features]; see compression.Quantized.receive."""
    return self._quantized(len(vector), bits, rounding).receive(vector, seed)

  def num_bytes(self, features: int, bits: int) -> int:
    """Returns the bytes that a client sends; rounding does not change them."""
    return self._quantized(features, bits, compression.ROUNDINGS[0]).num_bytes
