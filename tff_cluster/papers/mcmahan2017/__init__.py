"""Federated averaging: communication rounds that a CNN on MNIST needs for 99% test accuracy, as printed.

H. B. McMahan, E. Moore, D. Ramage, S. Hampson, B. Agüera y Arcas, "Communication-Efficient Learning of Deep Networks from
Decentralized Data", AISTATS 2017, table 2: the CNN, C = 0.1, 100 clients. Miles et al. 2024 replicate it (figure 1).

Sources: the paper's own text was not at hand. All rounds and speedups were compared with a public transcription of the table (J. A.
Lorencio Abril, "Paper Review: Communication-Efficient Learning of Deep Networks from Decentralized Data", 22 November 2023), and five
of IID clients, FedSGD's among them, with a second one (repository juliana4850/FLfedavgR, README).

Departures and choices: the paper makes each curve monotone (the best value so far) and interpolates linearly where it crosses
the target, as scorecard.curves does (section 3); it chooses a learning rate for each row, we have one for all.
"""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

from tff_cluster.scorecard import curves
from tff_cluster.scorecard.cells import Cell
from tff_cluster.scorecard.published import Published, Scale, by_name
from tff_cluster.scorecard.rows import Row

TARGET = 99.0
# Rounds that are run; some of the printed ones lie beyond.
ROUNDS = 200
# No batch size stands for B = infinity: all rows of the client at once.
BATCHES: tuple[int | None, ...] = (10, 50, None)
EPOCHS = (1, 5, 20)
IID, NON_IID = 'IID', 'non-IID'


@dataclasses.dataclass(frozen=True)
class Printed:
  """A cell of table 2.

  Attributes:
    rounds: Rounds to TARGET percent.
    speedup: The printed ratio of the rounds of FedSGD (B = infinity, E = 1) to these; None for FedSGD itself.
  """

  rounds: int
  speedup: float | None = None


# By batch size B (None: all rows of the client, B = infinity) and epochs E: IID, and two shards a client.
_TABLE2 = {
    (None, 1): (Printed(626), Printed(483)),
    (None, 5): (Printed(179, 3.5), Printed(1000, 0.5)),
    (50, 1): (Printed(65, 9.6), Printed(600, 0.8)),
    (None, 20): (Printed(234, 2.7), Printed(672, 0.7)),
    (10, 1): (Printed(34, 18.4), Printed(350, 1.4)),
    (50, 5): (Printed(29, 21.6), Printed(334, 1.4)),
    (50, 20): (Printed(32, 19.6), Printed(426, 1.1)),
    (10, 5): (Printed(20, 31.3), Printed(229, 2.1)),
    (10, 20): (Printed(18, 34.8), Printed(173, 2.8)),
}  # fmt: skip
# By partition, B and E.
ROUNDS_TO_TARGET: Mapping[tuple[str, int | None, int], Printed] = {
  (partition, *setting): cell
  for setting, cells in _TABLE2.items()
  for partition, cell in zip((IID, NON_IID), cells, strict=True)
}
SETTINGS = tuple(itertools.product((IID, NON_IID), BATCHES, EPOCHS))
SMALL = Scale(
  'small',
  '20 clients with at most 150 rows, half in a round, 20 rounds in all',
  {'num_clients': 20, 'rows_per_client': 150, 'cohort_fraction': 0.5},
  rounds=20,
)


def row_name(partition: str, batch: int | None, epochs: int) -> str:
  """Returns for instance 'non-IID, B 10, E 1'; no batch size is B = infinity."""
  return f'{partition}, B {"inf" if batch is None else batch}, E {epochs}'


def _row(partition: str, batch: int | None, epochs: int) -> Row:
  settings: dict[str, Any] = {
    'partition': 'iid' if partition == IID else 'pathological', 'batch_size': batch or 0, 'local_epochs': epochs,
    'phase1_rounds': 1, 'phase2_rounds': ROUNDS - 1,
  }  # fmt: skip
  return Row(row_name(partition, batch, epochs), settings, {})


ROWS = tuple(_row(*setting) for setting in SETTINGS)
CELLS: tuple[Cell, ...] = tuple(
  cell
  for setting in SETTINGS
  for cell in curves.cells(
    row_name(*setting), {TARGET: ROUNDS_TO_TARGET[setting].rounds}, 'McMahan et al. 2017, table 2'
  )
)
PUBLISHED = by_name(
  Published(
    'mcmahan2017/table2', 'Rounds of FedAvg to 99% on MNIST by batch size B and epochs E',
    'McMahan et al. 2017, table 2', 'fedex_mnist', ROWS,
    'The paper chooses a learning rate for each row, ours is 0.1 everywhere, and it runs until the target, ours '
    f'{ROUNDS} rounds. A tenth of each client’s 600 rows is kept for validation here, so that B = inf is 540 rows.',
    'FedAvg', SMALL, CELLS, sections=('settings', 'claims', 'measures'), absent='Shakespeare',
  )
)  # fmt: skip
