"""Pages in a real browser: readable by axe-core in both schemes, on a phone and on paper; what their buttons copy is what we write."""

import base64
import csv
import io
import os
import pathlib
import re

import pytest

from tests.made_up import browser as browsers
from tests.made_up import comparison_runs, finished_run, rendering
from tests.made_up.comparison_runs import FEDAVG, constant, noisy
from tff_cluster.report import latex, pages
from tff_cluster.report.pages import Cell, Section, Table
from tff_cluster.report.report import write_report
from tff_cluster.storage.tables import csv_text
from tff_cluster.studies.comparison import page as comparison
from tff_cluster.studies.league import page as league

pytestmark = pytest.mark.skipif(
  browsers.find() is None, reason=f'needs one of {", ".join(browsers.NAMES)} on PATH'
)
# axe-core is no part of the lock: `npm pack axe-core`, unpacked, has it as package/axe.min.js.
AXE = os.environ.get('AXE_CORE', '')
SCREENS = {'wide': (1200, 900), 'phone': (400, 850)}
NAMES = ('report', 'comparison', 'league', 'atlas')
_METHODS = ('kmeans', 'dynamic_distance:cliques', 'bipartition', 'planted', 'ifca')
_OWN = {'local': -0.02, 'fine_tuning': 0.03, 'ditto': 0.04}
_RUN_AXE = """axe.run(document).then((found) => found.violations.map(
  (each) => `${each.id}: ${each.nodes.map((node) => node.html.slice(0, 120)).slice(0, 3).join(' | ')}`))"""
# What is wider than its box and cannot be scrolled to.
_SIDEWAYS = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
_BOTTOM = '(name) => document.querySelector(name).getBoundingClientRect().bottom'
_PAPER = (695, 1024, 'print')


@pytest.fixture(scope='module')
def driven(tmp_path_factory):
  with browsers.running(tmp_path_factory.mktemp('browser')) as found:
    yield found


@pytest.fixture(autouse=True)
def no_faults(driven):
  driven.faults.clear()
  yield
  assert driven.faults == []


@pytest.fixture(scope='module')
def written(tmp_path_factory):
  """Returns the address of each page, with pictures."""
  folder = tmp_path_factory.mktemp('pages')
  options = {'num_clients': 14, 'truth': 'mixture', 'personalized': _OWN}
  runs = [(seed, finished_run.make_run(seed=seed, methods=_METHODS, **options)[0]) for seed in (0, 1, 2)]
  settings = {
    name: comparison_runs.typed(
      comparison_runs.make({FEDAVG: constant(0.5), 'kmeans': noisy(level), 'over': constant(0.7)})
    )
    for name, level in (('swapped', 0.6), ('rotated', 0.5))
  }
  (folder / 'run').mkdir()
  finished_run.write_run(folder / 'run', methods=_METHODS[:2], **options)
  # Most pictures of a report are drawn for nothing here, and take minutes.
  found = {'report': write_report(folder / 'run')}
  with rendering.on():
    found |= {
      'comparison': comparison.write(comparison_runs.typed(runs), {}, folder / 'comparison'),
      'league': league.write(settings, {'command': 'python -m phases.compare'}, folder),
    }
  found['atlas'] = found['comparison'].with_name('atlas.html')
  return {name: path.as_uri() for name, path in found.items()}


@pytest.mark.skipif(
  not pathlib.Path(AXE).is_file(), reason='AXE_CORE does not name axe.min.js of the npm package axe-core'
)
@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('scheme', ['light', 'dark'])
@pytest.mark.parametrize('screen', SCREENS)
def test_axe_finds_nothing(driven, written, name, scheme, screen):
  with driven.screen(*SCREENS[screen], scheme=scheme):
    driven.open(written[name])
    # The policy of a page lets no foreign script in; this one comes by the console.
    driven.evaluate(pathlib.Path(AXE).read_text(encoding='utf-8') + '; 0')
    assert driven.evaluate(_RUN_AXE) == []


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('size', [*SCREENS.values(), _PAPER])
def test_no_page_is_wider_than_its_screen(driven, written, name, size):
  with driven.screen(*size):
    driven.open(written[name])
    assert driven.evaluate(_SIDEWAYS) <= 0


@pytest.mark.parametrize('name', NAMES[:3])
def test_the_first_screen_has_sentence_table_and_picture(driven, written, name):
  with driven.screen(*SCREENS['wide']):
    driven.open(written[name])
    for part in ('.lead', '.first table', '.first figure img'):
      assert 0 < driven.evaluate(f'({_BOTTOM})("{part}")') <= 900, part
    assert driven.evaluate("document.querySelectorAll('#s0 table, #s0 figure').length") == 2
    box = 'document.querySelector(".first .scroll")'
    assert driven.evaluate(f'{box}.scrollWidth <= {box}.clientWidth')


@pytest.mark.parametrize('name', NAMES[:3])
def test_paper_has_no_buttons_and_no_dark_picture(driven, written, name):
  with driven.screen(*_PAPER, scheme='dark'):
    driven.open(written[name])
    display, filtered, ground = driven.evaluate(
      """['.copy', '.first img', 'body'].map((name, k) => getComputedStyle(document.querySelector(name))[
        ['display', 'filter', 'backgroundColor'][k]])"""
    )
    assert (display, filtered, ground) == ('none', 'none', 'rgb(255, 255, 255)')
  printed = base64.b64decode(driven.call('Page.printToPDF', preferCSSPageSize=True)['data'])
  assert printed.startswith(b'%PDF') and len(re.findall(rb'/Type\s*/Page\b', printed)) >= 1


def test_a_table_that_does_not_fit_is_reached_by_keys(driven, written):
  with driven.screen(*SCREENS['phone']):
    driven.open(written['comparison'])
    driven.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))')
    driven.press('Tab')
    assert driven.evaluate('document.activeElement.className') == 'scroll'
    before = driven.evaluate('document.activeElement.scrollLeft')
    driven.press('ArrowRight')
    driven.evaluate('new Promise((done) => setTimeout(done, 300))')
    assert before == 0 and driven.evaluate('document.activeElement.scrollLeft') > 0
    driven.press('Tab')
    assert driven.evaluate('document.activeElement.textContent') == 'Copy as CSV'


_TABLE = Table(
  ('name', '', 'note & more'),
  [
    ('k_means #1', Cell('+1.5', ('1.0 to 2.0', None, '50% "so"')), '\\input{x} costs $5, ~50% more than a mean; <b>'),
    ('[x], a', Cell('−0.5', look='chip bad'), None),
    (Cell('* ', look='digest', element='code'), 1200, 'a\xa0b → “c” – d^2 ≥ × ± · | …'),
    ('=SUM(A1)', '–', "@'' line,\nbreak"),
    ('-2', 3.5, 'snow ☃ 雪 𝄞'),
  ],
  (1,),
  'At 99% & more {x}',
)  # fmt: skip


def _copied(driven, form):
  driven.evaluate('navigator.clipboard.writeText = async (text) => { window.copied = text; }')
  at = driven.evaluate("Array.from(document.querySelectorAll('.copy button'), (e) => e.textContent)").index(
    f'Copy as {form}'
  )
  driven.evaluate(f"document.querySelectorAll('.copy button')[{at}].focus()")
  driven.press('Enter')
  return driven.evaluate('new Promise((done) => setTimeout(() => done(window.copied), 50))')


@pytest.fixture
def of_table(driven, tmp_path):
  section = Section('The table', 'report.html', 'evaluators', {'tables': [_TABLE]})
  (tmp_path / 'page.html').write_text(pages.page('t', 's', [section]), encoding='utf-8')
  driven.open((tmp_path / 'page.html').as_uri())
  return driven


def test_a_table_is_copied_as_the_latex_that_we_write(of_table):
  assert _copied(of_table, 'LaTeX') == latex.text([_TABLE])
  assert of_table.evaluate("document.querySelector('[role=status]').textContent").startswith('Copied “At 99%')


def test_a_table_is_copied_as_csv_that_other_programs_read(of_table):
  text = _copied(of_table, 'CSV')
  rows = list(csv.reader(io.StringIO(text, newline='')))
  assert rows[:3] == [
    ['name', '', 'note & more'],
    ['k_means #1', '\'+1.5 (1.0 to 2.0; 50% "so")', '\\input{x} costs $5, ~50% more than a mean; <b>'],
    ['[x], a', '-0.5', ''],
  ]
  # No text is a formula for a spreadsheet, by the same rule as in the files that we write.
  assert text == csv_text(rows[0], [[field.removeprefix("'") for field in row] for row in rows[1:]])
  assert [row[0] for row in rows[4:]] == ["'=SUM(A1)", '-2'] and rows[4][2].startswith("'@")
