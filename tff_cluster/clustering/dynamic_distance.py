"""Dynamic distance-based clustering (Rohith et al. 2020, section 5.2 and Algorithm 2).

Devices within a threshold of each other are linked. A cluster is a set of devices of which any two are linked
(the threshold is "the maximum distance between two different devices contained within a cluster"), and no
cluster is a subset of another: the maximal cliques of the threshold graph, as the worked example 5.2.2 shows. A
device may be in several clusters; a device without a neighbour is a cluster of its own.

Departures and choices: Algorithm 2 read literally gives every device's neighbourhood instead, in which two
devices may be further apart than the threshold; with subsets and duplicates removed, this is the variant
'neighbourhoods'. The threshold is the mean of the distances of all pairs, or what is asked for. The number of
maximal cliques can grow exponentially, so there is a cap on the clusters. Groups of which all are linked and that
are linked to nobody else are found without a search, however large they are; where a search is needed, the links
themselves are capped, because its graph takes some hundred bytes a link.
"""

import networkx as nx
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from tff_cluster.assignment import ClusterAssignment
from tff_cluster.clustering import components as components_lib
from tff_cluster.clustering import distances as distances_lib
from tff_cluster.clustering import thresholds
from tff_cluster.clustering.outcome import Outcome, by_first_member
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.config import VARIANTS, ClusteringConfig
from tff_cluster.errors import InputError

_MOST_SEARCHED_LINKS = 2_000_000


def clusters_of_links(links: np.ndarray, variant: str, max_clusters: int) -> np.ndarray:
  """Returns the clusters of a threshold graph.

  Args:
    links: bool[clients, clients], symmetric; the diagonal does not matter.
    variant: 'cliques' (maximal cliques) or 'neighbourhoods' (each client with all of its neighbours, without
      those that are part of another).
    max_clusters: The most clusters that are allowed.

  Returns:
    float64[clusters, clients], 1.0 where a client is a member.

  Raises:
    InputError: if the variant is unknown, as soon as there are more than max_clusters clusters, or if more than
      two million links would have to be searched for cliques.
  """
  if variant not in VARIANTS:
    raise InputError(f'variant {variant!r}: allowed are {", ".join(VARIANTS)}')
  clients = len(links)
  if variant == 'neighbourhoods':
    found = _neighbourhoods(links)
    if len(found) > max_clusters:
      raise InputError(_too_many(len(found), links, 'neighbourhoods', max_clusters))
    return found
  rows = []
  tangled = np.zeros(clients, bool)
  component = components_lib.components(links)
  for members in np.split(np.argsort(component, kind='stable'), np.cumsum(np.bincount(component))[:-1]):
    if _all_linked(links, members):
      rows.append(members)
    else:
      tangled[members] = True
  searched = _links_among(links, tangled)
  if searched > _MOST_SEARCHED_LINKS:
    raise InputError(
      f'{searched:,} links would have to be searched for cliques, at most {_MOST_SEARCHED_LINKS:,} can be; give a '
      'smaller distance_threshold, or variant=neighbourhoods'
    )
  if len(rows) > max_clusters:
    raise InputError(_too_many(len(rows), links, 'maximal cliques so far', max_clusters))
  graph = nx.Graph()
  graph.add_nodes_from(np.flatnonzero(tangled).tolist())
  for client in np.flatnonzero(tangled).tolist():
    others = np.flatnonzero(links[client, client + 1 :]) + client + 1
    graph.add_edges_from((client, other) for other in others.tolist())
  for clique in nx.find_cliques(graph):
    rows.append(np.array(clique))
    if len(rows) > max_clusters:
      raise InputError(_too_many(len(rows), links, 'maximal cliques so far', max_clusters))
  membership = np.zeros((len(rows), clients))
  for row, members in zip(membership, rows, strict=True):
    row[members] = 1.0
  return membership


def dynamic_distance(
  signatures: Signatures, threshold: str = 'mean', variant: str = 'cliques', max_clusters: int = 1000
) -> tuple[ClusterAssignment, float | None]:
  """Clusters by Algorithm 2 under Euclidean distance.

  Args:
    signatures: The clients' vectors.
    threshold: 'mean' (of all pairwise distances), a number as text, or 'quantile:q'. Clients are linked whose
      distance is at most this.
    variant: See `clusters_of_links`.
    max_clusters: See `clusters_of_links`.

  Returns:
    The clustering, overlapping in general, and the threshold (None where one client has no distances).

  Raises:
    InputError: see `clusters_of_links`; also if the threshold cannot be read.
  """
  distances = signatures.distances('l2')
  limit = thresholds.resolve(threshold, distances)
  links = distances <= (0.0 if limit is None else limit)
  try:
    membership = clusters_of_links(links, variant, max_clusters)
  except InputError as error:
    given = f'distance threshold {limit:.4g}' if limit is not None else 'one client'
    raise InputError(f'{given}: {error}') from error
  return ClusterAssignment(membership, signatures.client_ids), limit


def from_config(config: ClusteringConfig, signatures: Signatures, seed: int) -> Outcome:
  """Returns the clustering that the configuration asks for."""
  del seed  # Nothing is drawn.
  text = config.distance_threshold or 'mean'
  assignment, threshold = dynamic_distance(signatures, text, config.variant, config.max_clusters)
  if threshold is None or signatures.num_clients == 1:
    return Outcome(assignment, threshold)
  pairs = distances_lib.condensed(signatures.distances('l2'))
  memberships = assignment.membership.sum() / assignment.num_clients
  kind = 'maximal clique' if config.variant == 'cliques' else 'neighbourhood'
  kind += '' if assignment.num_clusters == 1 else 's'
  notes = [
    f'threshold {threshold:.4g} ({thresholds.describe(text)}) gives {assignment.num_clusters} {kind}, '
    f'{memberships:.1f} memberships a client'
  ]
  if assignment.num_clusters == assignment.num_clients and not assignment.is_overlapping:
    notes.append(f'every client is alone: the threshold is below the smallest distance {pairs.min():.4g}')
  elif assignment.num_clusters == 1:
    notes.append('all clients are in one cluster')
  return Outcome(assignment, threshold, notes=tuple(notes))


class DynamicDistanceClustering(BaseEstimator):
  """`dynamic_distance` as a scikit-learn estimator; rows of X are clients.

  It is no ClusterMixin: clusters overlap in general, and then there are no labels to predict, which scikit-learn
  demands of a clusterer.

  Attributes:
    membership_: float64[clusters, clients], 1.0 where the client is a member.
    labels_: int64[clients], only after a fit whose clusters are disjoint.
    threshold_: float, or None where one client has no distances.
    n_features_in_: int.
  """

  def __init__(
    self, distance_threshold: str | float = 'mean', variant: str = 'cliques', max_clusters: int = 1000
  ):
    self.distance_threshold = distance_threshold
    self.variant = variant
    self.max_clusters = max_clusters

  def fit(self, X: np.ndarray, y: object = None) -> 'DynamicDistanceClustering':
    """Clusters the rows of X, float[clients, features]; y is ignored."""
    X = validate_data(self, X, dtype=(np.float64, np.float32))
    assignment, self.threshold_ = dynamic_distance(
      Signatures.numbered(X), str(self.distance_threshold), self.variant, self.max_clusters
    )
    self.membership_ = assignment.membership
    if not assignment.is_overlapping:
      self.labels_ = by_first_member(assignment.labels)
    elif hasattr(self, 'labels_'):
      del self.labels_
    return self


def _all_linked(links: np.ndarray, members: np.ndarray) -> bool:
  """Tells whether any two of a connected component's members are linked."""
  # A client has no link out of its component, so counting its links is enough.
  return all(links[k].sum() - links[k, k] == len(members) - 1 for k in members)


def _links_among(links: np.ndarray, chosen: np.ndarray) -> int:
  """Returns the number of links of the chosen clients, bool[clients], each of which has none to the others."""
  return sum(int(links[k].sum() - links[k, k]) for k in np.flatnonzero(chosen)) // 2


def _neighbourhoods(links: np.ndarray) -> np.ndarray:
  closed = np.array(links, np.float64)
  np.fill_diagonal(closed, 1.0)
  closed = np.unique(closed, axis=0)
  shared = closed @ closed.T
  part_of = shared == closed.sum(axis=1)[:, None]
  np.fill_diagonal(part_of, False)
  return closed[~part_of.any(axis=1)]


def _too_many(found: int, links: np.ndarray, what: str, max_clusters: int) -> str:
  clients = len(links)
  share = _links_among(links, np.ones(clients, bool)) / max(clients * (clients - 1) // 2, 1)
  return (
    f'{found} {what}, more than max_clusters={max_clusters} ({share:.0%} of the pairs of {clients} clients are '
    'linked); give a smaller distance_threshold or a higher max_clusters'
  )
