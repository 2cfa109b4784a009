"""What runs would cost, in words for a terminal."""

import heapq
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from tff_cluster.base.words import duration, plural


def estimate_lines(
  runs: Sequence[Any],
  estimates: Sequence[Any],
  at_once: int = 1,
  parts: Sequence[int] | None = None,
) -> list[str]:
  """Returns a line for each run that is planned, what they cost together, and what was not known.

  Args:
    runs: The runs, in the order in which they are begun (Run of phases/cost_estimates.py, which this room must not import).
    estimates: What each costs (Estimate, from there).
    at_once: How many are side by side.
    parts: How many in a row are one run, which does them one after the other (itself and its folds); None: one each.
  """
  lines = [
    f'{run.name}: {_cost(each.asked, each.stored, each.seconds)}{_clusters(each.clusters)}'
    for run, each in zip(runs, estimates, strict=True)
  ]
  seconds = iter([each.seconds for each in estimates])
  by_run = [sum(itertools.islice(seconds, count)) for count in parts or [1] * len(runs)]
  asked, stored = sum(each.asked for each in estimates), sum(each.stored for each in estimates)
  whole = _cost(asked, stored, _until_last(by_run, at_once))
  lines.append(f'in all: {whole} on this machine{f", {at_once} runs side by side" if at_once > 1 else ""}')
  if any(count is None for each in estimates for count in each.clusters.values()):
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
