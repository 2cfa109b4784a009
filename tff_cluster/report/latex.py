"""Tables of a page as LaTeX, to be put into a paper with \\input; the preamble needs the package booktabs."""

import re
from collections.abc import Iterable
from typing import Any

from tff_cluster.report.latex_escapes import ESCAPES, LONGEST
from tff_cluster.report.pages import Cell, Table

# Neither a control character nor half of a pair is a character of a document.
_ILLEGAL = re.compile('[\x00-\x1f\x7f-\x9f\ud800-\udfff]')


def escaped(text: str) -> str:
  """Returns text so that LaTeX sets it as it is."""
  return ''.join(ESCAPES.get(character, character) for character in _ILLEGAL.sub(' ', text))


def text(tables: Iterable[Table]) -> str:
  """Returns tables below each other, each an environment table; those without rows are left out."""
  return '\n'.join(['% Needs \\usepackage{booktabs}.', *(_table(each) for each in tables if each.rows)])


def _table(table: Table) -> str:
  rows = [[_cell(value) for value in row] for row in table.rows]
  spec = ''.join(_column([row[k] for row in rows], k in table.numeric) for k in range(len(table.header)))
  caption = [] if table.caption is None else [f'\\caption{{{escaped(table.caption)}}}']
  lines = ['\\begin{table}', '\\centering', *caption, f'\\begin{{tabular}}{{{spec}}}', '\\toprule']
  lines += [_row(escaped(head) for head in table.header), '\\midrule', *map(_row, rows)]
  return '\n'.join([*lines, '\\bottomrule', '\\end{tabular}', '\\end{table}', ''])


def _column(cells: Iterable[str], is_numeric: bool) -> str:
  if is_numeric:
    return 'r'
  return 'p{0.3\\linewidth}' if max(map(len, cells)) > LONGEST else 'l'


def _row(cells: Iterable[str]) -> str:
  # After the \\ of the line before, [ begins an argument and * a variant.
  line = ' & '.join(cells)
  return f'{"{}" if line.startswith(("[", "*")) else ""}{line} \\\\'


def _cell(value: Any) -> str:
  """Returns a cell: its words, and its notes in parentheses."""
  if not isinstance(value, Cell):
    return '' if value is None else escaped(str(value))
  notes = '; '.join(note for note in value.notes if note)
  return ' '.join(filter(None, (_cell(value.words), f'({escaped(notes)})' if notes else '')))
