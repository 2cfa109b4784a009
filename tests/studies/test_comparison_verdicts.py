"""Verdicts, each holding, undecided and failing; the answer in words; and alarms that go off and stay silent."""

import numpy as np
import pytest

from tests.made_up import comparison_runs
from tests.made_up.comparison_runs import DITTO, FEDAVG, FINE_TUNED, LOCAL, constant, noisy, scattered
from tff_cluster.experiment.config import DataConfig, ExperimentConfig
from tff_cluster.scorecard import paired_statistics
from tff_cluster.scorecard.contenders import CLIENT_ROUNDS, ROUNDS, read_contenders
from tff_cluster.scorecard.intervals import seeds_needed
from tff_cluster.studies.comparison import alarms, answer, sections, verdicts

_BOTH = (ROUNDS, CLIENT_ROUNDS)
_HELPS = 'kmeans against FedAvg'
_OVERLAP = 'Overlap beats disjoint'
_EVERY = 'The planted groups overlap, so an overlapping clustering beats every disjoint one'
_NO_ORACLE = 'The planted groups are disjoint, so no overlapping clustering beats them'
_NOT_EVERY = 'The planted groups are disjoint, so no overlapping clustering beats every disjoint one'
_NO_OVERLAP, _NO_DISJOINT = (
  f'not run: these runs have no {kind} clustering' for kind in ('overlapping', 'disjoint')
)
_NOTHING = 'There are no groups to find, so no clustering beats FedAvg'
# With six pairs together, fewer could not decide one.
_SEEDS = 8


def _made(levels, earlier=None, seeds=_SEEDS, clients=6, **options):
  """Returns runs; a number stands for the same accuracy of all clients under all seeds, and FedAvg has 0.5."""

  own, later = (
    {k: constant(v, seeds, clients) if isinstance(v, float) else v for k, v in given.items()}
    for given in ({FEDAVG: 0.5} | levels, earlier or {})
  )
  return comparison_runs.make(own, later, **options)


def _scattered(value):
  return scattered(value, _SEEDS)


def _statistics(runs):
  return paired_statistics.measure(read_contenders(comparison_runs.typed(runs)), 0.99, samples=200)


def _findings(runs, form):
  """Returns findings by statement and budgets."""
  found = verdicts.make_checks(_statistics(runs), form)
  return {(check.words.partition(', at equal')[0], check.budgets): check.finding for check in found}


_FIVE = {'kmeans': 0.6, 'overlap': 0.7, 'overworse': 0.1, 'planted': 0.9}
_APART = {'kmeans': 0.6, 'second': 0.7, 'overworse': 0.1, 'planted': 0.7}
# Differences of 0.05 to the first disjoint one, which leave no doubt, and of 0.1 and −0.1 by turns, to the second.
_UNSURE = {'kmeans': 0.65, 'second': _scattered(0.7), 'overlap': 0.7}


@pytest.mark.parametrize(
  ('form', 'levels', 'told'),
  [
    ('overlapping', {'kmeans': 0.6}, {_HELPS: 'helps: 0.0% of the clients are worse off than with FedAvg, the worst tenth +10.0 points', _OVERLAP: _NO_OVERLAP, _EVERY: _NO_OVERLAP}),
    ('unknown', {'kmeans': _scattered(0.5)}, {_HELPS: 'undecided: 50.0%'}),
    # Half of the clients lose what the others gain, under every seed: the mean stays, other clients could move it, and the worst tenth does not stay.
    ('unknown', {'kmeans': noisy(0.5, _SEEDS)}, {_HELPS: 'undecided: 50.0% of the clients are worse off than with FedAvg, the worst tenth −10.0'}),
    # Surely above zero, and yet within half a point.
    ('unknown', {'kmeans': 0.504}, {_HELPS: 'equivalent: 0.0%'}),
    ('unknown', {'kmeans': 0.506}, {_HELPS: 'helps: 0.0%'}),
    ('unknown', {'kmeans': 0.4}, {_HELPS: 'harms: 100.0%'}),
    ('overlapping', {'overlap': 0.6}, {_OVERLAP: _NO_DISJOINT, _EVERY: _NO_DISJOINT}),
    ('overlapping', _FIVE | {'second': 0.5}, dict.fromkeys((_OVERLAP, _EVERY), 'holds: overlap against kmeans')),
    ('overlapping', _FIVE | {'second': _scattered(0.7)}, {_OVERLAP: 'undecided: overlap against ', _EVERY: 'undecided: overlap against second'}),
    ('overlapping', _FIVE | {'second': 0.8}, dict.fromkeys((_OVERLAP, _EVERY), 'fails: overlap against second')),
    # As good is not better.
    ('overlapping', _FIVE | {'second': 0.7}, dict.fromkeys((_OVERLAP, _EVERY), 'fails: overlap against second')),
    # A win that is not shown counts though its mean is larger.
    ('overlapping', _UNSURE, {_EVERY: 'undecided: overlap against second, the nearest'}),
    ('disjoint', _UNSURE, {_NOT_EVERY: 'undecided: overlap against second'}),
    # It beats one disjoint clustering, not the other.
    ('disjoint', _APART | {'overlap': 0.65}, dict.fromkeys((_NO_ORACLE, _NOT_EVERY), 'holds: overlap against second')),
    ('disjoint', _APART | {'overlap': 0.7}, dict.fromkeys((_NO_ORACLE, _NOT_EVERY), 'holds: overlap against second = planted')),
    # That no win is shown does not show that there is none.
    ('disjoint', _APART | {'overlap': _scattered(0.7)}, dict.fromkeys((_NO_ORACLE, _NOT_EVERY), 'undecided')),
    ('disjoint', _APART | {'overlap': 0.75}, dict.fromkeys((_NO_ORACLE, _NOT_EVERY), 'fails: overlap against second')),
    # It may beat poor disjoint clusterings and still not the planted groups.
    ('disjoint', {'kmeans': 0.5, 'overlap': 0.6, 'planted': 0.7}, {_NO_ORACLE: 'holds', _NOT_EVERY: 'fails'}),
    ('disjoint', {'kmeans': 0.6, 'overlap': 0.6}, {_NO_ORACLE: 'not run: these runs have no planted clustering'}),
    ('disjoint', {'overlap': 0.6, 'planted': 0.6}, {_NOT_EVERY: _NO_DISJOINT}),
    ('disjoint', {'kmeans': 0.6, 'planted': 0.6}, {_NO_ORACLE: _NO_OVERLAP, _NOT_EVERY: _NO_OVERLAP}),
    ('one', {LOCAL: 0.9, 'kmeans': 0.5, 'overlap': 0.4}, {_NOTHING: 'holds: kmeans has the highest of 2 clusterings'}),
    ('one', {LOCAL: 0.9, 'kmeans': _scattered(0.5), 'overlap': 0.4}, {_NOTHING: 'undecided'}),
    ('one', {LOCAL: 0.9, 'kmeans': 0.51, 'overlap': 0.4}, {_NOTHING: 'fails: kmeans; Holm over 2'}),
  ],
)  # fmt: skip
def test_statements_come_out_each_way(form, levels, told):
  found = _findings(_made(levels), form)
  for statement, words in told.items():
    finding = found[statement, _BOTH]
    assert f'{finding.verdict}: {finding.note}'.startswith(words)


@pytest.mark.parametrize(('seeds', 'said'), [(1, 'one seed'), (2, 'two seeds'), (5, '5 seeds')])
def test_too_few_seeds_give_intervals_and_no_verdict(seeds, said):
  runs = _made(_FIVE, seeds=seeds)
  for form in ('overlapping', 'disjoint', 'one'):
    found = _findings(runs, form)
    told = {statement: finding for (statement, _), finding in found.items() if finding.verdict != 'not run'}
    # The one exception is a statement that many wins are needed for, all of which some seed denies.
    assert {finding.verdict for finding in told.values()} == {said}
    assert all('95% interval' in finding.ours for finding in told.values())


def test_so_many_are_judged_together_that_six_seeds_decide_nothing():
  alone, six = _findings(_made({'kmeans': 0.6}, seeds=6), 'unknown'), _made(_FIVE, seeds=6)
  assert alone[_HELPS, _BOTH].verdict == 'helps'
  together = _findings(six, 'unknown')[_HELPS, _BOTH]
  assert together.verdict == 'undecided' and together.note.endswith('Holm over 3 clusterings')


def test_planted_groups_are_judged_apart_from_the_methods():
  names = ('kmeans', 'second', 'same', 'over', 'overmore', 'overlap')
  six = {name: 0.6 + 0.02 * i for i, name in enumerate(names)}
  found = _findings(_made(six | {'planted': 0.9}), 'unknown')
  # Seven together could not be decided by eight seeds: 7 * 2^(1 - 8) = 0.055.
  assert found[_HELPS, _BOTH].verdict == 'helps' and found[_HELPS, _BOTH].note.endswith(
    'Holm over 6 clusterings'
  )
  planted = found['planted against FedAvg', _BOTH]
  assert planted.verdict == 'helps' and 'Holm' not in planted.note
  pairs = _findings(_made({'kmeans': 0.5, 'overlap': 0.6, 'planted': 0.7}), 'disjoint')
  assert all('Holm' not in pairs[statement, _BOTH].note for statement in (_NO_ORACLE, _NOT_EVERY))


def test_test_rows_have_no_say_in_which_pair_is_judged():
  # On test rows `over` and `second` are the best of their kind, on validation rows `overmore` and `kmeans`.
  runs = _made({'kmeans': 0.6, 'second': 0.9, 'over': 0.9, 'overmore': 0.7})
  for seed, results in runs:
    for clustering in results['clusterings']:
      if clustering['label'] in ('kmeans', 'overmore'):
        clustering['history']['validation_accuracy'][-1] = 0.99
      if clustering['label'] == 'over' and seed == 7:
        clustering['history']['validation_accuracy'][-1] = 1.0
  found = _statistics(runs).chosen[ROUNDS]
  assert found.overlapping.name == 'overmore (7 seeds) and over (1 seed)' and found.disjoint.name == 'kmeans'
  assert found.difference.by_seed == pytest.approx([0.1] * 7 + [0.3])
  assert 'chosen on validation rows under each seed' in _findings(runs, 'unknown')[_OVERLAP, (ROUNDS,)].note


def test_a_clustering_with_one_model_for_all_is_on_neither_side_if_there_is_another_one():
  runs = _made({'kmeans': 0.6, 'second': 0.9, 'over': 0.9, 'overmore': 0.7})
  for seed, results in runs:
    for clustering in results['clusterings']:
      ids = results['population']['client_ids']
      if clustering['label'] == 'over':
        clustering |= {'clusters': [ids, ids], 'shares': [[0.5] * len(ids)] * 2}
      elif clustering['label'] == 'second' and seed < 5:
        clustering['clusters'] = [ids]
  found = _statistics(runs).chosen[ROUNDS]
  assert (
    found.overlapping.name == 'overmore' and found.disjoint.name == 'kmeans (5 seeds) and second (3 seeds)'
  )
  for _, results in runs:
    results['clusterings'] = [c for c in results['clusterings'] if c['label'] != 'overmore']
  assert _statistics(runs).chosen[ROUNDS].overlapping.name == 'over'


def test_a_clustering_that_leaves_most_clients_alone_is_on_neither_side_if_there_is_another_one():
  runs = _made({'kmeans': 0.6, 'second': 0.9, 'third': 0.8, 'over': 0.9})
  for seed, results in runs:
    ids = results['population']['client_ids']
    half = len(ids) // 2
    for clustering in results['clusterings']:
      if clustering['label'] == 'second':
        # Half of them alone under some seeds, one more under the others.
        alone = half + (seed >= 5)
        clustering['clusters'] = [*([one] for one in ids[:alone]), ids[alone:]]
  assert _statistics(runs).chosen[ROUNDS].disjoint.name == 'second (5 seeds) and third (3 seeds)'
  for _, results in runs:
    results['clusterings'] = [c for c in results['clusterings'] if c['label'] in ('second', 'over')]
  assert _statistics(runs).chosen[ROUNDS].disjoint.name == 'second'


def test_a_clustering_that_beats_every_other_one_needs_no_correction_for_how_many_they_are():
  # 36 pairs, of which Holm over all takes 11 seeds; each of three may win, which takes 7.
  levels = {f'kmeans{k}': 0.5 + 0.01 * k for k in range(12)} | {'over': 0.7, 'overmore': 0.8, 'overlap': 0.4}
  found = _findings(_made(levels), 'overlapping')[_EVERY, _BOTH]
  assert found.verdict == 'holds' and found.note == (
    'overmore against kmeans11, the nearest; Holm over 3 overlapping clusterings'
  )
  assert _findings(_made(levels), 'disjoint')[_NOT_EVERY, _BOTH].verdict == 'fails'
  assert _findings(_made(levels, seeds=6), 'overlapping')[_EVERY, _BOTH].verdict == 'undecided'
  # Eleven wins and a loss, which eight seeds do not show among twelve, are no win over all.
  one_loss = levels | {'kmeans11': 0.75, 'overmore': 0.72}
  assert _findings(_made(one_loss), 'overlapping')[_EVERY, _BOTH].verdict == 'undecided'
  lost = levels | {'over': 0.6, 'overmore': 0.61}
  # That each loses to one of twelve is told by ten seeds, and not by eight.
  assert _findings(_made(lost), 'disjoint')[_NOT_EVERY, _BOTH].verdict == 'undecided'
  assert _findings(_made(lost, seeds=10), 'disjoint')[_NOT_EVERY, _BOTH].verdict == 'holds'


def test_where_budgets_differ_each_has_its_line_and_its_best():
  levels = {'kmeans': 0.6, 'overlap': 0.7, 'overmore': 0.65}
  found = _findings(_made(levels, {'overlap': 0.4, 'overmore': 0.55}), 'overlapping')
  told = {key: (finding.verdict, finding.note) for key, finding in found.items()}
  assert told['overlap against FedAvg', (ROUNDS,)][0] == 'helps'
  assert told['overlap against FedAvg', (CLIENT_ROUNDS,)][0] == 'harms'
  for statement in (_OVERLAP, _EVERY):
    free, paid = told[statement, (ROUNDS,)], told[statement, (CLIENT_ROUNDS,)]
    assert free[0] == 'holds' and free[1].startswith('overlap against kmeans')
    assert paid[0] == 'fails' and paid[1].startswith('overmore against kmeans')


def test_one_client_decides_nothing_and_nothing_is_expected_where_nothing_is_known():
  runs = _made({'kmeans': 0.6}, seeds=1, clients=1, groups=1)
  assert {finding.verdict for finding in _findings(runs, 'one').values()} == {'one seed', 'not run'}
  kinds = {check.kind for check in verdicts.make_checks(_statistics(runs), 'unknown')}
  assert kinds == {'overlap', 'helps'}


_DISJOINT, _SHARED = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], [[1.0, 0.3, 1.0], [0.0, 0.7, 0.0]]


@pytest.mark.parametrize(
  ('truths', 'data', 'form'),
  [
    # One list of truths a seed.
    ([{'group': _DISJOINT}], {}, 'disjoint'),
    ([{'group': _SHARED}], {'partition': 'mixture'}, 'overlapping'),
    ([{'digit': _SHARED, 'label set': _DISJOINT}], {'partition': 'pathological'}, 'overlapping'),
    ([{'group': _DISJOINT}, {'group': _SHARED}], {}, 'overlapping'),
    ([{'group': [[1.0, 1.0, 1.0]]}], {}, 'one'),
    ([{'group': [[1.0, 1.0, 1.0]]}], {'label_skew': 0.5}, 'unknown'),
    ([{}], {'partition': 'iid'}, 'one'),
    # Who is malicious is no structure of the data.
    ([{'malicious': _DISJOINT}], {'partition': 'iid'}, 'one'),
    ([{'group': _SHARED, 'malicious': _DISJOINT}], {'partition': 'mixture'}, 'overlapping'),
    ([{}], {'partition': 'quantity_skew'}, 'one'),
    ([{}], {'partition': 'dirichlet'}, 'unknown'),
  ],
)
def test_form_of_the_planted_groups(truths, data, form):
  config = ExperimentConfig(DataConfig(**{'partition': 'label_swapped'} | data)).to_json()
  runs = [(seed, {'population': {'truths': known}, 'config': config}) for seed, known in enumerate(truths)]
  assert verdicts.planted_form(comparison_runs.typed(runs)) == form


# --- The answer ---


_LEVELS = {
  LOCAL: 0.55,
  DITTO: 0.65,
  FINE_TUNED: 0.85,
  'kmeans': 0.6,
  'overlap': 0.7,
  'same': scattered(0.45, _SEEDS),
  'poor': 0.4,
  'planted': 0.8,
}


def test_the_answer_in_words():
  found = _statistics(_made(_LEVELS, {'overlap': 0.5}))
  # Where seeds scatter by 0.1, many more would be needed.
  assert answer.enough_seeds(found).startswith(
    '8 seeds are too few for same: gains vary from seed to seed with a standard deviation of up to'
  )
  first, second, alone, tuned, ditto = answer.sentences(found)
  assert first == (
    'At equal rounds the overlapping clustering that validation rows choose, overlap (70.0%), is better than the disjoint one that they '
    'choose, kmeans (60.0%): +10.0 points (95% interval +10.0 to +10.0 points).'
  )
  assert second.startswith('At equal client-rounds') and 'overlap (50.0%), is worse than' in second
  assert alone == 'Better than every client alone: kmeans and overlap.'
  assert tuned == 'Better than fine-tuned FedAvg: no clustering.'
  assert ditto == 'Better than Ditto: overlap.'


@pytest.mark.parametrize(
  ('overlap', 'words'),
  [
    (0.61, 'is better than'),
    (0.604, 'is practically as good (within 0.5 points) as'),
    (0.596, 'is practically as good (within 0.5 points) as'),
    (_scattered(0.6), 'is not shown to be better or worse than'),
    (0.59, 'is worse than'),
  ],
)
def test_each_verdict_on_overlap_has_its_words(overlap, words):
  first, *_ = answer.sentences(_statistics(_made({'kmeans': 0.6, 'overlap': overlap})))
  assert f'%), {words} the disjoint one that they choose, kmeans (60.0%): ' in first


def test_seeds_that_are_too_few_are_told_with_how_many_would_do():
  # Means of the seeds: +1, +3, +2 and -2 points; a spread of 2.16 points.
  levels = {'kmeans': [[0.51] * 6, [0.53] * 6, [0.52] * 6, [0.48] * 6]}
  told = answer.enough_seeds(_statistics(_made(levels, seeds=4)))
  needed = seeds_needed(float(np.std([0.01, 0.03, 0.02, -0.02], ddof=1)), 0.01)
  assert needed > 4
  assert (
    '4 seeds are too few for kmeans: gains vary from seed to seed with a standard deviation of up to 2.2 points. '
    f'A paired t-test over seeds (5%) has a chance of 80% to show a gain of 1 point with {needed} seeds.'
  ) in told
  # A large difference needs fewer than one of a point.
  told = answer.enough_seeds(_statistics(_made({'kmeans': [[0.7] * 6, [0.64] * 6]}, seeds=2)))
  large, small = (seeds_needed(float(np.std([0.2, 0.14], ddof=1)), size) for size in (0.17, 0.01))
  assert f'to show a gain as large as here with {large} seeds and one of 1 point with {small} seeds.' in told
  alone = answer.enough_seeds(_statistics(_made({'kmeans': 0.6}, seeds=1)))
  assert (
    alone.startswith('1 seed gives intervals and no verdict')
    and 'does not tell how much seeds differ' in alone
  )
  assert answer.enough_seeds(_statistics(_made({'kmeans': 0.6}))) == 'At equal rounds no interval holds zero.'


def test_verdicts_take_more_seeds_the_more_clusterings_there_are():
  levels = {'kmeans': 0.6, 'second': 0.7, 'over': 0.8}
  few, some = (answer.enough_seeds(_statistics(_made(levels, seeds=seeds))) for seeds in (3, 6))
  # 3 * 2^(1 - 7) = 0.047.
  takes = 'a sign test over seeds for 3 clusterings with Holm’s correction takes 7. At equal rounds no interval holds zero.'
  assert few == f'3 seeds give intervals and no verdict: {takes}'
  assert some == f'With 6 seeds no difference can be shown: {takes}'
  told = answer.sentences(_statistics(_made({LOCAL: 0.55} | levels, seeds=3)))
  assert told[0].startswith(
    'At equal rounds and at equal client-rounds the overlapping clustering that validation rows choose, over (80.0%)'
  )
  assert 'came out above the disjoint one that they choose, second (70.0%)' in told[0]
  assert told[0].endswith(', and 3 seeds give no verdict.')
  assert told[1] == 'Above every client alone, by intervals over 3 seeds: kmeans, second and over.'


# --- Alarms ---


def _alarms(runs):
  typed = comparison_runs.typed(runs)
  return alarms.make_alarms(read_contenders(typed), _statistics(runs), typed)


def _with(runs, seeds, **changes):
  """Changes the first clustering under some seeds; returns the runs."""
  for seed in seeds:
    runs[seed][1]['clusterings'][0] |= changes
  return runs


def _scored(level, seeds, ari):
  return _with(_made({'kmeans': level}), seeds, recovery={'group': {'ari': ari, 'nmi': 0.5, 'omega': ari}})


@pytest.mark.parametrize(
  ('level', 'seeds', 'ari', 'words'),
  [
    (0.6, (0, 2), 0.89, ('above FedAvg’s, but', 'kmeans (lowest ARI 0.89 for “group”, wrong under 2 of 8 seeds)')),
    (0.5, (0,), 0.89, ('not clearly different', 'wrong under 1 of 8 seeds')),
    # What is called wrong does not print as nearly right.
    (0.6, (0,), 0.8996, ('groups are wrong: kmeans (lowest ARI 0.8996 for',)),
    (0.6, (0, 2), 0.9, ()),
    (0.4, (0,), 0.1, ()),  # Behind a loss, wrong groups are no surprise.
  ],
)  # fmt: skip
def test_fine_accuracy_with_wrong_groups(level, seeds, ari, words):
  found = _alarms(_scored(level, seeds, ari))
  assert len(found) == (1 if words else 0) and all(part in found[0] for part in words)


def test_one_truth_that_is_met_is_enough_and_one_group_is_none():
  missed = {'ari': None, 'nmi': None, 'omega': 0.1, 'share_error': 0.9}
  met = {'ari': 1.0, 'nmi': 1.0, 'omega': 1.0}
  runs = _made({'kmeans': 0.6}, truth='overlapping')
  assert _alarms(_with(runs, range(8), recovery={'digit': missed, 'label set': met})) == []
  (alarm,) = _alarms(_with(runs, (1,), recovery={'digit': missed, 'label set': met | {'ari': 0.2}}))
  assert 'lowest ARI 0.20 for “label set”, wrong under 1 of 8 seeds' in alarm
  # That attackers are found says nothing about the groups.
  runs = _made({'kmeans': 0.6})
  for _, results in runs:
    truths = results['population']['truths']
    truths['malicious'] = [[1.0] * 5 + [0.0], [0.0] * 5 + [1.0]]
  runs = _with(runs, range(8), recovery={'group': met, 'malicious': met})
  (alarm,) = _alarms(_with(runs, (1,), recovery={'group': met | {'ari': 0.2}, 'malicious': met}))
  assert 'lowest ARI 0.20 for “group”' in alarm
  runs = _scored(0.6, range(8), 0.0)
  for _, results in runs:
    results['population']['truths'] = {'group': [[1.0] * 6]}
  assert _alarms(runs) == []


@pytest.mark.parametrize(
  ('label', 'sizes', 'words'),
  [
    ('kmeans', (6,), 'All clients have one model: kmeans (1 of 8 seeds).'),
    ('kmeans', (1, 1, 4), 'More than half of the clusters have a single client: kmeans (1 of 8 seeds).'),
    ('kmeans', (1, 1, 2, 2), None),
    ('planted', (1, 1, 4), None),  # Planted groups that are small are no collapse.
  ],
)
def test_collapsed_clusters(label, sizes, words):
  runs = _made({label: 0.6})
  ids = iter(runs[1][1]['population']['client_ids'])
  clusters = [[next(ids) for _ in range(size)] for size in sizes]
  found = _alarms(_with(runs, (1,), clusters=clusters, num_clusters=len(clusters)))
  assert found == ([] if words is None else [words])


def test_models_without_clients_are_counted_by_seeds():
  runs = _made({'kmeans': 0.6})
  clusters = len(runs[0][1]['clusterings'][0]['clusters'])

  def alarms(models):
    rounds = {'num_models': models, 'changed': [0, 1]}
    return _alarms(_with(runs, (0, 2), alternation=rounds, told=models, num_clusters=clusters))

  assert alarms(clusters + 2) == ['Models ended without clients: kmeans (2 of 8 seeds).']
  assert alarms(clusters) == []


def test_where_all_clients_ended_with_one_model_no_model_is_said_to_be_without_clients():
  runs = _made({'kmeans': 0.6})
  ids = runs[0][1]['population']['client_ids']
  rounds = {'num_models': 2, 'changed': [0, 1]}
  found = _alarms(_with(runs, (0, 2), alternation=rounds, clusters=[ids, ids], num_clusters=2))
  assert found == ['All clients have one model: kmeans (2 of 8 seeds).']


@pytest.mark.parametrize(('seeds', 'count'), [(1, '1 seed was'), (5, '5 seeds were'), (6, None)])
def test_few_seeds_and_no_alarm_without_faults(seeds, count):
  found = _alarms(_made({'kmeans': 0.6}, seeds=seeds))
  assert (not found) if count is None else (f'Only {count} run:' in found[0] and len(found) == 1)


def test_recovery_is_one_measure_over_all_seeds():
  runs = _with(_made({'kmeans': 0.6}), (1,), recovery={'group': {'ari': None, 'nmi': None, 'omega': 0.5}})
  typed = comparison_runs.typed(runs)
  (scores,) = alarms.recoveries(read_contenders(typed)[1], typed)
  told = [(score.measure, score.value, score.planted) for score in scores]
  assert told == [('Omega', value, 2) for value in (1.0, 0.5, *[1.0] * 6)]
  # Where every client is in every group, Omega is 1 for whoever puts all into all.
  exact = {'group': {'ari': None, 'nmi': None, 'omega': 1.0, 'share_error': 0.25}}
  for _, results in _with(runs, range(8), recovery=exact):
    results['population']['truths'] = {'group': [[0.25] * 6, [0.75] * 6]}
  typed = comparison_runs.typed(runs)
  (scores,) = alarms.recoveries(read_contenders(typed)[1], typed)
  assert [(score.measure, score.value) for score in scores] == [('share match', 0.75)] * 8
  assert 'lowest share match 0.75 for “group”, wrong under 8 of 8 seeds' in _alarms(runs)[0]


def test_a_difference_is_coloured_by_its_verdict_and_not_by_its_interval():
  # One seed of eight is below zero: the interval of the gain lies above it, and the sign test has 0.07.
  gains = np.array([0.05] * 7 + [-0.001])
  levels = {'overlap': (0.5 + gains[:, None] * np.ones(6)).tolist(), 'kmeans': 0.5, 'second': 0.4}
  found = _statistics(_made(levels))
  (gain,) = (s.gain for s in found.summaries[ROUNDS] if s.name == 'overlap')
  assert gain.side == 'above' and verdicts.of_gains(found, ROUNDS)['overlap'] == 'undecided'
  table = sections.contenders_table(found, ROUNDS)
  looks = {row[0].words: row[4].look for row in table.rows if row[0].words != FEDAVG}
  assert looks == {'overlap': 'chip none', 'kmeans': 'chip none', 'second': 'chip bad'}
  (matrix,) = sections.matrix_section(found).data['tables']
  (row,) = matrix.rows
  told = {cell.notes[1].partition(';')[0]: cell.look for cell in row[1:]}
  assert told == {'undecided': 'chip none', 'helps': 'chip good'}
