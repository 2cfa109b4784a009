"""What a page on toy problems shows: their figures, and tables of what they are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tff_cluster.base.words import percent
from tff_cluster.report import pictures
from tff_cluster.report.pages import Cell, Table
from tff_cluster.report.pictures import Picture
from tff_cluster.studies.reproduction import toy_figures as figures


def draw_clients(toys: Sequence[Any], folder: Path) -> Picture:
  """Draws clients' points and models, and saves the picture in FOLDER/figures."""
  caption = (
    'Upper left: the XOR problem, in which the clusters see different points and no line serves both. Upper right: both '
    'clusters see the same points and label them differently, so no model serves both. Below: the same clients and a '
    'model that also has the product of both inputs; it cures the first case only. Accuracies are of the rows trained on.'
  )
  drawn = ('clients', 'toys', 'Clients’ points and models', caption, figures.clients_figure(toys))
  return pictures.save_drawn(drawn, folder)


def draw_risks(toys: Sequence[Any], folder: Path) -> Picture:
  """Draws the paths of two clients' model over their risks, and saves the picture in FOLDER/figures."""
  caption = (
    'Thin lines are contours of either client’s risk; a cross or a thick line marks where it is smallest. Arrows are the '
    'clients’ negative gradients, all to one scale. Left, they end opposite to each other. Right, they vanish where the '
    'path meets the grey area. Below, the norms of the gradients by round.'
  )
  title = 'Paths of Federated Learning with two clients'
  return pictures.save_drawn(('paths', 'toys', title, caption, figures.risks_figure(toys)), folder)


def clients_table(toys: Sequence[Any]) -> Table:
  """Returns what problems of clients with points are, and how accurate models of them are."""
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


def risks_table(toys: Sequence[Any]) -> Table:
  """Returns what problems of two clients' risks are, and where their model ends."""
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
