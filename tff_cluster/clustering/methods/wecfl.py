"""WeCFL (Ma et al. 2022, "On the Convergence of Clustered Federated Learning", arXiv 2202.06187).

As FeSEM, but the k-means objective weighs each client by its training rows: so do the means that centres move to, and the
k-means that makes the first clusters. With one cluster it is FedAvg (McMahan et al. 2017).

The paper's equations were not at hand: this follows its abstract, and public code by its authors (FedBase), with what
tff_cluster/clustering/methods/fesem.py settles and departs from. Nearest centres do not depend on the weights.
"""

from tff_cluster.clustering.methods.fesem import FeSEM


class WeCFL(FeSEM):
  """Each client belongs to the model that is nearest to what it trained to, and weighs by its number of rows in the mean."""

  name = 'wecfl'
  title = 'WeCFL'
  equal = False


METHOD = WeCFL()
