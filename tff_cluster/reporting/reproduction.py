"""The page that ends a reproduction: a published table or figure beside ours, and whether it reproduces.

Only runs at the paper's own scale can reproduce a number or fail to. At any other scale every line says what was
scaled down, and closeness is told for what it is.
"""

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special

from tff_cluster.papers import tables
from tff_cluster.reporting import report
from tff_cluster.reporting.claims import VERDICTS, Finding
from tff_cluster.reporting.figures import base
from tff_cluster.reporting.figures import reproduction as figures
from tff_cluster.reporting.files import csv_text, write_file
from tff_cluster.reporting.intervals import Interval
from tff_cluster.reporting.markup import Markup, table, tag
from tff_cluster.reporting.pictures import Picture
from tff_cluster.reporting.published import TOLERANCE_POINTS
from tff_cluster.reporting.sections import verdict_chip
from tff_cluster.reporting.words import plural, score, series

if TYPE_CHECKING:
  from tff_cluster.reporting.table_claims import Reproduced, TableClaim

# Percent by row, column and position in Reproduced.seeds.
BySeed = Mapping[str, Mapping[str, Sequence[float]]]
PAPER_SCALE = 'paper'
# With 100 clients one client is a point, and the share at a hard target moves by points from seed to seed, while the
# paper gives one seed: at a point's tolerance luck alone would decide.
SHARE_TOLERANCE_POINTS = 5.0
_SHARE_REASON = (
  'with 100 clients one client is 1 point, and the share at a hard target moves by points between seeds; '
  'the paper gives one seed'
)
_LEVEL = 0.95
_NUMBER_WORDS = {
  True: ('agrees within the tolerance', 'agree within the tolerance'),
  False: ('differs', 'differ'),
  None: ('was not run', 'were not run'),
}
_CLAIM_WORDS = {
  'holds': ('holds', 'hold'),
  'fails': ('fails', 'fail'),
  'undecided': ('is undecided', 'are undecided'),
  'not run': ('was not run', 'were not run'),
}
_COLUMNS = {
  'accuracy_after': 'test accuracy right after the clustering',
  'accuracy_end': 'test accuracy in the last round',
  'share_after': 'clients at the target right after the clustering',
  'share_end': 'clients at the target in the last round',
}


@dataclasses.dataclass(frozen=True)
class Line:
  """One cell of the scorecard.

  Attributes:
    table: Name of the table or figure.
    row: Name of the row.
    column: One of tables.COLUMNS.
    published: In percent; None where the paper prints no number.
    published_ratio: The printed ratio to FedAvg; None where none is printed.
    ours: In percent, mean over seeds; None where not run.
    low, high: Ends of the 95% Student interval of that mean over seeds, in percent; None with one seed.
    ours_ratio: Ours divided by our FedAvg's; None where not run or where FedAvg has 0.
    difference: Ours minus published, in percentage points; None where either is missing.
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


def tolerance(column: str) -> float:
  """Returns the difference in points up to which a number of a column counts as the printed one."""
  return SHARE_TOLERANCE_POINTS if column.startswith('share') else TOLERANCE_POINTS


def scale_remark(scale: str, scale_words: str) -> str:
  """Returns 'scaled down: ...', or nothing at the paper's scale."""
  return '' if scale == PAPER_SCALE else f'scaled down: {scale_words or scale}'


def student_interval(values: Sequence[float]) -> Interval:
  """Returns the mean with its 95% interval over seeds by Student's t; one value has no interval.

  Args:
    values: One a seed.
  """
  count, mean = len(values), float(np.mean(values))
  if count < 2:
    return Interval(mean, None, None)
  half = scipy.special.stdtrit(count - 1, (1 + _LEVEL) / 2) * float(np.std(values, ddof=1)) / math.sqrt(count)
  return Interval(mean, mean - half, mean + half)


def build_scorecard(
  published: tables.Published,
  rows: 'Mapping[str, Reproduced]',
  scale: str,
  scale_words: str,
  by_seed: BySeed | None = None,
) -> list[Line]:
  """Returns one line for each cell, row by row; the rows of a figure have our numbers only.

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
    cells = row.cells or (None,) * len(tables.COLUMNS)
    for column, cell in zip(tables.COLUMNS, cells, strict=True):
      values = by_seed.get(row.name, {}).get(column)
      lines.append(_line(published, row.name, column, cell, rows.get(row.name), values, remark))
  return lines


def write_reproduction(
  published: tables.Published,
  rows: 'Mapping[str, Reproduced]',
  findings: 'Sequence[tuple[TableClaim, Finding]]',
  scale: str,
  scale_words: str,
  facts: Mapping[str, Any],
  folder: Path,
  by_seed: BySeed | None = None,
) -> Path:
  """Writes scorecard.csv, scorecard.json, figures/*.svg and *.png, and index.html into a folder.

  Args:
    published: The table or figure.
    rows: Our rows by name; those that are missing were not run.
    findings: The paper's claims, and how each fared.
    scale: 'paper', or the name of another scale.
    scale_words: What that scale scaled down.
    facts: How it was run (command, seeds, machine, date, client-rounds, ...), in the order of the page.
    folder: Where to.
    by_seed: The numbers behind the means of `rows`, for the intervals; without them there are none.

  Returns:
    The path of index.html.

  Raises:
    EnvironmentFault: where a file cannot be written.
  """
  remark = scale_remark(scale, scale_words)
  lines = build_scorecard(published, rows, scale, scale_words, by_seed)
  records = [
    *(dataclasses.asdict(line) for line in lines),
    *(_claim_record(published, *pair, remark) for pair in findings),
  ]
  records = [record | {'scale': remark or 'the paper’s'} for record in records]
  header = [*(field.name for field in dataclasses.fields(Line)), 'scale']
  write_file(folder / 'scorecard.json', json.dumps(records, indent=2, ensure_ascii=False) + '\n')
  write_file(folder / 'scorecard.csv', csv_text(header, ([r[name] for name in header] for r in records)))
  pictures = _draw_pictures(published, rows, folder, remark)
  parts: list[tuple[str, list[Markup]]] = [
    ('The answer', _answer_section(published, lines, findings, remark)),
    ('The paper’s claims', _claims_section(findings, remark)),
  ]
  if any(row.cells for row in published.rows):
    parts.append(('The paper’s numbers beside ours', _cells_section(published, lines, remark)))
  parts += [
    ('Clusters that were found', _clusters_section(published, rows)),
    ('Over rounds', [report.figure(picture) for picture in pictures]),
    ('How it was run', _facts_section(facts)),
  ]
  title = f'{published.title} ({f"scale {scale}" if remark else "the paper’s scale"})'
  subtitle = f'{published.name} · {published.source} · {remark or "at the paper’s scale"}'
  target = folder / 'index.html'
  write_file(target, report.page(title, subtitle, parts))
  return target


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
  numbers = Counter(line.agrees for line in compared)
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
    notes.append(f'tolerance {SHARE_TOLERANCE_POINTS:g} points: {_SHARE_REASON}')
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
  return dataclasses.replace(line, verdict=_verdict(line, remark))


def _verdict(line: Line, remark: str) -> str:
  """Returns the verdict on a line of a row that was run."""
  if line.difference is None:
    return f'nothing to compare ({remark})' if remark else 'nothing to compare'
  limit = tolerance(line.column)
  points = f'{limit:g} point' + ('' if limit == 1 else 's')
  if line.agrees:
    return f'within {points} ({remark})' if remark else f'reproduced (within {points})'
  size = f'{abs(line.difference):.1f} points'
  # "differs by 1.0 points" would read like the tolerance that it exceeds.
  size = f'just over {points}' if size == f'{limit:.1f} points' else size
  side = f'ours is {"higher" if line.difference > 0 else "lower"}'
  return f'differs by {size} ({side}; {remark})' if remark else f'differs by {size} ({side})'


def _claim_verdict(finding: Finding, remark: str) -> str:
  return f'{finding.verdict} ({remark})' if remark and finding.verdict != 'not run' else finding.verdict


def _claim_record(
  published: tables.Published, claim: 'TableClaim', finding: Finding, remark: str
) -> dict[str, Any]:
  record: dict[str, Any] = dict.fromkeys(field.name for field in dataclasses.fields(Line))
  note = '; '.join(part for part in (finding.note, claim.source) if part)
  ours = None if finding.verdict == 'not run' else finding.ours
  return record | {
      'table': published.name, 'row': 'claim', 'column': claim.words, 'published': claim.published, 'ours': ours,
      'verdict': _claim_verdict(finding, remark), 'note': note,
  }  # fmt: skip


def _answer_section(
  published: tables.Published,
  lines: Sequence[Line],
  findings: 'Sequence[tuple[TableClaim, Finding]]',
  remark: str,
) -> list[Markup]:
  content = [
    tag('p', headline(published, lines, [finding for _, finding in findings], remark), class_='lead')
  ]
  if remark:
    words = f'{remark}. Here no number is called reproduced, and a claim that holds or fails does so at this scale only.'
    content.append(tag('p', tag('strong', 'Take care. '), f'{words[0].upper()}{words[1:]}', class_='alarm'))
  if any(line.published is not None for line in lines):
    content.append(
        tag(
            'p', f'A number agrees within {TOLERANCE_POINTS:g} point for accuracies and within {SHARE_TOLERANCE_POINTS:g} '
            f'points for shares of clients: {_SHARE_REASON}.', class_='soft',
        )
    )  # fmt: skip
  if published.note:
    content.append(tag('p', published.note, class_='note'))
  return content


def _claims_section(findings: 'Sequence[tuple[TableClaim, Finding]]', remark: str) -> list[Markup]:
  if not findings:
    return [tag('p', 'No claim of the paper is checked here.')]
  rows = [
      (
          [claim.words, tag('div', '; '.join(part for part in (finding.note, claim.source) if part), class_='note')],
          claim.published, finding.ours or '–', verdict_chip(_claim_verdict(finding, remark)),
      )
      for claim, finding in findings
  ]  # fmt: skip
  return [table(('claim', 'published', 'ours', 'verdict'), rows)]


def _cells_section(published: tables.Published, lines: Sequence[Line], remark: str) -> list[Markup]:
  scaled = tag('div', remark, class_='note') if remark else None
  body = []
  for row in published.rows:
    cells = [_cell(line, remark) for line in lines if line.row == row.name]
    body.append(([row.name, scaled], *cells))
  return [
      tag('p', 'In each cell the paper’s number and ours, in percent, with the ratio to FedAvg without clusters in brackets; '
          'below ours its 95% interval over seeds, where there are several.'),
      table(('row', *_COLUMNS.values()), body, caption=f'{published.title} ({published.source})'),
  ]  # fmt: skip


def _cell(line: Line, remark: str) -> Markup:
  # The row names what was scaled down; saying it again in each of its cells would hide the numbers.
  verdict = line.verdict.replace(f'; {remark})', ')').replace(f' ({remark})', '') if remark else line.verdict
  interval = None
  if line.low is not None and line.high is not None:
    interval = tag('div', f'{line.low:.1f} to {line.high:.1f}', class_='note')
  return tag(
      'div', tag('div', f'paper {_number(line.published, line.published_ratio)}'),
      tag('div', f'ours {_number(line.ours, line.ours_ratio)}'), interval, tag('div', verdict, style='font-size:.84em'),
      class_=_look(line, remark), style='border-radius:4px;padding:.2rem .45rem',
  )  # fmt: skip


def _look(line: Line, remark: str) -> str:
  # As for a run's scorecard: what agrees at another scale is no reproduction, so it stays neutral.
  return 'none' if line.agrees is None or (line.agrees and remark) else 'good' if line.agrees else 'warn'


def _number(value: float | None, ratio: float | None) -> str:
  return '–' if value is None else f'{value:.1f} ({"–" if ratio is None else f"{ratio:.1f}x"})'


def _clusters_section(published: tables.Published, rows: 'Mapping[str, Reproduced]') -> list[Markup]:
  truths = list(dict.fromkeys(name for found in rows.values() for name in found.recovery))
  body = []
  for row in published.rows:
    found = rows.get(row.name)
    asked = ', '.join(
      f'{k}={v}' for k, v in row.clustering.items() if k not in ('method', 'name') and v is not None
    )
    named: list[Any] = [row.name, tag('div', asked, class_='note')]
    if found is None:
      body.append((named, 'not run', *('–',) * (3 + len(truths))))
      continue
    recovered = (', '.join(score(value) for value in found.recovery.get(name, ())) or '–' for name in truths)
    rounds = f'{found.rounds_after - 1} of {found.rounds_end}'
    counts, cuts = (', '.join(f'{v:.4g}' for v in values) for values in (found.num_clusters, found.threshold))
    body.append((named, rounds, ', '.join(map(str, found.seeds)), counts, cuts, *recovered))
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
  return [tag('p', words), table(header, body, numeric=range(1, len(header)))]


def _draw_pictures(
  published: tables.Published, rows: 'Mapping[str, Reproduced]', folder: Path, remark: str
) -> list[Picture]:
  run = [(row.name, rows[row.name]) for row in published.rows if row.name in rows]
  accuracies = [
    figures.Panel(n, r.accuracy_curve, r.baseline_curve, r.rounds_after - 1)
    for n, r in run
    if r.accuracy_curve
  ]
  shares = [
    figures.Panel(n, r.share_curve, r.baseline_share_curve, r.rounds_after - 1)
    for n, r in run
    if r.share_curve
  ]
  pictures = []
  for name, quantity, panels in (
    ('accuracy_over_rounds', 'mean client test accuracy', accuracies),
    ('share_over_rounds', 'clients at the target accuracy', shares),
  ):
    if not panels:
      continue
    title = f'{quantity[0].upper()}{quantity[1:]} over rounds'
    caption = 'Means over seeds. The upright line is where FL+HC clusters; up to there both are one training.'
    caption += f' {remark[0].upper()}{remark[1:]}.' if remark else ''
    svg, png = base.render(figures.curves_by_row(panels, f'{quantity}, %', remark))
    write_file(folder / 'figures' / f'{name}.svg', svg)
    write_file(folder / 'figures' / f'{name}.png', png)
    pictures.append(Picture(name, 'rounds', title, caption, svg))
  return pictures


def _facts_section(facts: Mapping[str, Any]) -> list[Markup]:
  command = facts.get('command')
  rest = [
    (name.replace('_', ' '), ', '.join(map(str, value)) if isinstance(value, list | tuple) else _fact(value))
    for name, value in facts.items()
    if name != 'command'
  ]
  return [
    *([tag('pre', tag('code', command))] if command is not None else []),
    *([table(('', 'this reproduction'), rest)] if rest else []),
  ]


def _fact(value: Any) -> str:
  return f'{value:,}' if isinstance(value, int) else str(value)
