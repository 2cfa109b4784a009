"""How far planted groups are found again as what clients send is made private or small."""

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.report.figures import base

if TYPE_CHECKING:
  from matplotlib.figure import Figure

# Labels of an axis that stand nearer to each other than this share of it are turned.
_ROOM = 0.075
# Inches: the least width, and what a letter of the title, a letter of the legend and a mark of the legend take.
_WIDTH, _TITLE, _LEGEND, _MARK = 7.0, 0.105, 0.08, 0.7


@dataclasses.dataclass(frozen=True, eq=False)
class Line:
  """One clustering under one disturbance.

  Attributes:
    name: Name in the legend; equal names have one colour.
    values: float[points], noise multipliers or bits, ascending.
    mean, low, high: float[points], mean and range of the scores over repeats.
    undisturbed: The score without any disturbance.
  """

  name: str
  values: np.ndarray
  mean: np.ndarray
  low: np.ndarray
  high: np.ndarray
  undisturbed: float


@base.styled
def noise(panels: Mapping[str, Sequence[Line]], title: str) -> 'Figure':
  """Draws one panel a kind of signature: scores against the noise multiplier, on a logarithmic axis that has 0 at its left."""
  given = {value for lines in panels.values() for line in lines for value in line.values}
  positive = sorted(value for value in given if value > 0.0)
  # No logarithm has a 0; it stands one step left of the least noise.
  zero = positive[0] / 3.0 if positive else 1.0

  def place(values: np.ndarray) -> np.ndarray:
    return np.log10(np.where(values > 0.0, values, zero))

  ticks = {float(np.log10(zero)): '0'} if 0.0 in given else {}
  ticks |= {float(np.log10(value)): f'{value:g}' for value in positive}
  return _panels(panels, title, 'noise multiplier z', place, ticks)


@base.styled
def bits(panels: Mapping[str, Sequence[Line]], title: str) -> 'Figure':
  """Draws one panel a kind of signature and rounding: scores against bits a number, fewer bits to the right."""
  given = sorted({float(value) for lines in panels.values() for line in lines for value in line.values})

  def place(values: np.ndarray) -> np.ndarray:
    return -np.log2(values)

  ticks = {float(place(np.array(value))): f'{value:g}' for value in given}
  return _panels(panels, title, 'bits a number', place, ticks)


def _panels(
  panels: Mapping[str, Sequence[Line]], title: str, quantity: str, place: object, ticks: Mapping[float, str]
) -> 'Figure':
  names = list(dict.fromkeys(line.name for lines in panels.values() for line in lines))
  colours = dict(zip(names, base.colours(len(names)), strict=True))
  columns = min(len(panels), 2)
  rows = -(-len(panels) // columns)
  width = max(4.7 * columns, _WIDTH)
  figure = base.new_figure(width, 3.2 * rows + 0.6)
  grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
  for axes in grid.flat[len(panels) :]:
    axes.set_visible(False)
  places = sorted(ticks)
  margin = 0.05 * (places[-1] - places[0]) or 0.5
  crowded = len(places) > 1 and np.diff(places).min() < _ROOM * (places[-1] - places[0])
  lowest = min((float(line.low.min()) for lines in panels.values() for line in lines), default=0.0)
  for axes, (panel, lines) in zip(grid.flat, panels.items(), strict=False):
    for line in lines:
      i = names.index(line.name)
      x = place(np.asarray(line.values, float))  # type: ignore[operator]
      axes.fill_between(x, line.low, line.high, color=colours[line.name], alpha=0.13, linewidth=0)
      axes.axhline(
        line.undisturbed / 2, color=colours[line.name], linewidth=0.9, linestyle=(0, (1, 2)), gid='half'
      )
      axes.plot(
        x, line.mean, color=colours[line.name], marker=base.MARKERS[i % len(base.MARKERS)], markersize=5,
        linewidth=1.6, label=base.short(line.name, 30),
      )  # fmt: skip
    axes.set_title(panel)
    axes.set_xticks(places, [ticks[p] for p in places], rotation=60 if crowded else 0)
    axes.set_xlim(places[0] - margin, places[-1] + margin)
    axes.set_ylim(min(-0.05, lowest - 0.02), 1.05)
    axes.grid(axis='y')
  for axes in grid[-1]:
    axes.set_xlabel(quantity)
  for axes in grid[:, 0]:
    axes.set_ylabel('ARI (Omega where overlapping)')
  title = textwrap.fill(title, int(width / _TITLE))
  figure.suptitle(title, x=0.01, ha='left', fontsize=11, fontweight='bold')
  handles = {h.get_label(): h for axes in grid.flat for h in axes.get_lines() if h.get_gid() != 'half'}
  longest = max((len(str(name)) for name in handles), default=1)
  beside = max(1, min(len(handles), int(width / (_MARK + _LEGEND * longest))))
  figure.legend(handles.values(), handles.keys(), loc='outside lower center', ncols=beside)
  return figure
