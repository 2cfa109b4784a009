"""Hierarchical clustering against SciPy, from the vectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.cluster import hierarchy
from scipy.spatial import distance as scipy_distance

from tests.made_up.clients import SCIPY_NAMES, together
from tests.made_up.refusals import refused
from tff_cluster.clustering import methods
from tff_cluster.clustering.methods.hierarchical import METHOD, cut, cut_heights, fits, merge_order
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import LINKAGES, METRICS, ClusteringConfig

CHOICES = [(m, link) for m in METRICS for link in LINKAGES if fits(m, link)]


def hierarchical(signatures, metric, linkage, threshold):
  merges = merge_order(signatures, metric, linkage)
  return cut(merges, threshold), merges


def scipy_labels(vectors, metric, linkage, threshold):
  merges = hierarchy.linkage(np.asarray(vectors, np.float64), linkage, metric=SCIPY_NAMES[metric])
  return hierarchy.fcluster(merges, t=threshold, criterion='distance'), merges


def config(threshold, **others):
  return ClusteringConfig('hierarchical', distance_threshold=threshold, **others)


@pytest.mark.parametrize(('metric', 'linkage'), CHOICES)
def test_equals_scipy_at_every_cut(metric, linkage):
  vectors = np.random.default_rng(3).normal(size=(20, 10)).astype(np.float32)
  _, merges = scipy_labels(vectors, metric, linkage, 1.0)
  heights = merges[:, 2]
  for threshold in [0.0, *heights[::4], *(heights[:-1:3] + heights[1::3]) / 2, heights.max() * 2]:
    labels, found = hierarchical(Signatures.numbered(vectors), metric, linkage, threshold)
    expected, _ = scipy_labels(vectors, metric, linkage, threshold)
    np.testing.assert_array_equal(together(labels), together(expected))
    np.testing.assert_allclose(found, merges, rtol=1e-12)


lattices = hnp.arrays(
  np.float64, st.tuples(st.integers(2, 12), st.integers(1, 3)), elements=st.integers(0, 5).map(float)
)
EXACT = [choice for choice in CHOICES if choice[0] != 'cosine']


@settings(max_examples=80)
@given(lattices, st.sampled_from(EXACT), st.sampled_from([0.0, 1.0, 2.0, 5.0]))
def test_equals_scipy_with_ties_and_duplicates(vectors, choice, threshold):
  metric, linkage = choice
  labels, merges = hierarchical(Signatures.numbered(vectors), metric, linkage, threshold)
  expected, expected_merges = scipy_labels(vectors, metric, linkage, threshold)
  np.testing.assert_array_equal(together(labels), together(expected))
  np.testing.assert_array_equal(merges, expected_merges)


def test_merges_at_exactly_the_threshold_and_numbers_by_first_member():
  signatures = Signatures.numbered(np.array([[30.0, 0.0], [0.0, 0.0], [30.5, 0.0], [3.0, 4.0]]))
  assert hierarchical(signatures, 'l2', 'complete', 5.0)[0].tolist() == [0, 1, 0, 1]
  assert hierarchical(signatures, 'l2', 'complete', np.nextafter(5.0, 0.0))[0].tolist() == [0, 1, 0, 2]
  for metric, linkage in CHOICES:
    labels, merges = hierarchical(Signatures.numbered(np.ones((1, 4))), metric, linkage, 1.0)
    assert labels.tolist() == [0] and merges.shape == (0, 4)


def test_cuts_into_numbers_of_clusters_are_halfway_between_merges():
  # Merges at 1, 2 and 2: no threshold gives two clusters.
  tied = Signatures.numbered(np.array([[0.0], [1.0], [3.0], [5.0]]))
  options = config('1', metric='l1', linkage='single').options
  assert [(t, labels.tolist()) for t, labels in METHOD.cuts(options, tied, (1, 2, 3, 4, 5))] == [
    (2.0, [0, 0, 0, 0]),
    (1.5, [0, 0, 1, 2]),
    (0.5, [0, 1, 2, 3]),
  ]
  signatures = Signatures.numbered(np.random.default_rng(7).normal(size=(12, 3)))
  merges = merge_order(signatures, 'l2', 'average')
  found = METHOD.cuts(config('1', linkage='average').options, signatures, range(1, 13))
  for count, (_, labels) in enumerate(found, 1):
    expected = hierarchy.cut_tree(merges, n_clusters=count)[:, 0]
    np.testing.assert_array_equal(together(labels), together(expected))


# Merges at 2 and 1.8: the third corner is nearer to the mean of the other two than these are to each other.
CORNERS = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.8]])


def test_a_merge_below_which_is_a_larger_distance_waits_for_that():
  for threshold, labels in ((1.7, [0, 1, 2]), (1.9, [0, 1, 2]), (2.0, [0, 0, 0])):
    found, merges = hierarchical(Signatures.numbered(CORNERS), 'l2', 'centroid', threshold)
    np.testing.assert_allclose(merges[:, 2], [2.0, 1.8])
    assert found.tolist() == labels and cut_heights(merges).tolist() == [2.0, 2.0]
  # No threshold gives two clusters.
  options = config('1', linkage='centroid').options
  cuts = METHOD.cuts(options, Signatures.numbered(CORNERS), (1, 2, 3))
  assert [(t, labels.tolist()) for t, labels in cuts] == [(2.0, [0, 0, 0]), (1.0, [0, 1, 2])]


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 40))
def test_a_threshold_does_as_many_merges_as_there_are_heights_up_to_it(seed, clients, features):
  # Of many features distances are nearly equal, so that most merges of means are inversions.
  vectors = np.random.default_rng(seed).normal(size=(clients, features))
  for linkage in LINKAGES:
    merges = merge_order(Signatures.numbered(vectors), 'l2', linkage)
    heights = cut_heights(merges)
    if linkage != 'centroid':
      np.testing.assert_array_equal(heights, merges[:, 2])
    for threshold in [0.0, *heights, *merges[:, 2], *(heights[:-1] + heights[1:]) / 2]:
      clusters = len(set(scipy_labels(vectors, 'l2', linkage, threshold)[0]))
      assert clients - np.sum(heights <= threshold) == clusters
      assert cut(merges, threshold).max() + 1 == clusters
    found = METHOD.cuts(
      config('1', linkage=linkage).options, Signatures.numbered(vectors), range(1, clients + 1)
    )
    ties = len(heights) - len(np.unique(heights))
    assert len(found) == clients - ties
    for threshold, labels in found:
      expected, _ = scipy_labels(vectors, 'l2', linkage, threshold)
      np.testing.assert_array_equal(together(labels), together(expected))


def test_merges_of_means_are_at_the_distances_of_means():
  vectors = np.random.default_rng(11).normal(size=(15, 6))
  merges = merge_order(Signatures.numbered(vectors), 'l2', 'centroid')
  members = [[k] for k in range(15)]
  for left, right, height, size in merges:
    pair = [members[int(left)], members[int(right)]]
    means = [vectors[rows].mean(axis=0) for rows in pair]
    assert height == pytest.approx(np.linalg.norm(means[0] - means[1]), rel=1e-9)
    members.append([*pair[0], *pair[1]])
    assert len(members[-1]) == size
  assert (np.diff(merges[:, 2]) < 0).any()


def test_wrong_choices():
  refused(
    hierarchical,
    (Signatures.numbered(np.eye(3)), 'l3', 'single', 1.0, "metric 'l3': allowed are l1, l2, cosine"),
    (
      Signatures.numbered(np.eye(3)),
      'l2',
      'median',
      1.0,
      'allowed are single, complete, average, centroid, ward',
    ),
    (Signatures.numbered(np.eye(3)), 'l1', 'ward', 1.0, "linkage 'ward' needs metric 'l2', given 'l1'"),
    (
      Signatures.numbered(np.eye(3)),
      'cosine',
      'centroid',
      1.0,
      "linkage 'centroid' needs metric 'l2', given 'cosine'",
    ),
    (
      Signatures.numbered(np.eye(3)),
      'l2',
      'single',
      -1.0,
      'distance threshold -1.0: must be a number of at least 0',
    ),
  )


@pytest.mark.parametrize(
  ('threshold', 'phase2_rounds', 'rounds'),
  [
    ('validation', 5, 1),
    ('validation:1', 5, 1),
    ('validation:05', 5, 5),
    ('validation:last', 7, 7),
    ('quantile:0.1', 5, 0),
  ],
)
def test_rounds_of_a_choice(threshold, phase2_rounds, rounds):
  asked = config(threshold)
  assert METHOD.rounds_of_choice(asked.options, phase2_rounds) == rounds
  assert METHOD.on_validation(asked.options) == (rounds > 0)
  # What is not given is in no configuration, and moves no digest.
  assert asked.to_json() == {'method': 'hierarchical', 'distance_threshold': threshold}


@pytest.mark.parametrize('rounds', ['', '0', '-1', '1.5', 'x', '\u0663', 'last:1', '1' * 30])
def test_rounds_of_a_choice_are_a_number_or_all(rounds):
  message = f'distance_threshold=validation:{rounds}: allowed are validation, validation:N with N rounds of at least 1'
  refused(lambda: config(f'validation:{rounds}').options, (message,))


def clustered(vectors, threshold, **others):
  return methods.cluster(config(threshold, **others), Signatures.numbered(vectors), 0)


@pytest.mark.parametrize('metric', ['l1', 'cosine'])
def test_quantile_is_one_of_the_metrics_own_distances(metric):
  vectors = np.random.default_rng(5).normal(size=(15, 6))
  outcome = clustered(vectors, 'quantile:0.3', metric=metric)
  expected = np.quantile(scipy_distance.pdist(vectors, SCIPY_NAMES[metric]), 0.3)
  assert outcome.threshold == pytest.approx(expected, rel=1e-9)
  labels, _ = scipy_labels(vectors, metric, 'complete', outcome.threshold)
  np.testing.assert_array_equal(together(outcome.assignment.labels), together(labels))


def test_notes_tell_of_extreme_cuts():
  vectors = np.array([[0.0], [2.0], [7.0]])
  alone, merged, between = (clustered(vectors, threshold) for threshold in ('1', '100', '3'))
  assert [each.assignment.num_clusters for each in (alone, merged, between)] == [3, 1, 2]
  assert any('every client is alone' in note and 'smallest distance 2' in note for note in alone.notes)
  assert any('all clients are in one cluster' in note and 'last merge at 7' in note for note in merged.notes)
  assert between.notes == ('threshold 3 (as given) gives 2 clusters',)
  assert between.linkage.shape == (2, 4)
  refused(clustered, (vectors, None, 'distance_threshold'), (vectors, 'mean', 'distance_threshold'))
