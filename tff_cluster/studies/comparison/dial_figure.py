"""The overlap dial: accuracy against mean memberships and against traffic, with other methods as marked points."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tff_cluster.report.figures import base
from tff_cluster.report.figures.gains import KINDS, colour_of
from tff_cluster.studies.comparison.figures import Mark, entries, own_colours

if TYPE_CHECKING:
  from matplotlib.figure import Figure


@base.styled
def dial(positions: Sequence[Mark], labels: Sequence[str], others: Sequence[Mark]) -> 'Figure':
  """Draws two panels that share their heights: the dial's positions joined in order, and the other contenders.

  Args:
    positions: At one budget, from every client alone to all together.
    labels: What each position is called.
    others: Contenders that are compared with, at the same budget.
  """
  from matplotlib.lines import Line2D

  names = [mark.name for mark in others]
  red = colour_of('overlapping')
  colours = own_colours(others, names, red)
  figure = base.new_figure(9.6, 5.2 + 0.2 * -(-len(names) // 4))
  grid = figure.subplots(1, 2, sharey=True)
  across = (lambda mark: mark.memberships, lambda mark: mark.num_bytes / 1e6)
  for axes, of_mark in zip(grid, across, strict=True):
    places = [of_mark(mark) for mark in positions]
    heights = [100 * mark.accuracy.mean for mark in positions]
    axes.plot(places, heights, color=red, linewidth=1.2, zorder=2)
    for mark, place in zip(positions, places, strict=True):
      _interval(axes, mark, place, red)
    axes.scatter(places, heights, s=34, color=red, zorder=3, gid='positions of the dial')
    for i, (place, height, label) in enumerate(zip(places, heights, labels, strict=True)):
      # Both ends have one cluster a client, and would hide each other's names.
      left = i in (0, len(places) - 1)
      axes.annotate(
        label, (place, height), xytext=(-6 if left else 5, -9 if left and i else 5), textcoords='offset points',
        ha='right' if left else 'left', fontsize=8, color=red, zorder=4,
      )  # fmt: skip
    for mark in others:
      axes.scatter(
        of_mark(mark), 100 * mark.accuracy.mean, s=52, marker=KINDS[mark.kind][1], color=colours[mark.name],
        edgecolors='white', linewidths=0.7, zorder=5,
      )  # fmt: skip
    axes.grid()
    axes.margins(x=0.12)
  grid[0].set_xlabel('mean number of clusters of a client')
  grid[1].set_xlabel('traffic of Phase 2, up and down, MB')
  grid[1].xaxis.set_major_formatter(lambda value, _: f'{value:,.0f}' if abs(value) >= 10 else f'{value:g}')
  # Few seeds make intervals that would flatten everything else.
  shown = [100 * mark.accuracy.mean for mark in (*positions, *others)]
  room = 0.25 * max(max(shown) - min(shown), 1.0)
  grid[0].set_ylim(min(shown) - room, max(shown) + room)
  grid[0].set_ylabel('mean client accuracy, %')
  line = Line2D([], [], color=red, marker='o', markersize=6, label='the dial, by quantile of the distances')
  figure.legend(handles=[line, *entries(others, colours)], loc='outside lower center', ncols=3)
  return figure


def _interval(axes: Any, mark: Mark, place: float, colour: str) -> None:
  if mark.accuracy.low is not None and mark.accuracy.high is not None:
    axes.vlines(
      place,
      100 * mark.accuracy.low,
      100 * mark.accuracy.high,
      color=colour,
      linewidth=1.0,
      alpha=0.45,
      zorder=1,
    )
