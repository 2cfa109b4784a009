"""Who is compared, read from runs: kinds, budgets, costs, and runs that are not of one experiment."""

import pytest

from tests.made_up import comparison_runs, in_json
from tests.made_up.comparison_runs import FEDAVG, LOCAL, constant
from tff_cluster.base.errors import InputError
from tff_cluster.scorecard.contenders import BUDGETS, CLIENT_ROUNDS, ROUNDS, checked, read_contenders

# Six clients, two rounds of Phase 1 and four of Phase 2; the overlapping clustering trains ten clients a round.
_ALL = {
  FEDAVG: constant(0.5, 2),
  LOCAL: constant(0.4, 2),
  'kmeans': constant(0.6, 2),
  'overlap': constant(0.7, 2),
  'planted': constant(0.8, 2),
}
_EARLIER = {'overlap': constant(0.65, 2)}


def _read(runs):
  return read_contenders(in_json.typed_runs(runs))


def _contenders(**changes):
  return {c.name: c for c in _read(comparison_runs.make(_ALL, _EARLIER, **changes))}


def test_every_row_is_a_contender_in_the_order_of_the_page():
  found = _contenders()
  kinds = {
    FEDAVG: 'fedavg',
    LOCAL: 'local',
    'kmeans': 'disjoint',
    'overlap': 'overlapping',
    'planted': 'oracle',
  }
  assert {name: c.kind for name, c in found.items()} == kinds and list(found) == list(kinds)
  assert [c.name for c in found.values() if c.is_clustering] == ['kmeans', 'overlap', 'planted']


def test_planted_groups_that_overlap_are_still_the_oracle():
  oracle = _contenders(truth='mixture')['planted']
  # Groups of a mixture: every second of six clients is in two of them.
  assert oracle.kind == 'oracle' and oracle.runs[0].memberships == 1.5


def test_without_local_training_there_is_no_such_row():
  runs = comparison_runs.make({name: _ALL[name] for name in (FEDAVG, 'kmeans')})
  assert [c.name for c in _read(runs)] == [FEDAVG, 'kmeans']


def test_a_clustering_that_overlaps_under_one_seed_is_overlapping():
  runs = comparison_runs.make({FEDAVG: constant(0.5), 'kmeans': constant(0.6)})
  runs[1][1]['clusterings'][0]['overlapping'] = True
  assert _read(runs)[1].kind == 'overlapping'


def test_budgets_differ_only_where_a_clustering_costs_more():
  found = _contenders()
  for name, level in ((FEDAVG, 0.5), (LOCAL, 0.4), ('kmeans', 0.6), ('planted', 0.8)):
    for run in found[name].runs:
      assert all((run.accuracy[budget] == level).all() for budget in BUDGETS)
  run = found['overlap'].runs[0]
  assert (run.accuracy[ROUNDS] == 0.7).all() and (run.accuracy[CLIENT_ROUNDS] == 0.65).all()


def test_costs_are_those_of_phase_2():
  found = _contenders()
  for name in (FEDAVG, LOCAL, 'kmeans'):
    assert found[name].runs[0].client_rounds == dict.fromkeys(BUDGETS, 6 * 4)
  # Ten clients a round: FedAvg's 24 client-rounds pay two rounds of them.
  run = found['overlap'].runs[0]
  assert run.client_rounds == {ROUNDS: 40, CLIENT_ROUNDS: 20}
  assert run.bytes_up == {ROUNDS: 400, CLIENT_ROUNDS: 200}
  assert run.bytes_down == {ROUNDS: 800, CLIENT_ROUNDS: 400}
  assert found[LOCAL].runs[0].bytes_up == dict.fromkeys(BUDGETS, 0)
  assert found[FEDAVG].runs[0].bytes_up == dict.fromkeys(BUDGETS, 24 * 6_653_480)


def test_global_accuracies():
  runs = comparison_runs.make(_ALL, _EARLIER)
  results = runs[0][1]
  results['baseline']['evaluation']['global']['accuracy'] = 0.55
  clustering = results['clusterings'][0]
  clustering['cluster_scores']['blended']['global'] = [0.25, 0.75]
  for name, right in (('average', 0.3), ('weighted', 0.35)):
    clustering['evaluations'][name]['global']['accuracy'] = right
  found = {c.name: c.runs[0].global_accuracy for c in _read(runs)}
  assert found['kmeans'] == {'average': 0.3, 'weighted': 0.35, 'blended': 0.5}
  assert set(found[FEDAVG].values()) == {0.55} and found[LOCAL] == {}


def test_single_clients_are_counted():
  runs = comparison_runs.make({FEDAVG: constant(0.5), 'kmeans': constant(0.6)})
  ids = runs[0][1]['population']['client_ids']
  runs[0][1]['clusterings'][0] |= {'clusters': [ids[:1], ids[1:2], ids[2:]], 'num_clusters': 3}
  assert [run.singletons for run in _read(runs)[1].runs] == [2, 0, 0]


def test_the_order_in_which_runs_are_given_does_not_matter():
  runs = comparison_runs.make(_ALL, _EARLIER)
  assert [seed for seed, _ in checked(in_json.typed_runs(runs[::-1]))] == [0, 1]
  assert [run.seed for run in _read(runs[::-1])[0].runs] == [0, 1]


def test_seeds_and_places_of_data_may_differ():
  runs = comparison_runs.make(_ALL)
  for seed, results in runs:
    results['config']['data'] |= {'dataset': 'mnist', 'data_seed': 7 * seed, 'data_dir': f'/data/{seed}'}
  assert len(_read(runs)) == 5


@pytest.mark.parametrize(
  ('section', 'field', 'value', 'words'),
  [
    ('training', 'learning_rate', 0.5, 'training.learning_rate is 0.1 for seed 0 and 0.5 for seed 1'),
    ('data', 'num_groups', 3, 'data.num_groups is 2 for seed 0 and 3 for seed 1'),
    ('evaluation', 'target_accuracy', 0.9, 'evaluation.target_accuracy is 0.99 for seed 0 and 0.9 for seed 1'),
  ],
)  # fmt: skip
def test_runs_of_another_experiment_are_refused(section, field, value, words):
  runs = comparison_runs.make(_ALL)
  runs[1][1]['config'][section][field] = value
  with pytest.raises(InputError) as caught:
    _read(runs)
  assert words in str(caught.value) and '\n' not in str(caught.value)


def test_runs_with_other_clusterings_are_refused():
  runs = comparison_runs.make(_ALL)
  runs[1][1]['config']['clusterings'][0]['num_clusters'] = 3
  with pytest.raises(InputError, match='clusterings is'):
    _read(runs)
  runs = comparison_runs.make(_ALL)
  del runs[1][1]['clusterings'][0]
  with pytest.raises(InputError, match='clusterings that were run is'):
    _read(runs)


@pytest.mark.parametrize(
  ('chosen', 'words'),
  [
    ((), 'at least one finished run, given none'),
    (((0, 0), (0, 0)), 'seed 0 is given twice'),
    (((3, 0),), 'the run given for seed 3 was trained with seed 0'),
  ],
)
def test_runs_without_their_seeds_are_refused(chosen, words):
  runs = comparison_runs.make(_ALL)
  with pytest.raises(InputError, match=words):
    _read([(seed, runs[position][1]) for seed, position in chosen])
