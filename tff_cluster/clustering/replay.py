"""Many clustering questions to the same signatures: each distance matrix and each linkage is computed once.

Where training takes hours, the choice of method, metric, linkage and threshold can be looked at afterwards, from
the signatures that Phase 1 saved. Every answer is exactly what `methods.cluster` gives for the same configuration
and seed.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence

import numpy as np

from tff_cluster.assignment import ClusterAssignment
from tff_cluster.clustering import embedding, hierarchical, methods
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.config import ClusteringConfig, validate
from tff_cluster.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
  """One clustering that was not trained.

  Attributes:
    config: What was asked; `methods.cluster(config, signatures, seed)` gives the same clustering.
    threshold: The distance threshold that was used; None for k-means.
    num_clusters: Number of clusters; None where the method gave up.
    largest_cluster: Members of the largest cluster; None where the method gave up.
    memberships: Mean number of clusters of a client; None where the method gave up.
    silhouette: Mean silhouette (of the metric's own distances); None where undefined, or not asked for.
    notes: Sentences for readers.
    clusters: int64[clients], the labels of a disjoint clustering, or a ClusterAssignment; None where the method
      gave up. For readers there is `assignment`.
    client_ids: The clients' ids.
  """

  config: ClusteringConfig
  threshold: float | None
  num_clusters: int | None
  largest_cluster: int | None
  memberships: float | None
  silhouette: float | None
  notes: tuple[str, ...]
  clusters: np.ndarray | ClusterAssignment | None = dataclasses.field(repr=False)
  client_ids: tuple[str, ...] = dataclasses.field(repr=False)

  @functools.cached_property
  def assignment(self) -> ClusterAssignment | None:
    """The clustering, made when it is first asked for; None where the method gave up."""
    if isinstance(self.clusters, np.ndarray):
      return ClusterAssignment.from_labels(self.clusters, self.client_ids)
    return self.clusters


class Replay:
  """Answers questions about one set of signatures.

  Attributes:
    signatures: The clients' vectors; its block_bytes bounds the memory of working copies.
    seed: The experiment's seed, which k-means draws its starts from.
    with_silhouettes: Whether answers have a silhouette.
  """

  def __init__(self, signatures: Signatures, seed: int, with_silhouettes: bool = False):
    self.signatures = signatures
    self.seed = seed
    self.with_silhouettes = with_silhouettes
    self._merges: dict[tuple[str, str], np.ndarray] = {}

  def merges(self, metric: str, linkage: str) -> np.ndarray:
    """Returns float64[clients - 1, 4], computed once; arguments and errors as hierarchical.merge_order."""
    family = metric, linkage
    if family not in self._merges:
      self._merges[family] = hierarchical.merge_order(self.signatures, metric, linkage)
    return self._merges[family]

  def thresholds(self, metric: str, linkage: str, count: int) -> list[float]:
    """Returns thresholds that are spread evenly over a family's merge heights, the lowest and the highest included.

    Args:
      metric, linkage: The family.
      count: How many; fewer come back where heights coincide, or where there is one client.

    Raises:
      InputError: if count is below 1, or as `merges`.
    """
    if count < 1:
      raise InputError(f'{count} thresholds: at least 1 is needed')
    heights = self.merges(metric, linkage)[:, 2]
    if not heights.size:
      return []
    return [float(t) for t in np.unique(np.linspace(heights.min(), heights.max(), count))]

  def hierarchical(
    self, families: Sequence[tuple[str, str]], thresholds: int | Sequence[float]
  ) -> Iterator[Answer]:
    """Yields an answer for each family (metric, linkage) and threshold, family after family.

    Args:
      families: Pairs of metric and linkage.
      thresholds: The same for all families, in units of the metric and linkage, or how many are spread over the
        merge heights of each family.

    Raises:
      InputError: as `merges`; also if a threshold is negative or NaN.
    """
    for metric, linkage in families:
      merges = self.merges(metric, linkage)
      chosen = self.thresholds(metric, linkage, thresholds) if isinstance(thresholds, int) else thresholds
      for threshold in chosen:
        labels = hierarchical.cut(merges, threshold)
        sizes = np.bincount(labels)
        config = ClusteringConfig(
          method='hierarchical', metric=metric, linkage=linkage, distance_threshold=repr(float(threshold))
        )
        yield Answer(
          config,
          float(threshold),
          len(sizes),
          int(sizes.max()),
          1.0,
          self._silhouette(metric, labels),
          (),
          labels,
          self.signatures.client_ids,
        )

  def kmeans(self, counts: Sequence[int]) -> Iterator[Answer]:
    """Yields an answer for each number of clusters K.

    Raises:
      InputError: if a K is below 1 or above the number of clients.
    """
    for count in counts:
      yield self._answer(ClusteringConfig(method='kmeans', num_clusters=count))

  def dynamic_distance(
    self,
    thresholds: Sequence[str],
    variant: str = 'cliques',
    max_clusters: int = ClusteringConfig.max_clusters,
  ) -> Iterator[Answer]:
    """Yields an answer for each threshold ('mean', a number as text, or 'quantile:q').

    A threshold with more than max_clusters clusters is answered by a note.

    Raises:
      InputError: if a threshold cannot be read, or variant or max_clusters is out of range.
    """
    for text in thresholds:
      config = ClusteringConfig(distance_threshold=text, variant=variant, max_clusters=max_clusters)
      validate(config)
      try:
        answer = self._answer(config)
      except InputError as error:  # What was given is fine, so these are too many clusters or links.
        ids = self.signatures.client_ids
        answer = Answer(config, None, None, None, None, None, (str(error),), None, ids)
      yield answer

  def _answer(self, config: ClusteringConfig) -> Answer:
    outcome = methods.cluster(config, self.signatures, self.seed)
    assignment = outcome.assignment
    sizes = assignment.membership.sum(axis=1)
    labels = None if assignment.is_overlapping else assignment.labels
    return Answer(
      config,
      outcome.threshold,
      assignment.num_clusters,
      int(sizes.max()),
      float(sizes.sum() / assignment.num_clients),
      None if labels is None else self._silhouette('l2', labels),
      outcome.notes,
      assignment,
      self.signatures.client_ids,
    )

  def _silhouette(self, metric: str, labels: np.ndarray) -> float | None:
    if not self.with_silhouettes:
      return None
    return embedding.silhouette_of_labels(self.signatures.distances(metric), labels)
