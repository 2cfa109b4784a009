"""Each client's own model: the mean of the models of its clusters (Rohith et al. 2020, section 5.2.4)."""

import numpy as np

from tff_cluster.aggregation.rule import CLIENTS, MixingRule


def own(shares: np.ndarray) -> np.ndarray:
  """Returns float64[clusters, clients]: a client's model is the mean of its clusters' models, weighted by its shares.

  Args:
    shares: float64[clusters, clients], what a client has of each of its clusters (1 for all of them where clusters are not
      soft), no empty column.
  """
  return shares / shares.sum(axis=0)


RULE = MixingRule(
  name='own', words='own model of each client', function=own, position=1, roles=frozenset({CLIENTS})
)
