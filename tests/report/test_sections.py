"""Sections of the report by their numbers: recovery, experts, rules that users add, malicious and new clients, scorecard."""

import copy
import csv
import dataclasses
import re

import numpy as np
import pytest

from tests.made_up import comparison_runs, in_json, run_with_malicious, run_with_new_clients
from tests.made_up import finished_run as made_up
from tests.made_up.drawn import drawn, rows, run_of, scorecard_of, text
from tff_cluster.base.words import error, score
from tff_cluster.clustering.recovery import Recovery
from tff_cluster.data.data_config import ATTACKS, DataConfig
from tff_cluster.papers import rohith2020
from tff_cluster.papers.rohith2020 import tables
from tff_cluster.report import cluster_sections, first_screen, sections
from tff_cluster.report.cluster_sections import candidates_section, clustering_section, recovery_section
from tff_cluster.report.experts_section import as_experts
from tff_cluster.report.malicious_section import attack_words, isolation_words, malicious_section
from tff_cluster.report.new_clients_section import new_clients_section, recovery_words
from tff_cluster.report.pages import Section
from tff_cluster.scorecard import summary
from tff_cluster.studies.comparison import page as comparison

OVERLAPPING = ('onmi', 'bcubed_f', 'bcubed_precision', 'bcubed_recall')


def _recovery(**options):
  results, _ = made_up.make_run(num_clients=8, **options)
  run = run_of(results)
  return results, drawn(recovery_section(run)), drawn(candidates_section(run, lambda section: []))


def test_the_report_tells_optimizers_where_they_are_not_those_of_plain_federated_averaging():
  results, arrays = made_up.make_run()

  def told():
    run = run_of(results, arrays)
    return [
      row
      for row in rows(drawn(sections.run_section(run, run.results.clusterings)))
      if row[0] == 'optimization'
    ]

  assert told() == []
  results['config']['training'] |= {
    'client_optimizer': 'momentum',
    'momentum': 0.5,
    'server_learning_rate': 0.7,
  }
  assert told() == [['optimization', 'client_optimizer momentum, momentum 0.5, server_learning_rate 0.7']]


@pytest.mark.parametrize(
  ('start', 'told'),
  [('random', 'num_clusters=4, start=random'), ('warm', 'num_clusters=4, start=warm, start_noise=0.1')],
)
def test_what_was_run_has_the_parameters_that_apply(start, told):
  results, _ = made_up.make_run(methods=('kmeans',))
  parameters = {'num_clusters': 4, 'start': start, 'start_noise': 0.1, 'start_clustering': None}
  results['clusterings'][0] |= {'method': 'ifca', 'parameters': parameters}
  run = run_of(results)
  found = sections.run_section(run, run.results.clusterings)
  assert [line[-1] for line in found.data['clusterings'].rows] == [told]


def test_scores_of_overlapping_clusters_are_there_only_where_something_overlaps():
  _, section, candidates = _recovery(groups=2, methods=('kmeans',))
  assert rows(section)[0][3:] == ['ARI', 'NMI', 'Omega', 'share error']
  assert rows(candidates)[0][-3:] == ['ARI', 'Omega', 'share error']
  assert 'BCubed' not in section + candidates
  results, section, candidates = _recovery(truth='overlapping', methods=('kmeans', 'dynamic_distance'))
  header, *found = rows(section)
  assert header[3:] == ['ARI', 'NMI', 'Omega', 'share error', 'ONMI', 'BCubed F', 'precision', 'recall']
  assert 'BCubed precision says' in section
  entries = {entry['label']: entry for entry in results['clusterings']}
  shown = set()
  for label, _, planted, ari, _, omega, apart, *others in found:
    scores = entries[label]['recovery'][planted.rsplit(' (', 1)[0]]
    assert (ari, omega) == (score(scores['ari']), score(scores['omega']))
    assert apart == error(scores['share_error'])
    assert others == (['–'] * 4 if ari != '–' else [score(scores[name]) for name in OVERLAPPING])
    shown.add((label, ari == '–'))
  # The planted groups overlap in one of two truths, the clusters of dynamic distance may.
  assert {('kmeans', True), ('kmeans', False)} <= shown

  header, *found = rows(candidates)
  assert header[-5:] == ['ARI', 'Omega', 'share error', 'ONMI', 'BCubed F']
  assert 'ARI, Omega, the share error, ONMI and BCubed F are against “digit”.' in candidates
  for row, entry in zip(found, results['candidates'], strict=True):
    scores = (entry['recovery'] or {}).get('digit', {})
    others = [score(scores.get('onmi')), score(scores.get('bcubed_f'))]
    assert row[-3:] == [error(scores.get('share_error')), *others]
  assert found[0][-2:] != ['–', '–'] and found[-1][-2:] == ['–', '–']


EVALUATORS = ('fedex', 'mean', 'vote', 'confidence', 'gate', 'oracle')


def _experts(fedex=0.7, oracle=0.95):
  """Returns results of a run whose cluster models are experts; without clusters 90% are right."""
  results, _ = made_up.make_run(num_clients=4, methods=('kmeans',))
  results['baseline']['evaluation']['global']['accuracy'] = 0.9
  results['clusterings'][0]['experts'] = {
    'accuracy': dict(zip(EVALUATORS, (fedex, 0.71, 0.55, 0.66, 0.80, oracle), strict=True)),
    'agreement': {'fedex': dict.fromkeys(EVALUATORS, 0.5)},
    'expert_accuracy': [0.4, 0.6],
    'expert_loss': [2.5, 1.25],
    'order_sensitivity': {'num_shuffles': 3, 'changed': 0.125, 'accuracy': [0.701, 0.72, 0.69]},
  }
  return results


def _experts_told(results):
  run = run_of(results)
  return text(drawn(Section('', 'clusters.html', 'as_experts', as_experts(run, run.results.clusterings[0]))))


@pytest.mark.parametrize(
  ('fedex', 'oracle', 'words'),
  [
    (0.7, 0.85, 'one of them is right on 85.0% only'),
    (0.92, 0.95, 'better than the unclustered model (90.0%); the best expert alone is right on 60.0%.'),
    (0.9, 0.95, 'as good as the unclustered model (90.0%)'),
  ],
)
def test_the_story_of_experts(fedex, oracle, words):
  assert words in _experts_told(_experts(fedex, oracle))


def test_every_number_of_experts_is_there():
  without = run_of(made_up.make_run(num_clients=4, methods=('kmeans',))[0])
  assert as_experts(without, without.results.clusterings[0]) is None
  told = _experts_told(_experts())
  assert 'worse than the unclustered model (90.0%)' in told
  assert 'On 95.0% some expert is right: what is lost lies in the combination' in told
  of_rules = ('66.0%', '80.0%', '−20.0 points', '+5.0 points')
  of_orders = ('69.0% to 72.0%', '3 other orders', '12.5%')
  assert [number for number in (*of_rules, *of_orders, '1.25') if number not in told] == []
  # A user's rule of predictions has a line where it is for everybody.
  results = _add_rules(_experts())
  assert 'chosen experts' not in _experts_told(results)
  results['clusterings'][0]['evaluations']['chosen']['global'] = {'accuracy': 0.4321}
  told = _experts_told(results)
  assert 'chosen experts 43.2%' in told and 'by number of members' not in told
  # A built-in rule that was asked for, too, has its one line.
  lines = told.count('%')
  results['rules'].append(
    {'name': 'vote', 'words': 'majority vote', 'kind': 'prediction', 'aggregation': 'vote'}
  )
  results['clusterings'][0]['evaluations']['vote'] = results['clusterings'][0]['evaluations']['chosen']
  assert _experts_told(results).count('%') == lines


def _add_rules(results, by_size=0.1234, chosen=0.4321):
  """Adds two rules of a user's of these accuracies, one with a model for everybody and one for clients alone."""
  results['rules'] = [
    {'name': 'by_size', 'words': 'by number of members', 'kind': 'mixing', 'aggregation': 'm:by_size'},
    {'name': 'chosen', 'words': 'chosen experts', 'kind': 'prediction', 'aggregation': 'm:chosen'},
  ]
  for clustering in results['clusterings']:
    found = clustering['evaluations']
    for name, like, accuracy in (('by_size', 'average', by_size), ('chosen', 'own', chosen)):
      found[name] = copy.deepcopy(found[like])
      found[name]['client_accuracy'] = [accuracy] * len(found[like]['client_accuracy'])
      found[name]['clients']['mean_client_accuracy'] = accuracy
    found['by_size']['global']['accuracy'] = by_size
  return results


def test_rules_of_users_have_lines_in_report_and_scorecard():
  results, _ = made_up.make_run(methods=('kmeans', 'dynamic_distance'))
  before = drawn(sections.evaluators_section(run_of(results).results)), scorecard_of(results)
  _add_rules(results)
  after = drawn(sections.evaluators_section(run_of(results).results)), scorecard_of(results)
  # The rule that is for everybody has two lines a clustering.
  for words, count in (('by number of members', 4), ('12.3%', 4), ('chosen experts', 2), ('43.2%', 2)):
    assert after[0].count(words) - before[0].count(words) == count
  new = [record for record in after[1] if record not in before[1]]
  assert len(after[1]) == len(before[1]) + 4
  assert {(r['row'], r['column'], r['ours'], r['published']) for r in new} == {
    (row, column, accuracy, None)
    for row in ('K-means', 'Dynamic clustering')
    for column, accuracy in (('by_size_clients', 12.34), ('chosen_clients', 43.21))
  }
  assert all('the paper prints no number here' in record['note'] for record in new)


def test_rules_of_users_have_columns_in_a_comparison(tmp_path):
  level = comparison_runs.noisy(0.5)
  runs = comparison_runs.make({comparison_runs.FEDAVG: level, 'kmeans': level})
  for seed, results in runs:
    _add_rules(results, by_size=0.1 + 0.1 * seed, chosen=0.2 + 0.1 * seed)
  text = comparison.write(in_json.typed_runs(runs), {}, tmp_path).read_text()
  assert 'by_size' in text and 'chosen' in text
  with (tmp_path / 'comparison.csv').open(newline='') as stream:
    lines = [line for line in csv.DictReader(stream) if line['budget'] == 'equal_rounds']
  assert 'global_chosen' not in lines[0] and 'clients_own' not in lines[0]
  mine = [line for line in lines if line['contender'] == 'kmeans']
  for column, first in (('global_by_size', 0.1), ('clients_by_size', 0.1), ('clients_chosen', 0.2)):
    assert [float(line[column]) for line in mine] == pytest.approx([first, first + 0.1, first + 0.2])
  for line in lines:
    if line['contender'] == comparison_runs.FEDAVG:
      assert line['clients_chosen'] == '' and line['global_by_size'] == line['global_average']


def _malicious(malicious):
  results, _ = made_up.make_run(num_clients=6, groups=2, methods=('kmeans', 'planted'))
  results['baseline']['evaluation']['client_accuracy'] = [0.5, 0.6, 0.7, 0.1, 0.2, 0.6]
  kmeans, planted = (clustering['evaluations']['own'] for clustering in results['clusterings'])
  kmeans['client_accuracy'], planted['client_accuracy'] = [0.9, 0.8, 0.7, 0.3, 0.5, 1.0], [1.0] * 6
  beside = {'kmeans': 0.25, 'planted': 0.0}
  run_with_malicious.add(results, malicious, beside, dropped=7, attack='scaled', attack_scale=5.0)
  section = drawn(malicious_section(run_of(results)))
  return rows(section), text(section)


def test_every_number_of_malicious_clients_by_hand():
  (header, fedavg, kmeans, planted), told = _malicious([3, 4])
  assert len(header) == len(fedavg) == len(kmeans) == len(planted) == 8
  # Honest: (0.5 + 0.6 + 0.7 + 0.6) / 4, malicious: (0.1 + 0.2) / 2.
  assert fedavg == ['FedAvg without clusters', '60.0%', '–', '15.0%', '–', '–', '–', '7']
  assert kmeans == ['kmeans', '85.0%', '+25.0', '40.0%', '2', '25.0%', 'ARI 0.50', '7']
  assert planted[1:4] == ['100.0%', '+40.0', '100.0%'] and planted[5] == '0.0%'
  assert '2 clients of 6 are malicious: each sends a multiple of its update (times 5).' in told
  # The oracle keeps them apart, but is no method.
  assert 'No clustering isolated them: with kmeans, 25.0% of the honest clients share a cluster' in told
  _, told = _malicious([])
  assert '0 clients of 6 are malicious' in told and 'None of them takes part.' in told
  assert 'isolated them' not in told


@pytest.mark.parametrize(
    ('beside', 'words'),
    [
        ({'k': None}, 'There is no clustering that could isolate them.'),
        ({'k': 0.0}, 'k isolated them: no honest client shares a cluster with a malicious one.'),
        ({'k': 0.0, 'ward': 0.5, 'cfl': 0.0},
         'k and cfl isolated them: no honest client shares a cluster with a malicious one; 1 of 3 clusterings did not.'),
        ({'k': 0.6, 'ward': 0.5},
         'No clustering isolated them: with ward, the nearest, 50.0% of the honest clients share a cluster with a malicious one.'),
    ],
)  # fmt: skip
def test_isolation_in_words(beside, words):
  assert isolation_words(beside) == words


def test_every_attack_has_words():
  assert len({attack_words(DataConfig(attack=attack)) for attack in ATTACKS}) == len(ATTACKS)
  assert attack_words(DataConfig()) == 'sends the negative of its update'


def test_every_number_of_new_clients_by_hand():
  results, _ = made_up.make_run(num_clients=6, groups=2, methods=('kmeans', 'planted'))
  # Under k-means client 0 is with the best of its clusters, client 1 in both, client 2 with the wrong one.
  each = [[0.9, 0.5, 0.8], [0.4, 0.7, 0.3]]
  assigned = {'kmeans': [[0], [0, 1], [1]], 'planted': [[0], [1], [0]]}
  # The mean of two models is better than each of them.
  own = {'kmeans': [0.9, 0.8, 0.3]}
  run_with_new_clients.add(results, [0.5, 0.6, 0.7], dict.fromkeys(assigned, each), assigned, own)
  section = drawn(new_clients_section(run_of(results)))
  header, fedavg, kmeans, planted, *costs = rows(section)
  assert len(header) == len(fedavg) == len(kmeans) == len(planted) == 10
  assert fedavg[:2] == ['FedAvg without clusters', '60.0%'] and set(fedavg[2:]) == {'–'}
  # Means: own 2/3, best (0.9 + 0.7 + 0.8) / 3, regret (0 - 0.1 + 0.5) / 3; two of three are with the best.
  assert kmeans[:6] == ['kmeans', '66.7%', '+6.7', '80.0%', '+13.3', '+50.0']
  assert kmeans[6:] == ['66.7%', '1.3', '0', 'ARI 0.50']
  assert costs[1] == ['kmeans', '3', '0 down 0 up', '0 B down 1 B up', '0 trained 0 forward', '0']
  assert planted[1:7] == ['80.0%', '+20.0', '80.0%', '0.0', '0.0', '100.0%']
  # The oracle is no method that is praised.
  told = text(section)
  assert 'New clients have 60.0% with FedAvg’s model and 66.7% with the clusters of kmeans.' in told
  assert 'hindsight' in told and '3 clients took no part' in told
  assert rows(drawn(new_clients_section(run_of(results | {'clusterings': []}))))[1:-1] == [fedavg]
  assert recovery_words(in_json.record(Recovery, {'ari': None, 'omega': 0.25}), np.eye(2)) == 'Omega 0.25'


@pytest.mark.parametrize('in_all', ['groups', 'clusters'])
def test_where_every_client_is_in_every_group_or_cluster_omega_is_said_nowhere(in_all):
  results, _ = made_up.make_run(methods=('kmeans',))
  ids = results['population']['client_ids']
  count = len(ids)
  if in_all == 'groups':
    results['population']['truths'] = {'mixture': [[0.25] * count, [0.75] * count]}
  else:
    results['population']['truths'] = {
      'mixture': [[1.0] * 2 + [0.0] * (count - 2), [0.0] * 2 + [1.0] * (count - 2)]
    }
    results['clusterings'][0] |= {
      'clusters': [ids, ids], 'num_clusters': 2, 'memberships': 2.0, 'overlapping': True, 'shares': [[0.25] * count, [0.75] * count],
    }  # fmt: skip
  scores = {'ari': None, 'nmi': None, 'omega': 1.0, 'share_error': 0.125}
  results['clusterings'][0]['recovery'] = {'mixture': scores}
  run_with_new_clients.add(results, [0.5], {'kmeans': [[0.9]] * 4}, {'kmeans': [[0]]})
  results['clusterings'][0]['new_clients']['recovery'] = {'mixture': scores}
  run = run_of(results)
  lines = summary.of_run(run.results)
  line = lines[-1]
  assert (line.ari, line.omega, line.share_match) == (None, None, 0.875)
  assert line.to_json()['share_match'] == 0.875 and 'share_match' not in lines[0].to_json()
  assert 'share match 0.88' in summary.words(lines, 'clients')[-1]
  assert first_screen.table(lines, [0]).rows[-1][4].notes == ('share match 0.88',)
  section = drawn(new_clients_section(run))
  assert 'share match 0.88' in section and 'Omega' not in section


@pytest.mark.parametrize('most', [2, 200])
def test_a_table_of_clusters_has_the_largest_and_says_what_is_left_out(most, monkeypatch):
  monkeypatch.setattr(cluster_sections, '_MOST_CLUSTERS', most)
  run = run_of(made_up.make_run(methods=('dynamic_distance',))[0])
  (clustering,) = run.results.clusterings
  count = clustering.num_clusters
  assert count > 2
  html = drawn(clustering_section(run, clustering, lambda section: []))
  (body,) = re.findall('<tbody>(.*)</tbody>', html, re.S)
  shown = [int(n) for n in re.findall(r'<tr><td class="n">\d+</td><td class="n">(\d+)</td>', body)]
  assert sorted(shown, reverse=True) == sorted(map(len, clustering.clusters), reverse=True)[:most]
  left_out = f'{count - most} smaller clusters are left out of the table. All are in clusterings/'
  assert (f'{left_out.removesuffix("clusterings/")}clusterings/{clustering.label}/clusters.json' in html) == (
    most == 2
  )


def test_a_summary_has_the_numbers_of_the_report():
  results, _ = made_up.make_run(
    methods=('kmeans', 'dynamic_distance', 'planted'),
    personalized={'local': -0.1, 'fine_tuning': 0.02, 'ditto': 0.04},
  )
  lines = summary.of_run(run_of(results).results)
  fedavg, alone, tuned, ditto, kmeans, *_ = lines
  assert (fedavg.label, alone.label, kmeans.label) == (
    'FedAvg without clusters',
    'every client alone',
    'kmeans',
  )
  own = ['local', 'fine_tuning', 'ditto']
  assert [line.kind for line in lines] == ['fedavg', *own, 'disjoint', 'overlapping', 'oracle']
  assert (tuned.label, ditto.label) == ('fine-tuned FedAvg', 'Ditto')
  # FedAvg's five rounds of twenty clients, and as much again, or three rounds.
  assert [line.client_rounds for line in lines[:4]] == [100, 100, 160, 200]
  assert alone.bytes == 0 and tuned.bytes == ditto.bytes == fedavg.bytes
  own = np.array(results['clusterings'][0]['evaluations']['own']['client_accuracy'])
  without = np.array(results['baseline']['evaluation']['client_accuracy'])
  assert kmeans.mean_client_accuracy == own.mean()
  assert kmeans.difference == pytest.approx(np.mean(own - without))
  assert kmeans.interval[0] < kmeans.difference < kmeans.interval[1]
  assert (fedavg.difference, fedavg.interval, fedavg.num_clusters, fedavg.ari) == (None,) * 4
  cost = results['clusterings'][0]['cost']
  assert kmeans.client_rounds == cost['client_rounds']
  assert kmeans.bytes == cost['bytes_up'] + cost['bytes_down']
  near = dataclasses.replace(kmeans, difference=0.0048, interval=[0.0003, 0.0094])
  (line,) = summary.words([near], 'clients')
  assert '+0.48 points to FedAvg (95% interval over clients +0.03 to +0.94)' in line
  told = summary.words(lines, 'clients')
  assert len(told) == len(lines) and told[0].startswith('FedAvg without clusters: ')
  assert '95% interval over clients' in told[4] and '95% interval' not in told[0]


def test_scorecard_of_a_run_has_every_cell_with_our_number():
  results, _ = made_up.make_run(linkage='single')
  records = scorecard_of(results)
  # The run has no clustering in the row of another threshold, which is ours.
  run = {row.name for row in (tables.KMEANS, tables.DYNAMIC, tables.HIERARCHICAL)}
  printed = [rohith2020.PUBLISHED[f'rohith2020/table{n}'] for n in (1, 2, 3)]
  asked = [
    (table.name, cell.row, cell.column) for table in printed for cell in table.cells if cell.row in run
  ]
  assert [(r['table'], r['row'], r['column']) for r in records if r['row'] != 'claim'] == asked
  claims = [table.name for table in printed for _ in table.claims]
  assert [r['table'] for r in records if r['row'] == 'claim'] == claims
  by = {(r['row'], r['column']): r for r in records}
  dynamic = results['clusterings'][1]['evaluations']
  average = by['Dynamic clustering', 'average_global']
  assert average['ours'] == 100 * dynamic['average']['global']['accuracy'] and average['unit'] == 'percent'
  assert average['difference'] == pytest.approx(average['ours'] - 93.0, abs=1e-5)
  assert by['Dynamic clustering', 'highest']['ours'] == 100 * max(dynamic['blended']['client_accuracy'])
  # Table 1 quotes a mean, and the share at 99%.
  own = np.array(results['clusterings'][2]['evaluations']['own']['client_accuracy'])
  single = 'FL+HC (L2, single linkage)'
  assert by[single, 'mean_accuracy']['ours'] == pytest.approx(100 * own.mean())
  assert by[single, 'share_at_99']['ours'] == pytest.approx(100 * np.mean(own >= 0.99))
  assert all('scaled down' in r['verdict'] and 'scaled down' in r['scale'] for r in records)
  (kept,) = (
    r for (_, name), r in by.items() if name.startswith('K-means: blended') and 'specialisation' in name
  )
  members = {k: np.mean(v['members']) for k, v in results['clusterings'][0]['cluster_scores'].items()}
  lost = 100 * (members['blended'] - members['unblended'])
  assert kept['ours'] == f'{lost:+.2f} points'.replace('-', '−') and kept['verdict'].startswith('one seed (')


def test_scorecard_leaves_out_what_was_not_run_and_tells_clusterings_apart():
  results, _ = made_up.make_run(methods=('dynamic_distance', 'dynamic_distance:dd_q10', 'hierarchical'))
  results['clusterings'][0]['parameters']['distance_threshold'] = 'quantile:0.1'
  records = scorecard_of(results)
  numbers = [r for r in records if r['row'] != 'claim']
  assert all(r['verdict'] == 'not run' and r['ours'] is None for r in numbers if r['row'] == 'K-means')
  # It has complete linkage.
  single = 'FL+HC (L2, single linkage)'
  (first, second) = [r for r in numbers if r['table'] == 'rohith2020/table1' and r['row'] == single]
  assert first['verdict'] == second['verdict'] == 'not run'
  assert 'no hierarchical clustering with metric l2 and linkage single' in first['note']
  fewer = next(r for r in records if r['column'].startswith('Fewer clients than with hierarchical'))
  assert fewer['verdict'] == 'not run' and single in fewer['note']
  notes = {r['row']: r['note'] for r in numbers if r['column'] == 'phase1_global'}
  assert 'quantile:0.1' in notes['Dynamic clustering [dynamic_distance]']
  assert 'quantile' not in notes['Dynamic clustering [dd_q10]']
  # The clustering nearest to the paper, not the first one, stands for the method in the claims.
  claim = next(r for r in records if r['column'].startswith('Dynamic clustering: weighting'))
  assert 'checked on dd_q10' in claim['note'] and 'quantile' not in claim['note']
