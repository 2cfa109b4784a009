"""CFL-GP: clustering of gradients, on MNIST in eight angles, with our methods in its place.

H. Kim, H. Kim, G. de Veciana, "Clustered Federated Learning via Gradient-based Partitioning", ICML 2024. CFL-GP clusters what
clients' gradients of a set of models add up to, spectrally, and trains a model a cluster. It is no method of this suite: its example
is run with the methods that there are, of which spectral clustering of the first updates is nearest to it.

Sources: its abstract, and the README and the code of its authors (repository
Heasung-Kim/clustered-federated-learning-via-gradient-based-partitioning): angles, numbers of clients, network, batches, learning
rate and rounds, and that the first clustering round has an ARI of 1. Both were compared.

Departures and choices:
  The README speaks of eight groups. Its angles are four pairs that lie 15 degrees apart, the last one 5, and its code has four models
    by default, so that "optimal" may mean the pairs. Both readings are checked: eight clusters, and four.
  The code takes MNIST's test rows for training too, cuts rows in their order, and tests on 30% of each client's; here rows are drawn,
    and test rows are MNIST's own.
  A client's update is what one local epoch makes of the initial model; the code sends gradients.
  Rows with even angles are ours: eight turns of 45 degrees, which are easier to tell apart.
  The norms of CFL are not in the paper; they only keep it from stopping, and its guards decide (tables.SPLITS of sattler2019).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base.words import signed
from tff_cluster.papers.sattler2019 import tables as sattler
from tff_cluster.scorecard import claims, units
from tff_cluster.scorecard.cells import Cell
from tff_cluster.scorecard.claims import Claim, Part
from tff_cluster.scorecard.published import Published, Scale, by_name
from tff_cluster.scorecard.rows import BASELINE, Ours, Row, clusters_over_rows, fedavg_over_rows

ANGLES, EVEN_ANGLES = (0, 15, 90, 105, 180, 195, 270, 275), tuple(range(0, 360, 45))
CLIENTS = (64, 128)
ROUNDS = 20
_NEARER = 0.01  # An ARI that is nearer is practically the same.
_README, _ABSTRACT = 'Kim et al. 2024, README of the public code', 'Kim et al. 2024, abstract'
# Clusterings of the first updates, by the words for them.
_OF_UPDATES: Mapping[str, dict[str, Any]] = {
  'spectral': {'method': 'spectral', 'signature': 'updates'},
  'k-means': {'method': 'kmeans', 'signature': 'updates'},
}
_CFL: dict[str, Any] = {
  'method': 'bipartition', 'name': 'cfl', 'stationary_norm': 1e6, 'stopping_norm': 1e-6, 'rounds_before_split': 2,
  'min_cluster_size': 2, 'min_similarity_gap': sattler.GAP, 'max_cross_similarity': sattler.CROSS,
}  # fmt: skip
# By name: the clustering, and the rounds before it.
_METHODS: Mapping[str, tuple[dict[str, Any], int]] = {
  **{
    f'{words}, {count} clusters': ({**clustering, 'name': f'{clustering["method"]}{count}', 'num_clusters': count}, 0)
    for count in (8, 4)
    for words, clustering in _OF_UPDATES.items()
  },
  'IFCA, 8 clusters': ({'method': 'ifca', 'num_clusters': 8}, 0),
  'CFL': (_CFL, 1),
}  # fmt: skip


def row_name(clients: int, method: str, even: bool = False) -> str:
  """Returns for instance '64 clients, spectral, 8 clusters'."""
  return f'{clients} clients{", even angles" if even else ""}, {method}'


def _row(clients: int, method: str, even: bool = False) -> Row:
  clustering, before = _METHODS[method]
  angles = ','.join(map(str, EVEN_ANGLES if even else ANGLES))
  settings = {
    'num_clients': clients, 'angles': angles, 'phase1_rounds': before, 'phase2_rounds': ROUNDS - before,
  }  # fmt: skip
  return Row(row_name(clients, method, even), settings, clustering)


_EVEN = ('spectral, 8 clusters', 'k-means, 8 clusters')
ROWS = (
  *(_row(clients, method) for clients in CLIENTS for method in _METHODS),
  *(_row(CLIENTS[0], method, even=True) for method in _EVEN),
)


def _cells(row: Row) -> tuple[Cell, ...]:
  return (
    Cell(row.name, 'ari', 'ARI against the eight angles', units.SCORE, lambda ours: ours.recovery['group'], is_added=True),
    Cell(row.name, 'accuracy', 'accuracy in the last round', units.PERCENT, clusters_over_rows, is_added=True),
    Cell(row.name, 'fedavg', 'accuracy of FedAvg', units.PERCENT, fedavg_over_rows, stage=BASELINE, is_added=True),
  )  # fmt: skip


def are_pairs(shared: Sequence[Sequence[int]]) -> bool:
  """Tells whether clusters are the four pairs of neighbouring angles, of clients in common int[8 angles][clusters]."""
  held = np.asarray(shared) > 0
  pairs = [held[i] & held[i + 1] for i in range(0, len(ANGLES), 2)]
  return bool(
    (held.sum(axis=1) == 1).all()
    and held.shape[1] == 4
    and np.sum(pairs) == 4
    and np.any(pairs, axis=0).all()
  )


def _are_pairs(ours: Ours) -> list[bool]:
  return [are_pairs(table) for table in ours.shared['group']]


def _found(
  words: str, source: str, published: str, names: Sequence[str], right: Callable[[Ours], Sequence[bool]]
) -> Claim:
  """Returns the claim that something is so in every row and seed."""
  return Claim(words, source, published, tuple(claims.answer(name, right) for name in names))


def _more_alike(first: str, second: str) -> Part:
  """Returns the part that the first row's clusters are nearer to the groups than the second's."""
  return claims.compared(
    first, lambda ours: ours.recovery['group'], None, second, _NEARER, lambda value: f'{signed(value, 3)} of the ARI',
  )  # fmt: skip


def _claims() -> tuple[Claim, ...]:
  found = []
  for count, right, words in (
    (8, claims.are_groups('group'), 'The eight groups are found exactly'),
    (
      4,
      _are_pairs,
      'With four clusters the four pairs of neighbouring angles are found exactly (our reading)',
    ),
  ):
    for method in _OF_UPDATES:
      names = [row_name(clients, f'{method}, {count} clusters') for clients in CLIENTS]
      asked = f'{words}, of the first updates, by {method} (ours asks it of {method})'
      found.append(_found(asked, _README, 'ARI 1.0', names, right))
  names = [row_name(clients, 'CFL') for clients in CLIENTS]
  found.append(
    _found(
      'CFL finds the eight groups exactly (ours asks it of CFL)',
      _README,
      'ARI 1.0',
      names,
      claims.are_groups('group'),
    )
  )
  nearest, ifca = _EVEN[0], 'IFCA, 8 clusters'
  both = [(row_name(clients, nearest), row_name(clients, ifca)) for clients in CLIENTS]
  found += [
    Claim(
      f'The spectral clusters of the first updates are nearer to the eight groups than IFCA’s in the end (by an ARI of {_NEARER:g}; '
      'ours asks it of spectral clustering)',
      _ABSTRACT, 'said in words', tuple(_more_alike(*pair) for pair in both),
    ),
    claims.ordered(
      'They serve clients better than IFCA’s (ours asks it of spectral clustering)', _ABSTRACT, 'said in words',
      [claims.compared(first, clusters_over_rows, against=second) for first, second in both],
    ),
    claims.ordered(
      'They serve clients better than FedAvg (ours asks it of spectral clustering)', _ABSTRACT, 'said in words',
      [claims.compared(first, clusters_over_rows, fedavg_over_rows) for first, _ in both],
    ),
  ]  # fmt: skip
  names = [row_name(CLIENTS[0], method, even=True) for method in _EVEN]
  found.append(
    _found('Eight angles that are even parts of a turn are found exactly (ours)', _README, 'not printed', names, claims.are_groups('group'))
  )  # fmt: skip
  return tuple(found)


PUBLISHED = by_name(
  Published(
    'cfl_gp/mnist_angles', 'MNIST in eight angles: which of our methods find the groups', 'Kim et al. 2024, README',
    'cfl_gp_mnist', ROWS,
    'CFL-GP itself is no method of this suite. Its README says that the first clustering round finds the clients’ groups '
    'exactly; whether these are the eight angles or the four pairs of them it leaves open, so both are checked. Clusterings of '
    'updates are made of what one local epoch makes of the initial model. The even angles are ours.',
    'clustering', Scale('small', 'at most 150 rows a client, 10 rounds', {'rows_per_client': 150}, rounds=10),
    tuple(cell for row in ROWS for cell in _cells(row)), _claims(), ('claims', 'grid', 'clusters', 'curves'),
  )
)  # fmt: skip
