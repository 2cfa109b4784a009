"""Rules of Phase 3 that a run has beside those of every run: report, scorecard and comparison tell them as they tell the others."""

import copy
import csv

import numpy as np

from tests.made_up import comparison_runs, in_json
from tests.made_up import finished_run as made_up
from tests.made_up.drawn import drawn, run_of, scorecard_of
from tff_cluster.report import sections
from tff_cluster.report.experts_section import as_experts
from tff_cluster.studies.comparison import page

MINE = [
  {'name': 'by_size', 'words': 'by number of members', 'kind': 'mixing', 'aggregation': 'm:by_size'},
  {'name': 'chosen', 'words': 'chosen experts', 'kind': 'prediction', 'aggregation': 'm:chosen'},
]


def add(results, by_size=0.1234, chosen=0.4321):
  """Adds two rules, one with a model for everybody and one for clients alone, of these accuracies."""
  results['rules'] = MINE
  for clustering in results['clusterings']:
    found = clustering['evaluations']
    clients = len(found['own']['client_accuracy'])
    for name, like, accuracy in (('by_size', 'average', by_size), ('chosen', 'own', chosen)):
      found[name] = copy.deepcopy(found[like])
      found[name]['client_accuracy'] = [accuracy] * clients
      found[name]['clients']['mean_client_accuracy'] = accuracy
    found['by_size']['global']['accuracy'] = by_size
  return results


def test_the_report_has_a_line_for_each():
  results, _ = made_up.make_run(methods=('kmeans', 'dynamic_distance'))
  before = drawn(sections.evaluators_section(run_of(results).results))
  after = drawn(sections.evaluators_section(run_of(add(results)).results))
  assert 'by number of members' not in before
  assert after.count('by number of members') == 4  # It is for everybody too.
  assert after.count('chosen experts') == 2
  assert after.count('12.3%') - before.count('12.3%') == 4
  assert after.count('43.2%') - before.count('43.2%') == 2


def test_the_scorecard_has_a_line_for_each_beside_the_paper_s():
  results, _ = made_up.make_run(methods=('kmeans', 'dynamic_distance'))
  before = scorecard_of(results)
  after = scorecard_of(add(results))
  new = [record for record in after if record not in before]
  assert len(after) == len(before) + 4
  assert {(r['row'], r['column'], r['ours'], r['published']) for r in new} == {
    (row, column, accuracy, None)
    for row in ('K-means', 'Dynamic clustering')
    for column, accuracy in (('by_size_clients', 12.34), ('chosen_clients', 43.21))
  }
  assert all('the paper prints no number here' in record['note'] for record in new)


def test_experts_have_a_line_for_a_rule_of_predictions_for_everybody():
  results, _ = made_up.make_run(methods=('kmeans',))
  clustering = add(results)['clusterings'][0]
  accuracy = dict.fromkeys(('fedex', 'mean', 'vote', 'confidence', 'gate', 'oracle'), 0.5)
  clustering['experts'] = {
    'accuracy': accuracy, 'agreement': {'fedex': accuracy}, 'expert_accuracy': [0.4], 'expert_loss': [1.0],
    'order_sensitivity': {'num_shuffles': 1, 'changed': 0.0, 'accuracy': [0.5]},
  }  # fmt: skip

  def shown():
    run = run_of(results)
    return str(as_experts(run, run.results.clusterings[0]))

  assert 'chosen experts' not in shown()
  clustering['evaluations']['chosen']['global'] = {'accuracy': 0.4321}
  assert 'chosen experts' in shown() and '43.2%' in shown() and 'by number of members' not in shown()


def test_a_comparison_has_a_column_for_each(tmp_path):
  runs = comparison_runs.make(
    {name: comparison_runs.noisy(0.5) for name in (comparison_runs.FEDAVG, 'kmeans')}
  )
  for seed, results in runs:
    add(results, by_size=0.1 + 0.1 * seed, chosen=0.2 + 0.1 * seed)
  text = page.write(in_json.typed_runs(runs), {}, tmp_path).read_text()
  assert 'by_size' in text and 'chosen' in text
  with (tmp_path / 'comparison.csv').open(newline='') as stream:
    lines = [line for line in csv.DictReader(stream) if line['budget'] == 'equal_rounds']
  assert 'global_chosen' not in lines[0] and 'clients_own' not in lines[0]
  mine = [line for line in lines if line['contender'] == 'kmeans']
  expected = {
    'global_by_size': (0.1, 0.2, 0.3),
    'clients_by_size': (0.1, 0.2, 0.3),
    'clients_chosen': (0.2, 0.3, 0.4),
  }
  for column, values in expected.items():
    np.testing.assert_allclose([float(line[column]) for line in mine], values)
  for line in lines:
    if line['contender'] == comparison_runs.FEDAVG:
      assert line['clients_chosen'] == '' and line['global_by_size'] == line['global_average']
