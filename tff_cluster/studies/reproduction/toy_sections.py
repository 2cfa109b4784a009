"""The sections of a page on toy problems: their figure, and a table of what they are."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tff_cluster.base.words import percent
from tff_cluster.report import pictures
from tff_cluster.report.pages import Cell, Table
from tff_cluster.report.pictures import Picture
from tff_cluster.studies.reproduction import toy_figures as figures

if TYPE_CHECKING:
  from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True)
class Toys:
  """How toy problems of one kind are shown.

  Attributes:
    figure: Draws their results.
    file, title, caption: Of the picture.
    problems: Makes the table of what they are.
  """

  figure: 'Callable[[Sequence[Any]], Figure]'
  file: str
  title: str
  caption: str
  problems: Callable[[Sequence[Any]], Table]

  def draw(self, toys: Sequence[Any], folder: Path) -> Picture:
    """Draws the toys and saves the picture in FOLDER/figures."""
    return pictures.save_drawn((self.file, 'toys', self.title, self.caption, self.figure(toys)), folder)


def _clients_table(toys: Sequence[Any]) -> Table:
  rows = [
      (
          toy.name.replace('_', ', '), ', '.join(toy.features), len(toy.points), toy.points.shape[1], toy.rounds,
          percent(toy.accuracy), len(toy.group_weights), percent(float(toy.client_accuracy.mean())), percent(toy.ceiling),
      )
      for toy in toys
  ]  # fmt: skip
  header = (
      'problem', 'features', 'clients', 'rows each', 'rounds of one model', 'its accuracy', 'clusters of CFL',
      'their accuracy', 'best of any model',
  )  # fmt: skip
  return Table(header, rows, range(2, len(header)), 'Logistic regression, one exact gradient step a round')


def _risks_table(toys: Sequence[Any]) -> Table:
  rows = [
      (
          toy.name, Cell('', toy.formulas, note_look=''), ' and '.join(f'{share:g}' for share in toy.shares),
          _place(toy.path[0]), _place(toy.path[-1]), len(toy.path) - 1,
      )
      for toy in toys
  ]  # fmt: skip
  header = ('problem', 'risks', 'a₁ and a₂', 'start', 'stationary point', 'rounds')
  return Table(header, rows, (5,), 'One exact gradient step a round')


def _place(theta: Sequence[float]) -> str:
  return f'({", ".join(f"{value:.3f}".replace("-", "−") for value in theta)})'


CLIENTS = Toys(
    figures.clients_figure, 'clients', 'Clients’ points and models',
    'Upper left: the XOR problem, in which the clusters see different points and no line serves both. Upper right: both '
        'clusters see the same points and label them differently, so no model serves both. Below: the same clients and a '
        'model that also has the product of both inputs; it cures the first case only. Accuracies are of the rows trained on.',
    _clients_table,
)  # fmt: skip
RISKS = Toys(
    figures.risks_figure, 'paths', 'Paths of Federated Learning with two clients',
    'Thin lines are contours of either client’s risk; a cross or a thick line marks where it is smallest. Arrows are the '
        'clients’ negative gradients, all to one scale. Left, they end opposite to each other. Right, they vanish where the '
        'path meets the grey area. Below, the norms of the gradients by round.',
    _risks_table,
)  # fmt: skip
