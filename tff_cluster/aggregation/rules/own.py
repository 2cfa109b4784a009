"""Each client's own model: the mean of the models of its clusters (Rohith et al. 2020, section 5.2.4)."""

import numpy as np

from tff_cluster.aggregation.rule import CLIENTS, MixingRule


def own(membership: np.ndarray) -> np.ndarray:
  """Returns float64[clusters, clients]: a client's model is the mean of its clusters' models.

  Args:
    membership: float64[clusters, clients], 1 for members, no empty column.
  """
  return membership / membership.sum(axis=0)


RULE = MixingRule(
  name='own', words='own model of each client', function=own, position=1, roles=frozenset({CLIENTS})
)
