"""Methods that a user brings: scikit-learn's own answer on the same vectors is the oracle, and what is wrong is one line."""

import numpy as np
import pytest
from sklearn import cluster as sklearn_cluster
from sklearn import mixture

from tests.made_up.clients import grouped
from tests.made_up.refusals import refused
from tff_cluster.base import seeding
from tff_cluster.base.errors import InputError
from tff_cluster.cli import parse
from tff_cluster.clustering import diverged_clients, methods
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Evidence, Newcomers
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig

OWN = """
import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

class Short(ClusterMixin, BaseEstimator):
  def fit_predict(self, X, y=None):
    return np.zeros(len(X) - 1, int)

class Shares(ClusterMixin, BaseEstimator):
  def fit_predict(self, X, y=None):
    return np.linspace(0.0, 1.0, len(X))

class Broken(ClusterMixin, BaseEstimator):
  def fit_predict(self, X, y=None):
    raise KeyError('no\\nluck')

text = 'no class'
"""
# Methods, which say which clients they assign.
OWN_METHODS = """
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Method
from tff_cluster.clustering.outcome import Outcome

class Turned(Method):
  name = 'turned'

  def cluster(self, options, evidence):
    ids = evidence.client_ids[::-1]
    return Outcome(ClusterAssignment.from_labels([0] * len(ids), ids))

class Few(Method):
  name = 'few'

  def cluster(self, options, evidence):
    return Outcome(ClusterAssignment.from_labels([0, 1], evidence.client_ids[:2]))

class Nothing(Method):
  name = 'nothing'

  def cluster(self, options, evidence):
    return None
"""


VECTORS, _ = grouped(0, 3, 8, 5, spread=0.25)
CLUSTER, MIXTURE = 'sklearn.cluster:', 'sklearn.mixture:GaussianMixture'


def found(spec, given=VECTORS, seed=3):
  return methods.cluster(parse.parse_clustering_spec(spec), Signatures.numbered(given), seed)


def drawn(name):
  """The seed that follows from the experiment's, 3."""
  return seeding.integer_seed(3, 'estimator', name if ':' in name else CLUSTER + name)


def partition(labels):
  """The clusters of labels, in which each row labelled -1 is a cluster of its own."""
  labels = np.array([-k - 2 if label == -1 else label for k, label in enumerate(labels)])
  return ClusterAssignment.from_labels(labels, tuple(map(str, range(len(labels))))).clusters


@pytest.mark.parametrize(
  ('spec', 'model'),
  [
    ('HDBSCAN,min_cluster_size=3', sklearn_cluster.HDBSCAN(min_cluster_size=3)),
    ('DBSCAN,eps=0.001', sklearn_cluster.DBSCAN(eps=0.001)),
    ('Birch,n_clusters=none', sklearn_cluster.Birch(n_clusters=None)),
    ('MeanShift,bandwidth=5,cluster_all=false', sklearn_cluster.MeanShift(bandwidth=5, cluster_all=False)),
    *(
      (name, getattr(sklearn_cluster, name)(random_state=drawn(name)))
      for name in ('AffinityPropagation', 'BisectingKMeans')
    ),
  ],
)
def test_an_estimator_gives_its_own_answer(spec, model):
  expected = partition(model.fit_predict(VECTORS))
  outcome = found(CLUSTER + spec)
  assert sorted(outcome.assignment.clusters) == sorted(expected)
  alone = 24 if 'DBSCAN,eps' in spec else 0
  assert any(f'{alone} of 24 clients are in no cluster of DBSCAN' in note for note in outcome.notes) == bool(
    alone
  )


@pytest.mark.parametrize('metric', ['l1', 'cosine'])
def test_precomputed_gets_our_distances_and_affinities_are_similarities(metric):
  distances = np.array(Signatures.numbered(VECTORS).distances(metric))
  linked = sklearn_cluster.AgglomerativeClustering(n_clusters=4, metric='precomputed', linkage='average')
  seed = drawn('AffinityPropagation')
  similar = sklearn_cluster.AffinityPropagation(affinity='precomputed', random_state=seed)
  of_links = 'AgglomerativeClustering,metric=precomputed,linkage=average,n_clusters=4'
  for spec, expected in (
    (of_links, linked.fit_predict(distances)),
    ('AffinityPropagation,affinity=precomputed', similar.fit_predict(-distances)),
  ):
    clusters = found(f'{CLUSTER}{spec},distances={metric}').assignment.clusters
    assert 1 < len(clusters) < 24 and sorted(clusters) == sorted(partition(expected))


def holds(shares, column, threshold):
  """Whom a component holds enough of, or most: bool[rows]."""
  return (shares[:, column] >= threshold) | (shares.argmax(axis=1) == column)


@pytest.mark.parametrize('threshold', [None, 0.2, 1.0])
def test_clients_and_newcomers_of_a_mixture_are_in_all_clusters_that_hold_enough_of_them(threshold):
  given, new = np.random.default_rng(2).normal(size=(40, 2)), np.random.default_rng(3).normal(size=(9, 2))
  model = mixture.GaussianMixture(3, random_state=drawn(MIXTURE)).fit(given)
  own, shares = model.predict_proba(given), model.predict_proba(new)
  told = '' if threshold is None else f',membership_threshold={threshold}'
  assignment, found = joined(f'{MIXTURE},n_components=3{told}', new, given)
  enough = threshold or 0.5
  column_of = {tuple(np.flatnonzero(holds(own, column, enough))): column for column in range(3)}
  assert set(column_of) == {tuple(assignment.members(row)) for row in range(3)}
  assert assignment.is_overlapping == (threshold == 0.2)
  columns = [column_of[tuple(assignment.members(row))] for row in range(3)]
  np.testing.assert_array_equal(found.membership, [holds(shares, column, enough) for column in columns])


def joined(spec, new, given=VECTORS):
  clustering = parse.parse_clustering_spec(spec)
  signatures = Signatures.numbered(given)
  assignment = methods.cluster(clustering, signatures, 3).assignment
  arriving = Signatures(new, tuple(f'new {k}' for k in range(len(new))))
  evidence = Evidence(signatures, 3)
  return assignment, clustering.rule.join(clustering.options, Newcomers(assignment, evidence, arriving))


def test_newcomers_are_where_the_estimator_predicts_them_or_have_the_nearest_mean():
  new = VECTORS[:6] + np.random.default_rng(1).normal(size=(6, 5)).astype(np.float32)
  model = sklearn_cluster.Birch(n_clusters=3)
  labels = model.fit_predict(VECTORS)
  assignment, found = joined('sklearn.cluster:Birch,n_clusters=3', new)
  for client, label in enumerate(model.predict(new)):
    (row,) = np.flatnonzero(found.membership[:, client])
    assert set(labels[assignment.members(row)]) == {label}
  assert not found.fallback.any()
  # Nothing is predicted by this one.
  assignment, found = joined('sklearn.cluster:AgglomerativeClustering,n_clusters=3', new)
  means = np.stack([VECTORS[assignment.members(row)].mean(axis=0) for row in range(3)])
  nearest = np.linalg.norm(new[:, None] - means[None], axis=2).argmin(axis=1)
  np.testing.assert_array_equal(found.membership.argmax(axis=0), nearest)


def test_where_newcomers_go_depends_on_no_other_newcomer():
  rng = np.random.default_rng(0)
  given = np.concatenate([rng.normal((side, 0.0), size=(20, 2)) for side in (-1.2, 1.2)])
  spec = f'{MIXTURE},n_components=2,covariance_type=spherical,membership_threshold=0.2'
  assignment = found(spec, given).assignment
  between = int(np.flatnonzero(assignment.membership.all(axis=0))[0])
  # Alone, a client of both clusters is all that either label has; with others it is not.
  for places in ([between], [between, 0, 39]):
    _, twins = joined(spec, given[places], given)
    np.testing.assert_array_equal(twins.membership, assignment.membership[:, places])


def test_an_estimator_that_finds_other_clusters_when_it_is_fitted_again_is_one_line(tmp_path, monkeypatch):
  (tmp_path / 'drawing.py').write_text(
    'import numpy as np\nfrom sklearn.base import BaseEstimator, ClusterMixin\n'
    'class Drawing(ClusterMixin, BaseEstimator):\n  fits = 0\n'
    '  def fit_predict(self, X, y=None):\n    type(self).fits += 1\n    return np.arange(len(X)) % (1 + type(self).fits)\n'
    '  def predict(self, X):\n    return np.zeros(len(X), int)\n'
  )
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(InputError, match='drawing:Drawing found other clusters when it was fitted again'):
    joined('drawing:Drawing', VECTORS[:2])


@pytest.mark.parametrize('path', ['AgglomerativeClustering,n_clusters=25', 'KMeans'])
def test_clients_without_a_finite_vector_are_left_out(path):
  clustering = parse.parse_clustering_spec(CLUSTER + path)
  clients = clustering.rule.told_number(clustering.options)  # That of KMeans is its default.
  ids = tuple(map(str, range(clients)))
  outcome = diverged_clients.cluster(clustering, Signatures(VECTORS[: clients - 1], ids[:-1]), ids, 0)
  assert outcome.excluded == (ids[-1],) and outcome.assignment.num_clusters == clients - 1


def test_a_method_that_is_one_of_ours_leaves_the_registry_as_it_is():
  path = 'tff_cluster.clustering.methods.kmeans:METHOD'
  assert ClusteringConfig(path).rule.name == path
  assert methods.find('kmeans').name == 'kmeans'


def test_components_are_no_clusters_where_an_estimator_has_both():
  clustering = parse.parse_clustering_spec(f'{CLUSTER}SpectralClustering,n_components=3')
  assert clustering.words()['told'] == 8  # n_clusters by default.
  assert parse.parse_clustering_spec(f'{MIXTURE},n_components=3').words()['told'] == 3
  assert (
    parse.parse_clustering_spec(f'{CLUSTER}AgglomerativeClustering,n_clusters=none').words()['told'] is None
  )


def test_a_configuration_survives_and_imports_nothing_by_itself():
  clustering = ClusteringConfig('no_such_module:Chains', 'mine', radius=0.3)
  assert ClusteringConfig.from_json(clustering.to_json()) == clustering and hash(clustering)
  assert clustering.label == 'mine' and ClusteringConfig('a.b:Chains').label == 'Chains'
  refused(
    ExperimentConfig(clusterings=(clustering,)).validated, ('no_such_module:Chains cannot be imported',)
  )
  drawing = ClusteringConfig(CLUSTER + 'BisectingKMeans', random_state=1)
  refused(drawing.check, ('random_state=1: it follows from the seed',))


def test_more_clusters_than_clients_are_told_before_anything_is_trained():
  def configured(text):
    data = DataConfig(num_clients=7)
    return ExperimentConfig(data, clusterings=(parse.parse_clustering_spec(text),)).validated()

  configured(f'{CLUSTER}KMeans,n_clusters=7')
  configured(f'{CLUSTER}SpectralClustering,n_clusters=7,n_components=9')  # Eigenvectors.
  configured(f'{CLUSTER}HDBSCAN')
  refused(
    configured,
    (
      f'{CLUSTER}KMeans,n_clusters=9',
      '^clustering=.*KMeans: n_clusters=9 is more than the 7 clients; give at most',
    ),
    (f'{CLUSTER}KMeans', 'n_clusters=8 is more than the 7 clients'),  # Its default.
    (f'{CLUSTER}KMeans,n_clusters=0', 'n_clusters=0: must be at least 1'),
    (f'{MIXTURE},n_components=8', 'n_components=8 is more than the 7 clients'),
  )


def test_what_is_wrong_is_one_line(tmp_path, monkeypatch):
  (tmp_path / 'brought.py').write_text(OWN)
  monkeypatch.syspath_prepend(tmp_path)
  refused(
    found,
    ('no_such_module:Chains', "cannot be imported: there is no module 'no_such_module'"),
    ('sklearn.cluster:NoSuch', "cannot be imported: module 'sklearn.cluster' has no attribute 'NoSuch'"),
    ('sklearn.cluster:', 'expected an import path'),
    ('sklearn.svm:SVC', "expected a clusterer or mixture of scikit-learn.*found 'SVC'"),
    # It clusters columns, and takes its fit_predict back.
    (f'{CLUSTER}FeatureAgglomeration', "expected a clusterer.*found 'FeatureAgglomeration'"),
    ('brought:text', "found 'str'"),
    ('sklearn.cluster:HDBSCAN,min_size=3', r"unknown key 'min_size' \(did you mean"),
    ('sklearn.cluster:HDBSCAN,metric=precomputed,distances=l3', 'distances=l3: allowed are l1, l2, cosine'),
    ('sklearn.cluster:HDBSCAN,distances=l1', 'distances=l1 applies to metric=precomputed only'),
    (f'{MIXTURE},membership_threshold=0', 'membership_threshold=0.0: must be above 0.0'),
    ('sklearn.cluster:HDBSCAN,min_cluster_size=many', 'its fit failed: InvalidParameterError'),
    ('brought:Short', r'returned labels of shape \(23,\), type int64; expected 24 whole numbers'),
    ('brought:Shares', 'type float64; expected 24 whole numbers'),
    ('brought:Broken', "its fit failed: KeyError: 'no.*nluck'"),
  )


@pytest.mark.parametrize(
  ('text', 'words'),
  [
    (
      'class M(Method):\n  def __init__(self, count): pass',
      r'M\(\) fails: .*a method is made without arguments',
    ),
    ('class M(Method):\n  def __init__(self): raise RuntimeError("no luck")', r'M\(\) fails: no luck'),
    (
      'class M(Method):\n  options_type = dict\n  def cluster(self, options, evidence): pass',
      'its options_type is no dataclass',
    ),
    ('class M(Method):\n  pass', 'M overrides neither cluster nor rounds'),
  ],
)
def test_a_method_that_cannot_be_used_is_one_line(text, words, tmp_path, monkeypatch):
  name = f'brought_{tmp_path.name}'
  (tmp_path / f'{name}.py').write_text(f'from tff_cluster.clustering.method import Method\n{text}\n')
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(InputError, match=words):
    ClusteringConfig(f'{name}:M').check()


@pytest.mark.parametrize(
  ('attribute', 'words'),
  [
    (
      'Turned',
      'own_methods:Turned assigned 3 clients; expected the 3 of evidence.client_ids, in their order',
    ),
    ('Few', 'own_methods:Few assigned 2 clients; expected the 3 of evidence.client_ids'),
    ('Nothing', 'own_methods:Nothing returned .* expected an Outcome'),
  ],
)
def test_a_method_assigns_the_clients_that_it_was_given(attribute, words, tmp_path, monkeypatch):
  (tmp_path / 'own_methods.py').write_text(OWN_METHODS)
  monkeypatch.syspath_prepend(tmp_path)
  vectors = np.array([[0.0, 1.0], [1.0, 0.0], [np.nan, 1.0]], np.float32)
  config, ids = ClusteringConfig(f'own_methods:{attribute}'), ('b', 'a', 'c')
  with pytest.raises(InputError, match=words):
    methods.cluster(config, Signatures(vectors[[0, 1, 1]], ids), 0)
  # Nor where a client is left out whose vector is not finite.
  with pytest.raises(InputError, match='expected'):
    diverged_clients.cluster(
      config,
      Signatures(vectors[:2], ids[:2]) if attribute != 'Few' else Signatures(vectors[[0, 1, 1]], ids),
      [*ids, 'd'],
      0,
    )
