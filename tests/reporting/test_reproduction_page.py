"""The page of a reproduction: hand-made rows beside hand-made print, and what it may never say."""

import csv
import dataclasses
import html.parser
import json
import re
import subprocess
import sys
import xml.etree.ElementTree

import hypothesis
import pytest
import scipy.stats
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tff_cluster.errors import EnvironmentFault
from tff_cluster.papers import briggs2020
from tff_cluster.papers.tables import COLUMNS, Cell, Published, Row
from tff_cluster.reporting import intervals, reproduction, table_scorecard
from tff_cluster.reporting.claims import Finding
from tff_cluster.reporting.figures import reproduction as figures
from tff_cluster.reporting.fl_hc.claims import CLAIMS
from tff_cluster.reporting.table_claims import Reproduced, TableClaim

_WORDS = '20 clients, 15 rounds'
_REMARK = f'scaled down: {_WORDS}'
_VOID = {'br', 'hr', 'img', 'meta', 'col'}
_HOSTILE = '<script>alert(1)</script>&"\''


def _row(name, *cells):
  return Row(name, {'cohort_fraction': 0.2}, {'method': 'hierarchical', 'distance_threshold': '3.0'}, cells)


_TABLE = Published(
    'paper/table9', 'A made-up table', 'Somebody 1999, table 9', 'none',
    (
        _row('first', Cell(90.0, 1.5), Cell(98.0, 1.0), Cell(50.0, None), Cell(80.0, 2.0)),
        _row('dashes', None, Cell(70.0, 1.0), Cell(10.0, 1.1), Cell(20.0, 1.2)),
        _row('missing', Cell(1.0, 1.0), Cell(2.0, 1.0), Cell(3.0, 1.0), Cell(4.0, 1.0)),
    ),
    'One number is odd in print.',
)  # fmt: skip
_FIGURE = dataclasses.replace(
  _TABLE, name='paper/figure9', source='Somebody 1999, figure 9', rows=(_row('drawn'),)
)


def _reproduced(
  row, percent=(90.4, 96.5, 50.0, 80.0), baseline=(45.2, 96.5, 0.0, 40.0), seeds=(1,), **changes
):
  fields = {
      'row': row, 'percent': dict(zip(COLUMNS, percent, strict=True)),
      'baseline': dict(zip(COLUMNS, baseline, strict=True)), 'seeds': seeds, 'num_clusters': (4,) * len(seeds),
      'threshold': (3.25,) * len(seeds), 'rounds_after': 3, 'rounds_end': 5,
      'accuracy_curve': {3: 90.0, 4: 95.0, 5: 96.5}, 'baseline_curve': {1: 20.0, 2: 60.0, 3: 70.0, 4: 80.0, 5: 90.0},
      'share_curve': {3: 10.0, 4: 60.0, 5: 80.0}, 'baseline_share_curve': {1: 0.0, 2: 0.0, 3: 5.0, 4: 30.0, 5: 40.0},
      'recovery': {'swap': (1.0,) * len(seeds)},
  }  # fmt: skip
  return Reproduced(**(fields | changes))


def _rows(published=_TABLE, **changes):
  return {row.name: _reproduced(row, **changes) for row in published.rows if row.name != 'missing'}


def _findings(*verdicts):
  claim = TableClaim('It is so', 'section 3', '1.2x to 2.0x', None, lambda rows: Finding('holds', ''))
  return [(claim, Finding(verdict, '1.5x', 'seen in 2 rows')) for verdict in verdicts]


def _write(folder, published=_TABLE, rows=None, findings=(), scale='paper', words='', **more):
  facts = {'command': 'python -m phases.reproduce', 'seeds': (1, 2), 'client_rounds_asked': 12345}
  rows = _rows(published) if rows is None else rows
  return reproduction.write_reproduction(published, rows, findings, scale, words, facts, folder, **more)


class _Page(html.parser.HTMLParser):
  """Collects the tags and the text of a page, and what is not closed."""

  def __init__(self, path):
    super().__init__(convert_charrefs=True)
    self.stack, self.tags, self.text, self.sources, self.cells, self.lines = [], [], '', [], [], []
    self.feed(path.read_text(encoding='utf-8'))
    self.close()
    assert self.stack == []

  def handle_starttag(self, tag, attrs):
    self.tags.append(tag)
    self.sources += [value for key, value in attrs if key in ('src', 'href') and not value.startswith('#')]
    if tag not in _VOID:
      self.stack.append(tag)
    if tag == 'tr':
      self.lines.append(0)
    if tag in ('td', 'th'):
      self.lines[-1] += 1
    if tag == 'td':
      self.cells.append('')

  def handle_endtag(self, tag):
    assert self.stack.pop() == tag

  def handle_data(self, data):
    if 'style' in self.stack:
      return
    self.text += data
    if 'td' in self.stack:
      self.cells[-1] += f'{data}|'


# --- The scorecard ---


def test_a_line_for_each_cell_with_numbers_by_hand():
  lines = table_scorecard.build_scorecard(_TABLE, _rows(), 'paper', '')
  assert [(line.row, line.column) for line in lines] == [
    (row.name, c) for row in _TABLE.rows for c in COLUMNS
  ]
  first = lines[0]
  assert (first.table, first.published, first.published_ratio, first.ours) == (
    'paper/table9',
    90.0,
    1.5,
    90.4,
  )
  assert first.ours_ratio == pytest.approx(2.0) and first.difference == pytest.approx(0.4)
  assert (first.low, first.high, first.verdict) == (None, None, 'reproduced (within 1 point)')
  assert first.note == 'one seed, so no interval; Somebody 1999, table 9'
  assert lines[1].verdict == 'differs by 1.5 points (ours is lower)' and lines[1].agrees is False


def test_without_fedavg_clients_at_the_target_there_is_no_ratio():
  line = table_scorecard.build_scorecard(_TABLE, _rows(), 'paper', '')[2]
  assert line.ours_ratio is None and '0%, so no ratio' in line.note and line.published_ratio is None


def test_share_lines_say_their_tolerance_and_why():
  lines = table_scorecard.build_scorecard(_TABLE, _rows(), 'paper', '')
  for line in lines[:4]:
    assert (
      'tolerance 5 points' in line.note and 'one client is 1 point' in line.note
    ) is line.column.startswith('share')


@pytest.mark.parametrize('scale', ['paper', 'small'])
def test_missing_rows_are_not_run(scale):
  lines = table_scorecard.build_scorecard(_TABLE, _rows(), scale, _WORDS)[8:]
  assert [line.published for line in lines] == [1.0, 2.0, 3.0, 4.0]
  assert {line.verdict for line in lines} == {'not run'}
  assert all(
    line.ours is line.difference is line.agrees is line.ours_ratio is line.low is None for line in lines
  )


def test_a_dash_in_print_leaves_ours_and_nothing_to_compare():
  line = table_scorecard.build_scorecard(_TABLE, _rows(), 'paper', '')[4]
  assert (line.row, line.published, line.published_ratio, line.ours) == ('dashes', None, None, 90.4)
  assert (line.verdict, line.difference, line.agrees) == ('nothing to compare', None, None)
  assert 'prints no number' in line.note


@pytest.mark.parametrize(
  ('column', 'ours', 'words'),
  [
    ('accuracy_end', 91.0, 'reproduced (within 1 point)'),
    ('accuracy_end', 89.0, 'reproduced (within 1 point)'),
    ('accuracy_end', 91.001, 'differs by just over 1 point (ours is higher)'),
    ('accuracy_end', 88.96, 'differs by just over 1 point (ours is lower)'),
    ('accuracy_end', 86.8, 'differs by 3.2 points (ours is lower)'),
    ('share_end', 95.0, 'reproduced (within 5 points)'),
    ('share_end', 85.0, 'reproduced (within 5 points)'),
    ('share_end', 95.01, 'differs by just over 5 points (ours is higher)'),
    ('share_end', 84.9, 'differs by 5.1 points (ours is lower)'),
  ],
)
def test_verdicts_change_at_the_tolerance(column, ours, words):
  published = dataclasses.replace(_TABLE, rows=(_row('r', *(Cell(90.0, 1.0),) * 4),))
  rows = _rows(published, percent=(ours,) * 4)
  found = {
    line.column: line.verdict for line in table_scorecard.build_scorecard(published, rows, 'paper', '')
  }
  assert found[column] == words
  scaled = {
    line.column: line.verdict for line in table_scorecard.build_scorecard(published, rows, 'small', _WORDS)
  }
  assert _REMARK in scaled[column] and 'reproduced' not in scaled[column]
  assert scaled[column].startswith(words.removeprefix('reproduced (').split(' (')[0].rstrip(')'))


@hypothesis.given(
  ours=st.floats(0, 100),
  printed=st.none() | st.floats(0, 100),
  scale=st.text(max_size=8),
  words=st.text(max_size=20),
)
def test_only_the_papers_scale_reproduces(ours, printed, scale, words):
  hypothesis.assume(scale != 'paper' and 'reproduced' not in words + scale)
  cell = None if printed is None else Cell(printed, 1.0)
  published = dataclasses.replace(_TABLE, rows=(_row('r', *(cell,) * 4),))
  for line in table_scorecard.build_scorecard(published, _rows(published, percent=(ours,) * 4), scale, words):
    assert 'reproduced' not in line.verdict and f'scaled down: {words or scale}' in line.verdict


@pytest.mark.parametrize('name', briggs2020.PUBLISHED)
def test_what_is_printed_reproduces_itself(name):
  published = briggs2020.PUBLISHED[name]
  rows = {}
  for row in published.rows:
    percent = [50.0 if cell is None else cell.percent for cell in row.cells or (None,) * 4]
    rows[row.name] = _reproduced(row, percent)
  lines = table_scorecard.build_scorecard(published, rows, 'paper', '')
  assert len(lines) == 4 * len(published.rows)
  printed = [cell for row in published.rows for cell in row.cells if cell is not None]
  assert [line.agrees for line in lines if line.published is not None] == [True] * len(printed)


@hypothesis.given(st.integers(0, 990))
def test_exactly_the_tolerance_is_within_it_whatever_binary_fractions_say(tenths):
  printed = (tenths / 10, tenths / 10, tenths / 10, tenths / 10)
  published = dataclasses.replace(_TABLE, rows=(_row('r', *(Cell(value, 1.0) for value in printed)),))
  rows = _rows(published, percent=[(tenths + 10) / 10] * 2 + [(tenths + 50) / 10] * 2)
  assert all(line.agrees for line in table_scorecard.build_scorecard(published, rows, 'paper', ''))


# --- Intervals over seeds ---


def test_interval_by_hand():
  # Mean 2, standard deviation 1, Student's t for two degrees of freedom 4.30265: half width 4.30265 / sqrt(3).
  found = intervals.student_interval([1.0, 2.0, 3.0])
  assert (found.mean, found.low, found.high) == pytest.approx((2.0, -0.484137, 4.484137), abs=1e-5)


@hypothesis.given(
  st.lists(st.floats(0, 100), min_size=2, max_size=9).filter(lambda v: max(v) - min(v) > 1e-3)
)
def test_interval_is_that_of_scipy(values):
  found = intervals.student_interval(values)
  low, high = scipy.stats.t.interval(
    0.95, len(values) - 1, loc=sum(values) / len(values), scale=scipy.stats.sem(values)
  )
  assert (found.low, found.high) == pytest.approx((low, high))


def test_one_seed_has_no_interval():
  assert intervals.student_interval([7.0]) == intervals.Interval(7.0, None, None)


def test_numbers_by_seed_give_intervals_and_must_have_the_mean(tmp_path):
  rows = _rows(seeds=(1, 2, 3))
  by_seed = {'first': {'accuracy_after': [89.4, 90.4, 91.4]}}
  lines = table_scorecard.build_scorecard(_TABLE, rows, 'paper', '', by_seed)
  assert (lines[0].low, lines[0].high) == pytest.approx((90.4 - 2.484137, 90.4 + 2.484137), abs=1e-5)
  assert 'no interval' not in lines[0].note and lines[1].low is None and 'no numbers by seed' in lines[1].note
  text = _Page(_write(tmp_path, rows=rows, by_seed=by_seed)).text
  assert '87.9 to 92.9' in text
  for wrong in ([89.4, 90.4], [89.4, 90.4, 91.5]):
    with pytest.raises(ValueError, match='first, accuracy_after'):
      table_scorecard.build_scorecard(_TABLE, rows, 'paper', '', {'first': {'accuracy_after': wrong}})


# --- The headline ---


def _headline(percents, verdicts, remark='', published=_TABLE):
  rows = {row.name: _reproduced(row, p) for row, p in zip(published.rows, percents, strict=False) if p}
  lines = table_scorecard.build_scorecard(published, rows, 'small' if remark else 'paper', _WORDS)
  return table_scorecard.headline(published, lines, [f for _, f in _findings(*verdicts)], remark)


_RIGHT = ((90.0, 98.0, 50.0, 80.0), (70.0, 70.0, 10.0, 20.0), (1.0, 2.0, 3.0, 4.0))
_WRONG = ((50.0,) * 2 + (0.0,) * 2, (50.0,) * 4, (50.0,) * 4)


@pytest.mark.parametrize(
  ('percents', 'verdicts', 'words'),
  [
    (
      _RIGHT,
      ('holds', 'holds'),
      'T reproduces: of 2 claims 2 hold; of 11 printed numbers 11 agree within the tolerance.',
    ),
    (
      _RIGHT[:2],
      ('holds', 'not run'),
      'As far as it was run, T reproduces: of 2 claims 1 holds and 1 was not run; '
      'of 11 printed numbers 7 agree within the tolerance and 4 were not run.',
    ),
    (
      _RIGHT,
      ('holds', 'fails', 'fails'),
      'T reproduces in part: of 3 claims 1 holds and 2 fail; of 11 printed numbers 11 agree within the tolerance.',
    ),
    (_WRONG, ('fails',), 'T does not reproduce: of 1 claim 1 fails; of 11 printed numbers 11 differ.'),
    (
      (),
      ('not run',),
      'Whether T reproduces is not answered: of 1 claim 1 was not run; of 11 printed numbers 11 were not run.',
    ),
  ],
)
def test_the_headline_follows_from_the_counts(percents, verdicts, words):
  assert _headline(percents, verdicts) == words.replace('T ', 'Somebody 1999, table 9 ', 1)


@pytest.mark.parametrize('percents', [_RIGHT, _WRONG, ()])
def test_a_scaled_down_headline_never_says_that_it_reproduces(percents):
  text = _headline(percents, ('holds', 'fails'), _REMARK)
  assert _REMARK in text and 'cannot reproduce' in text and 'reproduces' not in text
  assert 'of 2 claims 1 holds and 1 fails' in text


def test_headlines_of_figures():
  assert 'only the curves' in _headline(((50.0,) * 4,), (), published=_FIGURE)
  assert _headline(((50.0,) * 4,), ('holds',), published=_FIGURE) == (
    'Somebody 1999, figure 9 reproduces: of 1 claim 1 holds.'
  )
  assert _REMARK in _headline(((50.0,) * 4,), (), _REMARK, _FIGURE)


# --- Files ---


def test_the_page_shows_claims_first_and_each_cell_beside_the_papers(tmp_path):
  path = _write(tmp_path, findings=_findings('holds', 'fails', 'not run'))
  assert path == tmp_path / 'index.html'
  page = _Page(path)
  order = (
    'The answer',
    'The paper’s claims',
    'The paper’s numbers beside ours',
    'Clusters that were found',
    'Over rounds',
  )
  places = [page.text.rindex(heading) for heading in order]
  assert places == sorted(places)
  assert 'paper 90.0 (1.5x)|ours 90.4 (2.0x)|reproduced (within 1 point)|' in page.cells
  assert 'paper 50.0 (–)|ours 50.0 (–)|reproduced (within 5 points)|' in page.cells
  assert 'paper –|ours 90.4 (2.0x)|nothing to compare|' in page.cells
  assert 'paper 1.0 (1.0x)|ours –|not run|' in page.cells
  assert {'holds|', 'fails|', 'not run|', '3.25|', '1.00|', '2 of 5|', '12,345|'} <= set(page.cells)
  assert 'One number is odd in print.' in page.text and 'python -m phases.reproduce' in page.text
  assert 'prefers-color-scheme: dark' in path.read_text()


def test_the_page_needs_no_network_and_figures_lie_beside_it(tmp_path, rendered):
  page = _Page(_write(tmp_path))
  assert len(page.sources) == 2 and all(
    source.startswith('data:image/svg+xml;base64,') for source in page.sources
  )
  assert 'script' not in page.tags and 'link' not in page.tags
  for name in ('accuracy_over_rounds', 'share_over_rounds'):
    xml.etree.ElementTree.parse(tmp_path / 'figures' / f'{name}.svg')
    assert (tmp_path / 'figures' / f'{name}.png').read_bytes().startswith(b'\x89PNG')
  assert not [p for p in tmp_path.rglob('.*')]


def test_scorecards_as_csv_and_json_are_the_same_records(tmp_path):
  _write(tmp_path, findings=_findings('holds'))
  records = json.loads((tmp_path / 'scorecard.json').read_text())
  with (tmp_path / 'scorecard.csv').open(newline='') as stream:
    read = list(csv.DictReader(stream))
  assert len(records) == len(read) == 13
  assert [{k: '' if v is None else str(v) for k, v in record.items()} for record in records] == read
  claim = read[-1]
  assert (claim['row'], claim['column'], claim['verdict']) == ('claim', 'It is so', 'holds')
  assert (claim['published'], claim['ours'], claim['note']) == (
    '1.2x to 2.0x',
    '1.5x',
    'seen in 2 rows; section 3',
  )


@pytest.mark.parametrize('published', [_TABLE, _FIGURE], ids=['table', 'figure'])
def test_every_file_of_a_scaled_down_run_says_so(tmp_path, published, monkeypatch):
  drawn, draw = [], figures.curves_by_row
  monkeypatch.setattr(figures, 'curves_by_row', lambda *args: drawn.append(args[2]) or draw(*args))
  path = _write(tmp_path, published, findings=_findings('holds', 'fails'), scale='small', words=_WORDS)
  for name in ('index.html', 'scorecard.csv', 'scorecard.json'):
    text = (tmp_path / name).read_text()
    assert _REMARK in text and 'reproduced (' not in text
  page = path.read_text()
  assert '(scale small)</title>' in page and '(scale small)</h1>' in page
  with (tmp_path / 'scorecard.csv').open(newline='') as stream:
    for line in csv.DictReader(stream):
      assert line['scale'] == _REMARK and (line['verdict'] == 'not run' or _REMARK in line['verdict'])
  assert f'holds|{_REMARK}|' in _Page(path).cells
  assert drawn == [_REMARK] * 2
  assert 'the paper’s scale)' not in page


def test_the_papers_scale_is_named_too(tmp_path):
  path = _write(tmp_path)
  page = path.read_text()
  assert '(the paper’s scale)</title>' in page and 'scaled down' not in page
  assert 'the paper’s' in (tmp_path / 'scorecard.csv').read_text()


def test_only_what_is_reproduced_is_green(tmp_path):
  row = _row('r', Cell(90.0, 1.0), Cell(50.0, 1.0), None, Cell(80.0, 1.0))
  published = dataclasses.replace(_TABLE, rows=(row,))
  for scale, looks in (
    ('paper', ['good', 'warn', 'none', 'good']),
    ('small', ['none', 'warn', 'none', 'none']),
  ):
    page = _write(tmp_path, published, scale=scale, words=_WORDS).read_text()
    assert re.findall(r'<td><div class="(\w+)"', page) == looks
    assert ('Take care. </strong>Scaled down' in page) is (scale == 'small')


def test_both_curves_are_drawn_from_their_own_numbers(tmp_path, monkeypatch):
  drawn, draw = [], figures.curves_by_row
  monkeypatch.setattr(figures, 'curves_by_row', lambda *args: drawn.append(args) or draw(*args))
  rows = _rows()
  _write(tmp_path, rows=rows)
  (accuracies, accuracy, *_), (shares, share, *_) = drawn
  assert 'accuracy' in accuracy and 'clients at the target' in share
  assert [panel.name for panel in accuracies] == ['first', 'dashes'] and accuracies[0].clustered_after == 2
  assert (accuracies[1].ours, accuracies[1].baseline) == (
    rows['dashes'].accuracy_curve,
    rows['dashes'].baseline_curve,
  )
  assert (shares[0].ours, shares[0].baseline) == (
    rows['first'].share_curve,
    rows['first'].baseline_share_curve,
  )
  assert shares[0].clustered_after == 2


def test_a_figure_has_curves_and_claims_and_no_table_of_numbers(tmp_path):
  page = _Page(_write(tmp_path, _FIGURE, findings=_findings('holds')))
  assert page.tags.count('img') == 2 and 'holds|' in page.cells
  assert 'numbers beside ours' not in page.text and not any('paper –' in cell for cell in page.cells)


def test_claims_of_the_paper_are_checked_on_the_rows_that_were_run(tmp_path):
  published = briggs2020.PUBLISHED['fl_hc/figure3']
  rows = _rows(published, percent=(99.0, 99.0, 50.0, 60.0))
  findings = [(claim, claim.check(rows)) for claim in CLAIMS[published.name]]
  page = _Page(_write(tmp_path, published, rows, findings, 'small', _WORDS))
  assert findings and all(claim.words in page.text and claim.source in page.text for claim, _ in findings)
  assert published.note in page.text


def test_nothing_run_is_a_page_too(tmp_path):
  page = _Page(_write(tmp_path, rows={}, findings=_findings('not run')))
  assert 'is not answered' in page.text and 'img' not in page.tags and not (tmp_path / 'figures').exists()


def test_no_text_from_outside_becomes_markup(tmp_path):
  row = dataclasses.replace(
    _row(_HOSTILE, *(Cell(90.0, 1.0),) * 4), clustering={'method': 'm', 'linkage': _HOSTILE}
  )
  published = Published(*(_HOSTILE,) * 4, (row,), _HOSTILE)
  claim = TableClaim(_HOSTILE, _HOSTILE, _HOSTILE, None, None)
  rows = {_HOSTILE: _reproduced(row, recovery={_HOSTILE: (None,)})}
  facts = {'command': _HOSTILE, _HOSTILE: _HOSTILE, 'seeds': (_HOSTILE,)}
  findings = [(claim, Finding('holds', _HOSTILE, _HOSTILE))]
  for scale in ('paper', _HOSTILE):
    path = reproduction.write_reproduction(published, rows, findings, scale, _HOSTILE, facts, tmp_path)
    assert 'script' not in _Page(path).tags and '<script' not in path.read_text()
    assert _Page(path).text.count(_HOSTILE) >= 10


def test_equal_input_gives_equal_bytes(tmp_path, rendered):
  for name in ('one', 'two'):
    _write(tmp_path / name, findings=_findings('holds'))
  files = sorted(p.relative_to(tmp_path / 'one') for p in (tmp_path / 'one').rglob('*') if p.is_file())
  assert len(files) == 7
  for file in files:
    assert (tmp_path / 'one' / file).read_bytes() == (tmp_path / 'two' / file).read_bytes()


def test_tables_have_as_many_cells_as_columns(tmp_path):
  rows = _rows(recovery={'swap': (1.0,), 'writer': (0.5,)})
  page = _Page(_write(tmp_path, rows=rows, findings=_findings('holds', 'not run')))
  # Claims, the printed table, clusters with two planted groupings, facts.
  assert page.lines == [4] * 3 + [5] * 4 + [7] * 4 + [2] * 3


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
  (tmp_path / 'taken').write_text('')
  with pytest.raises(EnvironmentFault, match='taken'):
    _write(tmp_path / 'taken')


# --- Curves ---


def _panels(count, **changes):
  row = _reproduced(_TABLE.rows[0], **changes)
  return [
      figures.Panel(f'row {i}', row.accuracy_curve, row.baseline_curve, row.rounds_after - 1) for i in range(count)
  ]  # fmt: skip


def test_curves_are_the_given_numbers_and_the_line_stands_at_the_clustering():
  figure = figures.curves_by_row(_panels(1), 'accuracy, %')
  lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
  assert list(lines['clustering (FL+HC)'].get_xdata()) == [2, 2]
  assert list(lines['FedAvg without clusters'].get_xdata()) == [1, 2, 3, 4, 5]
  assert list(lines['FedAvg without clusters'].get_ydata()) == [20.0, 60.0, 70.0, 80.0, 90.0]
  # Up to the clustering both are one training: our curve leaves FedAvg's there.
  assert list(lines['FL+HC'].get_xdata()) == [2, 3, 4, 5]
  assert list(lines['FL+HC'].get_ydata()) == [60.0, 90.0, 95.0, 96.5]


def test_where_clusters_change_nothing_both_curves_are_seen():
  curve = {1: 20.0, 2: 60.0, 3: 90.0}
  figure = figures.curves_by_row([figures.Panel('one cluster', {3: 90.0}, curve, 2)], 'accuracy, %')
  lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
  dotted, solid = lines['FedAvg without clusters'], lines['FL+HC']
  assert dotted.get_zorder() > solid.get_zorder()
  assert dotted.is_dashed() and not solid.is_dashed()


def test_all_panels_have_the_same_axes():
  low = figures.Panel('low', {3: 5.0}, {1: 1.0, 2: 2.0}, 2)
  figure = figures.curves_by_row([*_panels(1), low], 'accuracy, %')
  assert len({axes.get_ylim() for axes in figure.axes}) == len({axes.get_xlim() for axes in figure.axes}) == 1
  assert figure.axes[1].get_ylim()[1] > 96.5


def test_a_curve_that_has_the_clustering_round_keeps_its_own_value():
  panel = figures.Panel('r', {2: 61.0, 3: 90.0}, {1: 20.0, 2: 60.0}, 2)
  assert figures.with_start(panel) == {2: 61.0, 3: 90.0}
  assert figures.with_start(dataclasses.replace(panel, ours={3: 90.0}, baseline={})) == {3: 90.0}


@pytest.mark.parametrize('remark', ['', f'{_REMARK}, {"many words " * 30}'], ids=['paper', 'scaled'])
@pytest.mark.parametrize('count', [1, 2, 5, 10, 16])
def test_each_row_has_a_panel_and_nothing_overlaps(count, remark):
  figure = figures.curves_by_row(_panels(count), 'accuracy, %', remark)
  FigureCanvasAgg(figure).draw()
  used = [axes for axes in figure.axes if axes.axison]
  assert [axes.get_title(loc='left') for axes in used] == [f'row {i}' for i in range(count)]
  boxes = [axes.get_tightbbox() for axes in used]
  assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
  assert figure.get_suptitle().startswith(_REMARK[:20]) if remark else figure.get_suptitle() == ''
  if remark:
    # A figure travels without its page: it says itself what was scaled down, within its borders.
    title = figure._suptitle.get_window_extent()
    assert not any(box.overlaps(title) for box in boxes) and title.x0 >= 0 and title.x1 <= figure.bbox.x1
  legend = figure.legends[0].get_window_extent()
  assert not any(box.overlaps(legend) for box in boxes)
  assert [text.get_text() for text in figure.legends[0].get_texts()] == [
    'clustering (FL+HC)',
    'FedAvg without clusters',
    'FL+HC',
  ]


def test_importing_the_page_imports_neither_tensorflow_nor_matplotlib():
  code = (
    'import sys, tff_cluster.reporting.reproduction\n'
    'print([m for m in sys.modules if m.split(".")[0] in ("tensorflow", "tensorflow_federated", "matplotlib")])'
  )
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert done.stdout.strip() == '[]'


def _choice(chosen, best_on_test):
  cuts = [(9.0, 1, 0.5, 0.61), (2.5, 4, 0.7, 0.93), (0.25, 7, 0.7, 0.95)]
  names = ('threshold', 'num_clusters', 'validation_accuracy', 'test_accuracy')
  candidates = [dict(zip(names, cut, strict=True)) for cut in cuts]
  return {'candidates': candidates, 'chosen': chosen, 'best_on_test': best_on_test, 'other_client_rounds': 3}


def test_thresholds_that_were_chosen_stand_beside_what_test_rows_would_have_chosen(tmp_path):
  rows = _rows()
  name = next(iter(rows))
  choices = tuple(_choice(1, 2) for _ in rows[name].seeds)
  rows = rows | {name: dataclasses.replace(rows[name], choice=choices)}
  page = reproduction.write_reproduction(_TABLE, rows, (), 'paper', '', {}, tmp_path).read_text()
  assert 'Thresholds that were tried' in page and '1, 4, 7' in page
  assert page.index('T 2.5: 4 clusters, 93.0%') < page.index('T 0.25: 7 clusters, 95.0%')
  plain = reproduction.write_reproduction(
    _TABLE, _rows(), (), 'paper', '', {}, tmp_path / 'given'
  ).read_text()
  assert 'Thresholds that were tried' not in plain
