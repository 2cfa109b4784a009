"""Bars of labels, a panel a cluster, as figures 2 and 3 of Miles et al. 2024."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base.words import plural
from tff_cluster.report.figures import base

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_COLUMNS = 2


@base.styled
def label_frequencies(
  counts: np.ndarray, sizes: Sequence[Sequence[int]], sources: Sequence[str] = (), remark: str = ''
) -> 'Figure':
  """Draws the training rows of each cluster by label; all panels have the same axes.

  Args:
    counts: int[sources, clusters, classes]; the bars of several sources stand on each other.
    sizes: Clients of each source in each cluster, int[sources][clusters].
    sources: What the rows are, one name a source; needed where there are several.
    remark: What was scaled down; it stands above the panels, since a figure travels without its page.

  Raises:
    ValueError: where shapes do not fit, or several sources have no names.
  """
  counts, clients = np.asarray(counts), np.asarray(sizes)
  if counts.ndim != 3 or clients.shape != counts.shape[:2]:
    raise ValueError(
      f'counts {counts.shape} and sizes {clients.shape}: expected [sources, clusters, classes] and [sources, clusters]'
    )
  kinds, clusters, classes = counts.shape
  if kinds > 1 and len(sources) != kinds:
    raise ValueError(f'{kinds} sources, but names {list(sources)}')
  lines = -(-clusters // _COLUMNS)
  figure = base.new_figure(9.0, 1.0 + 2.3 * lines)
  grid = figure.subplots(lines, min(clusters, _COLUMNS), sharex=True, sharey=True, squeeze=False).ravel()
  for axes in grid[clusters:]:
    axes.set_axis_off()
  places, colours = np.arange(classes), base.colours(kinds)
  for k, axes in enumerate(grid[:clusters]):
    floor = np.zeros(classes)
    for source in range(kinds):
      axes.bar(
        places,
        counts[source, k],
        bottom=floor,
        color=colours[source],
        label=sources[source] if kinds > 1 else None,
      )
      floor += counts[source, k]
    axes.set_title(f'Cluster {k}: {_members(clients[:, k], sources)}', fontsize=9.5)
    axes.grid(axis='y')
    axes.set_xticks(places if classes <= 20 else places[:: -(-classes // 20)])
    if k + _COLUMNS >= clusters:  # The lowest of its column, also where the last line is not full.
      axes.set_xlabel('label')
      axes.tick_params(labelbottom=True)
  figure.supylabel('training rows', fontsize=10)
  if remark:
    figure.suptitle(base.short(remark, 110), fontsize=9.5, color=base.GREY)
  if kinds > 1:
    figure.legend(*grid[0].get_legend_handles_labels(), loc='outside lower center', ncols=kinds)
  return figure


def _members(clients: np.ndarray, sources: Sequence[str]) -> str:
  words = plural(int(clients.sum()), 'client')
  held = [f'{count} {name}' for count, name in zip(clients, sources, strict=False) if count]
  return f'{words} ({", ".join(held)})' if len(clients) > 1 else words
