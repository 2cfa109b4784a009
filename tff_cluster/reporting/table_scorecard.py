"""The cells of a published table beside ours, each with a verdict, and the sentence that sums them up.

Only runs at the paper's own scale can reproduce a number or fail to. At any other scale every line says what was
scaled down, and closeness is told for what it is.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tff_cluster.papers import tables
from tff_cluster.reporting.claims import VERDICTS, Finding
from tff_cluster.reporting.published import TOLERANCE_POINTS
from tff_cluster.scorecard.intervals import student_interval
from tff_cluster.scorecard.words import plural, series

if TYPE_CHECKING:
  from tff_cluster.reporting.table_claims import Reproduced

# Percent by row, column and position in Reproduced.seeds.
BySeed = Mapping[str, Mapping[str, Sequence[float]]]
PAPER_SCALE = 'paper'
# With 100 clients one client is a point, and the share at a hard target moves by points from seed to seed, while the
# paper gives one seed: at a point's tolerance luck alone would decide.
SHARE_TOLERANCE_POINTS = 5.0
SHARE_REASON = (
  'with 100 clients one client is 1 point, and the share at a hard target moves by points between seeds; '
  'the paper gives one seed'
)
# A point of accuracy moves the losses of Miles et al. 2024 by 0.01, and they are printed to 0.01.
LOSS_TOLERANCE = 0.02
# Our choice: McMahan et al. 2017 print one number for each setting, and no spread over seeds.
ROUNDS_FACTOR = 1.25
_NUMBER_WORDS = {
  True: ('agrees within the tolerance', 'agree within the tolerance'),
  False: ('differs', 'differ'),
  None: ('was not run', 'were not run'),
  'undecided': ('is undecided', 'are undecided'),
}
_CLAIM_WORDS = {
  'holds': ('holds', 'hold'),
  'fails': ('fails', 'fail'),
  'undecided': ('is undecided', 'are undecided'),
  'not run': ('was not run', 'were not run'),
}


@dataclasses.dataclass(frozen=True)
class Line:
  """One cell of the scorecard.

  Attributes:
    table: Name of the table or figure.
    row: Name of the row.
    column: One of tables.COLUMNS, or a paper's own, which ends with '_loss' where it holds a loss, and begins with
      'rounds' where it holds rounds.
    published: In percent, a loss and rounds as they are; None where the paper prints no number.
    published_ratio: The printed ratio to FedAvg; None where none is printed.
    ours: In the same unit, mean over seeds; None where not run.
    low, high: Ends of the 95% Student interval of that mean over seeds; None with one seed.
    ours_ratio: Ours divided by our FedAvg's; None where not run or where FedAvg has 0.
    difference: Ours minus published, in percentage points, as a loss or in rounds; None where either is missing.
    verdict: In words; it names the scale wherever that is not the paper's.
    note: What a reader must know, with the source.
  """

  table: str
  row: str
  column: str
  published: float | None
  published_ratio: float | None
  ours: float | None
  low: float | None
  high: float | None
  ours_ratio: float | None
  difference: float | None
  verdict: str
  note: str

  @property
  def agrees(self) -> bool | None:
    """Whether the difference is within the column's tolerance; None where there is no difference."""
    return None if self.difference is None else abs(self.difference) <= tolerance(self.column)

  @property
  def is_undecided(self) -> bool:
    """Whether it was run and cannot tell."""
    return False


def tolerance(column: str) -> float:
  """Returns the difference, in points or as a loss, up to which a number of a column counts as the printed one."""
  if is_loss(column):
    return LOSS_TOLERANCE
  return SHARE_TOLERANCE_POINTS if column.startswith('share') else TOLERANCE_POINTS


def is_loss(column: str) -> bool:
  """Returns whether a column holds a loss, not percentages."""
  return column.endswith('_loss')


def is_rounds(column: str) -> bool:
  """Returns whether a column holds numbers of rounds."""
  return column.startswith('rounds')


def tolerance_words(lines: Sequence[Line]) -> str:
  """Returns the tolerances of the printed numbers in a sentence; empty where none is printed."""
  columns = {line.column for line in lines if line.published is not None}
  rounds = set(filter(is_rounds, columns))
  kinds = [f'{TOLERANCE_POINTS:g} point for accuracies'] if columns - rounds else []
  if any(column.startswith('share') for column in columns):
    kinds.append(f'{SHARE_TOLERANCE_POINTS:g} points for shares of clients: {SHARE_REASON}')
  if any(map(is_loss, columns)):
    kinds.append(f'{LOSS_TOLERANCE:g} for losses')
  if rounds:
    kinds.append(
      f'a factor of {ROUNDS_FACTOR:g} for rounds; where both are beyond the rounds that we ran, it is undecided'
    )
  return f'A number agrees within {" and within ".join(kinds)}.' if columns else ''


def scale_remark(scale: str, scale_words: str) -> str:
  """Returns 'scaled down: ...', or nothing at the paper's scale."""
  return '' if scale == PAPER_SCALE else f'scaled down: {scale_words or scale}'


def build_scorecard(
  published: tables.Published,
  rows: 'Mapping[str, Reproduced]',
  scale: str,
  scale_words: str,
  by_seed: BySeed | None = None,
) -> list[Line]:
  """Returns one line for each cell, row by row; the rows of a figure have our numbers only, those of FedAvg alone none.

  Args:
    published: The table or figure.
    rows: Our rows by name; those that are missing were not run.
    scale: 'paper', or the name of another scale.
    scale_words: What that scale scaled down.
    by_seed: The numbers behind the means of `rows`, for the intervals; without them there are none.

  Raises:
    ValueError: if numbers by seed are not those behind a mean.
  """
  remark = scale_remark(scale, scale_words)
  by_seed = by_seed or {}
  lines = []
  for row in published.rows:
    if not row.clustering:
      continue
    cells = row.cells or (None,) * len(tables.COLUMNS)
    for column, cell in zip(tables.COLUMNS, cells, strict=True):
      values = by_seed.get(row.name, {}).get(column)
      lines.append(_line(published, row.name, column, cell, rows.get(row.name), values, remark))
  return lines


def headline(
  published: tables.Published, lines: Sequence[Line], findings: Sequence[Finding], remark: str
) -> str:
  """Returns the sentence that answers whether a table or figure reproduces, by counts alone.

  Args:
    published: The table or figure.
    lines: Its scorecard.
    findings: How its claims fared.
    remark: As scale_remark gives it.
  """
  compared = [line for line in lines if line.published is not None]
  numbers: Counter[bool | str | None] = Counter(
    'undecided' if line.is_undecided else line.agrees for line in compared
  )
  claimed = Counter(finding.verdict for finding in findings)
  good, bad = numbers[True] + claimed['holds'], numbers[False] + claimed['fails']
  what = published.source
  counts = []
  if findings:
    kinds = [_counted(claimed[verdict], *_CLAIM_WORDS[verdict]) for verdict in VERDICTS if claimed[verdict]]
    counts.append(f'of {plural(len(findings), "claim")} {series(kinds)}')
  if compared:
    kinds = [_counted(numbers[key], *words) for key, words in _NUMBER_WORDS.items() if numbers[key]]
    counts.append(f'of {plural(len(compared), "printed number")} {series(kinds)}')
  counted = '; '.join(counts)
  if remark:
    start = f'This is not the paper’s scale ({remark}), so it cannot reproduce {what}'
    return f'{start}: {counted}.' if counts else f'{start}; the paper prints no number of it.'
  if not counts:
    return f'{what} prints no number and makes no claim that is checked: only the curves can be compared.'
  if not good + bad:
    answer = f'Whether {what} reproduces is not answered'
  elif not bad:
    complete = good == len(compared) + len(findings)
    answer = f'{what} reproduces' if complete else f'As far as it was run, {what} reproduces'
  else:
    answer = f'{what} reproduces in part' if good else f'{what} does not reproduce'
  return f'{answer}: {counted}.'


def verdict(line: Line, remark: str) -> str:
  """Returns the verdict on a line of a row that was run."""
  if line.difference is None:
    return f'nothing to compare ({remark})' if remark else 'nothing to compare'
  limit, loss = tolerance(line.column), is_loss(line.column)
  within = f'{limit:g}' if loss else f'{limit:g} point' + ('' if limit == 1 else 's')
  if line.agrees:
    return f'within {within} ({remark})' if remark else f'reproduced (within {within})'
  size = f'{abs(line.difference):.2f}' if loss else f'{abs(line.difference):.1f} points'
  # "differs by 1.0 points" would read like the tolerance that it exceeds.
  just = f'{limit:.2f}' if loss else f'{limit:.1f} points'
  size = f'just over {within}' if size == just else size
  side = f'ours is {"higher" if line.difference > 0 else "lower"}'
  return f'differs by {size} ({side}; {remark})' if remark else f'differs by {size} ({side})'


def _counted(count: int, one: str, several: str) -> str:
  return f'{count} {one if count == 1 else several}'


def _line(
  published: tables.Published,
  row: str,
  column: str,
  cell: tables.Cell | None,
  found: 'Reproduced | None',
  values: Sequence[float] | None,
  remark: str,
) -> Line:
  printed, ratio = (None, None) if cell is None else (cell.percent, cell.ratio)
  source = published.source
  if found is None:
    return Line(published.name, row, column, printed, ratio, *(None,) * 5, 'not run', source)
  ours, baseline = float(found.percent[column]), float(found.baseline[column])
  interval = student_interval([ours] if values is None else values)
  if values is not None and (len(values) != len(found.seeds) or abs(interval.mean - ours) > 1e-6):
    raise ValueError(f'{row}, {column}: mean {ours} over seeds {found.seeds}, but by seed {list(values)}')
  notes = []
  if printed is None:
    notes.append('the paper prints no number here')
  elif column.startswith('share'):
    notes.append(f'tolerance {SHARE_TOLERANCE_POINTS:g} points: {SHARE_REASON}')
  if interval.low is None:
    notes.append(
      'one seed, so no interval' if len(found.seeds) == 1 else 'no numbers by seed, so no interval'
    )
  if baseline == 0.0:
    notes.append('our FedAvg without clusters has 0%, so no ratio')
  # Rounded, so that a difference of exactly the tolerance does not fail by binary fractions.
  difference = None if printed is None else round(ours - printed, 6)
  line = Line(
      published.name, row, column, printed, ratio, ours, interval.low, interval.high, ours / baseline if baseline else None,
      difference, '', '; '.join([*notes, source]),
  )  # fmt: skip
  return dataclasses.replace(line, verdict=verdict(line, remark))
