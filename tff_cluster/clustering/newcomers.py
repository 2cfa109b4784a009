"""Assigns clients that come later to clusters that are there already, each method by the rule that it clusters by.

kmeans            the cluster with the nearest mean, as in a step of Lloyd's iteration.
hierarchical      the cluster that the newcomer, a cluster of its own, would be merged with first, under the method's own
                  metric and linkage.
spectral          the cluster with the highest mean affinity, under the method's own affinity and scale.
dynamic_distance  cliques: every cluster all of whose members are within the threshold, so that a cluster stays what it
                  is; neighbourhoods: every cluster of which a centre (a member that is linked with all others) is. Where
                  there is none, the cluster whose farthest member is nearest, and it is told; all of them where that
                  is the same member of several.
bipartition       down the tree of splits, to the half with the client whose update is most similar (`descend`).

The oracle (method planted) is in planted.py. None of this is in Rohith et al. 2020, Briggs et al. 2020 or Miles et al.
2024, which have no clients that come later. Going down the tree is an idea of the authors of CFL, in a longer paper than
the one whose split this project has. Newcomers change no cluster, and none depends on
another one. Of equally good clusters the one with the nearest client counts, of those the first.
"""

from collections.abc import Callable, Sequence

import numpy as np
import scipy.special

from tff_cluster.assignment import ClusterAssignment
from tff_cluster.clustering import spectral
from tff_cluster.clustering.cross_distances import cross_distances
from tff_cluster.clustering.joined import Joined
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.config import ClusteringConfig
from tff_cluster.errors import InputError


def join(
  config: ClusteringConfig,
  signatures: Signatures,
  assignment: ClusterAssignment,
  newcomers: Signatures,
  threshold: float | None,
) -> Joined:
  """Assigns newcomers by the rule of a method that clusters signatures.

  Args:
    config: Method and its parameters.
    signatures: The vectors that were clustered.
    assignment: What was found, of the same clients in the same order; it may hold clients without a vector that is
      finite (clustering/excluded.py), which decide nothing.
    newcomers: The newcomers' vectors, made like those of the others.
    threshold: The distance threshold that dynamic_distance used; None where it had no distances.

  Raises:
    InputError: if the method does not cluster signatures, the two are not of the same clients, or a distance overflows.
  """
  if config.method not in ('kmeans', 'hierarchical', 'spectral', 'dynamic_distance'):
    raise InputError(
      f'method {config.method!r} has no rule on signatures for newcomers; allowed are kmeans, hierarchical, spectral, '
      'dynamic_distance'
    )
  members = _members(signatures, assignment)
  metric = config.metric if config.method == 'hierarchical' else 'l2'
  if config.method == 'spectral' and config.affinity == 'cosine':
    metric = 'cosine'
  across = cross_distances(signatures.vectors, newcomers.vectors, metric, signatures.block_bytes)
  if config.method == 'dynamic_distance':
    limit = 0.0 if threshold is None else threshold
    return _within(signatures.distances('l2'), across, members, limit, config.variant)
  if config.method == 'spectral':
    cost = -_affinity(signatures, across, members, config.affinity)
  elif config.method == 'hierarchical' and config.linkage != 'ward':
    cost = np.stack([_linked(across[rows], config.linkage) for rows in members])
  else:
    cost = _to_means(signatures.distances('l2'), across, members)
    if config.method == 'hierarchical':
      # Ward: by how much the sum of squares about the means grows.
      sizes = np.array([len(rows) for rows in members])[:, None]
      cost = cost * sizes / (sizes + 1)
  return _cheapest(cost, across, members)


def descend(
  parents: Sequence[int | None],
  num_newcomers: int,
  similarity: Callable[[int, np.ndarray], Sequence[np.ndarray]],
) -> np.ndarray:
  """Takes newcomers down a tree of splits: at each, to the half with the client that is most similar.

  Args:
    parents: For each cluster of the tree the position of the one that it was split from, before it; None for the first.
    num_newcomers: Number of newcomers.
    similarity: Called with a cluster that was split and int64[some], the newcomers that reach it; returns for each of
      its halves, in their order in the tree, float[clients of the half, some], the similarity of the newcomers' updates
      to the clients'. It is called once for each split that a newcomer reaches.

  Returns:
    int64[newcomers], the cluster of the tree that each ends in; it was not split.
  """
  place = np.zeros(num_newcomers, np.int64)
  # A cluster stands behind the one that it was split from, so one pass is enough.
  for node in range(len(parents)):
    halves = [child for child, parent in enumerate(parents) if parent == node]
    here = np.flatnonzero(place == node)
    if halves and len(here):
      highest = np.stack([np.max(half, axis=0) for half in similarity(node, here)])
      place[here] = np.array(halves)[np.argmax(highest, axis=0)]
  return place


def _members(signatures: Signatures, assignment: ClusterAssignment) -> list[np.ndarray]:
  """Returns int64[members] for each cluster, positions of its members among the signatures."""
  ids = set(signatures.client_ids)
  here = np.array([client_id in ids for client_id in assignment.client_ids])
  member = assignment.membership[:, here] > 0.0
  same = tuple(i for i in assignment.client_ids if i in ids) == signatures.client_ids
  if not same or not member.any(axis=1).all():
    raise InputError('signatures and clusters must be of the same clients in the same order')
  return [np.flatnonzero(row) for row in member]


def _linked(across: np.ndarray, linkage: str) -> np.ndarray:
  if linkage == 'single':
    return across.min(axis=0)
  return across.max(axis=0) if linkage == 'complete' else across.mean(axis=0)


def _cheapest(cost: np.ndarray, across: np.ndarray, members: Sequence[np.ndarray]) -> Joined:
  nearest = np.stack([across[rows].min(axis=0) for rows in members])
  chosen = np.argmin(np.where(cost == cost.min(axis=0), nearest, np.inf), axis=0)
  return Joined(np.arange(len(members))[:, None] == chosen, np.zeros(len(chosen), bool))


def _within(
  distances: np.ndarray, across: np.ndarray, members: Sequence[np.ndarray], limit: float, variant: str
) -> Joined:
  """Returns every cluster that keeps its definition with the newcomer, or those whose farthest member is nearest."""
  farthest = np.stack([across[rows].max(axis=0) for rows in members])
  if variant == 'cliques':
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


def _to_means(distances: np.ndarray, across: np.ndarray, members: Sequence[np.ndarray]) -> np.ndarray:
  """Returns float64[clusters, newcomers], squared distances to the clusters' means."""
  found = []
  for rows in members:
    # |v - mean|^2 is the mean squared distance to the members, less what they are from their mean themselves.
    spread = np.square(distances[np.ix_(rows, rows)]).mean() / 2.0
    found.append(np.square(across[rows]).mean(axis=0) - spread)
  return np.stack(found)


def _affinity(
  signatures: Signatures, across: np.ndarray, members: Sequence[np.ndarray], affinity: str
) -> np.ndarray:
  """Returns float64[clusters, newcomers], mean affinities, of rbf their logarithms; see spectral.affinity_matrix."""
  if affinity == 'rbf':
    # The affinities of a far newcomer are all 0, their logarithms are not.
    logs = -0.5 * (across / spectral.scale(signatures.distances('l2'))) ** 2
    return np.stack([scipy.special.logsumexp(logs[rows], axis=0) - np.log(len(rows)) for rows in members])
  near = 1.0 - 0.5 * across if affinity == 'cosine' else _neighbourhood(signatures.distances('l2'), across)
  return np.stack([near[rows].mean(axis=0) for rows in members])


def _neighbourhood(distances: np.ndarray, across: np.ndarray) -> np.ndarray:
  """Returns float64[clients, newcomers], 'nearest_neighbors' with one newcomer at a time, the last of the graph."""
  others = spectral.NEIGHBOURS - 1  # A client is its own nearest.
  to_others = distances.copy()
  np.fill_diagonal(to_others, np.inf)
  # A client's neighbours stand before a newcomer that is as far.
  nearer = np.stack([(to_others <= column[:, None]).sum(axis=1) for column in across.T], axis=1)
  rank = np.argsort(np.argsort(across, axis=0, kind='stable'), axis=0)
  return 0.5 * ((nearer < others).astype(np.float64) + (rank < others))
