"""Methods that a user brings: scikit-learn's own answer on the same vectors is the oracle, and what is wrong is one line."""

import numpy as np
import pytest
from sklearn import cluster as sklearn_cluster
from sklearn import mixture

from tff_cluster.base import seeding
from tff_cluster.base.errors import InputError
from tff_cluster.cli import parse
from tff_cluster.clustering import diverged_clients, methods
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Evidence, Newcomers
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig, ExperimentConfig

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


def vectors(seed=0, clients=24, features=5):
  rng = np.random.default_rng(seed)
  centres = 4.0 * rng.normal(size=(3, features))
  return (centres[np.arange(clients) % 3] + rng.normal(size=(clients, features))).astype(np.float32)


def found(spec, given=None, seed=3):
  clustering = parse.parse_clustering_spec(spec)
  return methods.cluster(clustering, Signatures.numbered(vectors() if given is None else given), seed)


def partition(labels):
  """The clusters of labels, in which each row labelled -1 is a cluster of its own."""
  labels = np.array([-k - 2 if label == -1 else label for k, label in enumerate(labels)])
  return ClusterAssignment.from_labels(labels, tuple(map(str, range(len(labels))))).clusters


@pytest.mark.parametrize(
  ('spec', 'model'),
  [
    ('HDBSCAN,min_cluster_size=3', sklearn_cluster.HDBSCAN(min_cluster_size=3)),
    ('DBSCAN,eps=2.0,min_samples=3', sklearn_cluster.DBSCAN(eps=2.0, min_samples=3)),
    ('OPTICS,min_samples=4', sklearn_cluster.OPTICS(min_samples=4)),
    ('Birch,n_clusters=3', sklearn_cluster.Birch(n_clusters=3)),
    ('Birch,n_clusters=none', sklearn_cluster.Birch(n_clusters=None)),
    ('MeanShift,bandwidth=5,cluster_all=false', sklearn_cluster.MeanShift(bandwidth=5, cluster_all=False)),
  ],
)
def test_an_estimator_gives_its_own_answer(spec, model):
  assert sorted(found(f'sklearn.cluster:{spec}').assignment.clusters) == sorted(
    partition(model.fit_predict(vectors()))
  )


@pytest.mark.parametrize('name', ['AffinityPropagation', 'MiniBatchKMeans', 'BisectingKMeans'])
def test_what_draws_gets_a_seed_that_follows_from_the_experiment_s(name):
  path, kind = f'sklearn.cluster:{name}', getattr(sklearn_cluster, name)
  model = kind(random_state=seeding.integer_seed(3, 'estimator', path))
  assert sorted(found(path).assignment.clusters) == sorted(partition(model.fit_predict(vectors())))
  with pytest.raises(InputError, match='random_state=1: it follows from the seed'):
    ClusteringConfig(path, random_state=1).check()


@pytest.mark.parametrize('metric', ['l1', 'l2', 'cosine'])
def test_precomputed_gets_our_distances(metric):
  words = f'metric=precomputed,linkage=average,n_clusters=4,distances={metric}'
  given = Signatures.numbered(vectors())
  model = sklearn_cluster.AgglomerativeClustering(n_clusters=4, metric='precomputed', linkage='average')
  expected = partition(model.fit_predict(np.array(given.distances(metric))))
  assert sorted(found(f'sklearn.cluster:AgglomerativeClustering,{words}').assignment.clusters) == sorted(
    expected
  )
  with pytest.raises(InputError, match=f'distances={metric} applies to metric=precomputed only'):
    found(f'sklearn.cluster:HDBSCAN,distances={metric}')


def test_affinities_are_similarities():
  distances = np.array(Signatures.numbered(vectors()).distances('l2'))
  path = 'sklearn.cluster:AffinityPropagation'
  model = sklearn_cluster.AffinityPropagation(
    affinity='precomputed', random_state=seeding.integer_seed(3, 'estimator', path)
  )
  expected = partition(model.fit_predict(-distances))
  assert 1 < len(expected) < 24
  assert sorted(found(f'{path},affinity=precomputed').assignment.clusters) == sorted(expected)


@pytest.mark.parametrize('threshold', [None, 0.01, 0.2, 1.0])
def test_memberships_of_a_mixture(threshold):
  given = np.random.default_rng(2).normal(size=(40, 2))
  path = 'sklearn.mixture:GaussianMixture'
  model = mixture.GaussianMixture(3, random_state=seeding.integer_seed(3, 'estimator', path)).fit(given)
  shares = model.predict_proba(given)
  expected = {
    tuple(k for k in range(40) if shares[k, c] >= (threshold or 0.5) or shares[k].argmax() == c)
    for c in range(3)
  }
  told = '' if threshold is None else f',membership_threshold={threshold}'
  assignment = found(f'{path},n_components=3{told}', given).assignment
  assert {tuple(map(int, members)) for members in assignment.clusters} == expected
  assert assignment.is_overlapping == (threshold in (0.01, 0.2))


def test_who_is_in_no_cluster_is_told():
  outcome = found('sklearn.cluster:DBSCAN,eps=0.001')
  assert outcome.assignment.num_clusters == 24
  assert any('24 of 24 clients are in no cluster of DBSCAN' in note for note in outcome.notes)


def joined(spec, new, given=None):
  clustering = parse.parse_clustering_spec(spec)
  signatures = Signatures.numbered(vectors() if given is None else given)
  assignment = methods.cluster(clustering, signatures, 3).assignment
  arriving = Signatures(new, tuple(f'new {k}' for k in range(len(new))))
  evidence = Evidence(signatures, 3)
  return assignment, clustering.rule.join(clustering.options, Newcomers(assignment, evidence, arriving))


def test_newcomers_are_where_the_estimator_predicts_them():
  new = vectors(0, 30)[24:] + np.random.default_rng(1).normal(size=(6, 5)).astype(np.float32)
  model = sklearn_cluster.Birch(n_clusters=3)
  labels = model.fit_predict(vectors())
  assignment, found = joined('sklearn.cluster:Birch,n_clusters=3', new)
  for client, label in enumerate(model.predict(new)):
    (row,) = np.flatnonzero(found.membership[:, client])
    assert labels[assignment.members(row)].tolist() == [label] * len(assignment.members(row))
  assert not found.fallback.any()


def test_newcomers_have_the_nearest_mean_where_nothing_is_predicted():
  new = vectors(5, 7)
  assignment, found = joined('sklearn.cluster:AgglomerativeClustering,n_clusters=3', new)
  means = np.stack([vectors()[assignment.members(row)].mean(axis=0) for row in range(3)])
  nearest = np.linalg.norm(new[:, None] - means[None], axis=2).argmin(axis=1)
  np.testing.assert_array_equal(found.membership.argmax(axis=0), nearest)


def test_newcomers_of_a_mixture_are_in_all_clusters_that_hold_enough_of_them():
  given, new = np.random.default_rng(2).normal(size=(40, 2)), np.random.default_rng(3).normal(size=(9, 2))
  path = 'sklearn.mixture:GaussianMixture'
  model = mixture.GaussianMixture(3, random_state=seeding.integer_seed(3, 'estimator', path)).fit(given)
  assignment, found = joined(f'{path},n_components=3,membership_threshold=0.2', new, given)
  shares, own = model.predict_proba(new), model.predict_proba(given)
  members = {tuple(np.flatnonzero((own[:, c] >= 0.2) | (own.argmax(axis=1) == c))): c for c in range(3)}
  for row in range(assignment.num_clusters):
    column = members[tuple(assignment.members(row))]
    expected = (shares[:, column] >= 0.2) | (shares.argmax(axis=1) == column)
    np.testing.assert_array_equal(found.membership[row], expected)


def test_clients_without_a_finite_vector_are_left_out():
  clustering = ClusteringConfig('sklearn.cluster:AgglomerativeClustering', n_clusters=25)
  ids = tuple(map(str, range(25)))
  signatures = Signatures(vectors(), ids[:24])
  outcome = diverged_clients.cluster(clustering, signatures, ids, 0)
  assert outcome.excluded == ('24',) and outcome.assignment.num_clusters == 24


def test_a_configuration_survives_and_imports_nothing_by_itself():
  clustering = ClusteringConfig('no_such_module:Chains', 'mine', radius=0.3)
  assert ClusteringConfig.from_json(clustering.to_json()) == clustering and hash(clustering)
  assert clustering.label == 'mine' and ClusteringConfig('a.b:Chains').label == 'Chains'
  with pytest.raises(InputError, match='no_such_module:Chains cannot be imported'):
    ExperimentConfig(clusterings=(clustering,)).validated()


@pytest.mark.parametrize(
  ('spec', 'words'),
  [
    ('no_such_module:Chains', 'cannot be imported: ModuleNotFoundError'),
    ('sklearn.cluster:NoSuch', 'cannot be imported: AttributeError'),
    ('sklearn.cluster:', 'expected an import path'),
    ('sklearn.cluster:k_means', 'expected a clusterer or mixture of scikit-learn'),
    ('sklearn.svm:SVC', "found 'SVC'"),
    ('sklearn.neighbors:LocalOutlierFactor', 'expected a clusterer'),
    ('brought:text', "found 'str'"),
    ('sklearn.cluster:HDBSCAN,min_size=3', "unknown key 'min_size' (did you mean"),
    ('sklearn.cluster:HDBSCAN,membership_threshold=0.2', "unknown key 'membership_threshold'"),
    ('sklearn.cluster:HDBSCAN,metric=precomputed,distances=l3', 'distances=l3: allowed are l1, l2, cosine'),
    (
      'sklearn.mixture:GaussianMixture,membership_threshold=0',
      'membership_threshold=0.0: must be above 0.0',
    ),
    ('sklearn.cluster:HDBSCAN,min_cluster_size=many', 'its fit failed: InvalidParameterError'),
    ('sklearn.cluster:AgglomerativeClustering,n_clusters=99', 'its fit failed: ValueError'),
    ('brought:Short', 'returned labels of shape (23,), type int64; expected 24 whole numbers'),
    ('brought:Shares', 'type float64; expected 24 whole numbers'),
    ('brought:Broken', "its fit failed: KeyError: 'no\\nluck'"),
  ],
)
def test_what_is_wrong_is_one_line(spec, words, tmp_path, monkeypatch):
  (tmp_path / 'brought.py').write_text(OWN)
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(InputError) as caught:
    found(spec)
  assert words in str(caught.value) and '\n' not in str(caught.value)
