"""Dynamic distance: brute-force cliques, the disjoint limit, thresholds and caps."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph
from scipy.spatial import distance as scipy_distance

from tff_cluster.base.errors import InputError
from tff_cluster.clustering import estimators, methods
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.methods.dynamic_distance import (
  VARIANTS,
  clusters_of_links,
  dynamic_distance,
)
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig


@st.composite
def graphs(draw, most=7):
  size = draw(st.integers(1, most))
  links = np.zeros((size, size), bool)
  for i, j in itertools.combinations(range(size), 2):
    links[i, j] = links[j, i] = draw(st.booleans())
  return links


def as_sets(membership):
  return {frozenset(np.flatnonzero(row).tolist()) for row in membership}


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


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.sampled_from(VARIANTS))
def test_disjoint_limit_equals_connected_components(groups, variant):
  # Where being linked is an equivalence relation, overlap vanishes. Planted on a line: groups 10 apart, members
  # less than 1 apart.
  groups = np.array(groups)
  vectors = groups[:, None] * 10.0 + np.linspace(0, 0.9, len(groups))[:, None]
  assignment, _ = dynamic_distance(Signatures.numbered(vectors), '1', variant)
  links = np.abs(vectors - vectors.T) <= 1.0
  _, components = csgraph.connected_components(links)
  expected = ClusterAssignment.from_labels(components, assignment.client_ids)
  np.testing.assert_array_equal(assignment.membership, expected.membership)
  np.testing.assert_array_equal(
    expected.membership, ClusterAssignment.from_labels(groups, expected.client_ids).membership
  )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(VARIANTS), st.data())
def test_permuting_clients_permutes_columns(seed, variant, data):
  vectors = np.random.default_rng(seed).normal(size=(8, 3))
  order = np.array(data.draw(st.permutations(range(8))))
  ids = tuple('abcdefgh')
  plain, _ = dynamic_distance(Signatures(vectors, ids), '1.5', variant)
  permuted, _ = dynamic_distance(Signatures(vectors[order], tuple(ids[k] for k in order)), '1.5', variant)
  assert {frozenset(c) for c in plain.clusters} == {frozenset(c) for c in permuted.clusters}
  assert as_sets(permuted.membership) == as_sets(plain.membership[:, order])


def test_shift_and_rotation_change_nothing():
  rng = np.random.default_rng(0)
  vectors = rng.normal(size=(15, 40))
  rotation = np.linalg.qr(rng.normal(size=(40, 40)))[0]
  plain, threshold = dynamic_distance(Signatures.numbered(vectors))
  moved, moved_threshold = dynamic_distance(Signatures.numbered(vectors @ rotation + 11.0))
  np.testing.assert_array_equal(moved.membership, plain.membership)
  assert moved_threshold == pytest.approx(threshold)
  assert plain.is_overlapping


def test_thresholds():
  vectors = np.random.default_rng(1).normal(size=(14, 30)).astype(np.float32)
  pairs = scipy_distance.pdist(vectors.astype(np.float64))
  signatures = Signatures.numbered(vectors)
  assert dynamic_distance(signatures, 'mean')[1] == pytest.approx(pairs.mean(), rel=1e-12)
  assert dynamic_distance(signatures, 'quantile:0.1')[1] == pytest.approx(np.quantile(pairs, 0.1), rel=1e-12)
  assert dynamic_distance(signatures, '7.25')[1] == 7.25
  for text in ('median', 'quantile:2', '-1', 'nan', ''):
    with pytest.raises(InputError, match=r'^distance_threshold'):
      dynamic_distance(signatures, text)


def test_a_pair_at_exactly_the_threshold_is_linked():
  signatures = Signatures.numbered(np.array([[0.0, 0.0], [3.0, 4.0]]))
  assert dynamic_distance(signatures, '5')[0].num_clusters == 1
  assert dynamic_distance(signatures, '4.999')[0].num_clusters == 2


@pytest.mark.parametrize('size', range(2, 40))
def test_the_mean_of_equal_distances_links_everybody(size):
  # All pairs are 0.1 * sqrt(2) apart; rounding of the mean must not cut them.
  assert dynamic_distance(Signatures.numbered(0.1 * np.eye(size)))[0].num_clusters == 1


@pytest.mark.parametrize('text', ['mean', 'quantile:0.1', '3'])
def test_one_client(text):
  assignment, threshold = dynamic_distance(Signatures.numbered(np.ones((1, 3))), text)
  assert assignment.clusters == [['0']]
  assert threshold == (3.0 if text == '3' else None)


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


def test_the_cap_is_not_too_eager():
  assert len(clusters_of_links(many_cliques(5), 'cliques', 32)) == 32
  with pytest.raises(InputError):
    clusters_of_links(many_cliques(5), 'cliques', 31)
  with pytest.raises(InputError, match='10 neighbourhoods, more than max_clusters=9'):
    clusters_of_links(many_cliques(5), 'neighbourhoods', 9)


def test_the_caps_message_names_the_threshold():
  vectors = np.random.default_rng(2).normal(size=(30, 3))
  with pytest.raises(InputError, match=r'distance threshold 1\.5: 4 maximal cliques so far'):
    dynamic_distance(Signatures.numbered(vectors), '1.5', max_clusters=3)


def test_unknown_variant():
  with pytest.raises(InputError, match="variant 'ego': allowed are cliques, neighbourhoods"):
    clusters_of_links(np.eye(2, dtype=bool), 'ego', 10)


def config(threshold=None, **others):
  return ClusteringConfig(method='dynamic_distance', distance_threshold=threshold, **others)


def test_notes():
  signatures = Signatures.numbered(np.array([[0.0], [2.0], [4.0], [50.0]]))
  # Linked at 2: {0, 2}, {2, 4}, {50}; client 1 is in two of them, 5 memberships among 4 clients.
  outcome = methods.cluster(config('2'), signatures, 0)
  assert outcome.notes == ('threshold 2 (as given) gives 3 maximal cliques, 1.2 memberships a client',)
  assert outcome.threshold == 2.0
  neighbourhoods = methods.cluster(config('2', variant='neighbourhoods'), signatures, 0)
  assert neighbourhoods.assignment.clusters == [['0', '1', '2'], ['3']]
  assert '2 neighbourhoods, 1.0 memberships' in neighbourhoods.notes[0]
  alone = methods.cluster(config('1'), signatures, 0)
  assert any('every client is alone' in note and 'smallest distance 2' in note for note in alone.notes)
  assert 'all clients are in one cluster' in methods.cluster(config('60'), signatures, 0).notes
  # Mean of 2, 4, 50, 2, 48, 46.
  assert methods.cluster(config(), signatures, 0).threshold == pytest.approx(152 / 6)


def test_estimator_labels_only_where_disjoint():
  points = np.array([[0.0], [2.0], [4.0], [50.0]])
  estimator = estimators.DynamicDistanceClustering(distance_threshold=5).fit(points)
  assert estimator.labels_.tolist() == [0, 0, 0, 1]
  estimator.set_params(distance_threshold=2.0).fit(points)
  assert not hasattr(estimator, 'labels_')
  assert as_sets(estimator.membership_) == {frozenset({0, 1}), frozenset({1, 2}), frozenset({3})}
