"""The table of a partition against counts made by hand."""

import csv

import numpy as np

from tff_cluster.data.population import Population, Split
from tff_cluster.studies import partition_pictures


def _split(rows):
  """Makes a split from lists of labels, one a client."""
  y = np.concatenate([np.asarray(r, np.int32) for r in rows])
  return Split(np.zeros((len(y), 2), np.float32), y, np.cumsum([0, *map(len, rows)]))


def population(train, truths=None, ids=None):
  count = len(train)
  single = _split([[0]] * count)
  return Population(
      'toy\nset', tuple(ids or (f'c{k}' for k in range(count))), _split(train), single, _split([[0, 1]] * count),
      np.zeros((5, 2), np.float32), np.zeros(5, np.int32), 3, truths or {},
  )  # fmt: skip


_GROUPED = population([[0, 0, 0, 1], [2], [0, 1, 2, 2]], {'group': np.array([[1.0, 0, 1], [0, 1, 0]])})


def test_rows_are_counted():
  text, rows = partition_pictures.partition_table(_GROUPED), partition_pictures.partition_rows(_GROUPED)
  assert rows == [('c0', '0', 4, 1, 2, 2, 0.75), ('c1', '1', 1, 1, 2, 1, 1.0), ('c2', '0', 4, 1, 2, 3, 0.5)]
  assert len(partition_pictures.HEADER) == len(rows[0])
  lines = text.splitlines()
  assert lines[0] == 'toy?set' and '75.0%' in lines[2]
  assert lines[-1] == (
    '3 clients, 9 train, 3 validation and 6 test rows, 1 to 4 train rows a client; global test set 5 rows; '
    '2 kinds of client planted'
  )
  assert len({len(line) for line in lines[1:5]}) == 1  # All columns end at the same place.


def test_long_tables_show_the_first_twenty_and_the_file_has_all_rows(tmp_path):
  many = population([[0, 1]] * 41, ids=[f'id,{k}' for k in range(41)])
  text = partition_pictures.partition_table(many)
  assert sum(line.startswith('“id,') for line in text.splitlines()) == 20
  assert '... and 21 more clients' in text and '“id,20”' not in text
  text = partition_pictures.partition_table(population([[0, 1]] * 40))
  assert 'more clients' not in text and 'c39' in text
  paths = partition_pictures.write_partition(many, tmp_path)
  assert [p.name for p in paths] == ['partition.csv', 'partition.svg', 'partition.png']
  with paths[0].open(newline='', encoding='utf-8') as stream:
    header, *rows = csv.reader(stream)
  assert tuple(header) == partition_pictures.HEADER
  assert [(r[0], float(r[-1])) for r in rows] == [(f'id,{k}', 0.5) for k in range(41)]


def test_groups_in_words():
  overlap, mixture = np.array([[1.0, 1, 0], [0, 1, 1]]), np.array([[0.3, 0.0], [0.7, 1.0]])
  assert partition_pictures.group_names(overlap, 3) == ['0', '0+1', '1']
  assert partition_pictures.group_names(mixture, 2) == ['1 (70%) + 0 (30%)', '1']
  assert partition_pictures.group_names(None, 2) == ['', '']


def _columns(axes):
  return [label.get_text() for label in axes.get_xticklabels()]


def test_picture_has_a_column_for_each_client_with_its_shares():
  axes = partition_pictures.partition_figure(_GROUPED).axes[0]
  assert _columns(axes) == ['c0', 'c2', 'c1']  # Group by group.
  np.testing.assert_allclose(axes.images[0].get_array().T, [[75, 25, 0], [25, 25, 50], [0, 0, 100]])


def test_hostile_ids_break_neither_table_nor_picture_and_several_words_are_quoted():
  found = population(
    [[k % 3] for k in range(6)], ids=['a\nb', '$\\frac{', '\x1b[31mred', 'client 2', 'plain', '']
  )
  lines = partition_pictures.partition_table(found).splitlines()
  assert len(lines) == 9 and not any('\x1b' in line for line in lines)
  quoted = ['“client 2”', 'plain', '“”']
  assert [line.split('  ')[0] for line in lines[5:8]] == quoted
  figure = partition_pictures.partition_figure(found)
  figure.canvas.draw()
  assert _columns(figure.axes[0])[3:] == quoted
