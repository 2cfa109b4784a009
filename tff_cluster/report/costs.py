"""What something cost, in the columns that all pages have for it."""

from collections.abc import Sequence

import numpy as np

from tff_cluster.base.cost import PASSES_OF_TRAINING, Cost
from tff_cluster.base.words import size

HEADER = (
    'client-rounds', 'models down', 'models up', 'bytes down', 'bytes up', 'rows trained', 'rows forward', 'passes',
)  # fmt: skip
WORDS = (
  'Models are those that clients receive and send, or vectors in their place. Rows trained are counted as often as they are visited; '
  'rows forward only go through a model to know its loss or its predictions. A pass is one row forward; a row trained counts as '
  f'{PASSES_OF_TRAINING}, as backward takes about twice the arithmetic of forward. Measuring for this page costs nothing.'
)
_BYTES = ('bytes', 'bytes_down', 'bytes_up')
# The attributes of Cost.
_NAMES = tuple(words.replace(' ', '_').replace('-', '_') for words in HEADER)


def cells(costs: Sequence[Cost]) -> list[str]:
  """Returns means, in the order of HEADER."""
  return [_mean([getattr(cost, name) for cost in costs], name) for name in _NAMES]


def in_unit(costs: Sequence[Cost], unit: str) -> str:
  """Returns the mean of costs in one of cost.UNITS."""
  return _mean([cost.of(unit) for cost in costs], unit)


def _mean(values: Sequence[int], name: str) -> str:
  mean = float(np.mean(values))
  return size(mean) if name in _BYTES else f'{mean:,.0f}'
