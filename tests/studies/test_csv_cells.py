"""CSV files hold nothing that a spreadsheet would compute, wherever names come from."""

import csv
import dataclasses
import io
import re

import pytest
import test_disturbance_page
import test_partition_pictures
import test_replay_page

from tests.made_up import comparison_runs
from tests.made_up.comparison_runs import FEDAVG, constant
from tff_cluster.report import files
from tff_cluster.studies import partition_pictures
from tff_cluster.studies.comparison import page
from tff_cluster.studies.replay import tables
from tff_cluster.studies.replay.replayed import Replayed

FORMULAS = (
  '=1+2',
  '+cmd',
  '-2+3',
  '@SUM(A1)',
  '\t=1',
  '\r=1',
  '\n=1',
  '=HYPERLINK("x","y")',
  '-',
  '+1,000',
  '-1e',
)


def read(text):
  return list(csv.reader(io.StringIO(text, newline='')))


def test_text_that_would_be_computed_is_quoted_and_can_be_told_from_what_it_was():
  assert read(files.csv_text(FORMULAS, [FORMULAS])) == [[f"'{text}" for text in FORMULAS]] * 2


@pytest.mark.parametrize(
  'value',
  [
    -1,
    -0.5,
    3,
    1e-9,
    float('-inf'),
    '-1',
    '+2.5',
    '-.5',
    '-3.',
    '-1e-5',
    'a=b',
    ' =1',
    'a-b',
    '',
    "'=1",
    '−3',
    'x\n=1',
  ],
)
def test_numbers_and_plain_text_stay_as_they_are(value):
  assert read(files.csv_text(['name'], [[value]])) in ([['name'], [str(value)]], [['name'], []])


def computed(path):
  """Returns the cells of a CSV file that a spreadsheet would compute."""
  with path.open(newline='', encoding='utf-8') as stream:
    cells = [cell for line in csv.reader(stream) for cell in line]
  assert any(cell.startswith("'") for cell in cells)
  return [
    cell for cell in cells if re.match(r'[=+\-@\t\r\n]', cell) and not re.fullmatch(r'-?[0-9.e-]+', cell)
  ]


def test_partition(tmp_path):
  population = test_partition_pictures._population([[0, 1]] * len(FORMULAS), ids=list(FORMULAS))
  assert computed(partition_pictures.write_partition(population, tmp_path)[0]) == []


def test_scorecard(tmp_path):
  files.write_records([{'row': text, 'ours': -1.5} for text in FORMULAS], ('row', 'ours'), tmp_path)
  assert computed(tmp_path / 'scorecard.csv') == []


def test_comparison(tmp_path):
  runs = comparison_runs.make({FEDAVG: constant(0.5), '-cmd': constant(0.6)})
  page.write(comparison_runs.typed(runs), {'command': 'c'}, tmp_path)
  assert computed(tmp_path / 'comparison.csv') == []


def test_replay(tmp_path):
  (truth,), rows = test_replay_page.REPLAYED.truths, test_replay_page.ROWS[3:5]
  renamed = [
    dataclasses.replace(
      row,
      recovery={'=truth': row.recovery['group']},
      clustering='@kmeans',
      notes=('-of', '+client'),
    )
    for row in rows
  ]
  replayed = Replayed(6, [dataclasses.replace(truth, name='=truth')], renamed)
  assert computed(tables.write_replay(replayed, tmp_path)[0]) == []


def test_disturbance(tmp_path):
  found = test_disturbance_page.DOCUMENT
  renamed = {
    key: [dataclasses.replace(row, label=f'-{row.label}') for row in getattr(found, key)]
    for key in ('rows', 'half_lost')
  }
  test_disturbance_page.write(tmp_path, **renamed)
  assert computed(tmp_path / 'disturbance.csv') == []
