"""The scorecard of a table: hand-made rows beside hand-made print, verdicts, and what its headline may never say."""

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.made_up import in_json
from tests.made_up import published_table as made_up_table
from tests.made_up.published_table import FIGURE, REMARK, TABLE
from tests.made_up.scorecard_rows import make_ours
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.scorecard import cells, headline, units
from tff_cluster.scorecard.published import Scale
from tff_cluster.scorecard.rows import COLUMNS, Ours, Run


def _lines(published, rows, remark=''):
  return cells.lines(published.name, published.source, published.cells, rows, remark)


THREE = (1, 2, 3)


def test_a_line_for_each_cell_with_numbers_by_hand():
  lines = _lines(TABLE, made_up_table.rows())
  assert [(line.row, line.column) for line in lines] == [(row.name, c) for row in TABLE.rows for c in COLUMNS]
  first, lower, without, *_ = lines
  assert first.table == 'paper/table9'
  assert (first.published, first.published_ratio, first.ours, first.seeds) == (90.0, 1.5, 90.4, 1)
  assert first.ours_ratio == pytest.approx(2.0) and first.difference == pytest.approx(0.4)
  assert (first.low, first.high, first.verdict, first.ratio_verdict) == (None, None, 'one seed', 'one seed')
  assert first.note == 'margin 1 point; one seed, so no interval; Somebody 1999, table 9'
  assert (lower.verdict, lower.difference, lower.judged_on) == ('one seed', -1.5, 'the mean of rounds 3 to 5')
  # FedAvg brings no client to the target.
  assert without.ours_ratio is None and without.published_ratio is None and without.ratio_verdict == ''
  for line in lines[:4]:
    assert ('margin 5 points: with 100 clients one client is 1 point' in line.note) is line.column.startswith(
      'share'
    )
  dash = lines[4]
  assert (dash.row, dash.published, dash.published_ratio, dash.ours) == ('dashes', None, None, 90.4)
  assert (dash.verdict, dash.difference) == ('nothing to compare', None)
  assert 'prints no number' in dash.note
  assert [line.published for line in lines[8:]] == [1.0, 2.0, 3.0, 4.0]
  rows = made_up_table.rows(seeds=THREE)
  rows['first'].columns['accuracy_after'] = (89.4, 90.4, 91.4)
  by_seed = _lines(TABLE, rows)[0]
  assert (by_seed.low, by_seed.high) == pytest.approx((90.4 - 2.484137, 90.4 + 2.484137), abs=1e-5)
  assert by_seed.ours == pytest.approx(90.4) and 'no interval' not in by_seed.note
  assert by_seed.verdict == 'undecided'  # 90.4 +- 1.69 at 90%, where 89 to 91 agree.
  for missing in (*lines[8:], *_lines(TABLE, made_up_table.rows(), REMARK)[8:]):
    told = (missing.ours, missing.difference, missing.ours_ratio, missing.low, missing.judged)
    assert (missing.verdict, *told) == ('not run', *(None,) * 5)


def test_the_end_is_judged_on_the_window_and_the_printed_round_stands_beside():
  rows = made_up_table.rows(seeds=THREE)
  rows['first'].windows['accuracy_end'] = (98.2, 98.0, 98.1)
  line = _lines(TABLE, rows)[1]
  assert (line.published, line.ours, line.judged) == (98.0, 96.5, pytest.approx(98.1))
  assert (line.verdict, line.difference) == ('reproduced', pytest.approx(0.1))
  history = {
    'rounds': list(range(11, 31)),
    'test_accuracy': [0.5] * 10 + [0.8] * 9 + [0.9],
    'share_at_target': [0.0] * 20,
  }
  results = in_json.typed({'config': {}, 'baseline': {'history': {**history, 'rounds': list(range(1, 21))}}})
  ours = Ours(TABLE.rows[0], (Run(0, results, in_json.record(Clustering, {'history': history})),))
  assert ours.windows['accuracy_end'] == (pytest.approx(81.0),) and ours.columns['accuracy_end'] == (90.0,)
  assert ours.windows['accuracy_after'] == (50.0,) and ours.window_words == 'the mean of rounds 21 to 30'


def test_clusters_that_are_fedavg_gain_nothing_where_they_have_fewer_rounds_than_the_window():
  rising = {number: 0.5 + 0.02 * number for number in range(1, 16)}

  def curve(first, last):
    rounds = list(range(first, last + 1))
    return {
      'rounds': rounds,
      'test_accuracy': [rising[n] for n in rounds],
      'share_at_target': [rising[n] for n in rounds],
    }

  clusters = in_json.record(Clustering, {'history': curve(11, 15)})
  results = in_json.typed({'config': {}, 'baseline': {'history': curve(1, 15)}})
  ours = Ours(TABLE.rows[0], (Run(0, results, clusters),))
  # Rounds 11 to 15 have 72, 74, 76, 78 and 80 percent.
  assert ours.windows['accuracy_end'] == ours.baseline_windows['accuracy_end'] == (pytest.approx(76.0),)
  assert (
    ours.windows['share_end'] == ours.baseline_windows['share_end']
    and ours.window_words == 'the mean of rounds 11 to 15'
  )
  # FedAvg alone has its own last rounds: 62 to 80 percent in rounds 6 to 15.
  alone = Ours(TABLE.rows[0], (Run(0, results, None),))
  assert (
    alone.baseline_windows['accuracy_end'] == (pytest.approx(71.0),)
    and alone.window_words == 'the mean of rounds 6 to 15'
  )
  # Clusters that were made later are FedAvg, too: with the window of the table one that was made earlier is read at their rounds.
  earlier = in_json.record(Clustering, {'history': curve(6, 15)})
  assert Ours(TABLE.rows[0], (Run(0, results, earlier),)).windows['accuracy_end'] == (pytest.approx(71.0),)
  same = Ours(TABLE.rows[0], (Run(0, results, earlier),), window_rounds=5)
  assert same.windows == ours.windows | {'accuracy_after': (62.0,), 'share_after': (62.0,)}
  one = in_json.record(Clustering, {'history': curve(15, 15)})
  assert Ours(TABLE.rows[0], (Run(0, results, one),)).window_words == 'round 15'


def test_ratios_to_fedavg_are_judged_for_accuracies_alone():
  published = made_up_table.table({'r': ((90.0, 1.5), (90.0, 2.0), (50.0, 1.5), (80.0, 2.0))})
  rows = made_up_table.rows(
    published, percent=(90.0, 90.0, 50.0, 80.0), baseline=(45.0, 45.0, 25.0, 40.0), seeds=THREE
  )
  assert [line.ratio_verdict for line in _lines(published, rows)] == ['differs', 'reproduced', '', '']
  assert [line.ours_ratio for line in _lines(published, rows)] == [2.0] * 4
  # In any setting.
  elsewhere = [line.ratio_verdict for line in _lines(published, rows, REMARK)]
  assert elsewhere == [f'differs ({REMARK})', f'within the margin ({REMARK})', '', '']


@pytest.mark.parametrize(
  ('column', 'ours', 'words'),
  [
    ('accuracy_end', 91.0, 'reproduced'),
    ('accuracy_end', 89.0, 'reproduced'),
    ('accuracy_end', 88.96, 'differs'),
    ('share_end', 95.0, 'reproduced'),
    ('share_end', 95.01, 'differs'),
  ],
)
def test_verdicts_change_at_the_margin(column, ours, words):
  published = made_up_table.table({'r': ((90.0, 1.0),) * 4})
  rows = made_up_table.rows(published, percent=(ours,) * 4, seeds=THREE)
  found = {line.column: line.verdict for line in _lines(published, rows)}
  assert found[column] == words
  scaled = {line.column: line.verdict for line in _lines(published, rows, REMARK)}
  assert scaled[column] == f'not comparable ({REMARK})'


@pytest.mark.parametrize('remark', ['', REMARK])
def test_numbers_that_were_not_verified_decide_nothing(remark):
  published = made_up_table.table({'r': ((90.0, 1.0), (90.0, 1.0), (90.0, 1.0), (90.0, 1.0))})
  doubtful = dataclasses.replace(
    published, cells=tuple(dataclasses.replace(cell, is_verified=False) for cell in published.cells)
  )
  rows = made_up_table.rows(doubtful, percent=(90.4, 96.5, 90.0, 80.0), seeds=THREE)
  lines = _lines(doubtful, rows, remark)
  assert {line.verdict.replace(f' ({REMARK})', '') for line in lines} == {'not verified'}
  assert all(line.difference is not None for line in lines)
  told = headline.headline('Somebody 1999', lines, [], remark)
  assert 'of 4 printed numbers 4 are not verified' in told
  assert remark or told.startswith('Whether Somebody 1999 reproduces is not answered')


@hypothesis.settings(max_examples=30)
@hypothesis.given(
  ours=st.floats(0, 100),
  printed=st.none() | st.floats(0, 100),
  scale=st.text(max_size=8),
  words=st.text(max_size=20),
  seeds=st.integers(1, 4),
)
def test_only_the_papers_scale_reproduces(ours, printed, scale, words, seeds):
  hypothesis.assume(scale != 'paper' and 'reproduced' not in words + scale)
  cell = None if printed is None else (printed, 1.0)
  published = made_up_table.table({'r': (cell,) * 4})
  rows = made_up_table.rows(published, percent=(ours,) * 4, seeds=tuple(range(seeds)))
  for line in _lines(published, rows, Scale(scale, words).remark):
    assert 'reproduced' not in line.verdict and f'scaled down: {words or scale}' in line.verdict


@hypothesis.settings(max_examples=50)
@hypothesis.given(st.integers(0, 990))
def test_exactly_the_margin_is_within_it_whatever_binary_fractions_say(tenths):
  published = made_up_table.table({'r': [(tenths / 10, 1.0)] * 4})
  percent = [(tenths + 10) / 10] * 2 + [(tenths + 50) / 10] * 2
  rows = made_up_table.rows(published, percent=percent, seeds=THREE)
  assert {line.verdict for line in _lines(published, rows)} == {'reproduced'}


def test_the_interval_of_rounds_is_the_one_that_is_judged():
  """Logarithms of 62, 62 and 85 have mean 4.232 and standard error 0.1052; Student's 97.5% quantile with two degrees of freedom is 4.303."""
  cell = cells.Cell('r', 'to_99', 'rounds', units.ROUNDS, lambda ours: (62, 62, 85), 34.0)
  line = cells.line(
    't', 'page', cell, make_ours(made_up_table.row('r'), rounds_end=100, seeds=THREE, departures=[])
  )
  assert line.verdict == 'differs' and line.ours == pytest.approx(209 / 3)
  assert line.judged == pytest.approx((62 * 62 * 85) ** (1 / 3))
  assert line.judged_on == 'the geometric mean over seeds'
  alone = cells.line(
    't',
    'page',
    dataclasses.replace(cell, read=lambda ours: (62,)),
    make_ours(made_up_table.row('r'), seeds=(1,), departures=[]),
  )
  assert alone.judged_on == '' and alone.judged == pytest.approx(alone.ours) == 62
  assert line.low is not None and line.low > 34 * 1.25
  assert (line.low, line.high) == (pytest.approx(43.8, abs=0.1), pytest.approx(108.3, abs=0.1))


@pytest.mark.parametrize(
  ('rounds', 'expected'),
  [
    ((98.0, 99.0, None), 'differs'),
    # By its last round alone the third seed is so far from the others that nothing is sure.
    ((50.0, 55.0, None), 'undecided'),
    ((None, None, None), 'differs'),
  ],
)
def test_a_target_that_was_not_reached_counts_as_its_last_round_at_least(rounds, expected):
  row = made_up_table.row('r')
  cell = cells.Cell('r', 'to_99', 'rounds', units.ROUNDS, lambda ours: rounds, 34.0)
  found = make_ours(row, rounds_end=100, seeds=THREE, departures=[])
  (line,) = cells.lines('t', 'source', [cell], {'r': found})
  assert (line.verdict, line.ours) == (expected, None)


def _trained(rows, names):
  """Rows by name whose runs stand on trainings of these names."""
  for key, name in names.items():
    checkpoints = [{'artifact': f'fedavg-{name * 24}', 'start_round': 0, 'rounds': [5]}]
    results = in_json.typed({'config': {}, 'artifacts': {'clusterings': {'one': checkpoints}}})
    clustering = in_json.record(Clustering, {'label': 'one'})
    made = Ours(rows[key].row, tuple(Run(seed, results, clustering) for seed in THREE))
    made.__dict__.update({k: v for k, v in rows[key].__dict__.items() if k not in ('row', 'runs')})
    rows[key] = made
  return rows


def test_rows_of_one_training_are_named_and_count_once_and_only_where_all_agree():
  published = made_up_table.table({name: ((90.0, 1.0),) * 4 for name in 'abc'} | {'d': ((95.0, 1.0),) * 4})
  rows = made_up_table.rows(published, percent=(90.0,) * 4, baseline=(90.0,) * 4, seeds=THREE)
  lines = _lines(published, _trained(rows, {'a': '1', 'b': '1', 'c': '2', 'd': '2'}))
  assert lines[0].training == lines[4].training != lines[8].training != ''
  told = headline.headline('T', lines, [], '')
  assert told.startswith(
    'T reproduces in part: of 24 printed numbers, of 12 distinct trainings and columns (each counted once), '
  )
  # Rows c and d: 90 against printed 90 and 95, which is within 5 points for shares alone. FedAvg has the same, and ratios of accuracies are 1.
  assert told.endswith('10 are reproduced and 2 differ.')
  notes = [record['note'] for record in headline.records(lines, '')]
  assert notes[0].startswith('one training with b; ') and notes[8].startswith('one training with d; ')


# --- The headline ---


def _headline(percents, verdicts, remark='', published=TABLE, too_high=1.0):
  """The headline where ratios to FedAvg are the printed ones, times a factor."""
  ratios = {(cell.row, cell.column): cell.ratio or 1.0 for cell in published.cells}
  rows = {}
  for row, percent in zip(published.rows, percents, strict=False):
    fedavg = [
      value / ratios.get((row.name, column), 1.0) / too_high
      for column, value in zip(COLUMNS, percent, strict=True)
    ]
    rows[row.name] = made_up_table.reproduced(row, percent, fedavg, seeds=THREE)
  findings = [claim.check({}) for claim in made_up_table.claims(*verdicts)]
  return headline.headline(published.source, _lines(published, rows, remark), findings, remark)


_RIGHT = ((90.0, 98.0, 50.0, 80.0), (70.0, 70.0, 10.0, 20.0), (1.0, 2.0, 3.0, 4.0))
_WRONG = ((50.0,) * 2 + (0.0,) * 2, (50.0,) * 4, (50.0,) * 4)


@pytest.mark.parametrize(
  ('percents', 'verdicts', 'words'),
  [
    (_RIGHT, ('holds', 'holds'), 'T reproduces: of 2 claims 2 hold; of 16 printed numbers 16 are reproduced.'),
    (_RIGHT[:2], ('holds', 'not run'), 'As far as it is decided, T reproduces: of 2 claims 1 holds and 1 was not run; '
     'of 14 printed numbers 10 are reproduced and 4 were not run.'),
    (_RIGHT, ('holds', 'fails', 'fails'), 'T reproduces in part: of 3 claims 1 holds and 2 fail; of 16 printed numbers 16 '
     'are reproduced.'),
    (_WRONG, ('fails',), 'T reproduces in part: of 1 claim 1 fails; of 16 printed numbers 5 are reproduced and 11 differ.'),
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


def test_printed_ratios_that_differ_reproduce_no_table():
  # Of five printed ratios of accuracies, beside eleven numbers that are all as printed.
  assert _headline(_RIGHT, (), too_high=2.0).endswith(
    'reproduces in part: of 16 printed numbers 11 are reproduced and 5 differ.'
  )
  assert _headline(_WRONG, (), too_high=2.0).endswith('does not reproduce: of 16 printed numbers 16 differ.')
