"""Connected groups of a dense graph, without copying it into a sparse one."""

import numpy as np


def components(links: np.ndarray) -> np.ndarray:
  """Returns each vertex's connected component.

  Args:
    links: bool[n, n], symmetric; the diagonal does not matter.

  Returns:
    int64[n], components numbered in order of their first vertices.
  """
  found = np.full(len(links), -1, np.int64)
  count = 0
  for start in range(len(links)):
    if found[start] >= 0:
      continue
    frontier = np.array([start])
    while frontier.size:
      found[frontier] = count
      reached = np.zeros(len(links), bool)
      # Row by row: the rows of a whole frontier together could be as large as the graph.
      for vertex in frontier:
        reached |= links[vertex]
      frontier = np.flatnonzero(reached & (found < 0))
    count += 1
  return found


def groups(links: np.ndarray) -> list[np.ndarray]:
  """Returns int64[members] for each connected component of `links`, in order of their first vertices; see `components`."""
  component = components(links)
  return np.split(np.argsort(component, kind='stable'), np.cumsum(np.bincount(component))[:-1])
