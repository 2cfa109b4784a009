"""Rows of ours of which a test says what there is to read, in place of runs."""

from typing import Any

from tff_cluster.scorecard.rows import Ours, Row


def make_ours(row: Row, **told: Any) -> Ours:
  """Returns a row without runs; `told` are values of its properties."""
  found = Ours(row, ())
  found.__dict__.update(told)
  return found


def changed(found: Ours, **told: Any) -> Ours:
  """Returns the same row with other values of some properties."""
  known = {name: value for name, value in found.__dict__.items() if name not in ('row', 'runs')}
  return make_ours(told.pop('row', found.row), **{**known, **told})
