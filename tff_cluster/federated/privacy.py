"""Clipping and Gaussian noise on what a single client sends, by TFF's differentially private aggregator.

The server sees the sum of a cohort of one client: a client that trusts nobody clips and adds noise itself (local
differential privacy). In the simulation the noise is added where the sum arrives, which gives the same number.
"""

import collections
import functools
from typing import Protocol

import dp_accounting
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
import tensorflow_privacy as tfp


class SeededGaussianSumQuery(tfp.GaussianSumQuery):
  """GaussianSumQuery whose noise comes from a seed in its global state; that of TensorFlow Privacy draws anew each time.

  Every sum moves the seed on, so that two rounds of one process do not get the same noise.
  """

  _GlobalState = collections.namedtuple('_GlobalState', ['l2_norm_clip', 'stddev', 'seed'])

  def initial_global_state(self) -> _GlobalState:
    """Returns clip norm, standard deviation, and the seed int32[2], here zeros."""
    return self._GlobalState(
      tf.cast(self._l2_norm_clip, tf.float32), tf.cast(self._stddev, tf.float32), tf.zeros([2], tf.int32)
    )

  def get_noised_result(
    self, sample_state: tf.Tensor, global_state: _GlobalState
  ) -> tuple[tf.Tensor, _GlobalState, dp_accounting.DpEvent]:
    """Returns the sum float32[features] with noise, the next state, and the event for accounting."""
    noise = tf.random.stateless_normal(
      tf.shape(sample_state), global_state.seed, stddev=global_state.stddev, alg='philox'
    )
    event = dp_accounting.GaussianDpEvent(global_state.stddev / global_state.l2_norm_clip)
    next_seed = global_state.seed + tf.constant([0, 1])
    return sample_state + noise, global_state._replace(seed=next_seed), event


class _State(Protocol):
  """What is set of the state of TFF's process, a named tuple of a class that TFF does not export."""

  query_state: SeededGaussianSumQuery._GlobalState

  def _replace(self, *, query_state: SeededGaussianSumQuery._GlobalState) -> '_State': ...


class Privatized:
  """What a server gets of one client whose vector is clipped and made noisy. Needs an installed TFF context.

  One process serves all clip norms, noise multipliers and seeds: they are in its state.

  Attributes:
    process: tff.aggregators.DifferentiallyPrivateFactory's, for {float32[features]}@CLIENTS.
  """

  def __init__(self, features: int):
    factory = tff.aggregators.DifferentiallyPrivateFactory(SeededGaussianSumQuery(1.0, 0.0))
    self.process = factory.create(tff.TensorType(np.float32, [features]))

  def receive(
    self, vector: np.ndarray, seed: np.ndarray, clip_norm: float, noise_multiplier: float
  ) -> np.ndarray:
    """Returns float32[features], the vector as the server gets it.

    Args:
      vector: float32[features].
      seed: int32[2]; equal seeds give equal noise, up to the factor z * C.
      clip_norm: C: a vector with a larger Euclidean norm is scaled down to it.
      noise_multiplier: z: the noise of every number has standard deviation z * C.
    """
    query = self._state.query_state._replace(
      l2_norm_clip=np.float32(clip_norm),
      stddev=np.float32(noise_multiplier * clip_norm),
      seed=np.asarray(seed, np.int32),
    )
    return np.asarray(self.process.next(self._state._replace(query_state=query), [vector]).result)

  @functools.cached_property
  def _state(self) -> _State:
    return self.process.initialize()
