"""What runs would cost, in words for a terminal."""

import heapq
import itertools
from collections.abc import Mapping, Sequence

from tff_cluster.base.words import duration, plural

# Name, client-rounds asked for, those that are stored, seconds for the rest, and clusters by clustering (None: not known).
Entry = tuple[str, int, int, float, Mapping[str, int | None]]


def estimate_lines(
  entries: Sequence[Entry], at_once: int = 1, parts: Sequence[int] | None = None
) -> list[str]:
  """Returns a line for each run that is planned, what they cost together, and what was not known.

  Args:
    entries: The runs, in the order in which they are begun.
    at_once: How many are side by side.
    parts: How many entries in a row are one run, which does them one after the other (itself and its folds); None: one each.
  """
  lines = [
    f'{name}: {_cost(asked, stored, seconds)}{_clusters(clusters)}'
    for name, asked, stored, seconds, clusters in entries
  ]
  asked, stored = (sum(entry[i] for entry in entries) for i in (1, 2))  # type: ignore[misc]
  seconds = iter([entry[3] for entry in entries])
  each = [sum(itertools.islice(seconds, count)) for count in parts or [1] * len(entries)]
  whole = _cost(asked, stored, _until_last(each, at_once))
  lines.append(f'in all: {whole} on this machine{f", {at_once} runs side by side" if at_once > 1 else ""}')
  if any(count is None for *_, clusters in entries for count in clusters.values()):
    lines.append('clusters that are not known yet count as one; more clusters of few clients cost more')
  return lines


def _until_last(seconds: Sequence[float], at_once: int) -> float:
  """Returns when the last run ends, each being begun in its turn as soon as one of so many places is free."""
  free = [0.0] * at_once
  for each in seconds:
    heapq.heapreplace(free, free[0] + each)
  return max(free)


def _cost(asked: int, stored: int, seconds: float) -> str:
  left = f'{asked - stored:,} to train, about {duration(seconds)}'
  return f'{asked:,} client-rounds, {stored:,} stored, {left}'


def _clusters(clusters: Mapping[str, int | None]) -> str:
  told = [f'{label} {"not known" if n is None else plural(n, "cluster")}' for label, n in clusters.items()]
  return f'; clusters: {", ".join(told)}' if told else ''
