"""What runs would cost, in words."""

from pathlib import Path

import pytest

from tff_cluster.cli import cost_lines
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import cost_estimates


def _runs(count):
  return [
    cost_estimates.Run(f'run {number}', ExperimentConfig(), RunFolder(Path())) for number in range(count)
  ]


@pytest.mark.parametrize(
  ('seconds', 'at_once', 'whole'),
  [
    ((2.0, 3.0, 2.0), 1, '7.0 s on this machine'),
    ((2.0, 3.0, 2.0), 2, '4.0 s on this machine, 2 runs side by side'),  # The third begins when the first has ended.
    ((1.0, 1.0, 1.0, 3.0), 2, '4.0 s on this machine, 2 runs side by side'),
    ((3.0, 1.0, 1.0, 1.0), 2, '3.0 s on this machine, 2 runs side by side'),
    ((1.0, 4.0), 3, '4.0 s on this machine, 3 runs side by side'),
  ],
)  # fmt: skip
def test_runs_side_by_side_take_until_the_last_of_them_ends(seconds, at_once, whole):
  count = len(seconds)
  found = [cost_estimates.Estimate(10, 4, each, {}) for each in seconds]
  last = cost_lines.estimate_lines(_runs(count), found, at_once)[-1]
  assert (
    last == f'in all: {10 * count} client-rounds, {4 * count} stored, {6 * count} to train, about {whole}'
  )


def test_folds_of_a_run_go_one_after_the_other():
  runs, found = _runs(6), [cost_estimates.Estimate(10, 0, 2.0, {})] * 6
  # Two runs of two folds each: 6 s each, side by side.
  assert 'about 6.0 s on this machine' in cost_lines.estimate_lines(runs, found, 2, [3, 3])[-1]
  assert 'about 8.0 s on this machine' in cost_lines.estimate_lines(runs, found, 2, [2, 2, 2])[-1]
