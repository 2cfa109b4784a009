"""A published table or figure: its rows as experiments, its printed numbers, its claims, and what its page shows."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tff_cluster.base.errors import InputError
from tff_cluster.scorecard.cells import Cell
from tff_cluster.scorecard.claims import AnyClaim
from tff_cluster.scorecard.rows import Row

TOY_SCALE = 'a toy problem: the paper gives no scale'


@dataclasses.dataclass(frozen=True)
class Scale:
  """At which size a paper's experiments are run.

  Attributes:
    name: For instance 'small'.
    words: What was scaled down; empty at the paper's own size.
    changes: Fields of the experiment that it changes, by name.
    clustering: Options of clusterings that it changes, by method and name.
    factors: Whole-number fields that it multiplies, by name; at least 1 is left.
    rounds: Rounds of both phases together; None: what the fields say.
    preset: The base experiment in place of the table's; empty: the table's.
  """

  name: str
  words: str
  changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  clustering: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
  factors: Mapping[str, float] = dataclasses.field(default_factory=dict)
  rounds: int | None = None
  preset: str = ''

  @property
  def remark(self) -> str:
    """What every verdict must add: nothing at the paper's own size."""
    return '' if self.name == 'paper' else f'scaled down: {self.words or self.name}'


PAPER = Scale('paper', '')


@dataclasses.dataclass(frozen=True)
class Published:
  """A table or a figure.

  Attributes:
    name: For instance 'fl_hc/table5'.
    title: What it shows, in one line.
    source: Paper and number.
    preset: The base experiment: the stem of a file in flags/; empty for toy problems, which have none.
    rows: Its rows.
    note: What a reader must know of the printed numbers; empty where there is nothing.
    method: What the paper calls its method, for legends.
    small: The scale called small.
    cells: Its numbers, row by row, and what of ours stands beside them.
    claims: What the paper says of it.
    sections: What its page shows below the answer, by name (studies.reproduction.sections.SECTIONS).
    absent: What is printed in it and has no row here; empty where all has one.
    compute: Of a toy problem: makes its results from a seed; each has a name, which claims know it by.
  """

  name: str
  title: str
  source: str
  preset: str
  rows: tuple[Row, ...]
  note: str = ''
  method: str = 'with clusters'
  small: Scale = PAPER
  cells: tuple[Cell, ...] = ()
  claims: tuple[AnyClaim, ...] = ()
  sections: tuple[str, ...] = ('claims', 'grid', 'clusters', 'choice', 'curves')
  absent: str = ''
  compute: Callable[[int], Sequence[Any]] | None = None

  def checked(self) -> 'Published':
    """Returns itself.

    Raises:
      InputError: if a cell or a claim is about a row that is not there, which would be "not run" for ever.
    """
    rows = [row.name for row in self.rows]
    about = [(f'cell {cell.column!r}', cell.row) for cell in self.cells]
    about += [(f'claim {claim.words!r}', row) for claim in self.claims for row in claim.names]
    for what, row in about:
      if self.compute is None and row not in rows:
        raise InputError(
          f'{self.name}: {what} is about row {row!r}; its rows are {", ".join(map(repr, rows)) or "none"}'
        )
    return self

  @property
  def is_figure(self) -> bool:
    """Whether it is a figure, not a table."""
    return self.name.rpartition('/')[2].startswith('figure')

  def scale(self, name: str) -> Scale:
    """Returns the scale 'paper' or 'small'."""
    return PAPER if name == PAPER.name else self.small


def by_name(*entries: Published) -> Mapping[str, Published]:
  """Returns the tables and figures of a paper by their names."""
  return {entry.name: entry for entry in entries}


def with_claims(
  published: Mapping[str, Published], claims: Mapping[str, tuple[AnyClaim, ...]]
) -> Mapping[str, Published]:
  """Returns tables and figures with what their paper says of each, by name."""
  return by_name(*(dataclasses.replace(entry, claims=claims[name]) for name, entry in published.items()))
