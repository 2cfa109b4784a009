"""Who is in the clusters: clients of planted groups, clients that hold common labels, and training rows by label."""

import numpy as np

from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.experiment.results import Results


def membership(results: Results, clustering: Clustering) -> np.ndarray:
  """Returns float64[clusters, clients] of one of a run's clusterings, rows in its order."""
  position = {client_id: k for k, client_id in enumerate(results.population.client_ids)}
  matrix = np.zeros((len(clustering.clusters), len(position)))
  for row, members in enumerate(clustering.clusters):
    matrix[row, [position[client_id] for client_id in members]] = 1.0
  return matrix


def shares(results: Results, clustering: Clustering) -> np.ndarray:
  """Returns float64[clusters, clients], what clients have of each of their clusters; 1 for members where that is not told."""
  return membership(results, clustering) if clustering.shares is None else np.array(clustering.shares)


def shared_clients(membership: np.ndarray, truth: np.ndarray) -> list[list[int]]:
  """Returns how many clients each planted group and each cluster have in common, int[groups][clusters].

  Args:
    membership: float[clusters, clients].
    truth: float[groups, clients].
  """
  return ((np.asarray(truth) > 0).astype(np.int64) @ (np.asarray(membership) > 0).T).tolist()


def together(membership: np.ndarray, label_counts: np.ndarray) -> tuple[float | None, float | None]:
  """Returns how often two clients are in one cluster: of pairs that hold a common label, and of the others.

  Both are shares from 0 to 1, and None where there are no such pairs. A clustering that ignores the clients' labels
  has equal ones, but for chance.

  Args:
    membership: float[clusters, clients].
    label_counts: int[clients, classes].
  """
  held, inside = (
    (np.asarray(label_counts) > 0).astype(np.int64),
    (np.asarray(membership) > 0).astype(np.int64),
  )
  pairs = np.triu_indices(len(held), 1)
  common, same = (held @ held.T > 0)[pairs], (inside.T @ inside > 0)[pairs]
  return tuple(float(same[kind].mean()) if kind.any() else None for kind in (common, ~common))  # type: ignore[return-value]


def rows_by_label(
  membership: np.ndarray, label_counts: np.ndarray, truth: np.ndarray | None = None
) -> np.ndarray:
  """Returns int64[groups, clusters, classes], the rows of each cluster's members by label; one group without truth.

  Args:
    membership: float[clusters, clients]; a client of several clusters counts in each.
    label_counts: int[clients, classes].
    truth: float[groups, clients], one group a client.
  """
  inside, counts = (np.asarray(membership) > 0).astype(np.int64), np.asarray(label_counts, np.int64)
  groups = np.ones((1, len(counts))) if truth is None else np.asarray(truth)
  return np.stack([(inside * (group > 0)) @ counts for group in groups])
