"""What a replay of clustering questions found."""

import dataclasses
from collections.abc import Mapping, Sequence

from tff_cluster.base import records
from tff_cluster.clustering.recovery import Recovery

# A metric and a linkage; of other methods the title and ''.
Family = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Row:
  """A clustering that was asked for; None where something does not apply, or where the method gave up.

  Attributes:
    method, title: Name of the method, and what pages call it.
    metric, linkage: Of hierarchical clustering; some other methods have a metric, too.
    threshold: The distance threshold that was used.
    num_clusters: K that was asked.
    clusters: How many were found.
    largest_cluster, memberships, silhouette: See clustering.replay.Answer.
    recovery: By name of the planted groups.
    clustering: What a command line gives to train it.
    notes: Sentences for readers.
  """

  method: str
  title: str
  metric: str | None
  linkage: str | None
  threshold: float | None
  num_clusters: int | None
  clusters: int | None
  largest_cluster: int | None
  memberships: float | None
  silhouette: float | None
  recovery: Mapping[str, Recovery | None]
  clustering: str
  notes: tuple[str, ...]

  @property
  def family(self) -> Family:
    """What it is an answer of."""
    return (self.metric, self.linkage) if self.metric and self.linkage else (self.title, '')

  def omega(self, truth: str) -> float | None:
    """Returns the Omega index against planted groups."""
    found = self.recovery[truth]
    return None if found is None else found.omega


@dataclasses.dataclass(frozen=True)
class Truth:
  """Planted groups.

  Attributes:
    name: Theirs.
    groups: How many.
    overlapping: Whether a client is in several.
    exact: By metric and linkage, low and high: every threshold low <= T < high gives the groups exactly; None where none
      does, and high None where none is too large. Empty for overlapping groups.
  """

  name: str
  groups: int
  overlapping: bool
  exact: Mapping[Family, tuple[float, float | None] | None]


@dataclasses.dataclass(frozen=True)
class Replayed:
  """All answers.

  Attributes:
    clients: How many were clustered.
    truths: What is known to have been planted.
    rows: One a clustering.
  """

  clients: int
  truths: Sequence[Truth]
  rows: Sequence[Row]


@dataclasses.dataclass(frozen=True)
class Best(records.Record):
  """The best answer of a family: the most like the planted groups, or where there are none that with the highest silhouette.

  Attributes:
    truth: Name of the groups; empty where there are none.
    family: Metric and linkage, or the method's title.
    exact: Which settings give the groups exactly, in words; empty without groups.
    low, high: Every threshold low <= T < high gives the groups exactly; None where that is not so, or not known.
    score: ARI, Omega where clusters or groups overlap, or silhouette; None where nothing has one.
    threshold, num_clusters: What was asked there.
    clusters, memberships: What was found there.
  """

  truth: str
  family: str
  exact: str
  low: float | None
  high: float | None
  score: float | None
  threshold: float | None
  num_clusters: int | None
  clusters: int | None
  memberships: float | None


@dataclasses.dataclass(frozen=True)
class Summary(records.Record):
  """replay.json.

  Attributes:
    command: What asked.
    clients: How many were clustered.
    best: One a family, for each kind of planted groups.
  """

  command: str
  clients: int
  best: list[Best]
