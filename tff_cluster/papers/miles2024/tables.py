"""FedEx: experts of clusters of clients, combined by an online layer, as printed.

C. Miles, A. Khan, L. Baranger, M. Miller, A. Saxena, A. Kulshrestha, "FedEx: An Exploration of Clustering Clients in
Federated Learning", 2024. Figure 1 is FedAvg by batch size and epochs, a replication of papers/mcmahan2017. Tables 1
and 2 give FedAvg, each cluster's model and their combination on the test set, without and with clients that hold CIFAR-10;
figures 2 and 3 the labels in each of four clusters.

Departures and choices:
  Rounds, batch size, epochs, learning rate and client ratio of these experiments are not given. Taken are 200 rounds in
    all, as in the paper's replication of FedAvg (figure 1), with B = 10 and E = 1, eta = 0.1 and C = 0.1, of a cluster's
    clients too. FedAvg has as many rounds.
  Clients are clustered by their weights after one round. Experts go on from the global model of that round
    (cluster_start=global_model); the paper does not say what they start from.
  The paper names PyTorch; the rows of its own names keep the initial weights of Keras, as all rows of this suite do, and those called
    "PyTorch's weights" begin as PyTorch draws them (initializer=fan_in_uniform).
  The printed losses are those of a softmax that is put through a softmax once more: the least is 1.461, and experts that
    are sure of everything have 2.461 minus their accuracy, which fits every printed pair within 0.025 but one (52.91%
    with 1.82). Ours are taken likewise (expert_loss_twice); that of FedAvg is kept where it is what FedAvg was trained by.
    They imply that training, too, takes probabilities for logits: a PyTorch model that ends in a softmax, and CrossEntropyLoss. The
    rows of its own names are trained by cross-entropy, and those called "double softmax" by that loss (loss=double_softmax). The rows
    with both variants are what we take the authors to have run. No printed number stands beside a variant, so that none is compared twice.
    Figure 1 has no variants: its settings are those of McMahan et al. 2017, and FedAvg with each variant stands in the tables.
  "Best loss" is the lowest of a training; ours is that of the last round.
  Experts are ranked by accuracy, since the numbers of clusters mean nothing. One expert of table 1 is N/A. Table 2 prints
    "(3 Clusters)" at two experts that stand with those of four; they are read as "(4 Clusters)".
  Figure 1 gives neither learning rate nor client ratio; ours are 0.1 everywhere, the latter as in McMahan et al. 2017. "Test accuracy of the global model" is here the mean over
    clients of its accuracy on their test rows. IID each of the 10,000 test rows is one client's and each client has 100, so
    it is the accuracy on the test set. Non-IID clients have 98 to 100, and some 40 rows are nobody's. A tenth of each
    client's 600 rows is kept for validation, as in the tables.
  Figures print no numbers: their rows have claims and pictures.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from tff_cluster.papers import mcmahan2017
from tff_cluster.papers.miles2024 import readings
from tff_cluster.scorecard.cells import Cell
from tff_cluster.scorecard.published import Published, Scale, by_name
from tff_cluster.scorecard.rows import Row

ROUNDS, ROUNDS_BEFORE = mcmahan2017.ROUNDS, 1
NOISE = 0.15
# What rows are called whose networks begin as PyTorch draws them, or are trained by the loss that the printed numbers imply.
PYTORCH, DOUBLE = 'PyTorch’s weights', 'double softmax'
_SETTINGS = {PYTORCH: {'initializer': 'fan_in_uniform'}, DOUBLE: {'loss': 'double_softmax'}}
_VARIANTS = ((PYTORCH,), (DOUBLE,), (PYTORCH, DOUBLE))
# Of figures that show the clusters alone.
_SMALL_CLUSTERS = Scale(
  'small', '20 clients with at most 150 rows', {'num_clients': 20, 'rows_per_client': 150}
)


@dataclasses.dataclass(frozen=True)
class Measured:
  """A model on the test set: accuracy in percent, and loss where it is printed."""

  accuracy: float
  loss: float | None = None


@dataclasses.dataclass(frozen=True)
class Printed:
  """What a table prints of one number of clusters.

  Attributes:
    fedavg: FedAvg without clusters.
    experts: One a cluster, in the order of the table; None where N/A is printed.
    fedex: Accuracy of their combination ("Total"), in percent.
  """

  fedavg: Measured
  experts: tuple[Measured | None, ...]
  fedex: float

  @property
  def ranked(self) -> tuple[Measured | None, ...]:
    """The experts from the best to the worst, N/A last; of equal ones the one with the lower loss first."""
    known = [expert for expert in self.experts if expert is not None]
    known.sort(key=lambda expert: (-expert.accuracy, expert.loss or 0.0))
    return (*known, *(None,) * (len(self.experts) - len(known)))


_PLAIN, _NOISY = Measured(97.43, 1.48), Measured(84.72)
PRINTED: Mapping[str, Mapping[str, Printed]] = {
  'fedex/table1': {
    '3 clusters': Printed(_PLAIN, (Measured(71.31, 1.77), Measured(72.11, 1.75), Measured(74.78, 1.72)), 77.98),
    '4 clusters': Printed(
      _PLAIN, (None, Measured(52.91, 1.93), Measured(52.91, 1.82), Measured(64.12, 1.82)), 9.01
    ),
  },
  'fedex/table2': {
    '3 clusters': Printed(_NOISY, (Measured(76.33), Measured(40.04), Measured(52.11)), 80.20),
    '4 clusters': Printed(_NOISY, (Measured(54.52), Measured(48.57), Measured(45.82), Measured(40.17)), 63.88),
  },
}  # fmt: skip


def _row(clusters: int, noise: bool, rounds: int = ROUNDS, variant: tuple[str, ...] = ()) -> Row:
  settings: dict[str, Any] = {'phase1_rounds': ROUNDS_BEFORE, 'phase2_rounds': rounds - ROUNDS_BEFORE}
  if noise:
    settings['noise_clients'] = NOISE
  for name in variant:
    settings |= _SETTINGS[name]
  clustering = {
    'method': 'spectral', 'name': f'experts{clusters}', 'signature': 'weights', 'num_clusters': clusters,
  }  # fmt: skip
  return Row(', '.join((f'{clusters} clusters', *variant)), settings, clustering)


def _entry(
  name: str, title: str, source: str, rows: tuple[Row, ...], note: str, small: Scale, sections: tuple[str, ...],
  cells: tuple[Cell, ...] = (),
) -> Published:  # fmt: skip
  # Curves over rounds are of each client with its own expert; FedEx combines experts after the last round only.
  source = f'Miles et al. 2024, {source}'
  return Published(
    f'fedex/{name}', title, source, 'fedex_mnist', rows, note, 'own expert', small, cells, sections=sections
  )


def _table(name: str, title: str, noise: bool, note: str) -> Published:
  cells = [cell for row, printed in PRINTED[f'fedex/{name}'].items() for cell in _cells(row, printed)]
  rows = [_row(clusters, noise) for clusters in (3, 4)]
  variants = [_row(clusters, noise, variant=variant) for variant in _VARIANTS for clusters in (3, 4)]
  for row in variants:
    columns = [readings.FEDAVG, readings.FEDEX, readings.expert_column(1)]
    if 'loss' in row.settings:
      columns += [readings.FEDAVG_LOSS, readings.expert_column(1, loss=True)]
    cells += [dataclasses.replace(readings.cell(row.name, column, None), is_added=True) for column in columns]
  sections = ('claims', 'numbers', 'experts', 'clusters', 'labels', 'choice', 'curves')
  return _entry(
    name,
    title,
    name.replace('table', 'table '),
    (*rows, *variants),
    note,
    mcmahan2017.SMALL,
    sections,
    tuple(cells),
  )


def _cells(row: str, printed: Printed) -> list[Cell]:
  """Returns the cells of a row; experts stand from the best to the worst, N/A last."""
  cells = [
    readings.cell(row, readings.FEDAVG, printed.fedavg.accuracy),
    readings.cell(row, readings.FEDEX, printed.fedex),
  ]
  for rank, expert in enumerate(printed.ranked, 1):
    cells.append(
      readings.cell(row, readings.expert_column(rank), None if expert is None else expert.accuracy)
    )
    if expert is not None and expert.loss is not None:
      cells.append(readings.cell(row, readings.expert_column(rank, loss=True), expert.loss))
  return cells


def _clusters_entry(name: str, title: str, noise: bool) -> Published:
  row = _row(4, noise, ROUNDS_BEFORE + 1)
  sections = ('labels', 'claims', 'clusters', 'curves')
  return _entry(name, title, name.replace('figure', 'figure '), (row,), _LABELS, _SMALL_CLUSTERS, sections)


_RANKED = 'Experts stand from the best to the worst, in the paper and here, since the numbers of clusters mean nothing.'
_LABELS = (
  'The figure prints no numbers. The numbers of clusters mean nothing, so other panels may show the same clusters. It '
  'shows the clusters alone, which are made after one round, so that the experts are trained for one round only here.'
)
_REPLICATION_NOTE = (
  'The figure prints no numbers. The published numbers are rounds to 99% of McMahan et al. 2017, table 2 (MNIST CNN, '
  'C = 0.1), whom the figure replicates; they choose a learning rate for each row, ours is 0.1 everywhere, and they run '
  'until the target, ours and the figure 200 rounds. A tenth of each client’s 600 rows is kept for validation here, so that '
  'B = inf is 540 rows.'
)
PUBLISHED = by_name(
  _table(
    'table1', 'FedEx on non-IID MNIST', False,
    f'{_RANKED} Of four clusters the paper prints N/A for one expert. The printed losses are those of a softmax put '
    'through a softmax once more, and ours are taken likewise; that of FedAvg, 1.48, has no number of ours beside it.',
  ),
  _table(
    'table2', 'FedEx on non-IID MNIST with CIFAR-10 as noise', True,
    f'{_RANKED} The table prints “(3 Clusters)” at two of the experts of four clusters, read as four. The paper does '
    'not say on which rows it tests; ours are MNIST’s and, in the proportion of training, CIFAR-10’s.',
  ),
  _entry(
    'figure1', 'FedAvg on MNIST by batch size B and epochs E', 'figure 1, beside McMahan et al. 2017, table 2',
    mcmahan2017.ROWS, _REPLICATION_NOTE, mcmahan2017.SMALL, ('settings', 'claims', 'measures'), mcmahan2017.CELLS,
  ),
  _clusters_entry('figure2', 'Digits in each of four clusters', False),
  _clusters_entry('figure3', 'Digits in each of four clusters, with CIFAR-10 as noise', True),
)  # fmt: skip
