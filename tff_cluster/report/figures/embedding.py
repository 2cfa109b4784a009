"""The clients as points in the plane, coloured by what was found and by what was planted."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base.words import plural
from tff_cluster.report.figures import base, ordering

if TYPE_CHECKING:
  from matplotlib.figure import Figure

# Clients up to which each is a shape of its own in the SVG; more become one picture.
_MOST_POINTS = 300


@base.styled
def embedding(
  positions: np.ndarray,
  membership: np.ndarray,
  truth: np.ndarray | None = None,
  truth_name: str = '',
  label: str = '',
) -> 'Figure':
  """Draws the clients twice: by cluster (with overlap: by number of clusters), and by planted group.

  Args:
    positions: float64[clients, 2], for instance classical scaling of the distances.
    membership: float[clusters, clients].
    truth: float[groups, clients]; a client of two groups is drawn in both colours.
    truth_name: What the planted groups are called.
    label: Name of the clustering.
  """
  from matplotlib.ticker import MaxNLocator

  figure = base.new_figure(9.4 if truth is not None else 5.6, 4.9)
  panels = figure.subplots(1, 2 if truth is not None else 1, squeeze=False)[0]
  name = base.short(label, 24)
  labels = base.labels_of(membership)
  if labels is not None:
    clusters, groups, tones = ordering.matched_colours(membership, truth)
    _by_kind(panels[0], positions, np.asarray(membership), 'cluster', clusters, tones)
    panels[0].set_title(f'{name}: by cluster')
  else:
    groups, _, tones = ({}, {}, []) if truth is None else ordering.matched_colours(truth, None)
    counts = (np.asarray(membership) > 0).sum(axis=0)
    points = panels[0].scatter(
      *positions.T,
      c=counts,
      cmap=base.SEQUENTIAL,
      s=46,
      edgecolors=base.GREY,
      linewidths=0.5,
      rasterized=len(positions) > _MOST_POINTS,
    )
    place = panels[0].inset_axes((0.12, -0.08, 0.76, 0.03))
    bar = figure.colorbar(points, cax=place, orientation='horizontal', label='clusters that the client is in')
    bar.ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    panels[0].set_title(f'{name}: by memberships')
  if truth is not None:
    _by_kind(panels[1], positions, np.asarray(truth), 'group', groups, tones)
    panels[1].set_title(f'Planted groups “{base.short(truth_name, 20)}”')
  for axes in panels:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[['top', 'right']].set_visible(True)
    axes.margins(0.08)
    # One unit is the same length both ways: distances in the picture are what it is about.
    axes.set_aspect('equal', adjustable='datalim')
  return figure


def _by_kind(
  axes: Any,
  positions: np.ndarray,
  membership: np.ndarray,
  noun: str,
  number: Mapping[int, int],
  tones: Sequence[str],
) -> None:
  """Draws points by their row of `membership`; row i has colour and marker number[i], the others are grey."""
  palette = {row: tones[code] for row, code in number.items()}
  marker = {row: base.MARKERS[code] for row, code in number.items()}
  drawn: dict[Any, Any] = {}
  for first, second, clients in _alike(membership, palette):
    x, y = positions[clients].T
    look: dict[str, Any] = {
      'rasterized': len(positions) > _MOST_POINTS,
      'markersize': 7.5,
      'linestyle': 'none',
      'markeredgecolor': 'white',
      'markeredgewidth': 0.6,
    }
    colour = palette.get(first, base.PALE)
    if second is None:
      shape = marker.get(first, 'o')
      edge = {} if first in palette else {'markeredgecolor': base.GREY}
      (handle,) = axes.plot(x, y, marker=shape, color=colour, **{**look, **edge})
      drawn.setdefault(first if first in palette else None, handle)
    else:
      # Left half: the larger share; right half: the next. A third group would not be told apart anyway.
      axes.plot(
          x, y, marker='o', fillstyle='left', color=colour, markerfacecoloralt=palette.get(second, base.PALE),
          **{**look, 'markersize': 9.0},
      )  # fmt: skip
      for kind, shade in ((first, colour), (second, palette.get(second, base.PALE))):
        drawn.setdefault(kind if kind in palette else None, _patch(shade))
  keys = sorted(key for key in drawn if key is not None)
  names = [f'{noun} {key}' for key in keys]
  handles = [drawn[key] for key in keys]
  if None in drawn:
    rest = len(membership) - len(palette)
    names.append(plural(rest, f'other {noun}'))
    handles.append(drawn[None])
  axes.legend(
      handles, names, loc='upper center', bbox_to_anchor=(0.5, -0.02), ncols=min(4, len(names)), fontsize=8.5,
      handletextpad=0.3, columnspacing=1.0,
  )  # fmt: skip


def _alike(
  membership: np.ndarray, named: Collection[int]
) -> Iterator[tuple[int, int | None, np.ndarray | list[int]]]:
  """Yields the two rows that clients look like, the larger share first, None where there is one, and those clients.

  Many clients that look alike are drawn at once; of few each is drawn alone, in their order.

  Args:
    membership: float[rows, clients].
    named: Rows that have a colour of their own; the others look alike.
  """
  ordered = np.argsort(-membership, axis=0, kind='stable')[:2]
  found: dict[Any, tuple[int, int | None, list[int]]] = {}
  for k in range(membership.shape[1]):
    rows = [int(row) for row in ordered[:, k] if membership[row, k] > 0]
    first, second = rows[0], rows[1] if len(rows) > 1 else None
    key = tuple(row if row in named or row is None else -1 for row in (first, second))
    found.setdefault(key if membership.shape[1] > _MOST_POINTS else k, (first, second, []))[2].append(k)
  yield from found.values()


def _patch(colour: str) -> Any:
  from matplotlib.lines import Line2D

  return Line2D([], [], marker='o', linestyle='none', markersize=7.5, color=colour, markeredgecolor='white')
