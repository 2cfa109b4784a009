"""How clusterings move with their distance threshold."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.reporting.figures import base

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_METRICS = {'l1': 'L1', 'l2': 'Euclidean', 'cosine': 'cosine'}


@base.styled
def threshold_sweep(
  curves: Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]],
  exact: Mapping[tuple[str, str], tuple[float, float | None]],
  title: str,
  measure: str,
  is_score: bool,
) -> 'Figure':
  """Draws one panel a metric, because thresholds are in its units, and one line a linkage.

  Args:
    curves: By metric and by linkage (or another method that uses the metric): thresholds, ascending, and values,
      NaN where there is none.
    exact: By (metric, linkage), the thresholds from which and below which the planted groups come out exactly;
      None is no upper end. Drawn as bars above the lines.
    title: Above the picture.
    measure: What the values are, for the axis.
    is_score: Whether values are scores up to 1; else they are numbers of clusters, on a logarithmic axis.
  """
  from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

  names = list(dict.fromkeys(name for lines in curves.values() for name in lines))
  colours = dict(zip(names, base.colours(len(names)), strict=True))
  barred = [name for name in names if any(linkage == name for _, linkage in exact)]
  figure = base.new_figure(max(3.5 * len(curves), 5.4), 4.1 if exact else 3.7)
  grid = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
  for axes, (metric, lines) in zip(grid, curves.items(), strict=True):
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
      if (metric, name) in exact:
        low, high = exact[metric, name]
        height = 1.09 + 0.055 * barred.index(name)
        axes.plot(
          [max(low, first - margin), last + margin if high is None else min(high, last + margin)],
          [height, height],
          color=colours[name],
          linewidth=4,
          solid_capstyle='butt',
        )
    axes.set_title(_METRICS.get(metric, metric))
    axes.set_xlabel('distance threshold')
    axes.set_xlim(first - margin, last + margin)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.grid(axis='y')
    if is_score:
      axes.set_ylim(-0.05, 1.06 + 0.055 * len(barred))
      axes.set_yticks(np.linspace(0, 1, 6))
    else:
      axes.set_yscale('log')
      axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
      axes.yaxis.set_minor_locator(NullLocator())
      axes.yaxis.set_major_formatter(lambda value, _: f'{value:g}')
  grid[0].set_ylabel(measure)
  figure.suptitle(
    title, x=0.01, ha='left', fontsize=11, fontweight='bold'
  )  # Like the titles of all other figures.
  handles = {
    handle.get_label(): handle
    for axes in grid
    for handle in axes.get_lines()
    if not handle.get_label().startswith('_')
  }
  figure.legend(handles.values(), handles.keys(), loc='outside lower center', ncols=min(len(handles), 5))
  return figure
