"""Scorecards of kept reproductions as pages show them."""

import re
from collections.abc import Mapping

from docs.programs.result_pages import markdown_tables as markdown
from tff_cluster.scorecard.cells import NOT_MEASURED
from tff_cluster.scorecard.verdicts import NOT_RUN
from tff_cluster.studies.kept import coverage
from tff_cluster.studies.kept.results import Kept

# What the verdict begins with of which there is no number of ours.
_ABSENT = (NOT_RUN, NOT_MEASURED)
# Verdicts of claims on one seed that need not add it.
_SAYS_ENOUGH = ('', 'one seed', coverage.ASKED_OTHERWISE)
# What a note of a scorecard begins with where a run has another clustering than the row (scorecard/rows.py).
_DEPARTURE = re.compile(r'[^;]*, the paper has [^;]*')


def table(kept: Kept, claims: bool = False, **where: str) -> str:
  """Returns the numbers of a scorecard, or its claims, with verdicts as coverage.shown_verdict has them.

  Differences and verdicts are of what was judged: it has a column of its own where that is not `ours` in some line. What was not run or
  not measured is left out; a target that was not reached is a dash.
  """
  found = [
    line
    for line in kept.lines('scorecard', **where)
    if (line['row'] == 'claim') == claims and not line['verdict'].startswith(_ABSENT)
  ]
  on_windows = any(map(_window, found))
  # One claim can be of several figures.
  several = claims and len({line.get('table') for line in found}) > 1
  lines = []
  for line in found:
    unit = '%' if line.get('unit', '').startswith('percent') else ''
    told = [line['column'], *(markdown.cell(line[c], unit) for c in ('published', 'ours'))]
    if not claims:
      departure = _DEPARTURE.match(line.get('note', ''))
      row = f'{line["row"]} ({departure[0]})' if departure else line['row']
      window = _window(line)
      judged = [f'{markdown.cell(line["judged"], unit)}, {window}' if window else '–'] if on_windows else []
      told = [row, *told, *judged, markdown.cell(line['difference'], 'points')]
    verdict = coverage.shown_verdict(kept, line)
    if claims and coverage.on_one_seed(kept) and verdict not in _SAYS_ENOUGH:
      verdict += ' (one seed)'
    told = [line['table'], *told] if several else told
    lines.append([*told, verdict or '–'])
  numbers = (
    'row',
    'column',
    'published',
    'ours',
    *(['judged'] if on_windows else []),
    'difference',
    'verdict',
  )
  of_claims = (*(['table or figure'] if several else []), 'claim', 'published', 'ours', 'verdict')
  return markdown.table(of_claims if claims else numbers, lines)


def ratios(kept: Kept) -> str:
  """Returns the ratios to FedAvg that a scorecard judges."""
  header = ('row', 'column', 'published ratio', 'ours', 'verdict')
  lines = (
    [
      line['row'],
      line['column'],
      *(markdown.cell(line[c], '') for c in ('published_ratio', 'ours_ratio')),
      verdict,
    ]
    for line in kept.lines('scorecard')
    if (verdict := coverage.shown_verdict(kept, line, 'ratio_verdict'))
  )
  return markdown.table(header, lines)


def _window(line: Mapping[str, str]) -> str:
  """Returns the rounds over which a number was judged; empty where the number itself was, as in files that do not tell."""
  return line.get('judged_on', '') if line.get('judged', '') != line['ours'] else ''
