"""What FL+HC prints: cells by hand, every dash, and what print must agree with itself on."""

import collections

import pytest

from tff_cluster.papers import briggs2020
from tff_cluster.papers.briggs2020 import tables
from tff_cluster.scorecard.rows import COLUMNS

TABLES = [f'fl_hc/table{number}' for number in range(1, 7)]
FIGURES = [f'fl_hc/figure{number}' for number in range(1, 7)]
BY_ROUNDS = [f'cf {cf}, n {n}' for cf in (0.1, 0.2, 0.5, 1.0) for n in (1, 3, 5, 10)]
LINKAGES = {'cosine': ('average', 'complete', 'single'), 'L1': ('average', 'complete', 'single')}
LINKAGES['L2'] = (*LINKAGES['L1'], 'ward')
BY_METRIC = [f'{metric}, {linkage}' for metric in ('cosine', 'L2', 'L1') for linkage in LINKAGES[metric]]
SHARES = ('share_after', 'share_end')
# Print that contradicts itself: 39.2% of the clients cannot be 0.0 times FedAvg's share.
IMPOSSIBLE = {('fl_hc/table3', 'cf 1.0, n 1', 'share_after')}


def _row(name, row):
  return next(r for r in briggs2020.PUBLISHED[name].rows if r.name == row)


def _printed():
  """Yields every printed cell with its table, row and column."""
  for name in TABLES:
    for cell in briggs2020.PUBLISHED[name].cells:
      if cell.published is not None:
        yield name, _row(name, cell.row), cell.column, cell


def _cells(name, row):
  cells = [cell for cell in briggs2020.PUBLISHED[name].cells if cell.row == row]
  assert [cell.column for cell in cells] == list(COLUMNS)
  return tuple(None if cell.published is None else (cell.published, cell.ratio) for cell in cells)


def _fedavg(cell):
  """Returns the least and the largest percentage of FedAvg that a cell, rounded as printed, allows."""
  high = (cell.published + 0.05) / (cell.ratio - 0.05) if cell.ratio >= 0.1 else float('inf')
  return (cell.published - 0.05) / (cell.ratio + 0.05), high


def test_every_table_and_figure_is_there():
  assert list(briggs2020.PUBLISHED) == [*TABLES, *FIGURES, 'fl_hc/iid']
  expected = {name: BY_ROUNDS if name in TABLES[:3] else BY_METRIC for name in TABLES}
  expected['fl_hc/iid'] = BY_ROUNDS + BY_METRIC
  assert {name: [row.name for row in briggs2020.PUBLISHED[name].rows] for name in expected} == expected
  presets = [briggs2020.PUBLISHED[name].preset for name in TABLES]
  assert presets == ['fl_hc_pathological', 'fl_hc_label_swapped', 'fl_hc_femnist'] * 2
  # What is odd in print is told.
  assert '39.2 (0.0x)' in briggs2020.PUBLISHED['fl_hc/table3'].note
  assert '80%' in briggs2020.PUBLISHED['fl_hc/table2'].note


@pytest.mark.parametrize(
  ('name', 'row', 'cells'),
  [
    ('fl_hc/table1', 'cf 0.1, n 1', ((91.1, 1.9), (98.5, 1.0), (62.0, 20.7), (83.0, 1.8))),
    ('fl_hc/table1', 'cf 0.5, n 3', ((94.6, 1.1), (98.8, 1.0), (67.0, 16.8), (83.0, 1.6))),
    ('fl_hc/table1', 'cf 1.0, n 10', ((95.6, 1.0), (98.8, 1.0), (48.0, 2.8), (70.0, 1.4))),
    ('fl_hc/table2', 'cf 0.1, n 10', ((98.6, 1.4), (99.0, 1.3), (63.0, 5.3), (75.0, None))),
    ('fl_hc/table2', 'cf 0.2, n 5', ((98.4, 1.3), (99.1, 1.3), (52.0, None), (80.0, None))),
    ('fl_hc/table3', 'cf 0.2, n 10', ((6.3, 0.1), (5.1, 0.1), (0.0, None), (0.0, None))),
    ('fl_hc/table3', 'cf 0.5, n 3', ((57.6, 1.5), (17.2, 0.2), (28.9, 15.1), (8.2, 0.2))),
    ('fl_hc/table3', 'cf 1.0, n 1', ((72.3, 2.9), (77.7, 1.0), (39.2, 0.0), (52.0, 1.0))),
    ('fl_hc/table4', 'L2, ward', ((97.3, 1.1), (99.5, 1.0), (79.0, 5.6), (89.0, 2.0))),
    ('fl_hc/table4', 'L1, complete', ((99.2, 1.1), (99.3, 1.0), (91.0, 6.5), (92.0, 2.1))),
    ('fl_hc/table5', 'cosine, average', ((98.7, 1.3), (99.1, 1.3), (62.0, None), (79.0, None))),
    ('fl_hc/table5', 'L1, single', ((98.3, 1.2), (98.4, 1.2), (48.0, None), (53.0, None))),
    ('fl_hc/table6', 'cosine, single', ((65.4, 1.0), (74.2, 0.9), (19.1, 0.9), (40.1, 0.8))),
    ('fl_hc/table6', 'L1, complete', ((69.9, 1.1), (76.5, 1.0), (36.0, 1.7), (54.0, 1.1))),
  ],
)
def test_cells_as_printed(name, row, cells):
  assert _cells(name, row) == cells


def test_every_dash_for_rows_that_failed_to_complete_and_for_ratios():
  failed = {
    (name, row.name): _cells(name, row.name)
    for name in TABLES
    for row in briggs2020.PUBLISHED[name].rows
    if None in _cells(name, row.name)
  }
  assert failed == dict.fromkeys(
    [('fl_hc/table3', 'cf 1.0, n 3'), ('fl_hc/table5', 'cosine, single')], (None,) * 4
  )
  dashes = {(name, row.name, column) for name, row, column, cell in _printed() if cell.ratio is None}
  table2 = {('fl_hc/table2', row, column) for row in BY_ROUNDS for column in SHARES}
  table2 -= {('fl_hc/table2', 'cf 0.1, n 10', 'share_after')}
  table3 = {('fl_hc/table3', f'cf {cf}, n 1', 'share_after') for cf in (0.1, 0.2, 0.5)}
  table3 |= {('fl_hc/table3', 'cf 0.2, n 10', column) for column in SHARES}
  table5 = {
    ('fl_hc/table5', row, column) for row in BY_METRIC if row != 'cosine, single' for column in SHARES
  }
  assert dashes == table2 | table3 | table5


def test_shares_are_whole_numbers_of_clients():
  for name, row, column, cell in _printed():
    if column in SHARES:
      clients = 367 if name in ('fl_hc/table3', 'fl_hc/table6') else 100
      nearest = 100 * round(cell.published * clients / 100) / clients
      assert abs(nearest - cell.published) <= 0.05 + 1e-9, (name, row.name, column)


def test_ratios_agree_on_fedavg():
  """Rows with the same clients, cohort fraction and round are compared with one and the same FedAvg."""
  bounds = collections.defaultdict(lambda: (0.0, 100.0))
  impossible = set()
  for name, row, column, cell in _printed():
    if cell.ratio is None:
      continue
    low, high = _fedavg(cell)
    if low > 100.0:
      impossible.add((name, row.name, column))
      continue
    at = row.settings['phase1_rounds'] + 1 if column.endswith('after') else 50
    preset = briggs2020.PUBLISHED[name].preset
    key = (preset, column.split('_')[0], row.settings['cohort_fraction'], at)
    bounds[key] = (max(bounds[key][0], low), min(bounds[key][1], high))
  assert impossible == IMPOSSIBLE
  assert not {key: bound for key, bound in bounds.items() if bound[0] > bound[1]}
  # By hand, from 87/2.0, 71/1.6 and 86/2.0, 91/2.1 (tables I and IV): 43 or 44 clients of 100.
  low, high = bounds['fl_hc_pathological', 'share', 0.2, 50]
  assert 43.0 < low < 44.0 < high < 44.1


@pytest.mark.parametrize('name', [*TABLES, 'fl_hc/iid'])
def test_settings_of_tables(name):
  for row in briggs2020.PUBLISHED[name].rows:
    before = row.settings['phase1_rounds']
    if row.name in BY_ROUNDS:
      label, metric, linkage, threshold = 'ward', 'l2', 'ward', '10.0' if name == 'fl_hc/table3' else '3.0'
      assert row.name == f'cf {row.settings["cohort_fraction"]}, n {before}'
    else:
      metric, linkage = row.name.lower().split(', ')
      label, threshold = f'{metric}_{linkage}', 'validation'
      assert (row.settings['cohort_fraction'], before) == (0.2, 10)
    assert row.settings['phase2_rounds'] == 50 - before
    assert row.clustering == {
      'method': 'hierarchical', 'name': label, 'signature': 'updates', 'metric': metric, 'linkage': linkage,
      'distance_threshold': threshold,
    }  # fmt: skip


@pytest.mark.parametrize(
  ('figure', 'preset', 'fraction', 'before', 'metric', 'linkage', 'threshold'),
  [
    (1, 'pathological', 0.2, 1, 'l2', 'ward', '3.0'),
    (2, 'pathological', 0.2, 10, 'l2', 'ward', '3.0'),
    (3, 'label_swapped', 0.2, 10, 'l2', 'ward', '3.0'),
    (4, 'femnist', 0.1, 5, 'l2', 'ward', '10.0'),
    (5, 'pathological', 0.2, 10, 'l1', 'complete', 'validation'),
    (6, 'femnist', 0.2, 10, 'l1', 'complete', 'validation'),
  ],
)
def test_captions_of_figures(figure, preset, fraction, before, metric, linkage, threshold):
  published = briggs2020.PUBLISHED[f'fl_hc/figure{figure}']
  (row,) = published.rows
  assert published.preset == f'fl_hc_{preset}' and _cells(published.name, row.name) == (None,) * 4
  assert (row.settings['cohort_fraction'], row.settings['phase1_rounds']) == (fraction, before)
  found = (row.clustering['metric'], row.clustering['linkage'], row.clustering['distance_threshold'])
  assert found == (metric, linkage, threshold)


@pytest.mark.parametrize(
  'line', ['91.1 1.9 98.5 1.0 62.0 20.7', '91.1 1.9 98.5 1.0 62.0 20.7 83.0', '- - - - -', '91.1 x - - -']
)
def test_a_line_with_wrong_fields_is_refused(line):
  with pytest.raises(ValueError):
    tables._printed(line.split())
