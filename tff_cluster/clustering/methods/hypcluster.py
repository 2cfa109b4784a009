"""HypCluster (Mansour et al. 2020, "Three Approaches for Personalization with Applications to Federated Learning", Algorithm 2).

As IFCA, but the server weighs each client of a model by its training rows, which is FedAvg of these clients (McMahan et al. 2017).

Departure: the paper draws the clients of a round with replacement and leaves their work open; here a round is FedAvg's.
"""

from tff_cluster.clustering.methods.ifca import IFCA


class HypCluster(IFCA):
  """Each client trains the model that fits its training rows best, and weighs by its number of rows in the mean."""

  name = 'hypcluster'
  title = 'HypCluster'
  equal = False


METHOD = HypCluster()
