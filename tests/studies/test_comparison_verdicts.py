"""Verdicts, each holding, undecided and failing; the answer in words; and alarms that go off and stay silent."""

import numpy as np
import pytest

from tests.made_up import comparison_runs
from tests.made_up.comparison_runs import FEDAVG, LOCAL, constant, noisy
from tff_cluster.experiment.config import DataConfig, ExperimentConfig
from tff_cluster.scorecard import paired_statistics
from tff_cluster.scorecard.contenders import BUDGETS, CLIENT_ROUNDS, ROUNDS, read_contenders
from tff_cluster.scorecard.intervals import seeds_needed
from tff_cluster.studies.comparison import alarms, answer, verdicts

_BOTH = tuple(BUDGETS)


def _statistics(runs):
  return paired_statistics.measure(read_contenders(comparison_runs.typed(runs)), 0.99, samples=400)


def _checks(accuracies, form, earlier=None):
  found = verdicts.make_checks(_statistics(comparison_runs.make(accuracies, earlier)), form)
  return {(check.words, check.budgets): check.finding for check in found}


def _expected(accuracies, form, earlier=None):
  """Returns the verdicts of what is expected, by budget, in their order."""
  found = verdicts.make_checks(_statistics(comparison_runs.make(accuracies, earlier)), form)
  chosen = [check for check in found if check.kind == 'expected']
  return {b: [check.finding.verdict for check in chosen if b in check.budgets] for b in BUDGETS}


def _alarms(runs):
  typed = comparison_runs.typed(runs)
  return alarms.make_alarms(read_contenders(typed), _statistics(runs), typed)


@pytest.mark.parametrize(
  ('level', 'verdict'), [(constant(0.6), 'holds'), (noisy(0.5), 'undecided'), (constant(0.4), 'fails')]
)
def test_a_clustering_helps(level, verdict):
  found = _checks({FEDAVG: constant(0.5), 'kmeans': level}, 'unknown')
  finding = found['kmeans beats FedAvg, at equal rounds and at equal client-rounds', _BOTH]
  assert finding.verdict == verdict
  assert finding.note.startswith(
    {'holds': '0.0%', 'undecided': '50.0%', 'fails': '100.0%'}[verdict] + ' of the clients are worse off'
  )


def test_a_clustering_that_helps_at_one_budget_only_has_a_line_for_each():
  found = _checks({FEDAVG: constant(0.5), 'overlap': constant(0.6)}, 'unknown', {'overlap': constant(0.4)})
  assert found['overlap beats FedAvg, at equal rounds', (ROUNDS,)].verdict == 'holds'
  assert found['overlap beats FedAvg, at equal client-rounds', (CLIENT_ROUNDS,)].verdict == 'fails'


@pytest.mark.parametrize(
  ('overlap', 'verdict'), [(constant(0.7), 'holds'), (noisy(0.6), 'undecided'), (constant(0.5), 'fails')]
)
def test_overlap_beats_disjoint(overlap, verdict):
  levels = {FEDAVG: constant(0.5), 'kmeans': constant(0.6), 'worse': constant(0.1), 'overlap': overlap}
  found = _checks(levels, 'unknown')
  finding = found['Overlap beats disjoint, at equal rounds and at equal client-rounds', _BOTH]
  assert finding.verdict == verdict and finding.note.startswith('overlap against kmeans')


def test_overlap_is_judged_by_its_best_at_each_budget():
  levels = {
    FEDAVG: constant(0.5),
    'kmeans': constant(0.6),
    'overlap': constant(0.7),
    'overmore': constant(0.65),
  }
  found = _checks(levels, 'unknown', {'overlap': constant(0.5), 'overmore': constant(0.55)})
  assert found['Overlap beats disjoint, at equal rounds', (ROUNDS,)].note.startswith('overlap against')
  later = found['Overlap beats disjoint, at equal client-rounds', (CLIENT_ROUNDS,)]
  assert later.verdict == 'fails' and later.note.startswith('overmore against')


@pytest.mark.parametrize(('label', 'missing'), [('kmeans', 'overlapping'), ('overlap', 'disjoint')])
def test_what_was_not_run_is_not_judged(label, missing):
  found = _checks({FEDAVG: constant(0.5), label: constant(0.6)}, 'overlapping')
  for words in (
    'Overlap beats disjoint',
    'The planted groups overlap, so the best overlapping clustering beats every disjoint one',
  ):
    finding = found[f'{words}, at equal rounds and at equal client-rounds', _BOTH]
    assert (finding.verdict, finding.note) == ('not run', f'these runs have no {missing} clustering')


@pytest.mark.parametrize(
  ('second', 'verdict'), [(constant(0.5), 'holds'), (noisy(0.7), 'undecided'), (constant(0.8), 'fails')]
)
def test_where_groups_overlap_the_best_overlapping_clustering_beats_every_disjoint_one(second, verdict):
  levels = {FEDAVG: constant(0.4), 'kmeans': constant(0.6), 'second': second, 'overlap': constant(0.7)}
  levels |= {'overworse': constant(0.1), 'planted': constant(0.9)}
  assert _expected(levels, 'overlapping') == {b: [verdict] for b in BUDGETS}


def test_what_is_expected_is_asked_at_both_budgets():
  levels = {FEDAVG: constant(0.4), 'kmeans': constant(0.6), 'overlap': constant(0.7)}
  found = _expected(levels, 'overlapping', {'overlap': constant(0.5)})
  assert found == {ROUNDS: ['holds'], CLIENT_ROUNDS: ['fails']}


# For disjoint groups: no overlapping clustering beats the planted groups, and none beats every disjoint one.
@pytest.mark.parametrize(
  ('overlap', 'expected'),
  [
    (constant(0.65), ['holds', 'holds']),  # Beats one disjoint clustering, not the other.
    (constant(0.7), ['holds', 'holds']),  # As good as the second and the planted groups.
    (noisy(0.7), ['holds', 'holds']),
    (constant(0.75), ['fails', 'fails']),
  ],
)
def test_where_groups_are_disjoint_overlap_wins_nothing(overlap, expected):
  levels = {FEDAVG: constant(0.4), 'kmeans': constant(0.6), 'second': constant(0.7), 'overlap': overlap}
  levels |= {'overworse': constant(0.1), 'planted': constant(0.7)}
  assert _expected(levels, 'disjoint') == {b: expected for b in BUDGETS}


def test_overlap_may_beat_poor_disjoint_clusterings_and_still_not_the_planted_groups():
  levels = {
    FEDAVG: constant(0.4),
    'kmeans': constant(0.5),
    'overlap': constant(0.6),
    'planted': constant(0.7),
  }
  assert _expected(levels, 'disjoint')[ROUNDS] == ['holds', 'fails']


def test_a_win_that_is_not_shown_counts_though_its_mean_is_larger():
  # Differences of 0.05 to the first, which leave no doubt, and of 0.5 or −0.3 to the second.
  second = [[0.2, 1.0, 0.2, 1.0, 0.2, 1.0]] * 3
  levels = {FEDAVG: constant(0.4), 'kmeans': constant(0.65), 'second': second, 'overlap': constant(0.7)}
  found = {form: _checks(levels, form) for form in ('overlapping', 'disjoint')}
  words = 'The planted groups overlap, so the best overlapping clustering beats every disjoint one'
  finding = found['overlapping'][f'{words}, at equal rounds and at equal client-rounds', _BOTH]
  assert (finding.verdict, finding.note) == ('undecided', 'overlap against second, the nearest')
  words = 'The planted groups are disjoint, so no overlapping clustering beats every disjoint one'
  finding = found['disjoint'][f'{words}, at equal rounds and at equal client-rounds', _BOTH]
  assert finding.verdict == 'holds' and finding.note.startswith('overlap against second')


@pytest.mark.parametrize(
  ('labels', 'missing'),
  [
    (('kmeans', 'overlap'), 'planted'),
    (('overlap', 'planted'), 'disjoint'),
    (('kmeans', 'planted'), 'overlapping'),
  ],
)
def test_disjoint_groups_need_all_three(labels, missing):
  found = _checks({FEDAVG: constant(0.5)} | {label: constant(0.6) for label in labels}, 'disjoint')
  notes = [f.note for (words, _), f in found.items() if f.verdict == 'not run' and 'planted groups' in words]
  assert f'these runs have no {missing} clustering' in notes


@pytest.mark.parametrize(
  ('best', 'verdict'),
  [
    (constant(0.5), 'holds'),
    (noisy(0.5), 'holds'),
    (constant(0.45), 'holds'),
    (constant(0.51), 'fails'),
  ],
)
def test_where_there_is_nothing_to_find_no_clustering_beats_fedavg(best, verdict):
  levels = {FEDAVG: constant(0.5), LOCAL: constant(0.9), 'kmeans': best, 'overlap': constant(0.4)}
  assert _expected(levels, 'one') == {b: [verdict] for b in BUDGETS}


def test_one_client_decides_nothing():
  levels = {FEDAVG: constant(0.5, 1, 1), 'kmeans': constant(0.6, 1, 1)}
  runs = comparison_runs.make(levels, groups=1)
  found = verdicts.make_checks(_statistics(runs), 'one')
  assert {check.finding.verdict for check in found} == {'undecided', 'not run'}


def _form(partition='label_swapped', truths=None, **data):
  results = {
    'population': {'truths': truths or {}},
    'config': ExperimentConfig(DataConfig(partition=partition, **data)).to_json(),
  }
  return verdicts.planted_form(comparison_runs.typed([(0, results)]))


_DISJOINT, _OVERLAPPING = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], [[1.0, 0.3, 1.0], [0.0, 0.7, 0.0]]


@pytest.mark.parametrize(
  ('arguments', 'form'),
  [
    ({'truths': {'group': _DISJOINT}}, 'disjoint'),
    ({'truths': {'group': _OVERLAPPING}, 'partition': 'mixture'}, 'overlapping'),
    ({'truths': {'digit': _OVERLAPPING, 'label set': _DISJOINT}, 'partition': 'pathological'}, 'overlapping'),
    ({'truths': {'group': [[1.0, 1.0, 1.0]]}}, 'one'),
    ({'truths': {'group': [[1.0, 1.0, 1.0]]}, 'label_skew': 0.5}, 'unknown'),
    ({'partition': 'iid'}, 'one'),
    ({'partition': 'quantity_skew'}, 'one'),
    ({'partition': 'dirichlet'}, 'unknown'),
    ({'partition': 'by_writer'}, 'unknown'),
  ],
)
def test_form_of_the_planted_groups(arguments, form):
  assert _form(**arguments) == form


def test_a_truth_that_overlaps_under_one_seed_overlaps():
  runs = comparison_runs.make({FEDAVG: constant(0.5), 'kmeans': constant(0.5)})
  assert verdicts.planted_form(comparison_runs.typed(runs)) == 'disjoint'
  runs[1][1]['population']['truths'] = {'group': [[1.0] * 6, [0.0, *[1.0] * 5]]}
  assert verdicts.planted_form(comparison_runs.typed(runs)) == 'overlapping'


def test_nothing_is_expected_where_nothing_is_known():
  assert _expected({FEDAVG: constant(0.5), 'kmeans': constant(0.6)}, 'unknown') == {b: [] for b in BUDGETS}


def test_the_answer_in_words():
  levels = {FEDAVG: constant(0.5), LOCAL: constant(0.55), 'kmeans': constant(0.6), 'overlap': constant(0.7)}
  levels |= {'same': noisy(0.5), 'poor': constant(0.4), 'planted': constant(0.8)}
  found = _statistics(comparison_runs.make(levels, {'overlap': constant(0.5)}))
  assert answer.headline(found) == (
    'Against FedAvg without clusters at equal rounds, planted (+30.0 points, 95% interval +30.0 to +30.0), overlap '
    '(+20.0 points, 95% interval +20.0 to +20.0) and kmeans (+10.0 points, 95% interval +10.0 to +10.0) helped; same '
    '(0.0 points, 95% interval −4.4 to +4.4) made no clear difference; poor (−10.0 points, 95% interval −10.0 to −10.0) harmed. '
    'Where seeds differ as here, 3 seeds show a difference of 1 point in four of five comparisons or more (paired t-test over '
    'seeds, 5%).'
  )
  first, second, alone = answer.sentences(found)
  assert first == (
    'At equal rounds the best overlapping clustering, overlap (70.0%), is better than the best disjoint one, kmeans '
    '(60.0%): +10.0 points (95% interval +10.0 to +10.0 points).'
  )
  assert second.startswith('At equal client-rounds') and 'overlap (50.0%), is worse than' in second
  assert alone == 'Better than every client alone: kmeans and overlap.'


def test_without_clusterings_there_is_no_answer():
  runs = comparison_runs.make({FEDAVG: constant(0.5)})
  assert answer.headline(_statistics(runs)).startswith('These runs have no clustering')
  assert answer.sentences(_statistics(runs)) == []


def _two(level=0.6, **options):
  return comparison_runs.make({FEDAVG: constant(0.5), 'kmeans': constant(level)}, **options)


def _set_ari(runs, seeds, ari):
  for seed in seeds:
    runs[seed][1]['clusterings'][0]['recovery']['group'] |= {'ari': ari, 'omega': ari}
  return runs


def test_a_comparison_without_faults_raises_no_alarm():
  assert _alarms(_two()) == []


@pytest.mark.parametrize(
  ('level', 'words'), [(0.6, 'better than FedAvg’s, but'), (0.5, 'not clearly different')]
)
def test_fine_accuracy_with_wrong_groups_under_any_seed(level, words):
  (alarm,) = _alarms(_set_ari(_two(level), (0, 2), 0.89))
  assert words in alarm and 'kmeans (lowest ARI 0.89 for “group”, wrong under 2 of 3 seeds)' in alarm
  assert _alarms(_set_ari(_two(level), (0, 2), 0.9)) == []


def test_wrong_groups_behind_a_loss_are_no_surprise():
  assert _alarms(_set_ari(_two(0.4), (0,), 0.1)) == []


def test_one_truth_that_is_met_is_enough_and_one_group_is_none():
  runs = _two(truth='overlapping')
  for _, results in runs:
    results['clusterings'][0]['recovery'] = {
      'digit': {'ari': None, 'nmi': None, 'omega': 0.1}, 'label set': {'ari': 1.0, 'nmi': 1.0, 'omega': 1.0}
    }  # fmt: skip
  assert _alarms(runs) == []
  runs[1][1]['clusterings'][0]['recovery']['label set']['ari'] = 0.2
  (alarm,) = _alarms(runs)
  assert 'lowest ARI 0.20 for “label set”, wrong under 1 of 3 seeds' in alarm
  runs = _set_ari(_two(), (0, 1, 2), 0.0)
  for _, results in runs:
    results['population']['truths'] = {'group': [[1.0] * 6]}
  assert _alarms(runs) == []


def _set_clusters(runs, seeds, sizes):
  for seed in seeds:
    ids = iter(runs[seed][1]['population']['client_ids'])
    clusters = [[next(ids) for _ in range(size)] for size in sizes]
    runs[seed][1]['clusterings'][0] |= {'clusters': clusters, 'num_clusters': len(clusters)}
  return runs


@pytest.mark.parametrize(
  ('sizes', 'words'),
  [
    ((6,), 'All clients are in one cluster: kmeans (1 of 3 seeds).'),
    ((1, 1, 4), 'More than half of the clusters have a single client: kmeans (1 of 3 seeds).'),
    ((1, 1, 2, 2), None),
    ((1, 5), None),
  ],
)
def test_collapsed_clusters(sizes, words):
  assert _alarms(_set_clusters(_two(), (1,), sizes)) == ([] if words is None else [words])


def test_planted_groups_that_are_small_are_no_collapse():
  runs = comparison_runs.make({FEDAVG: constant(0.5), 'planted': constant(0.6)})
  assert _alarms(_set_clusters(runs, (0,), (1, 1, 4))) == []


@pytest.mark.parametrize(('seeds', 'count'), [(1, '1 seed was'), (2, '2 seeds were'), (3, None)])
def test_few_seeds(seeds, count):
  found = _alarms(comparison_runs.make({FEDAVG: constant(0.5, seeds), 'kmeans': constant(0.6, seeds)}))
  assert (not found) if count is None else (f'Only {count} run:' in found[0] and len(found) == 1)


def test_recovery_is_one_measure_over_all_seeds():
  runs = _two()
  runs[1][1]['clusterings'][0]['recovery']['group'] |= {'ari': None, 'nmi': None, 'omega': 0.5}
  typed = comparison_runs.typed(runs)
  (scores,) = alarms.recoveries(read_contenders(typed)[1], typed)
  assert {s.measure for s in scores} == {'Omega'} and [s.value for s in scores] == [1.0, 0.5, 1.0]
  assert {s.planted for s in scores} == {2}


def test_seeds_that_are_too_few_are_told_with_how_many_would_do():
  # Means of the seeds: +1, +3, +2 and -2 points; a spread of 2.16 points.
  levels = {FEDAVG: constant(0.5, 4), 'kmeans': [[0.51] * 6, [0.53] * 6, [0.52] * 6, [0.48] * 6]}
  headline = answer.headline(_statistics(comparison_runs.make(levels)))
  needed = seeds_needed(float(np.std([0.01, 0.03, 0.02, -0.02], ddof=1)), 0.01)
  assert (
    needed > 4
    and 'kmeans (+1.0 points, 95% interval ' in headline
    and 'made no clear difference. ' in headline
  )
  assert (
    '4 seeds are too few for kmeans: where seeds differ as here (standard deviation 2.2 points), ' in headline
  )
  assert f'{needed} would show one of 1 point, in four of five comparisons' in headline


def test_a_large_difference_needs_fewer_seeds_than_one_of_a_point():
  levels = {FEDAVG: constant(0.5, 2), 'kmeans': [[0.7] * 6, [0.64] * 6]}
  headline = answer.headline(_statistics(comparison_runs.make(levels)))
  spread = float(np.std([0.2, 0.14], ddof=1))
  assert (
    f'{seeds_needed(spread, 0.17)} would show differences as large as here and {seeds_needed(spread, 0.01)} would'
    in headline
  )


def test_one_seed_is_too_few_and_clear_answers_need_no_more():
  one = comparison_runs.make({FEDAVG: constant(0.5, 1), 'kmeans': constant(0.6, 1)})
  assert 'One seed is too few' in answer.headline(_statistics(one))
  clear = answer.headline(_statistics(_two()))
  assert clear.endswith('3 seeds are enough for that: no interval holds zero.') and 'too few' not in clear


def test_a_score_that_is_called_wrong_does_not_print_as_nearly_right():
  told = ' '.join(_alarms(_set_ari(_two(), (0,), 0.8996)))
  assert 'groups are wrong: kmeans (lowest ARI 0.8996 for' in told
  assert 'lowest ARI 0.86 for' in ' '.join(_alarms(_set_ari(_two(), (0,), 0.86)))
