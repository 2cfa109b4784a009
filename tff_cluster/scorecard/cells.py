"""The cells of a published table beside ours, each with a verdict, for whatever paper.

Only runs in the paper's own setting can reproduce a number or fail to. In any other every line says what was run, and
closeness is told for what it is.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from tff_cluster.scorecard import units
from tff_cluster.scorecard.intervals import student_interval
from tff_cluster.scorecard.rows import COLUMNS, Ours
from tff_cluster.scorecard.units import Unit

Read = Callable[[Ours], Sequence[float | None]]


@dataclasses.dataclass(frozen=True)
class Cell:
  """A number of a table: what is printed, and how ours is read.

  Attributes:
    row, column: Its names.
    words: The column in words.
    unit: Its unit.
    read: Our values, one a seed, in that unit; None for a target that is not reached, none at all where it was not
      measured.
    published: The printed number; None where a dash is printed, or nothing.
    ratio: The printed ratio to FedAvg in brackets behind it; None where a dash is printed there, or nothing.
    baseline: FedAvg's values, where its ratio stands beside.
    source: Where the number is printed; empty: where the table is.
    note: What a reader must know of it.
    decimals: With how many it is printed; 0: as the unit is.
    is_added: Whether it is ours alone: it is left out where the row was not run.
    is_verified: Whether the printed number was compared with its source; else it decides nothing, and its verdict says so.
  """

  row: str
  column: str
  words: str
  unit: Unit
  read: Read
  published: float | None = None
  ratio: float | None = None
  baseline: Read | None = None
  source: str = ''
  note: str = ''
  decimals: int = 0
  is_added: bool = False
  is_verified: bool = True


@dataclasses.dataclass(frozen=True)
class Line:
  """One line of a scorecard.

  Attributes:
    table: Name of the table or figure; `row` and `column` name the cell ('claim' and its words for a claim).
    unit: What the numbers are measured in; empty for a claim.
    published: The printed number; for a claim the paper's numbers in words.
    published_ratio: The printed ratio to FedAvg; None where none is printed.
    ours: Mean over seeds; None where not run or not reached; for a claim our numbers in words.
    low, high: Ends of the 95% Student interval of that mean over seeds; None with one seed.
    ours_ratio: Ours divided by our FedAvg's; None where not run or where FedAvg has 0.
    difference: Ours minus published; None where either is missing.
    verdict: In words; it names what was run wherever that is not the paper's setting.
    note: What a reader must know, with the source.
    cell: What it is a line of; None for a claim.
    agrees: Whether ours agrees within the unit's limit; None where there is nothing to compare, or it was too short to tell.
    is_undecided: Whether it was run and cannot tell.
  """

  table: str
  row: str
  column: str
  unit: str
  published: float | str | None
  published_ratio: float | None
  ours: float | str | None
  low: float | None
  high: float | None
  ours_ratio: float | None
  difference: float | None
  verdict: str
  note: str
  cell: Cell | None = None
  agrees: bool | None = None
  is_undecided: bool = False


def standard(
  row: str, printed: Sequence[tuple[float, float | None] | None] | None = None
) -> tuple[Cell, ...]:
  """Returns the four cells of a row in the most frequent form, COLUMNS.

  Args:
    row: Its name.
    printed: Number and ratio of each column, None for a dash; None: nothing is printed, the numbers are ours alone.
  """

  def cell(column: str, pair: tuple[float, float | None] | None) -> Cell:
    number, ratio = pair or (None, None)
    return Cell(
      row, column, _WORDS[column], units.SHARE if column.startswith('share') else units.PERCENT,
      lambda ours: ours.columns[column], number, ratio, baseline=lambda ours: ours.baseline_columns[column],
      is_added=printed is None,
    )  # fmt: skip

  return tuple(cell(*both) for both in zip(COLUMNS, printed or (None,) * len(COLUMNS), strict=True))


_WORDS = {
  'accuracy_after': 'test accuracy right after the clustering',
  'accuracy_end': 'test accuracy in the last round',
  'share_after': 'clients at the target right after the clustering',
  'share_end': 'clients at the target in the last round',
}


def with_remark(verdict: str, remark: str) -> str:
  """Returns a verdict that names what was run, where that was not the paper's setting."""
  if not remark or verdict == 'not run':
    return verdict
  return f'{verdict[:-1]}; {remark})' if verdict.endswith(')') else f'{verdict} ({remark})'


def without_remark(verdict: str, remark: str) -> str:
  """Returns the verdict again, for a page that says at its top what was run."""
  return verdict.replace(f'; {remark})', ')').replace(f' ({remark})', '') if remark else verdict


def lines(
  table: str, source: str, cells: Sequence[Cell], rows: Mapping[str, Ours], remark: str = ''
) -> list[Line]:
  """Returns one line for each cell.

  Args:
    table: Name of the table or figure.
    source: Where it is printed.
    cells: Its cells.
    rows: Our rows by name; those that are missing were not run.
    remark: What was run instead of the paper's experiment; empty in the paper's setting.
  """
  return [
    line(table, source, cell, rows.get(cell.row), remark)
    for cell in cells
    if cell.row in rows or not cell.is_added
  ]


def line(
  table: str, source: str, cell: Cell, found: Ours | None, remark: str = '', missing: str = 'not run'
) -> Line:
  """Returns the line of a cell; `missing` is the verdict, and the note where it says more, where there is no row."""
  source = cell.source or source
  told = (table, cell.row, cell.column, cell.unit.name, cell.published, cell.ratio)
  values = () if found is None else cell.read(found)
  if found is None or not values:
    words = 'not run' if found is None else 'not measured in this run'
    note = '; '.join([*([missing] if missing != 'not run' else []), source])
    return Line(*told, *(None,) * 5, words, note, cell)
  reached = [value for value in values if value is not None]
  interval = student_interval(reached) if len(reached) == len(values) else None
  ours = None if interval is None else interval.mean
  notes = [*found.departures, *([cell.note] if cell.note else [])]
  if cell.published is None:
    notes.append('the paper prints no number here')
  elif cell.unit is units.SHARE:
    notes.append(f'tolerance {cell.unit.within}: {cell.unit.reason}')
  if interval is None:
    missed = f' in {len(values) - len(reached)} of {len(values)} seeds' if reached else ''
    notes.append(f'not in {found.rounds_end} rounds{missed}')
  elif interval.low is None:
    notes.append('one seed, so no interval')
  baseline = [v for v in cell.baseline(found) if v is not None] if cell.baseline is not None else []
  fedavg = sum(baseline) / len(baseline) if baseline else None
  if fedavg == 0.0:
    notes.append('our FedAvg without clusters has 0%, so no ratio')
  agrees, verdict = None, 'nothing to compare'
  if cell.published is not None:
    agrees, verdict = cell.unit.judge(cell.published, ours, found.rounds_end if cell.unit.is_factor else 0)
    if not cell.is_verified:
      agrees, verdict = None, f'{verdict}, not verified'
    elif agrees and not remark:
      verdict = f'reproduced ({verdict})'
  return Line(
    *told, ours, *((None, None) if interval is None else (interval.low, interval.high)),
    ours / fedavg if ours is not None and fedavg else None,
    None if ours is None or cell.published is None else round(ours - cell.published, 6),
    with_remark(verdict, remark), '; '.join([*notes, source]), cell, agrees,
    cell.published is not None and agrees is None,
  )  # fmt: skip
