"""FedEx as printed (tests/made_up/fedex_rows.py), and its replication of FedAvg as claimed, with a fault for each claim."""

from collections.abc import Iterator

from tests.made_up import fedex_rows, replication_rows
from tff_cluster.papers import mcmahan2017, miles2024
from tff_cluster.scorecard.rows import Ours

NAMES = tuple(miles2024.PUBLISHED)
FIGURE1 = 'fedex/figure1'
# Best accuracy, the round that reaches it, and how far every other round is below it: by batch size, E = 1, 5, 20.
AS_CLAIMED = {
  'IID': {
    10: [(99.2, 6, 0.1), (99.3, 4, 0.1), (99.4, 2, 0.1)],
    50: [(99.1, 9, 0.1), (99.2, 8, 0.1), (99.3, 7, 0.1)],
    None: [(96.0, 20, 0.1), (98.0, 15, 0.1), (98.2, 14, 0.1)],
  },
  'non-IID': {
    10: [(97.5, 12, 0.7), (97.6, 10, 0.7), (97.7, 8, 0.7)],
    50: [(96.5, 20, 1.0), (96.6, 19, 1.0), (96.7, 18, 1.0)],
    None: [(95.5, 30, 3.0), (95.6, 29, 3.0), (95.7, 28, 3.0)],
  },
}


def as_claimed(**changes) -> dict[str, Ours]:
  """Returns all rows of figure 1, of one seed, some of another shape."""
  rows = {}
  for partition, batch, epochs in mcmahan2017.SETTINGS:
    name = mcmahan2017.row_name(partition, batch, epochs)
    shape = AS_CLAIMED[partition][batch][mcmahan2017.EPOCHS.index(epochs)]
    rows[name] = replication_rows.row(name, replication_rows.curve(*changes.get(name, shape)))
  return rows


def good(name: str) -> dict[str, Ours]:
  """Returns rows for which every claim holds."""
  return as_claimed() if name == FIGURE1 else fedex_rows.rows(name)


def bad(name: str) -> Iterator[tuple[str, dict[str, Ours]]]:
  """Yields how the words of a claim start, and rows on which it fails."""
  for start, changes in (_OF_FIGURE1 if name == FIGURE1 else _OF_TABLES).get(name, {}).items():
    yield start, as_claimed(**changes) if name == FIGURE1 else fedex_rows.rows(name, **changes)


_experts = fedex_rows.experts
_OF_FIGURE1 = {
  FIGURE1: {
    'IID, all settings': {'IID, B 50, E 1': (96.5, 9, 0.1)},
    'IID, B = inf with E = 1 does not': {'IID, B inf, E 1': (97.5, 20, 0.1)},
    'IID, B = inf takes': {'IID, B inf, E 5': (98.0, 6, 0.1)},
    'IID, B = 10 is the most accurate': {'IID, B 50, E 1': (99.1, 5, 0.1)},
    'IID, B = 50 and B = 10': {'IID, B 50, E 1': (98.5, 9, 0.1)},
    'IID, more epochs': {'IID, B 10, E 5': (99.3, 7, 0.1)},
    'Non-IID, B = 10 is the most accurate': {'non-IID, B 50, E 1': (96.5, 9, 1.0)},
    'Non-IID, B = inf is the least': {'non-IID, B inf, E 1': (98.5, 30, 3.0)},
    'Non-IID, B = inf fluctuates': {'non-IID, B 10, E 5': (97.5, 10, 12.0)},
    'Non-IID, “the best': {'non-IID, B 10, E 20': (97.7, 11, 0.5)},
    'Non-IID fluctuates': {'IID, B 50, E 20': (99.3, 7, 2.0)},
    'FedAvg reaches': {'IID, B 10, E 1': (98.5, 6, 0.1)},
  }
}  # fmt: skip
_GATE = 'the combination is the bottleneck'
_MISTAKES = 'the combination reinforces mistakes'
_OF_TABLES = {
  'fedex/table1': {
    'FedAvg without clusters is more accurate than FedEx with 3': {'of3': {'baseline_windows': {'accuracy_end': (77.0,)}}},
    'FedAvg without clusters is more accurate than FedEx with 4': {'of4': {'baseline_windows': {'accuracy_end': (9.0,)}}},
    'FedEx with 3 clusters is more accurate': {'of3': {'experts': (_experts(0.7798, (0.5, 0.7798, 0.6), (1, 1, 1), gate=0.99),)}},
    'FedEx is less accurate': {'of4': {'experts': (_experts(0.8, (0.5, 0.6, 0.6, 0.6), (1, 1, 1, 1), gate=0.99),)}},
    'FedEx with 4 clusters is less accurate': {'of4': {'experts': (_experts(0.55, (0.1, 0.5, 0.6, 0.6), (1, 1, 1, 1), gate=0.99),)}},
    f'With 3 clusters {_GATE}': {'of3': {'experts': (_experts(0.78, (0.5, 0.6, 0.6), (1, 1, 1), gate=0.9),)}},
    f'With 4 clusters {_GATE}': {'of4': {'experts': (_experts(0.1, (0.5, 0.6, 0.6, 0.6), (1, 1, 1, 1), gate=0.9),)}},
    f'With 3 clusters {_MISTAKES}': {'of3': {'experts': (_experts(0.95, (0.5, 0.6, 0.6), (1, 1, 1)),)}},
    f'With 4 clusters {_MISTAKES}': {'of4': {'experts': (_experts(0.95, (0.5, 0.6, 0.6, 0.6), (1, 1, 1, 1)),)}},
  },
  'fedex/table2': {
    'FedAvg without clusters is more accurate than FedEx with 3': {'of3': {'baseline_windows': {'accuracy_end': (77.0,)}}},
    'FedAvg without clusters is more accurate than FedEx with 4': {'of4': {'baseline_windows': {'accuracy_end': (9.0,)}}},
    'FedEx with 3 clusters is more accurate': {'of3': {'experts': (_experts(0.7, (0.75, 0.4, 0.5), (1, 1, 1), gate=0.99),)}},
    'FedEx with 4 clusters is more accurate': {'of4': {'experts': (_experts(0.5, (0.75, 0.4, 0.5, 0.1), (1, 1, 1, 1), gate=0.99),)}},
    'FedEx is less accurate': {'of4': {'experts': (_experts(0.9, (0.5, 0.6, 0.6, 0.6), (1, 1, 1, 1), gate=0.99),)}},
    f'With 3 clusters {_GATE}': {'of3': {'experts': (_experts(0.78, (0.5, 0.6, 0.6), (1, 1, 1), gate=0.7),)}},
    f'With 4 clusters {_GATE}': {'of4': {'experts': (_experts(0.1, (0.5, 0.6, 0.6, 0.6), (1, 1, 1, 1), gate=0.7),)}},
    f'With 3 clusters {_MISTAKES}': {'of3': {'experts': (_experts(0.95, (0.5, 0.6, 0.6), (1, 1, 1)),)}},
    f'With 4 clusters {_MISTAKES}': {'of4': {'experts': (_experts(0.95, (0.5, 0.6, 0.6, 0.6), (1, 1, 1, 1)),)}},
    'All clients that hold': {'of4': {'shared': {'source': ([[40, 45, 0, 0], [1, 0, 14, 0]],)}}},
    'Clients that hold CIFAR-10': {'of4': {'shared': {'source': ([[40, 45, 0, 0], [15, 0, 0, 0]],)}}},
  },
  'fedex/figure2': {'Clients with similar data': {'of4': {'together': ((0.2, 0.5),)}}},
  'fedex/figure3': {
    'All clients that hold': {'of4': {'shared': {'source': ([[40, 45, 0, 0], [0, 0, 8, 7]],)}}},
    'Clients that hold CIFAR-10': {'of4': {'shared': {'source': ([[0, 45, 40, 0], [0, 0, 15, 0]],)}}},
  },
}  # fmt: skip
