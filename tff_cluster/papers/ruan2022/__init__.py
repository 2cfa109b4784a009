"""FedSoft: clients that hold a mixture of two distributions, and what its paper says of them in words.

Y. Ruan, C. Joe-Wong, "FedSoft: Soft Clustered Federated Learning with Proximal Local Updating", AAAI 2022. Clients hold rows of two
distributions in shares of 10:90, of 30:70, or in shares that rise from client to client (linear).

Sources: settings are those of the public code of its authors (repository ycruan/FedSoft) for MNIST and MNIST turned by 90 degrees:
100 clients of 100 to 200 rows, one hidden layer, Adam, 10 local epochs, lambda 0.1, 200 rounds. Its abstract was compared: FedSoft
learns "personalized and cluster models that perform well". The paper's tables (letters, CIFAR-10) were not at hand, so that no number
of them stands here; what each claim makes of the words is ours, and says so.

Departures and choices:
  All clients have 150 rows. The public code puts a softmax before a loss that has one; here there is one.
  Two models are to draw 30 of 100 clients each: 0.6 of the clients take part in a round, of FedAvg, IFCA and FedEM too.
  A client's personalized model in the paper is what it trained last, pulled to the models. Here every client, drawn or not, trains
    it in one round after the last one, from the mean of the models by its shares (aggregation/rules/fine_tuned.py). These means,
    IFCA's models trained on likewise and FedAvg's, fine-tuned for a round where that helps, stand beside it.
  Accuracy is over all clients' test rows together, which have their client's shares of both distributions; the global test set is
    of the first distribution alone.
"""

from collections.abc import Mapping
from typing import Any

from tff_cluster.base.words import signed
from tff_cluster.scorecard import claims, units
from tff_cluster.scorecard.cells import Cell
from tff_cluster.scorecard.claims import Claim, Part
from tff_cluster.scorecard.published import Published, Scale, by_name
from tff_cluster.scorecard.rows import (
  ALONE,
  BASELINE,
  FINE_TUNED,
  Ours,
  Row,
  alone_over_rows,
  clusters_over_rows,
  fedavg_over_rows,
  fine_tuned_over_rows,
)

ROUNDS, LAMBDA = 200, 0.1
MIXTURES: Mapping[str, dict[str, Any]] = {
  '10:90': {'mixture_share': 0.1},
  '30:70': {'mixture_share': 0.3},
  'linear': {'mixture_pattern': 'linear'},
}
_METHODS: Mapping[str, dict[str, Any]] = {
  'FedSoft': {'method': 'fedsoft', 'num_clusters': 2, 'attraction': LAMBDA, 'estimation_interval': 2},
  'IFCA': {'method': 'ifca', 'num_clusters': 2},
  'FedEM': {'method': 'fedem', 'num_clusters': 2},
}
# In points of accuracy: models that differ by less on one distribution are not each its own.
APART = 5.0
# A share that is nearer is practically the same.
_NEARER = 0.005
_ABSTRACT = 'Ruan and Joe-Wong 2022, abstract; the reading is ours'
_SAID = 'said in words'


def row_name(mixture: str, method: str) -> str:
  """Returns for instance '10:90, FedSoft'."""
  return f'{mixture}, {method}'


def _soft(mixture: str) -> str:
  return row_name(mixture, 'FedSoft')


def _rows() -> tuple[Row, ...]:
  rounds: dict[str, Any] = {'phase1_rounds': 0, 'phase2_rounds': ROUNDS}
  return tuple(
    Row(row_name(mixture, method), {**settings, **rounds}, clustering)
    for mixture, settings in MIXTURES.items()
    for method, clustering in _METHODS.items()
  )


def _personalized(found: Ours) -> tuple[float, ...]:
  return found.added_over_rows.get('personalized', ())


def _best(found: Ours) -> tuple[float, ...]:
  """Accuracy on the first distribution of the cluster model that is best on it."""
  return tuple(max(models) for models in found.cluster_accuracy)


def _other(found: Ours) -> tuple[float, ...]:
  return tuple(min(models) for models in found.cluster_accuracy)


def _apart(found: Ours) -> tuple[float, ...]:
  return tuple(high - low for high, low in zip(_best(found), _other(found), strict=True))


def _far_apart(row: str) -> Part:
  """Returns the part that a row's two models are far apart on the first distribution; that has no sign."""
  return Part(row, (row,), claims.of(row, _apart), APART)


def _shares_found(row: str) -> Part:
  """Returns the part that estimated shares are nearer to the planted ones than those of clients' main groups are."""
  return claims.compared(
    row, lambda ours: ours.pure_error['group'], lambda ours: ours.share_error['group'], '', _NEARER, lambda value: signed(value, 3),
  )  # fmt: skip


def _cells(row: Row) -> tuple[Cell, ...]:
  return (
    Cell(row.name, 'own', 'own models', units.PERCENT, clusters_over_rows, is_added=True),
    Cell(row.name, 'personalized', 'own models, trained on', units.PERCENT, _personalized, is_added=True),
    Cell(row.name, 'fedavg', 'FedAvg', units.PERCENT, fedavg_over_rows, stage=BASELINE, is_added=True),
    Cell(row.name, 'fine_tuned', 'FedAvg, fine-tuned', units.PERCENT, fine_tuned_over_rows, stage=FINE_TUNED, is_added=True),
    Cell(row.name, 'alone', 'clients alone', units.PERCENT, alone_over_rows, stage=ALONE, is_added=True),
    Cell(row.name, 'best', 'better cluster model on the first distribution', units.PERCENT, _best, is_added=True),
    Cell(row.name, 'other', 'the other one', units.PERCENT, _other, is_added=True),
    Cell(row.name, 'share_error', 'error of the shares', units.ERROR, lambda ours: ours.share_error['group'], is_added=True),
  )  # fmt: skip


ROWS = _rows()
_EACH = tuple(map(_soft, MIXTURES))
CLAIMS = (
  claims.ordered(
    'FedSoft’s personalized models serve clients better than FedAvg, for every mixture', _ABSTRACT, _SAID,
    [claims.compared(_soft(mixture), _personalized, fedavg_over_rows) for mixture in MIXTURES],
  ),
  claims.ordered(
    'FedSoft’s personalized models serve clients better than training alone, for every mixture', _ABSTRACT, _SAID,
    [claims.compared(_soft(mixture), _personalized, alone_over_rows) for mixture in MIXTURES],
  ),
  claims.ordered(
    'FedSoft’s personalized models serve clients better than IFCA’s models, one of which each client has, for every mixture', _ABSTRACT,
    _SAID, [claims.compared(_soft(mixture), _personalized, clusters_over_rows, row_name(mixture, 'IFCA')) for mixture in MIXTURES],
  ),
  Claim(
    f'FedSoft’s two models each take one distribution: they are at least {APART:g} points apart on the first one, for every mixture',
    _ABSTRACT, _SAID, tuple(map(_far_apart, _EACH)),
  ),
  claims.ordered(
    'They are further apart where clients are less mixed, 10:90, than at 30:70', _ABSTRACT, _SAID,
    [claims.compared(_soft('10:90'), _apart, against=_soft('30:70'))],
  ),
  Claim(
    f'The shares that FedSoft estimates are nearer to the planted ones than whole clients would be, for every mixture (by {_NEARER:g})',
    _ABSTRACT, _SAID, tuple(map(_shares_found, _EACH)),
  ),
)  # fmt: skip
PUBLISHED = by_name(
  Published(
    'fedsoft/mixtures', 'FedSoft on clients that hold two distributions', 'Ruan and Joe-Wong 2022, section 5', 'fedsoft_mnist', ROWS,
    'The paper’s tables were not at hand: no number of theirs stands here. The claims are what we make of its words, on MNIST and '
    'MNIST turned by 90 degrees, one of the settings of its public code.',
    'soft clusters',
    Scale('small', '20 clients, 40 rounds', {'num_clients': 20}, rounds=40),
    tuple(cell for row in ROWS for cell in _cells(row)), CLAIMS, ('claims', 'grid', 'curves'),
  )
)  # fmt: skip
