"""Pages: any text comes back as text, what a template misses is an error, and what is drawn is what was given."""

import configparser
import fnmatch
import html.parser
import pathlib
import re

import hypothesis
import jinja2
import pytest
from hypothesis import strategies as st

from tests.made_up.drawn import drawn
from tff_cluster.report import pages
from tff_cluster.report.pages import Cell, Section, Table
from tff_cluster.report.pictures import Picture

ROOT = pathlib.Path(__file__).parents[2]
TEMPLATES = sorted(ROOT.glob('tff_cluster/**/templates/*'))
_LEGAL = st.text(st.characters(exclude_categories=['Cs', 'Cc']))


class _Reader(html.parser.HTMLParser):
  def __init__(self, text):
    super().__init__(convert_charrefs=True)
    self.tags, self.texts, self.values = [], [''], []
    self.feed(text)
    self.close()

  def handle_starttag(self, tag, attrs):
    self.tags.append(tag)
    self.texts.append('')
    self.values += [value for _, value in attrs]

  def handle_endtag(self, tag):
    self.texts.append('')

  def handle_data(self, data):
    self.texts[-1] += data


def page(text):
  """Returns a page that has a text in every place that a text can have."""
  table = Table((text,), [(text,), (Cell(text, (text,), look=text, note_look=text),)], caption=text)
  sections = [
    Section(text, 'report.html', 'only_figures', {'pictures': [Picture(text, '', text, text, b'<svg/>')]}),
    Section(text, 'report.html', 'evaluators', {'tables': [table]}),
  ]
  return pages.page(text, text, sections)


@hypothesis.given(_LEGAL)
def test_any_text_comes_back_as_text_and_nothing_else(text):
  plain, strange = _Reader(page('plain')), _Reader(page(f'x{text}'))
  assert strange.tags == plain.tags
  # Title, its heading, the headings and their links, the table's caption, head and cells.
  assert strange.texts.count(f'x{text}') == plain.texts.count('plain') == 12
  assert strange.values.count(f'x{text}') == plain.values.count('plain') == 3


def test_control_characters_and_lone_surrogates_are_replaced():
  written = page('a\x00b\ud800c\x1b\nd')
  assert written.encode() and 'a\ufffdb\ufffdc\ufffd\nd' in written
  assert not re.search('[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]', written)


@pytest.mark.parametrize(
  ('data', 'error'), [({}, jinja2.UndefinedError), ({'tables': [], 'more': 1}, TypeError)]
)
def test_what_a_template_misses_or_does_not_know_is_an_error(data, error):
  with pytest.raises(error):
    drawn(Section('', 'report.html', 'evaluators', data))


def test_a_section_without_content_says_so_and_numeric_columns_are_marked_in_head_and_body():
  empty = Section('Empty', 'report.html', 'only_figures', {'pictures': []})
  assert pages.page('t', 's', [empty, None, empty]).count('Nothing to show.') == 2
  table = Table(('name', 'value'), [('a', 1)], (1,), 'Numbers')
  text = drawn(Section('', 'report.html', 'evaluators', {'tables': [table]}))
  assert '<th class="n" scope="col">value</th>' in text and '<td>a</td><td class="n">1</td>' in text
  assert re.search(r'<table>\s*<caption>Numbers</caption>', text)


def test_only_texts_of_our_own_go_into_a_page_as_they_are():
  unescaped = {path.name: re.findall(r'\{\{[^}]*\|\s*safe', path.read_text()) for path in TEMPLATES}
  expected = {
    'atlas.html': ['{{ style|safe', '{{ json|safe', '{{ script|safe'],
    'page.html': ['{{ style|safe', '{{ script|safe'],
  }
  assert {name: found for name, found in unescaped.items() if found} == expected
  assert not any('autoescape' in path.read_text() for path in TEMPLATES)


def test_templates_are_package_data():
  config = configparser.ConfigParser()
  config.read(ROOT / 'setup.cfg')
  told = {package: patterns.split(', ') for package, patterns in config['options.package_data'].items()}
  for path in TEMPLATES:
    package = '.'.join(path.relative_to(ROOT).parent.parent.parts)
    assert any(fnmatch.fnmatch(f'templates/{path.name}', pattern) for pattern in told[package]), path
