"""Figures of client accuracies: figures 4 and 5 of Rohith et al. 2020, and who gained and who lost."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base import arrays
from tff_cluster.base.words import plural, signed
from tff_cluster.report.figures import base
from tff_cluster.scorecard.intervals import Interval

if TYPE_CHECKING:
  from matplotlib.figure import Figure

# As figures 4 and 5 of the paper show.
MOST_CLIENTS = 20
# More are drawn as two areas, each one shape.
_MOST_BARS = 300


@base.styled
def client_accuracies(client_ids: Sequence[str], series: Mapping[str, np.ndarray], title: str) -> 'Figure':
  """Draws one row a client with a mark for each series, MOST_CLIENTS at most, spread evenly over all.

  Args:
    client_ids: The clients' ids.
    series: Up to three, float[clients] from 0 to 1, the state before first.
    title: Above the picture.
  """
  chosen = arrays.evenly(len(client_ids), MOST_CLIENTS)
  rows = np.arange(len(chosen))
  figure = base.new_figure(8.6, 1.5 + 0.27 * len(chosen))
  axes = figure.add_subplot()
  values = 100 * np.stack([np.asarray(s)[chosen] for s in series.values()])
  axes.hlines(rows, values.min(axis=0), values.max(axis=0), color=base.PALE, linewidth=3, zorder=1)
  blue, red, _ = base.colours(3)
  looks: Any = (
    {'marker': 'o', 's': 62, 'facecolors': 'white', 'edgecolors': base.GREY, 'linewidths': 1.6},
    {'marker': 'D', 's': 26, 'color': red},
    {'marker': '|', 's': 130, 'color': blue, 'linewidths': 2.6},
  )
  for name, row, look in zip(series, values, looks, strict=False):
    axes.scatter(row, rows, label=name, zorder=3, **look)
  axes.set_yticks(rows, [base.client(client_ids[k]) for k in chosen])
  axes.set_ylim(len(chosen) - 0.4, -0.6)
  spread = max(float(np.ptp(values)), 4.0)
  axes.set_xlim(max(values.min() - 0.06 * spread, -2.0), min(values.max() + 0.06 * spread, 101.5))
  axes.grid(axis='x')
  axes.set_xlabel('accuracy on the client’s own test rows, %')
  axes.set_ylabel(
    'client' if len(chosen) == len(client_ids) else f'{len(chosen)} of {len(client_ids)} clients'
  )
  axes.set_title(title)
  figure.legend(*axes.get_legend_handles_labels(), loc='outside lower center', ncols=3)
  return figure


@base.styled
def client_differences(panels: Sequence[tuple[str, np.ndarray, Interval]]) -> 'Figure':
  """Draws every client's gain or loss, sorted, one panel a clustering on one scale.

  Args:
    panels: (label, float[clients] differences from -1 to 1, interval of their mean).
  """
  columns = min(len(panels), 3)
  lines = -(-len(panels) // columns)
  figure = base.new_figure(max(3.3 * columns, 5.0), 0.5 + 2.9 * lines)
  grid = figure.subplots(lines, columns, sharey=True, squeeze=False)
  blue, red, _ = base.colours(3)
  for axes, (label, differences, interval) in zip(grid.flat, panels, strict=False):
    heights = 100 * np.sort(np.asarray(differences))[::-1]
    if len(heights) <= _MOST_BARS:
      axes.bar(np.arange(len(heights)), heights, width=0.9, color=np.where(heights >= 0, blue, red))
    else:
      edges = np.arange(len(heights) + 1) - 0.5
      for part, colour in ((np.maximum(heights, 0), blue), (np.minimum(heights, 0), red)):
        axes.stairs(part, edges, fill=True, color=colour)
    axes.axhline(0, color=base.INK, linewidth=0.9)
    if interval.low is not None and interval.high is not None:
      axes.axhspan(100 * interval.low, 100 * interval.high, color=base.GREY, alpha=0.25, linewidth=0)
    axes.axhline(100 * interval.mean, color=base.INK, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.set_title(f'{base.short(label, 28)}: mean {signed(100 * interval.mean)}', fontsize=10)
    axes.set_xticks([])
    axes.set_xlabel(f'{plural(len(heights), "client")}, best gain first')
    axes.grid(axis='y')
    axes.tick_params(labelleft=True)
  for axes in grid.flat[len(panels) :]:
    axes.set_axis_off()
  for axes in grid[:, 0]:
    axes.set_ylabel('points over unclustered')
  return figure
