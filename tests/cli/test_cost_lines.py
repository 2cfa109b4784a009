"""What runs would cost, in words."""

import pytest

from tff_cluster.cli import cost_lines


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
  entries = [(f'seed {number}', 10, 4, each, {}) for number, each in enumerate(seconds)]
  count = len(seconds)
  last = cost_lines.estimate_lines(entries, at_once)[-1]
  assert (
    last == f'in all: {10 * count} client-rounds, {4 * count} stored, {6 * count} to train, about {whole}'
  )


def test_folds_of_a_run_go_one_after_the_other():
  entries = [(f'run {number}', 10, 0, 2.0, {}) for number in range(6)]
  # Two runs of two folds each: 6 s each, side by side.
  assert 'about 6.0 s on this machine' in cost_lines.estimate_lines(entries, 2, [3, 3])[-1]
  assert 'about 8.0 s on this machine' in cost_lines.estimate_lines(entries, 2, [2, 2, 2])[-1]
