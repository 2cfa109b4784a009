"""The picture of benchmarks.clustering_scale."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.report.figures import base

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_KINDS = ('kmeans', 'single', 'complete', 'average', 'ward', 'centroid')
_DASHES: Any = {'l1': (0, (1, 1.3)), 'l2': '-', 'cosine': (0, (5, 2))}
_LIMITS = {'seconds': (60.0, 'one minute'), 'peak_mb': (4096.0, '4 GiB')}


@base.styled
def growth(sizes: Sequence[Mapping[str, Any]]) -> 'Figure':
  """Draws seconds and peak memory of each method over the number of clients, both on logarithmic axes.

  Args:
    sizes: As benchmarks.clustering_scale measures them: clients, and methods {name: {seconds, peak_mb}}.
  """
  from matplotlib.ticker import LogLocator

  clients = np.array([size['clients'] for size in sizes])
  figure = base.new_figure(9.4, 4.4)
  panels = figure.subplots(1, 2)
  colours = dict(zip(_KINDS, base.colours(len(_KINDS)), strict=True))
  for axes, (what, (limit, words)) in zip(panels, _LIMITS.items(), strict=True):
    for name in sizes[0]['methods']:
      metric, _, linkage = name.partition(' ')
      axes.plot(
        clients,
        [max(size['methods'][name][what], 1e-3) for size in sizes],
        color=colours[linkage or name],
        linestyle=_DASHES.get(metric, '-'),
        marker=base.MARKERS[_KINDS.index(linkage or name)],
        markersize=5,
        linewidth=1.6,
        label='k-means' if name == 'kmeans' else name,
      )
    axes.axhline(limit, color=base.GREY, linewidth=1, linestyle=':')
    axes.annotate(words, (clients[0], limit), (0, 3), textcoords='offset points', color=base.GREY, fontsize=9)
    axes.set_xscale('log')
    axes.set_yscale('log')
    axes.set_xticks(clients, [f'{count:,}' for count in clients])
    axes.minorticks_off()
    if what == 'peak_mb':
      axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f'{value:,g}')
    axes.set_xlabel('clients')
    axes.grid(axis='y')
  panels[0].set_ylabel('seconds')
  panels[0].set_title('Time of one clustering')
  panels[1].set_ylabel('peak memory of the process, MiB')
  panels[1].set_title('Memory')
  figure.legend(*panels[0].get_legend_handles_labels(), loc='outside lower center', ncols=4)
  return figure
