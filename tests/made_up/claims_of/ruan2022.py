"""FedSoft as claimed, with a fault for each claim."""

from collections.abc import Iterator

from tests.made_up.scorecard_rows import changed, make_ours
from tff_cluster.papers import ruan2022
from tff_cluster.scorecard.rows import Ours

NAMES = tuple(ruan2022.PUBLISHED)
TABLE = ruan2022.PUBLISHED['fedsoft/mixtures']
PURE = {'10:90': 0.1, '30:70': 0.3, 'linear': 0.25}
MODELS = {'10:90': (93.0, 60.0), '30:70': (90.0, 75.0), 'linear': (80.0, 91.0)}


def as_claimed(**changes) -> dict[str, Ours]:
  """Returns all rows of one seed, some changed by their names."""
  rows = {}
  for row in TABLE.rows:
    mixture, method = row.name.split(', ')
    rows[row.name] = make_ours(
      row, seeds=(0,), over_rows=(90.0,), added_over_rows={'personalized': (92.0 if method == 'FedSoft' else 91.0,)},
      baseline_over_rows=(88.0,), fine_tuned_over_rows=(89.0,), alone_over_rows=(85.0,), cluster_accuracy=(MODELS[mixture],), share_error={'group': (PURE[mixture] - 0.02,)},
      pure_error={'group': (PURE[mixture],)},
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
    (
      'FedSoft’s personalized models serve clients better than FedAvg',
      '30:70, FedSoft',
      {'baseline_over_rows': (93.0,)},
    ),
    (
      'FedSoft’s personalized models serve clients better than training',
      'linear, FedSoft',
      {'alone_over_rows': (93.0,)},
    ),
    (
      'FedSoft’s personalized models serve clients better than IFCA',
      '10:90, IFCA',
      {'over_rows': (93.0,)},
    ),
    ('FedSoft’s two models', 'linear, FedSoft', {'cluster_accuracy': ((84.5, 80.0),)}),
    ('They are further apart', '30:70, FedSoft', {'cluster_accuracy': ((95.0, 55.0),)}),
    ('The shares', '10:90, FedSoft', {'share_error': {'group': (0.1,)}}),
  ):
    yield start, as_claimed(**{row: change})
