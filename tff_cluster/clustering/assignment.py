"""Who belongs to which cluster. Disjoint and overlapping clusterings are one type."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tff_cluster.base.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class ClusterAssignment:
  """A membership matrix.

  Attributes:
    membership: float64[clusters, clients], 1.0 where the client is a member, else 0.0; no empty row
      or column. Rows stand in canonical order (by their sorted member positions), so two equal
      clusterings are equal arrays; rows with the same members, which only shares tell apart, stand as they were given.
    client_ids: The clients' ids, one a column.
    shares: float64[clusters, clients], what a client has of each of its clusters, above 0 for members only; columns sum to
      1. None where it has as much of each. Clusters with shares may have the same members.
  """

  membership: np.ndarray
  client_ids: tuple[str, ...]
  shares: np.ndarray | None = None

  def __post_init__(self):
    matrix = np.asarray(self.membership, np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != len(self.client_ids):
      raise InputError(
        f'membership must be [clusters, {len(self.client_ids)} clients], found shape {matrix.shape}'
      )
    member = matrix != 0.0
    if not np.array_equal(member, matrix):
      raise InputError('membership must hold zeros and ones only')
    if not member.any(axis=1).all():
      raise InputError(f'cluster {int(np.argmin(member.any(axis=1)))} has no member')
    if not member.any(axis=0).all():
      raise InputError(f'client {self.client_ids[int(np.argmin(member.any(axis=0)))]} is in no cluster')
    if len(set(self.client_ids)) != len(self.client_ids):
      raise InputError('client ids must be distinct')
    # As packed bits, because sorting the rows themselves takes a minute for ten thousand clusters.
    if self.shares is None and len({row.tobytes() for row in np.packbits(member, axis=1)}) < len(matrix):
      raise InputError('two clusters have the same members')
    order = self.order_of(matrix)
    object.__setattr__(self, 'membership', matrix[order])
    object.__setattr__(self, 'client_ids', tuple(self.client_ids))
    if self.shares is not None:
      object.__setattr__(self, 'shares', self._checked_shares(member)[order])

  @staticmethod
  def order_of(membership: np.ndarray) -> list[int]:
    """Returns the canonical order of the rows of a membership matrix [clusters, clients]; equal rows keep theirs."""
    return sorted(range(len(membership)), key=lambda row: tuple(np.flatnonzero(membership[row])))

  def _checked_shares(self, member: np.ndarray) -> np.ndarray:
    shares = np.asarray(self.shares, np.float64)
    if shares.shape != member.shape or not np.array_equal(shares > 0.0, member):
      raise InputError('shares must be above 0 for the members of a cluster, and 0 for others')
    if not np.allclose(shares.sum(axis=0), 1.0):
      raise InputError("a client's shares in its clusters must sum to 1")
    return shares

  @classmethod
  def from_labels(cls, labels: Sequence[int] | np.ndarray, client_ids: Sequence[str]) -> 'ClusterAssignment':
    """Returns the disjoint clustering that gives client k the cluster labels[k]."""
    labels = np.asarray(labels)
    return cls((np.unique(labels)[:, None] == labels[None, :]).astype(np.float64), tuple(client_ids))

  @classmethod
  def from_clusters(
    cls,
    clusters: Sequence[Sequence[str]],
    client_ids: Sequence[str],
    shares: Sequence[Sequence[float]] | None = None,
  ) -> 'ClusterAssignment':
    """Returns the clustering with these member lists (client ids), and shares in their order."""
    position = {client_id: k for k, client_id in enumerate(client_ids)}
    matrix = np.zeros((len(clusters), len(client_ids)))
    for row, members in enumerate(clusters):
      for client_id in members:
        if client_id not in position:
          raise InputError(
            f'cluster {row} names client {client_id!r}, which is not among the {len(client_ids)} clients'
          )
        matrix[row, position[client_id]] = 1.0
    return cls(matrix, tuple(client_ids), None if shares is None else np.array(shares))

  @property
  def num_clusters(self) -> int:
    return len(self.membership)

  @property
  def num_clients(self) -> int:
    return self.membership.shape[1]

  @property
  def own(self) -> np.ndarray:
    """float64[clusters, clients], columns sum to 1: what each client has of each of its clusters."""
    return self.membership / self.membership.sum(axis=0) if self.shares is None else self.shares

  @property
  def is_overlapping(self) -> bool:
    """Whether a client is in several clusters; those of which all clients have the same shares count once."""
    return bool((self.distinct.membership.sum(axis=0) > 1).any())

  @property
  def distinct(self) -> 'ClusterAssignment':
    """The clustering in which clusters of which all clients have the same shares are one, in the place of the first of them."""
    if self.shares is None:
      return self  # Without shares no two clusters are equal.
    _, first, same = np.unique(self.shares, axis=0, return_index=True, return_inverse=True)
    if len(first) == self.num_clusters:
      return self
    order = np.argsort(first)
    shares = np.stack([self.shares[same == row].sum(axis=0) for row in order])
    return ClusterAssignment(self.membership[first[order]], self.client_ids, shares)

  def members(self, cluster: int) -> np.ndarray:
    """Returns int64[members], positions of the cluster's clients, ascending."""
    return np.flatnonzero(self.membership[cluster])

  @property
  def members_of_all(self) -> list[np.ndarray]:
    """The members of each cluster; see `members`."""
    return [self.members(row) for row in range(self.num_clusters)]

  @property
  def clusters(self) -> list[list[str]]:
    """The member lists, as client ids."""
    return [[self.client_ids[k] for k in members] for members in self.members_of_all]

  @property
  def labels(self) -> np.ndarray:
    """int64[clients], each client's cluster, the first of equal ones.

    Raises:
      ValueError: if clusters overlap.
    """
    if self.is_overlapping:
      raise ValueError('an overlapping assignment has no labels: a client is in several clusters')
    return np.argmax(self.membership, axis=0)
