"""The report of rounds that alternate says what its results hold: in words, and pixel by pixel in its picture."""

import copy

import matplotlib.colors
import numpy as np
import pytest

from tests.made_up import finished_run as made_up
from tests.made_up import in_json
from tests.made_up.drawn import drawn, overlapping_texts, run_of, text
from tests.made_up.written_page import WrittenPage
from tff_cluster.clustering.membership_history import Alternated, Collapse
from tff_cluster.report import pictures
from tff_cluster.report.alternation.pictures import way_figures
from tff_cluster.report.alternation.section import collapse, rounds_section, story
from tff_cluster.report.figures import base, ordering, ways
from tff_cluster.report.report import write_report

FOUND = {
  'start': 'warm', 'first_round': 5, 'rounds': 4, 'num_models': 3, 'models': [0, 2, 1], 'changed': [0, 4, 0, 2], 'mean_age': 0.0,
}  # fmt: skip


def _found(**changes):
  return in_json.record(Alternated, FOUND | changes)


@pytest.mark.parametrize(
  ('changes', 'words'),
  [
    ({}, '2 of 8 clients changed their model in the last round.'),
    ({'changed': [0, 4, 1, 0]}, 'the last change of a client’s model was in round 8.'),
    ({'changed': [0, 0, 0, 0]}, 'no client changed its model after the first of them.'),
    ({'start': 'random'}, 'with 3 models that started from random initial models;'),
    ({'start': 'clustering'}, 'that started from the clusters of ward;'),
    (
      {'oldest': 3, 'mean_age': 1.25},
      'Memberships were estimated up to 3 rounds before the last one, 1.2 on average.',
    ),
  ],
)
def test_the_story_of_the_rounds(changes, words):
  told = story(_found(**changes), 'ward', 8)
  assert told.startswith('Rounds 6 to 9 alternated between clustering and training') and words in told


def test_collapse_is_told_in_two_degrees():
  assert collapse(None) == collapse(Collapse(3, 0, False)) == ''
  assert collapse(Collapse(3, 1, False)).startswith('1 model of 3 ended without clients')
  assert collapse(Collapse(3, 2, True)).startswith('All clients ended with the same of 3 models')


def test_the_page_has_a_section_a_method_and_goes_without_arrays(tmp_path):
  value, arrays = made_up.make_run(methods=('kmeans', 'ifca:one', 'ifca:two'), rounds=(2, 6))
  del arrays['memberships_two']
  made_up.save(tmp_path, value, arrays)
  page = WrittenPage(write_report(tmp_path))
  shown = text(page.text)
  assert 'Rounds of one' in shown and 'Rounds of two' in shown and 'Rounds of kmeans' not in shown
  assert '1 model of 4 ended without clients' in shown
  names = sorted(path.name for path in (tmp_path / 'figures').glob('ways_*.png'))
  assert names == ['ways_one.png']


def test_without_rounds_there_is_no_section():
  run = run_of(made_up.make_run(methods=('kmeans',))[0])
  assert drawn(rounds_section(run, run.results.clusterings[0], lambda section: [])) == ''


def _pixels(axes):
  """Returns the colours of a picture, str[rows, columns], and where it lies."""
  (image,) = axes.images
  values = np.asarray(image.get_array())
  return np.array([[matplotlib.colors.to_hex(pixel) for pixel in row] for row in values]), image.get_extent()


def _drawn_ways(**options):
  value, arrays = made_up.make_run(methods=('ifca',), rounds=(2, 6), **options)
  run = run_of(value, arrays)
  ((_, _, _, caption, figure),) = way_figures(run, run.results.clusterings[0], 'ifca')
  return run, run.results.clusterings[0], caption, figure


def test_every_client_has_the_colours_of_its_models_beside_its_group():
  run, clustering, caption, figure = _drawn_ways(num_clients=14)
  axes, below, beside = figure.axes
  shares, (_, groups) = run.ways(clustering), run.main_groups
  names = [label.get_text() for label in axes.get_yticklabels()]
  order = [run.client_ids.index(name) for name in names]
  final = shares[-1].argmax(axis=0)
  assert order == sorted(range(14), key=lambda k: (groups[k], final[k], k)) and '“group”' in caption
  found, (left, right, bottom, top) = _pixels(axes)
  assert (left, right, bottom, top) == (0.5, 8.5, 13.5, -0.5) and found.shape[1] == 8
  planted, _ = _pixels(beside)
  # A cluster has the colour of the group that it matches: where they agree a row ends as it begins.
  matched = ordering.matched_kinds(run.membership(clustering), run.truths['group'])
  palette = [colour.lower() for colour in base.colours(4)]
  colours = {model: palette[kind] for model, kind in zip(clustering.alternation.models, matched, strict=True)}
  (colours[3],) = set(palette) - set(colours.values())
  stripes = len(found) // 14
  for row, client in enumerate(order):
    of_client = found[row * stripes : (row + 1) * stripes]
    expected = [colours[column.argmax()] if column.any() else '#ffffff' for column in shares[:, :, client]]
    assert (of_client == expected).all()
    assert set(planted[row * stripes : (row + 1) * stripes, 0]) == {palette[groups[client]]}
  (line,) = below.get_lines()
  assert line.get_xydata().tolist() == [
    [number, count] for number, count in enumerate(clustering.alternation.changed, 1)
  ]
  legend = {t.get_text() for t in figure.legends[0].get_texts()}
  counts = [len(members) for members in clustering.clusters]
  expected = {f'cluster {k}: {count} clients at the end' for k, count in enumerate(counts)}
  assert legend == {*expected, 'model 3: nobody at the end'}


def test_a_row_is_divided_by_shares_and_sorted_by_the_largest():
  # Three clients over two rounds: 3/4 and 1/4, halves, all of the second model. float32 thirds sum to a little less than 1.
  shares = np.array([[[0.75, 0.5, 0.0], [0.25, 0.5, 1.0]]] * 2, np.float32)
  figure = ways.client_ways(
    shares, 3, [0, 0], list('abc'), np.array([2, 0, 1]), np.array([0, 1]), ['x', 'y'], 'title'
  )
  found, extent = _pixels(figure.axes[0])
  blue, red = (colour.lower() for colour in base.colours(2))
  stripes = len(found) // 3
  assert extent == [3.5, 5.5, 2.5, -0.5]
  counted = [np.sum(found[row * stripes : (row + 1) * stripes, 0] == blue) / stripes for row in range(3)]
  assert counted == [0.0, 0.75, 0.5] and set(found.flat) == {blue, red}


@pytest.mark.parametrize('clients', [8, 40, 41, 200])
@pytest.mark.parametrize('truth', ['disjoint', 'mixture', 'none'])
def test_texts_do_not_overlap(clients, truth):
  ids = [f'f{k:04d}_writer_{k}' for k in range(clients)]
  *_, figure = _drawn_ways(num_clients=clients, truth=truth, client_ids=ids)
  axes = figure.axes[0]
  assert len(axes.get_yticklabels()) == (clients if clients <= 40 else 0)
  labels = [*axes.get_yticklabels(), *(t for other in figure.axes[2:] for t in other.get_yticklabels())]
  assert not overlapping_texts(figure, [*labels, *figure.legends[0].get_texts()])
  width, height = figure.get_size_inches()
  assert width < 10 and height < 11


def test_many_clients_and_models_stay_readable(monkeypatch):
  monkeypatch.setattr(base, 'MOST_PIXELS', 10)
  shares = np.eye(12, dtype=np.float32)[:, np.arange(60) % 12][None].repeat(30, axis=0)
  figure = ways.client_ways(
    shares, 0, [0] * 30, [str(k) for k in range(60)], np.arange(60), np.arange(12), [f'm{k}' for k in range(12)], 'x'
  )  # fmt: skip
  found, _ = _pixels(figure.axes[0])
  assert found.shape[1] == 10 and figure.axes[0].get_yticklabels()[-1].get_text() == '59'
  assert '2 other models' in [t.get_text() for t in figure.legends[0].get_texts()]


def test_shares_are_what_the_membership_matrix_shows():
  value, arrays = made_up.make_run(num_clients=4, groups=2, methods=('kmeans',), truth='none')
  plain = run_of(value, arrays)
  member = plain.membership(plain.results.clusterings[0])
  np.testing.assert_array_equal(plain.shares(plain.results.clusterings[0]), member)
  (clustering,) = copy.deepcopy(value)['clusterings']
  told = np.array([[0.9, 0.2, 0.6, 0.5], [0.1, 0.8, 0.4, 0.5]])
  soft = clustering | {'clusters': [plain.client_ids] * 2, 'overlapping': True, 'shares': told.tolist()}
  run = run_of(value | {'clusterings': [soft]}, arrays)
  figures = pictures._clustering_figures(run, run.results.clusterings[0], 'soft')
  _, _, _, caption, figure = next(figures)
  (axes,) = figure.axes
  order = [run.client_ids.index(label.get_text()) for label in axes.get_xticklabels()]
  rows = [int(label.get_text()) for label in axes.get_yticklabels()]
  np.testing.assert_allclose(axes.images[0].get_array(), told[np.ix_(rows, order)])
  assert (
    abs(order.index(0) - order.index(2)) == 1
  )  # Those whose largest shares are in one cluster stand side by side.
  assert 'the paler the smaller its share' in caption
