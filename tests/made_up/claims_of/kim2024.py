"""CFL-GP's example as claimed, with a fault for each claim."""

from collections.abc import Iterator

from tests.made_up.scorecard_rows import changed, make_ours
from tff_cluster.papers import kim2024
from tff_cluster.scorecard.rows import Ours

NAMES = tuple(kim2024.PUBLISHED)
TABLE = kim2024.PUBLISHED['cfl_gp/mnist_angles']
# Clients that each of eight angles has in each of four clusters.
PAIRS = [
  [8, 0, 0, 0], [8, 0, 0, 0], [0, 0, 8, 0], [0, 0, 8, 0], [0, 8, 0, 0], [0, 8, 0, 0], [0, 0, 0, 8], [0, 0, 0, 8],
]  # fmt: skip


def as_claimed(**changes) -> dict[str, Ours]:
  """Returns all rows of one seed, some changed by their names."""
  rows = {}
  for row in TABLE.rows:
    four = '4 clusters' in row.name
    ari = 0.6 if four else 0.5 if 'IFCA' in row.name else 1.0
    accuracy = 80.0 if 'IFCA' in row.name else 95.0
    rows[row.name] = make_ours(
      row, seeds=(0,), recovery={'group': (ari,)}, shared={'group': (PAIRS,)} if four else {},
      over_rows=(accuracy,), baseline_over_rows=(70.0,),
    )  # fmt: skip
  return {name: changed(row, **changes.get(name, {})) for name, row in rows.items()}


def good(name: str) -> dict[str, Ours]:
  """Returns rows for which every claim holds."""
  del name
  return as_claimed()


def bad(name: str) -> Iterator[tuple[str, dict[str, Ours]]]:
  """Yields how the words of a claim start, and rows on which it fails."""
  del name
  for start, row, change in (
    ('The eight groups are found exactly, of the first updates, by spectral', '64 clients, spectral, 8 clusters', {'recovery': {'group': (0.999,)}}),
    ('The eight groups are found exactly, of the first updates, by k-means', '128 clients, k-means, 8 clusters', {'recovery': {'group': (None,)}}),
    ('With four clusters the four pairs of neighbouring angles are found exactly (our reading), of the first updates, by spectral',
     '64 clients, spectral, 4 clusters', {'shared': {'group': ([*PAIRS[:7], [0, 8, 0, 0]],)}}),
    ('With four clusters the four pairs of neighbouring angles are found exactly (our reading), of the first updates, by k-means',
     '128 clients, k-means, 4 clusters', {'shared': {'group': ([*PAIRS[:7], [0, 0, 1, 7]],)}}),
    ('CFL finds', '64 clients, CFL', {'recovery': {'group': (0.9,)}}),
    ('The spectral clusters', '64 clients, IFCA, 8 clusters', {'recovery': {'group': (1.0,)}}),
    ('They serve clients better than IFCA', '128 clients, IFCA, 8 clusters', {'over_rows': (96.0,)}),
    ('They serve clients better than FedAvg', '64 clients, spectral, 8 clusters', {'baseline_over_rows': (96.0,)}),
    ('Eight angles', '64 clients, even angles, k-means, 8 clusters', {'recovery': {'group': (0.5,)}}),
  ):  # fmt: skip
    yield start, as_claimed(**{row: change})
