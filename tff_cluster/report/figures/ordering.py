"""The order and the colours in which figures show clients and clusters. Data are never reordered, only pictures."""

from collections.abc import Sequence

import numpy as np
import scipy.cluster.hierarchy
import scipy.optimize
import scipy.spatial.distance

from tff_cluster.report.figures import base


def client_order(membership: np.ndarray) -> np.ndarray:
  """Returns int64[clients], an order in which members of a cluster stand together.

  A disjoint clustering is shown cluster after cluster, clients in their own order within each. With
  overlap no order keeps every cluster together, so clients with similar memberships are put side by
  side: leaves of average linkage on the Jaccard distance between membership columns.

  Args:
    membership: float[clusters, clients].
  """
  labels = base.labels_of(membership)
  if labels is not None:
    return np.argsort(labels, kind='stable')
  present = np.asarray(membership) > 0
  if present.shape[1] < 2:
    return np.arange(present.shape[1])
  distances = _jaccard(present)
  tree = scipy.cluster.hierarchy.linkage(distances, 'average', optimal_ordering=present.shape[1] <= 300)
  return scipy.cluster.hierarchy.leaves_list(tree).astype(np.int64)


def _jaccard(present: np.ndarray) -> np.ndarray:
  """Returns float64[pairs], the Jaccard distances of columns of bool[rows, columns], each of which has an entry."""
  member = present.T.astype(np.float64)
  common = member @ member.T
  sizes = np.diag(common)
  # In place: of thousands of clients a matrix takes much of the memory.
  either = sizes[:, None] + sizes[None, :]
  either -= common
  np.subtract(either, common, out=common)
  np.divide(common, either, out=common)
  return scipy.spatial.distance.squareform(common, checks=False)


def cluster_order(membership: np.ndarray, clients: np.ndarray) -> np.ndarray:
  """Returns int64[clusters], clusters by the mean place of their members in the order of clients.

  Args:
    membership: float[clusters, clients], weights of the places.
    clients: int64[clients], from `client_order`.
  """
  weights = np.asarray(membership)[:, clients]
  return np.argsort((weights * np.arange(weights.shape[1])).sum(axis=1) / weights.sum(axis=1), kind='stable')


def matched_kinds(membership: np.ndarray, truth: np.ndarray | None) -> np.ndarray:
  """Returns int64[clusters], a colour number for each cluster: that of the planted group it matches best.

  Clusters and groups are matched one to one so that most clients agree; clusters that are left over get
  the numbers after the groups'. Found and planted can then be compared by eye, colour against colour.

  Args:
    membership: float[clusters, clients].
    truth: float[groups, clients]; None leaves the clusters' own numbers.
  """
  count = len(membership)
  if truth is None:
    return np.arange(count)
  clusters, groups = scipy.optimize.linear_sum_assignment(-(np.asarray(membership) @ np.asarray(truth).T))
  kinds = np.full(count, -1, np.int64)
  kinds[clusters] = groups
  left = np.flatnonzero(kinds < 0)
  kinds[left] = len(truth) + np.arange(len(left))
  return kinds


def matched_colours(
  membership: np.ndarray, truth: np.ndarray | None
) -> tuple[dict[int, int], dict[int, int], list[str]]:
  """Returns colours in which a cluster has that of the planted group it matches best; see `matched_kinds`.

  Where there are more kinds than colours, those with few clients have none, and stand for the rest in grey.

  Args:
    membership: float[clusters, clients].
    truth: float[groups, clients], or None.

  Returns:
    A place among the colours for clusters, one for groups, and the colours.
  """
  kinds = matched_kinds(membership, truth)
  groups = 0 if truth is None else len(truth)
  sizes = np.zeros(max(int(kinds.max()) + 1, groups), np.int64)
  sizes[kinds] = (np.asarray(membership) > 0).sum(axis=1)
  if truth is not None:
    sizes[:groups] = np.maximum(sizes[:groups], (np.asarray(truth) > 0).sum(axis=1))
  # The last of all colours is a grey.
  most = len(sizes) if len(sizes) <= base.MOST_COLOURS else base.MOST_COLOURS - 1
  shown = sorted(np.argsort(-sizes, kind='stable')[:most].tolist())
  place = {kind: i for i, kind in enumerate(shown)}
  clusters = {cluster: place[kind] for cluster, kind in enumerate(kinds.tolist()) if kind in place}
  planted = {group: place[group] for group in range(groups) if group in place}
  return clusters, planted, base.colours(min(len(sizes), base.MOST_COLOURS))


def as_membership(labels: np.ndarray) -> tuple[list[int], np.ndarray]:
  """Returns the labels that occur in int64[clients], ascending, and float64[labels, clients], who has them."""
  names = np.unique(labels)
  return names.tolist(), (names[:, None] == labels[None, :]).astype(np.float64)


def model_kinds(kinds: np.ndarray, models: Sequence[int], count: int) -> np.ndarray:
  """Returns int64[models], a colour number for each model of a method that alternates.

  Args:
    kinds: int64[clusters], those of its clusters.
    models: [clusters], which models are theirs.
    count: Number of models; those that no cluster has get the least numbers that are left.
  """
  found = np.full(count, -1, np.int64)
  found[list(models)] = kinds
  free = [number for number in range(count + int(kinds.max()) + 1) if number not in set(kinds.tolist())]
  found[found < 0] = free[: count - len(models)]
  return found
