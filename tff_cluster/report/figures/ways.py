"""The ways of clients over the rounds of a method that alternates between clustering and training."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base import arrays, words
from tff_cluster.report.figures import base

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_MOST_NAMES = 40
_MOST_GROUP_NAMES = 20
# Stripes of a client's row, which its shares fill one below the other.
_STRIPES = 8
_NOTHING = '#FFFFFF'


@base.styled
def client_ways(
  shares: np.ndarray,
  first_round: int,
  changed: Sequence[int],
  client_ids: Sequence[str],
  order: np.ndarray,
  kinds: np.ndarray,
  names: Sequence[str],
  title: str,
  truth: np.ndarray | None = None,
  truth_name: str = '',
) -> 'Figure':
  """Draws clients by rounds, coloured by model, beside their planted groups, and below how many changed their model.

  Args:
    shares: float[rounds, models, clients], a client's row is divided among models by them; 0 everywhere is left white.
    first_round: The round before the first one.
    changed: [rounds], clients that changed their model.
    client_ids: The clients' ids.
    order: int64[clients], positions from above to below.
    kinds: int64[models], a colour number for each model, that of the planted group that it matches.
    names: [models], what they are called.
    title: Above the picture.
    truth: float[groups, clients], planted shares.
    truth_name: What the groups are called.
  """
  from matplotlib.ticker import MaxNLocator

  rounds = len(shares)
  rows = order[arrays.evenly(len(order), base.MOST_PIXELS)]
  groups = 0 if truth is None else len(truth)
  palette = _palette(max(int(kinds.max()) + 1, groups))
  height = float(np.clip(0.19 * len(rows), 1.6, 8.0))
  figure = base.new_figure(9.2, height + 2.6)
  grid = figure.add_gridspec(2, 2, height_ratios=(height, 1.0), width_ratios=(0.22 if groups else 1e-3, 8.0))
  axes = figure.add_subplot(grid[0, 1])
  below = figure.add_subplot(grid[1, 1], sharex=axes)
  numbers = first_round + 1 + np.arange(rounds)
  _stripes(axes, shares[:, :, rows], palette[kinds], (numbers[0] - 0.5, numbers[-1] + 0.5))
  axes.tick_params(axis='x', labelbottom=False)
  _name_clients(axes, [client_ids[k] for k in rows], len(order))
  axes.set_title(title)
  if truth is not None:
    beside = figure.add_subplot(grid[0, 0])
    _groups(beside, np.asarray(truth, np.float64)[:, rows], palette, truth_name)
    for edge in _edges(np.asarray(truth)[:, rows].argmax(axis=0)):
      axes.axhline(edge, color=base.INK, linewidth=1.0)
  below.plot(
    numbers, changed, color=base.INK, linewidth=1.6, marker='o' if rounds <= 40 else None, markersize=3.5
  )
  below.set_ylim(-0.04 * max(*changed, 1), 1.08 * max(*changed, 1))
  below.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
  below.xaxis.set_major_locator(MaxNLocator(integer=True))
  below.grid(axis='y')
  below.set_xlabel('round')
  below.set_title('clients that changed their model', fontsize=9.5, fontweight='normal')
  figure.legend(handles=_handles(shares[-1], palette[kinds], names), loc='outside lower center', ncols=3)
  return figure


def _palette(count: int) -> np.ndarray:
  """Returns str[count], colours; where there are too many kinds, the rest is grey."""
  some = base.colours(min(count, base.MOST_COLOURS))
  return np.array(some + [base.PALE] * (count - len(some)))


def _stripes(axes: Any, shares: np.ndarray, colours: np.ndarray, ends: tuple[float, float]) -> None:
  """Draws float[rounds, kinds, clients] as rows of clients, each divided among the kinds by its shares."""
  from matplotlib.colors import to_rgb

  columns = arrays.evenly(len(shares), base.MOST_PIXELS)
  tops = np.cumsum(shares[columns], axis=1)
  middles = (np.arange(_STRIPES) + 0.5) / _STRIPES
  # The kind in whose part of the row the middle of a stripe lies; float32 shares may sum to a little less than 1.
  whole = np.maximum(tops[:, -1], 1e-9)
  kind = np.stack([(tops < middle * whole[:, None]).sum(axis=1) for middle in middles], axis=1)
  known = np.broadcast_to(tops[:, None, -1] > 0.0, kind.shape)
  table = np.array([to_rgb(colour) for colour in (*colours, _NOTHING)])
  pixels = table[np.where(known, np.minimum(kind, len(colours) - 1), len(colours))]
  rows = shares.shape[2]
  image = pixels.transpose(2, 1, 0, 3).reshape(rows * _STRIPES, len(columns), 3)
  axes.imshow(image, interpolation='nearest', aspect='auto', extent=(*ends, rows - 0.5, -0.5))
  axes.spines[['top', 'right']].set_visible(True)
  if rows <= 60:
    for edge in np.arange(0.5, rows - 1):
      axes.axhline(edge, color='white', linewidth=0.8)


def _groups(axes: Any, truth: np.ndarray, palette: np.ndarray, name: str) -> None:
  """Draws float[groups, clients] as a column, each client divided among its groups."""
  _stripes(axes, truth[None], palette[: len(truth)], (0.0, 1.0))
  main = truth.argmax(axis=0)
  edges = [-0.5, *_edges(main), len(main) - 0.5]
  places = [(low + high) / 2 for low, high in itertools.pairwise(edges)]
  if len(places) <= _MOST_GROUP_NAMES:
    axes.set_yticks(places, [f'group {main[round(place)]}' for place in places], fontsize=8)
  else:
    axes.set_yticks([])
  axes.tick_params(left=False, labelleft=True)
  axes.set_xticks([])
  axes.set_title(f'“{base.short(name, 12)}”', fontsize=8.5, fontweight='normal', loc='center')
  for edge in edges[1:-1]:
    axes.axhline(edge, color=base.INK, linewidth=1.0)


def _edges(main: np.ndarray) -> list[float]:
  """Returns where one group ends and the next one begins, of int64[clients] in their order."""
  return [float(k) + 0.5 for k in np.flatnonzero(main[1:] != main[:-1])]


def _name_clients(axes: Any, names: Sequence[str], count: int) -> None:
  axes.yaxis.tick_right()
  axes.yaxis.set_label_position('right')
  if len(names) <= _MOST_NAMES:
    axes.set_yticks(np.arange(len(names)), [base.client(name) for name in names], fontsize=8)
  else:
    axes.set_yticks([])
    axes.set_ylabel(f'{len(names)} clients' if len(names) == count else f'{len(names)} of {count:,} clients')
  axes.tick_params(axis='y', right=False)


def _handles(last: np.ndarray, colours: np.ndarray, names: Sequence[str]) -> list[Any]:
  from matplotlib.patches import Patch

  own = last == last.max(axis=0)
  named = [f'{name}: {_clients(int(of_model.sum()))}' for name, of_model in zip(names, own, strict=True)]
  kept = [k for k, colour in enumerate(colours) if colour != base.PALE]
  handles = [Patch(color=str(colours[k]), label=named[k]) for k in kept]
  if len(kept) < len(colours):
    handles.append(Patch(color=base.PALE, label=f'{len(colours) - len(kept)} other models'))
  return handles


def _clients(count: int) -> str:
  return f'{words.plural(count, "client")} at the end' if count else 'nobody at the end'
