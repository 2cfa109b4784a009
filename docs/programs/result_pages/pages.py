"""Pages of results, rendered from Markdown templates in which every number is an expression over kept results.

A template is NAME.md.jinja; what several share, they import from NAME.jinja. What it can use is in `Page`: `number` and `numbers` read kept tables, `grid`, `matrix`, `beside` and `scorecard` make tables
of them, `gains` and `overlap` of comparisons, `best` has those with the highest accuracy in a league, `made` says how something was run, `coverage` what of a paper was, `trainings` how many different ones that are, `published` marks a
printed number with its source, `picture` shows one, `models_picture` and `overlap_picture` draw one. Below the opening of each page stands how many of its kept results are stale, and at its end each of
them with seeds, engine, commit, machine and origin.
"""

import dataclasses
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import jinja2

from docs.programs.result_pages import comparison_tables, scorecard_table
from docs.programs.result_pages import coverage_picture as picture_lib
from docs.programs.result_pages import intervals_picture as intervals_lib
from docs.programs.result_pages import markdown_tables as markdown
from tff_cluster.base.environment import ENGINE
from tff_cluster.base.errors import InputError
from tff_cluster.base.words import capital, plural, series, signed
from tff_cluster.scorecard import paired_verdicts
from tff_cluster.scorecard.contenders import BUDGETS
from tff_cluster.studies.kept import coverage as coverage_lib
from tff_cluster.studies.kept.results import FILE, RUNS, TABLE, Kept

ENDING = '.md.jinja'
_BY = '<!-- Written by `make docs` from templates/{}.md.jinja and data/; change those. -->'
_MOST_DIGESTS = 3
# What `scaled_down` begins with where a run has the paper's size.
_NOTHING_BUT = 'nothing but '
_HOW_TO_READ = 'index.md#how-to-read-these-pages'


@dataclasses.dataclass(frozen=True, eq=False)
class Page:
  """What a template can use; it remembers which kept results and pictures it was asked for.

  Attributes:
    kept: All kept results by name.
    used: Names of those that the page shows.
    pictures: Pictures that are drawn for the page, as SVG by file name.
    of_all: What of all papers was run, which pages share: it is found out once, by the first that asks.
  """

  kept: Mapping[str, Kept]
  used: dict[str, None] = dataclasses.field(default_factory=dict)
  pictures: dict[str, str] = dataclasses.field(default_factory=dict)
  of_all: list[coverage_lib.Covered] = dataclasses.field(default_factory=list)

  def results(self, name: str) -> Kept:
    """Returns kept results by name."""
    if name not in self.kept:
      raise InputError(f'no kept results {name!r}; there are {", ".join(self.kept)}')
    self.used[name] = None
    return self.kept[name]

  def number(self, name: str, column: str, /, of: str = TABLE, **where: str) -> float:
    """Returns one number of a kept table, see Kept.number."""
    return self.results(name).number(column, of, **where)

  def numbers(self, name: str, column: str, /, of: str = TABLE, **where: str) -> list[float]:
    """Returns the numbers of a column, see Kept.numbers."""
    self._chosen(name, of, where)
    return self.results(name).numbers(column, of, **where)

  def texts(self, name: str, column: str, /, of: str = TABLE, **where: str) -> list[str]:
    """Returns the cells of a column as they are kept."""
    return [line[column] for line in self._chosen(name, of, where)]

  def grid(self, name: str, *columns: str, of: str = TABLE, **where: str) -> str:
    """Returns lines of a kept table as a Markdown table, of all columns or of these; empty cells are dashes."""
    kept = self.results(name)
    units = kept.table(of).units
    shown = columns or tuple(units)
    header = [f'{c}, {units[c]}' if units.get(c, '%') not in ('', '%') else c for c in shown]
    chosen = self._chosen(name, of, where)
    places = {c: max(map(markdown.decimals, (line[c] for line in chosen)), default=0) for c in shown}
    lines = [
      [BUDGETS.get(line[c]) or markdown.cell(line[c], units[c], places[c]) for c in shown] for line in chosen
    ]
    return markdown.table(header, lines)

  def matrix(self, name: str, column: str, rows: str, columns: str, of: str = TABLE, **where: str) -> str:
    """Returns a column of a kept table as a Markdown table: a line for each text of the column `rows`, a cell for each of `columns`.

    Raises:
      InputError: where two lines of the table belong into one cell.
    """
    chosen, unit = self._chosen(name, of, where), self.results(name).table(of).units[column]
    places = max((markdown.decimals(line[column]) for line in chosen), default=0)
    cells = [(line[rows], line[columns], markdown.cell(line[column], unit, places)) for line in chosen]
    return markdown.pivot(f'{name}/{of}.csv', rows, cells)

  def beside(self, names: Mapping[str, str], column: str, rows: str, of: str = TABLE, **where: str) -> str:
    """Returns a column of several kept results beside each other, as `matrix` does; names: what heads each, and its name."""
    cells = []
    for head, name in names.items():
      unit = self.results(name).table(of).units[column]
      lines = self._chosen(name, of, where)
      cells += [(line[rows], head, markdown.cell(line[column], unit)) for line in lines]
    return markdown.pivot(f'{of}.csv', rows, cells)

  def _chosen(self, name: str, of: str, where: Mapping[str, str]) -> list[Mapping[str, str]]:
    """Returns the lines of a kept table in which columns have these texts; raises InputError where there are none."""
    found = self.results(name).lines(of, **where)
    if where and not found:
      raise InputError(f'{name}/{of}.csv: no line where {dict(where)}')
    return found

  def gains(self, name: str, *budgets: str, setting: str = '') -> str:
    """Returns the accuracies of a comparison beside FedAvg, see comparison_tables.gains."""
    return comparison_tables.gains(self.results(name), budgets, setting)

  def alarms(self, name: str, setting: str = '') -> str:
    """Returns what must not be overlooked in a comparison, as a list; empty where there is nothing."""
    return comparison_tables.alarms(self.results(name), setting)

  def best(self, name: str, budget: str, most: int = 3) -> str:
    """Returns for each kind of clients of a league those with the highest accuracy, see comparison_tables.best."""
    return comparison_tables.best(self.results(name), budget, most)

  def overlap(self, comparisons: Mapping[str, str]) -> str:
    """Returns how overlapping clusters fare beside disjoint ones, a line a comparison and budget.

    Args:
      comparisons: What each is called in words, by its name.
    """
    return comparison_tables.overlap(self._compared(comparisons))

  def overlap_sides(self, comparisons: Mapping[str, str]) -> str:
    """Returns which clusterings `overlap` compares, as validation rows chose them."""
    return comparison_tables.overlap_sides(self._compared(comparisons))

  def overlap_picture(self, comparisons: Mapping[str, str]) -> str:
    """Returns a picture of `overlap`."""
    self.pictures['overlap.svg'] = comparison_tables.overlap_picture(self._compared(comparisons))
    return '![Overlapping less disjoint clusters, with 95% intervals](overlap.svg)'

  def _compared(self, comparisons: Mapping[str, str]) -> dict[str, Kept]:
    return {words: self.results(name) for name, words in comparisons.items()}

  def scorecard(self, name: str, claims: bool = False, **where: str) -> str:
    """Returns the numbers of a scorecard, or its claims, see scorecard_table.table."""
    self._chosen(name, 'scorecard', where)
    return scorecard_table.table(self.results(name), claims, **where)

  def ratios(self, name: str) -> str:
    """Returns the ratios to FedAvg that a scorecard judges, see scorecard_table.ratios."""
    return scorecard_table.ratios(self.results(name))

  def seeds(self, name: str) -> str:
    """Returns over how many seeds kept results are, in words."""
    count = len(self.results(name).provenance.seeds)
    return 'one seed' if count == 1 else plural(count, 'seed')

  def made(self, name: str) -> str:
    """Returns how kept results were made: what, command, seeds, machine, minutes, and whether they are stale."""
    known = self.results(name).provenance
    seeds = f'{"seed" if len(known.seeds) == 1 else "seeds"} {", ".join(map(str, known.seeds))}'
    where = ', '.join(
      filter(None, (known.date, known.machine, f'{known.minutes:g} minutes' if known.minutes else ''))
    )
    told = [f'{capital(known.setting)}.' if known.setting else '', f'{capital(seeds)}; {where}.']
    if known.scaled_down:
      less = known.scaled_down.removeprefix(_NOTHING_BUT)
      told.append(
        f'**Scaled down:** {less}.'
        if less == known.scaled_down
        else f'**Scale:** the paper’s but for {less}.'
      )
    if known.judged:
      told.append(f'Judged at commit {known.judged}.')
    if self.results(name).stale:
      told.append(f'**Stale:** engine {known.engine}, today’s is {ENGINE}.')
    if coverage_lib.has_other_settings(self.results(name)):
      told.append(
        '**Other settings:** today the command asks for more, or for other things, than these runs have.'
      )
    if len(known.digests) > _MOST_DIGESTS:
      told.append(f'Digests of the {len(known.digests)} runs are in [{FILE}](data/{name}/{FILE}).')
    elif known.digests:
      shown = (f'`{digest[:16]}`{f" ({run})" if run else ""}' for run, digest in known.digests.items())
      told.append(f'Digests: {", ".join(shown)}.')
    if (self.results(name).folder / RUNS).is_file():
      told.append(f'[{RUNS}](data/{name}/{RUNS}) holds the runs without their models.')
    commands = '\n'.join(known.commands)
    return f'{" ".join(filter(None, told))}\n\n```text\n{commands}\n```'

  def picture(self, name: str, file: str, words: str) -> str:
    """Returns a kept picture."""
    if not (self.results(name).folder / file).is_file():
      raise InputError(f'{name} has no picture {file}')
    return f'![{words}](data/{name}/{file})'

  def published(self, printed: str, source: str) -> str:
    """Returns a number that a paper prints, with where."""
    return f'{printed} ({source})'

  def coverage(self, paper: str = '') -> str:
    """Returns what of all papers, or of the one whose tables begin like this, was run, a line a table and scale; below, what is scaled down."""
    covered = self.covered(paper)
    header = (
      'table or figure',
      'scale',
      'rows run',
      'seeds',
      'verdicts',
      'machine, date',
      'commit',
      'stale',
      'missing',
    )
    smaller: dict[str, list[str]] = {}
    for each in covered:
      for words in _scaled_down(each):
        smaller.setdefault(words, []).append(each.published.name)
    told = [f'* {", ".join(tables)}: {words}.' for words, tables in smaller.items()]
    below = '\n'.join(['\n\nWhat is scaled down:', '', *told]) if told else ''
    return f'{markdown.table(header, map(_covered, covered))}{below}'

  def studies(self) -> str:
    """Returns the kept results that are of no paper's table: what, size, seeds, machine, date and whether they are stale."""
    lines = [
      [
        each.provenance.title, each.provenance.scaled_down or 'nothing is scaled down',
        ', '.join(map(str, each.provenance.seeds)), each.provenance.machine, each.provenance.date,
        'stale' if self.results(each.name).stale else 'no',
      ]
      for each in self.kept.values()
      if not each.provenance.published
    ]  # fmt: skip
    return markdown.table(('study', 'scaled down', 'seeds', 'machine', 'date', 'stale'), lines)

  def covered(self, paper: str = '') -> list[coverage_lib.Covered]:
    """Returns what of all papers, or of the one whose tables begin like this, was run."""
    if not self.of_all:
      self.of_all.extend(coverage_lib.of_kept(self.kept.values()))
    found = [each for each in self.of_all if each.published.name.startswith(paper)]
    self.used.update({kept.name: None for each in found for kept in each.kept})
    return found

  def judged(self) -> int:
    """Returns how many claims of all papers hold, fail or are undecided over several seeds."""
    return coverage_lib.judged_claims(self.kept.values())

  def trainings(self, covered: Iterable[coverage_lib.Covered]) -> int:
    """Returns how many trainings the rows are that were run, see coverage.distinct_trainings."""
    return coverage_lib.distinct_trainings(covered)

  def coverage_picture(self, paper: str = '') -> str:
    """Returns a picture of the rows of each table that were run, with how many of them are stale."""
    name = f'coverage_{paper.strip("/") or "all"}.svg'
    self.pictures[name] = picture_lib.draw(self.covered(paper))
    return f'![Rows in print that were run, and how many of these are stale]({name})'

  def columns_picture(
    self, file: str, names: Mapping[str, str], of: str, base: str, axis: str, **where: str
  ) -> str:
    """Returns a picture of the percentages in a line of several kept tables, as points over those in one of their columns.

    Args:
      file: What the picture is called.
      names: What each is called in words, and its name.
      of: The table of each.
      base: The column.
      axis: What the differences are.
      **where: Which line it is.
    """
    lines = []
    for words, name in names.items():
      (line,) = self._chosen(name, of, where)
      columns = [c for c, unit in self.results(name).table(of).units.items() if unit == '%' and c != base]
      lines += [
        {
          'column': c,
          'table': words,
          'difference': str(float(line[c]) - float(line[base])),
          'low': '',
          'high': '',
        }
        for c in columns
      ]
    lines.sort(key=lambda line: columns.index(line['column']))
    self.pictures[file] = intervals_lib.draw(lines, 'column', 'table', axis)
    return f'![{axis}]({file})'

  def seeds_picture(self, file: str, name: str, column: str, axis: str, parted: str) -> str:
    """Returns a picture of a number of each row of runs: its mean over seeds, and from the lowest to the highest of them.

    Args:
      file: What the picture is called.
      name: The kept result, with a table of runs; rows without the number are left out.
      column: The number.
      axis: What it is.
      parted: What parts the name of a row into its group and its colour.
    """
    lines = []
    for row in dict.fromkeys(self.texts(name, 'row', of='runs')):
      if found := self.numbers(name, column, of='runs', row=row):
        group, _, kind = row.rpartition(parted)
        told = {'difference': statistics.fmean(found), 'low': min(found), 'high': max(found)}
        lines.append({'group': group, 'kind': kind} | {key: str(value) for key, value in told.items()})
    self.pictures[file] = intervals_lib.draw(lines, 'group', 'kind', axis)
    return f'![{axis}]({file})'

  def models_picture(self, name: str, *models: str) -> str:
    """Returns a picture of what these models of the clusterings of a run are worth to its clients ('own', 'blended')."""
    found = [line for line in self.results(name).lines('models') if line['model'] in models]
    if not found:
      raise InputError(f'{name} has no models {" or ".join(models)}')
    file = f'models_{name}.svg'
    lines = [
      dict(line) | {'model': f'{line["model"]} models'}
      for model in models
      for line in found
      if line['model'] == model
    ]
    axis = 'points of mean client accuracy over FedAvg without clusters'
    self.pictures[file] = intervals_lib.draw(lines, 'contender', 'model', axis)
    return f'![Clients beside FedAvg without clusters, with {" and with ".join(models)} models]({file})'


def render(kept: Mapping[str, Kept], folder: Path) -> dict[str, str]:
  """Returns the pages, and the pictures drawn for them, by file name.

  Raises:
    InputError: where a template asks for what is not kept, or is wrong.
  """
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(folder), undefined=jinja2.StrictUndefined, keep_trailing_newline=True,
    trim_blocks=True, lstrip_blocks=True, autoescape=False,
  )  # fmt: skip
  environment.filters |= {
    'percent': _percent,
    'points': _points,
    'in_points': _in_points,
    'signed': signed,
    'fixed': _fixed,
    'series': series,
    'mean': statistics.fmean,
    'holm': paired_verdicts.holm,
  }
  found: dict[str, str] = {}
  of_all: list[coverage_lib.Covered] = []
  for file in environment.list_templates(filter_func=lambda name: name.endswith(ENDING)):
    name, page = file.removesuffix(ENDING), Page(kept, of_all=of_all)
    offered = {each: getattr(page, each) for each in dir(page) if not each.startswith('_')}
    try:
      text = environment.get_template(file).render(offered)
    except (InputError, jinja2.TemplateError, ValueError, TypeError) as error:
      raise InputError(f'{folder / file}: {error}') from error
    except LookupError as error:
      raise InputError(f'{folder / file}: there is no {error}') from error
    found |= page.pictures
    found[f'{name}.md'] = _whole(name, text, [kept[each] for each in page.used])
  return found


def opening(page: str) -> str:
  """Returns what stands between the title of a page and its first heading or remark."""
  return re.split(r'^(?:##|>) ', page.partition('\n# ')[2].partition('\n')[2], maxsplit=1, flags=re.M)[0]


def stale_words(kept: Sequence[Kept]) -> str:
  """Says how many of some kept results are stale, and of how many the command asks for something else today."""
  stale, other = sum(each.stale for each in kept), sum(map(coverage_lib.has_other_settings, kept))
  if not kept:
    return 'Nothing is kept that this page could show.'
  told = [
    f'{stale} of {plural(len(kept), "kept result")} on this page {"is" if stale == 1 else "are"} stale, trained by an engine before {ENGINE}: '
    'the same command gives other last bits today, and may give other clusters.'
    if stale
    else 'Nothing on this page was trained by an older engine.'
    if other
    else 'Nothing on this page is stale.'
  ]
  if other:
    told.append(f'Of {plural(other, "result")} the command asks for other settings today.')
  return ' '.join(told)


def _whole(name: str, text: str, kept: Sequence[Kept]) -> str:
  """Returns a page with the remark on what is stale below its opening, and its kept results at the end."""
  page = f'{_BY.format(name)}\n\n{text.strip()}\n'
  start, heading, rest = page.partition('\n## ')
  start = f'{start.rstrip()}\n\n> {stale_words(kept)} [How to read these pages]({_HOW_TO_READ})\n'
  header = ('kept result', 'seeds', 'engine', 'commit', 'machine', 'date', 'origin')
  lines = [_kept(each) for each in kept]
  end = f'\n## Kept results of this page\n\n{markdown.table(header, lines)}\n' if kept else ''
  return f'{start}{heading}{rest}{end}'


def _kept(kept: Kept) -> list[str]:
  known = kept.provenance
  engine = f'{known.engine or "none"}{", **stale**" if kept.stale else ""}'
  seeds = ', '.join(map(str, known.seeds)) or '–'
  return [
    f'[{kept.name}](data/{kept.name}/{FILE})', seeds, engine, known.commit or 'not known', known.machine or 'not known',
    known.date or 'not known', known.origin,
  ]  # fmt: skip


def _covered(each: coverage_lib.Covered) -> list[str]:
  known = [kept.provenance for kept in each.kept]
  machines = '; '.join(dict.fromkeys(f'{p.machine or "not known"}, {p.date or "not known"}' for p in known))
  commits = ', '.join(dict.fromkeys(p.commit or 'not known' for p in known))
  rows, left = f'{len(each.seeds)} of {each.rows}', each.left
  if each.scale == 'toy':
    rows, left = ('computed', 'nothing') if each.was_run else ('not computed', 'seconds')
  stale = f'{len(each.stale)} of {plural(len(each.seeds), "row")}' if each.stale else '–'
  scale = 'scaled down' if each.scale == 'small' else each.scale
  title = f'{each.published.name}: {each.published.source}'
  verdicts, where = each.verdicts or '–', machines or 'not run'
  return [title, scale, rows, each.seeds_words, verdicts, where, commits or '–', stale, left]


def _scaled_down(each: coverage_lib.Covered) -> list[str]:
  """Returns what is smaller than in the paper, as it was run, which an older command need not have done as today's does."""
  if each.scale != 'small':
    return []
  ran = dict.fromkeys(kept.provenance.scaled_down for kept in each.kept)
  return list(ran) or [each.published.small.words]


def _percent(value: float, decimals: int = 1) -> str:
  return f'{value:.{decimals}f}%'


def _points(value: float, decimals: int = 1) -> str:
  return f'{value:.{decimals}f} {"point" if f"{value:.{decimals}f}" == "1" else "points"}'


def _in_points(share: float) -> float:
  """Returns a difference of shares in points."""
  return 100.0 * share


def _fixed(value: float, decimals: int = 0) -> str:
  return f'{value:,.{decimals}f}'
