"""PACFL on digits in planted groups, against SciPy's agglomeration, and what it is not told."""

import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.spatial import distance as scipy_distance
from sklearn import datasets, metrics

from tests.made_up.refusals import refused
from tff_cluster.clustering import methods, principal_angles, replay
from tff_cluster.clustering.method import Evidence, Newcomers
from tff_cluster.clustering.methods.kmeans import METHOD as KMEANS
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig

GROUPS = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])
SETS = ((0, 1, 2), (3, 4, 5), (2, 6, 7, 8, 9))


def rotated(x, y, group):
  return np.rot90(x, group, axes=(1, 2)), y


def renamed(x, y, group):
  return x, (y + 3 * group) % 10


def labels_apart(x, y, group):
  kept = np.isin(y, SETS[group])
  return x[kept], y[kept]


def digits(plant, seed=0):
  """Returns clients with 140 digits each, of the group that is planted, by id."""
  bunch = datasets.load_digits()
  order = np.random.default_rng(seed).permutation(len(bunch.target))
  shares = np.array_split(order, len(GROUPS))
  return {
    f'c{k:02}': plant(bunch.images[rows], bunch.target[rows], GROUPS[k]) for k, rows in enumerate(shares)
  }


def unseen(rows):
  """Returns vectors that say nothing of the clients."""
  return Signatures(np.zeros((len(rows), 1)), tuple(rows))


def clustered(rows, **options):
  return methods.cluster(ClusteringConfig('pacfl', **options), unseen(rows), 0, rows=rows)


def degrees(rows, others=None, measure='sum', count=3):
  ours, theirs = (principal_angles.subspaces(each.values(), count) for each in (rows, others or rows))
  return principal_angles.proximity(ours, theirs, measure)


@pytest.mark.parametrize('measure', ['sum', 'trace'])
@pytest.mark.parametrize('plant', [rotated, renamed, labels_apart])
def test_planted_groups_are_found(plant, measure):
  rows = digits(plant)
  found = clustered(rows, num_clusters=3, measure=measure)
  assert metrics.adjusted_rand_score(GROUPS, found.assignment.labels) == 1.0
  # The last merge but two is within groups, the next one across: any threshold between finds them too.
  low, high = found.linkage[-3:-1, 2]
  at = clustered(rows, distance_threshold=repr(float((low + high) / 2)), measure=measure)
  assert at.assignment.clusters == found.assignment.clusters and at.threshold == (low + high) / 2


def test_the_smallest_angle_of_all_labels_together_does_not_see_names():
  plain, others = digits(lambda x, y, group: (x, y)), digits(renamed)
  for measure, same in (('smallest', True), ('sum', False)):
    assert np.allclose(degrees(plain, measure=measure), degrees(others, measure=measure), atol=1e-3) == same
  found = clustered(digits(labels_apart), num_clusters=2, measure='smallest', num_vectors=1)
  # Groups 0 and 2 share the digit 2, and nearest are those who hold a digit in common.
  assert metrics.adjusted_rand_score(GROUPS == 1, found.assignment.labels) == 1.0


def test_clusters_are_those_of_average_linkage():
  rows = digits(lambda x, y, group: (x, y))
  pairs = scipy_distance.squareform(degrees(rows), checks=False)
  merges = hierarchy.linkage(pairs, 'average')
  for text, threshold in (('quantile:0.6', np.quantile(pairs, 0.6)), ('mean', pairs.mean()), ('1', 1.0)):
    found = clustered(rows, distance_threshold=text)
    expected = hierarchy.fcluster(merges, threshold, 'distance')
    assert metrics.adjusted_rand_score(expected, found.assignment.labels) == 1.0
    assert found.threshold == pytest.approx(threshold)
  np.testing.assert_allclose(found.linkage, merges, rtol=1e-9)
  assert 'every client is alone' in found.notes[1]
  for count in range(1, 13):
    assert clustered(rows, num_clusters=count).assignment.num_clusters == count


def test_equal_heights_still_give_the_number_that_was_asked_for():
  # Labels that nobody else has: all clients are equally far, 90 degrees a vector, and no threshold gives two clusters.
  rng = np.random.default_rng(0)
  rows = {str(k): (rng.normal(size=(8, 6)), np.full(8, k)) for k in range(4)}
  found = clustered(rows, num_clusters=2)
  assert found.assignment.num_clusters == 2 and found.linkage[:, 2] == pytest.approx([6 * 90.0] * 3)
  for given in ({'num_clusters': 1}, {'distance_threshold': 'mean'}):
    assert clustered({'a': rows['0']}, **given).assignment.clusters == [['a']]


def test_what_clients_send_is_told():
  rows = digits(labels_apart)
  found = clustered(rows, num_clusters=3)
  (*_, note) = found.notes
  vectors = 4 * (3 * 3 + 3 * 3 + 5 * 3)
  assert f'at most 15 singular vectors of its training rows, {15 * 64 * 4:,} bytes' in note
  assert f'all together {vectors * 64 * 4:,}' in note and found.sent_bytes == vectors * 64 * 4


@pytest.mark.parametrize('measure', ['sum', 'smallest', 'trace'])
def test_newcomers_join_the_cluster_with_the_least_average_angle(measure):
  rows, new = digits(rotated), {f'new {k}': client for k, client in enumerate(digits(rotated, 1).values())}
  config = ClusteringConfig('pacfl', num_clusters=3, measure=measure)
  assignment = clustered(rows, num_clusters=3).assignment  # The planted groups.
  newcomers = Newcomers(assignment, Evidence(unseen(rows), rows=rows), rows=new)
  joined = config.rule.join(config.options, newcomers)
  apart = degrees(rows, new, measure)
  cost = np.stack([apart[assignment.members(row)].mean(axis=0) for row in range(3)])
  np.testing.assert_array_equal(joined.membership, cost == cost.min(axis=0))
  assert not joined.fallback.any()
  if measure != 'smallest':
    same = assignment.membership.astype(int) @ (GROUPS[:, None] == GROUPS) > 0
    np.testing.assert_array_equal(joined.membership, same)


def test_clusters_move_with_the_clients():
  rows = digits(rotated)
  turned = dict(reversed(rows.items()))
  one, other = (clustered(each, num_clusters=3).assignment for each in (rows, turned))
  assert {frozenset(c) for c in one.clusters} == {frozenset(c) for c in other.clusters}


def test_training_rows_are_shown_to_methods_that_read_them_only():
  rows = digits(rotated)
  evidence = Evidence(unseen(rows), truths={'group': np.eye(3)[:, GROUPS]}, rows=rows)
  pacfl = ClusteringConfig('pacfl').rule
  assert evidence.seen_by(pacfl).rows is rows and evidence.seen_by(pacfl).truths is None
  assert evidence.seen_by(KMEANS).rows is None
  # Vectors alone have none.
  refused(
    lambda: methods.cluster(ClusteringConfig('pacfl', num_clusters=2), unseen(rows), 0),
    ('^method=pacfl: it reads the training rows of a run; vectors alone have none$',),
  )


def test_a_number_or_a_threshold():
  refused(
    lambda options: ClusteringConfig('pacfl', **options).check(),
    ({}, 'needs num_clusters=K or distance_threshold=T: neither is given'),
    ({'num_clusters': 2, 'distance_threshold': '3'}, 'both are given'),
    ({'distance_threshold': 'validation'}, 'distance_threshold=validation: allowed are mean, a number'),
    ({'num_clusters': 0}, 'num_clusters=0: must be at least 1'),
    ({'num_clusters': 2, 'measure': 'largest'}, 'measure=largest: allowed are sum, smallest, trace'),
  )
  rows = digits(rotated)
  refused(lambda: clustered(rows, num_clusters=13), ('num_clusters=13 is more than the 12 clients',))


def test_a_replay_with_training_rows_answers_for_each_number():
  rows, grid = digits(rotated), replay.Grid(counts=(1, 3, 12, 13))
  of_rows = [
    answer
    for answer in replay.Replay(unseen(rows), 0, True, rows).answers(grid)
    if answer.config.method == 'pacfl'
  ]
  assert [answer.num_clusters for answer in of_rows] == [1, 3, 12]
  for answer in of_rows:
    outcome = methods.cluster(answer.config, unseen(rows), 0, rows=rows)
    np.testing.assert_array_equal(answer.assignment.membership, outcome.assignment.membership)
    assert answer.found.threshold is None and answer.silhouette is None
  without = replay.Replay(unseen(rows), 0).answers(grid)
  assert 'pacfl' not in {answer.config.method for answer in without}
