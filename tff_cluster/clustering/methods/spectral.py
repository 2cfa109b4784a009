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

import dataclasses
import warnings
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.fields import option
from tff_cluster.clustering import connected_components as connected_components_lib
from tff_cluster.clustering import number_of_clusters
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Evidence, Method, Newcomers
from tff_cluster.clustering.method_options import OnSignatures, WithNumber
from tff_cluster.clustering.outcome import Joined, Outcome, by_first_member

if TYPE_CHECKING:
  from tff_cluster.clustering.signatures import Signatures

AFFINITIES = ('cosine', 'rbf', 'nearest_neighbors')
# As many as for k-means on the signatures themselves.
_STARTS = 50
# Neighbours that a client is linked to, itself among them, as in scikit-learn.
NEIGHBOURS = 10
# Directions at a smaller cosine distance differ by the rounding of their vectors only.
_PARALLEL = 1e-12


def affinity_matrix(signatures: 'Signatures', affinity: str) -> np.ndarray:
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
  from tff_cluster.clustering import distances as distances_lib

  pairs = distances_lib.condensed(distances)
  pairs = pairs[pairs > 0.0]
  return float(np.median(pairs)) if pairs.size else 1.0


@dataclasses.dataclass(frozen=True)
class Options(WithNumber, OnSignatures):
  """The options of spectral clustering."""

  affinity: str = option(
    'cosine',
    'Similarity of signatures: (1 + cosine) / 2, a Gaussian of their distance, or links to the ten nearest.',
    choices=AFFINITIES,
  )


class Spectral(Method[Options]):
  """Clusters by the eigenvectors of the graph of similarities, K of them, called G in the paper.

  The vectors enter through their distances only, which are computed in bounded memory. One thread is used, so the
  result does not depend on the machine's cores.
  """

  name = 'spectral'
  title = 'spectral'
  options_type = Options
  draws = True

  def check_experiment(
    self, options: Options, num_clients: int, cohort_fraction: float, words: str = ''
  ) -> None:
    """Raises InputError where there are fewer clients than clusters, or too few to have neighbours."""
    super().check_experiment(options, num_clients, cohort_fraction, words)
    if 1 < options.num_clusters < num_clients:
      _check_neighbours(options.affinity, num_clients, words)

  def cluster(self, options: Options, evidence: Evidence) -> Outcome:
    """Returns the clusters; the eigenvectors' iteration and the starts of k-means are drawn from the seed and K."""
    import threadpoolctl
    from sklearn import cluster as sklearn_cluster

    signatures, count = evidence.signatures, options.num_clusters
    number_of_clusters.check_num_clusters(count, signatures.num_clients)
    graph, labels = affinity_matrix(signatures, options.affinity), _twins(signatures, options.affinity)
    _, first = np.unique(labels, return_index=True)
    if count == 1:
      labels = np.zeros(signatures.num_clients, np.int64)
    elif len(first) > count:
      _check_neighbours(options.affinity, signatures.num_clients)
      random_state = evidence.integer_seed('spectral clustering', count)
      model = sklearn_cluster.SpectralClustering(
        count, affinity='precomputed', n_init=_STARTS, random_state=random_state
      )
      with threadpoolctl.threadpool_limits(limits=1), warnings.catch_warnings():
        # A graph in several parts is a fine one here: a note says where it is not.
        warnings.filterwarnings('ignore', 'Graph is not fully connected')
        model.fit(graph)
      # Where the K-th eigenvalue is a multiple one its eigenvectors are arbitrary, and may part twins.
      labels = by_first_member(model.labels_[first[labels]])
    assignment = ClusterAssignment.from_labels(labels, signatures.client_ids)
    notes = number_of_clusters.notes_on_number(assignment, count)
    parts = int(connected_components_lib.components(graph > 0.0).max()) + 1
    if parts > count:
      notes.append(
        f'the graph falls into {parts} parts without a link, more than the {count} clusters asked for: which parts '
        'share a cluster is left to the seed'
      )
    return Outcome(assignment, notes=tuple(notes))

  def join(self, options: Options, newcomers: Newcomers) -> Joined:
    """Returns the cluster with the highest mean affinity, under the same affinity and scale."""
    from tff_cluster.clustering import newcomer_rules

    members = newcomer_rules.members(newcomers)
    across = newcomer_rules.across(newcomers, 'cosine' if options.affinity == 'cosine' else 'l2')
    assert newcomers.known is not None
    affinity = _mean_affinity(newcomers.known.signatures, across, members, options.affinity)
    return newcomer_rules.cheapest(-affinity, across, members)


METHOD = Spectral()


def _check_neighbours(affinity: str, num_clients: int, words: str = '') -> None:
  if affinity == 'nearest_neighbors' and num_clients <= NEIGHBOURS:
    raise InputError(
      f'{argument("affinity", affinity)} links each client with the {NEIGHBOURS} nearest, itself among them, which are all of {num_clients} '
      f'clients{words}; use cosine or rbf'
    )


def _mean_affinity(
  signatures: 'Signatures', across: np.ndarray, members: list[np.ndarray], affinity: str
) -> np.ndarray:
  """Returns float64[clusters, newcomers], mean affinities, of rbf their logarithms; see affinity_matrix."""
  if affinity == 'rbf':
    import scipy.special

    # The affinities of a far newcomer are all 0, their logarithms are not.
    logs = -0.5 * (across / scale(signatures.distances('l2'))) ** 2
    return np.stack([scipy.special.logsumexp(logs[rows], axis=0) - np.log(len(rows)) for rows in members])
  near = 1.0 - 0.5 * across if affinity == 'cosine' else _near_newcomers(signatures.distances('l2'), across)
  return np.stack([near[rows].mean(axis=0) for rows in members])


def _near_newcomers(distances: np.ndarray, across: np.ndarray) -> np.ndarray:
  """Returns float64[clients, newcomers], 'nearest_neighbors' with one newcomer at a time, the last of the graph."""
  others = NEIGHBOURS - 1  # A client is its own nearest.
  to_others = distances.copy()
  np.fill_diagonal(to_others, np.inf)
  # A client's neighbours stand before a newcomer that is as far.
  nearer = np.stack([(to_others <= column[:, None]).sum(axis=1) for column in across.T], axis=1)
  rank = np.argsort(np.argsort(across, axis=0, kind='stable'), axis=0)
  return 0.5 * ((nearer < others).astype(np.float64) + (rank < others))


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


def _twins(signatures: 'Signatures', affinity: str) -> np.ndarray:
  """int64[clients]: equal numbers, in order of their first clients, where no affinity can tell clients apart."""
  metric, limit = ('cosine', _PARALLEL) if affinity == 'cosine' else ('l2', 0.0)
  return connected_components_lib.components(signatures.distances(metric) <= limit)
