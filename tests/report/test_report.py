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
from tff_cluster.report.finished_run import read_run
from tff_cluster.report.report import write_report
from tff_cluster.storage import files as files_lib


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  folder = tmp_path_factory.mktemp('run')
  results = made_up.write_run(folder, num_clients=12, cross_validation=True, truth='overlapping')
  drawn = []
  with rendering.on():
    path = write_report(folder, lambda: drawn.append(1))
  return folder, results, path, drawn


def test_the_page_is_valid_and_needs_no_network(run):
  folder, _, path, _ = run
  assert path == folder / 'report.html' and path.stat().st_size < 6e6
  page = path.read_text(encoding='utf-8')
  text = WrittenPage(path).text
  assert (
    page.startswith('<!DOCTYPE html>') and 'prefers-color-scheme: dark' in page and '@media print' in page
  )
  # The first thing after the title is the answer.
  assert text.index('The answer') < text.index('Contents')


def test_the_page_tells_what_the_run_was(run):
  _, results, path, _ = run
  text = WrittenPage(path).text
  assert results['digest'] in text and '--config_file=' in text
  assert '1 h 02 min' in text and '1 min 01 s' in text  # 3725 s and 61.2 s of the timing.
  for clustering in results['clusterings']:
    share = clustering['evaluations']['blended']['clients']['mean_client_accuracy']
    assert f'{100 * share:.1f}%' in text
    assert f'Clusters of {clustering["label"]}' in text
  for name in ('Table 1', 'Table 2', 'Table 3', 'Omega', 'ARI', 'NMI', '5-fold cross-validation', '11.9'):
    assert name in text


def test_every_figure_is_embedded_and_lies_beside_it(run):
  folder, _, path, drawn = run
  names = {p.stem for p in (folder / 'figures').glob('*.svg')}
  assert names == {p.stem for p in (folder / 'figures').glob('*.png')}
  expected = {
    'accuracy_over_rounds',
    'client_differences',
    'candidates',
    'label_histogram_clients',
    'dendrogram_hierarchical',
  }
  for label in ('kmeans', 'dynamic_distance', 'hierarchical'):
    expected |= {
      f'{kind}_{label}'
      for kind in ('client_accuracies', 'membership', 'distances', 'embedding', 'label_histogram')
    }
  assert names == expected and len(drawn) == len(expected)
  assert path.read_text().count('data:image/svg+xml;base64,') == len(expected)
  for name in names:
    xml.etree.ElementTree.parse(folder / 'figures' / f'{name}.svg')
    assert (folder / 'figures' / f'{name}.png').read_bytes().startswith(b'\x89PNG')


def test_the_scorecard_lies_beside_it(run):
  folder, _, _, _ = run
  rows = json.loads((folder / 'scorecard.json').read_text())
  assert {'table', 'row', 'column', 'unit', 'published', 'ours', 'difference', 'verdict', 'scale'} < set(
    rows[0]
  )
  assert len((folder / 'scorecard.csv').read_text().splitlines()) == len(rows) + 1


def test_no_temporary_files_are_left(run):
  folder, _, _, _ = run
  assert not [p for p in folder.rglob('.*')]


def test_hostile_names_stay_text(tmp_path):
  ids = [
    '<script>alert(1)</script>',
    '"><img src=x>',
    '$\\frac{1',
    'snow ☃ 雪',
    'a\x00b',
    'x' * 300,
    '&amp;',
    "'",
  ]
  made_up.write_run(tmp_path, num_clients=8, groups=2, client_ids=ids, methods=('kmeans',))
  text = WrittenPage(write_report(tmp_path)).text
  assert ids[0] in text and '&amp;' in text


def test_equal_runs_give_equal_reports(tmp_path, monkeypatch):
  # That equal figures give equal bytes is a test of its own. What drawing took is no part of a run.
  monkeypatch.setattr(report.time, 'monotonic', lambda: 0.0)
  pages = []
  for name in ('one', 'two'):
    made_up.write_run(tmp_path / name, methods=('kmeans',))
    pages.append(
      write_report(tmp_path / name).read_text(encoding='utf-8').replace(str(tmp_path / name), 'RUN')
    )
  assert pages[0] == pages[1]


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
    ('content', 'words'),
    [
        (None, 'no such file'), (b'{"schema": 1, "config"', 'is damaged'), (b'\xff\xfe', 'is damaged'),
        (b'[]', 'schema'), (b'{"schema": 99}', 'schema 99, expected 5'), (b'{"schema": 4}', 'schema 4, expected 5'), (b'{"schema": 5, "digest": ""}', "has no 'config'"),
    ],
)  # fmt: skip
def test_damaged_results_are_one_line(tmp_path, content, words):
  if content is not None:
    (tmp_path / 'results.json').write_bytes(content)
  with pytest.raises((InputError, EnvironmentFault), match=re.escape(words)) as caught:
    write_report(tmp_path)
  assert '\n' not in str(caught.value) and str(tmp_path) in str(caught.value)


@pytest.mark.parametrize('content', [b'', b'PK\x03\x04 cut off', b'no archive at all'])
def test_damaged_arrays_are_one_line(tmp_path, content):
  made_up.write_run(tmp_path, num_clients=4, groups=2, methods=())
  (tmp_path / 'arrays.npz').write_bytes(content)
  with pytest.raises(EnvironmentFault, match=r'arrays\.npz'):
    read_run(tmp_path)


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
  real = os.fsync

  def full(handle):
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(os, 'fsync', full)
  with pytest.raises(EnvironmentFault, match=r'cannot write .*report\.html: No space left on device'):
    files.write_file(target, 'new')
  monkeypatch.setattr(os, 'fsync', real)
  assert target.read_text() == 'old' and os.listdir(tmp_path) == ['report.html']


def test_a_file_where_a_folder_should_be_is_an_environment_fault(tmp_path):
  (tmp_path / 'figures').write_text('')
  with pytest.raises(EnvironmentFault, match='figures'):
    files.write_file(tmp_path / 'figures' / 'a.svg', b'')


def test_importing_the_report_imports_neither_tensorflow_nor_matplotlib():
  code = (
    'import sys, tff_cluster.report.report, tff_cluster.studies.partition_pictures, tff_cluster.cli.progress\n'
    'print([m for m in sys.modules if m.split(".")[0] in ("tensorflow", "tensorflow_federated", "matplotlib")])'
  )
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert done.stdout.strip() == '[]'


def test_clients_alone_and_equal_client_rounds_stand_among_the_models(tmp_path):
  made_up.write_run(tmp_path / 'run', local=0.01)
  text = re.sub(r'<[^>]+>', ' ', write_report(tmp_path / 'run').read_text(encoding='utf-8'))
  run = read_run(tmp_path / 'run').results
  dear = [c.equal_cost for c in run.clusterings if c.equal_cost is not None]
  assert dear and 'every client alone' in text
  assert all(f'own, after round {cut.round}: FedAvg’s client-rounds' in text for cut in dear)
  made_up.write_run(tmp_path / 'plain', methods=('kmeans',))
  plain = write_report(tmp_path / 'plain').read_text(encoding='utf-8')
  assert 'every client alone' not in plain and 'FedAvg’s client-rounds' not in plain


def _as_demo(results):
  """Makes a run one of the scaled-down version of Rohith et al. 2020."""
  for section in ('data', 'training'):
    fields = results['config'][section]
    fields |= {name: value for name, value in tables.SCALED_DOWN.items() if name in fields}


@pytest.mark.parametrize('of_paper', [True, False])
def test_a_report_speaks_of_the_paper_first_only_in_its_setting(tmp_path, of_paper):
  rounds = tables.SCALED_DOWN['phase1_rounds'], tables.SCALED_DOWN['phase2_rounds']
  results = made_up.write_run(tmp_path, rounds=rounds)
  if of_paper:
    _as_demo(results)
    (tmp_path / 'results.json').write_text(json.dumps(results))
  text = write_report(tmp_path).read_text(encoding='utf-8')
  folded = text[text.index('The paper’s tables and claims beside this run') :] if not of_paper else ''
  assert ('<h2>Tables and claims of Rohith et al. 2020</h2>' in text) == of_paper
  assert ('Figure 4 of Rohith et al. 2020' in text) == of_paper
  assert ('scaled down from Rohith' in text) == of_paper
  if not of_paper:
    before = text[: text.index('<h2>Beside Rohith et al. 2020</h2>')]
    contents = 'href="#s' + before.split('Beside Rohith')[0].rsplit('href="#s', 1)[1]
    for words in ('Rohith', 'Table 1', 'the paper'):
      assert words not in before.replace(contents, '').replace('Beside Rohith et al. 2020</a>', '')
    # At the end of all, folded.
    assert text.index('<h2>How to repeat this run</h2>') < text.index('<h2>Beside Rohith et al. 2020</h2>')
    assert (
      folded.startswith('The paper’s tables and claims beside this run</summary>') and 'Table 3' in folded
    )


def test_ids_that_are_no_plain_words_are_quoted(tmp_path):
  ids = ['client 2', 'client 10', 'a, b', 'c']
  made_up.write_run(tmp_path, num_clients=4, groups=1, client_ids=ids, methods=('kmeans',), truth='none')
  assert '“client 2”, “client 10”, “a, b”, c' in WrittenPage(write_report(tmp_path)).text
