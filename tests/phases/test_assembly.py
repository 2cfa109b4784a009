"""results.json of whole runs: complete, the same whenever it is asked for, and with a digest that covers its numbers."""

import dataclasses

import pytest

from tests.phases.conftest import CLIENTS, CONFIG, LABELS, PHASE1, PHASE2, TINY
from tests.phases.whole_run import WholeRun
from tff_cluster.engine.machine import Machine
from tff_cluster.experiment import results
from tff_cluster.experiment.result_parts import Rows
from tff_cluster.phases import live_experiment
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow


def test_results_json_is_complete(planted):
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
    assert clustering.cluster_scores.keys() == {'unblended', 'blended'}
    assert clustering.evaluations.keys() == {'own', 'average', 'weighted', 'blended'}
    assert clustering.recovery.keys() == {'group'}
    for scores in clustering.cluster_scores.values():
      assert len(scores.members) == len(scores.global_test) == clustering.num_clusters
  # The baseline goes on with Phase 1, and a cluster that two clusterings find is trained once.
  clusters = {tuple(members) for c in found.clusterings for members in c.clusters}
  trained = sum(t.client_rounds_trained for t in found.timing)
  assert trained == 2 * CLIENTS * (PHASE1 + PHASE2) + PHASE2 * sum(map(len, clusters))


def test_asked_again_it_trains_nothing_and_says_the_same(planted):
  again = WholeRun(CONFIG, planted.folder.root)
  assert (again.done.asked, again.done.trained) == (0, 0)
  environment = planted.results.environment
  assert dataclasses.replace(again.results, environment=environment) == planted.results


def test_equal_runs_have_equal_digests_in_any_folder_and_another_seed_has_another(tmp_path):
  one = WholeRun(TINY, tmp_path / 'one', machine=Machine(clients_in_parallel=1)).results
  two = WholeRun(TINY, tmp_path / 'elsewhere' / 'two', machine=Machine(clients_in_parallel=3)).results
  assert dataclasses.replace(two, environment=one.environment, timing=one.timing) == one
  # Nobody asked for experts.
  assert one.clusterings[0].experts is None
  seed = dataclasses.replace(TINY, training=dataclasses.replace(TINY.training, seed=4))
  three = WholeRun(seed, tmp_path / 'three').results
  assert three.digest != one.digest and three.population == one.population
  # What one seed built was used for the other: alone in its process it is the same run.
  live_experiment._computations.clear()
  assert WholeRun(seed, tmp_path / 'again').results.digest == three.digest


def change(found, path, value):
  """Changes what JSON has at a path of keys."""
  *outer, last = path
  for key in outer:
    found = found[key]
  assert found[last] != value
  found[last] = value


@pytest.mark.parametrize(
  ('path', 'value', 'covered'),
  [
    (('baseline', 'evaluation', 'client_accuracy', 0), 0.123, True),
    (('clusterings', 0, 'evaluations', 'own', 'clients', 'recall'), 0.5, True),
    (('clusterings', 0, 'clusters', 0), ['c'], True),
    (('config', 'training', 'learning_rate'), 0.2, True),
    (('population', 'digest'), 'x', True),
    (('environment', 'python'), 'x', False),
    (('timing',), [], False),
    (('config', 'data', 'data_dir'), '/elsewhere', False),
  ],
)
def test_the_digest_covers_every_number_and_leaves_out_where_and_when(path, value, covered, planted):
  found = files.load_json(planted.folder.results)
  change(found, path, value)
  digest = results.digest_of(results.from_json(found, 'changed'))
  assert (digest != planted.results.digest) == covered
