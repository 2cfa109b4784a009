"""What something cost, in the columns that all pages have for it."""

from collections.abc import Sequence

import numpy as np

from tff_cluster.base.cost import PASSES_OF_TRAINING, Cost
from tff_cluster.base.words import size
from tff_cluster.report.pages import Cell

HEADER = ('client-rounds', 'models', 'bytes', 'rows', 'passes')
WORDS = (
  'Models are those that clients receive (down) and send (up), or vectors in their place. Rows trained are counted as often as they '
  'are visited; rows forward only go through a model to know its loss or its predictions. A pass is one row forward; a row trained '
  f'counts as {PASSES_OF_TRAINING}, as backward takes about twice the arithmetic of forward. Measuring for this page costs nothing.'
)


def cells(costs: Sequence[Cost]) -> list[Cell]:
  """Returns means, in the order of HEADER."""

  def mean(name: str) -> str:
    return _shown([getattr(cost, name) for cost in costs], name)

  return [
    Cell(mean('client_rounds')),
    Cell(f'{mean("models_down")} down', (f'{mean("models_up")} up',)),
    Cell(f'{mean("bytes_down")} down', (f'{mean("bytes_up")} up',)),
    Cell(f'{mean("rows_trained")} trained', (f'{mean("rows_forward")} forward',)),
    Cell(mean('passes')),
  ]


def in_unit(costs: Sequence[Cost], unit: str) -> str:
  """Returns the mean of costs in one of cost.UNITS."""
  return _shown([cost.of(unit) for cost in costs], unit)


def _shown(values: Sequence[int], name: str) -> str:
  mean = float(np.mean(values))
  return size(mean) if name.startswith('bytes') else f'{mean:,.0f}'
