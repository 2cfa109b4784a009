"""How well a clustering finds planted groups, for disjoint, overlapping and soft ones."""

import dataclasses
import warnings
from collections.abc import Sequence

import numpy as np

from tff_cluster.base import records
from tff_cluster.base.errors import InputError
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.overlap_scores import bcubed, overlapping_nmi, same_clients

# Clients whose pairs with all others are counted at a time: 10,000 clients have 50 million pairs.
_BLOCK = 1024


@dataclasses.dataclass(frozen=True)
class Recovery(records.Record):
  """How well a clustering finds planted groups: 1 is best, but for the share error, whose best is 0.

  Attributes:
    ari, nmi: None where clustering or truth overlaps.
    omega: Omega index.
    onmi: Overlapping NMI.
    bcubed_precision, bcubed_recall, bcubed_f: Extended BCubed.
    share_error: Half of what shares differ by, mean over clients, after the best matching. A client of several clusters, or groups, that are known without shares has as much of each.
  """

  ari: float | None
  nmi: float | None
  omega: float
  onmi: float
  bcubed_precision: float
  bcubed_recall: float
  bcubed_f: float
  share_error: float


# The scores of Recovery by name.
SCORES = tuple(field.name for field in dataclasses.fields(Recovery))


def summed_up(
  scores: Sequence[Recovery], truths: Sequence[np.ndarray], members_tell: bool = True
) -> tuple[str, list[float]]:
  """Returns which score tells best how well groups were found, 1 for exactly, and its values.

  It is ARI, and Omega where either side overlaps. Where every client is in every group, or in every cluster, members tell no two of
  them apart (Omega is 0 or 1, whatever the shares): what is left is the share match, 1 minus the share error.

  Args:
    scores: Of some clusterings, which are told by the same score.
    truths: The truth of each, float[groups, clients].
    members_tell: False where every client is in every one of several clusters.
  """
  if not members_tell or any(all_in_all(truth) for truth in truths):
    return 'share match', [1.0 - each.share_error for each in scores]
  aris = [each.ari for each in scores if each.ari is not None]
  return ('ARI', aris) if len(aris) == len(scores) else ('Omega', [each.omega for each in scores])


def all_in_all(truth: np.ndarray) -> bool:
  """Tells whether there are several groups, and every client has a share in each: float[groups, clients]."""
  return len(truth) > 1 and bool((np.asarray(truth) > 0.0).all())


def ari(labels_a: np.ndarray, labels_b: np.ndarray) -> float:
  """Returns the adjusted Rand index of two int[clients] labellings: 1 equal, about 0 by chance."""
  return _score('adjusted_rand_score', labels_a, labels_b)


def nmi(labels_a: np.ndarray, labels_b: np.ndarray) -> float:
  """Returns the normalised mutual information (arithmetic mean) of two int[clients] labellings, 0 to 1."""
  return _score('normalized_mutual_info_score', labels_a, labels_b)


def omega_index(membership_a: np.ndarray, membership_b: np.ndarray) -> float:
  """Returns the Omega index (Collins and Dent 1988): the chance-corrected share of agreeing pairs of clients.

  Two clusterings agree on a pair that shares equally many clusters in both. For disjoint clusterings this is the
  adjusted Rand index.

  Args:
    membership_a, membership_b: [clusters, clients] each, same clients in the same order; above 0 is a member.

  Returns:
    1 for equal clusterings, about 0 by chance. Where chance alone makes all pairs agree (one client; all pairs
    together or apart in both), 1.

  Raises:
    InputError: if the two are not matrices over equally many clients, at least one.
  """
  a, b = same_clients(membership_a, membership_b)
  clients = a.shape[1]
  pairs = clients * (clients - 1) // 2
  if pairs == 0:
    return 1.0
  # In whole numbers, so that nothing is lost where both sides are near 1. Pairs are counted twice, and halved.
  counts = np.zeros((2, max(len(a), len(b)) + 1), np.int64)
  agreeing = 0
  for start in range(0, clients, _BLOCK):
    shared = [_shared_clusters(side, start) for side in (a, b)]
    agreeing += int(np.sum(shared[0] == shared[1]))
    for side, of_pairs in enumerate(shared):
      counts[side] += np.bincount(of_pairs, minlength=counts.shape[1])
  agreeing //= 2
  by_chance = int(np.sum((counts[0] // 2) * (counts[1] // 2)))
  if by_chance == pairs**2:
    return 1.0
  return (agreeing * pairs - by_chance) / (pairs**2 - by_chance)


def share_error(estimated: np.ndarray, planted: np.ndarray) -> float:
  """Returns how far the clients' shares in clusters are from their shares in groups.

  Clusters and groups are matched one to one (Kuhn 1955), so that the mean over clients of the total variation distance is
  least. What is left without a match is compared with 0.

  Args:
    estimated: float[clusters, clients], columns sum to 1.
    planted: float[groups, clients], likewise.

  Returns:
    0 for equal shares, and below 1. Of disjoint clusters and groups it is the share of clients that are outside of the
    cluster of their group.

  Raises:
    InputError: if the two are not matrices over equally many clients, at least one.
  """
  from scipy import optimize

  same_clients(estimated, planted)
  found, truth = np.asarray(estimated, np.float64), np.asarray(planted, np.float64)
  clusters, groups = optimize.linear_sum_assignment(_common_shares(found, truth), maximize=True)
  apart = np.abs(found[clusters] - truth[groups]).sum()
  alone = np.delete(found, clusters, axis=0).sum() + np.delete(truth, groups, axis=0).sum()
  return float((apart + alone) / (2 * found.shape[1]))


def recovery(assignment: ClusterAssignment, truth: np.ndarray) -> Recovery:
  """Returns how well the clustering finds the planted groups.

  Args:
    assignment: The clustering; clusters of which all clients have the same shares count as one.
    truth: float[groups, clients]; a client belongs to every group of which it has a share above 0. Where its column does not
      sum to 1, it is told without shares.

  Raises:
    InputError: if the truth is about another number of clients, or leaves a client without a group.
  """
  groups = np.asarray(truth) > 0.0
  if groups.ndim != 2 or groups.shape[1] != assignment.num_clients:
    raise InputError(f'truth must be [groups, {assignment.num_clients} clients], found shape {groups.shape}')
  if not groups.any(axis=0).all():
    alone = assignment.client_ids[int(np.argmin(groups.any(axis=0)))]
    raise InputError(f'the truth gives client {alone} no group')
  assignment = assignment.distinct
  overlapping = assignment.is_overlapping or bool((groups.sum(axis=0) > 1).any())
  labels = None if overlapping else np.argmax(groups, axis=0)
  pairs = bcubed(assignment.membership, groups)
  return Recovery(
    None if labels is None else ari(labels, assignment.labels),
    None if labels is None else nmi(labels, assignment.labels),
    omega_index(assignment.membership, groups),
    overlapping_nmi(assignment.membership, groups),
    pairs.precision,
    pairs.recall,
    pairs.f,
    share_error(assignment.own, _as_shares(np.asarray(truth, np.float64))),
  )


def _as_shares(truth: np.ndarray) -> np.ndarray:
  """Returns the columns of float64[groups, clients] that sum to 1 as they are, and of others equal shares of their groups."""
  member = truth > 0.0
  return np.where(np.isclose(truth.sum(axis=0), 1.0), truth, member / member.sum(axis=0))


def _common_shares(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
  """Returns float64[clusters, groups], the sum over clients of the smaller one of their two shares.

  As the shares of a client sum to 1 on either side, its total variation distance is 1 minus that, summed over matched pairs.
  """
  clusters, clients = np.nonzero(found)
  shares = found[clusters, clients]
  of_groups = [
    np.bincount(clusters, np.minimum(shares, group[clients]), minlength=len(found)) for group in truth
  ]
  return np.stack(of_groups, axis=1)


def _score(name: str, labels_a: np.ndarray, labels_b: np.ndarray) -> float:
  from sklearn import metrics

  with warnings.catch_warnings():
    # scikit-learn takes labellings with many clusters for the targets of a regression.
    warnings.filterwarnings('ignore', message='The number of unique classes')
    return float(getattr(metrics, name)(labels_a, labels_b))


def _shared_clusters(membership: np.ndarray, start: int) -> np.ndarray:
  """Returns int64[block * (clients - 1)], how many clusters the clients of a block share with each other client."""
  member = membership.astype(np.float32)
  shared = member[:, start : start + _BLOCK].T @ member
  others = np.ones(shared.shape, bool)
  others[np.arange(len(shared)), start + np.arange(len(shared))] = False
  return shared[others].astype(np.int64)
