"""K-means (Rohith et al. 2020, section 5.1 and Algorithm 1), by scikit-learn.

Departures and choices: fifty k-means++ starts of which the best is kept (the paper places centroids at random),
and iterations go on until no client changes its cluster, as Algorithm 1 says.
"""

import dataclasses
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.clustering import number_of_clusters
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Evidence, Method
from tff_cluster.clustering.method_options import OnSignatures, WithNumber
from tff_cluster.clustering.outcome import Outcome, by_first_member

if TYPE_CHECKING:
  from tff_cluster.clustering.replay import Grid

# Ten, scikit-learn's old default, miss the planted groups of the demo, whose inertia is lower than what they find.
_STARTS = 50
_MOST_MEANS = 10


def fit(
  points: np.ndarray, count: int, seed: int, rows: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
  """Returns the clusters of points by the best of fifty starts, and the sum of squared distances to their centres, on one thread.

  Args:
    points: float64[clients, coordinates].
    count: K, at most the number of clients.
    seed: Of the starts.
    rows: float64[clients], what each weighs in the means; None: all the same.

  Returns:
    labels int64[clients], numbered by first member, of fewer than K clusters where fewer points are distinct; the sum.
  """
  import threadpoolctl
  from sklearn import cluster as sklearn_cluster
  from sklearn.exceptions import ConvergenceWarning

  # A tolerance would be relative to the spread a coordinate, and so depend on the number of coordinates.
  model = sklearn_cluster.KMeans(count, n_init=_STARTS, tol=0.0, algorithm='lloyd', random_state=seed)
  with threadpoolctl.threadpool_limits(limits=1), warnings.catch_warnings():
    warnings.simplefilter(
      'ignore', ConvergenceWarning
    )  # Fewer distinct points than K: a note of the method says so.
    model.fit(points, sample_weight=rows)
  return by_first_member(model.labels_), float(model.inertia_)


@dataclasses.dataclass(frozen=True)
class Options(WithNumber, OnSignatures):
  """The options of K-means."""


class KMeans(Method[Options]):
  """K-means under Euclidean distance; newcomers join the cluster with the nearest mean, as in a step of Lloyd's iteration.

  Vectors with more features than there are clients are first mapped, without changing a distance, to at most
  clients - 1 coordinates. One thread is used, so the result does not depend on the machine's cores.
  """

  name = 'kmeans'
  title = 'k-means'
  options_type = Options
  draws = True

  def cluster(self, options: Options, evidence: Evidence) -> Outcome:
    """Returns the clusters, fewer than K where there are fewer distinct vectors; starts are drawn from the seed and K.

    The figure `inertia` is the sum of squared distances to the centres.
    """
    signatures, count = evidence.signatures, options.num_clusters
    number_of_clusters.check_num_clusters(count, signatures.num_clients)
    seed = evidence.integer_seed('k-means starts', count)
    labels, inertia = fit(signatures.coordinates(), count, seed)
    assignment = ClusterAssignment.from_labels(labels, evidence.client_ids)
    return Outcome(
      assignment,
      notes=tuple(number_of_clusters.notes_on_number(assignment, count)),
      figures={'inertia': inertia},
    )

  def alternatives(self, num_clients: int) -> list[dict[str, Any]]:
    """Returns K = 2 .. 10, at most clients - 1."""
    return [{'num_clusters': count} for count in range(2, min(_MOST_MEANS, num_clients - 1) + 1)]

  def questions(self, grid: 'Grid', num_clients: int) -> Iterator[dict[str, Any]]:
    """Yields each K that is not above the number of clients."""
    return ({'num_clusters': count} for count in grid.counts if count <= num_clients)


METHOD = KMeans()
