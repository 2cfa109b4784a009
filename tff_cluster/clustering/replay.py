"""Many clustering questions to the same signatures: each distance matrix and each linkage is computed once.

Where training takes hours, the choice of method, metric, linkage and threshold can be looked at afterwards, from
the signatures that Phase 1 saved. Every answer is exactly what `methods.cluster` gives for the same configuration
and seed.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base.errors import InputError
from tff_cluster.clustering import embedding, methods
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.clustering_config import ClusteringConfig
from tff_cluster.clustering.method import Evidence, Method, Rows
from tff_cluster.clustering.methods import hierarchical
from tff_cluster.clustering.signatures import Signatures


@dataclasses.dataclass(frozen=True)
class Grid:
  """What is asked; each method takes from it what it has a use for.

  Attributes:
    families: Pairs of metric and linkage.
    thresholds: Distances for all families, in units of the metric and linkage, or how many are spread over the merge
      heights of each family.
    more: Thresholds of a family beside these.
    counts: Numbers of clusters.
    distance_thresholds: 'mean', a number as text, or 'quantile:q'.
  """

  families: Sequence[tuple[str, str]] = ()
  thresholds: int | Sequence[float] = ()
  more: Mapping[tuple[str, str], Sequence[float]] = dataclasses.field(default_factory=dict)
  counts: Sequence[int] = ()
  distance_thresholds: Sequence[str] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
  """What a method answers.

  Attributes:
    given: The options by name, those at their default too.
    clusters: int64[clients], labels, or a ClusterAssignment; None where the method gave up.
    threshold: The distance threshold that was used; None without one.
    notes: Sentences for readers.
    metric: Of the distances that its silhouette is taken from; None: it has none.
  """

  given: Mapping[str, Any]
  clusters: np.ndarray | ClusterAssignment | None
  threshold: float | None = None
  notes: tuple[str, ...] = ()
  metric: str | None = 'l2'


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
  """One clustering that was not trained.

  Attributes:
    config: What was asked; `methods.cluster(config, signatures, seed)` gives the same clustering.
    found: What the method answered.
    num_clusters: Number of clusters; None where the method gave up.
    largest_cluster: Members of the largest cluster; None where the method gave up.
    memberships: Mean number of clusters of a client; None where the method gave up.
    silhouette: Mean silhouette (of the metric's own distances); None where undefined, or not asked for.
    client_ids: The clients' ids.
  """

  config: ClusteringConfig
  found: Found = dataclasses.field(repr=False)
  num_clusters: int | None
  largest_cluster: int | None
  memberships: float | None
  silhouette: float | None
  client_ids: tuple[str, ...] = dataclasses.field(repr=False)

  @functools.cached_property
  def assignment(self) -> ClusterAssignment | None:
    """The clustering, made when it is first asked for; None where the method gave up."""
    clusters = self.found.clusters
    return (
      ClusterAssignment.from_labels(clusters, self.client_ids)
      if isinstance(clusters, np.ndarray)
      else clusters
    )


class Replay:
  """Answers questions about one set of signatures.

  Attributes:
    evidence: The clients' vectors, whose block_bytes bounds the memory of working copies, the seed, and the clients'
      training rows, where they are at hand; methods that read them answer nothing without.
    with_silhouettes: Whether answers have a silhouette.
  """

  def __init__(
    self, signatures: Signatures, seed: int, with_silhouettes: bool = False, rows: Rows | None = None
  ):
    self.evidence = Evidence(signatures, seed, rows=rows)
    self.with_silhouettes = with_silhouettes
    self._merges: dict[tuple[str, str], np.ndarray] = {}

  def merges(self, metric: str, linkage: str) -> np.ndarray:
    """Returns float64[clients - 1, 4], computed once; arguments and errors as hierarchical.merge_order."""
    family = metric, linkage
    if family not in self._merges:
      self._merges[family] = hierarchical.merge_order(self.evidence.signatures, metric, linkage)
    return self._merges[family]

  def thresholds(self, metric: str, linkage: str, asked: int | Sequence[float]) -> Sequence[float]:
    """Returns the thresholds of a family that are asked, see Grid.

    So many are spread evenly over its heights (hierarchical.cut_heights), the lowest and the highest included; fewer come back
    where heights coincide, or where there is one client.

    Raises:
      InputError: if less than one is asked, or as `merges`.
    """
    if not isinstance(asked, int):
      return asked
    if asked < 1:
      raise InputError(f'{asked} thresholds: at least 1 is needed')
    heights = hierarchical.cut_heights(self.merges(metric, linkage))
    if not heights.size:
      return []
    return [float(t) for t in np.unique(np.linspace(heights[0], heights[-1], asked))]

  def answers(self, grid: Grid) -> Iterator[Answer]:
    """Yields every method's answers, method after method.

    Raises:
      InputError: if a question cannot be asked: a threshold that cannot be read, ward with another metric than l2, ...
    """
    for name, method in methods.METHODS.items():
      if self.evidence.rows is not None or not method.reads_rows:
        for found in method.replay(grid, self):
          yield self._answer(name, found)

  def alternatives(self) -> Iterator[Answer]:
    """Yields what each method names as alternatives, which a report shows beside a clustering, so that it can be judged."""
    for name, method in methods.METHODS.items():
      for found in self.one_by_one(method, method.alternatives(len(self.evidence.client_ids))):
        yield self._answer(name, found)

  def one_by_one(self, method: Method[Any], questions: Iterable[Mapping[str, Any]]) -> Iterator[Found]:
    """Yields what a method gives for each of several options; what exceeds a cap comes back as a note."""
    for given in questions:
      options = method.read(given)
      try:
        outcome = method.cluster(options, self.evidence.seen_by(method))
      except InputError as error:  # What was given is fine, so these are too many clusters or links.
        yield Found(given, None, None, (str(error),))
      else:
        yield Found(given, outcome.assignment, outcome.threshold, outcome.notes)

  def _answer(self, method: str, found: Found) -> Answer:
    config, clusters, ids = ClusteringConfig(method, **found.given), found.clusters, self.evidence.client_ids
    if clusters is None:
      return Answer(config, found, None, None, None, None, ids)
    labels: np.ndarray | None
    if isinstance(clusters, np.ndarray):
      labels, sizes = clusters, np.bincount(clusters)
    else:
      labels, sizes = None if clusters.is_overlapping else clusters.labels, clusters.membership.sum(axis=1)
    silhouette = None
    if self.with_silhouettes and labels is not None and found.metric is not None:
      silhouette = embedding.silhouette(self.evidence.signatures.distances(found.metric), labels)
    memberships = float(sizes.sum() / len(ids))
    return Answer(config, found, len(sizes), int(sizes.max()), memberships, silhouette, ids)
