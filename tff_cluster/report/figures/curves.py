"""Figures over rounds and over the number of clusters."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.report.figures import base

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_DASHES = ('-', (0, (6, 2)), (0, (3, 3)), (0, (7, 2, 1.5, 2)))


@base.styled
def accuracy_over_rounds(
  phase1: tuple[np.ndarray, np.ndarray],
  baseline: tuple[np.ndarray, np.ndarray],
  clusterings: Mapping[str, tuple[np.ndarray, np.ndarray]],
  clustered_after: int,
  personalized: Mapping[str, tuple[np.ndarray, np.ndarray]],
  at_random: Collection[str] = (),
) -> 'Figure':
  """Draws the mean client accuracy over rounds: the whole run, and Phase 2 enlarged beside it.

  Args:
    phase1: Rounds, and mean accuracies from 0 to 1.
    baseline: The same for the unclustered model in the rounds of Phase 2.
    clusterings: The same for each clustering, rounds counted from the start of Phase 1.
    clustered_after: The last round of Phase 1.
    personalized: The same for each baseline in which clients have models of their own.
    at_random: Clusterings whose models began at random, not with those of Phase 1.
  """
  from matplotlib.ticker import MaxNLocator

  figure = base.new_figure(9.2, 4.3)
  whole, late = figure.subplots(1, 2, width_ratios=(1, 1))
  start = (np.asarray(phase1[0])[-1:], np.asarray(phase1[1])[-1:])
  lines: list[tuple[str, Any, str, Any, float]]
  lines = [('Phase 1 (all clients)', phase1, base.GREY, '-', 2.4)] if len(start[0]) else []
  lines.append(('unclustered, equal rounds', _joined(start, baseline), base.INK, (0, (1, 1.2)), 2.2))
  for i, (label, curve) in enumerate(clusterings.items()):
    width = max(3.4 - 0.8 * i, 1.6)  # Later lines are thinner: where two coincide, both are seen.
    colour = base.colours(len(clusterings))[i]
    lines.append(
      (
        base.short(label, 30),
        curve if label in at_random else _joined(start, curve),
        colour,
        _DASHES[i % len(_DASHES)],
        width,
      )
    )
  for i, (label, own) in enumerate(personalized.items()):
    lines.append((label, own, base.GREY, _DASHES[i % len(_DASHES)], 1.1))
  for axes in (whole, late):
    for label, (rounds, accuracy), colour, dash, width in lines:
      late_mark = 'o' if len(rounds) < 2 else None
      axes.plot(
        rounds,
        100 * np.asarray(accuracy),
        color=colour,
        linestyle=dash,
        linewidth=width,
        label=label,
        marker=late_mark,
      )
    axes.axvline(clustered_after, color=base.GREY, linewidth=1, linestyle=':')
    axes.grid(axis='y')
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel('round')
  last = max(float(np.max(rounds)) for _, (rounds, _), *_ in lines)
  seen = [100 * np.asarray(a)[np.asarray(r) >= clustered_after] for _, (r, a), *_ in lines]
  values = np.concatenate(seen) if any(len(s) for s in seen) else np.zeros(1)
  spread = max(float(np.ptp(values)), 1.0)
  late.set_ylim(values.min() - 0.08 * spread, values.max() + 0.08 * spread)
  late.set_xlim(
    clustered_after - 0.02 * (last - clustered_after) - 0.05, last + 0.02 * (last - clustered_after) + 0.05
  )
  whole.set_ylabel('mean client test accuracy, %')
  whole.set_title('The whole run')
  late.set_title('From the clustering on')
  # Where there is no room to the left: above, since curves rise from there.
  height, beside, side, edge = (
    (0.97, 5, 'left', 'top') if clustered_after < 0.2 * last else (0.03, -5, 'right', 'bottom')
  )
  whole.annotate(
      f'clustered after\nround {clustered_after}', (clustered_after, height), (beside, 0), xycoords=whole.get_xaxis_transform(),
      textcoords='offset points', fontsize=8.5, color=base.GREY, ha=side, va=edge,
  )  # fmt: skip
  figure.legend(*whole.get_legend_handles_labels(), loc='outside lower center', ncols=2)
  return figure


@base.styled
def candidate_sweep(
  counts: np.ndarray, silhouettes: np.ndarray, recovery: Mapping[str, np.ndarray], used: Sequence[int]
) -> 'Figure':
  """Draws how silhouette and agreement with the planted groups move with the K of k-means.

  Args:
    counts: int64[candidates], K.
    silhouettes: float[candidates], NaN where undefined.
    recovery: By 'measure, truth', float[candidates].
    used: Values of K that were trained.
  """
  figure = base.new_figure(8.6, 3.7)
  axes = figure.add_subplot()
  shown: list[tuple[str, Any]] = [('silhouette (needs no truth)', silhouettes), *recovery.items()]
  for i, (name, values) in enumerate(shown):
    axes.plot(
        counts, values, marker=base.MARKERS[i % len(base.MARKERS)], markersize=6, linewidth=1.8,
        color=base.colours(len(shown))[i], linestyle=_DASHES[i % len(_DASHES)], label=base.short(name, 40),
    )  # fmt: skip
  for i, count in enumerate(sorted(set(used))):
    axes.axvline(
      count,
      color=base.GREY,
      linewidth=5,
      alpha=0.35,
      zorder=0,
      label='trained in this run' if i == 0 else None,
    )
  axes.set_xticks(counts)
  axes.set_xlabel('number of clusters K (k-means)')
  axes.set_ylabel('score')
  axes.grid(axis='y')
  axes.set_title('What another K would have given')
  figure.legend(*axes.get_legend_handles_labels(), loc='outside lower center', ncols=2)
  return figure


def _joined(start: tuple[Any, Any], curve: tuple[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
  # The curve leaves the end of Phase 1 only where it has no value of its own for that round.
  rounds, accuracy = np.asarray(curve[0]), np.asarray(curve[1])
  if len(rounds) and len(start[0]) and rounds[0] > start[0][0]:
    return np.concatenate([start[0], rounds]), np.concatenate([start[1], accuracy])
  return rounds, accuracy
