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
  from tff_cluster.clustering.signatures import Signatures

# Ten, scikit-learn's old default, miss the planted groups of the demo, whose inertia is lower than what they find.
_STARTS = 50
_MOST_MEANS = 10


def kmeans(signatures: 'Signatures', num_clusters: int, random_state: int) -> tuple[np.ndarray, float]:
  """Clusters by K-means under Euclidean distance.

  Vectors with more features than there are clients are first mapped, without changing a distance, to at most
  clients - 1 coordinates. One thread is used, so the result does not depend on the machine's cores.

  Args:
    signatures: The clients' vectors.
    num_clusters: K; fewer clusters come back where there are fewer distinct vectors.
    random_state: Seed of the starts.

  Returns:
    labels int64[clients], numbered by first member, and the inertia (sum of squared distances to the centres).

  Raises:
    InputError: if K is below 1 or above the number of clients.
  """
  import threadpoolctl
  from sklearn import cluster as sklearn_cluster
  from sklearn.exceptions import ConvergenceWarning

  number_of_clusters.check_num_clusters(num_clusters, signatures.num_clients)
  # A tolerance would be relative to the spread a coordinate, and so depend on the number of coordinates.
  model = sklearn_cluster.KMeans(
    num_clusters, n_init=_STARTS, tol=0.0, algorithm='lloyd', random_state=random_state
  )
  with threadpoolctl.threadpool_limits(limits=1), warnings.catch_warnings():
    warnings.simplefilter('ignore', ConvergenceWarning)  # Fewer distinct vectors than K: a note says so.
    model.fit(signatures.coordinates())
  return by_first_member(model.labels_), float(model.inertia_)


@dataclasses.dataclass(frozen=True)
class Options(WithNumber, OnSignatures):
  """The options of K-means."""


class KMeans(Method[Options]):
  """The clusters of `kmeans`; newcomers join the cluster with the nearest mean, as in a step of Lloyd's iteration."""

  name = 'kmeans'
  title = 'k-means'
  options_type = Options
  draws = True

  def cluster(self, options: Options, evidence: Evidence) -> Outcome:
    """Returns the clusters; starts are drawn from the seed and K."""
    count = options.num_clusters
    labels, inertia = kmeans(evidence.signatures, count, evidence.integer_seed('k-means starts', count))
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
