"""The cells of a published table beside ours, each with a verdict, for whatever paper.

A verdict needs seeds (scorecard/verdicts.py): with one or two the difference is shown and nothing is decided. Only runs in the
paper's own setting can reproduce a number or fail to. In any other its difference is shown and not judged; a ratio to FedAvg, which both
sides have at their own size, is, and every line says what was run.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

from tff_cluster.base.words import plural
from tff_cluster.scorecard import units, verdicts
from tff_cluster.scorecard.intervals import Interval, student_interval
from tff_cluster.scorecard.rows import CLUSTERS, COLUMNS, Ours
from tff_cluster.scorecard.units import Unit
from tff_cluster.scorecard.verdicts import NOT_DECIDABLE, NOT_RUN

Read = Callable[[Ours], Sequence[float | None]]
REPRODUCED, DIFFERS = 'reproduced', 'differs'
NOT_MEASURED, NOT_PRINTED = 'not measured in this run', 'nothing to compare'
NOT_VERIFIED, NOT_COMPARABLE = 'not verified', 'not comparable'
# What there was something to compare for, from what decides to what does not.
COMPARED = (
  REPRODUCED, DIFFERS, verdicts.UNDECIDED, *verdicts.FEW.values(), NOT_DECIDABLE, NOT_COMPARABLE, NOT_VERIFIED, NOT_MEASURED, NOT_RUN,
)  # fmt: skip
_OF_PLACE = {verdicts.INSIDE: REPRODUCED, verdicts.OUTSIDE: DIFFERS}
_ELSEWHERE = (
  'within the margin'  # What "reproduced" is called of a ratio in another setting than the paper's.
)


_OF_NO_CLUSTERS = (
  'the ratio to FedAvg tells nothing of clusters: all clients have one model, or each is alone, in every run'
)


@dataclasses.dataclass(frozen=True)
class Cell:
  """A number of a table: what is printed, and how ours is read.

  Attributes:
    row, column: Its names.
    words: The column in words.
    unit: Its unit, with the margin.
    read: Our values, one a seed, in that unit; None for a target that is not reached, none at all where it was not
      measured.
    published: The printed number; None where a dash is printed, or nothing.
    ratio: The printed ratio to FedAvg in brackets behind it; None where a dash is printed there, or nothing.
    baseline: FedAvg's values, where its ratio stands beside.
    window: What is judged in place of `read` where a number fluctuates from round to round: means over several rounds.
    window_words: Which rounds these are.
    window_baseline: FedAvg's values over the same rounds.
    stage: What of a run the number is about (rows.PHASE1, rows.BASELINE, rows.CLUSTERS, rows.ALONE, rows.FINE_TUNED).
    source: Where the number is printed; empty: where the table is.
    note: What a reader must know of it.
    decimals: With how many it is printed; 0: as the unit is.
    is_added: Whether it is ours alone: it is left out where the row was not run.
    is_verified: Whether the printed number was compared with its source; else it decides nothing, and its verdict says so.
    undecidable: Returns why runs cannot tell, empty where they can.
  """

  row: str
  column: str
  words: str
  unit: Unit
  read: Read
  published: float | None = None
  ratio: float | None = None
  baseline: Read | None = None
  window: Read | None = None
  window_words: Callable[[Ours], str] | None = None
  window_baseline: Read | None = None
  stage: str = CLUSTERS
  source: str = ''
  note: str = ''
  decimals: int = 0
  is_added: bool = False
  is_verified: bool = True
  undecidable: Callable[[Ours], str] | None = None


@dataclasses.dataclass(frozen=True)
class Line:
  """One line of a scorecard; the fields that files have are told in docs/scorecards.md.

  Attributes:
    table: Name of the table or figure; `row` and `column` name the cell ('claim' and its words for a claim).
    unit: What the numbers are measured in; empty for a claim.
    published: The printed number; for a claim the paper's numbers in words.
    published_ratio: The printed ratio to FedAvg; None where none is printed.
    ours: Mean over seeds at the printed round; None where not run or not reached; for a claim our numbers in words.
    judged: What the verdict is about: `ours`, or the mean over a window of rounds; of rounds the geometric mean over seeds.
    judged_on: Which rounds that window has, or that it is the geometric mean; empty for `ours`.
    low, high: Ends of the 95% Student interval of `judged` over seeds; None with one seed.
    seeds: How many.
    difference: `judged` minus published; None where either is missing.
    margin: The largest difference, or factor, that agrees.
    ours_ratio: `judged` divided by our FedAvg's, mean over seeds; None where not run or where FedAvg has 0.
    verdict: In words; it names what was run wherever that is not the paper's setting.
    ratio_verdict: The same of the ratio to FedAvg; empty where none is judged.
    training: A name of what was trained: lines that have the same are of one training. Empty where not run.
    note: What a reader must know, with the source.
    cell: What it is a line of; None for a claim.
    outcome: The verdict without what was run: one of COMPARED, or NOT_PRINTED.
    ratio_outcome: The same of the ratio; empty where none is judged.
  """

  table: str
  row: str
  column: str
  unit: str
  published: float | str | None
  published_ratio: float | None
  ours: float | str | None
  judged: float | None
  judged_on: str
  low: float | None
  high: float | None
  seeds: int
  difference: float | None
  margin: float | None
  ours_ratio: float | None
  verdict: str
  ratio_verdict: str
  training: str
  note: str
  cell: Cell | None = None
  outcome: str = ''
  ratio_outcome: str = ''


def standard(
  row: str, printed: Sequence[tuple[float, float | None] | None] | None = None
) -> tuple[Cell, ...]:
  """Returns the four cells of a row in the most frequent form, COLUMNS; those of the end are judged on a window.

  Args:
    row: Its name.
    printed: Number and ratio of each column, None for a dash; None: nothing is printed, the numbers are ours alone.
  """

  def cell(column: str, pair: tuple[float, float | None] | None) -> Cell:
    number, ratio = pair or (None, None)
    is_end = column.endswith('end')
    return Cell(
      row, column, _WORDS[column], units.SHARE if column.startswith('share') else units.PERCENT,
      lambda ours: ours.columns.get(column, ()), number, ratio, lambda ours: ours.baseline_columns[column],
      (lambda ours: ours.windows.get(column, ())) if is_end else None,
      (lambda ours: ours.window_words) if is_end else None,
      (lambda ours: ours.baseline_windows[column]) if is_end else None, is_added=printed is None,
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
  if not remark or verdict == NOT_RUN:
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
  table: str, source: str, cell: Cell, found: Ours | None, remark: str = '', missing: str = NOT_RUN
) -> Line:
  """Returns the line of a cell; `missing` is the verdict, and the note where it says more, where there is no row."""
  source = cell.source or source
  blank = Line(
    table, cell.row, cell.column, cell.unit.name, cell.published, cell.ratio, *(None,) * 2, '', *(None,) * 2, 0, None,
    None if cell.published is None else cell.unit.margin, None, NOT_RUN, '', '', source, cell, NOT_RUN,
  )  # fmt: skip
  values = () if found is None else cell.read(found)
  if found is None or not values:
    outcome = NOT_RUN if found is None else NOT_MEASURED
    note = '; '.join([*([missing] if missing != NOT_RUN else []), source])
    return dataclasses.replace(blank, verdict=outcome, outcome=outcome, note=note)
  judged = values if cell.window is None else cell.window(found)
  reached = [value for value in judged if value is not None]
  interval = _interval(cell.unit, reached) if len(reached) == len(judged) else None
  mean = None if interval is None else interval.mean
  outcome, reason = _outcome(cell, found, judged, remark)
  ratio, ratio_verdict = _ratio(cell, found, judged, outcome)
  notes = [
    *found.departures,
    *([cell.note] if cell.note else []),
    *reason,
    *([_OF_NO_CLUSTERS] if ratio_verdict == NOT_DECIDABLE else []),
    *_seed_notes(found, judged, reached),
  ]
  return dataclasses.replace(
    blank, ours=_mean(values), judged=mean, seeds=len(judged), training=found.trained(cell.stage) or '',
    judged_on=_judged_on(cell, found, len(judged)),
    low=None if interval is None else interval.low, high=None if interval is None else interval.high,
    difference=None if mean is None or cell.published is None else round(mean - cell.published, 6),
    ours_ratio=ratio, ratio_verdict=_told(ratio_verdict, remark), verdict=_told(outcome, remark), outcome=outcome, ratio_outcome=ratio_verdict,
    note='; '.join([*notes, source]),
  )  # fmt: skip


def _judged_on(cell: Cell, found: Ours, seeds: int) -> str:
  if cell.window_words is not None:
    return cell.window_words(found)
  return 'the geometric mean over seeds' if cell.unit.is_factor and seeds > 1 else ''


def _interval(unit: Unit, values: Sequence[float]) -> Interval:
  """Returns mean and 95% interval over seeds; the geometric mean where numbers are compared by their ratio, as the verdict is."""
  found = student_interval([unit.scaled(value) for value in values])
  ends = (None if end is None else unit.unscaled(end) for end in (found.low, found.high))
  return Interval(unit.unscaled(found.mean), *ends)


def _told(outcome: str, remark: str) -> str:
  return with_remark(_ELSEWHERE if remark and outcome == REPRODUCED else outcome, remark) if outcome else ''


def _outcome(cell: Cell, found: Ours, values: Sequence[float | None], remark: str) -> tuple[str, list[str]]:
  """Returns one of COMPARED or NOT_PRINTED, and what a reader must know of it."""
  if cell.published is None:
    return NOT_PRINTED, ['the paper prints no number here']
  if not cell.is_verified:
    return NOT_VERIFIED, []
  reason = cell.undecidable(found) if cell.undecidable is not None else ''
  if reason:
    return NOT_DECIDABLE, [reason]
  if remark:
    return NOT_COMPARABLE, ['what the paper prints is of its own setting']
  low, high = cell.unit.zone(cell.published)
  # A target that is not reached takes more rounds than were run: whether too many is known where the zone ends before.
  last = found.rounds_end if None in values else 0
  beyond = math.inf if last >= high else math.nan
  told = [beyond if value is None else cell.unit.scaled(value) for value in values]
  place = verdicts.place(told, cell.unit.scaled(low), cell.unit.scaled(high), at_least=cell.unit.scaled(last))
  margin = f'margin {cell.unit.within}'
  return _OF_PLACE.get(place, place), [
    f'{margin}: {cell.unit.reason}' if cell.unit is units.SHARE else margin
  ]


def _ratio(cell: Cell, found: Ours, values: Sequence[float | None], outcome: str) -> tuple[float | None, str]:
  """Returns the mean ratio to FedAvg and its verdict; a ratio of shares, whose denominator is a few clients, has none."""
  read = cell.baseline if cell.window_baseline is None else cell.window_baseline
  baseline = [] if read is None else read(found)
  if not baseline or None in baseline or 0.0 in baseline or None in values:
    return None, ''
  ratios = [a / b for a, b in zip(values, baseline, strict=True) if a is not None and b is not None]
  is_judged = cell.ratio is not None and cell.unit is units.PERCENT and outcome != NOT_VERIFIED
  mean = float(sum(ratios) / len(ratios))
  if not is_judged or cell.ratio is None:
    return mean, ''
  if found.has_no_clusters:
    return mean, NOT_DECIDABLE
  place = verdicts.place(ratios, cell.ratio - units.RATIO, cell.ratio + units.RATIO)
  return mean, _OF_PLACE.get(place, place)


def _seed_notes(found: Ours, judged: Sequence[float | None], reached: Sequence[float]) -> list[str]:
  if len(reached) < len(judged):
    missed = f' in {len(judged) - len(reached)} of {len(judged)} seeds' if reached else ''
    return [f'not in {plural(found.rounds_end, "round")}{missed}']
  return ['one seed, so no interval'] if len(judged) == 1 else []


def _mean(values: Sequence[float | None]) -> float | None:
  known = [value for value in values if value is not None]
  return sum(known) / len(known) if len(known) == len(values) else None
