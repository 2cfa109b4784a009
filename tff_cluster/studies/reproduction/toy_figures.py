"""The toy problems of CFL, as figures 1 and 2 of Sattler et al. 2019: clients' points, and paths of Federated Learning."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base.words import percent
from tff_cluster.papers.sattler2019.toys.results import ClientsToy, RisksToy
from tff_cluster.report.figures import base

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_CLIENTS = base.colours(2)  # Blue and orange, as in the paper.
_RINGS = 8  # Contour lines of a risk.
_MOST_ARROWS = 4
_LEAST_GAP = 0.25  # Of the picture's half width; arrows that start nearer to each other hide each other.
_SMALLEST = 1e-7  # Where a norm is drawn that is zero.
_BAND = 0.13  # Width of the band on a boundary's side of label 1, in units of the inputs.
_RAISED = str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹')
_TITLES = {'xor': 'XOR', 'conditionals': 'Diverging p(y | x)'}


@base.styled
def clients_figure(toys: Sequence[ClientsToy]) -> 'Figure':
  """Draws a panel a toy, two side by side: points by planted cluster and label, and where each model changes its answer.

  Args:
    toys: At least one.
  """
  from matplotlib.legend_handler import HandlerTuple

  lines = -(-len(toys) // 2)
  figure = base.new_figure(9.2, 1.0 + 4.6 * lines)
  grid = figure.subplots(lines, 2, sharex=True, sharey=True, squeeze=False).ravel()
  for axes in grid[len(toys) :]:
    axes.set_axis_off()
  for axes, toy in zip(grid, toys, strict=False):
    _draw_points(axes, toy)
    _draw_boundary(axes, toy, 0, base.INK, (0, (4, 2)))
    if toy.groups.any():
      for group in range(len(toy.group_weights)):
        # In the colour of the planted cluster that most of its clients are of.
        planted = np.bincount(toy.planted[toy.groups == group], minlength=2).argmax()
        _draw_boundary(axes, toy, 1 + group, _CLIENTS[planted], '-')
    kind = 'model with x₁x₂' if toy.name.endswith('_richer') else 'linear model'
    axes.set_title(f'{_TITLES[toy.name.removesuffix("_richer")]}, {kind}', pad=19)
    axes.annotate(
      _told(toy),
      (0.0, 1.0),
      (0, 5),
      xycoords='axes fraction',
      textcoords='offset points',
      fontsize=9,
      gid='told',
    )
    axes.set_aspect('equal')
    axes.set_xlim(toy.axis[0], toy.axis[-1])
    axes.set_ylim(toy.axis[0], toy.axis[-1])
    axes.set_xlabel('x₁')
    axes.set_ylabel('x₂')
    axes.label_outer()
    axes.spines[['top', 'right']].set_visible(True)
  handles, names = _clients_legend()
  figure.legend(
    handles,
    names,
    loc='outside lower center',
    ncols=2,
    handler_map={tuple: HandlerTuple(ndivide=None)},
    handlelength=3.0,
  )
  figure.set_layout_engine('constrained', h_pad=0.08)
  figure.draw_without_rendering()  # Panels with equal axes take the layout a second pass to fit.
  return figure


@base.styled
def risks_figure(toys: Sequence[RisksToy]) -> 'Figure':
  """Draws a column a toy: both risks with the path of Federated Learning, and below it the norms of the gradients.

  Args:
    toys: At least one.
  """
  figure = base.new_figure(4.6 * len(toys), 7.6)
  grid = figure.subplots(2, len(toys), height_ratios=(4.3, 2.0), squeeze=False)
  for column, toy in enumerate(toys):
    _draw_risks(grid[0, column], toy)
    _draw_norms(grid[1, column], toy)
    if column:
      grid[1, column].sharey(grid[1, 0])
  grid[0, 0].set_ylabel('θ₂')
  grid[1, 0].set_ylabel('norm')
  figure.legend(*_risks_legend(), loc='outside lower center', ncols=3)
  return figure


def _draw_points(axes: Any, toy: ClientsToy) -> None:
  for planted, colour in enumerate(_CLIENTS):
    of_cluster = toy.planted == planted
    points, labels = toy.points[of_cluster].reshape(-1, 2), toy.labels[of_cluster].ravel()
    axes.scatter(*points[labels == 1].T, s=15, marker='o', color=colour, linewidths=0, alpha=0.8, zorder=2)
    axes.scatter(
      *points[labels == 0].T, s=15, marker='o', facecolors='none', edgecolors=colour, linewidths=0.9, zorder=2
    )


def _draw_boundary(axes: Any, toy: ClientsToy, model: int, colour: str, dash: Any) -> None:
  scores = toy.scores[model]
  if scores.min() > 0 or scores.max() < 0:  # The same answer all over the picture.
    return
  step = toy.axis[1] - toy.axis[0]
  slope = np.hypot(*np.gradient(scores, step))
  # To first order the distance from the boundary, so that bands of all models are about equally wide.
  distance = scores / np.maximum(slope, 1e-12)
  axes.contourf(toy.axis, toy.axis, distance, levels=(0.0, _BAND), colors=[colour], alpha=0.25, zorder=1)
  axes.contour(
    toy.axis, toy.axis, scores, levels=(0.0,), colors=[colour], linestyles=[dash], linewidths=2.0, zorder=3
  )


def _told(toy: ClientsToy) -> str:
  one = f'one model for all: {percent(toy.accuracy)} right'
  if not toy.groups.any():
    return f'{one}; CFL splits nothing'
  own = percent(float(toy.client_accuracy.mean()))
  return f'{one}; CFL, {len(toy.group_weights)} clusters: {own}'


def _clients_legend() -> tuple[list[Any], list[str]]:
  from matplotlib.lines import Line2D
  from matplotlib.patches import Patch

  dot: dict[str, Any] = {'marker': 'o', 'linestyle': 'none', 'markersize': 5}
  handles: list[Any] = [
    (Line2D([], [], color=colour, **dot), Line2D([], [], color=colour, fillstyle='none', **dot))
    for colour in _CLIENTS
  ]
  handles.append(Line2D([], [], color=base.INK, linestyle=(0, (4, 2)), linewidth=2.0))
  handles.append(tuple(Line2D([], [], color=colour, linewidth=2.0) for colour in _CLIENTS))
  handles.append(Patch(facecolor=base.INK, alpha=0.25))
  names = [f'{n} cluster: label 1 full, label 0 empty' for n in ('first', 'second')]
  names += ['one model for all', 'a model for each cluster that CFL found', 'side of a model’s label 1']
  return handles, names


def _draw_risks(axes: Any, toy: RisksToy) -> None:
  both = toy.risks.max(axis=0)
  axes.contourf(toy.axis, toy.axis, both, levels=(-1.0, 1e-4), colors=[base.GREY], alpha=0.45, zorder=1)
  for risk, colour in zip(toy.risks, _CLIENTS, strict=True):
    # Even steps of the root, since risks grow with the square of the distance.
    levels = np.linspace(0.0, np.sqrt(risk.max()), _RINGS + 1)[1:] ** 2
    axes.contour(
      toy.axis, toy.axis, risk, levels=levels, colors=[colour], linewidths=0.8, alpha=0.55, zorder=1
    )
    if (risk == 0).sum() > 1:
      axes.contour(toy.axis, toy.axis, risk, levels=(1e-4,), colors=[colour], linewidths=2.0, zorder=2)
    else:
      row, col = np.unravel_index(risk.argmin(), risk.shape)
      axes.plot(
        toy.axis[col], toy.axis[row], marker='+', markersize=9, markeredgewidth=2, color=colour, zorder=2
      )
  axes.plot(*toy.path.T, color=base.INK, linewidth=1.8, zorder=3)
  axes.plot(*toy.path[0], marker='o', markersize=6, color=base.INK, zorder=4)
  scale = 0.45 * toy.axis[-1] / np.linalg.norm(toy.gradients[0], axis=-1).max()
  for at in _arrow_places(toy):
    for gradient, colour in zip(toy.gradients[at], _CLIENTS, strict=True):
      if np.linalg.norm(scale * gradient) > 0.02 * toy.axis[-1]:
        axes.annotate(
          '', toy.path[at] - scale * gradient, toy.path[at], zorder=5,
          arrowprops={'arrowstyle': '-|>', 'color': colour, 'linewidth': 1.8, 'shrinkA': 0, 'shrinkB': 0},
        )  # fmt: skip
  axes.plot(
    *toy.path[-1],
    marker='*',
    markersize=11,
    color=base.INK,
    markeredgecolor='white',
    markeredgewidth=0.6,
    zorder=4.5,
  )
  axes.set_title(f'{toy.name.capitalize()} risks')
  axes.set_aspect('equal')
  axes.set_xlabel('θ₁')
  axes.spines[['top', 'right']].set_visible(True)


def _arrow_places(toy: RisksToy) -> list[int]:
  """Returns positions on the path where arrows start: the last, and those before that are not too near to each other."""
  places = [len(toy.path) - 1]
  along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(toy.path, axis=0), axis=1))])
  gap = max(_LEAST_GAP * toy.axis[-1], along[-1] / _MOST_ARROWS)
  for at in range(len(toy.path) - 2, -1, -1):
    if along[places[-1]] - along[at] >= gap:
      places.append(at)
  return places if 0 in places or along[places[-1]] < 0.5 * gap else [*places, 0]


def _draw_norms(axes: Any, toy: RisksToy) -> None:
  rounds = np.arange(len(toy.path))
  colours, dashes = (*_CLIENTS, base.INK), ('-', (0, (5, 2)), (0, (1, 1.2)))
  for norms, colour, dash in zip(toy.norms.T, colours, dashes, strict=True):
    axes.plot(rounds, np.maximum(norms, _SMALLEST), color=colour, linestyle=dash, linewidth=2.0)
  for name, limit in (('ε₁', toy.eps_1), ('ε₂', toy.eps_2)):
    axes.axhline(limit, color=base.GREY, linewidth=0.9, linestyle=':')
    axes.annotate(
      name, (1.0, limit), (3, 0), xycoords=axes.get_yaxis_transform(), textcoords='offset points', va='center',
      fontsize=9, color=base.GREY,
    )  # fmt: skip
  axes.set_yscale('log')
  axes.yaxis.set_major_formatter(lambda value, _: f'10{str(round(np.log10(value))).translate(_RAISED)}')
  axes.set_xlabel('round')
  axes.margins(x=0.0)
  axes.grid(axis='y')


def _risks_legend() -> tuple[list[Any], list[str]]:
  from matplotlib.lines import Line2D
  from matplotlib.patches import Patch

  first, second = (Line2D([], [], color=colour, linewidth=2.0) for colour in _CLIENTS)
  second.set_linestyle('-')
  mean = Line2D([], [], color=base.INK, linewidth=2.0, linestyle=(0, (1, 1.2)))
  path = Line2D([], [], color=base.INK, linewidth=1.8, marker='o', markersize=5)
  end = Line2D([], [], color=base.INK, linestyle='none', marker='*', markersize=11)
  area = Patch(facecolor=base.GREY, alpha=0.45)
  names = ['first client: risk, −gradient, norm', 'second client', 'norm of the mean gradient']
  names += ['path of Federated Learning', 'stationary point', 'both risks are smallest']
  return [first, second, mean, path, end, area], names
