"""What a scorecard says in a sentence, and its lines as records for files."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tff_cluster.base.words import plural, series
from tff_cluster.scorecard import units
from tff_cluster.scorecard.cells import Line, with_remark
from tff_cluster.scorecard.claims import VERDICTS, Claim, Finding

_KINDS = (units.PERCENT, units.SHARE, units.LOSS, units.ROUNDS)
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
# The fields of a Line that files have.
FIELDS = (
  'table', 'row', 'column', 'unit', 'published', 'published_ratio', 'ours', 'low', 'high', 'ours_ratio', 'difference',
  'verdict', 'note', 'scale',
)  # fmt: skip


def tolerance_words(lines: Iterable[Line]) -> str:
  """Returns the tolerances of the printed numbers in a sentence; empty where none is printed."""
  found = {line.cell.unit for line in lines if line.cell is not None and line.published is not None}
  kinds = []
  for unit in _KINDS:
    if unit in found:
      reason = f'{"; " if unit.is_factor else ": "}{unit.reason}' if unit.reason else ''
      kinds.append(f'{unit.within} for {unit.plural}{reason}')
  return f'A number agrees within {" and within ".join(kinds)}.' if kinds else ''


def headline(source: str, lines: Sequence[Line], findings: Sequence[Finding], remark: str) -> str:
  """Returns the sentence that answers whether a table or figure reproduces, by counts alone.

  Args:
    source: Paper and number.
    lines: Its scorecard.
    findings: How its claims fared.
    remark: What was run instead of the paper's experiment; empty in the paper's setting.
  """
  compared = [line for line in lines if line.published is not None]
  numbers: Counter[bool | str | None] = Counter(
    'undecided' if line.is_undecided else line.agrees for line in compared
  )
  claimed = Counter(finding.verdict for finding in findings)
  good, bad = numbers[True] + claimed['holds'], numbers[False] + claimed['fails']
  counts = []
  if findings:
    kinds = [_counted(claimed[verdict], *_CLAIM_WORDS[verdict]) for verdict in VERDICTS if claimed[verdict]]
    counts.append(f'of {plural(len(findings), "claim")} {series(kinds)}')
  if compared:
    kinds = [_counted(numbers[key], *words) for key, words in _NUMBER_WORDS.items() if numbers[key]]
    counts.append(f'of {plural(len(compared), "printed number")} {series(kinds)}')
  counted = '; '.join(counts)
  if remark:
    start = f'This is not the paper’s scale ({remark}), so it cannot reproduce {source}'
    return f'{start}: {counted}.' if counts else f'{start}; the paper prints no number of it.'
  if not counts:
    return f'{source} prints no number and makes no claim that is checked: only the curves can be compared.'
  if not good + bad:
    answer = f'Whether {source} reproduces is not answered'
  elif not bad:
    complete = good == len(compared) + len(findings)
    answer = f'{source} reproduces' if complete else f'As far as it was run, {source} reproduces'
  else:
    answer = f'{source} reproduces in part' if good else f'{source} does not reproduce'
  return f'{answer}: {counted}.'


def claim_line(table: str, claim: Claim, finding: Finding, remark: str) -> Line:
  """Returns the line of a claim."""
  ours = None if finding.verdict == 'not run' else finding.ours
  note = '; '.join(filter(None, (finding.note, claim.source)))
  return Line(
    table, 'claim', claim.words, '', claim.published, None, ours, *(None,) * 4, with_remark(finding.verdict, remark), note
  )  # fmt: skip


def records(lines: Iterable[Line], scale: str) -> list[dict[str, Any]]:
  """Returns the lines by name of FIELDS; `scale` says at which size, or in which setting, they were run."""
  return [
    {**{field.name: getattr(line, field.name) for field in dataclasses.fields(Line) if field.name in FIELDS}, 'scale': scale}
    for line in lines
  ]  # fmt: skip


def _counted(count: int, one: str, several: str) -> str:
  return f'{count} {one if count == 1 else several}'
