"""The sections of a page on a published table or figure, by name; a paper's data says which of them its pages show."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import SUBJECT
from tff_cluster.base.words import plural, score, signed
from tff_cluster.experiment.config import FEDAVG
from tff_cluster.experiment.measured import Cut
from tff_cluster.report import scorecard_tables
from tff_cluster.report.pages import Cell, Section, Table
from tff_cluster.report.pictures import Picture
from tff_cluster.scorecard import curves
from tff_cluster.scorecard.cells import Line, without_remark
from tff_cluster.scorecard.claims import AnyClaim, Finding
from tff_cluster.scorecard.published import Published
from tff_cluster.scorecard.rows import Ours
from tff_cluster.studies.reproduction import pictures, toy_sections

TEMPLATE = 'reproduction.html'
Parts = list[Section]


@dataclasses.dataclass(frozen=True, eq=False)
class Page:
  """What the sections are made of.

  Attributes:
    published: The table or figure.
    rows: Our rows by name, those that were run; of a toy problem its results by name.
    lines: Its scorecard.
    findings: Its claims, and how each fared.
    remark: What was scaled down; empty at the paper's scale.
    folder: Where pictures go.
    run_folder: A run of which the page may show pictures.
  """

  published: Published
  rows: Mapping[str, Any]
  lines: Sequence[Line]
  findings: Sequence[tuple[AnyClaim, Finding]]
  remark: str
  folder: Path
  run_folder: Path | None = None

  @property
  def known(self) -> dict[str, Ours]:
    """The rows that were run, in the table's order."""
    return {row.name: self.rows[row.name] for row in self.published.rows if row.name in self.rows}

  @property
  def toys(self) -> list[Any]:
    """The results of toy problems."""
    return [*self.rows.values()]


def _drawn(heading: str, drawn: Sequence[Picture]) -> Parts:
  return [Section(heading, TEMPLATE, 'drawn', {'pictures': drawn})] if drawn else []


def _told(heading: str, of: Table, *sentences: str, soft: Sequence[str] = ()) -> Parts:
  return [Section(heading, TEMPLATE, 'told', {'sentences': sentences, 'of': of, 'soft': soft})]


def _claims(page: Page) -> Parts:
  if not page.findings:
    return [Section('The paper’s claims', TEMPLATE, 'no_claims', {})]
  return _told('The paper’s claims', scorecard_tables.claims_table(page.findings, page.remark))


def _numbers(page: Page) -> Parts:
  if not page.lines:
    return []
  is_printed = any(line.published is not None for line in page.lines)
  text = 'Below ours stands what is judged in its place, where a number fluctuates from round to round, and the 95% interval over seeds.'
  if any(line.column.startswith('expert') for line in page.lines):
    text += ' Accuracies are of the global test set. Expert 1 is the best one.'
  caption = f'{page.published.title} ({page.published.source})'
  numbers = scorecard_tables.numbers_table(page.lines, page.remark, caption)
  return _told('The paper’s numbers beside ours' if is_printed else 'Our numbers', numbers, text)


def _grid(page: Page) -> Parts:
  if not page.lines:
    return []
  columns = {line.column: line.cell.words for line in page.lines if line.cell is not None}
  body = []
  for row in page.published.rows:
    cells = [_cell(line, page.remark) for line in page.lines if line.row == row.name]
    if cells:
      body.append((Cell(row.name, (page.remark,)), *cells))
  of = Table(('row', *columns.values()), body, caption=f'{page.published.title} ({page.published.source})')
  return [Section('The paper’s numbers beside ours', TEMPLATE, 'grid', {'of': of})]


def _cell(line: Line, remark: str) -> dict[str, str | None]:
  # The row names what was scaled down; saying it again in each of its cells would hide the numbers.
  assert line.cell is not None
  unit = line.cell.unit
  window = scorecard_tables.window(line, unit.decimals)
  return {
    'look': scorecard_tables.look(line),
    'paper': _number(line, line.published) + _ratio(line, line.published, line.published_ratio),
    # Our ratio is of what is judged.
    'ours': _number(line, line.ours) + ('' if window else _ratio(line, line.ours, line.ours_ratio)),
    'window': window + _ratio(line, line.judged, line.ours_ratio) if window else None,
    'interval': scorecard_tables.interval(line, unit.decimals),
    'verdict': _verdict(line, remark),
  }


def _verdict(line: Line, remark: str) -> str:
  """Returns verdict and difference: 'reproduced: +0.4 points; ratio: differs'."""
  told = without_remark(line.verdict, remark)
  if line.difference is not None and line.cell is not None:
    told += f': {signed(line.difference)} {line.cell.unit.noun}s'
  return told + (f'; ratio: {without_remark(line.ratio_verdict, remark)}' if line.ratio_verdict else '')


def _number(line: Line, value: float | str | None) -> str:
  """Returns a number of a line; the grid says once that its accuracies are in percent."""
  assert line.cell is not None and not isinstance(value, str)
  return line.cell.unit.show(value).rstrip('%')


def _ratio(line: Line, value: float | str | None, ratio: float | None) -> str:
  """Returns a ratio in brackets behind its number; nothing where there is none to stand behind, or the column has none."""
  assert line.cell is not None
  if value is None or line.cell.baseline is None:
    return ''
  return f' ({"–" if ratio is None else f"{ratio:.1f}x"})'


def _clusters(page: Page) -> Parts:
  truths = list(dict.fromkeys(name for found in page.rows.values() for name in found.recovery))
  body = []
  for row in page.published.rows:
    found = page.rows.get(row.name)
    # What was run may be scaled down, the published row is not.
    clustering = (found.row if found else row).clustering
    if not clustering:
      continue
    asked = ', '.join(
      f'{k}={v}' for k, v in clustering.items() if k not in ('method', 'name') and v is not None
    )
    named = Cell(row.name, (asked,))
    if found is None:
      body.append((named, 'not run', *('–',) * (3 + len(truths))))
      continue
    recovered = (', '.join(score(value) for value in found.recovery.get(name, ())) or '–' for name in truths)
    rounds = f'{found.rounds_after - 1} of {found.rounds_end}'
    counts, cuts = (
      ', '.join('–' if value is None else f'{value:.4g}' for value in values)
      for values in (found.num_clusters, found.threshold)
    )
    body.append((named, rounds, ', '.join(map(str, found.seeds)), counts, cuts, *recovered))
  if not body:
    return []
  known = (
    'ARI is 1 for exactly the planted groups and about 0 for chance.'
    if truths
    else 'No planted groups are known.'
  )
  header = (
    'row',
    'clustered after round',
    'seeds',
    'clusters',
    'threshold used',
    *(f'ARI, {name}' for name in truths),
  )
  words = f'Where there are several seeds, there is one value for each, in their order. {known}'
  return _told('Clusters that were found', Table(header, body, range(1, len(header))), words)


def _choice(page: Page) -> Parts:
  known = [
    (name, seed, choice)
    for name, found in page.known.items()
    for seed, choice in zip(found.seeds, found.choice, strict=False)
    if choice is not None
  ]
  if not known:
    return []
  is_late = any(choice.best_after_one is not None for _, _, choice in known)
  body = []
  for name, seed, choice in known:
    tried = ', '.join(str(cut.num_clusters) for cut in choice.candidates)
    positions = [choice.chosen, choice.best_on_test, *([choice.best_after_one] if is_late else [])]
    cuts = ('–' if position is None else _cut_words(choice.candidates[position]) for position in positions)
    body.append((name, seed, tried, choice.rounds, choice.cost.client_rounds, *cuts))
  words = (
    'Each threshold cuts the clients into so many clusters; every cut is trained for so many rounds, and the one with the '
    'highest mean client accuracy on validation rows is kept. The client-rounds of the others count as its cost. What test rows '
    'would have chosen, which the paper appears to do, chooses nothing here, and says how much such a choice would flatter. '
    'Accuracies are on test rows, after these rounds.'
  )
  if is_late:
    words += ' The last column is what validation rows would have chosen after the first of the rounds.'
  header = (
    'row', 'seed', 'clusters tried', 'rounds', 'client-rounds of the others', 'best on validation rows',
    'best on test rows (not used)', *(['best after one round (not used)'] if is_late else []),
  )  # fmt: skip
  return _told('Thresholds that were tried', Table(header, body, (1, 3, 4)), words)


def _cut_words(cut: Cut) -> str:
  return f'T {cut.threshold:.4g}: {plural(cut.num_clusters, "cluster")}, {100.0 * cut.test_accuracy:.1f}%'


def _experts(page: Page) -> Parts:
  known = {name: found for name, found in page.known.items() if any(found.experts)}
  if not known:
    return []
  header = ['right on the global test set']
  names = [FEDAVG, *next(iter(known.values())).expert_accuracies]
  columns: list[list[str]] = []
  for name, found in known.items():
    values = [float(np.mean(v)) for v in (found.baseline_global, *found.expert_accuracies.values())]
    fedex = values[names.index(rules.with_role(SUBJECT).words)]
    header += [name, 'against FedEx']
    columns += [[f'{v:.2f}%' for v in values], [f'{signed(v - fedex, 2)} points' for v in values]]
  text = (
    'The same experts, combined by other rules. The oracle is right wherever some expert is: what FedAvg has above it is lost '
    'in the experts, what it has above FedEx in the combination. The oracle knows the labels and the gate has seen those '
    'of validation rows; the other rules see none. Means over seeds.'
  )
  body = list(zip(names, *columns, strict=True))
  return _told('Where the loss comes from', Table(header, body, range(1, len(header))), text)


def _measures(page: Page) -> Parts:
  printed = {line.row: line for line in page.lines if line.published is not None}
  body = []
  for name, ours in page.known.items():
    line = printed.get(name)
    seeds = ', '.join(map(str, ours.seeds))
    to_target = [_rounds(ours, target) for target in curves.TARGETS]
    beside: list[Any] = ['–', '–']
    if line is not None:
      words = without_remark(line.verdict, page.remark)
      beside = [f'{line.published:g}', Cell(words, look=scorecard_tables.look(line))]
    best, end, moves = (np.mean(read(ours)) for read in (curves.BEST, curves.END, curves.FLUCTUATION))
    body.append((name, seeds, *to_target, *beside, f'{best:.2f}%', f'{end:.2f}%', f'{moves:.2f}'))
  text = (
    'Rounds as McMahan et al. 2017 take them: of the best value so far, interpolated linearly where it crosses the target. '
    'Fluctuation is the standard deviation of the change from round to round over the last half of the rounds, in points. '
    'Means over seeds; below the rounds their number by seed, where there are several.'
  )
  measured = (
    'Accuracy is the mean over clients on their own test rows. IID this is the accuracy on the test set, of which every '
    'row is one client’s at the paper’s scale; non-IID some 40 of 10,000 rows are no client’s.'
  )
  header = (
      'row', 'seeds', *(f'rounds to {target:g}%' for target in curves.TARGETS), f'McMahan et al., {curves.TARGETS[-1]:g}%', 'verdict',
      'best accuracy', 'last accuracy', 'fluctuation',
  )  # fmt: skip
  numeric = (2, 3, 4, 5, 7, 8, 9)
  return _told('Rounds, accuracies and fluctuation', Table(header, body, numeric), text, soft=(measured,))


def _rounds(ours: Ours, target: float) -> Cell:
  found = curves.rounds(target)(ours)
  reached = [value for value in found if value is not None]
  if missed := len(found) - len(reached):
    of = f', {missed} of {len(found)} seeds' if reached else ''
    return Cell('–', (f'not in {ours.rounds_end} rounds{of}',))
  by_seed = ', '.join(f'{value:.1f}' for value in reached)
  return Cell(f'{np.mean(reached):.1f}', (by_seed,) if len(reached) > 1 else ())


# Sections that are the published figure itself stand before the claims in Published.sections.
SECTIONS: Mapping[str, Callable[[Page], Parts]] = {
  'claims': _claims,
  'grid': _grid,
  'numbers': _numbers,
  'clusters': _clusters,
  'choice': _choice,
  'experts': _experts,
  'measures': _measures,
  'curves': lambda page: _drawn(
    'Over rounds', pictures.curves(page.published.method, page.known, page.folder, page.remark)
  ),
  'labels': lambda page: _drawn(
    'The figure' if page.published.is_figure else 'What the clusters hold',
    pictures.labels(page.known, page.folder, page.remark),
  ),
  'settings': lambda page: _drawn(
    'The figure' if page.published.is_figure else 'The curves',
    pictures.settings(page.published.title, page.known, page.folder, page.remark),
  ),
  'splits': lambda page: _drawn('The figure', pictures.splits(page.run_folder, page.folder)),
  'clients': lambda page: _drawn('The figure', pictures.clients(page.run_folder, page.folder)),
  'clients toy': lambda page: _drawn('The figure', [toy_sections.draw_clients(page.toys, page.folder)]),
  'clients of the toy': lambda page: _told('The problems', toy_sections.clients_table(page.toys)),
  'risks toy': lambda page: _drawn('The figure', [toy_sections.draw_risks(page.toys, page.folder)]),
  'risks of the toy': lambda page: _told('The problems', toy_sections.risks_table(page.toys)),
}
