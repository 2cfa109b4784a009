"""Dynamic distance: brute-force cliques, thresholds and caps."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import distance as scipy_distance

from tests.made_up.clients import as_sets
from tests.made_up.refusals import refused
from tff_cluster.base.errors import InputError
from tff_cluster.clustering import estimators, methods
from tff_cluster.clustering.methods import dynamic_distance as dynamic_distance_lib
from tff_cluster.clustering.methods.dynamic_distance import clusters_of_links
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig


@st.composite
def graphs(draw, most=7):
  # The diagonal does not matter.
  size = draw(st.integers(1, most))
  links = np.full((size, size), draw(st.booleans()))
  for i, j in itertools.combinations(range(size), 2):
    links[i, j] = links[j, i] = draw(st.booleans())
  return links


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_clusters_equal_brute_force(links):
  clients = range(len(links))
  cliques = {
    frozenset(members)
    for size in range(1, len(links) + 1)
    for members in itertools.combinations(clients, size)
    if all(links[i, j] for i, j in itertools.combinations(members, 2))
  }
  closed = {frozenset([i, *np.flatnonzero(links[i]).tolist()]) for i in clients}
  for variant, sets in (('cliques', cliques), ('neighbourhoods', closed)):
    found = clusters_of_links(links, variant, 1000)
    assert as_sets(found) == {s for s in sets if not any(s < other for other in sets)}
    assert len(found) == len(as_sets(found))


def test_large_groups_need_no_search(monkeypatch):
  monkeypatch.setattr(dynamic_distance_lib, '_MOST_SEARCHED_LINKS', 0)
  groups = np.arange(300) % 3
  links = groups[:, None] == groups[None]
  found = clusters_of_links(links, 'cliques', 3)
  assert as_sets(found) == {frozenset(range(g, 300, 3)) for g in range(3)}
  links[0, 3] = links[3, 0] = False
  with pytest.raises(InputError, match=r'4,949 links would have to be searched for cliques, at most 0'):
    clusters_of_links(links, 'cliques', 10)


def clustered(vectors, threshold=None, **others):
  config = ClusteringConfig('dynamic_distance', distance_threshold=threshold, **others)
  return methods.cluster(config, Signatures.numbered(vectors), 0)


def test_thresholds():
  vectors = np.random.default_rng(1).normal(size=(14, 30)).astype(np.float32)
  pairs = scipy_distance.pdist(vectors.astype(np.float64))
  for text, threshold in (('mean', pairs.mean()), ('quantile:0.1', np.quantile(pairs, 0.1)), ('7.25', 7.25)):
    assert clustered(vectors, text).threshold == pytest.approx(threshold, rel=1e-12)
    alone = clustered(vectors[:1], text)
    assert alone.assignment.clusters == [['0']] and alone.threshold == (7.25 if text == '7.25' else None)
  texts = ('median', 'quantile:2', '-1', 'nan')
  refused(clustered, *((vectors, text, '^distance_threshold') for text in texts))
  # All pairs are 0.1 * sqrt(2) apart; rounding of the mean must not cut them.
  for size in range(2, 40, 3):
    assert clustered(0.1 * np.eye(size)).assignment.num_clusters == 1
  # A pair at exactly the threshold is linked.
  pair = np.array([[0.0, 0.0], [3.0, 4.0]])
  assert [clustered(pair, text).assignment.num_clusters for text in ('5', '4.999')] == [1, 2]


def many_cliques(pairs):
  """A graph of 2**pairs maximal cliques: everybody is linked with all but one partner."""
  links = np.ones((2 * pairs, 2 * pairs), bool)
  for k in range(pairs):
    links[2 * k, 2 * k + 1] = links[2 * k + 1, 2 * k] = False
  return links


def test_too_many_clusters_and_an_unknown_variant():
  many = '51 maximal cliques so far, more than max_clusters=50 .*smaller distance_threshold or a higher max_clusters'
  refused(
    clusters_of_links,
    (many_cliques(60), 'cliques', 50, many),  # 2**60 of them: only a lazy search comes back.
    (many_cliques(5), 'neighbourhoods', 9, '10 neighbourhoods, more than max_clusters=9'),
    # Told before a search.
    (np.zeros((5, 5), bool), 'cliques', 4, '5 maximal cliques so far, more than max_clusters=4'),
    (np.eye(2, dtype=bool), 'ego', 10, "variant 'ego': allowed are cliques, neighbourhoods"),
  )
  assert len(clusters_of_links(many_cliques(5), 'cliques', 32)) == 32


def test_notes_and_an_estimator():
  vectors = np.array([[0.0], [2.0], [4.0], [50.0]])
  # Linked at 2: {0, 2}, {2, 4}, {50}; client 1 is in two of them, 5 memberships among 4 clients.
  outcome = clustered(vectors, '2')
  assert outcome.notes == ('threshold 2 (as given) gives 3 maximal cliques, 1.2 memberships a client',)
  assert outcome.threshold == 2.0
  neighbourhoods = clustered(vectors, '2', variant='neighbourhoods')
  assert neighbourhoods.assignment.clusters == [['0', '1', '2'], ['3']]
  assert '2 neighbourhoods, 1.0 memberships' in neighbourhoods.notes[0]
  alone = clustered(vectors, '1')
  assert any('every client is alone' in note and 'smallest distance 2' in note for note in alone.notes)
  assert 'all clients are in one cluster' in clustered(vectors, '60').notes
  # An estimator has labels only where clusters are disjoint.
  estimator = estimators.DynamicDistanceClustering(distance_threshold=5).fit(vectors)
  assert estimator.labels_.tolist() == [0, 0, 0, 1]
  estimator.set_params(distance_threshold=2.0).fit(vectors)
  assert not hasattr(estimator, 'labels_') and len(estimator.membership_) == 3
  # Mean of 2, 4, 50, 2, 48, 46.
  assert clustered(vectors).threshold == pytest.approx(152 / 6)
  with pytest.raises(InputError, match=r'distance threshold 2: 3 maximal cliques so far'):
    clustered(vectors, '2', max_clusters=2)
