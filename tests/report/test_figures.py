"""Figures show the numbers they were given, and their labels do not overlap."""

import collections
import itertools
import re

import hypothesis
import matplotlib
import numpy as np
import pytest
import scipy.cluster.hierarchy
import scipy.spatial.distance
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.made_up import finished_run as made_up
from tests.made_up.drawn import overlapping_texts, run_of
from tff_cluster.base import arrays
from tff_cluster.report import pictures
from tff_cluster.report.figures import (
  accuracy,
  base,
  curves,
  dendrogram,
  embedding,
  heatmaps,
  membership,
  ordering,
  splits,
)
from tff_cluster.scorecard.intervals import Interval


@st.composite
def _memberships(draw, overlapping):
  clusters, clients = draw(st.integers(1, 5)), draw(st.integers(1, 9))
  if overlapping:
    matrix = draw(hnp.arrays(np.int8, (clusters, clients), elements=st.integers(0, 1))).astype(float)
    matrix[draw(st.integers(0, clusters - 1)), matrix.sum(axis=0) == 0] = 1.0
    return matrix[matrix.any(axis=1)]
  labels = draw(st.lists(st.integers(0, clusters - 1), min_size=clients, max_size=clients))
  return _matrix(np.array(labels))


def _matrix(labels):
  return (np.unique(labels)[:, None] == labels[None, :]).astype(float)


@hypothesis.given(_memberships(overlapping=False), _memberships(overlapping=True))
def test_orders_are_permutations_in_which_members_of_a_disjoint_cluster_stand_together(disjoint, overlapping):
  for matrix in (disjoint, overlapping):
    clients = ordering.client_order(matrix)
    assert sorted(clients) == list(range(matrix.shape[1]))
    assert sorted(ordering.cluster_order(matrix, clients)) == list(range(len(matrix)))
    distances = scipy.spatial.distance.pdist(matrix.T > 0, 'jaccard')
    np.testing.assert_array_equal(ordering._jaccard(matrix > 0), distances)
  for row in disjoint[:, ordering.client_order(disjoint)]:
    places = np.flatnonzero(row)
    assert places[-1] - places[0] + 1 == len(places)


@hypothesis.given(_memberships(overlapping=False), _memberships(overlapping=True))
def test_matched_kinds_are_the_best_one_to_one_matching(matrix, truth):
  clients = min(matrix.shape[1], truth.shape[1])
  matrix, truth = matrix[:, :clients], truth[:, :clients]
  kinds = ordering.matched_kinds(matrix, truth)
  assert len(set(kinds)) == len(matrix)
  padded = np.zeros((len(matrix), max(len(truth), len(matrix))))
  padded[:, : len(truth)] = matrix @ truth.T
  best = max(
    sum(padded[i, j] for i, j in enumerate(choice))
    for choice in itertools.permutations(range(padded.shape[1]), len(matrix))
  )
  assert sum(padded[i, k] for i, k in enumerate(kinds) if k < len(truth)) == best


@hypothesis.given(st.integers(1, 500), st.integers(1, 40))
def test_evenly_takes_both_ends_and_keeps_the_distance(count, most):
  chosen = arrays.evenly(count, most)
  assert len(chosen) == min(count, most) and chosen[0] == 0
  if min(count, most) > 1:
    assert chosen[-1] == count - 1 and np.ptp(np.diff(chosen)) <= 1


def test_labels_of_is_only_for_disjoint_groups_and_names_are_cut_and_made_printable():
  assert base.labels_of(np.array([[1.0, 0], [0, 0.7]])).tolist() == [0, 1]
  assert base.labels_of(np.array([[1.0, 0.3], [0, 0.7]])) is None
  assert base.short('f0123_45') == 'f0123_45' and base.short('a\x00b') == 'a?b'
  cut = base.short('a' * 30 + 'end')
  assert len(cut) == 14 and '…' in cut and cut.endswith('end')


@pytest.mark.parametrize('count', [24, 40])  # Up to 24 they are larger, from 41 on they are counted.
def test_client_names_do_not_overlap(count):
  rng = np.random.default_rng(0)
  ids = [f'f{k:04d}_writer_{k}' for k in range(count)]
  labels, vectors = np.arange(count) % 4, rng.normal(size=(count, 3))
  distances = scipy.spatial.distance.squareform(scipy.spatial.distance.pdist(vectors))
  matrix = _matrix(labels)
  order = ordering.client_order(matrix)
  figures = [
    heatmaps.distance_matrix(distances, order, ids, 'distances', labels, labels),
    heatmaps.label_histogram(rng.integers(0, 9, (count, 10)), ids, 'labels', 'client', order),
    membership.membership_matrix(matrix, ids, 'clusters', matrix, 'group'),
    dendrogram.dendrogram(scipy.cluster.hierarchy.linkage(vectors), 0.5, labels, ids, 'tree', labels),
  ]
  for figure in figures:
    named = [axes for axes in figure.axes if sum(bool(t.get_text()) for t in axes.get_xticklabels()) == count]
    assert named and not overlapping_texts(figure, named[-1].get_xticklabels())


def test_bars_are_the_sorted_differences_in_points():
  differences = np.array([0.01, -0.02, 0.03])
  figure = accuracy.client_differences([('kmeans', differences, Interval(0.0067, -0.01, 0.02))])
  assert [bar.get_height() for bar in figure.axes[0].patches[:3]] == pytest.approx([3.0, 1.0, -2.0])
  assert 'mean +0.7' in figure.axes[0].get_title(loc='left')


def test_client_accuracies_show_twenty_of_many_with_all_marks():
  values, ids = np.linspace(0, 1, 100), [f'c{k}' for k in range(100)]
  figure = accuracy.client_accuracies(ids, {'before': values, 'after': values**2}, 'x')
  before, after = (np.asarray(c.get_offsets())[:, 0] for c in figure.axes[0].collections[1:])
  chosen = arrays.evenly(100, 20)
  np.testing.assert_allclose(before, 100 * values[chosen])
  np.testing.assert_allclose(after, 100 * values[chosen] ** 2)
  assert figure.axes[0].get_ylabel() == '20 of 100 clients'


def _lines(figure):
  return {line.get_label(): line.get_xydata() for line in figure.axes[0].lines}


def test_curves_of_phase_2_leave_from_the_end_of_phase_1():
  phase1 = (np.array([1, 2]), np.array([0.5, 0.6]))
  later = (np.array([3, 4]), np.array([0.7, 0.8]))
  tuned = (np.array([4, 5]), np.array([0.8, 0.9]))
  own = {'tuned': tuned, 'alone': phase1}
  lines = _lines(curves.accuracy_over_rounds(phase1, later, {'kmeans': later}, 2, own))
  np.testing.assert_allclose(lines['kmeans'], [[2, 60], [3, 70], [4, 80]])
  for name in ('Phase 1 (all clients)', 'alone'):
    np.testing.assert_allclose(lines[name], [[1, 50], [2, 60]])
  lines = _lines(curves.accuracy_over_rounds(phase1, later, {'ifca': later}, 2, own, ['ifca']))
  np.testing.assert_allclose(lines['ifca'], [[3, 70], [4, 80]])
  # Fine-tuning goes on from FedAvg's last round.
  np.testing.assert_allclose(lines['tuned'], [[4, 80], [5, 90]])
  run = run_of(made_up.make_run(num_clients=4, rounds=(3, 2), methods=('kmeans',))[0])
  lines = _lines(pictures._rounds_figure(run)[-1])
  unclustered = lines['unclustered, equal rounds']
  assert unclustered[:, 0].tolist() == lines['kmeans'][:, 0].tolist() == [3, 4, 5]
  assert unclustered[-1, 1] == pytest.approx(100 * run.results.baseline.history.test_accuracy[-1])


def test_dendrogram_branches_have_their_clusters_colour_and_the_cut_is_drawn():
  vectors = np.array([[0.0], [0.1], [5.0], [5.1], [5.3]])
  tree = scipy.cluster.hierarchy.linkage(vectors, 'complete')
  labels = scipy.cluster.hierarchy.fcluster(tree, 1.0, 'distance')
  figure = dendrogram.dendrogram(tree, 1.0, labels, list('abcde'), 'tree', np.array([1, 1, 0, 0, 0]))
  axes = figure.axes[0]
  seen = collections.Counter()
  for collection in axes.collections:
    seen[matplotlib.colors.to_hex(collection.get_color()[0])] += len(collection.get_paths())
  # Two merges inside {c, d, e}, one inside {a, b}, one above the cut; colours are those of groups 0 and 1.
  few = [c.lower() for c in base.colours(2)]
  assert seen == {few[0]: 2, few[1]: 1, base.GREY.lower(): 1}
  assert any(np.allclose(line.get_ydata(), 1.0) for line in axes.lines)


def _coloured(axes):
  return [line.get_color() for line in axes.lines]


def test_with_more_groups_than_colours_a_cluster_has_that_of_its_group_or_both_are_grey():
  # Thirteen groups of one to five clients; the clusters are the groups under other numbers, but for one client.
  groups = np.repeat(np.arange(13), np.array([1, 5, 2, 4, 1, 3, 5, 2, 4, 3, 2, 3, 5]))
  labels = (5 * groups + 3) % 13
  labels[0] = labels[-1]
  matrix, truth = _matrix(labels), _matrix(groups)
  clusters, planted, tones = ordering.matched_colours(matrix, truth)
  assert len(planted) == len(tones) - 1 == base.MOST_COLOURS - 1
  # Groups 0 and 4 have one client each, and of those of two clients the first stays.
  assert set(range(13)) - set(planted) == {0, 4, 7, 10}
  for group, place in planted.items():
    assert clusters[int(np.argmax((matrix @ truth.T)[:, group]))] == place
  points = np.random.default_rng(0).normal(size=(len(groups), 2))
  figure = embedding.embedding(points, matrix, truth, 'group', 'x')
  found, there = map(_coloured, figure.axes)
  assert found[1:] == there[1:]
  assert base.PALE in there
  assert figure.axes[1].get_legend().get_texts()[-1].get_text() == '4 other groups'
  axes = splits.accuracy_per_client(np.zeros((2, len(groups))), labels, [], None, 'x', groups).axes[0]
  thin = _coloured(axes)[1 : len(groups)]
  assert thin == [tones[planted[group]] if group in planted else base.GREY for group in groups[1:].tolist()]
  tree = scipy.cluster.hierarchy.linkage(groups[:, None] + 0.01 * np.arange(len(groups))[:, None], 'single')
  handles = dendrogram.dendrogram(tree, 0.5, labels, list(map(str, groups)), 'tree', groups).legends[0]
  assert [text.get_text() for text in handles.get_texts()][-2:] == ['planted group 12', '4 other groups']


@pytest.mark.parametrize('clusters', [3, 25])
def test_embedding_draws_every_client_and_names_what_it_groups(clusters):
  matrix = _matrix(np.arange(50) % clusters)
  figure = embedding.embedding(np.random.default_rng(0).normal(size=(50, 2)), matrix, label='kmeans')
  assert len(figure.axes[0].lines) == 50
  names = [t.get_text() for t in figure.axes[0].get_legend().get_texts()]
  assert len(names) == min(clusters, base.MOST_COLOURS)
  rest = f'{clusters - base.MOST_COLOURS + 1} other clusters'
  assert (names[-1] == rest) == (clusters > base.MOST_COLOURS)


def test_user_settings_and_dollar_signs_change_nothing(rendered):
  def draw():
    names = ['$x_', 'b$', '\\frac']
    return base.render(heatmaps.label_histogram(np.eye(3, dtype=int), names, 'a $b$', 'client'))

  first = draw()
  with matplotlib.rc_context({'font.size': 31, 'axes.facecolor': 'red', 'text.parse_math': True}):
    assert draw() == first


@pytest.mark.parametrize(('classes', 'ticks'), [(20, 20), (62, 13), (65_536, 20)])
def test_labels_are_named_as_far_as_there_is_room(classes, ticks):
  figure = heatmaps.label_histogram(np.ones((2, classes), np.int64), ['a', 'b'], 'labels', 'client')
  assert len(figure.axes[0].get_yticks()) == ticks


def test_more_than_forty_names_are_counted():
  names = [str(k) for k in range(41)]
  histogram = heatmaps.label_histogram(np.eye(41, 3, dtype=np.int64), names, 'labels', 'client')
  for figure in (histogram, membership.membership_matrix(np.eye(41), names, 'clusters')):
    assert figure.axes[0].get_xlabel() == '41 clients' and len(figure.axes[0].get_xticks()) == 0


def _shapes(figure):
  svg, _ = base.render(figure)
  return len(re.findall(rb'<(?:use|path)\b', svg))


def test_shapes_of_a_picture_do_not_grow_with_the_clients(rendered):
  clients, rng = 600, np.random.default_rng(0)
  overlapping = (rng.random((40, clients)) < 0.05).astype(float)
  overlapping[rng.integers(40, size=clients), np.arange(clients)] = 1.0
  places, truth = rng.normal(size=(clients, 2)), np.eye(4)[:, np.arange(clients) % 4]
  few = embedding.embedding(places[:40], truth[:, :40], truth[:, :40], 'group', 'x')
  many = embedding.embedding(places, truth, overlapping, 'group', 'x')
  gains = accuracy.client_differences([('x', rng.normal(size=clients), Interval(0.0, -1.0, 1.0))])
  assert _shapes(few) > 80 and _shapes(many) < 500 and _shapes(gains) < 200


def test_a_matrix_pools_what_does_not_fit_and_keeps_its_places(monkeypatch):
  monkeypatch.setattr(base, 'MOST_PIXELS', 4)
  names, distances = [str(k) for k in range(10)], np.arange(100.0).reshape(10, 10)
  axes = heatmaps.distance_matrix(distances, np.arange(10), names, 'd').axes[0]
  (image,) = axes.images
  shown = np.asarray(image.get_array().filled(np.nan))
  plain = distances.copy()
  np.fill_diagonal(plain, np.nan)
  assert shown.shape == (4, 4)
  assert shown[0, 2] == plain[:3, 6:9].mean() and shown[3, 0] == plain[9:, :3].mean()
  assert np.isnan(shown[3, 3])  # The last pixel is one client beside itself.
  assert axes.get_xlim() == (-0.5, 9.5) and axes.get_ylim() == (9.5, -0.5)
  assert tuple(image.get_extent()) == (-0.5, 11.5, 11.5, -0.5)
  member = np.zeros((10, 10))
  member[4, 7] = member[:, 0] = 1.0
  figure = membership.membership_matrix(member, names, 'm', order=np.arange(10))
  pixels = np.asarray(figure.axes[0].images[0].get_array())
  assert pixels[:, 0].tolist() == [1.0] * 4 and pixels[:, 1:].sum() == 1.0
