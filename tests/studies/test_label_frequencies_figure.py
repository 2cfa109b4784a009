"""Bars of labels show the numbers they were given, stacked by source, all to one scale."""

import numpy as np
import pytest

from tff_cluster.studies.reproduction.label_frequencies_figure import label_frequencies

_COUNTS = np.random.default_rng(0).integers(1, 90, (2, 3, 10))
_SIZES = [[4, 3, 0], [0, 1, 2]]


def test_bars_are_the_rows_stacked_by_source():
  figure = label_frequencies(_COUNTS, _SIZES, ('MNIST', 'CIFAR-10'))
  panels = [axes for axes in figure.axes if axes.patches]
  assert len(panels) == 3
  for k, axes in enumerate(panels):
    heights = np.array([bar.get_height() for bar in axes.patches]).reshape(2, 10)
    np.testing.assert_array_equal(heights, _COUNTS[:, k])
    floors = np.array([bar.get_y() for bar in axes.patches]).reshape(2, 10)
    np.testing.assert_array_equal(floors, [np.zeros(10), _COUNTS[0, k]])
    centres = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches[:10]]
    assert centres == pytest.approx(list(range(10)))
  # All panels have the same axes, which show the whole of every bar.
  assert len({axes.get_ylim() for axes in panels}) == len({axes.get_xlim() for axes in panels}) == 1
  assert panels[0].get_ylim()[0] == 0 and panels[0].get_ylim()[1] >= _COUNTS.sum(axis=0).max()
  titles = ['0: 4 clients (4 MNIST)', '1: 4 clients (3 MNIST, 1 CIFAR-10)', '2: 2 clients (2 CIFAR-10)']
  assert [axes.get_title(loc='left') for axes in panels] == [f'Cluster {title}' for title in titles]
  assert [text.get_text() for text in figure.legends[0].get_texts()] == ['MNIST', 'CIFAR-10']


@pytest.mark.parametrize('clusters', [1, 5])
def test_one_source_needs_no_legend_and_a_remark_stands_above_any_number_of_clusters(clusters):
  figure = label_frequencies(np.ones((1, clusters, 10), int), [[2] * clusters], remark='scaled down')
  titles = [axes.get_title(loc='left') for axes in figure.axes if axes.patches]
  assert titles == [f'Cluster {k}: 2 clients' for k in range(clusters)]
  assert not figure.legends and figure.get_suptitle() == 'scaled down'
  figure.canvas.draw()


@pytest.mark.parametrize(
  ('counts', 'sizes', 'names', 'words'),
  [
    (_COUNTS[0], _SIZES[0], (), 'expected [sources, clusters, classes]'),
    (_COUNTS, _SIZES, ('a',), "2 sources, but names ['a']"),
  ],
)
def test_what_does_not_fit_is_told(counts, sizes, names, words):
  with pytest.raises(ValueError) as error:
    label_frequencies(counts, sizes, names)
  assert words in str(error.value)
