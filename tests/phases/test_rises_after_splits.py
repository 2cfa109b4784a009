"""What each half of a split of CFL gains: by hand, for the client that gains least."""

import types

import numpy as np
import pytest

from tests.made_up import in_json
from tff_cluster.clustering.recursion import Test as SplitTest
from tff_cluster.phases import assembly

CLIENTS = ('a', 'b', 'c', 'd')
# [rounds, clients]: from round 7 on a gains 40 points and falls by 20 again, b gains 10; c does not move, and d falls.
ACCURACY = np.array([[0.2, 0.2, 0.5, 0.5]] * 6 + [[0.6, 0.3, 0.5, 0.4]] * 3 + [[0.4, 0.3, 0.5, 0.4]] * 3)


def rise_of(number: int, verdict: str = 'split') -> list[float] | None:
  halves = [['a', 'b'], ['c', 'd']] if verdict == 'split' else None
  test = in_json.record(
    SplitTest, {'round': number, 'verdict': verdict, 'cluster': CLIENTS, 'halves': halves}
  )
  return assembly._split(test, ACCURACY, types.SimpleNamespace(client_ids=CLIENTS)).half_rise


@pytest.mark.parametrize(
  ('number', 'rises'),
  [
    (6, [0.1, -0.1]),  # a gains 32 points in the mean of five rounds, b 10, and d loses 10.
    (11, [-0.12, 0.0]),  # One round after it: a has 0.4, and had 0.6 in three of five rounds and 0.4 in two.
    (1, [0.0, 0.0]),  # One round up to it, five after it, in which nobody has moved.
  ],
)
def test_the_mean_of_five_rounds_is_set_against_that_of_five_before(number, rises):
  assert rise_of(number) == pytest.approx(rises)


def test_without_a_round_after_it_and_without_a_split_nothing_is_told():
  assert rise_of(12) is None and rise_of(6, 'stopped') is None
