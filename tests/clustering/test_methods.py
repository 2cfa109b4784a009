"""The door to all methods, their estimators, and the untrained alternatives."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics
from sklearn.utils.estimator_checks import check_estimator

from tests.made_up.clients import grouped
from tff_cluster.base.errors import InputError
from tff_cluster.clustering import estimators, methods, replay
from tff_cluster.clustering.methods import planted as planted_groups
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig


def planted(spread=0.05):
  vectors, truth = grouped(0, 3, 6, 300, spread)
  return Signatures(vectors, tuple(f'c{k:02}' for k in range(18))), truth


def test_methods_are_found_by_being_there_and_are_light_to_import():
  files = {path.stem for path in Path(methods.__file__).parent.glob('*.py')} - {'__init__'}
  assert {name: method.name for name, method in methods.METHODS.items()} == {name: name for name in files}
  code = 'import sys; from tff_cluster.cli import parse; from tff_cluster.clustering import methods; methods.METHODS; print(*sys.modules)'
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert 'tff_cluster.clustering.methods.kmeans' in done.stdout.split()
  assert not set(done.stdout.split()) & {'sklearn', 'scipy', 'networkx', 'matplotlib', 'tensorflow'}


@pytest.mark.parametrize(
  ('method', 'options'),
  [
    ('kmeans', {'num_clusters': 3}),
    ('dynamic_distance', {}),
    ('dynamic_distance', {'variant': 'neighbourhoods'}),
    ('hierarchical', {'distance_threshold': '0.5', 'metric': 'cosine', 'linkage': 'average'}),
    ('spectral', {'num_clusters': 3}),
    ('fedgroup', {'num_clusters': 3}),
  ],
)
def test_planted_groups_are_found_and_one_client_is_one_cluster(method, options):
  signatures, truth = planted()
  outcome = methods.cluster(ClusteringConfig(method, **options), signatures, seed=0)
  assert outcome.assignment.client_ids == signatures.client_ids
  assert metrics.adjusted_rand_score(truth, outcome.assignment.labels) == 1.0
  told = 'num_clusters' in options
  assert (outcome.threshold is None) == told
  assert (outcome.linkage is None) == (method != 'hierarchical')
  config = ClusteringConfig(method, **options | ({'num_clusters': 1} if told else {}))
  alone = methods.cluster(config, Signatures.numbered(np.ones((1, 2))), seed=0)
  assert alone.assignment.clusters == [['0']]
  if not told:
    wide = ClusteringConfig(method, **options | {'distance_threshold': '1000.0'})
    (note, *_) = methods.cluster(wide, signatures, 0).notes
    assert ' gives 1 ' in note and not any(word in note for word in ('1 clusters', '1 maximal cliques'))


@pytest.mark.parametrize(
  'estimator',
  [
    estimators.KMeans(),
    estimators.Bipartition(),
    estimators.FedGroup(),
    estimators.HierarchicalClustering(distance_threshold=2.0),
    estimators.DynamicDistanceClustering(distance_threshold='quantile:0.1', variant='cliques'),
  ],
)
def test_scikit_learn_accepts_the_estimator(estimator):
  check_estimator(estimator)


def test_a_seed_is_given_as_scikit_learn_has_it():
  vectors, truth = planted()
  for random_state in (None, np.int64(3), np.random.RandomState(3)):
    labels = estimators.KMeans(num_clusters=3, random_state=random_state).fit(vectors.vectors).labels_
    assert metrics.adjusted_rand_score(truth, labels) == 1
  generator = np.random.RandomState(3)
  drawn = [estimators._seed(generator) for _ in range(2)]
  assert drawn[0] != drawn[1] and estimators._seed(np.random.RandomState(3)) == drawn[0]


def test_what_is_an_estimator_clusters_vectors_alone():
  signatures, _ = planted()
  found = {name: getattr(estimators, type(method).__name__, None) for name, method in methods.METHODS.items()}
  # These cluster while they train, read training rows, or are an oracle.
  others = {name for name, method in methods.METHODS.items() if method.alternates} | {'pacfl', 'planted'}
  assert {name for name, each in found.items() if each is None} == others
  for each in filter(None, found.values()):
    assert each().fit(signatures.vectors).membership_.shape[1] == signatures.num_clients


def test_every_method_is_on_the_page_of_methods():
  page = (Path(__file__).parents[2] / 'docs' / 'methods.md').read_text()
  assert [name for name in methods.METHODS if f'`{name}`' not in page] == []


def test_unknown_method():
  message = rf'^method=nonsense: allowed are {", ".join(methods.METHODS)}, or package'
  with pytest.raises(InputError, match=message):
    methods.cluster(ClusteringConfig('nonsense'), planted()[0], seed=0)


def alternatives(signatures, seed=0):
  return list(replay.Replay(signatures, seed, with_silhouettes=True).alternatives())


def test_candidates():
  signatures, truth = planted()
  found = alternatives(signatures, seed=5)
  thresholds = [{'distance_threshold': t} for t in ('mean', 'quantile:0.05', 'quantile:0.1', 'quantile:0.2')]
  asked = [('dynamic_distance', t) for t in thresholds] + [
    ('kmeans', {'num_clusters': k}) for k in range(2, 11)
  ]
  assert [(c.config.method, c.found.given) for c in found] == asked
  best = max((c for c in found if c.silhouette is not None), key=lambda c: c.silhouette)
  assert best.num_clusters == 3
  expected = metrics.silhouette_score(signatures.vectors.astype(float), truth)
  assert best.silhouette == pytest.approx(expected, rel=1e-5)
  for candidate in found:
    overlapping = candidate.assignment.is_overlapping
    assert (candidate.memberships > 1.0) == overlapping and not (overlapping and candidate.silhouette)


def test_candidates_fit_the_number_of_clients_and_the_cap():
  for clients, largest in ((1, 1), (3, 2), (12, 10)):
    found = alternatives(Signatures.numbered(np.random.default_rng(0).normal(size=(clients, 4))))
    counts = [c.found.given['num_clusters'] for c in found if c.config.method == 'kmeans']
    assert counts == list(range(2, largest + 1))
    assert len(found) - len(counts) == (0 if clients == 1 else 4)
  # Twelve antipodal pairs: the mean threshold cuts the long diagonals only, which leaves 2**12 cliques.
  found = alternatives(Signatures.numbered(np.concatenate([np.eye(12), -np.eye(12)])))
  (given_up,) = [c for c in found if c.found.given == {'distance_threshold': 'mean'}]
  assert (given_up.num_clusters, given_up.memberships, given_up.silhouette) == (None, None, None)
  assert given_up.assignment is None and 'more than max_clusters=1000' in given_up.found.notes[0]


def test_planted_groups_of_the_same_clients_are_one_cluster():
  ids = ('a', 'b', 'c')
  digits = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 1]], float)
  assert planted_groups.groups({'digit': digits}, None, ids).clusters == [['a'], ['b', 'c']]
  # All have as much of each group.
  assert planted_groups.groups({'group': np.full((2, 3), 0.5)}, None, ids).clusters == [['a', 'b', 'c']]
