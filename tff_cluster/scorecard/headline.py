"""What a scorecard says in a sentence, and its lines as records for files."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tff_cluster.base.grouping import by_key
from tff_cluster.base.words import plural, series
from tff_cluster.scorecard import cells, claims, units, verdicts
from tff_cluster.scorecard.cells import Line, with_remark
from tff_cluster.scorecard.claims import AnyClaim, Finding
from tff_cluster.scorecard.published import TOY_SCALE, Published
from tff_cluster.scorecard.rows import Ours

_KINDS = (units.PERCENT, units.SHARE, units.LOSS, units.ROUNDS)
_WORDS = {
  cells.REPRODUCED: ('is reproduced', 'are reproduced'),
  cells.DIFFERS: ('differs', 'differ'),
  claims.HOLDS: ('holds', 'hold'),
  claims.FAILS: ('fails', 'fail'),
  verdicts.UNDECIDED: ('is undecided', 'are undecided'),
  'one seed': ('has one seed', 'have one seed'),
  'two seeds': ('has two seeds', 'have two seeds'),
  verdicts.NOT_DECIDABLE: ('is not decidable here', 'are not decidable here'),
  cells.NOT_COMPARABLE: ('is not comparable', 'are not comparable'),
  cells.NOT_VERIFIED: ('is not verified', 'are not verified'),
  cells.NOT_MEASURED: ('was not measured', 'were not measured'),
  verdicts.NOT_RUN: ('was not run', 'were not run'),
}
# The fields of a Line that files have (docs/scorecards.md).
FIELDS = (
  'table', 'row', 'column', 'unit', 'published', 'ours', 'judged', 'judged_on', 'low', 'high', 'seeds', 'difference', 'margin',
  'verdict', 'published_ratio', 'ours_ratio', 'ratio_verdict', 'training', 'note', 'scale',
)  # fmt: skip
# From what counts for a training to what does not, where lines of it differ in their outcome.
_WORST = (
  cells.DIFFERS, verdicts.UNDECIDED, *verdicts.FEW.values(), verdicts.NOT_DECIDABLE, cells.NOT_COMPARABLE, cells.NOT_VERIFIED,
  cells.REPRODUCED,
)  # fmt: skip


def tolerance_words(lines: Iterable[Line]) -> str:
  """Returns when printed numbers are reproduced, in a sentence; empty where none is printed."""
  found = {line.cell.unit for line in lines if line.cell is not None and line.published is not None}
  kinds = []
  for unit in _KINDS:
    if unit in found:
      reason = f'{"; " if unit.is_factor else ": "}{unit.reason}' if unit.reason else ''
      kinds.append(f'{unit.within} for {unit.plural}{reason}')
  if not kinds:
    return ''
  return (
    f'With {verdicts.FEWEST_SEEDS} seeds or more a number is reproduced where the 90% interval over seeds of ours minus the printed '
    f'one lies within {" and within ".join(kinds)}. It differs where the 95% interval has nothing in common with that, and is '
    'undecided in between. One or two seeds decide nothing.'
  )


def counted_once(training: str, row: str, column: str, is_ratio: bool = False) -> Hashable:
  """Returns what is equal for the numbers of a table, or the ratios beside them, that count once.

  These are those of one training and column; what was not run stands alone.
  """
  return (training, column, is_ratio) if training else (row, column, is_ratio, '')


def worst_of_each(outcomes: Iterable[tuple[Hashable, str]]) -> list[str]:
  """Returns one outcome for each key (`counted_once`): reproduced only where all are."""
  found = [[outcome for _, outcome in same] for same in by_key(outcomes, lambda each: each[0]).values()]
  # Pages shorten outcomes to their first words.
  return [
    next((each for worst in _WORST for each in of_key if worst.startswith(each)), of_key[0])
    for of_key in found
  ]


def headline(source: str, lines: Sequence[Line], findings: Sequence[Finding], remark: str) -> str:
  """Returns the sentence that answers whether a table or figure reproduces, by counts alone.

  Args:
    source: Paper and number.
    lines: Its scorecard.
    findings: How its claims fared.
    remark: What was run instead of the paper's experiment; empty in the paper's setting.
  """
  compared = list(_compared(lines))
  groups = worst_of_each(compared)
  numbers, claimed = Counter(groups), Counter(finding.verdict for finding in findings)
  counts = []
  if findings:
    counts.append(f'of {plural(len(findings), "claim")} {_counted(claimed, claims.VERDICTS)}')
  if groups:
    more = ''
    if len(groups) < len(compared):
      more = f', of {len(groups)} distinct trainings and columns (each counted once),'
    counts.append(
      f'of {plural(len(compared), "printed number")}{more} {_counted(numbers, cells.COMPARED, remark)}'
    )
  counted = '; '.join(counts)
  if remark:
    start = f'This is not the paper’s scale ({remark}), so it cannot reproduce {source}'
    return f'{start}: {counted}.' if counts else f'{start}; the paper prints no number of it.'
  if not counts:
    return f'{source} prints no number and makes no claim that is checked: only the curves can be compared.'
  good, bad = (
    numbers[cells.REPRODUCED] + claimed[claims.HOLDS],
    numbers[cells.DIFFERS] + claimed[claims.FAILS],
  )
  if not good + bad:
    answer = f'Whether {source} reproduces is not answered'
  elif not bad:
    complete = good == len(groups) + len(findings)
    answer = f'{source} reproduces' if complete else f'As far as it is decided, {source} reproduces'
  else:
    answer = f'{source} reproduces in part' if good else f'{source} does not reproduce'
  return f'{answer}: {counted}.'


def _compared(lines: Iterable[Line]) -> Iterator[tuple[Hashable, str]]:
  """Yields the outcome of each printed number, and of each ratio that is judged, behind what is equal where they count once."""
  for line in lines:
    if line.published is not None:
      yield counted_once(line.training, line.row, line.column), line.outcome
      if line.ratio_outcome:
        yield counted_once(line.training, line.row, line.column, is_ratio=True), line.ratio_outcome


def claim_line(table: str, claim: AnyClaim, finding: Finding, remark: str) -> Line:
  """Returns the line of a claim."""
  ours = None if finding.verdict == verdicts.NOT_RUN else finding.ours
  note = '; '.join(filter(None, (finding.note, claim.source)))
  return Line(
    table, 'claim', claim.words, '', claim.published, None, ours, None, '', None, None, 0, None, None, None,
    with_remark(finding.verdict, remark), '', '', note, outcome=finding.verdict,
  )  # fmt: skip


def scored(
  published: Published, rows: Mapping[str, Ours] | Mapping[str, Any], remark: str
) -> tuple[list[Line], list[tuple[AnyClaim, Finding]], list[dict[str, Any]]]:
  """Returns the lines of a table or figure, its claims with how they fared, and the records of both (see `records`).

  Args:
    published: The table or figure.
    rows: Our rows by name, those that are missing were not run; of a toy problem its results by name.
    remark: What was run instead of the paper's experiment; empty in the paper's setting.
  """
  findings = [(claim, claim.check(rows, remark)) for claim in published.claims]
  numbers = cells.lines(published.name, published.source, published.cells, rows, remark)
  told = [*numbers, *(claim_line(published.name, *pair, remark) for pair in findings)]
  size = remark or 'the paper’s' if published.compute is None else TOY_SCALE
  return numbers, findings, records(told, size)


def records(lines: Sequence[Line], scale: str) -> list[dict[str, Any]]:
  """Returns the lines by name of FIELDS; `scale` says at which size, or in which setting, they were run."""
  return [
    {name: scale if name == 'scale' else getattr(line, name) for name in FIELDS}
    | {'note': _with_others(line, lines)}
    for line in lines
  ]


def _with_others(line: Line, lines: Sequence[Line]) -> str:
  """Returns a line's note, with the other rows that are the same training."""
  rows = dict.fromkeys(
    other.row
    for other in lines
    if line.training
    and other.training == line.training
    and other.column == line.column
    and other.row != line.row
  )
  return f'one training with {series(list(rows))}; {line.note}' if rows else line.note


def _counted(counts: Counter[str], order: Sequence[str], remark: str = '') -> str:
  kinds = []
  for name in order:
    one, several = _WORDS[name]
    if remark and name == cells.REPRODUCED:
      one, several = 'is within the margin', 'are within the margin'
    if counts[name]:
      kinds.append(f'{counts[name]} {one if counts[name] == 1 else several}')
  return series(kinds)
