"""When a claim is checked, on which rows, and what its finding says of the others."""

import types

import pytest

from tff_cluster.scorecard.claims import Claim, Needs, judged, whole

SINGLE = Needs((('a',), ('b',), ('c',)), 2)
PAIRS = Needs((('a', 'b'), ('a', 'c'), ('b', 'c')), 1)
APART = Needs((('a', 'b'), ('c', 'd')), 1)
EIGHT = Needs(tuple((name,) for name in 'abcdefgh'), 1)


def _check(needs, run, **departures):
  claim = Claim('words', 'source', 'printed', needs, lambda rows: judged(True, ''.join(rows), 'noted'))
  return claim.check({name: types.SimpleNamespace(departures=departures.get(name, [])) for name in run})


@pytest.mark.parametrize(
  ('needs', 'run', 'on', 'note'),
  [
    (whole('a', 'b'), '', None, 'not run: a; b'),
    (whole('a', 'b'), 'xba', 'ab', 'noted'),  # In the table's order, and on no other rows.
    (SINGLE, 'c', None, 'not run: a; b (any 1 of them would do)'),
    (SINGLE, 'ca', 'ac', 'noted; only 2 of 3 rows: the others were not run'),
    (SINGLE, 'abc', 'abc', 'noted; all 3 rows'),
    (PAIRS, 'ca', 'ac', 'noted; only 1 of 3 comparisons of rows: the others were not run'),
    (APART, 'dca', 'cd', 'noted; only 1 of 2 comparisons of rows: the others were not run'),
    (EIGHT, '', None, 'not run: a; b; c; d; e; f; and 2 more (any 1 of them would do)'),
  ],
)
def test_a_claim_is_checked_on_the_groups_of_rows_that_are_whole(needs, run, on, note):
  finding = _check(needs, run)
  assert (finding.verdict, finding.ours) == (('not run', '–') if on is None else ('holds', on))
  assert finding.note == note


def test_what_differs_from_the_paper_in_rows_of_the_claim_is_told_once():
  finding = _check(whole('a', 'b'), 'abc', a=['K 3'], b=['K 3', 'l1'], c=['cosine'])
  assert finding.note == 'noted; K 3; l1'
