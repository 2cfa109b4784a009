"""Curves of a reproduction: a panel for each row, with clusters beside without, as figures 1 to 6 of Briggs et al. 2020."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.experiment.config import FEDAVG
from tff_cluster.report.figures import base

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_FLAT = 0.2  # Percent; curves that move less are not blown up until their rounding shows.
_MOST_COLUMNS = 4  # A table of FL+HC has four values of n for each client fraction: they stand side by side.


@dataclasses.dataclass(frozen=True, eq=False)
class Panel:
  """What one panel shows.

  Attributes:
    name: Its title.
    ours: Percent by round, with clusters, from the first round after the clustering on.
    baseline: Percent by round, without clusters, from round 1 on.
    clustered_after: The last round before the clustering.
  """

  name: str
  ours: Mapping[int, float]
  baseline: Mapping[int, float]
  clustered_after: int


@base.styled
def curves_by_row(
  panels: Sequence[Panel], quantity: str, remark: str = '', method: str = 'FL+HC'
) -> 'Figure':
  """Draws one panel a row; all have the same axes, so that rows can be compared by eye.

  Args:
    panels: At least one.
    quantity: What is drawn, with its unit: the label of the upright axis.
    remark: What was scaled down; it stands above the panels, since a figure travels without its page.
    method: What the curves with clusters are called.
  """
  from matplotlib.ticker import MaxNLocator

  columns = min(len(panels), _MOST_COLUMNS)
  lines = -(-len(panels) // columns)
  figure = base.new_figure(6.4 if columns == 1 else 9.6, 3.9 if lines == 1 else 1.2 + 2.0 * lines)
  grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
  for axes in grid[len(panels) :]:
    axes.set_axis_off()
  for i, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
    axes.axvline(
      panel.clustered_after, color=base.INK, linewidth=1, label=f'clustering ({method})', gid='clustering'
    )
    # The dots lie on the line: where one cluster of everybody is FedAvg, both are seen.
    _draw(axes, panel.baseline, FEDAVG, base.INK, (0, (1, 1.2)), 1.8, zorder=3)
    _draw(axes, with_start(panel), method, base.colours(1)[0], '-', 2.2, zorder=2)
    axes.set_title(base.short(panel.name, 30), fontsize=11 if columns == 1 else 9.5)
    axes.grid(axis='y')
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10], integer=True))
    if i + columns >= len(panels):  # The lowest of its column, also where the last line is not full.
      axes.set_xlabel('round')
      axes.tick_params(labelbottom=True)
  low, high = grid[0].get_ylim()
  if high - low < _FLAT:
    grid[0].set_ylim(max(low - 1.0, -_FLAT), high + 1.0)
  figure.supylabel(quantity, fontsize=10)
  if remark:
    figure.suptitle(base.short(remark, 70 if columns == 1 else 110), fontsize=9.5, color=base.GREY)
  handles, labels = grid[0].get_legend_handles_labels()
  figure.legend(handles, labels, loc='outside lower center', ncols=3)
  return figure


def with_start(panel: Panel) -> dict[int, float]:
  """Returns the curve with clusters, begun where it leaves the one without: up to the clustering they are one."""
  start = panel.clustered_after
  if panel.ours and start in panel.baseline:
    return {start: panel.baseline[start], **panel.ours}
  return dict(panel.ours)


def _draw(axes, curve: Mapping[int, float], label: str, colour: str, dash, width: float, zorder: int) -> None:
  rounds = np.array(sorted(curve), np.int64)
  axes.plot(
      rounds, [curve[int(r)] for r in rounds], color=colour, linestyle=dash, linewidth=width, label=label,
      marker='o' if len(rounds) == 1 else None, zorder=zorder,
  )  # fmt: skip
