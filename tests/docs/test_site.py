"""The site: pages that are made from the code are what the programs would write, and every link and picture is where it is looked for."""

import pathlib
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import tff_cluster
from docs.programs import (
  answer_picture,
  comparison_csv_page,
  flags_page,
  gallery,
  phases_picture,
  results_json_page,
)
from tests.test_readme import DOCS, KEPT, PAGES, README, ROOT, SITE
from tff_cluster.clustering import methods

RESULTS = tuple(sorted(DOCS.glob('results/*.md')))


@pytest.mark.parametrize('page', (README, DOCS / 'index.md'), ids=lambda page: page.name)
def test_a_front_page_takes_a_minute_and_leaves_results_to_the_pages_that_are_made_from_kept_files(page):
  text = page.read_text()
  assert len(text.splitlines()) <= 150 and 'results/demo.md' in text
  assert not re.findall(r'[\d.]+ ?%|[\d.]+ points', text)


def test_every_page_is_in_the_navigation_and_every_name_of_the_package_in_the_reference():
  navigation = re.findall(r'([\w/]+\.md)$', (ROOT / 'mkdocs.yml').read_text(), re.M)
  assert sorted(navigation) == sorted(
    [path.relative_to(DOCS).as_posix() for path in SITE] + ['results/index.md']
  )
  reference = (DOCS / 'reference/python.md').read_text()
  for name, module in tff_cluster._FOUND_IN.items():
    assert f'::: {module}.{name}\n' in reference, name


def anchors(page: pathlib.Path) -> set[str]:
  """Returns what a link to a place on the page can name."""
  titles = re.findall(r'^#+ (.*)$', page.read_text(), re.M)
  return {re.sub(r'[^\w -]', '', title.lower()).replace(' ', '-').strip('-') for title in titles}


@pytest.mark.parametrize(
  'page', (*PAGES, *RESULTS, ROOT / 'benchmarks/README.md'), ids=lambda page: page.stem
)
def test_every_link_leads_somewhere_and_none_out_of_the_site(page):
  for target, anchor in re.findall(r'\]\(([^)#:]*)#?([^)#:]*)\)', page.read_text()):
    path = (page.parent / target).resolve() if target else page
    assert path.exists(), target
    assert not anchor or anchor in anchors(path), f'{target}#{anchor}'
    assert page not in SITE or path.is_relative_to(DOCS), target


def test_every_picture_and_scorecard_is_on_a_page():
  pages = (*PAGES, *RESULTS, ROOT / 'benchmarks/README.md')
  shown = {
    (page.parent / target).resolve()
    for page in pages
    for target in re.findall(r'\]\(([^)#:]+)\)', page.read_text())
  }
  kept = {*KEPT.glob('*/*.svg'), *KEPT.glob('*/provenance.json')}
  drawn = {path for name in ('results', 'pictures', 'gallery') for path in (DOCS / name).glob('*.svg')}
  assert len(RESULTS) > 10 and sorted((kept | drawn) - shown) == []


@pytest.mark.parametrize(
  'program', [comparison_csv_page, flags_page, results_json_page], ids=lambda program: program.PAGE.stem
)
def test_the_reference_is_what_the_program_would_write(program):
  assert program.PAGE.read_text() == program.page()


def test_every_key_of_results_json_has_a_meaning():
  keys = [line.rsplit(' | ', 2) for line in results_json_page.page().splitlines() if line.startswith('| `')]
  assert len(keys) > 200 and [key for key, *_, meaning in keys if not meaning.strip(' |')] == []


def test_the_pictures_of_the_front_page_are_what_the_programs_would_draw():
  assert phases_picture.PICTURE.read_text() == phases_picture.draw()
  assert (DOCS / 'pictures/answer.svg').read_text() == answer_picture.draw(answer_picture.rows())


def test_the_gallery_has_every_method_and_is_what_the_program_would_write(tmp_path):
  (tmp_path / 'gallery').mkdir()
  *pictures, page = gallery.write(tmp_path)
  assert page.read_text() == (DOCS / 'gallery.md').read_text()
  assert {path.stem for path in pictures} == set(methods.METHODS)
  for path in pictures:
    drawn, kept = (ElementTree.fromstring(each.read_text()) for each in (path, DOCS / 'gallery' / path.name))
    assert [part.tag for part in drawn.iter()] == [part.tag for part in kept.iter()], path.stem


def test_methods_of_the_gallery_that_are_told_three_vectors_find_the_three_planted_groups():
  clients = gallery.planted()
  groups = clients.shares[:, clients.lone].argmax(axis=0)
  for name in ('kmeans', 'spectral', 'fedgroup', 'pacfl', 'planted'):
    found = gallery.run(methods.METHODS[name], clients).membership[:, clients.lone].argmax(axis=0)
    together = found[:, None] == found
    np.testing.assert_array_equal(together, groups[:, None] == groups, err_msg=name)


def test_the_search_asks_no_other_site():
  settings = (ROOT / 'mkdocs.yml').read_text()
  assert '://' not in settings and 'font: false' in settings
  assert 'polyfills: [iframe-worker.js]' in settings and (DOCS / 'iframe-worker.js').exists()
