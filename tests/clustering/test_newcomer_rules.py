"""Each method's rule for newcomers against brute force, and what must hold whoever comes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import distance as scipy_distance

from tests.made_up.clients import SCIPY_NAMES, grouped, join, scipy_distances
from tff_cluster.base.errors import InputError
from tff_cluster.clustering import methods
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.methods.bipartition import descend
from tff_cluster.clustering.methods.dynamic_distance import VARIANTS
from tff_cluster.clustering.methods.spectral import AFFINITIES, affinity_matrix
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import METRICS, ClusteringConfig

RULES = [
  ClusteringConfig('kmeans', num_clusters=3),
  ClusteringConfig('fedgroup', num_clusters=3),
  *(ClusteringConfig('spectral', num_clusters=3, affinity=affinity) for affinity in AFFINITIES),
  *(
    ClusteringConfig('hierarchical', metric=metric, linkage=linkage, distance_threshold='quantile:0.3')
    for metric, linkage in [
      *itertools.product(METRICS, ('single', 'complete', 'average')),
      ('l2', 'centroid'),
      ('l2', 'ward'),
    ]
  ),
  *(
    ClusteringConfig('dynamic_distance', variant=variant, distance_threshold='quantile:0.3')
    for variant in VARIANTS
  ),
]


def name(rule):
  return '-'.join([rule.method, *(str(value) for _, value in rule.given)])


def made(seed, config, clients=14, newcomers=5, features=6):
  """Returns signatures, their clustering with its threshold, and newcomers around the same three centres."""
  vectors, _ = grouped(seed, 3, 7, features, spread=0.5, dtype=np.float64)
  signatures = Signatures.numbered(vectors[:clients])
  outcome = methods.cluster(config, signatures, seed)
  new = Signatures(vectors[clients : clients + newcomers], tuple(f'new {k}' for k in range(newcomers)))
  return signatures, outcome.assignment, new, outcome.threshold


def row_of_affinities(config, signatures, vector):
  """Returns the affinities of a newcomer in the graph of all clients and this one, float[clients]."""
  known = signatures.vectors
  if config.options.affinity == 'rbf':
    apart = scipy_distance.pdist(known)
    return np.exp(-0.5 * (np.linalg.norm(known - vector, axis=1) / np.median(apart[apart > 0])) ** 2)
  everybody = Signatures.numbered(np.vstack([known, vector]))
  return affinity_matrix(everybody, config.options.affinity)[-1, :-1]


def costs(config, signatures, assignment, vector):
  """Returns what it costs a cluster to take one vector, by the method's definition, float[clusters]."""
  found = []
  for row in range(assignment.num_clusters):
    members = signatures.vectors[assignment.members(row)]
    if config.method == 'spectral':
      found.append(-row_of_affinities(config, signatures, vector)[assignment.members(row)].mean())
    elif config.method == 'kmeans' or dict(config.given).get('linkage') == 'centroid':
      found.append(np.linalg.norm(vector - members.mean(axis=0)))
    elif config.method == 'fedgroup':
      found.append(scipy_distance.cosine(vector, members.mean(axis=0)) / 2)
    elif config.options.linkage == 'ward':
      both = [*members, vector]  # What the sum of squares about the mean grows by.
      found.append(len(both) * np.var(both, axis=0).sum() - len(members) * np.var(members, axis=0).sum())
    else:
      reach = scipy_distance.cdist(members, [vector], SCIPY_NAMES[config.options.metric])
      found.append({'single': np.min, 'complete': np.max, 'average': np.mean}[config.options.linkage](reach))
  return np.array(found)


@pytest.mark.parametrize('config', [r for r in RULES if r.method != 'dynamic_distance'], ids=name)
@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_a_newcomer_is_with_the_cluster_that_it_costs_least(config, seed):
  signatures, assignment, new, threshold = made(seed, config)
  joined = join(config, signatures, assignment, new, threshold)
  assert joined.membership.dtype == bool and (joined.membership.sum(axis=0) == 1).all()
  assert not joined.fallback.any()
  for k, vector in enumerate(new.vectors):
    cost = costs(config, signatures, assignment, vector)
    assert cost[np.argmax(joined.membership[:, k])] <= cost.min() + 1e-9


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_of_equally_near_clients_the_first_are_neighbours(seed):
  # Whole coordinates on a line: many clients are equally near.
  config = ClusteringConfig('spectral', num_clusters=2, affinity='nearest_neighbors')
  points = np.random.default_rng(seed).integers(0, 6, size=(16, 1)).astype(np.float64)
  signatures = Signatures.numbered(points[:15])
  assignment = ClusterAssignment.from_labels(np.arange(15) % 4, signatures.client_ids)
  joined = join(config, signatures, assignment, Signatures(points[15:], ('new',)))
  cost = costs(config, signatures, assignment, points[15])
  assert cost[np.argmax(joined.membership[:, 0])] == cost.min()


def test_a_far_newcomer_has_no_affinity_left_but_a_nearest_cluster():
  config = ClusteringConfig('spectral', num_clusters=2, affinity='rbf')
  signatures = Signatures.numbered(np.array([[0.0], [1.0], [10.0], [11.0]]))
  assignment = ClusterAssignment.from_labels([0, 0, 1, 1], signatures.client_ids)
  joined = join(config, signatures, assignment, Signatures(np.array([[1e6], [-1e6]]), ('a', 'b')), None)
  np.testing.assert_array_equal(joined.membership, [[False, True], [True, False]])


@pytest.mark.parametrize('variant', VARIANTS)
@settings(max_examples=30)
@given(
  points=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=4, max_size=12),
  quantile=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
)
def test_dynamic_distance_keeps_what_a_cluster_is(variant, points, quantile):
  # Whole coordinates: distances are often equal, and equal to the threshold.
  config = ClusteringConfig('dynamic_distance', variant=variant, distance_threshold=f'quantile:{quantile}')
  signatures, new = Signatures.numbered(np.array(points[:-2], float)), np.array(points[-2:], float)
  outcome = methods.cluster(config, signatures, 0)
  joined = join(config, signatures, outcome.assignment, Signatures(new, ('a', 'b')), outcome.threshold)
  linked = scipy_distances(signatures.vectors, 'l2') <= (outcome.threshold or 0.0)
  clusters = [outcome.assignment.members(row) for row in range(outcome.assignment.num_clusters)]
  for k, vector in enumerate(new):
    apart = np.linalg.norm(signatures.vectors - vector, axis=1)
    near = apart <= (outcome.threshold or 0.0)
    if variant == 'cliques':
      fits = [bool(near[members].all()) for members in clusters]
    else:
      fits = [any(near[k] and linked[k, members].all() for k in members) for members in clusters]
    farthest = [apart[members].max() for members in clusters]
    expected = fits if any(fits) else [far == min(farthest) for far in farthest]
    assert joined.membership[:, k].tolist() == expected and joined.fallback[k] != any(fits)


def test_one_client_is_the_only_cluster():
  signatures = Signatures.numbered(np.ones((1, 3)))
  assignment = ClusterAssignment.from_labels([0], signatures.client_ids)
  new = Signatures(np.array([[1.0, 1.0, 1.0], [2.0, 0.0, 5.0]]), ('a', 'b'))
  for config in RULES:
    joined = join(config, signatures, assignment, new, None)
    assert joined.membership.tolist() == [[True, True]]
    # Without a pair there is no distance that a newcomer could be within.
    assert joined.fallback.tolist() == [False, config.method == 'dynamic_distance']
  with pytest.raises(InputError, match='the same clients in the same order'):
    join(RULES[0], signatures, ClusterAssignment.from_labels([0], ('1',)), new, None)


def test_a_tree_of_splits_by_hand():
  # 0 is split into 1 and 2, 1 into 3 and 4; a similarity is that of two numbers, minus their difference.
  parents = [None, 0, 0, 1, 1]
  clients = {1: [0.0, 3.0], 2: [10.0], 3: [0.0], 4: [3.0]}
  new = np.array([1.0, 2.0, 8.0, 6.0, -50.0])
  asked = []

  def similarity(node, reached):
    asked.append((node, reached.tolist()))
    halves = [child for child, parent in enumerate(parents) if parent == node]
    return [-np.abs(np.array(clients[child])[:, None] - new[reached]) for child in halves]

  ends = descend(parents, len(new), similarity)
  # 6 is nearer to the client at 3 than to the one at 10, then to 3 than to 0.
  assert ends.tolist() == [3, 4, 2, 4, 3]
  assert asked == [(0, [0, 1, 2, 3, 4]), (1, [0, 1, 3, 4])]
  # Nobody is asked where nothing was split.
  assert descend([None], 3, None).tolist() == [0, 0, 0]
