"""Agglomerative clustering cut at a distance threshold (FL+HC, Briggs et al. 2020, Algorithm 1).

Source of the linkage and of the cut: SciPy's `linkage` and `fcluster(criterion='distance')`, that is, clusters
are merged while their distance is at most the threshold.
"""

from collections.abc import Sequence

import numpy as np
from scipy.cluster import hierarchy
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from tff_cluster.assignment import ClusterAssignment
from tff_cluster.clustering import distances as distances_lib
from tff_cluster.clustering import thresholds
from tff_cluster.clustering.outcome import Outcome, by_first_member
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.config import LINKAGES, METRICS, VALIDATION, VALIDATION_NEEDS_A_RUN, ClusteringConfig
from tff_cluster.errors import InputError


def merge_order(signatures: Signatures, metric: str, linkage: str) -> np.ndarray:
  """Returns the merges of an agglomeration, float64[clients - 1, 4] (SciPy's Z), lowest first.

  Args:
    signatures: The clients' vectors.
    metric: 'l1', 'l2' or 'cosine'.
    linkage: 'single', 'complete', 'average' or 'ward' (with 'l2' only).

  Raises:
    InputError: if a choice is unknown, or ward is asked with another metric.
  """
  if metric not in METRICS:
    raise InputError(f'metric {metric!r}: allowed are {", ".join(METRICS)}')
  if linkage not in LINKAGES:
    raise InputError(f'linkage {linkage!r}: allowed are {", ".join(LINKAGES)}')
  if linkage == 'ward' and metric != 'l2':
    raise InputError(f"linkage 'ward' needs metric 'l2', given {metric!r}")
  if signatures.num_clients == 1:
    return np.zeros((0, 4))
  return hierarchy.linkage(distances_lib.condensed(signatures.distances(metric)), linkage)


def cut(merges: np.ndarray, threshold: float) -> np.ndarray:
  """Returns the clusters after all merges at a distance of at most the threshold.

  Args:
    merges: float64[clients - 1, 4], from `merge_order`.
    threshold: In units of the metric and linkage.

  Returns:
    labels int64[clients], numbered by first member.

  Raises:
    InputError: if the threshold is negative or NaN.
  """
  if not threshold >= 0.0:
    raise InputError(f'distance threshold {threshold}: must be a number of at least 0')
  if not len(merges):
    return np.zeros(1, np.int64)
  return by_first_member(hierarchy.fcluster(merges, t=threshold, criterion='distance'))


def hierarchical(
  signatures: Signatures, metric: str, linkage: str, threshold: float
) -> tuple[np.ndarray, np.ndarray]:
  """Clusters by agglomeration: `merge_order`, then `cut`.

  Returns:
    labels int64[clients], numbered by first member, and the merges float64[clients - 1, 4].

  Raises:
    InputError: as they do.
  """
  if not threshold >= 0.0:
    raise InputError(f'distance threshold {threshold}: must be a number of at least 0')
  merges = merge_order(signatures, metric, linkage)
  return cut(merges, threshold), merges


def cuts(merges: np.ndarray, counts: Sequence[int]) -> list[tuple[float, np.ndarray]]:
  """Returns the cuts into these numbers of clusters.

  Args:
    merges: float64[clients - 1, 4], from `merge_order`.
    counts: Numbers of clusters; those that no threshold gives (equal merge heights, fewer clients) are left out.

  Returns:
    For each count a threshold, halfway between the merges before and after it, and labels int64[clients].
  """
  heights, clients = merges[:, 2], len(merges) + 1
  found = []
  for count in counts:
    if not 1 <= count <= clients:
      continue
    done = clients - count
    low = heights[done - 1] if done else 0.0
    threshold = float((low + heights[done]) / 2) if done < len(heights) else float(low)
    labels = cut(merges, threshold)
    if labels.max() + 1 == count:
      found.append((threshold, labels))
  return found


def from_config(config: ClusteringConfig, signatures: Signatures, seed: int) -> Outcome:
  """Returns the clustering that the configuration asks for; quantile:q is one of the metric's distances."""
  del seed  # Nothing is drawn.
  text = config.distance_threshold
  if text is None or text == 'mean':
    raise InputError('hierarchical needs distance_threshold: a number or quantile:q')
  if text == VALIDATION:
    raise InputError(VALIDATION_NEEDS_A_RUN)
  threshold = thresholds.resolve(text, signatures.distances(config.metric))
  labels, merges = hierarchical(signatures, config.metric, config.linkage, threshold or 0.0)
  assignment = ClusterAssignment.from_labels(labels, signatures.client_ids)
  notes = []
  if threshold is not None:
    clusters = f'{assignment.num_clusters} cluster{"" if assignment.num_clusters == 1 else "s"}'
    notes.append(f'threshold {threshold:.4g} ({thresholds.describe(text)}) gives {clusters}')
  if len(merges) and assignment.num_clusters == signatures.num_clients:
    notes.append(
      f'every client is alone: the threshold {threshold:.4g} is below the smallest distance {merges[0, 2]:.4g}'
    )
  elif len(merges) and assignment.num_clusters == 1:
    notes.append(
      f'all clients are in one cluster: the threshold {threshold:.4g} reaches the last merge at {merges[:, 2].max():.4g}'
    )
  return Outcome(assignment, threshold, merges, tuple(notes))


class HierarchicalClustering(ClusterMixin, BaseEstimator):
  """`hierarchical` as a scikit-learn estimator; rows of X are clients.

  Attributes:
    labels_: int64[clients].
    linkage_: float64[clients - 1, 4], SciPy's Z.
    n_features_in_: int.
  """

  def __init__(self, metric: str = 'l2', linkage: str = 'complete', distance_threshold: float = 3.0):
    self.metric = metric
    self.linkage = linkage
    self.distance_threshold = distance_threshold

  def fit(self, X: np.ndarray, y: object = None) -> 'HierarchicalClustering':
    """Clusters the rows of X, float[clients, features]; y is ignored."""
    X = validate_data(self, X, dtype=(np.float64, np.float32))
    self.labels_, self.linkage_ = hierarchical(
      Signatures.numbered(X), self.metric, self.linkage, self.distance_threshold
    )
    return self
