"""Claims that one number is above another, in rows and across them."""

from tests.made_up.scorecard_rows import make_ours
from tff_cluster.scorecard.claims import compared, ordered
from tff_cluster.scorecard.rows import Row


def _rows(**told):
  return {
    name: make_ours(Row(name, {}, {}), seeds=(0, 1, 2), over_rows=(high,) * 3, baseline_over_rows=(low,) * 3)
    for name, (high, low) in told.items()
  }


def _claim(*names, against=''):
  parts = [compared(name, lambda o: o.over_rows, lambda o: o.baseline_over_rows, against) for name in names]
  return ordered('It is better', 'section 3', 'said in words', parts)


def test_every_comparison_counts_in_its_own_row_or_against_another_one():
  claim = _claim('a', 'b')
  assert claim.words == 'It is better (by at least 0.5 points)' and claim.names == ('a', 'b')
  for second, verdict in (((90.0, 80.0), 'holds'), ((80.4, 80.0), 'fails'), ((70.0, 80.0), 'fails')):
    assert claim.check(_rows(a=(90.0, 80.0), b=second)).verdict == verdict
  across = _claim('a', against='b')
  assert across.check(_rows(a=(90.0, 99.0), b=(99.0, 80.0))).verdict == 'holds'
  assert across.check(_rows(a=(90.0, 99.0))).verdict == 'not run'
