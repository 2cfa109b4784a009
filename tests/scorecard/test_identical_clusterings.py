"""Clusterings with the same clusters and models stand on a page once, with all their names."""

import copy
import re

import pytest

from tests.made_up import atlas_runs, comparison_runs, in_json, rendering
from tests.made_up import finished_run as made_up
from tests.made_up.comparison_runs import FEDAVG, constant
from tests.made_up.written_page import WrittenPage
from tff_cluster.report.atlas import page as atlas
from tff_cluster.report.finished_run import read_run
from tff_cluster.report.report import write_report
from tff_cluster.scorecard import identical_clusterings
from tff_cluster.scorecard.contenders import ROUNDS, read_contenders
from tff_cluster.studies.comparison import page as comparison

_TRAINED = (
  'clusters', 'num_clusters', 'evaluations', 'recovery', 'history', 'best_validation', 'cluster_scores', 'cost',
)  # fmt: skip


def _same(results, first, second):
  """Gives the second clustering what the first found and trained, its clusters in another order."""
  one, two = results['clusterings'][first], results['clusterings'][second]
  two |= {name: copy.deepcopy(one[name]) for name in _TRAINED}
  for name in ('clusters', 'best_validation'):
    two[name] = two[name][::-1]


def test_the_same_clusters_in_another_order_are_one_but_with_other_models_two():
  results, _ = made_up.make_run(methods=('kmeans', 'dynamic_distance', 'hierarchical'))
  _same(results, 0, 2)
  first, second = identical_clusterings.merged(in_json.typed(results).clusterings)
  assert first.label == 'kmeans = hierarchical' and second.label == 'dynamic_distance'
  assert [part.label for part in first.parts] == ['kmeans', 'hierarchical']
  results['clusterings'][2]['evaluations']['average']['client_accuracy'][0] += 0.01
  found = identical_clusterings.merged(in_json.typed(results).clusterings)
  assert [c.label for c in found] == ['kmeans', 'dynamic_distance', 'hierarchical']


def test_a_report_shows_identical_clusterings_once_and_loses_nothing_of_either(tmp_path, monkeypatch):
  results, arrays = made_up.make_run(num_clients=12, methods=('kmeans', 'dynamic_distance', 'hierarchical'))
  _same(results, 0, 2)
  twin = results['clusterings'][2]
  twin['cost']['client_rounds'] += 60  # A dearer way to the same clusters.
  monkeypatch.setattr(made_up, 'make_run', lambda **_: (results, arrays))
  made_up.write_run(tmp_path)
  with rendering.off():
    page = WrittenPage(write_report(tmp_path)).text
  assert identical_clusterings.WORDS in page
  html = (tmp_path / 'report.html').read_text()
  assert re.findall('<h2>(Clusters of .*?)</h2>', html) == [
    'Clusters of kmeans = hierarchical',
    'Clusters of dynamic_distance',
  ]
  body = re.sub('(?s)<table>.*?method</th>.*?</table>', '', html, count=1)
  body = body.split('<h2>Clusterings that were not trained')[0]
  rows = re.findall('(?s)<tr><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td>', body)
  names = {name for name, _ in rows}
  assert 'kmeans = hierarchical' in names
  # Each has its own cost, parameters and notes.
  assert {row for row in rows if row[0] in ('kmeans', 'hierarchical')} == {
    ('kmeans', '60'),
    ('hierarchical', '120'),
  }
  assert 'Phase 2 and the clustering took 2.0 times' in page and 'for hierarchical' in page
  assert f'hierarchical: found on the clients’ weights, distance threshold {twin["threshold"]:.4g}' in page
  assert f'hierarchical: {twin["notes"][0]}' in page
  pictures = {path.stem for path in (tmp_path / 'figures').glob('*.svg')}
  assert {
    'membership_kmeans',
    'dendrogram_hierarchical',
  } <= pictures and 'membership_hierarchical' not in pictures
  assert len(read_run(tmp_path).results.clusterings) == 3


def _runs(**others):
  levels = {FEDAVG: 0.5, 'planted': 0.7, 'kmeans': 0.7, 'twin': 0.7}
  accuracies = {name: constant(level) for name, level in levels.items()} | others
  return comparison_runs.make(accuracies, {'overlap': constant(0.6)})


def test_contenders_and_rows_of_an_atlas_that_are_identical_under_every_seed_are_one():
  runs = _runs()
  rows = read_contenders(in_json.typed_runs(runs))
  assert [c.name for c in rows] == [FEDAVG, 'planted = kmeans = twin']
  assert rows[1].kind == 'disjoint' and rows[1].kinds == ('oracle', 'disjoint')
  assert [part.name for part in rows[1].each] == ['planted', 'kmeans', 'twin']
  document, _ = atlas_runs.document(runs, {})
  told = [(entry['name'], entry['kinds']) for entry in document['contenders']]
  assert told[1:] == [('planted = kmeans = twin', ['oracle', 'disjoint'])]
  assert document['runs'][0]['contenders'][1]['budgets'][ROUNDS]['mean'] == pytest.approx(0.7)
  assert identical_clusterings.WORDS in atlas.page(document, 'digits', '6 clients')
  # One client of the last seed differs.
  parted = read_contenders(in_json.typed_runs(_runs(twin=[[0.7] * 6, [0.7] * 6, [0.7] * 5 + [0.8]])))
  assert [c.name for c in parted] == [FEDAVG, 'planted = kmeans', 'twin']


def test_a_comparison_names_them_together_and_its_files_apart(tmp_path):
  runs = _runs(overlap=constant(0.6))
  with rendering.off():
    text = comparison.write(in_json.typed_runs(runs), {}, tmp_path).read_text()
  first_cells = re.findall('(?s)<tr><td[^>]*>(.*?)</td>', text)
  assert sum(cell.startswith('planted = kmeans = twin') for cell in first_cells) >= 3
  assert not any(re.match('(kmeans|twin|planted)(<|$)', cell) for cell in first_cells)
  assert 'planted = kmeans = twin against FedAvg' in text and '>kmeans against FedAvg' not in text
  # The oracle is still what overlap is measured against.
  assert 'overlap against planted = kmeans = twin, the nearest' in text
  lines = (tmp_path / 'comparison.csv').read_text().splitlines()[1:]
  assert {line.split(',')[0] for line in lines} == {FEDAVG, 'planted', 'kmeans', 'twin', 'overlap'}
  assert {line.split(',')[1] for line in lines if line.startswith('planted,')} == {'oracle'}
