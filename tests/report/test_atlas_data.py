"""What the atlas knows of a comparison: numbers against results, neighbours against brute force, size."""

import json
import re

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from tests.made_up import atlas_runs, in_json
from tff_cluster.experiment.result_parts import Split
from tff_cluster.report.atlas import data, ways
from tff_cluster.scorecard.contenders import BUDGETS, CLIENT_ROUNDS, ROUNDS

_COSTS = (
    'client_rounds', 'models_down', 'models_up', 'bytes_down', 'bytes_up', 'rows_trained', 'rows_forward', 'passes',
)  # fmt: skip


@pytest.fixture(scope='module')
def made():
  runs, arrays = atlas_runs.make()
  return runs, arrays, *atlas_runs.document(runs, arrays)


def _own(clustering, budget):
  earlier = clustering['equal_cost'] if budget == CLIENT_ROUNDS else None
  return earlier['evaluation'] if earlier else clustering['evaluations']['own']


def test_accuracies_clusters_groups_and_labels_are_those_of_the_results(made):
  runs, _, found, _ = made
  assert found['budgets'] == {budget: BUDGETS[budget] for budget in (ROUNDS, CLIENT_ROUNDS)}
  labels = [clustering['label'] for clustering in runs[0][1]['clusterings']]
  names = [contender['name'] for contender in found['contenders']]
  assert names == ['FedAvg without clusters', 'every client alone', *labels]
  for (seed, results), run in zip(runs, found['runs'], strict=True):
    ids = results['population']['client_ids']
    assert (run['seed'], run['clients']) == (seed, ids) and run['labels'] == results['population'][
      'label_counts'
    ]
    stages = [results['baseline']['evaluation'], results['personalized'][0]['evaluation']]
    for budget in found['budgets']:
      expected = [*stages, *(_own(clustering, budget) for clustering in results['clusterings'])]
      for evaluation, measured in zip(expected, run['contenders'], strict=True):
        accuracy, at = evaluation['client_accuracy'], measured['budgets'][budget]
        assert at['accuracy'] == pytest.approx(accuracy, abs=0.5 * 10**-data.DECIMALS)
        assert at['mean'] == pytest.approx(np.mean(accuracy), abs=1e-6)
    for clustering, measured in zip(results['clusterings'], run['contenders'][2:], strict=True):
      named = [{ids[k] for k in members} for members in measured['clusters']]
      assert named == [set(members) for members in clustering['clusters']]
    (group,) = run['groups']
    weights = np.zeros((len(group['members']), len(ids)))
    for row, members, shares in zip(weights, group['members'], group['shares'], strict=True):
      row[members] = shares
    assert weights == pytest.approx(np.array(results['population']['truths']['mixture']))


def test_numbers_of_the_table_are_those_of_the_comparison(made):
  _, _, found, told = made
  places = {contender['name']: i for i, contender in enumerate(found['contenders'])}
  runs = {run['seed']: run for run in found['runs']}
  for line in told['lines']:
    measured = runs[line['seed']]['contenders'][places[line['contender']]]
    at = measured['budgets'][line['budget']]
    for name in _COSTS:
      assert at[name] == line[name]
    assert measured['num_clusters'] == line['num_clusters']
    for name in ('worst_decile', 'at_target', 'harmed_fedavg', 'harmed_local'):
      assert at[name] == pytest.approx(line[name], abs=1e-6) if line[name] is not None else at[name] is None
  planted = found['contenders'][-2]
  assert planted['recovery'] == {'mixture': {'measure': 'Omega', 'values': [1.0, 1.0]}}
  over = told['contenders'][-2]['budgets'][ROUNDS]['over_fedavg']['interval']
  assert planted['summaries'][ROUNDS]['over_fedavg'] == pytest.approx(over, abs=1e-4)


def test_clusters_have_the_colours_of_their_groups(made):
  _, _, found, _ = made
  for run in found['runs']:
    planted = run['contenders'][-2]
    groups = run['groups'][0]['members']
    assert planted['clusters'] == [groups[colour] for colour in planted['colours']]
    for measured in run['contenders'][2:]:
      assert len(measured['colours']) == len(measured['clusters'])
      taken = [colour for colour in measured['colours'] if colour is not None]
      assert len(set(taken)) == len(taken) and max(taken) < len(found['palette'])


def test_stages_follow_the_splits():
  told = [
    (3, 'abcdef', 'split', 'abc', 'def'),
    (5, 'abc', 'split', 'ac', 'b'),
    (5, 'def', 'kept', 'd', 'ef'),
    (7, 'def', 'split', 'f', 'de'),
  ]
  splits = [
    in_json.record(Split, {'round': at, 'cluster': [*all_], 'verdict': verdict, 'halves': [[*one], [*other]]})
    for at, all_, verdict, one, other in told
  ]
  assert data.stages(splits, 'abcdef') == [
    {'round': 3, 'clusters': [[0, 1, 2], [3, 4, 5]]},
    {'round': 5, 'clusters': [[0, 2], [1], [3, 4, 5]]},
  ]
  assert data.stages(splits[:1], 'abcdef') == [] and data.stages([], 'ab') == []


def test_the_way_of_every_client_is_that_of_the_arrays(made):
  _, arrays, found, _ = made
  for run in found['runs']:
    shares, way = arrays[run['seed']]['memberships_ifca'], run['contenders'][-1]['way']
    assert (way['start'], way['first'], way['last']) == ('random', 1, len(shares))
    for client, turns in enumerate(way['clients']):
      rounds = [at for at, _ in turns]
      assert rounds[0] == 1 and rounds == sorted(set(rounds))
      for number, of_round in enumerate(shares, 1):
        models = [some for at, some in turns if at <= number][-1]
        assert models == np.flatnonzero(of_round[:, client]).tolist()
    # A model has the colour of its cluster, and one without clients a colour of its own.
    measured = run['contenders'][-1]
    for colour, name in zip(way['colours'], way['names'], strict=True):
      place = int(name.removeprefix('cluster ')) if name.startswith('cluster') else None
      assert place is None or colour == measured['colours'][place]
    assert len(set(way['colours'])) == 4 and max(way['colours']) < len(found['palette'])
    assert sorted(way['names']) == ['cluster 0', 'cluster 1', 'cluster 2', 'model 3']
    for stage in measured['stages']:
      for model, members in zip(stage['models'], stage['clusters'], strict=True):
        row = shares[stage['round'] - 1]
        assert members == np.flatnonzero(row[model] if model >= 0 else ~row.any(axis=0)).tolist()


def test_stages_of_a_way_are_those_before_clients_go_elsewhere():
  models = np.array([[0, 0, 1], [0, 0, 1], [0, 1, 1], [1, 1, 1], [0, 1, 1], [2, 1, 1], [2, 1, 1]])
  own = np.arange(3)[:, None] == models[:, None]
  own[0, :, 2] = False
  rounds = [stage['round'] for stage in ways.stages(own, 11)]
  assert rounds == [11, 13, 15]  # Of 11 to 15 before the last change, in round 16.
  first = ways.stages(own, 11)[0]
  assert first == {'round': 11, 'models': [0, -1], 'clusters': [[0, 1], [2]]}
  assert ways.stages(own[5:], 1) == []


def test_without_memberships_a_clustering_has_its_clusters_only(made):
  runs, arrays, *_ = made
  kept = {name: array for name, array in arrays[0].items() if not name.startswith('memberships')}
  found, _ = atlas_runs.document(runs, {0: kept, 1: arrays[1] | {'memberships_ifca': np.ones((2, 4, 14))}})
  for run in found['runs']:
    measured = run['contenders'][-1]
    assert (measured['way'], measured['stages']) == (None, []) and len(measured['clusters']) == 3


@hypothesis.given(
  st.integers(1, 12).flatmap(lambda n: arrays_of.arrays(np.float32, (n, n), elements=st.integers(0, 5))),
  st.integers(1, 9),
)
def test_neighbours_are_those_of_brute_force(values, count):
  distances = values + values.T
  for client, nearest in enumerate(data.neighbours(distances, count)):
    others = sorted((distances[client, other], other) for other in range(len(distances)) if other != client)
    assert nearest.tolist() == [other for _, other in others[:count]]


def test_geometry_is_near_that_of_the_arrays(made):
  _, arrays, found, _ = made
  for run in found['runs']:
    distances, positions = (arrays[run['seed']][f'{name}_weights'] for name in ('distances', 'embedding'))
    geometry = run['geometry']['weights']
    assert np.array(geometry['positions']) == pytest.approx(positions, abs=5e-4 * np.abs(positions).max())
    pairs = np.triu_indices(len(distances), 1)
    assert geometry['mean'] == pytest.approx(distances[pairs].mean(), rel=1e-3)
    shown = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    kept = np.square(shown[pairs]).sum() / np.square(distances[pairs]).sum()
    assert geometry['kept'] == pytest.approx(kept, abs=1e-3)
    told = zip(distances, geometry['neighbours'], geometry['distances'], strict=True)
    for row, nearest, apart in told:
      assert apart == pytest.approx(row[nearest], abs=5e-4 * distances.max()) and apart == sorted(apart)


def test_a_client_without_finite_updates_has_no_place_and_the_others_have_theirs(made):
  finished, arrays, *_ = made
  arrays = {seed: dict(arrays[seed]) for seed in arrays}
  for each in arrays.values():
    for name in ('distances_weights', 'embedding_weights'):
      each[name] = np.array(each[name])
      each[name][3] = np.nan
    each['distances_weights'][:, 3] = np.nan
  for run, each in zip(atlas_runs.document(finished, arrays)[0]['runs'], arrays.values(), strict=True):
    geometry, distances = run['geometry']['weights'], each['distances_weights']
    assert geometry['positions'][3] is None and geometry['neighbours'][3] == geometry['distances'][3] == []
    for client in {*range(14)} - {3}:
      assert geometry['positions'][client] == pytest.approx(
        each['embedding_weights'][client], rel=1e-3, abs=1e-3
      )
      nearest = sorted({*range(14)} - {3, client}, key=lambda other: distances[client, other])
      assert geometry['neighbours'][client] == nearest[: data.NEIGHBOURS]
    assert geometry['mean'] == pytest.approx(np.nansum(distances) / (13 * 12), rel=1e-3)


@pytest.mark.parametrize('distances', [np.full((14, 14), np.nan), np.zeros((3, 3))])
def test_arrays_that_are_missing_or_do_not_fit_are_left_out(made, distances):
  runs, arrays, *_ = made
  found, _ = atlas_runs.document(runs, {1: arrays[1] | {'distances_weights': distances}})
  assert [run['geometry'] for run in found['runs']] == [{}, {}]
  assert found['runs'][0]['contenders'][2]['clusters']


def test_without_groups_local_training_or_splits():
  found, _ = atlas_runs.document(*atlas_runs.make(1, truth='none', personalized={}, methods=('kmeans',)))
  (run,) = found['runs']
  assert run['groups'] == [] and [c['kind'] for c in found['contenders']] == ['fedavg', 'disjoint']
  assert run['contenders'][1]['stages'] == [] and sorted(run['contenders'][1]['colours']) == [0, 1, 2, 3]


def test_a_hundred_clients_stay_small():
  methods = (*(f'kmeans:k{i}' for i in range(7)), 'planted')
  found, _ = atlas_runs.document(*atlas_runs.make(1, 100, methods=methods))
  assert len(found['contenders']) == 10
  # With five seeds it is below a megabyte.
  assert len(json.dumps(found, separators=(',', ':'))) < 200_000


def test_the_document_is_documented(made):
  _, _, found, _ = made
  told = data.__doc__.split('\n  SUMMARY')[0]
  assert list(found) == re.findall(r'^  ([a-z]+) {2,}', told, flags=re.M)
  run = found['runs'][0]
  for part in (run, run['geometry']['weights'], run['contenders'][0], run['contenders'][-1]['way']):
    assert all(re.search(rf'\b{name}\b', data.__doc__) for name in part)
