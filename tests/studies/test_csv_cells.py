"""CSV files hold nothing that a spreadsheet would compute, wherever names come from."""

import csv
import dataclasses
import io
import pathlib
import re

import pytest

from tests.conftest import make_population
from tff_cluster.report import files
from tff_cluster.scorecard import headline
from tff_cluster.storage import tables
from tff_cluster.studies import partition_pictures

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
  assert read(tables.csv_text(FORMULAS, [FORMULAS])) == [[f"'{text}" for text in FORMULAS]] * 2


@pytest.mark.parametrize(
  'value', [-1, -0.5, 1e-9, float('-inf'), '-1', '+2.5', '-.5', '-3.', '-1e-5', 'a=b', ' =1', '', "'=1", '−3', 'x\n=1']
)  # fmt: skip
def test_numbers_and_plain_text_stay_as_they_are(value):
  assert read(tables.csv_text(['name'], [[value]])) in ([['name'], [str(value)]], [['name'], []])


def test_files_of_clients_and_of_scorecards_are_written_so(tmp_path):
  population = dataclasses.replace(make_population(clients=len(FORMULAS)), client_ids=FORMULAS)
  partition_pictures.write_partition(population, tmp_path)
  files.write_records(
    [dict.fromkeys(headline.FIELDS) | {'row': text, 'ours': -1.5} for text in FORMULAS], tmp_path
  )
  for name, column in (('partition.csv', 'client'), ('scorecard.csv', 'row')):
    with (tmp_path / name).open(newline='', encoding='utf-8') as stream:
      assert [row[column] for row in csv.DictReader(stream)] == [f"'{text}" for text in FORMULAS]


def test_nothing_else_writes_csv():
  written = pathlib.Path(tables.__file__)
  for path in written.parents[1].rglob('*.py'):
    assert path == written or not re.search(
      r'\b(import csv as|csv import\b|csv\.writer|csv\.DictWriter|to_csv)', path.read_text()
    ), path
