"""One model for everybody: the mean of all cluster models (Rohith et al. 2020, section 6.3, first evaluation)."""

import numpy as np

from tff_cluster.aggregation.rule import EVERYBODY, MixingRule


def average(membership: np.ndarray) -> np.ndarray:
  """Returns float64[clusters, 1], the same share for every cluster, however many members it has.

  Args:
    membership: float64[clusters, clients].
  """
  return np.full((len(membership), 1), 1.0 / len(membership))


RULE = MixingRule(
  name='average',
  words='average of all cluster models',
  function=average,
  position=2,
  roles=frozenset({EVERYBODY}),
)
