"""FedAvg over rounds by batch size and epochs, a panel a partition, as figure 1 of Miles et al. 2024."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.report.figures import base

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_DASHES: Sequence[Any] = ('-', (0, (5, 1.5)), (0, (1.2, 1.2)))
_MARGIN = 2.0


@base.styled
def curves_by_setting(
  panels: Mapping[str, Mapping[tuple[str, str], Mapping[int, float]]],
  batches: Sequence[str],
  epochs: Sequence[str],
  targets: Sequence[float],
  remark: str = '',
) -> 'Figure':
  """Draws one panel a partition, all with the same axes: the batch size is the colour, the epochs the line.

  The upright axis begins where the last half of every curve fits; the first rise is cut off.

  Args:
    panels: By title, percent by round of each batch size and epochs; at least one panel with a curve.
    batches, epochs: What the legend has, in its order: the names that the curves have, at most three epochs.
    targets: Percentages at which a line is drawn.
    remark: What was scaled down; it stands above the panels.
  """
  from matplotlib.lines import Line2D
  from matplotlib.ticker import MaxNLocator

  colour = dict(zip(batches, base.colours(len(batches)), strict=True))
  dash = dict(zip(epochs, _DASHES, strict=False))
  figure = base.new_figure(5.6 if len(panels) == 1 else 10.4, 5.0)
  grid = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False).ravel()
  late: list[float] = []
  for axes, (title, curves) in zip(grid, panels.items(), strict=True):
    for target in targets:
      axes.axhline(target, color=base.GREY, linewidth=0.7, zorder=0, gid='target')
      axes.annotate(
          f'{target:g}%', (1.0, target), (3, 0), xycoords=axes.get_yaxis_transform(), textcoords='offset points',
          fontsize=8, color=base.GREY, va='center',
      )  # fmt: skip
    for (batch, epoch), curve in curves.items():
      rounds = np.array(sorted(curve), np.int64)
      values = np.array([curve[int(number)] for number in rounds])
      late += values[len(values) // 2 :].tolist()
      axes.plot(
          rounds, values, color=colour[batch], linestyle=dash[epoch], linewidth=1.4, marker='o' if len(rounds) == 1 else None,
          gid='curve',
      )  # fmt: skip
    axes.set_title(title)
    axes.set_xlabel('round')
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10], integer=True))
  low = max(min([*late, *targets]) - _MARGIN, 0.0)
  grid[0].set_ylim(low, min(max([*late, *targets]) + 0.05 * (100.0 - low), 100.0 + 0.02 * (100.0 - low)))
  grid[0].set_ylabel('test accuracy, %')
  if remark:
    figure.suptitle(base.short(remark, 60 if len(panels) == 1 else 110), fontsize=9.5, color=base.GREY)
  handles = [Line2D([], [], color=colour[name], linewidth=2.4) for name in batches]
  handles += [Line2D([], [], color=base.INK, linestyle=dash[name], linewidth=1.4) for name in epochs]
  figure.legend(handles, [*batches, *epochs], loc='outside lower center', ncols=len(handles))
  return figure
