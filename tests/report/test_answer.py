"""The answer in words follows from planted numbers."""

import dataclasses

import numpy as np
import pytest

from tests.made_up import finished_run as made_up
from tests.made_up import in_json
from tff_cluster.report import first_screen
from tff_cluster.report.answer import answer_run, cost_ratio, told_alarms
from tff_cluster.scorecard import summary


def _run(**options):
  return made_up.make_run(**{'methods': ('kmeans',)} | options)[0]


def _answers(results):
  """Returns the sentence of the first screen, the answers and, of each, all that it says."""
  typed = in_json.typed(results)
  headline = first_screen.sentence(summary.of_run(typed), [typed.config.training.seed])
  answers = answer_run(typed)
  return headline, answers, [' '.join((*each.sentences, *each.alarms)) for each in answers]


def _costs(results):
  typed = in_json.typed(results)
  return [cost_ratio(typed, each) for each in typed.clusterings]


def _set_own(results, gain, index=0):
  own = np.asarray(results['baseline']['evaluation']['client_accuracy']) + gain
  results['clusterings'][index]['evaluations']['own']['client_accuracy'] = own.tolist()


def test_a_planted_gain_is_told_as_help_with_its_size():
  results = _run(methods=('kmeans', 'dynamic_distance', 'hierarchical'), spread=0.01)
  headline, answers, _ = _answers(results)
  baseline = np.asarray(results['baseline']['evaluation']['client_accuracy'])
  for answer, clustering in zip(answers, results['clusterings'], strict=True):
    differences = np.asarray(clustering['evaluations']['own']['client_accuracy']) - baseline
    assert answer.side == 'above'
    assert answer.over_baseline.mean == pytest.approx(differences.mean())
    assert (answer.helped, answer.harmed) == ((differences > 0).sum(), (differences < 0).sum())
  assert 'came out above it' in headline and 'one seed gives no verdict' in headline
  assert not any(word in headline for word in ('helped', 'harmed', 'below'))


def test_a_planted_loss_is_told_as_harm_and_with_exact_groups_as_the_trainings_fault():
  headline, (answer,), (told,) = _answers(_run(gain=-0.05, spread=0.01))
  assert answer.side == 'below' and 'training is to blame' in told
  assert 'came out below it' in headline
  assert not any(word in headline for word in ('helped', 'harmed', 'above'))


@pytest.mark.parametrize(
    ('gain', 'side', 'counts', 'in_headline', 'in_sentences'),
    [
        ([0.03, -0.03] * 10, 'unclear', (10, 10, 0), 'no difference is shown for kmeans (0.0 points', []),
        ([0.1], 'unclear', (1, 0, 0), 'no difference is shown for kmeans (+10.0 points, no interval: one client)', []),
        ([0.0, 0.04, -0.01, 0.02, 0.0], 'unclear', (2, 1, 2), 'no difference is shown',
         ['Most helped: c01 (+4.0 points)', 'Most harmed: c02 (−1.0 points)']),
        ([1e-5] * 4, 'above', (4, 0, 0), 'kmeans came out above it (+0.001 points, 95% interval +0.001 to +0.001)', [ 'Most helped: c00 (+0.001 points)']),
    ],
)  # fmt: skip
def test_what_few_clients_show_is_told_and_no_more(gain, side, counts, in_headline, in_sentences):
  results = _run(num_clients=len(gain), groups=1, truth='none')
  _set_own(results, np.array(gain))
  headline, (answer,), (told,) = _answers(results)
  assert answer.side == side and (answer.helped, answer.harmed, answer.unchanged) == counts
  assert in_headline in headline and ('came out' in headline) == (side == 'above')
  assert all(words in told for words in in_sentences)


@pytest.mark.parametrize(
  ('fedavg', 'over', 'alone'), [(0.6, '+20.0', '+10.0'), (0.5, '+20.0', '0.0'), (0.45, '+20.0', '−5.0')]
)
def test_what_the_extra_rounds_gave_without_clusters_is_told_with_its_sign(fedavg, over, alone):
  results = _run()
  results['phase1']['evaluation']['client_accuracy'] = [0.5] * 20
  results['baseline']['evaluation']['client_accuracy'] = [fedavg] * 20
  _set_own(results, 0.7 - fedavg)
  (told,) = _answers(results)[2]
  assert (
    f'Against the end of Phase 1 (50.0%) the own models differ by {over} points (95% interval over clients {over} to {over} points); '
    f'the extra rounds alone, without clusters, gave {alone} points.'
  ) in told


@pytest.mark.parametrize(
  ('gain', 'harmed', 'side', 'is_told'),
  [(0.1, 5, 'above', True), (0.1, 4, 'above', False), (0.03, 9, 'unclear', False), (0.0, 5, 'below', False)],
)
def test_a_quarter_of_the_clients_that_do_worse_is_an_alarm_where_the_mean_rose(gain, harmed, side, is_told):
  results = _run()
  _set_own(results, np.repeat([gain, -0.02], [20 - harmed, harmed]))
  _, (answer,), _ = _answers(results)
  words = f'The mean rose, but {harmed} of 20 clients do worse than without clusters.'
  assert answer.side == side and (words in answer.alarms) == is_told
  assert is_told or not any('do worse' in alarm for alarm in answer.alarms)


def test_equal_clusterings_are_told_and_have_equal_intervals():
  results = _run(methods=('kmeans', 'hierarchical', 'dynamic_distance'))
  for index in (0, 1):
    _set_own(results, np.linspace(-0.02, 0.05, 20), index)
  _, (first, second, _), told = _answers(results)
  assert 'the very clusters that hierarchical found' in told[0]
  assert 'the very clusters that kmeans found' in told[1]
  assert 'very clusters' not in told[2]
  # With soft memberships equal members may have other shares.
  clusters = results['clusterings'][0]['clusters']
  for index, share in enumerate((0.25, 0.5)):
    results['clusterings'][index]['shares'] = [[share] * 20] * len(clusters)
  assert not any('very clusters' in words for words in _answers(results)[2])
  assert (first.over_baseline, first.over_phase1) == (second.over_baseline, second.over_phase1)


@pytest.mark.parametrize(
  ('sizes', 'words'),
  [
    ([20], 'All clients have one model: '),
    ([1] * 20, 'Every client is alone in its cluster'),
    ([1, 4, 15], '3 clusters (1 of them with a single client)'),
  ],
)
def test_collapsed_clusterings_and_single_clients_are_told(sizes, words):
  results = _run()
  ids = iter(results['population']['client_ids'])
  chosen = [[next(ids) for _ in range(size)] for size in sizes]
  results['clusterings'][0] |= {'clusters': chosen, 'num_clusters': len(chosen)}
  _, _, (told,) = _answers(results)
  assert words in told


EXACTLY = 'exactly the planted groups “group” (4 planted, ARI 1.00)'


@pytest.mark.parametrize(
    ('options', 'in_answer', 'alarm'),
    [
        ({'methods': ('kmeans', 'hierarchical')}, EXACTLY, ''),
        ({'wrong_groups': True}, 'not the planted groups', 'groups are wrong'),
        ({'truth': 'none'}, 'no planted groups', ''),
        ({'groups': 1, 'methods': ('dynamic_distance',)}, 'nothing was planted', 'they reflect noise'),
    ],
)  # fmt: skip
def test_found_groups_are_told_beside_the_planted_ones(options, in_answer, alarm):
  _, answers, told = _answers(_run(**options))
  assert all(in_answer in each for each in told)
  for answer in answers:
    assert answer.side == 'above' and alarm in ' '.join(answer.alarms)
    assert bool(answer.alarms) == bool(alarm)


def test_overlapping_truth_is_scored_by_omega_and_all_truths_are_told():
  _, (answer,), (told,) = _answers(_run(truth='overlapping'))
  assert {r.truth: r.measure for r in answer.recoveries} == {'digit': 'Omega', 'label set': 'ARI'}
  assert 'not the planted groups “digit”' in told and 'exactly the planted groups “label set”' in told
  assert not answer.alarms


def test_overlap_is_told_with_its_cost():
  results = _run(methods=('kmeans', 'dynamic_distance'))
  (disjoint, overlapping), (_, _, told) = _costs(results), _answers(results)
  assert disjoint == 1.0 and 'client-rounds' not in told[0]
  assert overlapping == pytest.approx(results['clusterings'][1]['memberships'])
  assert f'{overlapping:.1f} times the client-rounds, bytes and passes of a disjoint clustering' in told[1]


def test_several_models_a_client_are_told_in_what_they_cost():
  results = _run(methods=('kmeans',))
  cost = results['clusterings'][0]['cost']
  # Four models down and one up are 2.5 times the bytes; a row forward through each of four, 7 / 3 of the passes.
  cost['models_down'], cost['bytes_down'] = 4 * cost['models_down'], 4 * cost['bytes_down']
  cost['rows_forward'] = 4 * cost['rows_trained']
  words = '2.5 times the bytes and 2.3 times the passes of a disjoint clustering (clients work with several models in a round)'
  _, _, (told,) = _answers(results)
  assert words in told and _costs(results) == [1.0]
  results['config']['evaluation']['budget'] = 'bytes'
  assert _costs(results) == [2.5]


# 20 clients, 5 rounds: 100 client-rounds. Of cohorts of a tenth, 2 clients a round; each of four clusters trains one of its five.
@pytest.mark.parametrize(
  ('tried', 'spent', 'fraction', 'words'),
  [
    (80, 180, 1.0, '1.8 times the client-rounds of a disjoint clustering (80 client-rounds tried thresholds that were not taken)'),
    (80, 200, 1.0, '(80 client-rounds tried thresholds that were not taken and 20 client-rounds gave what is clustered'),
    (0, 20, 0.1, '2.0 times the client-rounds of a disjoint clustering (every cluster trains at least one client a round)'),
  ],
)  # fmt: skip
def test_every_reason_of_a_cost_is_told_with_its_size(tried, spent, fraction, words):
  results = _run(methods=('hierarchical',))
  results['config']['training']['cohort_fraction'] = fraction
  clustering = results['clusterings'][0]
  clustering['choice'] = {'candidates': [], 'chosen': 0, 'best_on_test': 0, 'cost': {'client_rounds': tried}}
  clustering['cost']['client_rounds'] = spent
  results['baseline']['cost']['client_rounds'] = results['phase1']['cost']['client_rounds'] + round(
    100 * fraction
  )
  assert words in _answers(results)[2][0]


def test_rounds_that_alternate_train_one_cohort_of_all_clients():
  results = _run(methods=('hierarchical',))
  results['config']['training']['cohort_fraction'] = 0.1
  clustering = results['clusterings'][0] | {'choice': None}
  clustering['alternation'] = {'start': 'clustering', 'num_models': 4, 'changed': [0]}
  # Two clients in each of five rounds as FedAvg, and all twenty sent an update by which the start was clustered.
  clustering['cost']['client_rounds'] = 30
  results['clusterings'][0] = clustering
  results['baseline']['cost']['client_rounds'] = results['phase1']['cost']['client_rounds'] + 10
  (told,) = _answers(results)[2]
  words = '3.0 times the client-rounds of a disjoint clustering (20 client-rounds gave what is clustered, or what clusters start from)'
  assert words in told


def test_alarms_are_told_once_with_whom_they_are_about():
  _, (answer,), _ = _answers(_run(wrong_groups=True))
  (told,) = told_alarms([answer, dataclasses.replace(answer, label='ward')])
  assert told == f'kmeans and ward: {answer.alarms[0]}'
