"""What only some comparisons have: an overlap dial, new clients, malicious clients. Numbers by hand, and one page with all three."""

import json

import numpy as np
import pytest

from tests.made_up import comparison_runs, run_with_malicious, run_with_new_clients
from tests.made_up.comparison_runs import FEDAVG, constant, noisy, scattered
from tests.made_up.written_page import WrittenPage
from tff_cluster.base.words import signed
from tff_cluster.report.malicious_section import isolation_words
from tff_cluster.scorecard import paired_statistics
from tff_cluster.scorecard.contenders import CLIENT_ROUNDS, ROUNDS, checked, read_contenders
from tff_cluster.studies.comparison import dial as dials
from tff_cluster.studies.comparison import malicious, new_clients, page

# Student's interval over three seeds that differ by 0.1, wider than the bootstrap.
_STUDENT = 4.303 * 0.1 / 3**0.5

# --- The overlap dial ---

_THRESHOLDS = ('0', 'quantile:0.25', 'quantile:1')
_OWN = (0.62, 0.9, 0.65)
_VALIDATION = [(0.5, 0.8, 0.7), (0.5, 0.8, 0.7), (0.5, 0.6, 0.7)]


def _with_dial(validation=_VALIDATION, kmeans=0.7, cheaper=0):
  """Returns runs of 6 clients under as many seeds as `validation` has; the dial has mean accuracies _OWN, and validation[seed][position]."""
  labels = [f'dial_{i:02d}' for i in range(3)]
  seeds = len(validation)
  accuracies = {
    FEDAVG: constant(0.6, seeds),
    'kmeans': noisy(kmeans, seeds) if isinstance(kmeans, float) else kmeans,
  }
  accuracies |= {label: noisy(value, seeds) for label, value in zip(labels, _OWN, strict=True)}
  runs = comparison_runs.make(accuracies)
  for (_, results), of_seed in zip(runs, validation, strict=True):
    positions = [c for c in results['clusterings'] if c['label'] in labels]
    configured = [c for c in results['config']['clusterings'] if c['name'] in labels]
    for i, (clustering, value) in enumerate(zip(positions, of_seed, strict=True)):
      clustering['parameters']['distance_threshold'] = configured[i]['distance_threshold'] = _THRESHOLDS[i]
      clustering['threshold'] = [0.0, 2.5, 9.0][i]
      clustering['history']['validation_accuracy'][-1] = value
    positions[-1]['cost']['client_rounds'] -= cheaper
  return runs


def _dial(runs):
  ordered = checked(comparison_runs.typed(runs))
  return dials.read_dial(ordered, read_contenders(ordered), 0.99)


def test_validation_rows_choose_a_position_under_every_seed():
  dial = _dial(_with_dial())
  assert dial.chosen_positions == {ROUNDS: (1, 1, 2), CLIENT_ROUNDS: (1, 1, 2)}
  assert [run.accuracy[ROUNDS].mean() for run in dial.chosen.runs] == pytest.approx([0.9, 0.9, 0.65])
  assert dial.summary(dial.chosen, ROUNDS).mean.mean == pytest.approx((0.9 + 0.9 + 0.65) / 3)
  # Test rows choose position 1 under all seeds, and say so.
  assert dials.hindsight(dial, ROUNDS) == 1
  chosen, hindsight = dials.sentences(dial)
  assert '(0.25, 0.25, together)' in chosen and 'Chosen on validation rows' in chosen
  assert hindsight.startswith('In hindsight, by test rows, the best of 3 positions is “0.25”: 90.0%')
  assert dial.thresholds == ((0.0,) * 3, (2.5,) * 3, (9.0,) * 3)
  assert [dial.label(i) for i in range(3)] == ['alone', '0.25', 'together']
  # Of positions that are equally good, the cheapest.
  assert _dial(_with_dial([(0.5, 0.8, 0.8)] * 3, cheaper=5)).chosen_positions[ROUNDS] == (2, 2, 2)


def test_at_equal_cost_the_position_is_chosen_by_validation_at_that_budget():
  runs = _with_dial()
  for _, results in runs:
    _, alone, _, together = results['clusterings']
    for position, validation, accuracy in ((alone, 0.95, 0.4), (together, 0.1, 0.2)):
      own = position['evaluations']['own'] | {'client_accuracy': [accuracy] * 6}
      position['equal_cost'] = {
        'round': 3, 'cost': position['cost'], 'validation_accuracy': validation, 'evaluation': own,
      }  # fmt: skip
  dial = _dial(runs)
  assert dial.chosen_positions == {ROUNDS: (1, 1, 2), CLIENT_ROUNDS: (0, 0, 0)}
  assert dial.summary(dial.chosen, CLIENT_ROUNDS).mean.mean == pytest.approx(0.4)
  assert dial.summary(dial.chosen, ROUNDS).mean.mean == pytest.approx((0.9 + 0.9 + 0.65) / 3)
  assert dial.against[CLIENT_ROUNDS].overlapping.mean.mean == pytest.approx(0.4)


@pytest.mark.parametrize(
  ('kmeans', 'seeds', 'verdict'),
  [
    (0.7, 6, 'holds'),
    (0.7, 5, '5 seeds'),
    (scattered(0.9, 6), 6, 'undecided'),
    (0.9, 6, 'fails'),  # Practically the same is not better.
    (0.99, 6, 'fails'),
  ],
)
def test_whether_the_dial_with_its_90_percent_beats_disjoint_clusters_can_fail(kmeans, seeds, verdict):
  checks = dials.make_checks(_dial(_with_dial([(0.5, 0.8, 0.7)] * seeds, kmeans)))
  assert [check.budgets for check in checks] == [(ROUNDS,), (CLIENT_ROUNDS,)]
  assert checks[0].finding.verdict == verdict and checks[0].finding.note.startswith('against kmeans')


def test_without_a_disjoint_clustering_nothing_is_claimed_and_positions_are_no_contenders():
  runs = _with_dial()
  found = read_contenders(comparison_runs.typed(runs))
  assert [contender.name for contender in found] == [FEDAVG, 'kmeans']
  for _, results in runs:
    results['clusterings'] = results['clusterings'][1:]
    results['config']['clusterings'] = results['config']['clusterings'][1:]
  assert {check.finding.verdict for check in dials.make_checks(_dial(runs))} == {'not run'}


# --- New clients ---


def _add_new(runs, gains, own_regret=0.0, clients=4):
  """Every new client gains gains[label][seed] over FedAvg's 0.5; others gain nothing. Returns the runs."""
  for seed, results in runs:
    labels = [clustering['label'] for clustering in results['clusterings']]
    own = {label: [0.5 + gains.get(label, [0.0] * 7)[seed]] * clients for label in labels}
    each = {label: [[value + own_regret for value in own[label]], [0.1] * clients] for label in labels}
    assigned = {label: [[0, 1] if label == 'over' else [0]] * clients for label in labels}
    run_with_new_clients.add(results, [0.5] * clients, each, assigned, own)
  return runs


def _joining(runs):
  typed = comparison_runs.typed(runs)
  return new_clients.measure(typed, read_contenders(typed), 200)


def test_numbers_of_new_clients_by_hand():
  runs = comparison_runs.make({name: constant(0.7) for name in (FEDAVG, 'k', 'over')})
  _add_new(runs, {'k': [0.1, 0.2, 0.3], 'over': [0.2] * 3}, own_regret=0.05)
  found = _joining(runs)
  k, over = found
  assert (k.name, over.name) == ('k', 'over')
  assert k.over_fedavg.interval.mean == pytest.approx(0.2) and k.accuracy.mean == pytest.approx(0.7)
  assert k.regret.mean == pytest.approx(0.05) and k.regret.low == pytest.approx(0.05)
  assert (k.over_fedavg.seeds.better, k.over_fedavg.clients.better) == (3, 12)
  assert k.over_fedavg.interval.high == pytest.approx(0.2 + _STUDENT, abs=1e-4)
  assert k.over_fedavg.side == 'unclear' and over.runs[0].memberships == 2.0
  verdicts = [check.finding.verdict for check in new_clients.make_checks(found)]
  assert verdicts == ['3 seeds', '3 seeds']  # For the others see below.


def test_new_clients_who_all_have_rows_of_every_group_are_told_by_their_shares():
  runs = _add_new(comparison_runs.make({name: constant(0.7, 2) for name in (FEDAVG, 'k')}), {})
  for share_error, (_, results) in zip((0.25, 0.75), runs, strict=True):
    for people in (results['population'], results['new_clients']):
      people['truths'] = {'group': [[0.5] * len(people['client_ids'])] * 2}
    told = {'ari': None, 'nmi': None, 'omega': 1.0, 'share_error': share_error}
    results['clusterings'][0]['new_clients']['recovery'] = {'group': told}
  section = new_clients.section(_joining(runs))
  assert section.data['means'].rows[1][-1] == '0.50 (share match)'


def test_new_clients_in_every_cluster_are_told_by_their_shares_too():
  runs = _add_new(comparison_runs.make({name: constant(0.7, 2) for name in (FEDAVG, 'over')}), {})
  for _, results in runs:
    clients = results['population']['client_ids']
    shares = [[0.25] * len(clients), [0.75] * len(clients)]
    both = {'clusters': [clients, clients], 'num_clusters': 2, 'memberships': 2.0, 'shares': shares}
    results['clusterings'][0] |= both | {'overlapping': True}
    told = {'ari': None, 'nmi': None, 'omega': 0.0, 'share_error': 0.25}
    results['clusterings'][0]['new_clients']['recovery'] = {'group': told}
  section = new_clients.section(_joining(runs))
  assert section.data['means'].rows[1][-1] == '0.75 (share match)'


@pytest.mark.parametrize(('gain', 'verdict'), [(0.1, 'helps'), (-0.1, 'harms'), (0.001, 'equivalent')])
def test_new_clients_have_verdicts_from_six_seeds_on(gain, verdict):
  runs = comparison_runs.make({name: constant(0.7, 7) for name in (FEDAVG, 'k', 'over')})
  found = _joining(_add_new(runs, {'k': [gain] * 7}))
  findings = [check.finding for check in new_clients.make_checks(found)]
  assert [finding.verdict for finding in findings] == [verdict, 'equivalent']


def test_the_oracle_makes_no_verdict_on_a_method_harder():
  # Six seeds on one side have p = 2 / 2^6 = 0.03, which is decided alone, and 0.06 after Holm's correction for two.
  runs = comparison_runs.make(
    {name: constant(level, 6) for name, level in ((FEDAVG, 0.5), ('k', 0.7), ('planted', 0.8))}
  )
  found = _joining(_add_new(runs, {'k': [0.1] * 6, 'planted': [0.2] * 6}))
  assert [(joining.name, joining.is_oracle) for joining in found] == [('k', False), ('planted', True)]
  assert [check.finding.verdict for check in new_clients.make_checks(found)] == ['helps', 'helps']


@pytest.mark.parametrize(
  ('other', 'told'), [(0.1, {'k = l': 'helps'}), (0.2, {'k': 'undecided', 'l': 'undecided'})]
)
def test_identical_clusterings_are_judged_once_unless_new_clients_fare_otherwise(other, told):
  runs = comparison_runs.make({name: constant(0.7, 6) for name in (FEDAVG, 'k', 'l')})
  found = _joining(_add_new(runs, {'k': [0.1] * 6, 'l': [other] * 6}))
  checks = new_clients.make_checks(found)
  assert dict(zip([j.name for j in found], [c.finding.verdict for c in checks], strict=True)) == told


# --- Malicious clients ---

_CLIENTS, _BAD = 5, (1, 4)


def _with_malicious(beside=(0.0, 1.0, 0.5), gains=(0.1, 0.2, 0.3), dropped=0):
  """Returns runs in which honest clients gain gains[seed] over FedAvg's 0.5 with k, and malicious ones have 0.9."""
  own = [[0.9 if k in _BAD else 0.5 + gain for k in range(_CLIENTS)] for gain in gains]
  half = constant(0.5, clients=_CLIENTS)
  runs = comparison_runs.make({FEDAVG: half, 'k': own, 'planted': half})
  for seed, results in runs:
    run_with_malicious.add(results, _BAD, {'k': beside[seed], 'planted': 0.0}, dropped)
  return runs


def _harm(runs, samples=50):
  typed = checked(comparison_runs.typed(runs))
  return malicious.measure(typed, read_contenders(typed), samples)


def test_numbers_of_malicious_clients_by_hand():
  fedavg, k, planted = _harm(_with_malicious(dropped=2), 200)
  assert (fedavg.name, fedavg.over_fedavg, fedavg.beside, fedavg.dropped) == (FEDAVG, None, (), (2, 2, 2))
  assert fedavg.honest.mean == pytest.approx(0.5) and fedavg.malicious == pytest.approx(0.5)
  assert k.honest.mean == pytest.approx(0.7) and k.malicious == pytest.approx(0.9)
  assert k.over_fedavg.interval.mean == pytest.approx(0.2) and k.over_fedavg.harmed == 0.0
  assert k.over_fedavg.interval.high == pytest.approx(0.2 + _STUDENT, abs=1e-4)
  # Three honest clients of five under each of three seeds.
  assert (k.over_fedavg.clients.better, k.over_fedavg.seeds.better) == (9, 3)
  assert k.beside == (0.0, 1.0, 0.5) and not k.is_oracle and planted.is_oracle


@pytest.mark.parametrize(('beside', 'told'), [([0.0, 0.0, 0.0], 0.0), ([0.0, 0.6, 0.0], 0.2)])
def test_isolated_is_isolated_under_every_seed_and_the_oracle_is_no_method(beside, told):
  runs = _with_malicious(beside)
  section = malicious.section(_harm(runs), comparison_runs.typed(runs))
  assert section.data['story'] == isolation_words({'k': told})


def test_a_seed_without_malicious_or_without_honest_clients_leaves_nothing_to_compare():
  for chosen in ([], range(_CLIENTS)):
    runs = _with_malicious()
    run_with_malicious.add(runs[1][1], chosen, {'k': 0.0, 'planted': 0.0})
    assert _harm(runs) == []


def test_what_differs_at_equal_cost_alone_is_two_contenders_of_a_page_here_too():
  half = constant(0.5, clients=_CLIENTS)
  early = {'over': constant(0.4, clients=_CLIENTS), 'over more': half}
  runs = comparison_runs.make(dict.fromkeys((FEDAVG, *early), half), early)
  for _, results in runs:
    run_with_malicious.add(results, _BAD, dict.fromkeys(early, 0.0))
  contenders = read_contenders(comparison_runs.typed(runs))
  assert (
    [harm.name for harm in _harm(runs)] == [contender.name for contender in contenders] == [FEDAVG, *early]
  )


def test_the_order_of_clients_does_not_matter_to_what_honest_ones_have():
  runs = _with_malicious(gains=(0.05, 0.2, -0.1))
  before = _harm(runs)
  for _, results in runs:
    results['population']['client_ids'].reverse()
    results['baseline']['evaluation']['client_accuracy'].reverse()
    for clustering in results['clusterings']:
      clustering['evaluations']['own']['client_accuracy'].reverse()
  for one, other in zip(before, _harm(runs), strict=True):
    np.testing.assert_allclose((one.honest.mean, one.malicious), (other.honest.mean, other.malicious))


# --- The page ---


def test_the_picture_of_the_dial_has_every_position_in_both_panels():
  ordered = checked(comparison_runs.typed(_with_dial()))
  rows = read_contenders(ordered)
  dial = dials.read_dial(ordered, rows, 0.99)
  *_, (name, *_, figure) = page._drawn(
    rows, paired_statistics.measure(rows, 0.99, samples=50), dial, 'rounds'
  )
  assert name == 'overlap_dial' and len(figure.axes) == 2
  for axes in figure.axes:
    (positions,) = (marks for marks in axes.collections if marks.get_gid() == 'positions of the dial')
    np.testing.assert_allclose(positions.get_offsets()[:, 1], 100 * np.array(_OWN))


def test_a_page_with_all_three(tmp_path):
  runs = _add_new(_with_dial(), {'kmeans': [-0.1] * 3})
  for _, results in runs:
    run_with_malicious.add(results, _BAD, {c['label']: 0.0 for c in results['clusterings']})
  path = page.write(comparison_runs.typed(runs), {}, tmp_path)
  WrittenPage(path)
  text, document = path.read_text(), json.loads((tmp_path / 'comparison.json').read_text())

  section, dial = text[text.index('The overlap dial') :], document['dial']
  assert (tmp_path / 'figures' / 'overlap_dial.svg').exists()
  assert all(words in section for words in ('alone', 'together', '90.0%', 'Chosen on validation rows'))
  assert [entry['quantile'] for entry in dial['positions']] == [None, 0.25, 1.0]
  means = [entry['budgets'][ROUNDS]['accuracy']['mean'] for entry in dial['positions']]
  assert means == pytest.approx(_OWN)
  assert dial['chosen_positions'][ROUNDS] == [1, 1, 2] and len(dial['checks']) == 2
  assert dial['chosen'][ROUNDS]['over_fedavg']['interval']['mean'] == pytest.approx((0.3 + 0.3 + 0.05) / 3)
  lines = (tmp_path / 'comparison.csv').read_text().splitlines()
  assert sum(line.startswith('dial_') for line in lines) == 3 * 3 * 2

  assert '<h2>New clients</h2>' in text and 'hindsight' in text
  told = {check['words']: check['verdict'] for check in document['checks'] if check['kind'] == 'new clients'}
  words = 'The clusters that kmeans assigns a new client to, against FedAvg’s model'
  assert told == {words: '3 seeds'} and words in text
  assert '100.0% of the new clients are worse off than with FedAvg' in text
  (kmeans,) = document['new_clients']
  assert kmeans['clustering'] == 'kmeans'
  assert kmeans['over_fedavg']['interval']['mean'] == pytest.approx(-0.1)
  assert [(seed['clients'], seed['fedavg']) for seed in kmeans['seeds']] == [(4, pytest.approx(0.5))] * 3

  assert '<h2>Malicious clients</h2>' in text and '3 of 3' in text
  assert 'kmeans isolated them: no honest client shares a cluster' in text
  fedavg, kmeans = document['malicious']
  gain = signed(100 * kmeans['over_fedavg']['interval']['mean'])
  assert text.count('Means over clients count the malicious ones too') == 1
  assert f'The honest ones alone are beside FedAvg without clusters at {gain} points with kmeans.' in text
  assert (fedavg['contender'], kmeans['contender']) == (FEDAVG, 'kmeans')
  assert kmeans['honest_beside_malicious'] == [0.0] * 3 and fedavg['over_fedavg'] is None
  assert fedavg['honest']['mean'] == pytest.approx(0.6)
