"""The tree of a hierarchical clustering, with the height at which it was cut."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base import words
from tff_cluster.report.figures import base, ordering

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_MOST_NAMES = 60
MOST_LEAVES = 300


@base.styled
def dendrogram(
  linkage: np.ndarray,
  threshold: float | None,
  labels: np.ndarray,
  client_ids: Sequence[str],
  title: str,
  groups: np.ndarray | None = None,
) -> 'Figure':
  """Draws a dendrogram; branches below the cut have the colour of their cluster.

  Args:
    linkage: float64[clients - 1, 4], SciPy's form.
    threshold: Height of the cut, or None.
    labels: int64[clients], the clusters.
    client_ids: The clients' ids.
    title: Above the picture.
    groups: int64[clients], the planted group of each client: a strip under the leaves.
  """
  import scipy.cluster.hierarchy

  count = len(linkage) + 1
  figure = base.new_figure(9.2, 4.4)
  axes = figure.add_subplot()
  kinds, found = ordering.as_membership(labels)
  planted, truth = ([], None) if groups is None else ordering.as_membership(groups)
  codes, group_codes, tones = ordering.matched_colours(found, truth)
  palette = {kinds[row]: tones[code] for row, code in codes.items()}
  strip_tones = [tones[group_codes[row]] if row in group_codes else base.PALE for row in range(len(planted))]
  shade = _node_colours(linkage, labels, palette)
  truncate = {'truncate_mode': 'lastp', 'p': MOST_LEAVES} if count > MOST_LEAVES else {}
  drawn = scipy.cluster.hierarchy.dendrogram(
    linkage, ax=axes, no_labels=True, link_color_func=lambda node: shade[node], **truncate
  )
  leaves = np.asarray(drawn['leaves'])
  places = 10.0 * np.arange(len(leaves)) + 5.0
  heights = linkage[:, 2]
  top = max(float(heights.max()), threshold if threshold is not None else 0.0)
  axes.set_ylim(0, top * 1.08 if top > 0 else 1.0)
  if threshold is not None:
    axes.axhline(threshold, color=base.INK, linestyle=(0, (5, 3)), linewidth=1.3)
    axes.annotate(
        f'cut at {threshold:.4g}: {words.plural(len(kinds), "cluster")}', (1.0, threshold), (-2, 3),
        xycoords=axes.get_yaxis_transform(), textcoords='offset points', ha='right', va='bottom', fontsize=9,
        bbox={'facecolor': 'white', 'edgecolor': 'none', 'alpha': 0.85, 'pad': 1.0},
    )  # fmt: skip
  axes.set_ylabel('distance at which branches merge')
  axes.set_title(title)
  axes.spines['bottom'].set_visible(False)
  below = 0.0
  if groups is not None and not truncate:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    strip = axes.inset_axes((0.0, -0.055, 1.0, 0.035))
    strip.imshow(
        np.searchsorted(planted, groups[leaves])[None, :], cmap=ListedColormap([*strip_tones, base.PALE]), vmin=0, aspect='auto',
        vmax=len(planted), interpolation='nearest', extent=(0, 10 * count, 0, 1),
    )  # fmt: skip
    strip.set_axis_off()
    strip.set_xlim(*axes.get_xlim())
    handles = [Patch(color=strip_tones[row], label=f'planted group {planted[row]}') for row in group_codes]
    if rest := len(planted) - len(handles):
      handles.append(Patch(color=base.PALE, label=words.plural(rest, 'other group')))
    figure.legend(handles=handles, loc='outside lower center', ncols=min(len(handles), 5))
    below = 16.0
  if not truncate and count <= _MOST_NAMES:
    axes.set_xticks(
      places,
      [base.client(client_ids[k], 12) for k in leaves],
      rotation=90,
      fontsize=8.5 if count <= 30 else 7,
    )
    axes.tick_params(axis='x', length=0, pad=below + 2)
  else:
    axes.set_xticks([])
    axes.set_xlabel(
      f'{count} clients' + (f', the last {MOST_LEAVES} branches' if truncate else ''), labelpad=below + 4
    )
  return figure


def _node_colours(linkage: np.ndarray, labels: np.ndarray, palette: dict[int, str]) -> list[str]:
  """Returns a colour for each of the 2 * clients - 1 nodes: its cluster's where it lies in one, else grey."""
  owner: list[int | None] = [int(label) for label in labels]
  for left, right, *_ in linkage:
    first, second = owner[int(left)], owner[int(right)]
    owner.append(first if first == second else None)
  return [base.GREY if kind is None else palette.get(kind, base.GREY) for kind in owner]
