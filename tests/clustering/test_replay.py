"""A replay gives what the methods give one by one, and computes distances and linkages once."""

from unittest import mock

import numpy as np
import pytest
from scipy.cluster import hierarchy

from tests.made_up.clients import grouped
from tests.made_up.refusals import refused
from tff_cluster.clustering import distances as distances_lib
from tff_cluster.clustering import embedding, methods, replay
from tff_cluster.clustering.methods.hierarchical import fits
from tff_cluster.clustering.replay import Grid
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import LINKAGES, METRICS

VECTORS = grouped(0, 4, 6, 40, spread=0.4)[0][:23]


FAMILIES = [(m, link) for m in METRICS for link in LINKAGES if fits(m, link)]


def asked(**options):
  return replay.Replay(Signatures.numbered(VECTORS, block_bytes=2**20), seed=3, **options)


def answers(grid, **options):
  return list(asked(**options).answers(grid))


def same_as_one_by_one(answer):
  outcome = methods.cluster(answer.config, Signatures.numbered(VECTORS), 3)
  np.testing.assert_array_equal(answer.assignment.membership, outcome.assignment.membership)
  assert answer.assignment.client_ids == outcome.assignment.client_ids
  assert answer.found.threshold == outcome.threshold
  assert answer.num_clusters == outcome.assignment.num_clusters
  sizes = outcome.assignment.membership.sum(axis=1)
  assert answer.largest_cluster == sizes.max()
  assert answer.memberships == sizes.sum() / 23


@pytest.mark.parametrize('family', FAMILIES, ids=' '.join)
def test_hierarchical_is_that_of_methods(family):
  found = answers(Grid(families=[family], thresholds=9))
  assert len(found) == 9
  for answer in found:
    assert (answer.config.options.metric, answer.config.options.linkage) == family
    same_as_one_by_one(answer)
  counts = [answer.num_clusters for answer in found]
  assert counts == sorted(counts, reverse=True) and counts[-1] == 1 and counts[0] < 23


def test_other_methods_and_given_thresholds_are_those_of_methods():
  families = [('l2', 'ward'), ('l1', 'single')]
  cuts = answers(Grid(families=families, thresholds=[0.0, 2.5, 1e9]))
  assert [answer.found.threshold for answer in cuts] == [0.0, 2.5, 1e9] * 2
  assert [answer.num_clusters for answer in cuts][::3] == [23, 23]
  # 24 are more clusters than clients.
  means = answers(Grid(counts=[1, 4, 23, 24]))
  dynamic = answers(Grid(distance_thresholds=['mean', 'quantile:0.2', '3.5']))
  found = [answer.config.method for answer in (*means, *dynamic)]
  assert found == ['fedgroup'] * 3 + ['kmeans'] * 3 + ['dynamic_distance'] * 3
  for answer in (*cuts, *means, *dynamic):
    same_as_one_by_one(answer)


def test_spread_thresholds_span_the_merge_heights():
  heights = hierarchy.linkage(VECTORS.astype(np.float64), 'average', 'cityblock')[:, 2]
  found = asked().thresholds('l1', 'average', 5)
  np.testing.assert_allclose(found, np.linspace(heights.min(), heights.max(), 5), rtol=1e-9)
  assert len(asked().thresholds('l1', 'average', 1)) == 1
  # The third corner is nearer to the mean of the other two, but no threshold below their distance merges anything.
  corners = replay.Replay(Signatures.numbered(np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.8]])), 0)
  assert corners.thresholds('l2', 'centroid', 3) == [2.0]
  alone = replay.Replay(Signatures.numbered(np.ones((1, 3))), 0)
  assert list(alone.answers(Grid(families=[('l2', 'ward')], thresholds=5))) == []
  (answer,) = alone.answers(Grid(families=[('l2', 'ward')], thresholds=[1.0]))
  assert answer.assignment.clusters == [['0']]


def test_each_matrix_and_each_linkage_is_computed_once():
  counted = mock.patch.object(distances_lib, 'pairwise_distances', wraps=distances_lib.pairwise_distances)
  linked = mock.patch.object(hierarchy, 'linkage', wraps=hierarchy.linkage)
  asking = asked(with_silhouettes=True)
  with counted as distances, linked as linkage:
    for _ in range(2):
      assert len(list(asking.answers(Grid(families=[*FAMILIES], thresholds=6)))) == 6 * len(FAMILIES)
      list(asking.answers(Grid(distance_thresholds=['mean', '3'])))
  assert sorted(call.args[1:] for call in distances.mock_calls) == [
    (metric, 2**20) for metric in sorted(METRICS)
  ]
  assert linkage.call_count == len(FAMILIES)


def test_silhouettes_are_of_the_metrics_own_distances():
  of_cuts = answers(Grid(families=[('cosine', 'average')], thresholds=6), with_silhouettes=True)
  of_means = answers(Grid(counts=[4]), with_silhouettes=True)
  assert [answer.config.method for answer in of_means] == ['fedgroup', 'kmeans']
  for metric, found in (('cosine', of_cuts), ('l2', of_means)):
    distances = distances_lib.pairwise_distances(VECTORS, metric)
    assert found and all(a.silhouette == embedding.silhouette(distances, a.assignment.labels) for a in found)
  assert [answer.silhouette for answer in answers(Grid(counts=[2, 3]))] == [None] * 4


def test_wrong_thresholds():
  refused(
    answers,
    (Grid(distance_thresholds=['median']), 'distance_threshold=median'),
    (Grid(families=[('l1', 'ward')], thresholds=3), "'ward' needs metric 'l2'"),
    (Grid(families=[('l1', 'single')], thresholds=0), '0 thresholds: at least 1'),
  )
