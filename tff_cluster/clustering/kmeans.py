"""K-means (Rohith et al. 2020, section 5.1 and Algorithm 1), by scikit-learn.

Departures and choices: fifty k-means++ starts of which the best is kept (the paper places centroids at random),
and iterations go on until no client changes its cluster, as Algorithm 1 says.
"""

import warnings

import numpy as np
import threadpoolctl
from sklearn import cluster as sklearn_cluster
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from tff_cluster import seeding
from tff_cluster.assignment import ClusterAssignment
from tff_cluster.clustering import counted
from tff_cluster.clustering.outcome import Outcome, by_first_member
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.config import ClusteringConfig
from tff_cluster.errors import InputError

# Ten, scikit-learn's old default, miss the planted groups of the demo, whose inertia is lower than what they find.
_STARTS = 50


def kmeans(signatures: Signatures, num_clusters: int, random_state: int) -> tuple[np.ndarray, float]:
  """Clusters by K-means under Euclidean distance.

  Vectors with more features than there are clients are first mapped, without changing a distance, to at most
  clients - 1 coordinates. One thread is used, so the result does not depend on the machine's cores.

  Args:
    signatures: The clients' vectors.
    num_clusters: K; fewer clusters come back where there are fewer distinct vectors.
    random_state: Seed of the starts.

  Returns:
    labels int64[clients], numbered by first member, and the inertia (sum of squared distances to the centres).

  Raises:
    InputError: if K is below 1 or above the number of clients.
  """
  counted.check_num_clusters(num_clusters, signatures.num_clients)
  # A tolerance would be relative to the spread a coordinate, and so depend on the number of coordinates.
  model = sklearn_cluster.KMeans(
    num_clusters, n_init=_STARTS, tol=0.0, algorithm='lloyd', random_state=random_state
  )
  with threadpoolctl.threadpool_limits(limits=1), warnings.catch_warnings():
    warnings.simplefilter(
      'ignore', ConvergenceWarning
    )  # Fewer distinct vectors than K: `from_config` says so.
    model.fit(signatures.coordinates())
  return by_first_member(model.labels_), float(model.inertia_)


def from_config(config: ClusteringConfig, signatures: Signatures, seed: int) -> Outcome:
  """Returns the clustering that the configuration asks for; its starts are drawn from the seed and K."""
  count = config.num_clusters
  labels, _ = kmeans(signatures, count, seeding.integer_seed(seed, 'k-means starts', count))
  assignment = ClusterAssignment.from_labels(labels, signatures.client_ids)
  return Outcome(assignment, notes=tuple(counted.notes_on_number(assignment, count)))


class KMeans(ClusterMixin, BaseEstimator):
  """`kmeans` as a scikit-learn estimator; rows of X are clients.

  Attributes:
    labels_: int64[clients].
    inertia_: float.
    n_features_in_: int.
  """

  def __init__(self, n_clusters: int = 4, random_state: int = 0):
    self.n_clusters = n_clusters
    self.random_state = random_state

  def fit(self, X: np.ndarray, y: object = None) -> 'KMeans':
    """Clusters the rows of X, float[clients, features]; y is ignored."""
    X = validate_data(self, X, dtype=(np.float64, np.float32))
    if self.n_clusters > len(X):
      raise InputError(f'n_clusters={self.n_clusters} is more than the rows of X: n_samples={len(X)}')
    self.labels_, self.inertia_ = kmeans(Signatures.numbered(X), self.n_clusters, self.random_state)
    return self
