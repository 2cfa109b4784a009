"""Everything that a single client's vector can go through on its way to the server, built once."""

from typing import Any

import numpy as np

from tff_cluster.federated import compression, privacy


class Aggregators:
  """TFF's aggregators for a cohort of one. Each is built when it is first needed; needs an installed TFF context."""

  def __init__(self):
    self._built: dict[tuple[Any, ...], Any] = {}

  def noisy(
    self, vector: np.ndarray, seed: np.ndarray, clip_norm: float, noise_multiplier: float
  ) -> np.ndarray:
    """Returns float32[features]; see privacy.Privatized.receive."""
    return self._made(privacy.Privatized, len(vector)).receive(vector, seed, clip_norm, noise_multiplier)

  def quantized(self, vector: np.ndarray, seed: np.ndarray, bits: int, rounding: str) -> np.ndarray:
    """Returns float32[features]; see compression.Quantized.receive."""
    return self._made(compression.Quantized, len(vector), bits, rounding).receive(vector, seed)

  def num_bytes(self, features: int, bits: int) -> int:
    """Returns the bytes that a client sends; rounding does not change them."""
    return self._made(compression.Quantized, features, bits, compression.ROUNDINGS[0]).num_bytes

  def _made(self, kind: type, *arguments: Any) -> Any:
    key = (kind, *arguments)
    if key not in self._built:
      self._built[key] = kind(*arguments)
    return self._built[key]
