"""Clusterings of whole runs: planted groups are found, nothing is found where nothing is, and nothing leaks into them."""

import dataclasses

import numpy as np
import pytest

from tests.phases.conftest import CLIENTS, LABELS, PLAIN, TINY
from tests.phases.whole_run import WholeRun, accuracy_of, changed
from tff_cluster.clustering import recovery
from tff_cluster.data import populate
from tff_cluster.experiment.config import ClusteringConfig
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow
SOFT = """
import numpy as np

from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Method
from tff_cluster.clustering.outcome import Outcome

class Soft(Method):
  name, title, overlaps = 'soft_of_a_user', 'Soft', True

  def cluster(self, options, evidence):
    shares = np.array([[0.75], [0.25]]) * np.ones(len(evidence.client_ids))
    return Outcome(ClusterAssignment(np.ones(shares.shape), evidence.client_ids, shares))

METHOD = Soft()
"""
FOUND = recovery.Recovery(**dict.fromkeys(recovery.SCORES, 1.0) | {'share_error': 0.0})


def test_the_planted_groups_are_found_and_clustering_wins_by_a_wide_margin(planted):
  (truth,) = planted.population.truths.values()
  for label in ('kmeans', 'planted'):
    assert planted.clustering(label).recovery['group'] == FOUND
    assert sorted(map(tuple, planted.membership(label))) == sorted(map(tuple, truth > 0))
  baseline = accuracy_of(planted.results.baseline.evaluation)
  # The groups disagree on 4 of 10 labels, so that no single model can do better than 0.8 for everybody.
  assert baseline < 0.8
  for label in ('kmeans', 'dynamic_distance'):
    assert accuracy_of(planted.clustering(label).evaluations['own']) > baseline + 0.1
  overlapping = planted.membership('dynamic_distance')
  assert [planted.clustering(label).overlapping for label in LABELS] == [False, True, False]
  assert planted.clustering('dynamic_distance').memberships == overlapping.sum() / CLIENTS
  for row in overlapping:
    assert truth[:, row > 0].any(axis=1).sum() == 1  # No cluster mixes the groups.


def test_arrays_beside_the_results_fit_them(planted):
  arrays = files.load_arrays(planted.folder.arrays)
  vectors = planted.signatures().astype(np.float64)
  expected = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
  np.testing.assert_allclose(arrays['distances_weights'], expected, rtol=1e-4, atol=1e-5)
  assert {name: array.shape for name, array in arrays.items()} == {
    'distances_weights': (CLIENTS, CLIENTS),
    'embedding_weights': (CLIENTS, 2),
    'linkage_everybody': (CLIENTS - 1, 4),
  }


def test_test_rows_and_planted_truth_reach_no_training_clustering_or_weighting(
  planted, tmp_path, monkeypatch
):
  rng, population = np.random.default_rng(0), planted.population
  changed = dataclasses.replace(
    population,
    test=dataclasses.replace(population.test, y=rng.permutation(population.test.y)),
    global_test_y=rng.permutation(population.global_test_y),
    truths={'group': population.truths['group'][:, rng.permutation(CLIENTS)]},
  )
  monkeypatch.setattr(populate, 'build_population', lambda *arguments: changed)
  other = WholeRun(PLAIN, tmp_path, export_models=True)
  for label in LABELS:
    one, two = planted.clustering(label), other.clustering(label)
    assert (one.clusters, one.threshold) == (two.clusters, two.threshold)
    assert one.best_validation == two.best_validation
    assert one.evaluations['weighted'].mixing == two.evaluations['weighted'].mixing
    for weights, others in zip(planted.models[label], other.models[label], strict=True):
      assert all(np.array_equal(a, b) for a, b in zip(weights, others, strict=True))
  assert accuracy_of(other.clustering('kmeans').evaluations['own']) < 0.4


def test_shares_of_a_users_method_reach_the_clients_own_models(tmp_path, monkeypatch):
  (tmp_path / 'soft_of_a_user.py').write_text(SOFT)
  monkeypatch.syspath_prepend(tmp_path)
  soft = ClusteringConfig('soft_of_a_user:METHOD', name='soft')
  run = WholeRun(changed(TINY, clusterings=(soft,)), tmp_path / 'run')
  found = run.clustering('soft')
  # Both clusters have the same members, so that they are told apart by their shares alone.
  assert found.clusters == [list(run.population.client_ids)] * 2
  np.testing.assert_array_equal(found.shares, [[0.75] * CLIENTS, [0.25] * CLIENTS])
  np.testing.assert_array_equal(found.evaluations['own'].mixing, found.shares)


def test_without_groups_clustering_does_not_claim_to_help(tmp_path):
  data = {'partition': 'iid', 'num_groups': 4}
  found = WholeRun(changed(PLAIN, data, clusterings=PLAIN.clusterings[:2]), tmp_path).results
  baseline = accuracy_of(found.baseline.evaluation)
  assert baseline > 0.85
  for clustering in found.clusterings:
    assert clustering.recovery == {}
    assert baseline - 0.06 < accuracy_of(clustering.evaluations['own']) < baseline + 0.02
