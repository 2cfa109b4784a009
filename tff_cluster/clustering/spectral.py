"""Spectral clustering of the clients' signatures (Miles et al. 2024, "Extensions"), by scikit-learn.

The clients are the vertices of a graph whose edges are weighted by similarity. K-means groups the rows of the first K
eigenvectors of its normalised Laplacian (Shi and Malik 2000; von Luxburg 2007).

Departures and choices: the paper says that it runs spectral clustering on the local weights, and in its related work
that its metric is cosine similarity. It leaves open how similarities become weights of edges, the Laplacian, how
eigenvectors become clusters, and the seed. Here edges have the weight (1 + cos) / 2, which is not negative, the
Laplacian is scikit-learn's symmetric one, and k-means keeps the best of fifty starts. Two other graphs can be asked
for: a Gaussian of the Euclidean distance, as wide as the median distance, and nearest neighbours (scikit-learn's ten).
Clients whose signatures are equal, or for cosine parallel, always share a cluster, so that fewer than K clusters come
back where fewer signatures differ.
"""

import warnings

import numpy as np
import threadpoolctl
from sklearn import cluster as sklearn_cluster
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from tff_cluster import seeding
from tff_cluster.assignment import ClusterAssignment
from tff_cluster.clustering import components as components_lib
from tff_cluster.clustering import counted
from tff_cluster.clustering import distances as distances_lib
from tff_cluster.clustering.outcome import Outcome, by_first_member
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.config import AFFINITIES, ClusteringConfig
from tff_cluster.errors import InputError

# As many as for k-means on the signatures themselves.
_STARTS = 50
# Neighbours that a client is linked to, itself among them, as in scikit-learn.
NEIGHBOURS = 10
# Directions at a smaller cosine distance differ by the rounding of their vectors only.
_PARALLEL = 1e-12


def affinity_matrix(signatures: Signatures, affinity: str) -> np.ndarray:
  """Returns the weights of the graph's edges.

  Args:
    signatures: The clients' vectors.
    affinity: 'cosine': (1 + cos) / 2. 'rbf': exp(-d^2 / (2 m^2)) with the Euclidean distance d and m, the median of
      the distances between clients that differ. 'nearest_neighbors': 1 where both clients are among the ten
      nearest of each other under Euclidean distance (all, where there are fewer), 1/2 where one is; a client is
      its own nearest, and of equally near ones the first count.

  Returns:
    float64[clients, clients], from 0 to 1, symmetric, ones on the diagonal.

  Raises:
    InputError: if the affinity is unknown, or a distance overflows.
  """
  if affinity == 'cosine':
    return 1.0 - 0.5 * signatures.distances('cosine')
  if affinity == 'rbf':
    return _gaussian(signatures.distances('l2'))
  if affinity == 'nearest_neighbors':
    return _neighbours(signatures.distances('l2'))
  raise InputError(f'affinity={affinity}: allowed are {", ".join(AFFINITIES)}')


def scale(distances: np.ndarray) -> float:
  """Returns m of the affinity 'rbf', the median of the distances above 0 of float[clients, clients]; 1 without any."""
  pairs = distances_lib.condensed(distances)
  pairs = pairs[pairs > 0.0]
  return float(np.median(pairs)) if pairs.size else 1.0


def spectral(
  signatures: Signatures, num_clusters: int, affinity: str = 'cosine', random_state: int = 0
) -> np.ndarray:
  """Clusters by the eigenvectors of the graph of similarities.

  The vectors enter through their distances only, which are computed in bounded memory. One thread is used, so the
  result does not depend on the machine's cores.

  Args:
    signatures: The clients' vectors.
    num_clusters: K, called G in the paper; fewer clusters come back where there are fewer distinct vectors.
    affinity: See `affinity_matrix`.
    random_state: Seed of the eigenvectors' iteration and of the starts of k-means.

  Returns:
    labels int64[clients], numbered by first member.

  Raises:
    InputError: if K is below 1 or above the number of clients, or as `affinity_matrix`.
  """
  counted.check_num_clusters(num_clusters, signatures.num_clients)
  return _cut(affinity_matrix(signatures, affinity), _twins(signatures, affinity), num_clusters, random_state)


def from_config(config: ClusteringConfig, signatures: Signatures, seed: int) -> Outcome:
  """Returns the clustering that the configuration asks for; its starts are drawn from the seed and K."""
  count = config.num_clusters
  counted.check_num_clusters(count, signatures.num_clients)
  graph = affinity_matrix(signatures, config.affinity)
  random_state = seeding.integer_seed(seed, 'spectral clustering', count)
  labels = _cut(graph, _twins(signatures, config.affinity), count, random_state)
  assignment = ClusterAssignment.from_labels(labels, signatures.client_ids)
  notes = counted.notes_on_number(assignment, count)
  parts = int(components_lib.components(graph > 0.0).max()) + 1
  if parts > count:
    notes.append(
      f'the graph falls into {parts} parts without a link, more than the {count} clusters asked for: which parts '
      'share a cluster is left to the seed'
    )
  return Outcome(assignment, notes=tuple(notes))


class Spectral(ClusterMixin, BaseEstimator):
  """`spectral` as a scikit-learn estimator; rows of X are clients.

  Attributes:
    labels_: int64[clients].
    n_features_in_: int.
  """

  def __init__(self, n_clusters: int = 4, affinity: str = 'cosine', random_state: int = 0):
    self.n_clusters = n_clusters
    self.affinity = affinity
    self.random_state = random_state

  def fit(self, X: np.ndarray, y: object = None) -> 'Spectral':
    """Clusters the rows of X, float[clients, features]; y is ignored."""
    X = validate_data(self, X, dtype=(np.float64, np.float32))
    if self.n_clusters > len(X):
      raise InputError(f'n_clusters={self.n_clusters} is more than the rows of X: n_samples={len(X)}')
    self.labels_ = spectral(Signatures.numbered(X), self.n_clusters, self.affinity, self.random_state)
    return self


def _gaussian(distances: np.ndarray) -> np.ndarray:
  # Divided before they are squared: the square of a large distance would overflow.
  with np.errstate(over='ignore', under='ignore'):
    return np.exp(-0.5 * (distances / scale(distances)) ** 2)


def _neighbours(distances: np.ndarray) -> np.ndarray:
  near = np.zeros(distances.shape)
  for client, row in enumerate(distances):
    row = row.copy()
    row[client] = -1.0
    near[client, np.argsort(row, kind='stable')[:NEIGHBOURS]] = 1.0
  return 0.5 * (near + near.T)


def _twins(signatures: Signatures, affinity: str) -> np.ndarray:
  """int64[clients]: equal numbers, in order of their first clients, where no affinity can tell clients apart."""
  metric, limit = ('cosine', _PARALLEL) if affinity == 'cosine' else ('l2', 0.0)
  return components_lib.components(signatures.distances(metric) <= limit)


def _cut(graph: np.ndarray, twins: np.ndarray, num_clusters: int, random_state: int) -> np.ndarray:
  _, first = np.unique(twins, return_index=True)
  if num_clusters == 1:
    return np.zeros(len(graph), np.int64)
  if len(first) <= num_clusters:
    return twins
  model = sklearn_cluster.SpectralClustering(
    num_clusters, affinity='precomputed', n_init=_STARTS, random_state=random_state
  )
  with threadpoolctl.threadpool_limits(limits=1), warnings.catch_warnings():
    # A graph in several parts is a fine one here: `from_config` says where it is not.
    warnings.filterwarnings('ignore', 'Graph is not fully connected')
    model.fit(graph)
  # Where the K-th eigenvalue is a multiple one its eigenvectors are arbitrary, and may part twins.
  return by_first_member(model.labels_[first[twins]])
