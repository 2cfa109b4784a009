"""What rules for clients that come later share; each method's own rule is the `join` in its file.

None of these rules is in Rohith et al. 2020, Briggs et al. 2020 or Miles et al. 2024, which have no clients that come
later. Newcomers change no cluster, and none depends on another one. Of equally good clusters the one with the nearest
client counts, of those the first.
"""

from collections.abc import Sequence

import numpy as np

from tff_cluster.base.errors import InputError
from tff_cluster.clustering.cross_distances import cross_distances
from tff_cluster.clustering.method import Newcomers
from tff_cluster.clustering.outcome import Joined
from tff_cluster.clustering.signatures import Signatures

# Distances float64[clients, clients] and float64[clients, newcomers], and int64[members] for each cluster.
Euclidean = tuple[np.ndarray, np.ndarray, list[np.ndarray]]


def nearest_mean(newcomers: Newcomers) -> Joined:
  """Returns the cluster with the nearest mean."""
  found = euclidean(newcomers)
  return cheapest(to_means(found), *found[1:])


def members(newcomers: Newcomers) -> list[np.ndarray]:
  """Returns int64[members] for each cluster, positions of its members among the vectors that were clustered.

  Raises:
    InputError: if vectors and clusters are not of the same clients in the same order.
  """
  assert newcomers.known is not None
  known, assignment = newcomers.known.signatures, newcomers.assignment
  ids = set(known.client_ids)
  here = np.array([client_id in ids for client_id in assignment.client_ids])
  member = assignment.membership[:, here] > 0.0
  same = tuple(i for i in assignment.client_ids if i in ids) == known.client_ids
  if not same or not member.any(axis=1).all():
    raise InputError('signatures and clusters must be of the same clients in the same order')
  return [np.flatnonzero(row) for row in member]


def across(newcomers: Newcomers, metric: str) -> np.ndarray:
  """Returns float64[clients, newcomers], the distances between them; InputError if one overflows."""
  known, arriving = _vectors(newcomers)
  return cross_distances(known.vectors, arriving.vectors, metric, known.block_bytes)


def euclidean(newcomers: Newcomers) -> Euclidean:
  """Returns Euclidean distances among the clients and to the newcomers, and the members of each cluster."""
  return _vectors(newcomers)[0].distances('l2'), across(newcomers, 'l2'), members(newcomers)


def to_means(found: Euclidean) -> np.ndarray:
  """Returns float64[clusters, newcomers], squared distances to the clusters' means."""
  distances, to_clients, clusters = found
  squared = []
  for rows in clusters:
    # |v - mean|^2 is the mean squared distance to the members, less what they are from their mean themselves.
    spread = np.square(distances[np.ix_(rows, rows)]).mean() / 2.0
    squared.append(np.square(to_clients[rows]).mean(axis=0) - spread)
  return np.stack(squared)


def cheapest(cost: np.ndarray, across: np.ndarray, members: Sequence[np.ndarray]) -> Joined:
  """Returns the cluster of least cost, float64[clusters, newcomers]; of equal ones that with the nearest client."""
  nearest = np.stack([across[rows].min(axis=0) for rows in members])
  chosen = np.argmin(np.where(cost == cost.min(axis=0), nearest, np.inf), axis=0)
  return Joined(np.arange(len(members))[:, None] == chosen, np.zeros(len(chosen), bool))


def _vectors(newcomers: Newcomers) -> tuple[Signatures, Signatures]:
  assert newcomers.known is not None and newcomers.arriving is not None
  return newcomers.known.signatures, newcomers.arriving
