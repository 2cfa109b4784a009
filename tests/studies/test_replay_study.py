"""Exact thresholds against trying every one, and the questions that flags ask."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from scipy.spatial import distance as scipy_distance

from tests.made_up.clients import together
from tff_cluster.base import fields as fields_lib
from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse
from tff_cluster.clustering import methods
from tff_cluster.clustering.replay import Grid, Replay
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig
from tff_cluster.studies.replay import study
from tff_cluster.studies.replay.replayed import Truth


@settings(max_examples=100)
@given(
  st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=9),
  st.integers(0, 2**32 - 1),
  st.sampled_from(['single', 'complete', 'average', 'centroid', 'ward']),
)
def test_exact_thresholds_are_those_that_a_search_finds(points, seed, linkage):
  # At whole coordinates, so that there are ties and duplicates, and inversions of means.
  merges = hierarchy.linkage(scipy_distance.pdist(np.array(points, float)), linkage)
  groups = np.random.default_rng(seed).integers(3, size=len(points))
  if seed % 2:
    groups = hierarchy.fcluster(merges, merges[seed % len(merges), 2], 'distance')
  heights = np.unique([0.0, *merges[:, 2]])
  edges = [*heights, *(heights[:-1] + heights[1:]) / 2, heights[-1] + 1.0]
  right = [
    t
    for t in sorted(edges)
    if np.array_equal(together(hierarchy.fcluster(merges, t, 'distance')), together(groups))
  ]
  found = study.exact_thresholds(merges, groups)
  assert (found is None) == (not right)
  if found is not None:
    low, high = found
    assert low == right[0]
    assert [t for t in sorted(edges) if low <= t and (high is None or t < high)] == right
    assert (high is None) == (right[-1] > heights[-1])


def options(**given):
  return fields_lib.make_section(flags.ReplayOptions, given)


def test_questions_of_the_defaults_and_of_flags():
  found = study.read_questions(options())
  assert len(found.families) == 11 and {('l2', 'centroid'), ('l2', 'ward')} <= set(found.families)
  assert {m for m, link in found.families if link in ('centroid', 'ward')} == {'l2'}
  assert found.counts == tuple(range(2, 11))
  assert found.distance_thresholds == ('mean', 'quantile:0.05', 'quantile:0.1', 'quantile:0.2')
  assert found.thresholds == 20
  some = {
    'metrics': 'cosine, l2',
    'linkages': 'ward',
    'cluster_counts': 'none',
    'distance_thresholds': '3,mean',
  }
  found = study.read_questions(options(**some))
  assert found == Grid((('l2', 'ward'),), 20, distance_thresholds=('3', 'mean'))


@pytest.mark.parametrize(
  ('given', 'message'),
  [
    ({'metrics': 'l2,l3'}, "metrics=l2,l3: 'l3' is not among l1, l2, cosine"),
    ({'metrics': 'l2,'}, "'' is not among l1, l2, cosine"),
    ({'linkages': 'ward,ward'}, 'linkages=ward,ward: ward is given twice'),
    ({'linkages': 'ward', 'metrics': 'l1'}, 'linkages=ward: ward needs l2 among metrics=l1'),
    ({'linkages': 'single,centroid', 'metrics': 'l1,cosine'}, 'centroid needs l2 among metrics=l1,cosine'),
    ({'cluster_counts': '2,x'}, "cluster_counts=2,x: 'x' is not a number of at least 1"),
    ({'cluster_counts': '0'}, "'0' is not a number of at least 1"),
    ({'cluster_counts': '²'}, 'is not a number'),
    ({'distance_thresholds': 'mean,quantile:2'}, "'quantile:2' is neither mean, nor a number >= 0, nor quantile:q"),
  ],
)  # fmt: skip
def test_wrong_questions(given, message):
  with pytest.raises(InputError) as caught:
    study.read_questions(options(**given))
  assert message in str(caught.value)


def planted():
  rng = np.random.default_rng(0)
  groups = rng.permutation(np.repeat(np.arange(4), 4))
  return rng.normal(size=(4, 30))[groups] * 5 + rng.normal(size=(16, 30)), groups


@pytest.mark.parametrize('num_thresholds', [2, 6])
def test_rows_are_scored_and_can_be_trained(num_thresholds):
  vectors, groups = planted()
  signatures = Signatures.numbered(vectors)
  pairs = np.zeros((2, 16))
  pairs[0, :10], pairs[1, 8:] = 1.0, 1.0
  truths = {'group': np.eye(4)[:, groups], 'halves': pairs}
  questions = dataclasses.replace(study.read_questions(options()), thresholds=num_thresholds, counts=(3, 4))
  found = study.replay(signatures, questions, 7, truths, 'updates')
  group, halves = found.truths
  assert (found.clients, group.name, group.groups, group.overlapping) == (16, 'group', 4, False)
  assert halves == Truth('halves', 2, True, {}) and len(group.exact) == 11
  asked = Replay(signatures, 7)
  missed = [
    (family, exact)
    for family, exact in group.exact.items()
    if exact and not any(exact[0] <= t < exact[1] for t in asked.thresholds(*family, num_thresholds))
  ]
  # A grid of the smallest and the largest height misses all of them.
  assert len(missed) == (0 if num_thresholds > 2 else len([exact for exact in group.exact.values() if exact]))
  assert len(found.rows) == 11 * num_thresholds + len(missed) + 2 + 2 + 4
  # What the merges say of a family is what its best row says.
  for family, exact in group.exact.items():
    best = max(row.omega('group') for row in found.rows if row.family == family)
    assert (best == 1.0) == (exact is not None)
  for row in found.rows:
    config = parse.parse_clustering_spec(row.clustering)
    assert config.signature == 'updates'
    outcome = methods.cluster(config, signatures, 7)
    assert outcome.assignment.num_clusters == row.clusters
    assert outcome.threshold == row.threshold
    exactly = not outcome.assignment.is_overlapping and np.array_equal(
      together(outcome.assignment.labels), together(groups)
    )
    assert (row.omega('group') == 1.0) == exactly
    assert row.recovery['halves'].ari is None and row.omega('halves') is not None
    if row.family in group.exact:
      low, high = group.exact[row.family] or (np.inf, np.inf)
      assert exactly == (low <= row.threshold < high)
  assert {True, False} == {row.omega('group') == 1.0 for row in found.rows}
  # The answers are the same where nothing is known, but for the thresholds that were missed.
  without = study.replay(signatures, questions, 7, {}, 'updates')
  middles = {(*family, (low + high) / 2) for family, (low, high) in missed}
  kept = [row for row in found.rows if (*row.family, row.threshold) not in middles]
  assert without.rows == [dataclasses.replace(row, recovery={}) for row in kept]
  assert without.truths == []


def test_few_clients():
  found = study.replay(Signatures.numbered(np.eye(3)), study.read_questions(options()), 0, {})
  assert [row.num_clusters for row in found.rows if row.method == 'kmeans'] == [2, 3]


def test_sketched_signatures():
  vectors, _ = planted()
  signatures = Signatures(vectors, tuple(f'c{k}' for k in range(16)), block_bytes=1000)
  same, none = study.sketched(signatures, 0, 5)
  assert same is signatures and none is None
  found, distortion = study.sketched(signatures, 8, 5)
  assert found.vectors.shape == (16, 8)
  assert (found.client_ids, found.block_bytes) == (signatures.client_ids, 1000)
  assert distortion.pairs == 120 and 0 < distortion.mean < distortion.maximum


def test_default_fields_are_left_out_of_the_flag():
  assert study.as_flag(ClusteringConfig(method='kmeans', num_clusters=4)) == 'kmeans'
  assert (
    study.as_flag(ClusteringConfig(distance_threshold='mean')) == 'dynamic_distance,distance_threshold=mean'
  )
