"""The whole report: valid, self-contained, safe against its own data, and all or nothing."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import numpy as np
import pytest

from tests.made_up import finished_run as made_up
from tests.made_up import rendering
from tests.made_up.written_page import WrittenPage
from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.papers.rohith2020 import tables
from tff_cluster.report import files, report
from tff_cluster.report.figures import base
from tff_cluster.report.finished_run import read_run
from tff_cluster.report.report import write_report
from tff_cluster.storage import files as files_lib


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  folder = tmp_path_factory.mktemp('run')
  results = made_up.write_run(folder, num_clients=12, cross_validation=True, truth='overlapping', local=0.01)
  drawn = []
  with rendering.on():
    path = write_report(folder, lambda: drawn.append(1))
  return folder, results, path, drawn


def test_the_page_is_valid_and_tells_what_the_run_was(run):
  folder, results, path, _ = run
  assert path == folder / 'report.html' and path.stat().st_size < 6e6
  page, text = path.read_text(encoding='utf-8'), WrittenPage(path).text
  assert page.startswith('<!DOCTYPE html>')
  assert 'prefers-color-scheme: dark' in page and '@media print' in page
  # The first thing after the title is the answer.
  assert text.index('The answer') < text.index('Contents')
  assert results['digest'] in text and '--config_file=' in text
  assert '1 h 02 min' in text and '1 min 01 s' in text  # 3725 s and 61.2 s of the timing.
  for clustering in results['clusterings']:
    share = clustering['evaluations']['blended']['clients']['mean_client_accuracy']
    assert f'{100 * share:.1f}%' in text
    assert f'Clusters of {clustering["label"]}' in text
  for name in ('Table 1', 'Table 2', 'Table 3', 'Omega', 'ARI', 'NMI', '5-fold cross-validation', '11.9'):
    assert name in text
  dear = [c['equal_cost']['round'] for c in results['clusterings'] if c['equal_cost'] is not None]
  assert dear and all(f'own, after round {number}: FedAvg’s client-rounds' in text for number in dear)
  assert 'every client alone' in text and 'A pixel stands for' not in text


def test_figures_and_scorecard_lie_beside_it_and_nothing_else(run):
  folder, _, path, drawn = run
  names = {p.stem for p in (folder / 'figures').glob('*.svg')}
  of_each = ('client_accuracies', 'membership', 'distances', 'embedding', 'label_histogram')
  assert names == {
    'accuracy_over_rounds', 'client_differences', 'candidates', 'label_histogram_clients', 'dendrogram_hierarchical',
    *(f'{kind}_{label}' for kind in of_each for label in ('kmeans', 'dynamic_distance', 'hierarchical')),
  }  # fmt: skip
  assert names == {p.stem for p in (folder / 'figures').glob('*.png')} and len(drawn) == len(names)
  assert path.read_text().count('data:image/svg+xml;base64,') == len(names)
  for name in names:
    xml.etree.ElementTree.parse(folder / 'figures' / f'{name}.svg')
    assert (folder / 'figures' / f'{name}.png').read_bytes().startswith(b'\x89PNG')
  rows = json.loads((folder / 'scorecard.json').read_text())
  columns = {'table', 'row', 'column', 'unit', 'published', 'ours', 'difference', 'verdict', 'scale'}
  assert columns < set(rows[0])
  assert len((folder / 'scorecard.csv').read_text().splitlines()) == len(rows) + 1
  assert not [p for p in folder.rglob('.*')]


def test_hostile_names_stay_text_and_those_of_several_words_are_quoted(tmp_path):
  ids = [
    '<script>alert(1)</script>', '"><img src=x>', '$\\frac{1', 'snow ☃ 雪', 'a\x00b', 'x' * 300, '&amp;', "'", 'client 2', 'a, b', 'c',
  ]  # fmt: skip
  made_up.write_run(tmp_path, num_clients=11, groups=1, client_ids=ids, methods=('kmeans',), truth='none')
  text = WrittenPage(write_report(tmp_path)).text
  assert f'“{ids[0]}”, “{ids[1]}”, ' in text and "“&amp;”, “'”, “client 2”, “a, b”, c" in text


def test_equal_runs_give_equal_reports(tmp_path, monkeypatch):
  # That equal figures give equal bytes is a test of its own. What drawing took is no part of a run.
  monkeypatch.setattr(report.time, 'monotonic', lambda: 0.0)
  pages = []
  for name in ('one', 'two'):
    made_up.write_run(tmp_path / name, methods=('kmeans',))
    page = write_report(tmp_path / name).read_text(encoding='utf-8')
    pages.append(page.replace(str(tmp_path / name), 'RUN'))
  assert pages[0] == pages[1]
  assert 'every client alone' not in page and 'FedAvg’s client-rounds' not in page
  assert 'Splits of' not in page


@pytest.mark.parametrize('clients', [1, 2])
def test_the_smallest_runs_have_a_report_even_without_arrays(tmp_path, clients):
  made_up.write_run(tmp_path, num_clients=clients, groups=1, methods=('kmeans',), truth='none', rounds=(1, 1))
  (tmp_path / 'arrays.npz').unlink()
  text = WrittenPage(write_report(tmp_path)).text
  assert f'Of {clients} client' in text
  for noun in ('clients', 'clusters', 'rounds', 'rows'):
    assert not re.search(rf'(?<![0-9.,+−–]) 1 {noun}\b', text.replace('1 + 1 rounds', '')), noun
  assert not (tmp_path / 'figures' / 'distances_kmeans.svg').exists()


def test_a_run_without_clusterings_has_a_report(tmp_path):
  made_up.write_run(tmp_path, methods=())
  assert 'no clustering' in WrittenPage(write_report(tmp_path)).text


@pytest.mark.parametrize(
    ('name', 'content', 'words'),
    [
        ('results.json', None, 'no such file'), ('results.json', b'{"schema": 1, "config"', 'is damaged'),
        ('results.json', b'\xff\xfe', 'is damaged'), ('results.json', b'[]', 'schema'),
        ('results.json', b'{"schema": 99}', 'schema 99, expected 5'), ('results.json', b'{"schema": 4}', 'schema 4, expected 5'),
        ('results.json', b'{"schema": 5, "digest": ""}', "has no 'config'"), ('arrays.npz', b'', 'arrays.npz'),
        ('arrays.npz', b'PK\x03\x04 cut off', 'arrays.npz'), ('arrays.npz', b'no archive at all', 'arrays.npz'),
    ],
)  # fmt: skip
def test_damaged_results_and_arrays_are_one_line(tmp_path, name, content, words):
  made_up.write_run(tmp_path, num_clients=4, groups=2, methods=())
  (tmp_path / name).unlink()
  if content is not None:
    (tmp_path / name).write_bytes(content)
  with pytest.raises((InputError, EnvironmentFault), match=re.escape(words)) as caught:
    read_run(tmp_path)
  assert '\n' not in str(caught.value) and str(tmp_path) in str(caught.value)


def test_arrays_of_another_shape_or_with_nan_are_not_drawn(tmp_path):
  made_up.write_run(tmp_path, num_clients=4, groups=2, methods=('kmeans',))
  files_lib.save_arrays(
    tmp_path / 'arrays.npz',
    {'distances_weights': np.zeros((3, 3)), 'embedding_weights': np.full((4, 2), np.nan)},
  )
  found = read_run(tmp_path)
  assert found.array('distances_weights', 4, 4) is None and found.array('embedding_weights', 4, 2) is None
  assert found.array('distances_weights', 3, 3) is not None


def test_a_failed_write_keeps_the_old_file_and_names_the_new_one(tmp_path, monkeypatch):
  target = tmp_path / 'report.html'
  files.write_file(target, 'old')

  def full(handle):
    raise OSError(28, 'No space left on device')

  with monkeypatch.context() as patch:
    patch.setattr(os, 'fsync', full)
    with pytest.raises(EnvironmentFault, match=r'cannot write .*report\.html: No space left on device'):
      files.write_file(target, 'new')
  assert target.read_text() == 'old' and os.listdir(tmp_path) == ['report.html']
  with pytest.raises(EnvironmentFault, match='a file'):
    files.write_file(target / 'a file', b'')  # A file where a folder should be.


def test_importing_the_report_imports_neither_tensorflow_nor_matplotlib():
  code = (
    'import sys, tff_cluster.report.report, tff_cluster.studies.partition_pictures, tff_cluster.cli.progress\n'
    'print([m for m in sys.modules if m.split(".")[0] in ("tensorflow", "tensorflow_federated", "matplotlib")])'
  )
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert done.stdout.strip() == '[]'


@pytest.mark.parametrize('of_paper', [True, False])
def test_a_report_speaks_of_the_paper_first_only_in_its_setting(tmp_path, of_paper):
  scaled_down = tables.SCALED_DOWN
  rounds = scaled_down['phase1_rounds'], scaled_down['phase2_rounds']
  results = made_up.write_run(tmp_path, rounds=rounds)
  if of_paper:
    for fields in (results['config']['data'], results['config']['training']):
      fields |= {name: value for name, value in scaled_down.items() if name in fields}
    (tmp_path / 'results.json').write_text(json.dumps(results))
  text = write_report(tmp_path).read_text(encoding='utf-8')
  assert ('<h2>Tables and claims of Rohith et al. 2020</h2>' in text) == of_paper
  assert ('Figure 4 of Rohith et al. 2020' in text) == of_paper
  assert ('scaled down from Rohith' in text) == of_paper
  if not of_paper:
    # At the end of all, folded; only the contents name it before.
    before, _, after = text.partition('<h2>Beside Rohith et al. 2020</h2>')
    before = re.sub('href="[^"]*">Beside Rohith et al. 2020</a>', '', before)
    assert [words for words in ('Rohith', 'Table 1', 'the paper') if words in before] == []
    assert '<h2>How to repeat this run</h2>' in before
    assert '<summary>The paper’s tables and claims beside this run</summary>' in after and 'Table 3' in after


def test_what_drawing_took_is_among_the_times_once_and_pixels_that_are_shared_are_told(tmp_path, monkeypatch):
  before = made_up.write_run(tmp_path)
  monkeypatch.setattr(base, 'MOST_PIXELS', 9)
  for _ in range(2):
    page = write_report(tmp_path).read_text()
  after = files_lib.load_json(tmp_path / 'results.json')
  *others, last = after['timing']
  assert others == before['timing'] and last['name'] == 'Report' and last['seconds'] > 0
  assert {**after, 'timing': before['timing']} == before
  assert page.count('<td>Report</td>') == 1
  assert 'A pixel stands for 3 of the 20 clients' in page
