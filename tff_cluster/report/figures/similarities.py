"""Similarities of the clients' updates when a cluster was tested: figure 3 (right) of Sattler et al. 2019."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base import arrays
from tff_cluster.base.words import plural, signed
from tff_cluster.report.figures import base
from tff_cluster.report.splits_tree import SplitTest

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_COLUMNS = 3
_LEFT, _ABOVE = 0.64, 0.72  # Inches for names and titles.
_MOST_NAMES = 24
_MOST_DOTS = 1500  # Of one kind in one test; more cannot be told apart.
_SAME, _DIFFERENT, _DONE = '#0072B2', '#E69F00', '#8C8C8C'
_LANES = {_SAME: -0.2, _DIFFERENT: 0.2, _DONE: 0.0}
_LANE = 0.3


@base.styled
def similarity_matrices(
  tests: Sequence[SplitTest], client_ids: Sequence[str], title: str, groups: np.ndarray | None = None
) -> 'Figure':
  """Draws one matrix a test, clients sorted by halves and planted groups, on one scale that is symmetric about 0.

  Args:
    tests: Tests with a similarity matrix.
    client_ids: The clients' ids.
    title: Above the picture.
    groups: int64[clients], the planted group of each client: a strip at the top of each matrix.
  """
  columns = min(len(tests), _COLUMNS)
  planted = [] if groups is None else sorted(set(groups.tolist()))
  coloured = base.has_strip(groups)
  figure, places, bar = _grid(len(tests), columns, coloured)
  limit = _limit([test.similarity for test in tests if test.similarity is not None])
  image: Any = None
  for axes, test in zip(places, tests, strict=True):
    sides = _sides(test)
    kinds = np.zeros(len(sides), np.int64) if groups is None else groups[test.compared]
    order = np.lexsort((np.arange(len(sides)), kinds, sides))
    shown = np.array(test.similarity)[np.ix_(order, order)]
    np.fill_diagonal(shown, np.nan)
    axes.set_facecolor(base.PALE)
    # Blue is alike, as are the dots of clients of one group.
    image = axes.imshow(shown, cmap='RdBu', vmin=-limit, vmax=limit, interpolation='nearest')
    axes.spines[['top', 'right']].set_visible(True)
    if len(test.halves):
      edge = float(np.sum(sides == 0)) - 0.5
      axes.axhline(edge, color=base.INK, linewidth=1.6)
      axes.axvline(edge, color=base.INK, linewidth=1.6)
    axes.set_xticks([])
    if len(order) <= _MOST_NAMES:
      names = [base.client(client_ids[test.compared[k]], 9) for k in order]
      axes.set_yticks(np.arange(len(names)), names, fontsize=8 if len(names) <= 12 else 6)
      axes.tick_params(axis='y', length=0, pad=2)
    else:
      axes.set_yticks([])
      axes.set_ylabel(plural(len(order), 'client'))
    axes.set_title(_matrix_title(test), fontsize=9.5, pad=13 if coloured else 6)
    if coloured:
      base.draw_strip(axes, kinds[order], planted, 1.015, 0.04)
  figure.colorbar(image, cax=bar, label='cosine similarity of updates')
  if coloured:
    figure.legend(
      handles=base.group_entries(planted), loc='lower center', ncols=min(len(planted), 2 * columns)
    )
  figure.suptitle(
    title, x=0.012, y=1 - 0.08 / figure.get_figheight(), ha='left', va='top', fontsize=11, fontweight='bold'
  )
  return figure


@base.styled
def similarity_dots(tests: Sequence[SplitTest], title: str, groups: np.ndarray | None = None) -> 'Figure':
  """Draws every pair of clients as a dot at its similarity, a column for each test.

  With planted groups blue pairs are of one group and orange ones of two; pairs of clusters that hold one group
  alone are grey, as in the paper. Without, orange pairs are those that the best bi-partition parts.

  Args:
    tests: Tests with a similarity matrix and at least 2 clients.
    title: Above the picture.
    groups: int64[clients], the planted group of each client.
  """
  from matplotlib.lines import Line2D

  width = float(np.clip(1.6 + 1.2 * len(tests), 6.0, 9.2))
  figure = base.new_figure(width, 4.6)
  axes = figure.add_subplot()
  drawn: set[str] = set()
  pairs = [_pairs(test, groups) for test in tests]
  many = max((len(values) for found in pairs for values in found.values()), default=0) > 400
  for place, (test, found) in enumerate(zip(tests, pairs, strict=True)):
    for colour, values in found.items():
      drawn.add(colour)
      spread = _LANE * (((np.arange(len(values)) * 0.6180339887498949) % 1.0) - 0.5)
      axes.scatter(
          place + _LANES[colour] + spread, values, s=5 if many else 14, color=colour, alpha=0.65, linewidths=0, rasterized=many,
          zorder=2 if len(values) > 30 else 5,  # Few dots would vanish under the line.
      )  # fmt: skip
    if test.cross_similarity is not None:
      _mark(axes, place, test.cross_similarity, test.similarity_gap, len(tests))
  low, high = axes.get_ylim()
  low, high = min(low, -0.1), max(high, 0.1)
  axes.set_ylim(low - 0.09 * (high - low), high + 0.04 * (high - low))
  axes.axhline(0, color=base.GREY, linewidth=0.8, zorder=0)
  for edge in np.arange(0.5, len(tests) - 1):
    axes.axvline(edge, color=base.PALE, linewidth=0.8, zorder=0)
  size = 9 if len(tests) <= 8 else 8
  names = [f'round {t.round}\n{t.verdict}\n{plural(len(t.members), "client")}' for t in tests]
  axes.set_xticks(range(len(tests)), names, fontsize=size)
  axes.tick_params(axis='x', length=0)
  beside = 0.55 if len(tests) > 2 else 0.9
  axes.set_xlim(-beside, len(tests) - 1 + beside)
  axes.grid(axis='y')
  axes.set_ylabel('cosine similarity of two clients’ updates')
  axes.set_title(title)
  words = {
    _SAME: 'both of one planted group' if groups is not None else 'both in one half',
    _DIFFERENT: 'of two planted groups' if groups is not None else 'in different halves',
    _DONE: 'in a cluster of one group alone' if groups is not None else 'in a cluster that was not parted',
  }
  shown = [colour for colour in words if colour in drawn]
  handles = [Line2D([], [], marker='o', linestyle='none', markersize=6, color=colour) for colour in shown]
  labels = [words[colour] for colour in shown]
  if any(test.cross_similarity is not None for test in tests):
    handles.append(Line2D([], [], color=base.INK, linewidth=1.8))
    labels.append('highest similarity across halves')
  figure.legend(
    handles,
    labels,
    loc='outside lower center',
    ncols=4 if width > 9 else 2,
    handletextpad=0.4,
    columnspacing=1.4,
  )
  return figure


def _grid(count: int, columns: int, legend: bool) -> tuple['Figure', list[Any], Any]:
  """Returns a figure with so many square panels, and a place for the colour bar beside the first row.

  Places are set by hand: squares of one size, which is all that is wanted, take the layout engine very long.
  """
  lines = -(-count // columns)
  side = 2.2 if columns > 1 else 3.4
  width, height = (
    0.12 + columns * (_LEFT + side) + 1.05,
    0.4 + lines * (_ABOVE + side) + (0.6 if legend else 0.15),
  )
  figure = base.new_figure(width, height)
  figure.set_layout_engine('none')
  panels = []
  for i in range(count):
    line, column = divmod(i, columns)
    left, bottom = 0.12 + column * (_LEFT + side) + _LEFT, height - 0.22 - (line + 1) * (_ABOVE + side)
    panels.append(figure.add_axes((left / width, bottom / height, side / width, side / height)))
  bottom = height - 0.22 - _ABOVE - side
  bar = figure.add_axes(((width - 0.9) / width, bottom / height, 0.14 / width, side / height))
  return figure, panels, bar


def _sides(test: SplitTest) -> np.ndarray:
  """Returns int64[compared], 0 or 1 for the half of each; all 0 where there are none."""
  second = set(test.halves[1].tolist()) if test.halves else set()
  return np.array([int(k in second) for k in test.compared.tolist()], np.int64)


def _limit(matrices: Sequence[np.ndarray]) -> float:
  """Returns the end of the colour scale: the largest similarity between two clients, up to the next tenth, at most 1."""
  largest = max(
    (float(np.abs(m[~np.eye(len(m), dtype=bool)]).max(initial=0.0)) for m in matrices), default=0.0
  )
  return float(np.clip(np.ceil(10 * largest - 1e-9) / 10, 0.1, 1.0))


def _matrix_title(test: SplitTest) -> str:
  first = f'round {test.round}: {test.verdict} ({plural(len(test.members), "client")})'
  if test.cross_similarity is None or test.similarity_gap is None:
    return f'{first}\nhighest update norm {test.max_update_norm:.3g}'
  return f'{first}\nacross {signed(test.cross_similarity, 2)}, gap {test.similarity_gap:.2f}'


def _pairs(test: SplitTest, groups: np.ndarray | None) -> dict[str, np.ndarray]:
  """Returns the sorted similarities of the pairs of each colour, thinned evenly where there are very many."""
  first, second = np.triu_indices(len(test.compared), 1)
  values = np.asarray(test.similarity)[first, second]
  kinds = _sides(test) if groups is None else groups[test.compared]
  apart = kinds[first] != kinds[second]
  if len(set(kinds.tolist())) == 1:
    found = {_DONE: values}
  else:
    found = {_SAME: values[~apart], _DIFFERENT: values[apart]}
  return {colour: np.sort(v)[arrays.evenly(len(v), _MOST_DOTS)] for colour, v in found.items() if len(v)}


def _mark(axes: Any, place: int, low: float, gap: float | None, count: int) -> None:
  """Marks the cross similarity, and the gap above it with an arrow (the red one of the paper)."""
  axes.hlines(low, place - 0.42, place + 0.42, color=base.INK, linewidth=1.8, zorder=4)
  axes.annotate(
      signed(low, 2), (place - 0.42, low), (1, -2), textcoords='offset points', ha='left', va='top', fontsize=8,
      zorder=5, bbox={'facecolor': 'white', 'edgecolor': 'none', 'alpha': 0.75, 'pad': 0.4},
  )  # fmt: skip
  if gap is not None and gap > 0.02:
    axes.annotate(
        '', (place + 0.38, low + gap), (place + 0.38, low),
        arrowprops={'arrowstyle': '<->', 'color': '#C00000', 'linewidth': 1.3, 'shrinkA': 0, 'shrinkB': 0}, zorder=5,
    )  # fmt: skip
    if count <= 8:
      axes.annotate(
          f'gap {gap:.2f}', (place + 0.36, low + gap / 2), (-1, 0), fontsize=8,
          textcoords='offset points', ha='right', va='center', color='#C00000', zorder=5,
          bbox={'facecolor': 'white', 'edgecolor': 'none', 'alpha': 0.75, 'pad': 0.4},
      )  # fmt: skip
