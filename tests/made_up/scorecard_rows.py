"""Rows of ours of which a test says what there is to read, in place of runs."""

import dataclasses
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


def stacked(*of_seeds: dict[str, Ours]) -> dict[str, Ours]:
  """Returns rows of several seeds, made of rows of one seed each: what has a value a seed has one of each."""
  return {name: _together([rows[name] for rows in of_seeds]) for name in of_seeds[0]}


def _together(found: list[Ours]) -> Ours:
  first, seeds = found[0], tuple(range(len(found)))
  told = [{k: v for k, v in each.__dict__.items() if k not in ('row', 'runs')} for each in found]
  joined = {name: _joined([each[name] for each in told]) for name in told[0]} | {'seeds': seeds}
  runs = [dataclasses.replace(run, seed=seed) for seed, each in enumerate(found) for run in each.runs]
  made = Ours(first.row, tuple(runs))
  made.__dict__.update(joined)
  return made


def _joined(values: list[Any]) -> Any:
  if isinstance(values[0], tuple):
    return sum(values, ())
  if isinstance(values[0], dict) and all(isinstance(value, tuple) for value in values[0].values()):
    return {key: sum((each[key] for each in values), ()) for key in values[0]}
  return values[0]
