"""The door to all methods, and the untrained alternatives."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

from tff_cluster.base.errors import InputError
from tff_cluster.clustering import candidates, methods
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment import config


def planted(seed=0, features=300, spread=0.05):
  rng = np.random.default_rng(seed)
  truth = np.repeat(np.arange(3), 6)
  vectors = rng.normal(size=(3, features))[truth] + spread * rng.normal(size=(18, features))
  return Signatures(vectors.astype(np.float32), tuple(f'c{k:02}' for k in range(18))), truth


def test_a_method_is_found_by_being_there():
  files = {path.stem for path in Path(methods.__file__).parent.glob('*.py')} - {'__init__'}
  assert set(methods.METHODS) == files
  assert all(method.name == name for name, method in methods.METHODS.items())


def test_the_methods_are_light_to_import():
  code = (
    'import sys; from tff_cluster.cli import parse; from tff_cluster.clustering import methods; '
    'assert len(methods.METHODS) > 1; print(*sys.modules)'
  )
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert not set(done.stdout.split()) & {'sklearn', 'scipy', 'networkx', 'matplotlib', 'tensorflow'}


def test_an_option_of_several_methods_is_one_flag():
  declared = {}
  for method in methods.METHODS.values():
    for name, field in method.fields().items():
      assert declared.setdefault(name, field.type) == field.type, name


@pytest.mark.parametrize(
  'parameters',
  [
    {'method': 'kmeans', 'num_clusters': 3},
    {'method': 'dynamic_distance'},
    {'method': 'dynamic_distance', 'variant': 'neighbourhoods'},
    {'method': 'hierarchical', 'distance_threshold': 'quantile:0.4', 'linkage': 'ward'},
    {'method': 'hierarchical', 'distance_threshold': '0.5', 'metric': 'cosine', 'linkage': 'average'},
    {'method': 'spectral', 'num_clusters': 3},
    {'method': 'spectral', 'num_clusters': 3, 'affinity': 'rbf'},
    {'method': 'spectral', 'num_clusters': 3, 'affinity': 'nearest_neighbors'},
  ],
)
def test_planted_groups_are_found(parameters):
  signatures, truth = planted()
  outcome = methods.cluster(config.ClusteringConfig(**parameters), signatures, seed=0)
  assert outcome.assignment.client_ids == signatures.client_ids
  assert metrics.adjusted_rand_score(truth, outcome.assignment.labels) == 1.0
  assert (outcome.threshold is None) == ('num_clusters' in methods.METHODS[parameters['method']].fields())
  assert (outcome.linkage is None) == (parameters['method'] != 'hierarchical')


@pytest.mark.parametrize(
  'parameters',
  [
    {'method': 'kmeans', 'num_clusters': 1},
    {},
    {'method': 'hierarchical', 'distance_threshold': 'quantile:0.5'},
    {'method': 'bipartition'},
    {'method': 'spectral', 'num_clusters': 1},
  ],
)
def test_one_client(parameters):
  outcome = methods.cluster(
    config.ClusteringConfig(**parameters), Signatures.numbered(np.ones((1, 2))), seed=0
  )
  assert outcome.assignment.clusters == [['0']]
  assert outcome.threshold is None


def test_unknown_method():
  with pytest.raises(
    InputError,
    match=r'^method=dbscan: allowed are bipartition, dynamic_distance, hierarchical, kmeans, planted, spectral, or package',
  ):
    methods.cluster(config.ClusteringConfig(method='dbscan'), planted()[0], seed=0)


def test_candidates():
  signatures, truth = planted()
  found = candidates.candidates(signatures, seed=5)
  assert [(c.config.method, c.parameters) for c in found] == [
    *(
      ('dynamic_distance', {'distance_threshold': t})
      for t in ('mean', 'quantile:0.05', 'quantile:0.1', 'quantile:0.2')
    ),
    *(('kmeans', {'num_clusters': k}) for k in range(2, 11)),
  ]
  scored = [c for c in found if c.silhouette is not None]
  best = max(scored, key=lambda c: c.silhouette)
  assert best.num_clusters == 3
  assert best.silhouette == pytest.approx(
    metrics.silhouette_score(signatures.vectors.astype(float), truth), rel=1e-5
  )
  for candidate in found:
    overlapping = candidate.assignment.is_overlapping
    assert (candidate.memberships > 1.0) == overlapping
    assert candidate.silhouette is None or not overlapping
    assert candidate.num_clusters == candidate.assignment.num_clusters


def test_a_candidate_is_the_clustering_that_would_be_trained():
  signatures, _ = planted(spread=3.0)
  for candidate in candidates.candidates(signatures, seed=2):
    trained = methods.cluster(candidate.config, signatures, 2)
    np.testing.assert_array_equal(trained.assignment.membership, candidate.assignment.membership)


def test_a_candidate_over_the_cap_is_a_note():
  # Twelve antipodal pairs: the mean threshold cuts the long diagonals only, which leaves 2**12 cliques.
  axes = np.eye(12)
  found = candidates.candidates(Signatures.numbered(np.concatenate([axes, -axes])), seed=0)
  (candidate,) = [c for c in found if c.parameters == {'distance_threshold': 'mean'}]
  assert (candidate.num_clusters, candidate.memberships, candidate.silhouette, candidate.assignment) == (
    None,
  ) * 4
  assert 'more than max_clusters=1000' in candidate.notes[0]


@pytest.mark.parametrize(('clients', 'largest'), [(1, None), (2, None), (3, 2), (6, 5), (30, 10)])
def test_candidates_fit_the_number_of_clients(clients, largest):
  found = candidates.candidates(
    Signatures.numbered(np.random.default_rng(0).normal(size=(clients, 4))), seed=0
  )
  counts = [c.parameters['num_clusters'] for c in found if c.config.method == 'kmeans']
  assert counts == list(range(2, (largest or 1) + 1))
  assert len(found) - len(counts) == (0 if clients == 1 else 4)


@pytest.mark.parametrize('method', ['hierarchical', 'dynamic_distance'])
def test_one_cluster_is_not_called_clusters(method):
  vectors = np.random.default_rng(0).normal(size=(6, 3))
  found = methods.cluster(
    config.ClusteringConfig(method, distance_threshold='1000.0'), Signatures.numbered(vectors), 0
  )
  assert found.assignment.num_clusters == 1
  assert any(note.split(' gives ')[-1].startswith('1 ') for note in found.notes)
  assert not any(word in note for note in found.notes for word in ('1 clusters', '1 maximal cliques'))
