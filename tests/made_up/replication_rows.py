"""Rows of figure 1 of Miles et al. 2024 from made-up curves, for tests."""

from tests.made_up.scorecard_rows import make_ours
from tff_cluster.papers import miles2024

FIGURE_1 = miles2024.PUBLISHED['fedex/figure1']


def row(name, *curves):
  """The row of this name with curves that are lists of percentages from round 1 on, one a seed."""
  published = next(row for row in FIGURE_1.rows if row.name == name)
  by_round = tuple(dict(enumerate(curve, 1)) for curve in curves)
  return make_ours(published, seeds=tuple(range(len(curves))), baseline_by_seed=by_round)


def curve(best, reached, swing=0.0, rounds=40):
  """Percentages that are 50 until round `reached`, then `best`, every other round lower by `swing`."""
  return [50.0 if r < reached else best - (swing if (r - reached) % 2 else 0.0) for r in range(1, rounds + 1)]
