"""Table, CSV and picture of a replay."""

import csv
import dataclasses

import numpy as np
import pytest

from tff_cluster.clustering import recovery
from tff_cluster.clustering.sketch import Distortion
from tff_cluster.storage import files
from tff_cluster.studies.replay import tables
from tff_cluster.studies.replay.replayed import Replayed, Row, Summary, Truth


def scored(omega):
  return recovery.Recovery(omega, 0.25, omega, 0.125, 0.125, 0.125, 0.125, 0.125)


def row(family, threshold=None, count=None, clusters=2, memberships=1.0, omega=0.5):
  """A row; its family is a method, or a metric and a linkage."""
  method, metric, linkage = (family, None, None) if isinstance(family, str) else ('hierarchical', *family)
  title = {'kmeans': 'k-means', 'dynamic_distance': 'dynamic distance'}.get(method, method)
  numbers = (threshold, count, clusters, 3, memberships, 0.125)
  return Row(method, title, metric, linkage, *numbers, {'group': scored(omega)}, f'{method},name=a', ())


COMMAND = 'python -m phases.replay'
WARD, SINGLE = ('l2', 'ward'), ('l1', 'single')
ROWS = [
  row(WARD, 1.0, omega=0.25),
  row(WARD, 2.0, omega=1.0),
  row(SINGLE, 8.0, omega=0.0),
  row('kmeans', count=3, omega=1.0),
  row('kmeans', count=4, omega=1.0),
  row('dynamic_distance', 1.5, memberships=2.5, omega=0.75, clusters=7),
  dataclasses.replace(
    row('dynamic_distance', clusters=None, memberships=None),
    largest_cluster=None, silhouette=None, recovery={'group': None}, notes=('too many',),
  ),
]  # fmt: skip
TRUTH = Truth('group', 2, False, {WARD: (1.5, 2.25), SINGLE: None})
REPLAYED = Replayed(6, [TRUTH], ROWS)


def changed(**changes):
  return dataclasses.replace(REPLAYED, **changes)


def cells(**changes):
  lines = tables.replay_table(changed(**changes)).splitlines()
  return [[cell.strip() for cell in line.split('  ') if cell.strip()] for line in lines]


def test_table_of_each_kind_of_family():
  assert cells() == [
    ['group: 2 planted groups, 6 clients'],
    ['family', 'finds the groups for', 'best ARI', 'its setting'],
    ['l2 ward', '1.5 <= T < 2.25', '1.00', 'T = 2: 2 clusters'],
    ['l1 single', 'no threshold', '0.00', 'T = 8: 2 clusters'],
    ['k-means', 'K = 3, K = 4', '1.00', 'K = 3: 2 clusters'],
    ['dynamic distance', 'no setting tried', '0.75', 'T = 1.5: 7 clusters, 2.5 memberships a client'],
  ]


def test_tables_without_an_upper_end_of_a_method_that_gave_up_without_truths_and_with_overlap():
  truth = dataclasses.replace(TRUTH, exact={WARD: (1.5, None)})
  found = cells(truths=[truth], rows=[ROWS[0], ROWS[-1]])
  assert found[2][1] == 'T >= 1.5'
  assert found[3] == ['dynamic distance', 'no setting tried', '–', '–']
  best = dataclasses.replace(ROWS[1], silhouette=0.5)
  assert cells(truths=[], rows=[ROWS[0], best, *ROWS[2:]])[:3] == [
    ['6 clients, no planted groups known'],
    ['family', 'best silhouette', 'its setting'],
    ['l2 ward', '0.50', 'T = 2: 2 clusters'],
  ]
  assert cells(truths=[Truth('group', 2, True, {})])[1][2] == 'best Omega'


def test_csv_holds_every_row_in_full(tmp_path):
  rows = [dataclasses.replace(ROWS[0], threshold=1 / 3), *ROWS[1:]]
  paths = tables.write_replay(changed(rows=rows), COMMAND, tmp_path)
  assert [path.name for path in paths] == ['replay.csv', 'replay.json', 'replay.svg', 'replay.png']
  with open(paths[0], newline='') as file:
    found = list(csv.DictReader(file))
  assert len(found) == len(rows)
  assert float(found[0]['threshold']) == 1 / 3
  assert [line['omega_group'] for line in found] == ['0.25', '1.0', '0.0', '1.0', '1.0', '0.75', '']
  scores = [name.removesuffix('_group') for name in found[0] if name.endswith('_group')]
  assert scores == list(recovery.SCORES)
  assert (found[0]['onmi_group'], found[-1]['onmi_group']) == ('0.125', '')
  assert found[3]['num_clusters'] == '3' and found[3]['threshold'] == ''
  assert found[0]['clustering'] == 'hierarchical,name=a'
  assert found[-1]['notes'] == 'too many'
  # There is no picture without thresholds.
  paths = tables.write_replay(changed(rows=ROWS[3:5]), COMMAND, tmp_path)
  assert [path.name for path in paths] == ['replay.csv', 'replay.json']


def test_json_has_the_best_row_of_each_family_and_the_command(tmp_path):
  tables.write_replay(changed(), COMMAND, tmp_path)
  found = Summary.from_json(files.load_json(tmp_path / 'replay.json'))
  assert (found.command, found.clients) == (COMMAND, 6)
  ward, single, kmeans, dynamic = found.best
  assert (ward.truth, ward.family, ward.exact) == ('group', 'l2 ward', '1.5 <= T < 2.25')
  assert (ward.low, ward.high, ward.score, ward.threshold) == (1.5, 2.25, 1.0, 2.0)
  assert (single.low, single.exact, single.score) == (None, 'no threshold', 0.0)
  assert (kmeans.exact, kmeans.num_clusters, kmeans.threshold) == ('K = 3, K = 4', 3, None)
  assert (dynamic.score, dynamic.clusters, dynamic.memberships) == (0.75, 7, 2.5)
  (only,) = tables.best(changed(truths=[], rows=[dataclasses.replace(ROWS[1], silhouette=0.5)]))
  assert (only.truth, only.exact, only.score) == ('', '', 0.5)


def curve(axes, label):
  (found,) = [line for line in axes.get_lines() if line.get_label() == label]
  return found.get_xydata().tolist()


def test_figure_shows_the_numbers_of_each_truth_in_a_row_of_panels():
  rows = [dataclasses.replace(r, recovery=r.recovery | {'pair': scored(i / 10)}) for i, r in enumerate(ROWS)]
  pair = Truth('pair', 3, False, {WARD: None, SINGLE: None})
  figure = tables.replay_figure(changed(truths=[TRUTH, pair], rows=rows))
  euclidean, l1, below, beside = figure.axes
  assert [axes.get_title(loc='left') for axes in figure.axes] == ['Euclidean', 'L1', '', '']
  assert [axes.get_ylabel().partition('\n')[0] for axes in figure.axes] == ['group', '', 'pair', '']
  assert [axes.get_xlabel() for axes in figure.axes] == ['', '', 'distance threshold', 'distance threshold']
  assert curve(euclidean, 'ward') == [[1.0, 0.25], [2.0, 1.0]]
  assert curve(euclidean, 'dynamic distance') == [[1.5, 0.75]]
  assert curve(l1, 'single') == [[8.0, 0.0]]
  assert curve(below, 'ward') == [[1.0, 0.0], [2.0, 0.1]]
  assert curve(beside, 'single') == [[8.0, 0.2]]
  # Only the first truth is found exactly somewhere. The axis ends a little above the last threshold, and so does the bar.
  bars = [[line for line in axes.get_lines() if line.get_label().startswith('_')] for axes in figure.axes]
  assert [len(found) for found in bars] == [1, 0, 0, 0]
  assert bars[0][0].get_xdata().tolist() == [1.5, pytest.approx(euclidean.get_xlim()[1])]
  assert {text.get_text() for text in figure.legends[0].get_texts()} == {'ward', 'single', 'dynamic distance'}
  figure.canvas.draw()
  one = tables.replay_figure(REPLAYED)
  assert one.axes[0].get_ylabel() == 'ARI (Omega where clusters overlap)'


def test_figures_without_truths_and_of_one_threshold():
  (axes, _) = tables.replay_figure(changed(truths=[])).axes
  assert curve(axes, 'ward') == [[1.0, 2.0], [2.0, 2.0]]
  assert axes.get_yscale() == 'log'
  for threshold in (0.0, 1.0):
    figure = tables.replay_figure(changed(rows=[dataclasses.replace(ROWS[0], threshold=threshold)]))
    figure.canvas.draw()
    assert np.ptp(figure.axes[0].get_xlim()) > 0


def test_distortion_line():
  assert tables.distortion_line(512, Distortion(0.021, 0.05, 0.1, 190)) == (
    'sketches of 512 numbers: Euclidean distances are off by 2.1% on average, 5.0% for 95% of 190 pairs, 10.0% at most'
  )
