"""Dynamic distance: brute-force cliques, thresholds and caps."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import distance as scipy_distance

from tests.made_up.clients import as_sets
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


def without_subsets(sets):
  return {s for s in sets if not any(s < other for other in sets)}


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_cliques_equal_brute_force(links):
  clients = range(len(links))
  cliques = {
    frozenset(members)
    for size in range(1, len(links) + 1)
    for members in itertools.combinations(clients, size)
    if all(links[i, j] for i, j in itertools.combinations(members, 2))
  }
  found = clusters_of_links(links, 'cliques', 1000)
  assert as_sets(found) == without_subsets(cliques)
  assert len(found) == len(as_sets(found))


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_neighbourhoods_equal_brute_force(links):
  closed = {frozenset([i, *np.flatnonzero(links[i]).tolist()]) for i in range(len(links))}
  found = clusters_of_links(links, 'neighbourhoods', 1000)
  assert as_sets(found) == without_subsets(closed)
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
  for text in ('median', 'quantile:2', '-1', 'nan'):
    with pytest.raises(InputError, match=r'^distance_threshold'):
      clustered(vectors, text)
  # A pair at exactly the threshold is linked.
  pair = np.array([[0.0, 0.0], [3.0, 4.0]])
  assert [clustered(pair, text).assignment.num_clusters for text in ('5', '4.999')] == [1, 2]


def test_the_mean_of_equal_distances_links_everybody():
  # All pairs are 0.1 * sqrt(2) apart; rounding of the mean must not cut them.
  for size in range(2, 40):
    assert clustered(0.1 * np.eye(size)).assignment.num_clusters == 1


def many_cliques(pairs):
  """A graph of 2**pairs maximal cliques: everybody is linked with all but one partner."""
  links = np.ones((2 * pairs, 2 * pairs), bool)
  for k in range(pairs):
    links[2 * k, 2 * k + 1] = links[2 * k + 1, 2 * k] = False
  return links


def test_the_cap_stops_an_exponential_search():
  with pytest.raises(InputError) as caught:
    clusters_of_links(many_cliques(60), 'cliques', 50)  # 2**60 of them: only a lazy search comes back.
  message = str(caught.value)
  assert '51 maximal cliques so far, more than max_clusters=50' in message
  assert 'smaller distance_threshold or a higher max_clusters' in message
  assert '\n' not in message
  assert len(clusters_of_links(many_cliques(5), 'cliques', 32)) == 32


@pytest.mark.parametrize(
  ('links', 'variant', 'most', 'message'),
  [
    (many_cliques(5), 'cliques', 31, '32 maximal cliques so far'),
    (many_cliques(5), 'neighbourhoods', 9, '10 neighbourhoods, more than max_clusters=9'),
    # Told before a search.
    (np.zeros((5, 5), bool), 'cliques', 4, '5 maximal cliques so far, more than max_clusters=4'),
    (np.eye(2, dtype=bool), 'ego', 10, "variant 'ego': allowed are cliques, neighbourhoods"),
  ],
)
def test_too_many_clusters_and_an_unknown_variant(links, variant, most, message):
  with pytest.raises(InputError, match=message):
    clusters_of_links(links, variant, most)


def test_notes():
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
  # Mean of 2, 4, 50, 2, 48, 46.
  assert clustered(vectors).threshold == pytest.approx(152 / 6)
  with pytest.raises(InputError, match=r'distance threshold 2: 3 maximal cliques so far'):
    clustered(vectors, '2', max_clusters=2)


def test_estimator_labels_only_where_disjoint():
  points = np.array([[0.0], [2.0], [4.0], [50.0]])
  estimator = estimators.DynamicDistanceClustering(distance_threshold=5).fit(points)
  assert estimator.labels_.tolist() == [0, 0, 0, 1]
  estimator.set_params(distance_threshold=2.0).fit(points)
  assert not hasattr(estimator, 'labels_')
  assert as_sets(estimator.membership_) == {frozenset({0, 1}), frozenset({1, 2}), frozenset({3})}
