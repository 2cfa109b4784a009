"""Costs, worked out by hand."""

import pytest

from tff_cluster.base.cost import UNITS, Cost

# Two clients of 10 and 20 rows receive three models of 100 bytes, measure them, train one twice over, and send it.
_ROUND = Cost(2, 6, 2, 600, 200, rows_trained=2 * 30, rows_forward=3 * 30)


def test_a_row_that_is_trained_on_counts_as_three_passes():
  assert [_ROUND.of(unit) for unit in UNITS] == [2, 800, 3 * 60 + 90]
  assert (_ROUND.bytes, _ROUND.passes) == (800, 270)
  with pytest.raises(KeyError):
    _ROUND.of('seconds')


def test_costs_add_up_and_are_read_as_they_were_written():
  twice = _ROUND + _ROUND
  assert twice == Cost(4, 12, 4, 1200, 400, 120, 180) == sum([_ROUND] * 2, Cost())
  assert twice - _ROUND == _ROUND and Cost.from_json(_ROUND.to_json()) == _ROUND
  assert list(Cost().to_json()) == list(_ROUND.to_json())
