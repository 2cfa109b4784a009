"""The overlap dial: one clustering with a dial at thresholds from every client alone to all clients together.

Its positions are clusterings like any other; what they are called tells them from those that were chosen by hand.
"""

import re
from collections.abc import Sequence

from tff_cluster.base.errors import InputError, argument
from tff_cluster.clustering import methods
from tff_cluster.clustering.clustering_config import ClusteringConfig

FEWEST = 3
_NAME = re.compile(r'dial_\d{2}', re.IGNORECASE)


def is_position(label: str) -> bool:
  """Tells whether a clustering of this label is a position of the dial."""
  return _NAME.fullmatch(label) is not None


def quantile(clustering_threshold: str) -> float | None:
  """Returns which quantile of the distances a position's threshold is; None for the first, which links nobody."""
  kind, _, value = clustering_threshold.partition(':')
  return float(value) if kind == 'quantile' else None


def positions(clusterings: Sequence[ClusteringConfig], count: int) -> tuple[ClusteringConfig, ...]:
  """Returns the positions of the dial, dial_00, dial_01, ... .

  At the first the threshold is 0, at the last the largest distance; between them it is the quantile (i / (count - 1))^2 of
  the distances, because clusters change most where few pairs are linked.

  Args:
    clusterings: Those of the experiment. The first one whose method has a dial (dynamic distance) says the other options;
      without one they have their defaults.
    count: Number of positions; 0 for none.

  Raises:
    InputError: if there are too few positions for both ends and something between, or a clustering already has a
      position's name.
  """
  taken = [clustering.label for clustering in clusterings if is_position(clustering.label)]
  if taken:
    raise InputError(
      f'name={taken[0]}: dial_00, dial_01, ... are the positions of {argument("overlap_dial")}; choose another name'
    )
  if count == 0:
    return ()
  if not FEWEST <= count <= 100:
    raise InputError(f'{argument("overlap_dial", count)}: give 0, or from {FEWEST} to 100 positions')
  with_dial = (ClusteringConfig(name) for name, method in methods.METHODS.items() if method.dial)
  base = next((clustering for clustering in clusterings if clustering.rule.dial), next(with_dial))
  thresholds = ['0', *(f'quantile:{(i / (count - 1)) ** 2:.4g}' for i in range(1, count))]
  return tuple(
    base.changed(name=f'dial_{i:02d}', **{str(base.rule.dial): threshold})
    for i, threshold in enumerate(thresholds)
  )
