"""Claims that one number is above another: margins, seeds, and rows that are missing; on hand-made rows."""

import pytest

from tests.made_up.scorecard_rows import make_ours
from tff_cluster.scorecard.comparisons import Comparison, above
from tff_cluster.scorecard.rows import Row


def _row(name, high, low, seeds=None):
  seeds = tuple(range(len(high))) if seeds is None else seeds
  return make_ours(Row(name, {}, {}), seeds=seeds, over_rows=tuple(high), baseline_over_rows=tuple(low))


def _rows(**told):
  return {name: _row(name, *values) for name, values in told.items()}


def _claim(*names, against=''):
  comparisons = [
    Comparison(name, lambda o: o.over_rows, lambda o: o.baseline_over_rows, against) for name in names
  ]
  return above('It is better', 'section 3', 'said in words', comparisons)


@pytest.mark.parametrize(
  ('high', 'low', 'verdict', 'told'),
  [
    ((90.0,), (89.5,), 'holds', 'a: 90.0% against 89.5%'),
    # Two decimals, because with one they would look as far apart as the margin.
    ((90.0,), (89.54,), 'undecided', 'a: 90.00% against 89.54%'),
    ((89.54,), (90.0,), 'undecided', 'a: 89.54% against 90.00%'),
    ((89.5,), (90.0,), 'fails', 'a: 89.5% against 90.0%'),
    # Differences of 1, 2 and 3: 2 - 4.303 / 3^0.5 is below 0, Student's t with two degrees of freedom.
    ((91.0, 92.0, 93.0), (90.0, 90.0, 90.0), 'undecided', 'a: 92.0% against 90.0% (seeds differ in it)'),
    ((92.0, 92.5, 93.0), (90.0, 90.0, 90.0), 'holds', 'a: 92.5% against 90.0%'),
    ((90.0, 90.0, 90.0), (92.0, 92.5, 93.0), 'fails', 'a: 90.0% against 92.5%'),
    # It is the differences that count: seeds may be far apart.
    ((61.0, 72.1, 93.0), (60.0, 71.0, 92.0), 'holds', 'a: 75.4% against 74.3%'),
  ],
)
def test_verdicts_at_the_margin_and_over_seeds(high, low, verdict, told):
  finding = _claim('a').check(_rows(a=(high, low)))
  assert (finding.verdict, finding.ours) == (verdict, told)
  assert finding.note == ('one seed' if len(high) == 1 else '')


def test_every_row_counts_and_all_must_have_been_run():
  good, near, bad = ((90.0,), (80.0,)), ((80.1,), (80.0,)), ((70.0,), (80.0,))
  claim = _claim('a', 'b')
  assert claim.words == 'It is better (by at least 0.5 points)'
  for second, verdict in ((good, 'holds'), (near, 'undecided'), (bad, 'fails')):
    assert claim.check(_rows(a=good, b=second)).verdict == verdict
  missing = claim.check(_rows(a=good))
  assert (missing.verdict, missing.note) == ('not run', 'not run: b')


def test_two_rows_are_compared_by_seed_only_where_they_have_the_same_seeds():
  claim = _claim('a', against='b')
  high, low = (91.0, 92.0, 93.0), (90.0, 90.0, 90.0)
  rows = {'a': _row('a', high, high), 'b': _row('b', low, low)}
  assert claim.check(rows).verdict == 'undecided'
  assert claim.check({**rows, 'b': _row('b', low, low, seeds=(4, 5, 6))}).verdict == 'holds'
  assert claim.check({'a': rows['a']}).verdict == 'not run'


def test_what_was_not_measured_decides_nothing():
  finding = _claim('a').check(_rows(a=((90.0,), ())))
  assert (finding.verdict, finding.ours) == ('not run', '–') and 'not measured' in finding.note
