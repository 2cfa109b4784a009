"""Malicious clients in results: shares by brute force, and whole runs with and without them."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import make_population
from tests.made_up import in_json
from tests.phases.conftest import PLAIN
from tests.phases.whole_run import WholeRun, changed
from tff_cluster.experiment.config import ClusteringConfig
from tff_cluster.experiment.measured import Stage
from tff_cluster.experiment.result_parts import Clustering, Malicious, Sides
from tff_cluster.phases import malicious_scores

CONFIG = changed(
  PLAIN,
  {
    'num_clients': 6,
    'rows_per_client': 40,
    'malicious_clients': 0.3,
    'attack': 'sign_flip',
    'attack_scale': 2.0,
  },
  {'phase1_rounds': 2, 'phase2_rounds': 2},
  clusterings=(
    ClusteringConfig('planted', truth='malicious'),
    ClusteringConfig('hierarchical', name='one', distance_threshold='1e9'),
    ClusteringConfig('hierarchical', name='alone', distance_threshold='0'),
  ),
)


@settings(max_examples=50)
@given(st.integers(1, 6), st.integers(1, 5), st.randoms(use_true_random=False))
def test_who_shares_a_cluster_with_whom_by_brute_force(clients, clusters, random):
  member = [[random.random() < 0.4 for _ in range(clients)] for _ in range(clusters)]
  bad = [random.random() < 0.3 for _ in range(clients)]
  honest = [k for k in range(clients) if not bad[k]]
  beside = {
    k
    for row, k, other in itertools.product(member, honest, range(clients))
    if bad[other] and row[k] and row[other]
  }
  found = malicious_scores.beside_malicious(np.array(member, float), np.array(bad))
  assert found == (pytest.approx(len(beside) / len(honest)) if honest else None)


def test_a_summary_by_hand():
  clustering = in_json.record(Clustering, {
    'label': 'k',
    'clusters': [['c00', 'c01'], ['c01', 'c02'], ['c03']],
    'evaluations': {'own': {'client_accuracy': [0.3, 0.0, 0.6, 0.9]}},
    'dropped_updates': 7,
  })  # fmt: skip
  evaluation = {'client_accuracy': [0.2, 1.0, 0.4, 0.9]}
  baseline = in_json.record(Stage, {'evaluation': evaluation, 'dropped_updates': 5})

  def summary(*clusterings, **truths):
    population = dataclasses.replace(make_population(clients=4), truths=truths)
    return malicious_scores.summary(population, baseline, clusterings)

  assert summary(clustering, malicious=np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 0.0]])) == Malicious(
    ['c01'],
    Sides(pytest.approx(0.5), 1.0, 5),
    {'k': Sides(pytest.approx(0.6), 0.0, 7, pytest.approx(2 / 3))},
  )
  nobody = np.array([[1.0] * 4, [0.0] * 4])
  assert summary(malicious=nobody) == Malicious([], Sides(pytest.approx(0.625), None, 5), {})
  assert summary(group=np.ones((1, 4))) is None


def test_clients_with_shares_are_beside_malicious_ones_in_the_clusters_of_their_largest_shares():
  soft = in_json.record(Clustering, {
    'label': 'soft',
    'clusters': [['c00', 'c01', 'c02']] * 2,
    'shares': [[0.9, 0.2, 0.5], [0.1, 0.8, 0.5]],
    'evaluations': {'own': {'client_accuracy': [0.4, 0.1, 0.8]}},
  })  # fmt: skip
  truths = {'malicious': np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])}
  baseline = in_json.record(Stage, {'evaluation': {'client_accuracy': [0.5, 0.5, 0.5]}})
  population = dataclasses.replace(make_population(clients=3), truths=truths)
  found = malicious_scores.summary(population, baseline, [soft])
  # The first is not, the last is in both.
  assert found.clusterings == {'soft': Sides(pytest.approx(0.6), 0.1, 0, 0.5)}


@pytest.fixture(scope='module')
def done(tmp_path_factory):
  return WholeRun(CONFIG, tmp_path_factory.mktemp('malicious') / 'run')


@pytest.mark.tensorflow
def test_results_tell_honest_and_malicious_clients_apart(done):
  found, population = done.results.malicious, done.results.population
  bad = np.array(population.truths['malicious'])[1] > 0
  assert found.client_ids == list(itertools.compress(population.client_ids, bad)) and bad.sum() == 2
  for clustering in done.results.clusterings:
    own = np.array(clustering.evaluations['own'].client_accuracy)
    sides = found.clusterings[clustering.label]
    assert sides.honest_accuracy == pytest.approx(own[~bad].mean())
    assert sides.malicious_accuracy == pytest.approx(own[bad].mean())
    assert sides.dropped_updates == 0
  beside = {label: sides.honest_beside_malicious for label, sides in found.clusterings.items()}
  assert beside == {'planted': 0.0, 'one': 1.0, 'alone': 0.0}
  # The oracle of isolation: its clusters are the honest and the malicious clients.
  isolated = done.clustering('planted')
  assert isolated.recovery['malicious'].ari == 1.0 and isolated.num_clusters == 2


@pytest.mark.tensorflow
def test_clients_that_send_nan_end_nothing_even_where_a_cluster_has_nobody_else(tmp_path):
  from_groups = ClusteringConfig('hypcluster', start='clustering', start_clustering='planted')
  run = WholeRun(
    changed(
      CONFIG, {'attack': 'nan', 'attack_scale': None}, clusterings=(CONFIG.clusterings[0], from_groups)
    ),
    tmp_path,
  )
  assert not run.done.failed
  bad = np.array(run.results.population.truths['malicious'])[1] > 0
  before, after = (
    np.array(
      each.evaluation.client_accuracy
      if each is run.results.phase1
      else each.evaluations['own'].client_accuracy
    )
    for each in (run.results.phase1, run.clustering('planted'))
  )
  # Their cluster starts from the global model, and nothing moves it.
  np.testing.assert_array_equal(after[bad], before[bad])
  assert (
    run.clustering('planted').num_clusters == 2 and run.clustering('planted').dropped_updates == 2 * bad.sum()
  )


def only_trained(data=(), training=()):
  return changed(CONFIG, data, training, clusterings=())


@pytest.mark.tensorflow
def test_results_without_malicious_clients_do_not_mention_them(done, tmp_path):
  honest = only_trained({'malicious_clients': 0.0, 'attack_scale': None})
  plain = WholeRun(honest, tmp_path, store_dir=done.store).results
  # Whatever was trained with malicious clients is not taken for training without them.
  assert plain.phase1.evaluation != done.results.phase1.evaluation
  assert 'malicious' not in plain.to_json()
  assert list(plain.population.truths) == ['group']


@pytest.mark.tensorflow
def test_an_aggregator_has_trajectories_and_computations_of_its_own(done, tmp_path):
  robust = WholeRun(
    only_trained(training={'aggregator': 'robust'}), tmp_path / 'robust', store_dir=done.store
  )
  assert robust.results.phase1.evaluation != done.results.phase1.evaluation
  # In the same process, after the robust one: what was built for it is not used for the mean.
  again = WholeRun(only_trained(), tmp_path / 'again').results
  assert again.phase1.evaluation == done.results.phase1.evaluation
  assert again.baseline.evaluation == done.results.baseline.evaluation
