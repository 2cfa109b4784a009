"""Clients whose training goes to NaN: the others have the results that they have without them, and the run ends well.

Rows of two clients of a run and of one that comes later are finite, but enormous. All three diverge in every round.
"""

import dataclasses
import json
import warnings

import numpy as np
import pytest

from tests.conftest import clients_of_runs
from tests.phases.conftest import CLIENTS, PHASE1, PHASE2, TINY, WITH_NEW
from tests.phases.whole_run import WholeRun, accuracy, changed, scaled
from tff_cluster.base.errors import InputError
from tff_cluster.data import saved
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.config import EvaluationConfig
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

SICK, SICK_NEW = (1, 6), 2
HEALTHY = np.setdiff1d(np.arange(CLIENTS), SICK)
# All clusterings but 'wide', whose clusters say nothing here.
CONFIG = dataclasses.replace(
  WITH_NEW,
  clusterings=WITH_NEW.clusterings[:-1],
  evaluation=EvaluationConfig(experts=True, local_training=True, fine_tuning=1, ditto=0.5),
)


@pytest.fixture(scope='module')
def newcomers(with_new):
  return scaled(saved.load_population(with_new.folder.new_clients), {SICK_NEW: 1e30})


@pytest.fixture(scope='module')
def finished(with_new, newcomers, tmp_path_factory):
  # So large that measuring overflows as well, and not quite so large.
  population = scaled(with_new.population, {SICK[0]: 3e38, SICK[1]: 1e30})
  with clients_of_runs(population, newcomers):
    return WholeRun(CONFIG, tmp_path_factory.mktemp('diverged') / 'run')


@pytest.fixture(scope='module')
def without(with_new, newcomers, tmp_path_factory):
  """The same run of the other clients alone."""
  config = changed(CONFIG, data={'num_clients': CONFIG.data.num_clients - len(SICK)})
  with clients_of_runs(scaled(with_new.population, {}).take(HEALTHY), newcomers):
    return WholeRun(config, tmp_path_factory.mktemp('without') / 'run')


@pytest.fixture(scope='module')
def out(finished):
  """The names of those that diverged."""
  return [finished.population.client_ids[k] for k in SICK]


def test_who_diverged_is_named_and_kept_in_the_largest_cluster_and_a_new_client_joins_it(finished, out):
  found, folder = finished.results, finished.folder
  assert found.phase1.dropped_updates == len(SICK) * PHASE1
  assert found.baseline.dropped_updates == len(SICK) * (PHASE1 + PHASE2)
  for clustering in found.clusterings:
    if clustering.label == 'planted':
      assert clustering.excluded == ()  # What no method can know does not depend on updates.
      continue
    assert list(clustering.excluded) == out, clustering.label
    assert clustering.dropped_updates == len(SICK) * PHASE2
    (note,) = [text for text in clustering.notes if 'not finite' in text]
    assert f'({", ".join(out)})' in note
    homes = [members for members in clustering.clusters if set(members) & set(out)]
    assert len(homes) == 1 and set(out) < set(homes[0])
    healthy = [len(set(members) - set(out)) for members in clustering.clusters]
    assert len(set(homes[0]) - set(out)) == max(healthy) and min(healthy) > 0
    saved_clusters = folder.load_finished(folder.clusters(clustering.label), phase_files.Clusters)
    assert list(saved_clusters.excluded) == out
    sizes = [len(members) for members in clustering.clusters]
    (row,) = clustering.new_clients.assigned[SICK_NEW]
    if clustering.label == 'pacfl':  # A newcomer trains nothing, and enormous rows span what small ones do.
      assert not any(clustering.new_clients.fallback)
      continue
    assert sizes[row] == max(sizes) and clustering.new_clients.fallback[SICK_NEW]


def test_their_rows_stay_visible_as_not_finite_and_json_has_null(finished):
  for kind in ('weights', 'updates'):
    assert np.flatnonzero(~np.isfinite(finished.signatures(kind)).all(axis=1)).tolist() == list(SICK)
  arrays = files.load_arrays(finished.folder.arrays)
  for kind in ('weights', 'updates'):
    distances = arrays[f'distances_{kind}']
    assert np.isfinite(distances[np.ix_(HEALTHY, HEALTHY)]).all() and np.isnan(distances[list(SICK)]).all()
    assert np.flatnonzero(np.isnan(arrays[f'embedding_{kind}']).all(axis=1)).tolist() == list(SICK)
  assert arrays['linkage_hierarchical'].shape == (len(HEALTHY) - 1, 4)

  def refused(name):
    raise AssertionError(f'{name} is no JSON')

  for path in finished.folder.root.rglob('*.json'):
    json.loads(path.read_text(), parse_constant=refused)
  evaluation = finished.results.phase1.evaluation
  assert evaluation.clients.loss is None and np.isfinite(evaluation.global_test.loss)


def joined_by(clustering):
  """Returns for each new client the members of the clusters that it joined."""
  return [{i for row in rows for i in clustering.clusters[row]} for rows in clustering.new_clients.assigned]


def test_the_others_have_the_results_that_they_have_without_them(finished, without, out):
  found, alone = finished.results, without.results
  assert [found.population.client_ids[k] for k in HEALTHY] == alone.population.client_ids
  for one, other in zip(found.clusterings, alone.clusterings, strict=True):
    label = one.label
    assert sorted(sorted(set(c) - set(out)) for c in one.clusters) == sorted(map(sorted, other.clusters)), (
      label
    )
    assert (one.threshold, one.signature) == (other.threshold, other.signature)
    own = np.array(one.evaluations['own'].client_accuracy)
    np.testing.assert_array_equal(own[HEALTHY], other.evaluations['own'].client_accuracy, label)
    # Beside that of planted, which knows the groups of all clients.
    assert one.recovery == other.recovery, label
    assert [set(c) - set(out) for c in joined_by(one)] == [set(c) for c in joined_by(other)]
    assert one.new_clients.fallback == other.new_clients.fallback
  (one,), (other,) = (run.clustering('bipartition').splits for run in (finished, without))
  assert (one.round, one.verdict) == (other.round, 'split') and list(one.excluded) == out
  compared = ('cross_similarity', 'similarity_gap', 'max_update_norm', 'mean_update_norm', 'mean_similarity')
  assert all(getattr(one, name) == getattr(other, name) for name in compared)
  assert found.candidates == alone.candidates


def test_they_stay_with_the_models_that_they_have_of_their_own(finished, without):
  (local, tuned, ditto), (others, *_) = finished.results.personalized, without.results.personalized
  accuracies = np.array(local.evaluation.client_accuracy)
  np.testing.assert_array_equal(accuracies[HEALTHY], others.evaluation.client_accuracy)
  assert (local.dropped_updates, others.dropped_updates) == (len(SICK) * (PHASE1 + PHASE2), 0)
  with finished.opened() as experiment:
    initial = experiment.trainer.computations.model.weights
    # In float64, where the rows of this client do not overflow; biases are 0 here, so that no factor matters.
    expected = accuracy(initial, experiment.population.test, SICK[1])
  assert accuracies[SICK[1]] == pytest.approx(expected)
  # Ditto's are pulled to FedAvg's model, which is the others', and have none but the initial one either.
  assert ditto.evaluation.client_accuracy[SICK[1]] == accuracies[SICK[1]]
  assert (tuned.dropped_updates, ditto.dropped_updates) == (
    len(SICK) * (tuned.round - PHASE1 - PHASE2),
    local.dropped_updates,
  )


def test_the_report_leaves_them_out_of_pictures_without_a_warning(finished, out):
  from tff_cluster.report import report

  with warnings.catch_warnings():
    warnings.simplefilter('error')
    # Of what earlier tests left to the garbage collector.
    warnings.simplefilter('ignore', ResourceWarning)
    page = report.write_report(finished.folder.root).read_text()
  for words in (
    f'{len(SICK) * (PHASE1 + PHASE2)} updates of every client alone',
    f'{len(SICK) * PHASE1} updates of Phase 1',
    f'{len(SICK) * PHASE2} updates of Phase 2 of kmeans',
    'Scores are over the clients that were clustered: 2 clients of kmeans',
    f'({", ".join(out)})',
  ):
    assert words in page
  # A distance matrix and a plane of each clustering (identical ones once), and two trees; none of the recursion.
  clusterings = finished.results.clusterings
  shown = {(str(sorted(c.clusters)), c.signature) for c in clusterings if c.splits is None}
  assert len(shown) >= 3
  assert page.count('Not shown: 2 clients whose updates were not finite.') == 2 * len(shown) + 2
  for kind in ('distances', 'embedding', 'dendrogram', 'similarities'):
    drawn = list((finished.folder.root / 'figures').glob(f'{kind}_*.svg'))
    assert drawn and all(path.stat().st_size > 0 for path in drawn)


def test_clustering_questions_are_about_the_others(finished):
  from tff_cluster.clustering.replay import Grid
  from tff_cluster.phases import client_signatures
  from tff_cluster.studies.replay import study

  folder = finished.folder
  signatures = client_signatures.load(folder, 'weights', 2**26)
  truths = study.run_truths(folder, signatures.client_ids)
  assert signatures.num_clients == truths['group'].shape[1] == len(HEALTHY)
  questions = Grid((('l2', 'average'),), 5, counts=(2, 6), distance_thresholds=('mean',))
  rows = study.replay(signatures, questions, 0, truths).rows
  assert max(row.recovery['group'].ari for row in rows) == 1.0
  assert 'not clustered' in study.run_note(folder, 'weights', signatures.client_ids)
  assert study.run_note(folder, 'weights', finished.population.client_ids) == ''


def test_fewer_than_two_clients_left_is_one_line_and_names_the_first(with_new, tmp_path):
  config = changed(TINY, data={'num_clients': 4})
  population = scaled(with_new.population.take(range(4)), dict.fromkeys((1, 2, 3), 1e30))
  words = f'client {population.client_ids[1]}: .* 2 clients more.* fewer than 2 clients are left.*use a smaller learning_rate'
  for _ in range(2):  # Also where the signatures are there already.
    with clients_of_runs(population), pytest.raises(InputError, match=words):
      WholeRun(config, tmp_path / 'run')
