"""The picture of a league: what each method gains over FedAvg in each setting."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.report.figures import base

if TYPE_CHECKING:
  from matplotlib.figure import Figure


@base.styled
def gains(
  points: np.ndarray, certain: np.ndarray, methods: Sequence[str], settings: Sequence[str]
) -> 'Figure':
  """Draws differences to FedAvg as colours with their numbers.

  Args:
    points: float[methods, settings], points of accuracy; NaN where a method was not run.
    certain: bool[methods, settings], where the 95% interval excludes zero: the number is bold.
    methods, settings: Their names.
  """
  figure = base.new_figure(2.6 + 1.05 * len(settings), 1.5 + 0.33 * len(methods))
  axes = figure.add_subplot()
  widest = max(float(np.nanmax(np.abs(points), initial=0.0)), 1.0)
  image = axes.imshow(points, cmap='RdBu', vmin=-widest, vmax=widest, aspect='auto')
  for row, column in np.ndindex(points.shape):
    value = points[row, column]
    if np.isfinite(value):
      axes.text(
        column,
        row,
        f'{value:+.1f}'.replace('-', '−'),
        ha='center',
        va='center',
        fontsize=8.5,
        fontweight='bold' if certain[row, column] else 'normal',
        color='white' if abs(value) > 0.6 * widest else 'black',
      )
  axes.set_xticks(range(len(settings)), [base.short(name, 24) for name in settings], rotation=25, ha='right')
  axes.set_yticks(range(len(methods)), [base.short(name, 28) for name in methods])
  axes.tick_params(length=0)
  axes.spines[:].set_visible(False)
  figure.colorbar(image, ax=axes, shrink=0.8, label='points above FedAvg')
  return figure
