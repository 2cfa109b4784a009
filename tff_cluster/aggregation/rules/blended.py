"""Cluster models that know of each other: each is averaged with the average of all (Rohith et al. 2020, section 6.3, third)."""

import numpy as np
import threadpoolctl

from tff_cluster.aggregation.rule import PICTURE, MixingRule
from tff_cluster.aggregation.rules.own import own


def blended_clusters(num_clusters: int) -> np.ndarray:
  """Returns float64[clusters, clusters]: each model becomes the mean of itself and the average."""
  return 0.5 * np.eye(num_clusters) + 0.5 / num_clusters


def blended(shares: np.ndarray) -> np.ndarray:
  """Returns float64[clusters, clients]: a client's model is the mean of its clusters' blended models, weighted by its shares.

  Args:
    shares: See `own`.
  """
  # With several threads a product of large matrices has other bits.
  with threadpoolctl.threadpool_limits(limits=1, user_api='blas'):
    return blended_clusters(len(shares)) @ own(shares)


RULE = MixingRule(
  name='blended',
  words='blended: cluster model and average, half each',
  function=blended,
  position=4,
  roles=frozenset({PICTURE}),
  of_clusters=blended_clusters,
)
