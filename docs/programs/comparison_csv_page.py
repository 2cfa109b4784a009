"""Writes docs/reference/comparison_csv.md: the columns of comparison.csv, from the module that writes it. Imports no TensorFlow."""

import pathlib

from docs.programs import results_json_page
from tff_cluster.base.cost import Cost
from tff_cluster.studies.comparison import csv_columns

PAGE = pathlib.Path(__file__).parents[1] / 'reference/comparison_csv.md'
_INTRODUCTION = """# comparison.csv

`comparison.csv` of `phases.compare` has a line for each contender, seed and budget. Accuracies and shares are from 0 to 1; a cell is empty where there is no such
value. `RULE` stands for each rule of Phase 3 that was measured. A league has the same columns in `league.csv`, behind the `setting`. This page is written by `make docs`
from `tff_cluster/studies/comparison/csv_columns.py`.

| column | meaning |
| --- | --- |
"""


def page() -> str:
  """Returns the page: a table of all columns, in the order of the file."""
  costs = results_json_page.meanings(Cost)
  lines = []
  for column in csv_columns.with_rules(['RULE'], ['RULE']):
    meaning = f'{costs[column.name]} {column.meaning}' if column.name in costs else column.meaning
    lines.append(f'| `{column.name}` | {results_json_page.escaped(meaning)} |\n')
  return ''.join([_INTRODUCTION, *lines])
