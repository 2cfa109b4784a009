"""Small tables: what is there, and one line for what is none."""

import pytest

from tests.made_up.refusals import refused
from tff_cluster.storage import tables


def test_a_table_is_read_as_text(tmp_path):
  path = tmp_path / 'a.csv'
  path.write_bytes('a,b\r\n1,"x, ü"\r\n'.encode())
  assert tables.read(path) == (['a', 'b'], [{'a': '1', 'b': 'x, ü'}])
  assert tables.text(path).startswith('a,b') and tables.text(tmp_path / 'nothing') == ''


def test_what_is_no_table_is_one_line(tmp_path):
  path = tmp_path / 'a.csv'

  def read(content):
    path.write_bytes(content)
    tables.read(path)

  refused(
    read,
    (b'', 'a.csv is empty; expected a header'),
    (b'a,b\n1\n', 'a.csv, line 2: 1 cells under 2 columns'),
    ('a\nü\n'.encode('latin-1'), 'a.csv is no UTF-8 text'),
    (b'a\n' + b'x' * 200_000 + b'\n', 'a.csv is no CSV file: field larger'),
  )
  path.write_bytes(b'\xff')
  with pytest.raises(ValueError, match='no UTF-8 text'):
    tables.text(path)
