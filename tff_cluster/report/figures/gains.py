"""What every contender gains over FedAvg without clusters, with its interval."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tff_cluster.experiment.config import FEDAVG, PERSONALIZED
from tff_cluster.report.figures import base
from tff_cluster.scorecard.intervals import Interval

if TYPE_CHECKING:
  from matplotlib.figure import Figure

# Words and marker of each of contenders.KINDS.
KINDS = {
  'fedavg': (FEDAVG, '*'),
  'local': (PERSONALIZED['local'], 'X'),
  'fine_tuning': (PERSONALIZED['fine_tuning'], 'P'),
  'ditto': (PERSONALIZED['ditto'], 'v'),
  'oracle': ('planted groups (oracle)', 'D'),
  'disjoint': ('disjoint', 's'),
  'overlapping': ('overlapping', 'o'),
}


@dataclasses.dataclass(frozen=True)
class Gain:
  """What a contender gains at a budget.

  Attributes:
    name: Its name.
    kind: One of KINDS.
    budget: At what budget, in words.
    interval: The mean difference to FedAvg without clusters, from -1 to 1.
  """

  name: str
  kind: str
  budget: str
  interval: Interval


@base.styled
def draw(gains: Sequence[Gain]) -> 'Figure':
  """Draws a row a contender: its mean gain with the interval, full at the first budget, hollow at others.

  Args:
    gains: At least one.
  """
  from matplotlib.lines import Line2D

  names = list(dict.fromkeys(gain.name for gain in gains))
  budgets = list(dict.fromkeys(gain.budget for gain in gains))
  # Narrow, so that its texts can be read on a phone and beside a table.
  figure = base.new_figure(5.6, 1.6 + (0.4 if len(budgets) > 1 else 0.3) * len(names))
  axes = figure.add_subplot()
  axes.axvline(0, color=base.INK, linewidth=0.9, zorder=1)
  for gain in gains:
    place, colour, interval = budgets.index(gain.budget), colour_of(gain.kind), gain.interval
    height = names.index(gain.name) + 0.3 * (place - (len(budgets) - 1) / 2)
    if interval.low is not None and interval.high is not None:
      axes.hlines(height, 100 * interval.low, 100 * interval.high, color=colour, linewidth=1.8, zorder=2)
    axes.plot(
      100 * interval.mean, height, marker=KINDS[gain.kind][1], markersize=6.5, color=colour,
      markerfacecolor='white' if place else colour, markeredgewidth=1.5, zorder=3, gid=f'gain {gain.name} {gain.budget}',
    )  # fmt: skip
  rows(axes, names, 24)
  axes.set_xlabel('points of mean client accuracy over FedAvg')
  handles = [handle(kind) for kind in KINDS if any(gain.kind == kind for gain in gains)]
  for i, budget in enumerate(budgets if len(budgets) > 1 else ()):
    fill = 'white' if i else base.INK
    handles.append(
      Line2D([], [], color=base.INK, linestyle='none', marker='o', markerfacecolor=fill, label=f'at {budget}')
    )
  figure.legend(handles=handles, loc='outside lower center', ncols=2)
  return figure


def colour_of(kind: str) -> str:
  """Returns the colour of a kind of contender."""
  blue, red, green = base.colours(3)
  own = {'fedavg': base.INK, 'oracle': green, 'disjoint': blue, 'overlapping': red}
  return own.get(kind, base.GREY)


def rows(axes: Any, names: Sequence[str], length: int = 38) -> None:
  """Gives the axes a row for each contender, the first at the top, named with so many characters a line."""
  axes.set_yticks(range(len(names)), [base.wrapped(name, length) for name in names])
  axes.set_ylim(len(names) - 0.4, -0.6)
  axes.grid(axis='x')
  axes.tick_params(left=False)


def handle(kind: str, before: str = '') -> Any:
  """Returns the entry of a legend for a kind of contender."""
  from matplotlib.lines import Line2D

  words, marker = KINDS[kind]
  return Line2D(
    [], [], color=colour_of(kind), linestyle='none', marker=marker, markersize=6.5, label=f'{before}{words}'
  )
