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

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base import words
from tff_cluster.base.errors import InputError
from tff_cluster.base.fields import option
from tff_cluster.clustering import connected_components as connected_components_lib
from tff_cluster.clustering import thresholds
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Evidence, Method, Newcomers
from tff_cluster.clustering.method_options import OnSignatures, WithThreshold
from tff_cluster.clustering.outcome import Joined, Outcome

if TYPE_CHECKING:
  from tff_cluster.clustering.replay import Grid

VARIANTS = ('cliques', 'neighbourhoods')
_THRESHOLDS = ('mean', 'quantile:0.05', 'quantile:0.1', 'quantile:0.2')
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
  import networkx as nx

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
  for members in connected_components_lib.groups(links):
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


@dataclasses.dataclass(frozen=True)
class Options(WithThreshold, OnSignatures):
  """The options of dynamic distance."""

  variant: str = option(
    'cliques',
    'Maximal cliques of the threshold graph, or neighbourhoods (Algorithm 2 read literally).',
    choices=VARIANTS,
  )
  max_clusters: int = option(1000, 'Stop with an error when there are more clusters than this.', at_least=1)


class DynamicDistanceClustering(Method[Options]):
  """Maximal cliques, or neighbourhoods, of clients within a Euclidean distance (Algorithm 2); see `clusters_of_links`."""

  name = 'dynamic_distance'
  title = 'dynamic distance'
  options_type = Options
  overlaps = True
  dial = 'distance_threshold'

  def check(self, options: Options) -> None:
    """Raises InputError where the threshold cannot be read."""
    thresholds.parse_threshold(options.distance_threshold or 'mean')

  def cluster(self, options: Options, evidence: Evidence) -> Outcome:
    """Returns the clusters, overlapping in general; links are Euclidean distances of at most the threshold."""
    from tff_cluster.clustering import distances as distances_lib

    signatures, text = evidence.signatures, options.distance_threshold or 'mean'
    distances = signatures.distances('l2')
    threshold = thresholds.resolve(text, distances)
    links = distances <= (0.0 if threshold is None else threshold)
    try:
      membership = clusters_of_links(links, options.variant, options.max_clusters)
    except InputError as error:
      given = f'distance threshold {threshold:.4g}' if threshold is not None else 'one client'
      raise InputError(f'{given}: {error}') from error
    assignment = ClusterAssignment(membership, signatures.client_ids)
    if threshold is None or signatures.num_clients == 1:
      return Outcome(assignment, threshold)
    pairs = distances_lib.condensed(distances)
    memberships = assignment.membership.sum() / assignment.num_clients
    kind = 'maximal clique' if options.variant == 'cliques' else 'neighbourhood'
    notes = [
      f'threshold {threshold:.4g} ({thresholds.describe(text)}) gives {words.plural(assignment.num_clusters, kind)}, '
      f'{memberships:.1f} memberships a client'
    ]
    if assignment.num_clusters == assignment.num_clients and not assignment.is_overlapping:
      notes.append(f'every client is alone: the threshold is below the smallest distance {pairs.min():.4g}')
    elif assignment.num_clusters == 1:
      notes.append('all clients are in one cluster')
    return Outcome(assignment, threshold, notes=tuple(notes))

  def join(self, options: Options, newcomers: Newcomers) -> Joined:
    """Returns every cluster that keeps its definition with the newcomer.

    With cliques these are the clusters all of whose members are within the threshold, with neighbourhoods those of which
    a centre (a member that is linked with all others) is. Where there is none, it is the cluster whose farthest member
    is nearest, and that is told; all of them where this is the same member of several.
    """
    from tff_cluster.clustering import newcomer_rules

    distances, across, members = newcomer_rules.euclidean(newcomers)
    limit = 0.0 if newcomers.threshold is None else newcomers.threshold
    farthest = np.stack([across[rows].max(axis=0) for rows in members])
    if options.variant == 'cliques':
      member = farthest <= limit
    else:
      nearest_centre = []
      for rows in members:
        centres = rows[(distances[np.ix_(rows, rows)] <= limit).all(axis=1)]
        nearest_centre.append(across[centres].min(axis=0, initial=np.inf))
      member = np.stack(nearest_centre) <= limit
    fallback = ~member.any(axis=0)
    member[:, fallback] = (farthest == farthest.min(axis=0))[:, fallback]
    return Joined(member, fallback)

  def alternatives(self, num_clients: int) -> list[dict[str, Any]]:
    """Returns the mean threshold and the quantiles 0.05, 0.1 and 0.2."""
    return [{'distance_threshold': text} for text in _THRESHOLDS] if num_clients > 1 else []

  def questions(self, grid: 'Grid', num_clients: int) -> Iterator[dict[str, Any]]:
    """Yields each threshold."""
    return ({'distance_threshold': text} for text in grid.distance_thresholds)


METHOD = DynamicDistanceClustering()


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
