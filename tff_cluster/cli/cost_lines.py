"""What runs would cost, in words for a terminal."""

from collections.abc import Mapping, Sequence

from tff_cluster.base.words import duration, plural

# Name, client-rounds asked for, those that are stored, seconds for the rest, and clusters by clustering (None: not known).
Entry = tuple[str, int, int, float, Mapping[str, int | None]]


def estimate_lines(entries: Sequence[Entry]) -> list[str]:
  """Returns a line for each run that is planned, what they cost together, and what was not known."""
  lines = [
    f'{name}: {_cost(asked, stored, seconds)}{_clusters(clusters)}'
    for name, asked, stored, seconds, clusters in entries
  ]
  total = _cost(*(sum(entry[i] for entry in entries) for i in (1, 2, 3)))  # type: ignore[misc]
  lines.append(f'in all: {total} on this machine')
  if any(count is None for *_, clusters in entries for count in clusters.values()):
    lines.append('clusters that are not known yet count as one; more clusters of few clients cost more')
  return lines


def _cost(asked: int, stored: int, seconds: float) -> str:
  left = f'{asked - stored:,} to train, about {duration(seconds)}'
  return f'{asked:,} client-rounds, {stored:,} stored, {left}'


def _clusters(clusters: Mapping[str, int | None]) -> str:
  told = [f'{label} {"not known" if n is None else plural(n, "cluster")}' for label, n in clusters.items()]
  return f'; clusters: {", ".join(told)}' if told else ''
