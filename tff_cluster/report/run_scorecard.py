"""The tables and claims of Rohith et al. 2020 beside any run that has a method of theirs, in every report."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from tff_cluster.experiment.results import Results
from tff_cluster.papers import rohith2020
from tff_cluster.papers.rohith2020.setting import Setting
from tff_cluster.report import scorecard_tables
from tff_cluster.report.pages import Section, Table
from tff_cluster.scorecard import cells, headline, units
from tff_cluster.scorecard.cells import Line
from tff_cluster.scorecard.claims import AnyClaim, Finding
from tff_cluster.scorecard.published import Published
from tff_cluster.scorecard.rows import Ours, Row, of_method

# Those that print numbers; what folds say stands with the models of Phase 3.
_TABLES = [
  each for each in rohith2020.PUBLISHED.values() if any(cell.published is not None for cell in each.cells)
]
# A run's clusterings stand in the row that has the paper's own options of their method, the first one.
_ROWS = {row.clustering['method']: row.name for published in _TABLES for row in reversed(published.rows)}
# The table in which a run's own rules of Phase 3 stand, by row: the last that has the row.
_OF_RULES = {row.name: published for published in _TABLES for row in published.rows}


@dataclasses.dataclass(frozen=True)
class RunScorecard:
  """A run beside the paper's tables.

  Attributes:
    setting: What the run was run on.
    tables: The tables, each with its numbers and its claims.
  """

  setting: Setting
  tables: Sequence[tuple[Published, Sequence[Line], Sequence[tuple[AnyClaim, Finding]]]]

  @property
  def was_run(self) -> bool:
    """Whether any line has a number of ours."""
    verdicts = [line.verdict for _, lines, _ in self.tables for line in lines]
    verdicts += [finding.verdict for *_, findings in self.tables for _, finding in findings]
    return any(verdict != 'not run' for verdict in verdicts)

  def records(self) -> list[dict[str, Any]]:
    """Returns all lines as records, see headline.records."""
    lines = [line for _, found, _ in self.tables for line in found]
    for published, _, findings in self.tables:
      lines += [headline.claim_line(published.name, *pair, self.setting.remark) for pair in findings]
    return headline.records(lines, self.setting.remark or 'the paper’s')

  def shown(self) -> list[Table]:
    """Returns its tables as pages show them."""
    return [table for pair in self._data()['tables'] for table in pair]

  def section(self) -> Section:
    """Returns in what the run departs from the paper, its tables and its claims, each line with its verdict."""
    return Section(f'Tables and claims of {rohith2020.tables.PAPER}', 'report.html', 'paper', self._data())

  def folded(self) -> Section:
    """Returns `section` folded, for a run that shares methods with the paper and not its setting."""
    return Section(f'Beside {rohith2020.tables.PAPER}', 'report.html', 'folded_paper', self._data())

  def _data(self) -> dict[str, Any]:
    tables = []
    for published, lines, findings in self.tables:
      number = published.name.rpartition('/')[2].replace('table', 'Table ')
      numbers = scorecard_tables.numbers_table(lines, '', f'{number}: {published.title}')
      tables.append((numbers, scorecard_tables.claims_table(findings, self.setting.remark)))
    return {
      'name': rohith2020.tables.PAPER,
      'departures': [] if self.setting.is_papers else self.setting.departures,
      'tolerance': headline.tolerance_words(line for _, lines, _ in self.tables for line in lines),
      'tables': tables,
    }


def build(results: Results, setting: Setting) -> RunScorecard:
  """Returns the scorecard of a run: one line for every clustering of a number's method; claims take the nearest to the paper."""
  return RunScorecard(setting, [_table(published, results, setting.remark) for published in _TABLES])


def _table(
  published: Published, results: Results, remark: str
) -> tuple[Published, list[Line], list[tuple[AnyClaim, Finding]]]:
  rows = [row for row in published.rows if row.name in _ROWS.values()]
  found = {
    row.name: [ours for ours in of_method(row, results) if not (row.is_strict and ours.departures)]
    for row in rows
  }
  shown = [
    *(cell for cell in published.cells if found.get(cell.row) or (cell.row in found and not cell.is_added)),
    *(c for row in rows for c in _of_rules(published, row, found[row.name], results)),
  ]
  lines = [line for cell in shown for line in _lines(published, cell, found[cell.row], remark)]
  nearest = {name: members[0] for name, members in found.items() if members}
  findings = []
  for claim in published.claims:
    finding = claim.check(nearest, remark)
    ours = [nearest[name].clusterings[0] for name in claim.names if name in nearest]
    called = [c.label for c in ours if c.label != c.method]
    if called and finding.verdict != 'not run':
      note = '; '.join(filter(None, (finding.note, f'checked on {", ".join(called)}')))
      finding = dataclasses.replace(finding, note=note)
    findings.append((claim, finding))
  return published, lines, findings


def _of_rules(published: Published, row: Row, found: Sequence[Ours], results: Results) -> list[cells.Cell]:
  """Returns a cell for each rule of Phase 3 that a run has beside those of every run, where it has the row."""
  if _OF_RULES[row.name] is not published or not found:
    return []
  return [
    cells.Cell(
      row.name, f'{rule.name}_clients', f'Phase 3, {rule.words}: mean client accuracy', units.PERCENT,
      rohith2020.tables.evaluation(rule.name, 'mean_client_accuracy'), is_added=True,
    )
    for rule in results.rules
  ]  # fmt: skip


def _lines(published: Published, cell: cells.Cell, found: Sequence[Ours], remark: str) -> list[Line]:
  row = next(row for row in published.rows if row.name == cell.row)
  if not found:
    asked = ' and '.join(f'{name} {value}' for name, value in row.prescribed.items()) if row.is_strict else ''
    missing = f'this run has no {row.clustering["method"]} clustering{f" with {asked}" if asked else ""}'
    return [cells.line(published.name, published.source, cell, None, missing=missing)]
  lines = [cells.line(published.name, published.source, cell, ours, remark) for ours in found]
  if len(found) == 1:
    return lines
  labels = [ours.clusterings[0].label for ours in found]
  return [
    dataclasses.replace(line, row=f'{line.row} [{label}]') for line, label in zip(lines, labels, strict=True)
  ]
