"""Clients without a finite vector: they change nobody's clusters, and have a cluster all the same."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.made_up.clients import grouped, join
from tests.made_up.refusals import refused
from tff_cluster.clustering import diverged_clients, methods
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.outcome import Joined
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig

SEEDS = st.integers(0, 10**6)
METHODS = [
  ClusteringConfig('kmeans', num_clusters=3),
  ClusteringConfig('fedgroup', num_clusters=3),
  ClusteringConfig('spectral', num_clusters=3),
  ClusteringConfig('dynamic_distance', distance_threshold='quantile:0.3'),
  ClusteringConfig('hierarchical', distance_threshold='quantile:0.3'),
  ClusteringConfig('bipartition'),
]
IDS = tuple('abcdefghijkl')


def sick(seed, clients=12, features=5):
  """Returns vectors around three centres with their ids, and bool[clients], whose are finite: two or more are."""
  rng = np.random.default_rng(seed)
  vectors, _ = grouped(seed, 3, clients // 3, features)
  finite = np.ones(clients, bool)
  finite[rng.choice(clients, rng.integers(0, clients - 1), replace=False)] = False
  wrong = np.array([np.nan, np.inf, -np.inf], np.float32)
  for client in np.flatnonzero(~finite):
    places = rng.choice(features, rng.integers(1, features + 1), replace=False)
    vectors[client, places] = rng.choice(wrong, len(places))
  return vectors, IDS[:clients], finite


def test_rows_with_nan_or_infinity_are_found(tmp_path):
  vectors = np.zeros((5, 4), np.float32)
  vectors[1, 2], vectors[3, 0], vectors[4, 3] = np.nan, np.inf, -np.inf
  np.save(tmp_path / 'v.npy', vectors)
  for each in (vectors, np.load(tmp_path / 'v.npy', mmap_mode='r')):
    assert diverged_clients.finite_rows(each).tolist() == [True, False, True, False, False]
  # What is all finite is not copied.
  finite = np.eye(4, dtype=np.float32)
  assert diverged_clients.finite_only(finite, IDS[:4], np.ones(4, bool)).vectors is finite


@pytest.mark.parametrize('config', METHODS, ids=lambda config: config.method)
@settings(max_examples=12)
@given(seed=SEEDS)
def test_the_others_are_clustered_as_if_they_were_alone(config, seed):
  vectors, ids, finite = sick(seed)
  healthy = [k for k in range(len(ids)) if finite[k]]
  # Where fewer are left than clusters were asked for, each is alone.
  told = config.rule.told_number(config.options) or 0
  possible = config.changed(num_clusters=len(healthy)) if told > len(healthy) else config
  alone = methods.cluster(possible, Signatures(vectors[healthy], tuple(ids[k] for k in healthy)), seed)
  found = diverged_clients.cluster(config, diverged_clients.finite_only(vectors, ids, finite), ids, seed)
  out = {ids[k] for k in range(len(ids)) if not finite[k]}
  assert found.excluded == tuple(i for i in ids if i in out)
  assert found.threshold == alone.threshold and found.assignment.client_ids == ids
  without = [[i for i in members if i not in out] for members in found.assignment.clusters]
  assert sorted(without) == sorted(alone.assignment.clusters)
  # No cluster has members only that were not clustered, so none can lose all its updates through them.
  assert all(without)
  sizes = [len(members) for members in alone.assignment.clusters]
  first_largest = alone.assignment.clusters[sizes.index(max(sizes))]
  for members, kept in zip(found.assignment.clusters, without, strict=True):
    assert set(members) - set(kept) == (out if kept == first_largest else set())
  assert found.notes[: len(alone.notes)] == alone.notes
  assert (
    sum('not clustered' in note for note in found.notes) == len(found.notes) - len(alone.notes) == bool(out)
  )
  # Scores are over the clustered ones.
  scored = diverged_clients.clustered_only(found.assignment, found.excluded)
  np.testing.assert_array_equal(scored.membership, alone.assignment.membership)
  assert scored.client_ids == alone.assignment.client_ids


def test_shares_go_with_the_clients_that_are_scored():
  shares = np.array([[0.5, 0.25, 0.0], [0.5, 0.75, 0.0], [0.0, 0.0, 1.0]])
  assignment = ClusterAssignment(shares > 0.0, tuple('abc'), shares)
  scored = diverged_clients.clustered_only(assignment, ('c',))
  assert scored.client_ids == ('a', 'b')
  np.testing.assert_array_equal(scored.own, shares[:2, :2])
  np.testing.assert_array_equal(diverged_clients.clustered_only(assignment, ()).own, assignment.own)


def test_who_is_put_back_among_shares_has_all_of_the_largest_cluster():
  shares = np.array([[0.5, 0.0, 0.25], [0.5, 1.0, 0.75]])
  found = diverged_clients.put_back(ClusterAssignment(shares > 0.0, tuple('bce'), shares), tuple('abcde'))
  assert found.clusters == [['a', 'b', 'c', 'd', 'e'], ['b', 'e']]
  np.testing.assert_array_equal(found.own, [[1.0, 0.5, 1.0, 1.0, 0.75], [0.0, 0.5, 0.0, 0.0, 0.25]])
  # Those who were clustered have what they had.
  np.testing.assert_array_equal(diverged_clients.clustered_only(found, tuple('ad')).own, shares[::-1])


def test_of_several_largest_clusters_the_first_takes_them():
  clustered = ClusterAssignment.from_labels([0, 1, 1, 2, 2], tuple('bcdef'))
  found = diverged_clients.put_back(clustered, tuple('abcdefg'))
  assert found.clusters == [['a', 'c', 'd', 'g'], ['b'], ['e', 'f']]
  assert diverged_clients.put_back(clustered, clustered.client_ids) is clustered
  overlapping = ClusterAssignment.from_clusters([['b', 'c'], ['c', 'd', 'e']], tuple('bcde'))
  assert diverged_clients.put_back(overlapping, tuple('abcde')).clusters == [['a', 'c', 'd', 'e'], ['b', 'c']]
  # Clusters of strangers, and in another order.
  wrong = ((clustered, tuple(ids), 'in the same order') for ids in ('bdefg', 'cbdef'))
  refused(diverged_clients.put_back, *wrong)


def test_fewer_than_two_clients_that_are_left_are_one_line():
  refused(
    diverged_clients.check,
    (
      np.array([False, True, False]),
      IDS,
      'client a: .* those of 1 client more.* use a smaller learning_rate',
    ),
    (np.array([False]), IDS, 'client a: its weights became NaN or infinite, so'),
  )
  # One client that is alone anyway, and two that are left, are no error.
  diverged_clients.check(np.array([True]), IDS)
  diverged_clients.check(np.array([True, True, False]), IDS)


def test_notes_name_at_most_five():
  assert diverged_clients.note(('client_3', 'client_7')) == (
    '2 clients were not clustered, because what they sent was not finite (client_3, client_7); they are kept in the '
    'largest cluster'
  )
  assert '(a); it is kept' in diverged_clients.note('a')
  assert '(a, b, c, d, e)' in diverged_clients.note(tuple('abcde'))
  assert '(a, b, c, d, e and 1 more)' in diverged_clients.note_of_splits(tuple('abcdef'))


@pytest.mark.parametrize(
  ('labels', 'finite', 'expected'),
  [
    ([0, 1, 1], [1, 0, 1, 1], [0, 1, 1, 1]),
    # Of halves of one size the first takes them, and halves are numbered by first member.
    ([0, 1], [1, 1, 0], [0, 1, 0]),
    ([0, 1, 1], [0, 1, 1, 1], [0, 1, 0, 0]),
  ],
)
def test_who_was_not_compared_goes_with_the_larger_half(labels, finite, expected):
  assert diverged_clients.with_larger_half(np.array(labels), np.array(finite, bool)).tolist() == expected


@pytest.mark.parametrize('config', METHODS[:4], ids=lambda config: config.method)
@settings(max_examples=10)
@given(seed=SEEDS)
def test_newcomers_join_as_if_those_who_were_not_clustered_were_not_there(config, seed):
  vectors, ids, finite = sick(seed)
  assume(finite.sum() > 3)
  new = Signatures(np.random.default_rng(seed + 1).normal(size=(4, 5)) * 3, tuple('wxyz'))
  signatures = diverged_clients.finite_only(vectors, ids, finite)
  alone = methods.cluster(config, signatures, seed)
  everybody = diverged_clients.put_back(alone.assignment, ids)
  expected = join(config, signatures, alone.assignment, new, alone.threshold)
  found = join(config, signatures, everybody, new, alone.threshold)
  np.testing.assert_array_equal(found.fallback, expected.fallback)
  healthy = set(signatures.client_ids)
  for client in range(4):
    of_everybody, of_healthy = (
      {frozenset(healthy & set(a.clusters[row])) for row in np.flatnonzero(joined.membership[:, client])}
      for a, joined in ((everybody, found), (alone.assignment, expected))
    )
    assert of_everybody == of_healthy


def test_a_newcomer_that_diverged_joins_the_largest_cluster_and_is_told():
  assignment = ClusterAssignment.from_labels([0, 1, 1], tuple('abc'))
  joined = Joined(np.array([[True, False], [False, True]]), np.array([False, True]))
  found = diverged_clients.join_largest(joined, ('x', 'z'), ('x', 'y', 'z'), assignment)
  assert found.membership.tolist() == [[True, False, False], [False, True, True]]
  assert found.fallback.tolist() == [False, True, True]
  nobody = diverged_clients.join_largest(None, (), ('x', 'y'), assignment)
  assert nobody.membership.tolist() == [[False, False], [True, True]] and nobody.fallback.all()
