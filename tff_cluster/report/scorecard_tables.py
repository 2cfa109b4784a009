"""Scorecards as tables of a page: claims beside ours, and numbers beside ours."""

from collections.abc import Sequence

from tff_cluster.base.words import signed
from tff_cluster.report.pages import Cell, Table, verdict_cell
from tff_cluster.scorecard import cells
from tff_cluster.scorecard.cells import Line, with_remark, without_remark
from tff_cluster.scorecard.claims import AnyClaim, Finding
from tff_cluster.scorecard.units import Unit


def claims_table(findings: Sequence[tuple[AnyClaim, Finding]], remark: str) -> Table:
  """Returns a table of claims beside ours."""
  rows = [
      (
          Cell(claim.words, ('; '.join(filter(None, (finding.note, claim.source))),)),
          claim.published, finding.ours or '–', verdict_cell(with_remark(finding.verdict, remark)),
      )
      for claim, finding in findings
  ]  # fmt: skip
  return Table(('claim', 'published', 'ours', 'verdict'), rows)


def numbers_table(lines: Sequence[Line], remark: str, caption: str) -> Table:
  """Returns a table with a line for each number.

  Args:
    lines: A scorecard's lines that are no claims.
    remark: What is said once and not in each line; empty: verdicts as they are.
    caption: Above the table.
  """
  body = []
  for line in lines:
    assert line.cell is not None
    decimals = line.cell.decimals or line.cell.unit.decimals
    ours = Cell(
      _show(line.cell.unit, line.ours, decimals), (window(line, decimals), interval(line, decimals))
    )
    difference = '–' if line.difference is None else signed(line.difference, decimals)
    words = Cell(without_remark(line.verdict, remark), look=look(line))
    named = Cell(line.cell.words, (line.note,))
    body.append((line.row, named, _show(line.cell.unit, line.published, decimals), ours, difference, words))
  header = ('row', 'number', 'paper', 'ours', 'difference', 'verdict')
  return Table(header, body, (2, 3, 4), caption)


def look(line: Line) -> str:
  """Returns the class of a verdict's colour."""
  # What agrees in another setting is no reproduction, so it stays neutral.
  if line.outcome == cells.DIFFERS:
    return 'warn'
  return 'good' if line.verdict.startswith(cells.REPRODUCED) else 'none'


def window(line: Line, decimals: int) -> str | None:
  """Returns what is judged in place of the number at the printed round; None where that is the number itself."""
  if not line.judged_on or line.cell is None:
    return None
  return f'{line.cell.unit.show(line.judged, decimals)} is {line.judged_on}'


def _show(unit: Unit, value: float | str | None, decimals: int) -> str:
  assert not isinstance(value, str)
  return unit.show(value, decimals)


def interval(line: Line, decimals: int) -> str | None:
  """Returns the interval below a number; None where there is none."""
  if line.low is None or line.high is None or line.cell is None:
    return None
  low, high = (line.cell.unit.show(end, decimals).rstrip('%') for end in (line.low, line.high))
  return f'{low} to {high}'
