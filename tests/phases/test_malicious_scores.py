"""Malicious clients in results: shares by brute force, and whole runs with and without them."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import make_population
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
from tff_cluster.phases import malicious_scores

CONFIG = ExperimentConfig(
  DataConfig(
    num_clients=6, rows_per_client=40, num_groups=2, malicious_clients=0.3, attack='sign_flip', attack_scale=2.0
  ),
  TrainingConfig(model='logistic', phase1_rounds=2, phase2_rounds=2, batch_size=10, seed=3),
  (
    ClusteringConfig('planted', truth='malicious'),
    ClusteringConfig('hierarchical', name='one', distance_threshold='1e9'),
    ClusteringConfig('hierarchical', name='alone', distance_threshold='0'),
  ),
)  # fmt: skip


@settings(max_examples=80, deadline=None)
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
  population = dataclasses.replace(
    make_population(clients=4),
    truths={'group': np.ones((1, 4)), 'malicious': np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 0.0]])},
  )
  baseline = {'evaluation': {'client_accuracy': [0.2, 1.0, 0.4, 0.9]}, 'dropped_updates': 5}
  clustering = {
    'label': 'k',
    'clusters': [['c00', 'c01'], ['c01', 'c02'], ['c03']],
    'evaluations': {'own': {'client_accuracy': [0.3, 0.0, 0.6, 0.9]}},
  }
  assert malicious_scores.summary(population, baseline, [(clustering, 7)]) == {
    'client_ids': ['c01'],
    'baseline': {'honest_accuracy': pytest.approx(0.5), 'malicious_accuracy': 1.0, 'dropped_updates': 5},
    'clusterings': {
      'k': {
        'honest_accuracy': pytest.approx(0.6),
        'malicious_accuracy': 0.0,
        'dropped_updates': 7,
        'honest_beside_malicious': pytest.approx(2 / 3),
      }
    },
  }


def test_without_malicious_clients_there_is_no_summary():
  assert malicious_scores.summary(make_population(clients=3), {}, []) is None


def test_where_no_malicious_client_takes_part_they_have_no_accuracy():
  truths = {'malicious': np.array([[1.0, 1.0], [0.0, 0.0]])}
  population = dataclasses.replace(make_population(clients=2), truths=truths)
  baseline = {'evaluation': {'client_accuracy': [0.25, 0.75]}, 'dropped_updates': 0}
  assert malicious_scores.summary(population, baseline, []) == {
    'client_ids': [],
    'baseline': {'honest_accuracy': 0.5, 'malicious_accuracy': None, 'dropped_updates': 0},
    'clusterings': {},
  }


def run(config, path, store):
  from tff_cluster.phases import run_experiment

  return run_experiment.run_experiment(config, path, store, export_models=False).results


@pytest.fixture(scope='module')
def done(tmp_path_factory):
  path = tmp_path_factory.mktemp('malicious')
  return path, run(CONFIG, path / 'run', str(path / 'store'))


@pytest.mark.tensorflow
def test_results_tell_honest_and_malicious_clients_apart(done):
  results = done[1]
  found, ids = results.malicious, results.population.client_ids
  bad = np.array(results.population.truths.malicious)[1] > 0
  assert found.client_ids == [i for i, b in zip(ids, bad, strict=True) if b] and len(found.client_ids) == 2
  for clustering in results.clusterings:
    sides = found.clusterings[clustering.label]
    own = np.array(clustering.evaluations['own'].client_accuracy)
    assert sides.honest_accuracy == pytest.approx(own[~bad].mean())
    assert sides.malicious_accuracy == pytest.approx(own[bad].mean())
    assert sides.dropped_updates == 0
  beside = {label: sides.honest_beside_malicious for label, sides in found.clusterings.items()}
  assert beside == {'planted': 0.0, 'one': 1.0, 'alone': 0.0}
  # The oracle of isolation: its clusters are the honest and the malicious clients.
  isolated = results.clusterings[0]
  assert isolated.recovery.malicious.ari == 1.0 and isolated.num_clusters == 2


@pytest.mark.tensorflow
def test_results_without_malicious_clients_do_not_mention_them(done):
  path, results = done
  honest = dataclasses.replace(
    CONFIG,
    data=dataclasses.replace(CONFIG.data, malicious_clients=0.0, attack_scale=None),
    clusterings=(ClusteringConfig('hierarchical', name='alone', distance_threshold='0'),),
  )
  plain = run(honest, path / 'honest', str(path / 'store'))
  # Whatever was trained with malicious clients is not taken for training without them.
  assert plain.phase1.evaluation != results.phase1.evaluation
  assert 'malicious' not in plain
  assert list(plain.population.truths) == ['group']


@pytest.mark.tensorflow
def test_an_aggregator_has_trajectories_and_computations_of_its_own(done):
  path, results = done
  robust = dataclasses.replace(CONFIG, training=dataclasses.replace(CONFIG.training, aggregator='robust'))
  found = run(robust, path / 'robust', str(path / 'store'))
  assert found.config.training['aggregator'] == 'robust'
  assert found.phase1.evaluation != results.phase1.evaluation
  assert results.config.training['aggregator'] == 'mean'
  settings_of = [
    json.loads((place / 'determinants.json').read_text())['settings'].get('aggregator')
    for place in (path / 'store').glob('fedavg-*')
  ]
  assert set(settings_of) == {None, 'robust'}
  # In the same process, after the robust one: what was built for it is not used for the mean.
  again = run(CONFIG, path / 'again', str(path / 'other store'))
  assert again.digest == results.digest


@pytest.mark.tensorflow
def test_updates_that_are_not_finite_are_counted(tmp_path):
  """Clients that send NaN for training only: their signatures are never asked for."""
  data = dataclasses.replace(CONFIG.data, attack='nan', attack_scale=None)
  config = dataclasses.replace(CONFIG, data=data, clusterings=())
  found = run(config, tmp_path / 'run', str(tmp_path / 'store')).malicious
  # Two clients, four rounds.
  assert found.baseline.dropped_updates == 8 and found.clusterings == {}
