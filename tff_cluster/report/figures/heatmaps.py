"""Heat maps: distances between clients, and how often each label occurs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.report.figures import base

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_MOST_NAMES = 40


@base.styled
def distance_matrix(
  distances: np.ndarray,
  order: np.ndarray,
  client_ids: Sequence[str],
  title: str,
  labels: np.ndarray | None = None,
  groups: np.ndarray | None = None,
) -> 'Figure':
  """Draws the distances between clients, members of a cluster side by side.

  Args:
    distances: float[clients, clients].
    order: int64[clients], the order to show, see ordering.client_order.
    client_ids: The clients' ids, in their own order.
    title: Above the picture.
    labels: int64[clients], the cluster of each client where the clustering is disjoint: lines between
      clusters are drawn.
    groups: int64[clients], the planted group of each client, where each has one: a strip at the top.
  """
  figure = base.new_figure(7.4, 6.4)
  axes = figure.add_subplot()
  shown = np.array(distances, np.float64)[np.ix_(order, order)]
  np.fill_diagonal(shown, np.nan)
  image = base.draw_matrix(axes, shown, np.nanmean, cmap=base.SEQUENTIAL)
  axes.set_facecolor('white')
  axes.spines[['top', 'right']].set_visible(True)
  figure.colorbar(image, ax=axes, shrink=0.85, label='Euclidean distance')
  if labels is not None and len(np.unique(labels)) <= base.MOST_PARTED:
    for edge in np.flatnonzero(np.diff(labels[order])) + 0.5:
      axes.axhline(edge, color='white', linewidth=1.4)
      axes.axvline(edge, color='white', linewidth=1.4)
  _name_axis(axes, 'y', [client_ids[k] for k in order])
  _name_axis(axes, 'x', [client_ids[k] for k in order])
  axes.set_title(title, pad=22 if base.has_strip(groups) else 8)
  if groups is not None and base.has_strip(groups):
    kinds = np.unique(groups).tolist()
    base.draw_strip(axes, groups[order], kinds, 1.012, 0.03)
    figure.legend(handles=base.group_entries(kinds), loc='outside lower center', ncols=min(len(kinds), 4))
  return figure


@base.styled
def label_histogram(
  counts: np.ndarray, row_names: Sequence[str], title: str, row_label: str, order: np.ndarray | None = None
) -> 'Figure':
  """Draws label histograms side by side: one column for each client or cluster, one row a label.

  Colour is the share of the label among the column's rows; where there is room the count is written.

  Args:
    counts: int64[columns, classes], rows by label.
    row_names: A name for each column of the picture.
    title: Above the picture.
    row_label: What a column is: 'client', 'cluster'.
    order: int64[columns], the order to show; as given if None.
  """
  order = np.arange(len(counts)) if order is None else order
  table = np.asarray(counts, np.float64)[order]
  columns, classes = table.shape
  shares = 100 * table / np.maximum(table.sum(axis=1, keepdims=True), 1)
  written = columns <= 14 and classes <= 14
  figure = base.new_figure(
    float(np.clip(2.6 + columns * (0.62 if written else 0.3), 5.2, 9.2)), 1.6 + min(0.27 * classes, 6.4)
  )
  axes = figure.add_subplot()
  top = max(float(shares.max()), 1.0)
  # White for none: a label that a client does not have must be seen at once.
  image = base.draw_matrix(axes, shares.T, np.mean, cmap='Blues', vmin=0, vmax=top, aspect='auto')
  axes.spines[['top', 'right']].set_visible(True)
  figure.colorbar(image, ax=axes, label=f'share of the {row_label}’s rows, %', shrink=0.95)
  if written:
    for i, j in np.ndindex(columns, classes):
      ink = 'white' if shares[i, j] > 0.55 * top else base.INK
      axes.text(
        i,
        j,
        f'{int(table[i, j]):,}',
        ha='center',
        va='center',
        fontsize=8,
        color=ink if table[i, j] else base.GREY,
      )
  _name_axis(axes, 'x', [row_names[k] for k in order], row_label)
  # Thousands of ticks take minutes.
  step = 1 if classes <= 20 else 5 * -(-classes // 100)
  axes.set_yticks(np.arange(0, classes, step))
  axes.set_ylabel('label')
  axes.set_title(title)
  return figure


def _name_axis(axes: Any, which: str, names: Sequence[str], label: str = 'client') -> None:
  """Names every place of an axis where they fit, else counts them in the axis label."""
  set_ticks = axes.set_xticks if which == 'x' else axes.set_yticks
  set_label = axes.set_xlabel if which == 'x' else axes.set_ylabel
  if len(names) <= _MOST_NAMES:
    texts = [base.client(name) for name in names]
    upright = which == 'x' and (len(texts) > 22 or max(map(len, texts)) > 2)
    set_ticks(np.arange(len(texts)), texts, fontsize=8.5 if len(texts) <= 24 else 7)
    if upright:
      axes.tick_params(axis='x', rotation=90)
    set_label(label)
  else:
    set_ticks([])
    set_label(f'{len(names)} {label}s')
