"""What a clustering method hands back: of the clients that were clustered, and of those that come later."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tff_cluster.clustering.assignment import ClusterAssignment


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
  """A clustering and what its readers must know.

  Attributes:
    assignment: The clustering.
    threshold: The distance threshold that was used; None for methods without one.
    linkage: float64[clients - 1, 4] in SciPy's form; None for methods without one.
    notes: Sentences for readers of a report.
    figures: What else the method measured, by name; None where it is undefined.
    excluded: Ids of clients that were not clustered, because their vectors were not finite (clustering/diverged_clients.py).
    sent_bytes: What clients sent to be clustered, all together; None where it is their vectors.
  """

  assignment: ClusterAssignment
  threshold: float | None = None
  linkage: np.ndarray | None = None
  notes: tuple[str, ...] = ()
  figures: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
  excluded: tuple[str, ...] = ()
  sent_bytes: int | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Joined:
  """Which clusters newcomers are assigned to.

  Attributes:
    membership: bool[clusters, newcomers], at least one cluster a newcomer; or float64, their shares.
    fallback: bool[newcomers], where no cluster took the newcomer by the method's own rule. Rules that name the nearest cluster, as those of
      k-means and hierarchical clustering do, take every newcomer, however far it is.
    sent_bytes: What newcomers sent to be assigned, all together; None where it is their vectors.
  """

  membership: np.ndarray
  fallback: np.ndarray
  sent_bytes: int | None = None


def by_first_member(labels: np.ndarray) -> np.ndarray:
  """Returns int64[clients], the same clustering with its clusters numbered in order of their first members."""
  _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
  return np.argsort(np.argsort(first)).astype(np.int64)[inverse]
