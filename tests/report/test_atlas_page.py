"""The atlas as a file: it needs nothing but itself, and no id of a client can break out of its data."""

import base64
import hashlib
import json
import re

import pytest

from tests.made_up import atlas_runs, in_json
from tff_cluster.report.atlas import page
from tff_cluster.studies.comparison import page as comparison

_TITLE = 'digits </title><script>alert(1)</script>'


@pytest.fixture(scope='module')
def found():
  runs, arrays = atlas_runs.make(1, client_ids=atlas_runs.strange_ids(14))
  return atlas_runs.document(runs, arrays, ('the <b>groups</b> are wrong',))[0]


@pytest.fixture(scope='module')
def text(found):
  return page.page(found, _TITLE, '14 clients')


@pytest.fixture(scope='module')
def static(text):
  return re.sub('<script.*?</script>', '', text, flags=re.S)


def _scripts(text):
  return re.findall('<script([^>]*)>(.*?)</script>', text, flags=re.S)


def test_data_come_back_as_they_went_in(found, text):
  (attributes, data), (_, script) = _scripts(text)
  assert 'type="application/json"' in attributes and 'id="data"' in attributes
  assert json.loads(data) == json.loads(json.dumps(found))
  assert "'use strict'" in script


@pytest.mark.parametrize('strange', [*atlas_runs.STRANGE, '<!--<script>', '\udc80', '\x00'])
def test_no_text_can_end_the_data(strange):
  text = page.as_json({'clients': [strange]})
  assert json.loads(text) == {'clients': [strange]}
  assert not set('<>&') & set(text) and text.isascii()


def test_the_page_needs_nothing_but_itself(text, static):
  assert set(re.findall(r"""https?://[^\s"'<]+""", text)) == {'http://www.w3.org/2000/svg'}
  assert set(re.findall(r'(?:src|href)="([^"]*)"', static)) == {'index.html'}
  assert not re.search(r'url\(|@import|<link|<img|<iframe', static)
  # Scripts make no HTML of texts.
  forbidden = r'(inner|outer|insertAdjacent)HTML|document\.write|eval\(|new Function|fetch\(|XMLHttpRequest'
  assert not re.search(forbidden, _scripts(text)[1][1])


def test_only_the_own_style_and_script_are_allowed(text, static):
  policy = re.search('Content-Security-Policy" content="([^"]*)"', text)[1]
  assert policy.startswith('default-src &#39;none&#39;')
  style = re.search('<style>(.*?)</style>', text, flags=re.S)[1]
  for part in (style, _scripts(text)[1][1]):
    assert f'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}' in policy
  assert not re.search(' (style|on[a-z]+)="', static)


def test_title_answer_and_alarms_are_there_without_scripts(found, static):
  assert '<script' not in static and '<b>' not in static and _TITLE not in static
  assert '<noscript>' in static and static.count('href="index.html"') == 2
  assert 'the &lt;b&gt;groups&lt;/b&gt; are wrong' in static
  # Escaped or not, a headline of ours holds no character that HTML would change.
  assert found['answer']['headline'] in static


def test_the_comparison_writes_and_links_it(tmp_path):
  runs, arrays = atlas_runs.make(1, methods=('kmeans',))
  static = comparison.write(in_json.typed_runs(runs), {}, tmp_path, arrays).read_text()
  assert static.index('href="atlas.html"') < static.index('aria-label="Contents"')
  (_, data), _ = _scripts((tmp_path / page.NAME).read_text())
  assert list(json.loads(data)['runs'][0]['geometry']) == ['weights']
