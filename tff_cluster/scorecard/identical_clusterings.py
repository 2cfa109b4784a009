"""Clusterings that found the very same clusters and trained the same models: pages show them once, with all their names."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

Clustering = Mapping[str, Any]
_Entry = TypeVar('_Entry')
JOINT = ' = '
WORDS = 'Names joined by “=” are of clusterings that found the very same clusters: they are shown once.'


def memberships(clustering: Clustering) -> frozenset[frozenset[str]]:
  """Returns the clusters of one entry of results['clusterings'], whatever their order."""
  return frozenset(frozenset(members) for members in clustering['clusters'])


def joined(labels: Iterable[str]) -> str:
  """Returns the one name of identical clusterings: 'kmeans = ward'."""
  return JOINT.join(labels)


def grouped(entries: Sequence[_Entry], keys: Sequence[Hashable]) -> list[list[_Entry]]:
  """Returns the entries with equal keys together, in the order of the first of each.

  Args:
    entries: Anything.
    keys: One for each entry.
  """
  found: dict[Hashable, list[_Entry]] = {}
  for entry, key in zip(entries, keys, strict=True):
    found.setdefault(key, []).append(entry)
  return list(found.values())


def merged(clusterings: Sequence[Clustering]) -> list[dict[str, Any]]:
  """Returns each clustering once, under all its names.

  The same clusters do not suffice: a recursion may have come to them later, and its models differ then. So the accuracies
  of all evaluations must be equal as well.

  Args:
    clusterings: results['clusterings'].

  Returns:
    The first entry of each kind with `label` as `joined` gives it, and `parts`: the entries that it stands for.
  """
  groups = grouped(clusterings, [(memberships(c), _accuracies(c)) for c in clusterings])
  return [dict(g[0]) | {'label': joined(c['label'] for c in g), 'parts': g} for g in groups]


def parts(clustering: Clustering) -> list[Clustering]:
  """Returns the entries that one of `merged` stands for; an entry of results['clusterings'] stands for itself."""
  return list(clustering.get('parts', (clustering,)))


def _accuracies(clustering: Clustering) -> Hashable:
  found = {name: tuple(e['client_accuracy']) for name, e in clustering['evaluations'].items()}
  return tuple(sorted(found.items()))
