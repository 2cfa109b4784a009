"""The scorecard of a table: hand-made rows beside hand-made print, verdicts, and what its headline may never say."""

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.made_up import published_table as made_up_table
from tests.made_up.published_table import FIGURE, REMARK, TABLE
from tff_cluster.scorecard import cells, headline
from tff_cluster.scorecard.published import Scale
from tff_cluster.scorecard.rows import COLUMNS


def _lines(published, rows, remark=''):
  return cells.lines(published.name, published.source, published.cells, rows, remark)


def test_a_line_for_each_cell_with_numbers_by_hand():
  lines = _lines(TABLE, made_up_table.rows())
  assert [(line.row, line.column) for line in lines] == [(row.name, c) for row in TABLE.rows for c in COLUMNS]
  first, lower, without, *_ = lines
  assert first.table == 'paper/table9'
  assert (first.published, first.published_ratio, first.ours) == (90.0, 1.5, 90.4)
  assert first.ours_ratio == pytest.approx(2.0) and first.difference == pytest.approx(0.4)
  assert (first.low, first.high, first.verdict) == (None, None, 'reproduced (within 1 point)')
  assert first.note == 'one seed, so no interval; Somebody 1999, table 9'
  assert lower.verdict == 'differs by 1.5 points (ours is lower)' and lower.agrees is False
  # FedAvg brings no client to the target.
  assert without.ours_ratio is None and '0%, so no ratio' in without.note and without.published_ratio is None
  for line in lines[:4]:
    is_share = line.column.startswith('share')
    assert ('tolerance 5 points' in line.note and 'one client is 1 point' in line.note) is is_share
  dash = lines[4]
  assert (dash.row, dash.published, dash.published_ratio, dash.ours) == ('dashes', None, None, 90.4)
  assert (dash.verdict, dash.difference, dash.agrees) == ('nothing to compare', None, None)
  assert 'prints no number' in dash.note
  assert [line.published for line in lines[8:]] == [1.0, 2.0, 3.0, 4.0]
  rows = made_up_table.rows(seeds=(1, 2, 3))
  rows['first'].columns['accuracy_after'] = (89.4, 90.4, 91.4)
  by_seed = _lines(TABLE, rows)[0]
  assert (by_seed.low, by_seed.high) == pytest.approx((90.4 - 2.484137, 90.4 + 2.484137), abs=1e-5)
  assert by_seed.ours == pytest.approx(90.4) and 'no interval' not in by_seed.note
  for missing in (*lines[8:], *_lines(TABLE, made_up_table.rows(), REMARK)[8:]):
    told = (missing.ours, missing.difference, missing.agrees, missing.ours_ratio, missing.low)
    assert (missing.verdict, *told) == ('not run', *(None,) * 5)


@pytest.mark.parametrize(
  ('column', 'ours', 'words'),
  [
    ('accuracy_end', 91.0, 'reproduced (within 1 point)'),
    ('accuracy_end', 89.0, 'reproduced (within 1 point)'),
    ('accuracy_end', 88.96, 'differs by just over 1 point (ours is lower)'),
    ('share_end', 95.0, 'reproduced (within 5 points)'),
    ('share_end', 95.01, 'differs by just over 5 points (ours is higher)'),
  ],
)
def test_verdicts_change_at_the_tolerance(column, ours, words):
  published = made_up_table.table({'r': ((90.0, 1.0),) * 4})
  rows = made_up_table.rows(published, percent=(ours,) * 4)
  found = {line.column: line.verdict for line in _lines(published, rows)}
  assert found[column] == words
  scaled = {line.column: line.verdict for line in _lines(published, rows, REMARK)}
  assert REMARK in scaled[column] and 'reproduced' not in scaled[column]
  assert scaled[column].startswith(words.removeprefix('reproduced (').split(' (')[0].rstrip(')'))


@pytest.mark.parametrize('remark', ['', REMARK])
def test_numbers_that_were_not_verified_decide_nothing(remark):
  published = made_up_table.table({'r': ((90.0, 1.0), (90.0, 1.0), (90.0, 1.0), (90.0, 1.0))})
  doubtful = dataclasses.replace(
    published, cells=tuple(dataclasses.replace(cell, is_verified=False) for cell in published.cells)
  )
  lines = _lines(doubtful, made_up_table.rows(doubtful, percent=(90.4, 96.5, 90.0, 80.0)), remark)
  words = [line.verdict.replace(f' ({REMARK})', '') for line in lines]
  assert words[:2] == ['within 1 point, not verified', 'differs by 6.5 points (ours is higher), not verified']
  assert all(line.agrees is None and line.is_undecided and line.difference is not None for line in lines)
  told = headline.headline('Somebody 1999', lines, [], remark)
  assert 'of 4 printed numbers 4 are undecided' in told
  assert remark or told.startswith('Whether Somebody 1999 reproduces is not answered')


@hypothesis.settings(max_examples=30)
@hypothesis.given(
  ours=st.floats(0, 100),
  printed=st.none() | st.floats(0, 100),
  scale=st.text(max_size=8),
  words=st.text(max_size=20),
)
def test_only_the_papers_scale_reproduces(ours, printed, scale, words):
  hypothesis.assume(scale != 'paper' and 'reproduced' not in words + scale)
  cell = None if printed is None else (printed, 1.0)
  published = made_up_table.table({'r': (cell,) * 4})
  rows = made_up_table.rows(published, percent=(ours,) * 4)
  for line in _lines(published, rows, Scale(scale, words).remark):
    assert 'reproduced' not in line.verdict and f'scaled down: {words or scale}' in line.verdict


@hypothesis.settings(max_examples=50)
@hypothesis.given(st.integers(0, 990))
def test_exactly_the_tolerance_is_within_it_whatever_binary_fractions_say(tenths):
  published = made_up_table.table({'r': [(tenths / 10, 1.0)] * 4})
  rows = made_up_table.rows(published, percent=[(tenths + 10) / 10] * 2 + [(tenths + 50) / 10] * 2)
  assert all(line.agrees for line in _lines(published, rows))


# --- The headline ---


def _headline(percents, verdicts, remark='', published=TABLE):
  rows = {
    row.name: made_up_table.reproduced(row, p) for row, p in zip(published.rows, percents, strict=False) if p
  }
  findings = [claim.check({}) for claim in made_up_table.claims(*verdicts)]
  return headline.headline(published.source, _lines(published, rows, remark), findings, remark)


_RIGHT = ((90.0, 98.0, 50.0, 80.0), (70.0, 70.0, 10.0, 20.0), (1.0, 2.0, 3.0, 4.0))
_WRONG = ((50.0,) * 2 + (0.0,) * 2, (50.0,) * 4, (50.0,) * 4)


@pytest.mark.parametrize(
  ('percents', 'verdicts', 'words'),
  [
    (_RIGHT, ('holds', 'holds'), 'T reproduces: of 2 claims 2 hold; of 11 printed numbers 11 agree within the tolerance.'),
    (_RIGHT[:2], ('holds', 'not run'), 'As far as it was run, T reproduces: of 2 claims 1 holds and 1 was not run; '
     'of 11 printed numbers 7 agree within the tolerance and 4 were not run.'),
    (_RIGHT, ('holds', 'fails', 'fails'), 'T reproduces in part: of 3 claims 1 holds and 2 fail; of 11 printed numbers 11 '
     'agree within the tolerance.'),
    (_WRONG, ('fails',), 'T does not reproduce: of 1 claim 1 fails; of 11 printed numbers 11 differ.'),
    ((), ('not run',), 'Whether T reproduces is not answered: of 1 claim 1 was not run; of 11 printed numbers 11 were not run.'),
  ],
)  # fmt: skip
def test_the_headline_follows_from_the_counts(percents, verdicts, words):
  assert _headline(percents, verdicts) == words.replace('T ', 'Somebody 1999, table 9 ', 1)
  scaled = _headline(percents, ('holds', 'fails'), REMARK)
  assert REMARK in scaled and 'cannot reproduce' in scaled and 'reproduces' not in scaled
  assert 'of 2 claims 1 holds and 1 fails' in scaled
  # A figure prints no numbers.
  one = ((50.0,) * 4,)
  assert 'only the curves' in _headline(one, (), published=FIGURE)
  assert (
    _headline(one, ('holds',), published=FIGURE) == 'Somebody 1999, figure 9 reproduces: of 1 claim 1 holds.'
  )
  assert REMARK in _headline(one, (), REMARK, FIGURE)
