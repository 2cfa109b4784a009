"""Who is compared, read from runs: kinds, budgets, costs, and runs that are not of one experiment."""

import dataclasses

import pytest

from tests.made_up import comparison_runs, in_json
from tests.made_up.comparison_runs import DITTO, FEDAVG, FINE_TUNED, LOCAL, constant
from tests.made_up.finished_run import MODEL_BYTES, ROWS
from tests.made_up.refusals import refused
from tff_cluster.aggregation import rules
from tff_cluster.base.cost import Cost
from tff_cluster.scorecard.contenders import (
  BYTES,
  CLIENT_ROUNDS,
  KINDS,
  PASSES,
  ROUNDS,
  checked,
  owners,
  read_contenders,
)

# Six clients, two rounds of Phase 1 and four of Phase 2; the overlapping clustering trains ten clients a round.
_LEVELS = {
  FEDAVG: 0.5,
  LOCAL: 0.4,
  FINE_TUNED: 0.55,
  DITTO: 0.56,
  'kmeans': 0.6,
  'overlap': 0.7,
  'planted': 0.8,
}
_KINDS = dict(zip(_LEVELS, (*KINDS[:4], 'disjoint', 'overlapping', 'oracle'), strict=True))


def _runs(names=tuple(_LEVELS), seeds=2, **changes):
  accuracies = {name: constant(_LEVELS[name], seeds) for name in names}
  return comparison_runs.make(accuracies, {'overlap': constant(0.65, seeds)}, **changes)


def _read(runs):
  return {c.name: c for c in read_contenders(in_json.typed_runs(runs))}


@pytest.fixture(scope='module')
def found():
  return _read(_runs())


def test_every_row_is_a_contender_in_the_order_of_the_page(found):
  assert {name: c.kind for name, c in found.items()} == _KINDS and list(found) == list(_KINDS)
  assert [c.name for c in found.values() if c.is_clustering] == ['kmeans', 'overlap', 'planted']
  runs = _runs((FEDAVG, 'kmeans', 'planted'), truth='mixture')
  runs[1][1]['clusterings'][0]['overlapping'] = True
  ids = runs[0][1]['population']['client_ids']
  runs[0][1]['clusterings'][0] |= {'clusters': [ids[:1], ids[1:2], ids[2:]], 'num_clusters': 3}
  fedavg, kmeans, oracle = _read(runs).values()  # Every client alone is a contender only where it was run.
  # Overlapping under one seed is overlapping; planted groups that overlap are still the oracle.
  assert (fedavg.kind, kmeans.kind, oracle.kind) == ('fedavg', 'overlapping', 'oracle')
  assert [run.singletons for run in kmeans.runs] == [2, 0]
  assert (
    oracle.runs[0].memberships == 1.5
  )  # Groups of a mixture: every second of six clients is in two of them.


@pytest.mark.parametrize(('unit', 'budget'), [('bytes', BYTES), ('passes', PASSES)])
def test_equal_cost_is_counted_in_what_the_runs_say(unit, budget):
  runs = _runs()
  for _, results in runs:
    results['config']['evaluation']['budget'] = unit
  found = {contender.name: contender for contender in read_contenders(comparison_runs.typed(runs))}
  for contender in found.values():
    for run in contender.runs:
      assert list(run.accuracy) == list(run.cost) == [ROUNDS, budget]
  overlap = found['overlap'].runs[0]
  assert (overlap.accuracy[budget] == 0.65).all() and overlap.cost[budget].client_rounds == 20


def test_costs_are_those_of_phase_2_and_budgets_differ_only_where_a_clustering_costs_more(found):
  for name, level in _LEVELS.items():
    for run in found[name].runs:
      equal_cost = 0.65 if name == 'overlap' else level
      assert (run.accuracy[ROUNDS] == level).all() and (run.accuracy[CLIENT_ROUNDS] == equal_cost).all()
  for name in (FEDAVG, LOCAL, 'kmeans'):
    cost = found[name].runs[0].cost
    assert list(cost) == [ROUNDS, CLIENT_ROUNDS]
    for at in cost.values():
      assert (at.client_rounds, at.rows_trained, at.passes) == (24, 24 * ROWS, 24 * ROWS * 3)
  # What clients train for themselves comes on top, and is not stopped earlier: three rounds, or as many as FedAvg's.
  for name, trained in ((FINE_TUNED, 24 + 6 * 3), (DITTO, 2 * 24)):
    assert {at.client_rounds for at in found[name].runs[0].cost.values()} == {trained}
  # Ten clients a round: FedAvg's 24 client-rounds pay two rounds of them.
  run = found['overlap'].runs[0]
  for budget, trained in ((ROUNDS, 40), (CLIENT_ROUNDS, 20)):
    expected = Cost(trained, trained, trained, 20 * trained, 10 * trained, ROWS * trained)
    assert run.cost[budget] == expected
    assert found[LOCAL].runs[0].cost[budget].bytes == 0
    for name in (FEDAVG, FINE_TUNED, DITTO):
      assert found[name].runs[0].cost[budget].bytes_up == 24 * MODEL_BYTES


def test_global_accuracies():
  runs = _runs()
  results = runs[0][1]
  results['baseline']['evaluation']['global']['accuracy'] = 0.55
  clustering = results['clusterings'][0]
  clustering['cluster_scores']['blended']['global'] = [0.25, 0.75]
  for name, right in (('average', 0.3), ('weighted', 0.35)):
    clustering['evaluations'][name]['global']['accuracy'] = right
  found = {name: c.runs[0].global_accuracy for name, c in _read(runs).items()}
  assert found['kmeans'] == {'average': 0.3, 'weighted': 0.35, 'blended': 0.5}
  assert set(found[FEDAVG].values()) == {0.55} and found[LOCAL] == found[DITTO] == {}


def test_only_rules_that_a_run_has_measured_are_read(monkeypatch):
  average = dataclasses.replace(rules.RULES['average'], name='newer', roles=frozenset())
  found = {**rules.RULES, average.name: average}
  monkeypatch.setattr(rules, '_found', lambda: found)
  runs = _runs()
  for clustering in runs[1][1]['clusterings']:
    clustering['evaluations']['newer'] = clustering['evaluations']['average']
  first, second = _read(runs)['kmeans'].runs
  for figure in ('global_accuracy', 'rule_accuracy'):
    measured = getattr(second, figure)
    assert 'newer' not in getattr(first, figure) and measured['newer'] == measured['average']


def test_the_order_of_runs_does_not_matter_and_seeds_and_places_of_data_may_differ():
  runs = _runs()[::-1]
  for seed, results in runs:
    results['config']['data'] |= {'dataset': 'mnist', 'data_seed': 7 * seed, 'data_dir': f'/data/{seed}'}
  assert [seed for seed, _ in checked(in_json.typed_runs(runs))] == [0, 1]
  assert [[run.seed for run in c.runs] for c in _read(runs).values()] == [[0, 1]] * 7


def test_clusterings_are_found_by_name_wherever_they_stand_among_those_of_a_run():
  runs = _runs()
  # One that failed under a seed and was run again is the last there; so is a rule.
  for (_, results), of_run in zip(runs, (['vote', 'gate'], ['gate', 'vote']), strict=True):
    results['config']['evaluation']['aggregation'] = of_run
  for of_run in (runs[1][1]['clusterings'], runs[1][1]['config']['clusterings']):
    of_run.append(of_run.pop(0))
  found = _read(runs)
  assert list(found) == list(_KINDS)
  for name, contender in found.items():
    assert [run.accuracy[ROUNDS].mean() for run in contender.runs] == pytest.approx(2 * [_LEVELS[name]])


def test_validation_rows_choose_by_own_models_where_those_are_told():
  runs = _runs()
  runs[1][1]['validation'] = {
    'overlap': {'at_end': 0.9, 'at_equal_cost': 0.8},
    'planted': {'at_end': 0.3, 'at_equal_cost': None},
  }
  found = _read(runs)
  first, second = (run.validation for run in found['overlap'].runs)
  assert first == pytest.approx({ROUNDS: 0.7, CLIENT_ROUNDS: 0.65})
  assert second == {ROUNDS: 0.9, CLIENT_ROUNDS: 0.8}
  assert found['planted'].runs[1].validation == {ROUNDS: 0.3, CLIENT_ROUNDS: 0.3}


def test_clients_are_the_same_under_all_seeds_where_rows_come_with_their_owners():
  runs = _runs()
  assert owners(list(_read(runs).values())) is None
  for _, results in runs:
    results['config']['data'] |= {'dataset': 'emnist', 'partition': 'by_writer'}
  assert owners(list(_read(runs).values())) == [results['population']['client_ids'] for _, results in runs]


def test_runs_of_another_experiment_are_refused():
  def changed(section, **change):
    runs = _runs()
    config = runs[1][1]['config'][section]
    (config[0] if isinstance(config, list) else config).update(change)
    return runs

  fewer = _runs()
  del fewer[1][1]['clusterings'][0]
  refused(
    _read,
    (changed('training', learning_rate=0.5), 'training.learning_rate is 0.1 for seed 0 and 0.5 for seed 1'),
    (changed('data', num_groups=3), 'data.num_groups is 2 for seed 0 and 3 for seed 1'),
    (changed('clusterings', num_clusters=3), 'clusterings is '),
    (fewer, 'clusterings that were run is '),
  )


def test_runs_without_their_seeds_are_refused():
  (_, first), (_, second) = _runs((FEDAVG, 'kmeans'))
  refused(
    _read,
    ([], 'at least one finished run, given none'),
    ([(0, first), (0, first)], 'seed 0 is given twice'),
    ([(3, first), (1, second)], 'the run given for seed 3 was trained with seed 0'),
  )
