"""Clusterings that found the very same clusters and trained the same models: pages show them once, with all their names."""

import dataclasses
from collections.abc import Hashable, Iterable, Sequence

from tff_cluster.base.grouping import by_key
from tff_cluster.experiment.result_parts import Clustering

JOINT = ' = '
WORDS = 'Names joined by “=” are of clusterings that found the very same clusters: they are shown once.'


@dataclasses.dataclass(frozen=True)
class Merged(Clustering):
  """A clustering under all its names.

  Attributes:
    parts: The clusterings that it stands for; it has the numbers of the first.
  """

  parts: tuple[Clustering, ...] = ()


def memberships(clustering: Clustering) -> frozenset[frozenset[str]]:
  """Returns the clusters of a clustering, whatever their order."""
  return frozenset(frozenset(members) for members in clustering.clusters)


def joined(labels: Iterable[str]) -> str:
  """Returns the one name of identical clusterings: 'kmeans = ward'."""
  return JOINT.join(labels)


def merged(clusterings: Sequence[Clustering]) -> list[Merged]:
  """Returns each clustering once, under all its names.

  The same clusters do not suffice: a recursion may have come to them later, and its models differ then. So the accuracies
  of all evaluations must be equal as well.

  Returns:
    The first of each kind with the label that `joined` gives it.
  """
  groups = by_key(clusterings, lambda c: (memberships(c), _accuracies(c))).values()
  return [Merged(**vars(g[0]) | {'label': joined(c.label for c in g)}, parts=tuple(g)) for g in groups]


def parts(clustering: Clustering) -> tuple[Clustering, ...]:
  """Returns the clusterings that one of `merged` stands for; any other stands for itself."""
  return clustering.parts if isinstance(clustering, Merged) else (clustering,)


def _accuracies(clustering: Clustering) -> Hashable:
  found = {name: tuple(e.client_accuracy) for name, e in clustering.evaluations.items()}
  return tuple(sorted(found.items()))
