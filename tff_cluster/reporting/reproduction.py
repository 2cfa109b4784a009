"""The page that ends a reproduction: a published table or figure beside ours, and whether it reproduces."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tff_cluster.papers import tables
from tff_cluster.reporting import report, table_scorecard
from tff_cluster.reporting.claims import Finding
from tff_cluster.reporting.figures import base
from tff_cluster.reporting.figures import reproduction as figures
from tff_cluster.reporting.files import csv_text, write_file
from tff_cluster.reporting.markup import Markup, table, tag
from tff_cluster.reporting.paper_page import PaperPage
from tff_cluster.reporting.pictures import Picture
from tff_cluster.reporting.sections import verdict_chip
from tff_cluster.reporting.table_scorecard import BySeed, Line, build_scorecard, headline, scale_remark
from tff_cluster.scorecard.words import plural, score

if TYPE_CHECKING:
  from tff_cluster.reporting.table_claims import Reproduced, TableClaim

_COLUMNS = {
  'accuracy_after': 'test accuracy right after the clustering',
  'accuracy_end': 'test accuracy in the last round',
  'share_after': 'clients at the target right after the clustering',
  'share_end': 'clients at the target in the last round',
}


def write_reproduction(
  published: tables.Published,
  rows: 'Mapping[str, Reproduced]',
  findings: 'Sequence[tuple[TableClaim, Finding]]',
  scale: str,
  scale_words: str,
  facts: Mapping[str, Any],
  folder: Path,
  by_seed: BySeed | None = None,
  drawn: Sequence[Picture] = (),
  own: PaperPage | None = None,
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
    drawn: Pictures of a run, whose files are there already: right behind the answer of a figure, behind the clusters of a
      table.
    own: What the paper has of its own; without it the columns are those of FL+HC.

  Returns:
    The path of index.html.

  Raises:
    EnvironmentFault: where a file cannot be written.
  """
  remark = scale_remark(scale, scale_words)
  if own is None:
    lines = build_scorecard(published, rows, scale, scale_words, by_seed)
  else:
    lines = own.scorecard(published, rows, scale, scale_words)
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
    *(_drawn_part('The figure', drawn) if published.is_figure else []),
    ('The paper’s claims', _claims_section(findings, remark)),
  ]
  if own is not None:
    parts += own.sections(published, rows, lines, remark)
  elif any(row.cells for row in published.rows):
    parts.append(('The paper’s numbers beside ours', _cells_section(published, lines, remark)))
  parts += [
    *_clusters_part(published, rows),
    *([] if published.is_figure else _drawn_part('What the clusters hold', drawn)),
    *_choice_part(published, rows),
    *_drawn_part('Over rounds', pictures),
    ('How it was run', _facts_section(facts)),
  ]
  title = f'{published.title} ({f"scale {scale}" if remark else "the paper’s scale"})'
  subtitle = f'{published.name} · {published.source} · {remark or "at the paper’s scale"}'
  target = folder / 'index.html'
  write_file(target, report.page(title, subtitle, parts))
  return target


def _drawn_part(heading: str, drawn: Sequence[Picture]) -> list[tuple[str, list[Markup]]]:
  return [(heading, [report.figure(picture) for picture in drawn])] if drawn else []


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
  if words := table_scorecard.tolerance_words(lines):
    content.append(tag('p', words, class_='soft'))
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


def _clusters_part(
  published: tables.Published, rows: 'Mapping[str, Reproduced]'
) -> list[tuple[str, list[Markup]]]:
  """Returns the section on the clusters; nothing where no row has any."""
  truths = list(dict.fromkeys(name for found in rows.values() for name in found.recovery))
  body = []
  for row in published.rows:
    found = rows.get(row.name)
    # What was run may be scaled down, the published row is not.
    clustering = (found.row if found else row).clustering
    if not clustering:
      continue
    asked = ', '.join(
      f'{k}={v}' for k, v in clustering.items() if k not in ('method', 'name') and v is not None
    )
    named: list[Any] = [row.name, tag('div', asked, class_='note')]
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
  section = [tag('p', words), table(header, body, numeric=range(1, len(header)))]
  return [('Clusters that were found', section)]


def _choice_part(
  published: tables.Published, rows: 'Mapping[str, Reproduced]'
) -> list[tuple[str, list[Markup]]]:
  """Returns the section on thresholds that were chosen; nothing where all were given."""
  body = []
  for row in published.rows:
    found = rows.get(row.name)
    for seed, choice in zip(found.seeds, found.choice, strict=False) if found else ():
      if choice is not None:
        cuts = [choice['candidates'][choice[by]] for by in ('chosen', 'best_on_test')]
        tried = ', '.join(str(candidate['num_clusters']) for candidate in choice['candidates'])
        body.append((row.name, seed, tried, *map(_cut_words, cuts)))
  if not body:
    return []
  words = (
    'Each threshold cuts the clients into so many clusters; every cut is trained for one round, and the one with the '
    'highest mean client accuracy on validation rows is kept. The last column is what test rows would have chosen, '
    'which the paper appears to do: it chooses nothing here, and says how much such a choice would flatter. '
    'Accuracies are on test rows, after that round.'
  )
  header = ('row', 'seed', 'clusters tried', 'best on validation rows', 'best on test rows (not used)')
  return [('Thresholds that were tried', [tag('p', words), table(header, body, numeric=(1,))])]


def _cut_words(candidate: Mapping[str, Any]) -> str:
  accuracy = 100.0 * candidate['test_accuracy']
  return f'T {candidate["threshold"]:.4g}: {plural(candidate["num_clusters"], "cluster")}, {accuracy:.1f}%'


def _draw_pictures(
  published: tables.Published, rows: 'Mapping[str, Reproduced]', folder: Path, remark: str
) -> list[Picture]:
  run = [(row.name, rows[row.name]) for row in published.rows if row.name in rows]
  accuracies = [
    figures.Panel(n, r.accuracy_curve, r.baseline_curve, r.rounds_after - 1)
    for n, r in run
    if len(r.accuracy_curve) > 1
  ]
  shares = [
    figures.Panel(n, r.share_curve, r.baseline_share_curve, r.rounds_after - 1)
    for n, r in run
    if len(r.share_curve) > 1 and any([*r.share_curve.values(), *r.baseline_share_curve.values()])
  ]
  pictures = []
  for name, quantity, panels in (
    ('accuracy_over_rounds', 'mean client test accuracy', accuracies),
    ('share_over_rounds', 'clients at the target accuracy', shares),
  ):
    if not panels:
      continue
    title = f'{quantity[0].upper()}{quantity[1:]} over rounds'
    caption = f'Means over seeds. The upright line is where clients may be clustered first ({published.method}); up to there both are one training.'
    caption += f' {remark[0].upper()}{remark[1:]}.' if remark else ''
    svg, png = base.render(figures.curves_by_row(panels, f'{quantity}, %', remark, published.method))
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
