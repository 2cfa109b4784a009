"""What curves are read for: by hand, and against a plain reading of McMahan et al. 2017, section 3."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_up import replication_rows
from tff_cluster.scorecard import curves

CURVES = st.lists(st.integers(0, 100), min_size=1, max_size=12)


@pytest.mark.parametrize(
  ('values', 'target', 'rounds'),
  [
    ((90, 94, 98), 96, 2.5),
    ((90, 94, 98), 98.1, None),
    ((99, 10, 10), 99, 1.0),  # Nothing is known before the first round.
    ((80, 90, 70, 70, 94), 92, 4.5),  # Monotone, the curve is 80, 90, 90, 90, 94.
  ],
)
def test_rounds_to_a_target_by_hand(values, target, rounds):
  assert curves.rounds_to(dict(enumerate(values, 1)), target) == rounds
  # Rounds that were left out are interpolated too.
  assert curves.rounds_to({10: 80.0, 20: 90.0}, 85.0) == 15.0


@settings(max_examples=50)
@given(CURVES, st.integers(1, 100))
def test_rounds_are_those_of_the_monotone_curve(values, target):
  curve = dict(enumerate(values, 1))
  best = np.maximum.accumulate(values)
  found = curves.rounds_to(curve, target)
  assert found == curves.rounds_to(dict(enumerate(best.tolist(), 1)), target)
  if best[-1] < target:
    assert found is None
  else:
    first = int(np.argmax(np.array(values) >= target)) + 1
    assert found is not None and max(first - 1, 1) <= found <= first
    # The monotone curve, drawn by NumPy, has the target there.
    drawn = np.interp(found, np.arange(1, len(values) + 1), best)
    assert drawn == pytest.approx(max(target, values[0]))


def test_fluctuation_is_of_the_last_half_and_not_of_a_steady_rise():
  wild = [0.0, 90.0, 10.0, 80.0]
  assert curves.fluctuation(dict(enumerate([*wild, 81.0, 82.0, 83.0, 84.0], 1))) == 0.0
  # Changes of +2 and -2 in turn: their mean is 0 and each is 2 away from it.
  assert curves.fluctuation(dict(enumerate([*wild, 82.0, 80.0, 82.0, 80.0], 1))) == 2.0
  # Changes into rounds 3 and 4 of 4, here 1 and 4.
  assert curves.fluctuation({1: 0.0, 2: 50.0, 3: 51.0, 4: 55.0}) == 1.5
  assert curves.fluctuation({1: 70.0}) == 0.0


def test_measures_are_one_a_seed():
  ours = replication_rows.row('IID, B 10, E 1', [90, 96, 95], [90, 92, 94])
  assert curves.rounds(95.0)(ours) == [pytest.approx(1 + 5 / 6), None]
  assert (curves.BEST(ours), curves.END(ours)) == ([96, 94], [95, 94])
  assert curves.FLUCTUATION(ours) == [0.0, 0.0]
