"""The pictures of a reproduction: one panel a row, with the curves that it was given."""

import dataclasses

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tests.made_up import published_table as made_up_table
from tests.made_up.published_table import REMARK, TABLE
from tff_cluster.studies.reproduction import figures


def _panels(count):
  row = made_up_table.reproduced(TABLE.rows[0])
  numbers = (row.accuracy_curve, row.baseline_curve, row.rounds_after - 1)
  return [figures.Panel(f'row {i}', *numbers) for i in range(count)]


def _lines(panel):
  (axes,) = figures.curves_by_row([panel], 'accuracy, %').axes
  return {line.get_label(): line for line in axes.get_lines()}


def test_curves_are_the_given_numbers_and_the_line_stands_at_the_clustering():
  lines = _lines(*_panels(1))
  assert list(lines['clustering (FL+HC)'].get_xdata()) == [2, 2]
  assert list(lines['FedAvg without clusters'].get_xdata()) == [1, 2, 3, 4, 5]
  assert list(lines['FedAvg without clusters'].get_ydata()) == [20.0, 60.0, 70.0, 80.0, 90.0]
  # Up to the clustering both are one training: our curve leaves FedAvg's there.
  assert list(lines['FL+HC'].get_xdata()) == [2, 3, 4, 5]
  assert list(lines['FL+HC'].get_ydata()) == [60.0, 90.0, 95.0, 96.5]
  # A curve that has the round of the clustering keeps its own value.
  panel = figures.Panel('r', {2: 61.0, 3: 90.0}, {1: 20.0, 2: 60.0}, 2)
  assert figures.with_start(panel) == {2: 61.0, 3: 90.0}
  assert figures.with_start(dataclasses.replace(panel, ours={3: 90.0}, baseline={})) == {3: 90.0}


def test_where_clusters_change_nothing_both_curves_are_seen():
  lines = _lines(figures.Panel('one cluster', {3: 90.0}, {1: 20.0, 2: 60.0, 3: 90.0}, 2))
  dotted, solid = lines['FedAvg without clusters'], lines['FL+HC']
  assert dotted.get_zorder() > solid.get_zorder()
  assert dotted.is_dashed() and not solid.is_dashed()


@pytest.mark.parametrize(('count', 'remark'), [(1, f'{REMARK}, {"many words " * 30}'), (2, ''), (15, REMARK)])
def test_each_row_has_a_panel_with_the_same_axes_and_nothing_overlaps(count, remark):
  low = figures.Panel('low', {3: 5.0}, {1: 1.0, 2: 2.0}, 2)
  figure = figures.curves_by_row([*_panels(count - 1), low], 'accuracy, %', remark)
  FigureCanvasAgg(figure).draw()
  used = [axes for axes in figure.axes if axes.axison]
  assert [axes.get_title(loc='left') for axes in used] == [*(f'row {i}' for i in range(count - 1)), 'low']
  assert len({axes.get_ylim() for axes in used}) == len({axes.get_xlim() for axes in used}) == 1
  assert count == 1 or used[-1].get_ylim()[1] > 96.5
  boxes = [axes.get_tightbbox() for axes in used]
  assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
  assert figure.get_suptitle().startswith(REMARK[:20]) if remark else figure.get_suptitle() == ''
  if remark:
    # A figure travels without its page: it says itself what was scaled down, within its borders.
    title = figure._suptitle.get_window_extent()
    assert not any(box.overlaps(title) for box in boxes) and title.x0 >= 0 and title.x1 <= figure.bbox.x1
  legend = figure.legends[0]
  assert not any(box.overlaps(legend.get_window_extent()) for box in boxes)
  names = ['clustering (FL+HC)', 'FedAvg without clusters', 'FL+HC']
  assert [text.get_text() for text in legend.get_texts()] == names
