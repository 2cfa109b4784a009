"""The whole report: valid, self-contained, safe against its own data, and all or nothing."""

import itertools
import json
import re
import subprocess
import sys
import xml.etree.ElementTree

import numpy as np
import pytest

from tests.made_up import finished_run as made_up
from tests.made_up import rendering, run_with_malicious, run_with_new_clients
from tests.made_up.written_page import WrittenPage
from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.base.words import points
from tff_cluster.papers.rohith2020 import tables
from tff_cluster.report import report
from tff_cluster.report.figures import base
from tff_cluster.report.finished_run import read_run
from tff_cluster.report.report import write_report
from tff_cluster.storage import files

OWN = {'local': 0.01, 'fine_tuning': 0.03, 'ditto': -0.02}


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  folder = tmp_path_factory.mktemp('run')
  options = {'truth': 'overlapping', 'methods': ('dynamic_distance', 'hierarchical')}
  results = made_up.write_run(folder, num_clients=8, cross_validation=True, personalized=OWN, **options)
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
  for found in results['personalized']:
    own = np.array(found['evaluation']['client_accuracy'])
    gain = own.mean() - np.mean(results['baseline']['evaluation']['client_accuracy'])
    # In the table of the first screen.
    first = text[text.index('The answer') : text.index('Contents')]
    assert f'{100 * own.mean():.1f}%' in first and points(gain).removesuffix(' points') in first
    for clustering in results['clusterings']:
      over = np.mean(clustering['evaluations']['own']['client_accuracy'] - own)
      assert f'{points(over)} (95% interval over clients' in text
  for title in ('every client alone', 'fine-tuned FedAvg', 'Ditto'):
    assert text.count(f'against {title}') >= len(results['clusterings'])
  assert 'A pixel stands for' not in text


def test_figures_and_scorecard_lie_beside_it_and_nothing_else(run):
  folder, _, path, drawn = run
  names = {p.stem for p in (folder / 'figures').glob('*.svg')}
  of_each = ('client_accuracies', 'membership', 'distances', 'embedding', 'label_histogram')
  assert names == {
    'gains', 'accuracy_over_rounds', 'client_differences', 'candidates', 'label_histogram.clients', 'dendrogram_hierarchical',
    *(f'{kind}_{label}' for kind in of_each for label in ('dynamic_distance', 'hierarchical')),
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


PAPER = ('<h2>Tables and claims of Rohith', 'Figure 4 of Rohith et al. 2020', 'scaled down from Rohith')


def test_a_report_speaks_of_the_paper_last_but_in_its_setting(run, tmp_path):
  # At the end of all, folded; only the contents name it before.
  before, _, after = run[2].read_text(encoding='utf-8').partition('<h2>Beside Rohith et al. 2020</h2>')
  before = re.sub('href="[^"]*">Beside Rohith et al. 2020</a>', '', before)
  assert [words for words in ('Rohith', 'Table 1', 'the paper') if words in before] == []
  assert '<h2>How to repeat this run</h2>' in before
  assert '<summary>The paper’s tables and claims beside this run</summary>' in after and 'Table 3' in after
  assert not [words for words in PAPER if words in after]

  scaled_down = tables.SCALED_DOWN
  rounds = (scaled_down['phase1_rounds'], scaled_down['phase2_rounds'])
  results, arrays = made_up.make_run(rounds=rounds, methods=('kmeans',))
  for fields in (results['config']['data'], results['config']['training']):
    fields |= {name: value for name, value in scaled_down.items() if name in fields}
  made_up.save(tmp_path, results, arrays)
  text = write_report(tmp_path).read_text(encoding='utf-8')
  assert all(words in text for words in PAPER) and 'Beside Rohith' not in text


def test_malicious_and_new_clients_have_their_sections_where_there_are_some(run, tmp_path):
  results, arrays = made_up.make_run(num_clients=6, groups=2, methods=('kmeans',))
  run_with_malicious.add(results, [3, 4], {'kmeans': 0.25})
  run_with_new_clients.add(results, [0.5], {'kmeans': [[0.9], [0.4]]}, {'kmeans': [[0]]})
  made_up.save(tmp_path, results, arrays)
  told = (
    '<h2>Malicious clients</h2>',
    'Means over clients count the malicious ones too',
    '<h2>New clients</h2>',
  )
  for page, count in ((write_report(tmp_path), 1), (run[2], 0)):
    text = page.read_text(encoding='utf-8')
    assert [text.count(words) for words in told] == [count] * 3
    assert text.count('The honest ones alone are beside FedAvg without clusters at ') == count


def test_hostile_names_stay_text_and_those_of_several_words_are_quoted(tmp_path):
  ids = [
    '<script>alert(1)</script>', '"><img src=x>', '$\\frac{1', 'snow ☃ 雪', 'a\x00b', 'x' * 300, '&amp;', "'", 'client 2', 'a, b', 'c',
  ]  # fmt: skip
  made_up.write_run(tmp_path, num_clients=11, groups=1, client_ids=ids, methods=('kmeans',), truth='none')
  text = WrittenPage(write_report(tmp_path)).text
  assert f'“{ids[0]}”, “{ids[1]}”, ' in text and "“&amp;”, “'”, “client 2”, “a, b”, c" in text


def test_a_report_that_is_written_again_is_the_same_with_its_own_time_once(tmp_path, monkeypatch):
  # That equal figures give equal bytes is a test of its own.
  monkeypatch.setattr(report.time, 'monotonic', itertools.count().__next__)
  monkeypatch.setattr(base, 'MOST_PIXELS', 9)
  before = made_up.write_run(tmp_path, num_clients=10, methods=('kmeans',))
  page, again = (write_report(tmp_path).read_text(encoding='utf-8') for _ in range(2))
  assert page == again and page.count('<td>Report</td>') == 1
  assert 'A pixel stands for 2 of the 10 clients' in page
  after = files.load_json(tmp_path / 'results.json')
  *others, last = after['timing']
  assert others == before['timing'] and last['name'] == 'Report' and last['seconds'] == 1
  assert {**after, 'timing': before['timing']} == before
  for words in ('every client alone', 'own, after round', 'Splits of'):
    assert words not in page


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
  made_up.write_run(tmp_path, num_clients=4, methods=())
  assert 'no clustering' in WrittenPage(write_report(tmp_path)).text


@pytest.mark.parametrize(
    ('name', 'content', 'words'),
    [
        ('results.json', None, 'no such file'), ('results.json', b'{"schema": 1, "config"', 'is damaged'),
        ('results.json', b'[]', 'schema'), ('results.json', b'{"schema": 5}', 'schema 5, expected 6'),
        ('results.json', b'{"schema": 6, "digest": ""}', "has no 'config'"), ('arrays.npz', b'PK\x03\x04 cut off', 'arrays.npz'),
    ],
)  # fmt: skip
def test_damaged_results_and_arrays_are_one_line(tmp_path, name, content, words):
  made_up.write_run(tmp_path, num_clients=2, groups=2, methods=())
  (tmp_path / name).unlink()
  if content is not None:
    (tmp_path / name).write_bytes(content)
  with pytest.raises((InputError, EnvironmentFault), match=re.escape(words)) as caught:
    read_run(tmp_path)
  assert '\n' not in str(caught.value) and str(tmp_path) in str(caught.value)


def test_arrays_of_another_shape_or_with_nan_are_not_drawn(tmp_path):
  results, _ = made_up.make_run(num_clients=4, groups=2, methods=('kmeans',))
  arrays = {'distances_weights': np.zeros((3, 3)), 'embedding_weights': np.full((4, 2), np.nan)}
  made_up.save(tmp_path, results, arrays)
  found = read_run(tmp_path)
  assert found.array('distances_weights', 4, 4) is None and found.array('embedding_weights', 4, 2) is None
  assert found.array('distances_weights', 3, 3) is not None


def test_importing_the_report_imports_neither_tensorflow_nor_matplotlib():
  code = (
    'import sys, tff_cluster.report.report, tff_cluster.studies.partition_pictures, tff_cluster.cli.progress\n'
    'print([m for m in sys.modules if m.split(".")[0] in ("tensorflow", "tensorflow_federated", "matplotlib")])'
  )
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert done.stdout.strip() == '[]'
