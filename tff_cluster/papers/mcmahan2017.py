"""Federated averaging: communication rounds that a CNN on MNIST needs for 99% test accuracy, as printed.

H. B. McMahan, E. Moore, D. Ramage, S. Hampson, B. Agüera y Arcas, "Communication-Efficient Learning of Deep Networks from
Decentralized Data", AISTATS 2017, table 2: the CNN, C = 0.1, 100 clients. Miles et al. 2024 replicate it (figure 1).

Departures and choices: the paper makes each curve monotone (the best value so far) and interpolates linearly where it crosses
the target, as reporting.fedex.curve_measures does; it chooses a learning rate for each row, we have one for all. The rounds were typed
without the paper at hand; they agree with the printed speedups, which does not check those of FedSGD themselves.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

TARGET = 99.0
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
ROUNDS_TO_TARGET: Mapping[tuple[str, int | None, int], Printed] = MappingProxyType(
  {
    (partition, *setting): cell
    for setting, cells in _TABLE2.items()
    for partition, cell in zip((IID, NON_IID), cells, strict=True)
  }
)
