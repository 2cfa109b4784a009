"""The page of a reproduction: claims and cells beside the paper's, its files, and what it may never say."""

import csv
import dataclasses
import json
import re
import xml.etree.ElementTree

import pytest

from tests.made_up import in_json
from tests.made_up import published_table as made_up_table
from tests.made_up.published_table import FIGURE, REMARK, SMALL, TABLE
from tests.made_up.scorecard_rows import changed
from tests.made_up.written_page import WrittenPage
from tff_cluster.base.cost import Cost
from tff_cluster.base.environment import ENGINE
from tff_cluster.experiment.measured import Choice, Cut
from tff_cluster.report import latex
from tff_cluster.scorecard.claims import Finding, RuledClaim
from tff_cluster.scorecard.published import PAPER, Scale
from tff_cluster.studies.reproduction import figures
from tff_cluster.studies.reproduction import page as page_lib

_HOSTILE = '<script>alert(1)</script>&"\''


def _write(folder, published=TABLE, rows=None, claims=(), scale=PAPER):
  facts = {'command': 'python -m phases.reproduce', 'seeds': '1, 2', 'client-rounds': '12,345 asked for'}
  rows = made_up_table.rows(published, seeds=(1, 2, 3)) if rows is None else rows
  published = dataclasses.replace(published, claims=(*published.claims, *claims))
  return page_lib.write_page(published, rows, scale, facts, folder)


def _records(folder):
  """Returns the scorecard, which is the same in both of its files."""
  with (folder / 'scorecard.csv').open(newline='') as stream:
    read = list(csv.DictReader(stream))
  records = json.loads((folder / 'scorecard.json').read_text())
  assert read == [{k: '' if v is None else str(v) for k, v in record.items()} for record in records]
  return read


def test_all_machines_are_named_and_which_rows_an_older_engine_trained():
  first, second = TABLE.rows[:2]

  def run(row, seed, machine, engine, day):
    told = {'machine': machine, 'cores': 4, 'engine': engine, 'started': f'2026-01-{day:02}T00:00:00+00:00'}
    return (row,), seed, in_json.typed({'config': {}, 'environment': told, 'digest': f'{seed}' * 64})

  runs = [
    run(first, 1, 'here', ENGINE, 9),
    run(second, 1, 'there', ENGINE - 1, 3),
    run(second, 2, 'here', ENGINE, 5),
  ]
  told = page_lib.about(runs)
  assert told['machine'] == 'here, 4 cores; there, 4 cores'
  assert told['begun'] == '2026-01-03T00:00:00+00:00 to 2026-01-09T00:00:00+00:00'
  (older,) = [words for name, words in told.items() if 'older engine' in name]
  assert older == f'engine {ENGINE - 1} (dashes, seed 1)'
  told = page_lib.about(runs[:1])
  assert (told['begun'], told['machine']) == ('2026-01-09T00:00:00+00:00', 'here, 4 cores')
  assert not any('older' in name for name in told)


def test_the_page_shows_claims_first_and_each_cell_beside_the_papers(tmp_path, rendered):
  """Its figures lie beside it, and equal input gives equal bytes."""
  claims = made_up_table.claims('holds', 'fails', 'not run')
  path = _write(tmp_path / 'one', claims=claims)
  assert path == tmp_path / 'one/index.html'
  page, text = WrittenPage(path), path.read_text()
  order = (
    'The answer', 'The paper’s claims', 'The paper’s numbers beside ours', 'Clusters that were found', 'Over rounds',
  )  # fmt: skip
  places = [page.text.rindex(heading) for heading in order]
  assert places == sorted(places)
  assert (
    'paper 90.0 (1.5x)|ours 90.4 (2.0x)|90.4 to 90.4|reproduced: +0.4 points; ratio: differs' in page.cells
  )
  assert 'paper 50.0 (–)|ours 50.0 (–)|50.0 to 50.0|reproduced: 0.0 points' in page.cells
  window = '96.5% is the mean of rounds 3 to 5'
  assert (
    f'paper 98.0 (1.0x)|ours 96.5|{window} (1.0x)|96.5 to 96.5|differs: −1.5 points; ratio: reproduced'
    in page.cells
  )
  assert 'paper –|ours 90.4 (2.0x)|90.4 to 90.4|nothing to compare' in page.cells
  assert 'paper 1.0 (1.0x)|ours –|not run' in page.cells
  assert {'holds', 'fails', 'not run', '2 of 5', '12,345 asked for'} <= set(page.cells)
  assert {', '.join(['3.25'] * 3), ', '.join(['1.00'] * 3)} <= set(page.cells)
  assert 'One number is odd in print.' in page.text and 'python -m phases.reproduce' in page.text
  assert 'prefers-color-scheme: dark' in text and 'Thresholds that were tried' not in text
  assert '(the paper’s scale)</title>' in text and 'scaled down' not in text
  records = _records(tmp_path / 'one')
  assert len(records) == 15 and {record['scale'] for record in records} == {'the paper’s'}
  fields = ('row', 'column', 'verdict', 'published', 'ours', 'note')
  assert [records[12][field] for field in fields] == [
    'claim', 'It is so', 'holds', '1.2x to 2.0x', '1.5x', 'seen in 2 rows; section 3',
  ]  # fmt: skip
  assert [source.partition(',')[0] for source in page.sources] == ['data:image/svg+xml;base64'] * 2
  for name in ('accuracy_over_rounds', 'share_over_rounds'):
    xml.etree.ElementTree.parse(tmp_path / f'one/figures/{name}.svg')
    assert (tmp_path / f'one/figures/{name}.png').read_bytes().startswith(b'\x89PNG')
  _write(tmp_path / 'two', claims=claims)
  written, again = (
    {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob('*') if p.is_file()}
    for name in ('one', 'two')
  )
  assert len(written) == 8 and written == again


def test_the_page_shows_intervals_chosen_thresholds_and_every_planted_grouping(tmp_path):
  rows = made_up_table.rows(seeds=(1, 2, 3), recovery={'swap': (1.0,) * 3, 'writer': (0.5,) * 3})
  rows['first'].columns['accuracy_after'] = (89.4, 90.4, 91.4)
  cuts = ((9.0, 1, 0.5, 0.61, 0.0), (2.5, 4, 0.7, 0.93, 0.0), (0.25, 7, 0.7, 0.95, 0.0))
  choice = Choice([Cut(*cut) for cut in cuts], chosen=1, best_on_test=2, cost=Cost(3))
  rows['first'] = changed(rows['first'], choice=(choice,) * 3)
  page = WrittenPage(_write(tmp_path, rows=rows, claims=made_up_table.claims('holds', 'not run')))
  assert '87.9 to 92.9' in page.text
  # What was chosen stands beside what test rows would have chosen.
  assert 'Thresholds that were tried' in page.text and '1, 4, 7' in page.text
  assert page.text.index('T 2.5: 4 clusters, 93.0%') < page.text.index('T 0.25: 7 clusters, 95.0%')
  assert 'best after one round' not in page.text
  late = dataclasses.replace(choice, chosen=2, rounds=5, best_after_one=0)
  both = WrittenPage(
    _write(tmp_path / 'late', rows={**rows, 'dashes': changed(rows['dashes'], choice=(late,) * 3)})
  )
  # A choice after one round has nothing in the column of those that are later.
  first, last = (
    ['1, 4, 7', rounds, '3', taken, 'T 0.25: 7 clusters, 95.0%', early]
    for rounds, taken, early in (
      ('1', 'T 2.5: 4 clusters, 93.0%', '–'), ('5', 'T 0.25: 7 clusters, 95.0%', 'T 9: 1 cluster, 61.0%')
    )
  )  # fmt: skip
  places = [place for place, cell in enumerate(both.cells) if cell == '1, 4, 7']
  assert [both.cells[place : place + 6] for place in places] == [first] * 3 + [last] * 3
  # Claims, the printed table, clusters with two planted groupings: as many cells as columns.
  assert page.lines[:11] == [4] * 3 + [5] * 4 + [7] * 4


@pytest.mark.parametrize('published', [TABLE, FIGURE], ids=['table', 'figure'])
def test_every_file_of_a_scaled_down_run_says_so(tmp_path, published, monkeypatch):
  calls, draw = [], figures.curves_by_row
  monkeypatch.setattr(figures, 'curves_by_row', lambda *args: calls.append(args) or draw(*args))
  rows = made_up_table.rows(published)
  path = _write(tmp_path, published, rows, claims=made_up_table.claims('holds', 'fails'), scale=SMALL)
  for name in ('index.html', 'scorecard.csv', 'scorecard.json'):
    text = (tmp_path / name).read_text()
    assert REMARK in text and 'verdict">reproduced' not in text and ',reproduced,' not in text
  in_latex = (tmp_path / 'scorecard.tex').read_text()
  assert in_latex.count(latex.escaped(REMARK)) >= 2 and '& reproduced &' not in in_latex
  page, written = path.read_text(), WrittenPage(path)
  assert '(scale small)</title>' in page and '(scale small)</h1>' in page
  assert 'the paper’s scale)' not in page
  for line in _records(tmp_path):
    assert line['scale'] == REMARK and (line['verdict'] == 'not run' or REMARK in line['verdict'])
  assert f'holds|{REMARK}' in written.cells and written.tags.count('img') == 2
  # A figure has curves and claims, and no table of numbers.
  assert ('numbers beside ours' in written.text) is (published is TABLE)
  assert any('paper –' in cell for cell in written.cells) is (published is TABLE)
  # Both pictures are drawn from their own numbers.
  for (panels, label, remark, *_), words, ours, baseline in zip(
    calls, ('accuracy', 'clients at the target'), ('accuracy_curve', 'share_curve'),
    ('baseline_curve', 'baseline_share_curve'), strict=True,
  ):  # fmt: skip
    assert words in label and remark == REMARK
    for panel, (name, row) in zip(panels, rows.items(), strict=True):
      assert (panel.name, panel.clustered_after) == (name, 2)
      assert (panel.ours, panel.baseline) == (getattr(row, ours), getattr(row, baseline))


def test_only_what_is_reproduced_is_green(tmp_path):
  published = made_up_table.table({'r': ((90.0, 1.0), (50.0, 1.0), None, (80.0, 1.0))})
  for scale, looks in (
    (PAPER, ['good', 'warn', 'none', 'good']),
    (SMALL, ['none', 'none', 'none', 'none']),  # Nothing is judged there.
  ):
    page = _write(tmp_path, published, scale=scale).read_text()
    assert re.findall(r'<td><div class="beside (\w+)"', page) == looks
    assert ('Take care. </strong>Scaled down' in page) is (scale is SMALL)


def test_nothing_run_is_a_page_too(tmp_path):
  page = WrittenPage(_write(tmp_path, rows={}, claims=made_up_table.claims('not run')))
  assert 'is not answered' in page.text and 'img' not in page.tags and not (tmp_path / 'figures').exists()


def test_no_text_from_outside_becomes_markup(tmp_path):
  row = dataclasses.replace(made_up_table.row(_HOSTILE), clustering={'method': 'm', 'linkage': _HOSTILE})
  claim = RuledClaim(_HOSTILE, _HOSTILE, _HOSTILE, (), lambda rows: Finding('holds', _HOSTILE, _HOSTILE))
  published = dataclasses.replace(
    made_up_table.table({_HOSTILE: ((90.0, 1.0),) * 4}), name=_HOSTILE, title=_HOSTILE, source=_HOSTILE, rows=(row,),
    note=_HOSTILE, claims=(claim,),
  )  # fmt: skip
  rows = {_HOSTILE: made_up_table.reproduced(row, recovery={_HOSTILE: (None,)})}
  facts = {'command': _HOSTILE, _HOSTILE: _HOSTILE, 'seeds': _HOSTILE}
  for scale in (PAPER, Scale(_HOSTILE, _HOSTILE)):
    path = page_lib.write_page(published, rows, scale, facts, tmp_path)
    assert path.read_text().count('<script') == 1  # That of the page itself.
    assert WrittenPage(path).text.count(_HOSTILE) >= 10
