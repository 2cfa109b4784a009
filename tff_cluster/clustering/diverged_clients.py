"""Clients whose vectors are not finite: left out of a clustering, and put back into its largest cluster.

Training that goes to NaN or infinity on one client must neither move the others' clusters nor end the run. Such a client
takes no part in distances, methods and thresholds. It needs a model all the same, so afterwards it is a member of the
largest cluster; there its updates are dropped, as everywhere. So no cluster has such members only, and none of them
decides what a cluster is.

None of this is in the papers, whose clients all send finite updates.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tff_cluster.base import words
from tff_cluster.base.errors import InputError, argument
from tff_cluster.clustering import methods
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.clustering_config import ClusteringConfig
from tff_cluster.clustering.method import Evidence, Rows
from tff_cluster.clustering.outcome import Joined, Outcome, by_first_member
from tff_cluster.clustering.signatures import Signatures

_MOST_NAMES = 5
# Below this nothing is left to cluster; what diverges on nearly all clients is the training, not a client.
_FEWEST = 2


def finite_rows(vectors: np.ndarray) -> np.ndarray:
  """Returns bool[clients], whose vectors are finite.

  Args:
    vectors: float[clients, features]; may be a read-only memmap, which is read row by row.
  """
  return np.array([bool(np.isfinite(vector).all()) for vector in vectors], bool)


def check(finite: np.ndarray, client_ids: Sequence[str]) -> None:
  """Raises InputError if clients have to be left out and fewer than two are left.

  Args:
    finite: bool[clients].
    client_ids: The clients' ids.
  """
  out = np.flatnonzero(~finite)
  if not len(out) or len(finite) - len(out) >= _FEWEST:
    return
  others = f' (as did those of {words.plural(len(out) - 1, "client")} more)' if len(out) > 1 else ''
  raise InputError(
    f'client {client_ids[out[0]]}: its weights became NaN or infinite{others}, so it cannot be clustered, and fewer than '
    f'{_FEWEST} clients are left; use a smaller {argument("learning_rate")}'
  )


def finite_only(vectors: np.ndarray, client_ids: Sequence[str], finite: np.ndarray) -> Signatures:
  """Returns the signatures of the clients that can be clustered, in their order.

  Vectors that are all finite are not copied, so a memmap stays one.

  Args:
    vectors: float[clients, features].
    client_ids: The clients' ids.
    finite: bool[clients], who is kept; at most the clients with finite vectors.

  Raises:
    InputError: see `check`.
  """
  check(finite, client_ids)
  if finite.all():
    return Signatures(vectors, tuple(client_ids))
  return Signatures(vectors[finite], tuple(i for i, kept in zip(client_ids, finite, strict=True) if kept))


def cluster(
  config: ClusteringConfig,
  signatures: Signatures,
  client_ids: Sequence[str],
  seed: int,
  truths: Mapping[str, np.ndarray] | None = None,
  rows: Rows | None = None,
) -> Outcome:
  """Clusters the clients whose vectors are finite, and puts the others back.

  Where fewer clients are left than clusters were asked for, each is a cluster of its own.

  Args:
    config, seed, rows: As in methods.cluster, which this is where nobody is left out.
    signatures: Of the clients that can be clustered.
    client_ids: Of all clients, in their order.
    truths: Planted memberships of all clients by name; only an oracle gets to see them, and leaves nobody out.

  Returns:
    The clustering of all clients; `linkage` is that of the clustered ones, `excluded` names the others, and a note tells
    of them.

  Raises:
    InputError: as methods.cluster.
  """
  clustered = set(signatures.client_ids)
  out = tuple(client_id for client_id in client_ids if client_id not in clustered)
  if not out or config.rule.oracle:
    return methods.cluster(config, signatures, seed, truths, tuple(client_ids), rows)
  options = config.rule.for_clients(config.options, signatures.num_clients)
  outcome = methods.ask(config, Evidence(signatures, seed, rows=rows), options)
  return dataclasses.replace(
    outcome,
    assignment=put_back(outcome.assignment, client_ids),
    notes=(*outcome.notes, note(out)),
    excluded=out,
  )


def put_back(assignment: ClusterAssignment, client_ids: Sequence[str]) -> ClusterAssignment:
  """Returns the clustering of all clients: those that it lacks are in its largest cluster only, of several in the first.

  Args:
    assignment: Of some of the clients.
    client_ids: Of all clients, in their order.

  Raises:
    InputError: if the clustered clients are not among them, or stand in another order.
  """
  here = among(client_ids, assignment.client_ids)
  if tuple(i for i, clustered in zip(client_ids, here, strict=True) if clustered) != assignment.client_ids:
    raise InputError('the clustered clients must be among all clients, in the same order')
  if here.all():
    return assignment
  row = largest(assignment)

  def widened(matrix: np.ndarray) -> np.ndarray:
    everybodys = np.zeros((len(matrix), len(here)))
    everybodys[:, here], everybodys[row, ~here] = matrix, 1.0
    return everybodys

  shares = None if assignment.shares is None else widened(assignment.shares)
  return ClusterAssignment(widened(assignment.membership), tuple(client_ids), shares)


def with_larger_half(labels: np.ndarray, finite: np.ndarray) -> np.ndarray:
  """Returns int64[clients], two halves of all clients: those that were not parted go with the larger half.

  Args:
    labels: int64[clustered], 0 or 1, the halves of the clients that were; of halves of one size 0 counts as larger.
    finite: bool[clients], who they are among all.
  """
  everybody = np.full(len(finite), np.argmax(np.bincount(labels)))
  everybody[finite] = labels
  return by_first_member(everybody)


def clustered_only(assignment: ClusterAssignment, excluded: Sequence[str]) -> ClusterAssignment:
  """Returns the clustering of the clients that were clustered, for scores; a cluster without any is left out."""
  kept = ~among(assignment.client_ids, excluded)
  membership = assignment.membership[:, kept]
  some = membership.any(axis=1)
  ids = tuple(i for i, stays in zip(assignment.client_ids, kept, strict=True) if stays)
  shares = None if assignment.shares is None else assignment.shares[:, kept][some]
  return ClusterAssignment(membership[some], ids, shares)


def join_largest(
  joined: Joined | None, joined_ids: Sequence[str], client_ids: Sequence[str], assignment: ClusterAssignment
) -> Joined:
  """Returns what newcomers join, those without a finite vector among them: the largest cluster, and they are told.

  Args:
    joined: Of the newcomers with finite vectors; None where there are none.
    joined_ids: Their ids.
    client_ids: Of all newcomers, in their order.
    assignment: The clusters.
  """
  here = among(client_ids, joined_ids)
  membership = np.zeros((assignment.num_clusters, len(here)), bool)
  membership[largest(assignment), ~here] = True
  fallback = ~here
  if joined is not None:
    membership[:, here], fallback[here] = joined.membership, joined.fallback
  return Joined(membership, fallback)


def among(client_ids: Sequence[str], some: Sequence[str]) -> np.ndarray:
  """Returns bool[clients], which of the ids are among some."""
  wanted = set(some)
  return np.array([client_id in wanted for client_id in client_ids], bool)


def largest(assignment: ClusterAssignment) -> int:
  """Returns the cluster with most members; of several the first."""
  return int(np.argmax(assignment.membership.sum(axis=1)))


def note(excluded: Sequence[str]) -> str:
  """Returns one sentence that says who was not clustered and why, with at most five names."""
  was, who, kept = ('was', 'it', 'it is') if len(excluded) == 1 else ('were', 'they', 'they are')
  return (
    f'{words.plural(len(excluded), "client")} {was} not clustered, because what {who} sent was not finite ({names(excluded)}); {kept} kept '
    'in the largest cluster'
  )


def note_of_splits(excluded: Sequence[str]) -> str:
  """Returns the same for splits, which some of the clients may have missed, or all of them."""
  who, went = ('it', 'it goes') if len(excluded) == 1 else ('they', 'they go')
  return (
    f'{words.plural(len(excluded), "client")} could not be compared in every test, because what {who} sent was not finite ({names(excluded)}); in a '
    f'split that missed them {went} with the larger half'
  )


def names(client_ids: Sequence[str]) -> str:
  """Returns the ids, at most five of them and how many more there are."""
  more = len(client_ids) - _MOST_NAMES
  return ', '.join(client_ids[:_MOST_NAMES]) + (f' and {more} more' if more > 0 else '')
