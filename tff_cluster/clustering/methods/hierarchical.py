"""Agglomerative clustering cut at a distance threshold (FL+HC, Briggs et al. 2020, Algorithm 1).

Source of the linkage and of the cut: SciPy's `linkage` and `fcluster(criterion='distance')`, that is, clusters
are merged while their distance is at most the threshold.

Centroid linkage is the distance between the means of two clusters. A mean can be nearer to a third cluster than what it is the mean of was
(an inversion), so that a merge is at a smaller distance than one below it. A cut at T then is fcluster's: clients are together where
every merge of their branch is at a distance of at most T, so that a merge is done at the largest distance in its branch (`cut_heights`).
With all other linkages that is its own.
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base import words
from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.fields import option
from tff_cluster.clustering import thresholds
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Evidence, Method, Newcomers
from tff_cluster.clustering.method_options import METRICS, OnSignatures, WithThreshold
from tff_cluster.clustering.outcome import Joined, Outcome, by_first_member

if TYPE_CHECKING:
  from tff_cluster.clustering.replay import Found, Grid, Replay
  from tff_cluster.clustering.signatures import Signatures

LINKAGES = ('single', 'complete', 'average', 'centroid', 'ward')
# They are of Euclidean means.
L2_ONLY = ('centroid', 'ward')
# A threshold that is chosen by training, see phases/threshold_choice.py; after how many rounds may follow a colon.
VALIDATION = 'validation'
_ROUNDS = re.compile(r'0*[1-9][0-9]{0,17}')


def merge_order(signatures: 'Signatures', metric: str, linkage: str) -> np.ndarray:
  """Returns the merges of an agglomeration, float64[clients - 1, 4] (SciPy's Z), in their order: lowest first, but for centroid.

  Args:
    signatures: The clients' vectors.
    metric: 'l1', 'l2' or 'cosine'.
    linkage: 'single', 'complete', 'average' (of all pairs, UPGMA), or with 'l2' only 'centroid' or 'ward'.

  Raises:
    InputError: if a choice is unknown, or centroid or ward is asked with another metric.
  """
  if linkage not in LINKAGES:
    raise InputError(f'linkage {linkage!r}: allowed are {", ".join(LINKAGES)}')
  if not fits(metric, linkage):
    raise InputError(f"linkage {linkage!r} needs metric 'l2', given {metric!r}")
  return merges_of(signatures.distances(metric), linkage)


def fits(metric: str, linkage: str) -> bool:
  """Tells whether a linkage goes with a metric."""
  return metric == 'l2' or linkage not in L2_ONLY


def merges_of(distances: np.ndarray, linkage: str) -> np.ndarray:
  """Returns the merges of an agglomeration by float64[clients, clients], as `merge_order` does."""
  from scipy.cluster import hierarchy

  from tff_cluster.clustering import distances as distances_lib

  pairs = distances_lib.condensed(distances)
  return hierarchy.linkage(pairs, linkage) if len(pairs) else np.zeros((0, 4))


def cut_heights(merges: np.ndarray) -> np.ndarray:
  """Returns float64[clients - 1], ascending: a threshold T does as many merges as there are heights of at most T.

  They are the distances of the merges; where a branch has a merge at a larger distance (centroid linkage), that one.
  """
  from scipy.cluster import hierarchy

  return np.sort(hierarchy.maxdists(merges)) if len(merges) else np.zeros(0)


def cut(merges: np.ndarray, threshold: float) -> np.ndarray:
  """Returns the clusters whose merges are all at a distance of at most the threshold.

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
  from scipy.cluster import hierarchy

  return by_first_member(hierarchy.fcluster(merges, t=threshold, criterion='distance'))


def cut_at(text: str, distances: np.ndarray, merges: np.ndarray, client_ids: Sequence[str]) -> Outcome:
  """Returns the clusters at a threshold that is given as text, with what readers must know of them.

  Args:
    text: See thresholds.resolve; quantiles and means are those of the distances.
    distances: float64[clients, clients].
    merges: Of these distances.
    client_ids: The clients.

  Raises:
    InputError: as thresholds.resolve.
  """
  threshold = thresholds.resolve(text, distances)
  assignment = ClusterAssignment.from_labels(cut(merges, threshold or 0.0), client_ids)
  notes = []
  if threshold is not None:
    clusters = words.plural(assignment.num_clusters, 'cluster')
    notes.append(f'threshold {threshold:.4g} ({thresholds.describe(text)}) gives {clusters}')
  if len(merges) and assignment.num_clusters == assignment.num_clients:
    notes.append(
      f'every client is alone: the threshold {threshold:.4g} is below the smallest distance {merges[0, 2]:.4g}'
    )
  elif len(merges) and assignment.num_clusters == 1:
    notes.append(
      f'all clients are in one cluster: the threshold {threshold:.4g} reaches the last merge at {merges[:, 2].max():.4g}'
    )
  return Outcome(assignment, threshold, merges, tuple(notes))


@dataclasses.dataclass(frozen=True)
class Options(WithThreshold, OnSignatures):
  """The options of hierarchical clustering."""

  metric: str = option('l2', 'Distance between signatures.', choices=METRICS)
  linkage: str = option('complete', 'Linkage; centroid and ward need metric=l2.', choices=LINKAGES)


class HierarchicalClustering(Method[Options]):
  """Agglomeration, cut at a distance: `merge_order`, then `cut`."""

  name = 'hierarchical'
  title = 'hierarchical'
  estimator_defaults = MappingProxyType({'distance_threshold': 3.0})
  options_type = Options
  has_linkage = True

  def check(self, options: Options) -> None:
    """Raises InputError where there is no usable threshold, or the linkage does not go with the metric."""
    if not fits(options.metric, options.linkage):
      raise InputError(
        f'{argument("linkage", options.linkage)} needs {argument("metric", "l2")}, given {argument("metric", options.metric)}'
      )
    if options.distance_threshold is None:
      raise InputError(
        f'{argument("method", "hierarchical")} needs {argument("distance_threshold", "T")} (a number)'
      )
    if self.on_validation(options):
      _choice_rounds(options.distance_threshold)
    elif thresholds.parse_threshold(options.distance_threshold)[0] == 'mean':
      raise InputError(
        f'{argument("distance_threshold", "mean")} applies to dynamic_distance; hierarchical takes a number, quantile:q or validation'
      )

  def needs_run(self, options: Options) -> str | None:
    """A threshold that is chosen by training needs a run."""
    if not self.on_validation(options):
      return None
    asked = argument('distance_threshold', options.distance_threshold)
    return f'{asked} trains the clusters of a run; for vectors alone give a number or quantile:q'

  def cluster(self, options: Options, evidence: Evidence) -> Outcome:
    """Returns the clusters; quantile:q is one of the metric's distances."""
    if reason := self.needs_run(options):
      raise InputError(reason)
    signatures = evidence.signatures
    merges = merge_order(signatures, options.metric, options.linkage)
    distances = signatures.distances(options.metric)
    return cut_at(str(options.distance_threshold), distances, merges, signatures.client_ids)

  def join(self, options: Options, newcomers: Newcomers) -> Joined:
    """Returns the cluster that the newcomer, a cluster of its own, would be merged with first."""
    from tff_cluster.clustering import newcomer_rules

    if options.linkage == 'centroid':
      return newcomer_rules.nearest_mean(newcomers)
    members, across = newcomer_rules.members(newcomers), newcomer_rules.across(newcomers, options.metric)
    if options.linkage == 'ward':
      # By how much the sum of squares about the means grows.
      sizes = np.array([len(rows) for rows in members])[:, None]
      cost = newcomer_rules.to_means(newcomer_rules.euclidean(newcomers)) * sizes / (sizes + 1)
    else:
      cost = np.stack([_linked(across[rows], options.linkage) for rows in members])
    return newcomer_rules.cheapest(cost, across, members)

  def replay(self, grid: 'Grid', asked: 'Replay') -> 'Iterator[Found]':
    """Yields a cut for each family and threshold, family after family; each family's merges are found once."""
    from tff_cluster.clustering.replay import Found

    for metric, linkage in grid.families:
      merges = asked.merges(metric, linkage)
      chosen = asked.thresholds(metric, linkage, grid.thresholds)
      for threshold in sorted({*chosen, *grid.more.get((metric, linkage), ())}):
        given = {'metric': metric, 'linkage': linkage, 'distance_threshold': repr(float(threshold))}
        yield Found(given, cut(merges, threshold), float(threshold), (), metric)

  def on_validation(self, options: Options) -> bool:
    """Whether the threshold is the best of several on validation rows."""
    return str(options.distance_threshold).partition(':')[0] == VALIDATION

  def rounds_of_choice(self, options: Options, phase2_rounds: int) -> int:
    """Returns the N of validation:N, 1 for validation, and all rounds for validation:last."""
    if not self.on_validation(options):
      return 0
    rounds = _choice_rounds(str(options.distance_threshold))
    if rounds is not None and rounds > phase2_rounds:
      raise InputError(
        f'{argument("distance_threshold", options.distance_threshold)}: no cut is trained for more than '
        f'{argument("phase2_rounds", phase2_rounds)}'
      )
    return phase2_rounds if rounds is None else rounds

  def cuts(
    self, options: Options, signatures: 'Signatures', counts: Sequence[int]
  ) -> list[tuple[float, np.ndarray]]:
    """Returns the cuts into these numbers of clusters.

    Those that no threshold gives (equal heights, fewer clients) are left out. A threshold is halfway between the heights before and
    after it (`cut_heights`).
    """
    merges = merge_order(signatures, options.metric, options.linkage)
    heights, clients = cut_heights(merges), len(merges) + 1
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

  def title_of(self, options: Options) -> str:
    """Returns the title with the linkage."""
    return f'{self.title}, {options.linkage}'


METHOD = HierarchicalClustering()


def _choice_rounds(text: str) -> int | None:
  """Returns the rounds that validation, validation:N or validation:last asks for; None for all of them."""
  _, colon, rounds = text.partition(':')
  if rounds == 'last':
    return None
  if colon and not _ROUNDS.fullmatch(rounds):
    raise InputError(
      f'{argument("distance_threshold", text)}: allowed are {VALIDATION}, {VALIDATION}:N with N rounds of at least 1, and {VALIDATION}:last'
    )
  return int(rounds) if colon else 1


def _linked(across: np.ndarray, linkage: str) -> np.ndarray:
  if linkage == 'single':
    return across.min(axis=0)
  return across.max(axis=0) if linkage == 'complete' else across.mean(axis=0)
