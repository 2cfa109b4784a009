"""results.json of whole runs: complete, the same whenever it is asked for, and with a digest that covers its numbers."""

import dataclasses

import pytest

from tests.phases.conftest import CLIENTS, CONFIG, LABELS, PHASE1, PHASE2, TINY
from tests.phases.whole_run import WholeRun, changed
from tff_cluster.experiment import results
from tff_cluster.experiment.result_parts import Rows
from tff_cluster.phases import live_experiment
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow


def test_results_json_is_complete_and_who_asks_again_trains_nothing(planted):
  found, population = planted.results, planted.population
  assert results.read(planted.folder.results) == found
  assert (found.schema, found.config, found.cross_validation) == (results.SCHEMA, CONFIG, None)
  splits = (population.train, population.validation, population.test)
  assert found.population.rows == Rows(*(len(split.y) for split in splits), len(population.global_test_y))
  for stage, rounds in ((found.phase1, PHASE1), (found.baseline, PHASE1 + PHASE2)):
    assert (stage.rounds, stage.dropped_updates) == (rounds, 0)
    assert all(len(column) == rounds for column in stage.history.to_json().values())
    assert len(stage.evaluation.client_accuracy) == CLIENTS
  assert [c.label for c in found.clusterings] == [*LABELS, 'planted']
  for clustering in found.clusterings:
    assert clustering.evaluations.keys() == {'own', 'average', 'weighted', 'blended'}
    assert clustering.recovery.keys() == {'group'}
  # The baseline goes on with Phase 1, and a cluster that two clusterings find is trained once.
  clusters = {tuple(members) for c in found.clusterings for members in c.clusters}
  trained = sum(t.client_rounds_trained for t in found.timing)
  assert trained == 2 * CLIENTS * (PHASE1 + PHASE2) + PHASE2 * sum(map(len, clusters))
  # What was trained side by side shares the time that it took together.
  assert 0 < sum(t.seconds for t in found.timing) < planted.seconds
  again = WholeRun(CONFIG, planted.folder.root, export_models=True)
  assert (again.done.asked, again.done.trained) == (0, 0)
  assert dataclasses.replace(again.results, environment=found.environment) == found


def test_another_seed_shares_the_clients_and_what_was_built_and_alone_it_is_the_same_run(planted, tmp_path):
  seed = changed(TINY, training={'seed': 4})
  one = WholeRun(seed, tmp_path / 'one').results
  assert one.population == planted.results.population and one.clusterings[0].experts is None
  live_experiment._computations.clear()
  two = WholeRun(seed, tmp_path / 'elsewhere' / 'two').results
  assert dataclasses.replace(two, environment=one.environment, timing=one.timing) == one


@pytest.mark.parametrize(
  ('path', 'value', 'covered'),
  [
    (('baseline', 'evaluation', 'client_accuracy', 0), 0.123, True),
    (('clusterings', 0, 'clusters', 0), ['c'], True),
    (('config', 'training', 'learning_rate'), 0.2, True),
    (('population', 'digest'), 'x', True),
    (('environment', 'python'), 'x', False),
    (('timing',), [], False),
    (('config', 'data', 'data_dir'), '/elsewhere', False),
  ],
)
def test_the_digest_covers_every_number_and_leaves_out_where_and_when(path, value, covered, planted):
  found = inside = files.load_json(planted.folder.results)
  for key in path[:-1]:
    inside = inside[key]
  assert inside[path[-1]] != value
  inside[path[-1]] = value
  digest = results.digest_of(results.from_json(found, 'changed'))
  assert (digest != planted.results.digest) == covered
