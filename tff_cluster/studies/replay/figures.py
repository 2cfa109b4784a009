"""How clusterings move with their distance threshold."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.report.figures import base

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

_METRICS = {'l1': 'L1', 'l2': 'Euclidean', 'cosine': 'cosine'}


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
  """One thing that was measured at each threshold.

  Attributes:
    curves: By metric and by linkage (or another method that uses the metric): thresholds, ascending, and values,
      NaN where there is none.
    exact: By (metric, linkage), the thresholds from which and below which the planted groups come out exactly;
      None is no upper end. Drawn as bars above the lines.
    measure: What the values are, for the axis.
    is_score: Whether values are scores up to 1; else they are numbers of clusters, on a logarithmic axis.
  """

  curves: Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]]
  exact: Mapping[tuple[str, str], tuple[float, float | None]]
  measure: str
  is_score: bool


@base.styled
def threshold_sweep(sweeps: Sequence[Sweep], title: str) -> 'Figure':
  """Draws a row of panels a sweep, in it one panel a metric, because thresholds are in its units, and one line a linkage.

  Args:
    sweeps: What is drawn, of the same metrics all; at least one.
    title: Above the picture.
  """
  metrics = list(sweeps[0].curves)
  names = list(dict.fromkeys(name for sweep in sweeps for lines in sweep.curves.values() for name in lines))
  heights = [4.1 if sweep.exact else 3.7 for sweep in sweeps]
  figure = base.new_figure(max(3.5 * len(metrics), 5.4), sum(heights) - 0.6 * (len(sweeps) - 1))
  grid = figure.subplots(
    len(sweeps), len(metrics), sharex='col', sharey='row', squeeze=False, height_ratios=heights
  )
  for sweep, row in zip(sweeps, grid, strict=True):
    for axes, metric in zip(row, metrics, strict=True):
      _panel(axes, sweep, metric, names)
    row[0].set_ylabel(sweep.measure)
  for axes, metric in zip(grid[0], metrics, strict=True):
    axes.set_title(_METRICS.get(metric, metric))
  for axes in grid[-1]:
    axes.set_xlabel('distance threshold')
  # Like the titles of all other figures.
  figure.suptitle(title, x=0.01, ha='left', fontsize=11, fontweight='bold')
  handles = {
    name: handle for axes in grid[0] for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
  }
  figure.legend(handles.values(), handles.keys(), loc='outside lower center', ncols=min(len(handles), 5))
  return figure


def _panel(axes: 'Axes', sweep: Sweep, metric: str, names: Sequence[str]) -> None:
  from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

  lines = sweep.curves[metric]
  colours = dict(zip(names, base.colours(len(names)), strict=True))
  barred = [name for name in names if any(linkage == name for _, linkage in sweep.exact)]
  everything = np.concatenate([thresholds for thresholds, _ in lines.values()])
  first, last = float(everything.min()), float(everything.max())
  margin = 0.04 * (last - first) or 0.1 * last or 1.0
  for name, (thresholds, values) in lines.items():
    axes.plot(
      thresholds,
      values,
      color=colours[name],
      marker=base.MARKERS[names.index(name) % len(base.MARKERS)],
      markersize=4.5,
      linewidth=1.5,
      alpha=0.9,
      label=base.short(name, 30),
    )
    if (metric, name) in sweep.exact:
      low, high = sweep.exact[metric, name]
      height = 1.09 + 0.055 * barred.index(name)
      axes.plot(
        [max(low, first - margin), last + margin if high is None else min(high, last + margin)],
        [height, height],
        color=colours[name],
        linewidth=4,
        solid_capstyle='butt',
      )
  axes.set_xlim(first - margin, last + margin)
  axes.xaxis.set_major_locator(MaxNLocator(4))
  axes.grid(axis='y')
  if sweep.is_score:
    axes.set_ylim(-0.05, 1.06 + 0.055 * len(barred))
    axes.set_yticks(np.linspace(0, 1, 6))
  else:
    axes.set_yscale('log')
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: f'{value:g}')
