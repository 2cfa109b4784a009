"""Who belongs to which cluster, beside who was planted in which group."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.report.figures import base, ordering

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_MOST_NAMES = 40


@base.styled
def membership_matrix(
  membership: np.ndarray,
  client_ids: Sequence[str],
  title: str,
  truth: np.ndarray | None = None,
  truth_name: str = '',
  order: np.ndarray | None = None,
) -> 'Figure':
  """Draws clusters (rows) by clients (columns), and the planted groups on the same columns above.

  Args:
    membership: float[clusters, clients]; shares below 1 are drawn paler.
    client_ids: The clients' ids.
    title: Above the picture.
    truth: float[groups, clients], planted memberships; shares below 1 are drawn paler.
    truth_name: What they are called.
    order: int64[clients], ordering.client_order of the membership, where that is known.
  """
  clients = ordering.client_order(membership) if order is None else order
  rows = ordering.cluster_order(membership, clients)
  shown = np.asarray(membership, np.float64)[np.ix_(rows, clients)]
  planted = None if truth is None else np.asarray(truth, np.float64)[:, clients]
  row_height = 0.26 if len(shown) <= 20 else 0.075
  truth_height = 0.0 if planted is None else float(np.clip(0.2 * len(planted), 0.35, 2.2))
  height = float(np.clip(row_height * len(shown), 0.6, 6.5))
  figure = base.new_figure(9.2, 1.7 + height + (0.45 if planted is not None else 0) + truth_height)
  if planted is None:
    axes = figure.add_subplot()
  else:
    above, axes = figure.subplots(2, 1, sharex=True, height_ratios=(truth_height, height))
    # By the first client shown: groups then fall along the diagonal where they agree with the clusters.
    by_place = np.argsort([np.flatnonzero(g)[0] if g.any() else len(g) for g in planted], kind='stable')
    _cells(above, planted[by_place], '#117733', [str(g) for g in by_place])
    above.set_title(f'Planted groups “{base.short(truth_name, 40)}”', fontsize=10)
    above.set_ylabel('group')
    above.tick_params(axis='x', bottom=False, labelbottom=False)
  _cells(axes, shown, '#0072B2', [str(row) for row in rows])
  axes.set_title(title, fontsize=10 if planted is not None else 11)
  axes.set_ylabel('cluster' if len(shown) <= _MOST_NAMES else f'{len(shown)} clusters')
  if len(clients) <= _MOST_NAMES:
    axes.set_xticks(
      np.arange(len(clients)), [base.client(client_ids[k]) for k in clients], fontsize=8, rotation=90
    )
    axes.set_xlabel('client')
  else:
    axes.set_xticks([])
    axes.set_xlabel(f'{len(clients)} clients')
  return figure


def _cells(axes: Any, values: np.ndarray, colour: str, names: list[str]) -> None:
  from matplotlib.colors import LinearSegmentedColormap

  ramp = LinearSegmentedColormap.from_list('ramp', ['#F3F3F3', colour])
  rows, columns = values.shape
  base.draw_matrix(axes, values, np.max, cmap=ramp, vmin=0, vmax=1, aspect='auto')
  axes.spines[['top', 'right']].set_visible(True)
  if columns <= 60:
    for edge in np.arange(0.5, columns - 1):
      axes.axvline(edge, color='white', linewidth=0.8)
  if rows <= _MOST_NAMES:
    for edge in np.arange(0.5, rows - 1):
      axes.axhline(edge, color='white', linewidth=0.8)
  if rows <= 20:
    axes.set_yticks(np.arange(rows), [base.short(name) for name in names], fontsize=8)
  else:
    axes.set_yticks([])
