"""Figures of a recursive bi-partition: figure 3 (left) of Sattler et al. 2019, and how clusters came apart."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base import arrays
from tff_cluster.base.words import plural
from tff_cluster.report.figures import base, ordering

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_MOST_COLUMNS = 8
_MOST_NAMES = 40
_BAR = 0.005  # Half the width of a block, as a share of the picture's.


@base.styled
def accuracy_per_client(
  accuracy: np.ndarray,
  labels: np.ndarray,
  split_rounds: Sequence[int],
  baseline: tuple[np.ndarray, np.ndarray] | None,
  title: str,
  groups: np.ndarray | None = None,
) -> 'Figure':
  """Draws a thin line a client in the colour of its final cluster, and a bold mean for each cluster.

  Args:
    accuracy: float[rounds, clients] from 0 to 1, after each round from round 1 on.
    labels: int64[clients], the final cluster of each client.
    split_rounds: Rounds after which something was split, ascending.
    baseline: Rounds and mean client accuracies of the unclustered model.
    title: Above the picture.
    groups: int64[clients], the planted group of each client: a cluster has the colour of the group it matches best.
  """
  from matplotlib.ticker import MaxNLocator

  figure = base.new_figure(9.2, 4.8)
  axes = figure.add_subplot()
  rounds, percents = np.arange(1, len(accuracy) + 1), 100 * np.asarray(accuracy, np.float64)
  tones, _ = _tones(labels, groups)
  marker = 'o' if len(rounds) < 2 else None
  as_pixels = percents.size > 20_000  # As paths so many points make a file of megabytes.
  for client, kind in enumerate(labels):
    colour = tones.get(int(kind), base.GREY)
    axes.plot(
      rounds,
      percents[:, client],
      color=colour,
      linewidth=0.8,
      alpha=0.45,
      marker=marker,
      markersize=3,
      rasterized=as_pixels,
    )
  sizes = {kind: int(np.sum(labels == kind)) for kind in sorted(set(labels.tolist()))}
  rest = [kind for kind in sizes if kind not in tones]
  for i, kind in enumerate([*tones, *rest]):
    name = f'cluster {kind} ({plural(sizes[kind], "client")})'
    if kind in rest:
      many = f'{len(rest)} other clusters' if len(rest) > 1 else name
      name = many if kind == rest[0] else '_'
    mean = percents[:, labels == kind].mean(axis=1)
    # Later lines are thinner: where two coincide, both are seen.
    axes.plot(
        rounds, mean, color=tones.get(kind, base.GREY), linewidth=max(4.2 - 0.6 * i, 1.6) if kind in tones else 1.2, label=name,
        marker=marker, markersize=7, zorder=4 if kind in tones else 3,
    )  # fmt: skip
  if baseline is not None and len(baseline[0]):
    axes.plot(
        baseline[0], 100 * np.asarray(baseline[1]), color=base.INK, linestyle=(0, (4, 2)), linewidth=1.8, marker=marker,
        label='unclustered (FedAvg)', zorder=5,
    )  # fmt: skip
  first, last = 1.0, float(len(rounds))
  if baseline is not None and len(baseline[0]):
    last = max(last, float(baseline[0][-1]))
  axes.set_xlim(first - 0.02 * (last - first) - 0.05, last + 0.02 * (last - first) + 0.05)
  for at in split_rounds:
    axes.axvline(
      at, color=base.GREY, linewidth=1.0 if len(split_rounds) < 12 else 0.7, linestyle=':', zorder=1
    )
  if split_rounds:
    above = axes.secondary_xaxis('top')
    above.set_xticks(_spaced(split_rounds, 0.045 * (last - first)))
    above.set_xlabel('split after round')
    above.tick_params(length=3)
  axes.xaxis.set_major_locator(MaxNLocator(integer=True))
  axes.grid(axis='y')
  axes.set_xlabel('round')
  axes.set_ylabel('client test accuracy, %')
  axes.set_title(title, pad=10)
  # Clusters by number, the unclustered model last, as drawn; matplotlib leaves out what is called '_'.
  figure.legend(
    *axes.get_legend_handles_labels(),
    loc='outside right upper',
    title='mean (bold), clients (thin)',
    alignment='left',
  )
  return figure


@base.styled
def split_flow(
  stages: Sequence[tuple[int, np.ndarray]],
  numbers: np.ndarray,
  title: str,
  fates: Sequence[str],
  groups: np.ndarray | None = None,
) -> 'Figure':
  """Draws how the clients flow from one cluster into the final ones, a column for each round of a split.

  Args:
    stages: (round, int64[clients] clusters), the first with one cluster for all, see Recursion.stages.
    numbers: int64[clients], the number of each client's final cluster in the report.
    title: Above the picture.
    fates: For each final cluster in words what became of it, by its number.
    groups: int64[clients], the planted group of each client, which bands are then coloured by; else by `numbers`.
  """
  from matplotlib.patches import Patch, Rectangle

  # Where there are too many rounds the first and the last stage stay.
  chosen = [stages[i] for i in arrays.evenly(len(stages), _MOST_COLUMNS)]
  tones, group_tones = _tones(numbers, groups)
  kinds, palette = (numbers, tones) if groups is None else (groups, group_tones)
  order = np.lexsort((np.arange(len(kinds)), kinds, chosen[-1][1]))
  leaves = len(set(chosen[-1][1].tolist()))
  named = leaves <= _MOST_NAMES
  figure = base.new_figure(9.2, float(np.clip(1.4 + 0.24 * leaves, 3.6, 9.6)))
  axes = figure.add_subplot()
  gap = 0.42 * len(order) / max(leaves - 1, 3)  # Clients' heights are 1.
  tops = [_tops(labels[order], gap) for _, labels in chosen]
  steps = len(chosen) - 1
  bar = _BAR * (1.36 if named else 1.0) * steps + 0.002
  for column in range(steps):
    left, right = tops[column], tops[column + 1]
    keys = list(zip(kinds[order], chosen[column][1][order], chosen[column + 1][1][order], strict=True))
    for start, stop in _runs(keys):
      _band(
          axes, column + bar, column + 1 - bar, (left[start], left[stop - 1] + 1), (right[start], right[stop - 1] + 1),
          palette.get(int(kinds[order[start]]), base.GREY),
      )  # fmt: skip
  for column, (_, labels) in enumerate(chosen):
    for start, stop in _runs(labels[order].tolist()):
      low, height = tops[column][start], float(stop - start)
      axes.add_patch(Rectangle((column - bar, low), 2 * bar, height, color=base.INK, linewidth=0))
      is_last, middle = column == steps, low + height / 2
      if is_last and named:
        number = int(numbers[order[start]])
        axes.annotate(
            f'cluster {number}: {plural(stop - start, "client")}, {fates[number]}', (column + bar, middle), (5, 0), va='center',
            textcoords='offset points', fontsize=9 if leaves <= 20 else 7.5,
        )  # fmt: skip
      elif not is_last and (leaves <= 20 or stop - start > len(order) / 12):
        axes.annotate(
            str(stop - start), (column + bar, middle), (6, 0), va='center', textcoords='offset points', fontsize=8.5,
            bbox={'facecolor': 'white', 'edgecolor': 'none', 'alpha': 0.8, 'pad': 0.2, 'boxstyle': 'round'},
        )  # fmt: skip
  names = [f'start\n{plural(len(order), "client")}', *(f'after\nround {at}' for at, _ in chosen[1:])]
  axes.set_xticks(range(len(chosen)), names)
  axes.set_xlim(-2 * bar, steps + (0.36 * steps if named else 2 * bar))
  ends = [end for column in tops for end in (column[0], column[-1] + 1)]
  axes.set_ylim(max(ends) + 0.3, min(ends) - 0.3)
  axes.set_yticks([])
  axes.spines[['left', 'bottom']].set_visible(False)
  axes.tick_params(axis='x', length=0)
  axes.set_title(title)
  if groups is not None:
    handles = [Patch(color=palette[kind], label=f'planted group {kind}') for kind in palette]
    if rest := len(set(groups.tolist())) - len(palette):
      handles.append(Patch(color=base.GREY, label=plural(rest, 'other group')))
    figure.legend(handles=handles, loc='outside lower center', ncols=min(len(handles), 5))
  return figure


def _tones(labels: np.ndarray, groups: np.ndarray | None) -> tuple[dict[int, str], dict[int, str]]:
  """Returns colours by cluster and by group, a cluster's that of the group it matches; small ones have none."""
  names, found = ordering.as_membership(labels)
  kinds, truth = ([], None) if groups is None else ordering.as_membership(groups)
  clusters, planted, palette = ordering.matched_colours(found, truth)
  return (
    {names[row]: palette[place] for row, place in clusters.items()},
    {kinds[row]: palette[place] for row, place in planted.items()},
  )


def _spaced(values: Sequence[int], least: float) -> list[int]:
  """Returns those of the ascending values whose labels fit: each at least so far from the one before."""
  kept: list[int] = []
  for value in values:
    if not kept or value - kept[-1] >= least:
      kept.append(value)
  return kept


def _tops(labels: np.ndarray, gap: float) -> np.ndarray:
  """Returns float64[clients], the upper ends of clients one below the other, a gap between clusters, centred."""
  steps = np.concatenate([[0], np.cumsum(np.diff(labels) != 0)])
  tops = np.arange(len(labels)) + gap * steps
  return tops - (tops[0] + tops[-1] + 1) / 2


def _runs(keys: Sequence[Any]) -> list[tuple[int, int]]:
  """Returns (start, stop) of each run of equal neighbours."""
  edges = [0, *(i for i in range(1, len(keys)) if keys[i] != keys[i - 1]), len(keys)]
  return list(itertools.pairwise(edges))


def _band(
  axes: Any, x0: float, x1: float, left: tuple[float, float], right: tuple[float, float], colour: str
) -> None:
  from matplotlib.patches import PathPatch
  from matplotlib.path import Path

  middle = (x0 + x1) / 2
  corners = [
      (x0, left[0]), (middle, left[0]), (middle, right[0]), (x1, right[0]),
      (x1, right[1]), (middle, right[1]), (middle, left[1]), (x0, left[1]), (x0, left[0]),
  ]  # fmt: skip
  codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
  axes.add_patch(PathPatch(Path(corners, codes), facecolor=colour, alpha=0.62, linewidth=0))
