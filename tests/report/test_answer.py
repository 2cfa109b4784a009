"""The answer in words follows from planted numbers."""

import numpy as np
import pytest

from tests.made_up import finished_run as made_up
from tff_cluster.report.answer import answer_run


def _answers(**options):
  results, _ = made_up.make_run(**options)
  headline, answers = answer_run(results)
  return results, headline, answers


def _set_own(results, index, accuracy):
  results['clusterings'][index]['evaluations']['own']['client_accuracy'] = list(accuracy)


def _base(results):
  return np.asarray(results['baseline']['evaluation']['client_accuracy'])


def test_a_planted_gain_is_told_as_help_with_its_size():
  results, headline, answers = _answers(gain=0.05, spread=0.01)
  for answer, clustering in zip(answers, results['clusterings'], strict=True):
    differences = np.asarray(clustering['evaluations']['own']['client_accuracy']) - _base(results)
    assert answer.effect == 'helped'
    assert answer.over_baseline.mean == pytest.approx(differences.mean())
    assert (answer.helped, answer.harmed) == ((differences > 0).sum(), (differences < 0).sum())
    assert answer.sentences[0].startswith(f'{answer.label} helped')
    assert f'+{100 * differences.mean():.1f} points' in answer.sentences[0]
  assert 'helped the clients' in headline and 'harmed' not in headline


def test_a_planted_loss_is_told_as_harm():
  _, headline, answers = _answers(gain=-0.05, spread=0.01)
  assert {a.effect for a in answers} == {'harmed'}
  assert 'harmed the clients' in headline and 'helped' not in headline


def test_nothing_is_claimed_where_the_interval_holds_zero():
  results, _ = made_up.make_run(methods=('kmeans',))
  swing = np.tile([0.03, -0.03], 10)
  _set_own(results, 0, _base(results) + swing)
  headline, (answer,) = answer_run(results)
  assert answer.effect == 'unclear' and answer.over_baseline.low < 0 < answer.over_baseline.high
  assert 'does not show that it helped or harmed' in answer.sentences[0]
  assert (answer.helped, answer.harmed, answer.unchanged) == (10, 10, 0)
  assert 'no clear difference' in headline and 'helped' not in headline


def test_counts_of_helped_harmed_and_unchanged_name_the_extremes():
  results, _ = made_up.make_run(num_clients=5, groups=1, methods=('kmeans',), truth='none')
  _set_own(results, 0, _base(results) + np.array([0.0, 0.04, -0.01, 0.02, 0.0]))
  _, (answer,) = answer_run(results)
  assert (answer.helped, answer.harmed, answer.unchanged) == (2, 1, 2)
  who = answer.sentences[1]
  assert 'Most helped: c01 (+4.0 points)' in who and 'Most harmed: c02 (−1.0 points)' in who


def test_equal_clusterings_are_told_and_have_equal_intervals():
  results, _ = made_up.make_run(methods=('kmeans', 'hierarchical', 'dynamic_distance'))
  own = results['clusterings'][0]['evaluations']['own']['client_accuracy']
  _set_own(results, 1, own)
  _, answers = answer_run(results)
  assert 'the very clusters that hierarchical found' in ' '.join(answers[0].sentences)
  assert 'the very clusters that kmeans found' in ' '.join(answers[1].sentences)
  assert 'very clusters' not in ' '.join(answers[2].sentences)
  assert (
    answers[0].over_baseline == answers[1].over_baseline and answers[0].over_phase1 == answers[1].over_phase1
  )


def test_single_clients_are_counted():
  results, _ = made_up.make_run(methods=('kmeans',))
  first, *others = results['clusterings'][0]['clusters']
  split = [[first[0]], first[1:], *others]
  results['clusterings'][0] |= {'clusters': split, 'num_clusters': len(split)}
  _, (answer,) = answer_run(results)
  assert '5 clusters (1 of them with a single client)' in ' '.join(answer.sentences)


def test_exact_groups_are_told_as_exact():
  _, headline, answers = _answers(methods=('kmeans', 'hierarchical'))
  for answer in answers:
    assert 'exactly the planted groups “group” (4 planted, ARI 1.00)' in ' '.join(answer.sentences)
    assert not answer.alarms
  assert 'found exactly by kmeans and hierarchical' in headline


def test_good_accuracy_with_wrong_groups_raises_an_alarm():
  _, headline, answers = _answers(methods=('kmeans',), wrong_groups=True)
  assert answers[0].effect == 'helped'
  assert any('groups are wrong' in alarm for alarm in answers[0].alarms)
  assert 'not the planted groups' in ' '.join(answers[0].sentences)
  assert 'No clustering found the planted groups exactly' in headline


def test_harm_with_exact_groups_raises_another():
  _, _, answers = _answers(methods=('kmeans',), gain=-0.05, spread=0.01)
  assert any('training is to blame' in alarm for alarm in answers[0].alarms)


@pytest.mark.parametrize(('clusters', 'words'), [('one', 'one cluster'), ('all', 'alone in its cluster')])
def test_collapsed_clusterings_raise_an_alarm(clusters, words):
  results, _ = made_up.make_run(methods=('kmeans',))
  ids = results['population']['client_ids']
  chosen = [ids] if clusters == 'one' else [[i] for i in ids]
  results['clusterings'][0] |= {'clusters': chosen, 'num_clusters': len(chosen)}
  _, (answer,) = answer_run(results)
  assert any(words in alarm for alarm in answer.alarms)


def test_overlap_is_told_with_its_cost():
  results, _, answers = _answers(methods=('kmeans', 'dynamic_distance'))
  disjoint, overlapping = answers
  assert disjoint.cost == 1.0 and not any('client-rounds' in s for s in disjoint.sentences)
  assert overlapping.cost == pytest.approx(results['clusterings'][1]['memberships'])
  assert any(f'{overlapping.cost:.1f} times the client-rounds' in s for s in overlapping.sentences)


def test_overlapping_truth_is_scored_by_omega_and_all_truths_are_told():
  _, headline, answers = _answers(truth='overlapping', methods=('kmeans',))
  measures = {r.truth: r.measure for r in answers[0].recoveries}
  assert measures == {'digit': 'Omega', 'label set': 'ARI'}
  words = ' '.join(answers[0].sentences)
  assert 'not the planted groups “digit”' in words and 'exactly the planted groups “label set”' in words
  assert not any('wrong' in alarm for alarm in answers[0].alarms)
  assert 'found exactly by kmeans' in headline


def test_without_planted_groups_nothing_is_said_about_right_or_wrong():
  _, headline, answers = _answers(truth='none')
  assert (
    all('no planted groups' in ' '.join(a.sentences) for a in answers) and 'no planted groups' in headline
  )
  assert not any('wrong' in alarm for a in answers for alarm in a.alarms)


def test_clusters_where_nothing_was_planted_are_called_noise():
  results, _ = made_up.make_run(methods=('kmeans',))
  count = len(results['population']['client_ids'])
  results['population']['truths'] = {'iid': [[1.0] * count]}
  results['clusterings'][0]['recovery'] = {'iid': {'ari': 0.0, 'nmi': 0.0, 'omega': 0.0}}
  headline, (answer,) = answer_run(results)
  assert any('noise' in alarm for alarm in answer.alarms)
  assert 'nothing was planted' in ' '.join(answer.sentences) and 'exactly' not in headline


def test_one_client_has_no_interval_and_shows_nothing():
  results, _ = made_up.make_run(num_clients=1, groups=1, methods=('kmeans',), truth='none')
  _, (answer,) = answer_run(results)
  assert answer.effect == 'unclear' and 'no interval' in answer.sentences[0]


def test_answers_do_not_depend_on_the_order_of_clusterings():
  results, _ = made_up.make_run()
  _, forward = answer_run(results)
  _, backward = answer_run(results | {'clusterings': results['clusterings'][::-1]})
  assert [a.sentences for a in forward] == [a.sentences for a in backward[::-1]]


def _with_choice(other, extra=0):
  """Returns a run whose threshold was chosen on validation rows, and which spent so many client-rounds on that."""
  results, _ = made_up.make_run(methods=('hierarchical',))
  clustering = results['clusterings'][0]
  clustering['choice'] = {'candidates': [], 'chosen': 0, 'best_on_test': 0, 'other_client_rounds': other}
  clustering['ledger']['client_rounds'] += other + extra
  return results


def test_a_chosen_threshold_is_told_as_the_reason_of_its_cost():
  words = ' '.join(answer_run(_with_choice(80))[1][0].sentences)
  # 20 clients, 5 rounds: 100 client-rounds, and 80 for the cuts that were tried.
  assert (
    'took 1.8 times the client-rounds of a disjoint clustering (80 client-rounds tried thresholds' in words
  )
  assert 'at least one client' not in words


def test_every_reason_of_a_cost_is_told_with_its_size():
  words = ' '.join(answer_run(_with_choice(80, extra=20))[1][0].sentences)
  assert '80 client-rounds tried thresholds' in words and '20 client-rounds gave what is clustered' in words
  assert 'tried' not in ' '.join(answer_run(_with_choice(0, extra=20))[1][0].sentences)


def test_small_cohorts_are_a_reason_only_where_cohorts_are_small():
  results, _ = made_up.make_run(methods=('hierarchical',))
  results['config']['training']['cohort_fraction'] = 0.1
  # Two of 20 clients a round; each of the four clusters trains one of its five.
  results['clusterings'][0]['ledger']['client_rounds'] = 4 * 5
  words = ' '.join(answer_run(results)[1][0].sentences)
  assert '2.0 times' in words and '(every cluster trains at least one client a round)' in words


def test_a_tiny_gain_is_not_printed_as_none():
  results, _ = made_up.make_run(num_clients=4, groups=1, methods=('kmeans',), truth='none')
  _set_own(results, 0, _base(results) + 1e-5)
  headline, (answer,) = answer_run(results)
  assert answer.effect == 'helped' and 'kmeans (+0.001 points)' in headline
  assert '+0.001 points (95% interval over clients +0.001 to +0.001 points)' in answer.sentences[0]
  assert 'Most helped: c00 (+0.001 points)' in answer.sentences[1] or '(+0.001 points)' in answer.sentences[1]
