"""A comparison at a glance: accuracy against its cost, and the worst-off clients."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base.words import size
from tff_cluster.report.figures import base
from tff_cluster.report.figures.gains import KINDS, colour_of, handle, rows
from tff_cluster.scorecard.contenders import REFERENCES
from tff_cluster.scorecard.intervals import Interval

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_AREA = 42.0  # Of a mark, in square points, for one cluster a client.
_MOST_MEMBERSHIPS = 12.0
_APART = 0.022  # Of the axis; marks that are nearer to each other in cost and accuracy stand side by side.


@dataclasses.dataclass(frozen=True)
class Mark:
  """One contender at one budget.

  Attributes:
    name: Its name.
    kind: One of gains.KINDS.
    budget: At what budget, in words.
    accuracy: Mean client accuracy, 0 to 1.
    worst: Mean accuracy of the worst decile of clients.
    gain: Difference to FedAvg without clusters; None for itself.
    cost: What it takes of the runs' budget, mean over seeds.
    memberships: Mean number of clusters of a client.
    num_bytes: Sent in Phase 2 up and down, mean over seeds.
  """

  name: str
  kind: str
  budget: str
  accuracy: Interval
  worst: float
  gain: Interval | None
  cost: float
  memberships: float
  num_bytes: float


@base.styled
def frontier(marks: Sequence[Mark], unit: str = 'client-rounds') -> 'Figure':
  """Draws mean client accuracy against cost, a mark a contender and budget, as large as its memberships.

  Args:
    marks: Every contender at every budget, at least one; a thin line joins the budgets of a contender.
    unit: What costs are counted in.
  """
  names, budgets = _in_order(marks)
  colours = own_colours(marks, names)
  figure = base.new_figure(8.6, 5.0 + 0.22 * -(-len(names) // 3))
  axes = figure.add_subplot()
  places = _side_by_side(marks)
  by_place = {(mark.name, mark.budget): place for mark, place in zip(marks, places, strict=True)}
  for mark, place in zip(marks, places, strict=True):
    hollow, colour = budgets.index(mark.budget) > 0, colours[mark.name]
    before = by_place[mark.name, budgets[0]]
    if hollow and mark.cost == _at(marks, mark.name, budgets[0]).cost:
      continue  # The same training at both budgets.
    height = 100 * mark.accuracy.mean
    if hollow:
      start = 100 * _at(marks, mark.name, budgets[0]).accuracy.mean
      axes.plot(
        [before, place], [start, height], color=colour, linewidth=1.0, linestyle=(0, (3, 2)), zorder=1
      )
    axes.scatter(
      place, height, s=_AREA * min(mark.memberships, _MOST_MEMBERSHIPS), marker=KINDS[mark.kind][1],
      facecolors='white' if hollow else colour, edgecolors=colour, linewidths=1.4, alpha=0.9, zorder=3,
    )  # fmt: skip
  axes.set_xlabel(f'{unit} of Phase 2, mean over seeds')
  axes.set_ylabel('mean client accuracy, %')
  axes.xaxis.set_major_formatter(lambda value, _: f'{value:,.0f}' if unit != 'bytes' else size(value))
  axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
  axes.margins(y=0.08)
  axes.grid()
  figure.legend(handles=entries(marks, colours), loc='outside lower center', ncols=3)
  return figure


@base.styled
def worst_beside_mean(marks: Sequence[Mark]) -> 'Figure':
  """Draws a panel a budget and a row a contender: accuracy of the worst decile and of all clients.

  Args:
    marks: Every contender at every budget, at least one.
  """
  from matplotlib.lines import Line2D

  names, budgets = _in_order(marks)
  figure = base.new_figure(9.2, 1.7 + 0.34 * len(names))
  grid = figure.subplots(1, len(budgets), sharex=True, sharey=True, squeeze=False)[0]
  for axes, budget in zip(grid, budgets, strict=True):
    for mark in marks:
      if mark.budget != budget:
        continue
      row, colour = names.index(mark.name), colour_of(mark.kind)
      low, high = 100 * mark.worst, 100 * mark.accuracy.mean
      axes.hlines(row, low, high, color=base.PALE, linewidth=3, zorder=1)
      axes.plot(low, row, marker='|', markersize=11, markeredgewidth=2.4, color=colour, zorder=3)
      axes.plot(high, row, marker=KINDS[mark.kind][1], markersize=6.5, color=colour, zorder=3)
    axes.set_title(f'at {budget}')
    axes.set_xlabel('client accuracy, %')
  rows(grid[0], names)
  for axes in grid[1:]:
    axes.grid(axis='x')
    axes.tick_params(left=False)
  worst = Line2D([], [], color=base.INK, linestyle='none', marker='|', markersize=11, markeredgewidth=2.4)
  worst.set_label('worst decile of clients')
  kinds = [kind for kind in KINDS if any(mark.kind == kind for mark in marks)]
  handles = [worst, *(handle(kind, 'all clients, ') for kind in kinds)]
  figure.legend(handles=handles, loc='outside lower center', ncols=3)
  return figure


def _in_order(marks: Sequence[Mark]) -> tuple[list[str], list[str]]:
  return list(dict.fromkeys(m.name for m in marks)), list(dict.fromkeys(m.budget for m in marks))


def _at(marks: Sequence[Mark], name: str, budget: str) -> Mark:
  return next(mark for mark in marks if (mark.name, mark.budget) == (name, budget))


def own_colours(marks: Sequence[Mark], names: Sequence[str], taken: str | None = None) -> Mapping[str, str]:
  """Returns a colour for each contender: its own for a clustering, black for FedAvg, grey for clients with own models.

  Args:
    marks: The contenders.
    names: Their names, in order.
    taken: A colour that no clustering gets.
  """
  kinds = {mark.name: mark.kind for mark in marks}
  others = [name for name in names if kinds[name] not in REFERENCES]
  free = [colour for colour in base.colours(len(others) + (taken is not None)) if colour != taken]
  own = dict(zip(others, itertools.cycle(free), strict=False))
  return {name: own.get(name) or colour_of(kinds[name]) for name in names}


def entries(marks: Sequence[Mark], colours: Mapping[str, str]) -> list[Any]:
  """Returns the entries of a legend for the contenders of marks, each once."""
  from matplotlib.lines import Line2D

  return [
    Line2D([], [], color=colours[name], linestyle='none', marker=KINDS[kind][1], markersize=7, label=base.short(name, 30))
    for name, kind in {mark.name: mark.kind for mark in marks}.items()
  ]  # fmt: skip


def _side_by_side(marks: Sequence[Mark]) -> list[float]:
  """Returns where each mark stands on the axis of costs: at its cost, or right of a mark that would hide it."""
  costs = np.array([mark.cost for mark in marks])
  heights = np.array([mark.accuracy.mean for mark in marks])
  near = (_APART * (costs.max() or 1.0), _APART * 2 * (np.ptp(heights) or 1.0))
  places: list[float] = []
  for i, mark in enumerate(marks):
    place = mark.cost
    others = [
      other
      for k, other in enumerate(places)
      if abs(heights[k] - heights[i]) < near[1]
      and (marks[k].name, costs[k])
      != (mark.name, costs[i])  # The budgets of a contender that cost the same are one mark.
    ]
    while any(abs(place - other) < 0.99 * near[0] for other in others):
      place += near[0]
    places.append(place)
  return places
