"""The page that ends a reproduction: a published table or figure beside ours, and whether it reproduces."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tff_cluster.base.environment import ENGINE, machines
from tff_cluster.report import latex, pages, scorecard_tables
from tff_cluster.report.files import write_records
from tff_cluster.report.pages import Section, Table
from tff_cluster.scorecard import headline
from tff_cluster.scorecard.published import TOY_SCALE, Published, Scale
from tff_cluster.scorecard.rows import Ours, Runs, gather
from tff_cluster.storage import output_files
from tff_cluster.storage.files import write_file
from tff_cluster.studies.reproduction import runs as runs_lib
from tff_cluster.studies.reproduction.sections import SECTIONS, TEMPLATE, Page

# The first is written first.
WRITTEN = ('scorecard.json', 'scorecard.csv', 'scorecard.tex', 'index.html', 'figures')


def check_place(published: Published, folder: Path) -> None:
  """Raises InputError where a folder has files that the page of a table or figure would write over and that none wrote."""
  own = f'"table": {json.dumps(published.name)}'.encode()
  output_files.check(folder, WRITTEN, lambda there: own in there)


def write(
  published: Published,
  runs: Runs,
  scale: Scale,
  facts: Mapping[str, str],
  folder: Path,
  run_folder: Path | None = None,
) -> Path:
  """Writes the page of the runs behind a table or figure, and returns its path; see `write_page`.

  Args:
    published: What is reproduced.
    runs: Its runs, at least one.
    scale: At which size they were run.
    facts: What the page is to say of how it was run, beside seeds and machine.
    folder: Where to.
    run_folder: A run of which the page may show pictures.
  """
  rows = gather(runs, runs_lib.window_rounds(published, scale))
  return write_page(published, rows, scale, {**facts, **about(runs)}, folder, run_folder)


def about(runs: Runs) -> dict[str, str]:
  """Returns what a page says of how its runs were run, earlier ones among them: by which engine, too, where that is not today's."""
  environments = [results.environment for *_, results in runs]
  earlier: dict[int, list[str]] = {}
  for (rows, seed, _), environment in zip(runs, environments, strict=True):
    if environment.engine < ENGINE:
      earlier.setdefault(environment.engine, []).extend(f'{row.name}, seed {seed}' for row in rows)
  older = [
    f'{f"engine {engine}" if engine else "unknown"} ({"; ".join(earlier[engine])})'
    for engine in sorted(earlier)
  ]
  begun = sorted({environment.started for environment in environments})
  return {
    'seeds': ', '.join(str(seed) for seed in sorted({seed for _, seed, _ in runs})),
    'machine': machines(environments),
    'begun': ' to '.join(dict.fromkeys([begun[0], begun[-1]])),
    **(
      {f'trained by an older engine than today’s {ENGINE}, which gives other last bits': '; '.join(older)}
      if older
      else {}
    ),
    'runs': ', '.join(results.digest[:12] for *_, results in runs),
  }


def write_page(
  published: Published,
  rows: Mapping[str, Ours] | Mapping[str, Any],
  scale: Scale,
  facts: Mapping[str, str],
  folder: Path,
  run_folder: Path | None = None,
) -> Path:
  """Writes scorecard.csv, .json and .tex, figures/*.svg and *.png, and index.html into a folder.

  Args:
    published: The table or figure.
    rows: Our rows by name, those that are missing were not run; of a toy problem its results by name.
    scale: At which size they were run.
    facts: How it was run (command, seeds, machine, date, client-rounds, ...), in the order of the page.
    folder: Where to.
    run_folder: A run of which the page may show pictures.

  Returns:
    The path of index.html.

  Raises:
    EnvironmentFault: where a file cannot be written.
  """
  remark, is_toy = scale.remark, published.compute is not None
  numbers, findings, records = headline.scored(published, rows, remark)
  page = Page(published, rows, numbers, findings, remark, folder, run_folder)
  write_records(records, folder)
  # A table may leave its page, so it says in each line at which scale it was run.
  size = TOY_SCALE if is_toy else remark or 'the paper’s'
  shown = scorecard_tables.numbers_table(numbers, '', f'{published.title} ({size})')
  claims = scorecard_tables.claims_table(findings, remark)
  write_file(folder / 'scorecard.tex', latex.text([shown, claims]))
  parts = [_answer(page)]
  for name in published.sections:
    parts += SECTIONS[name](page)
  parts.append(_facts(facts))
  where = TOY_SCALE if is_toy else remark or 'at the paper’s scale'
  title = f'{published.title} ({f"scale {scale.name}" if remark else "the paper’s scale"})'
  subtitle = f'{published.name} · {published.source} · {where}'
  target = folder / 'index.html'
  write_file(target, pages.page(published.title if is_toy else title, subtitle, parts, __package__))
  return target


def _answer(page: Page) -> Section:
  published, remark = page.published, page.remark
  data = {
    'headline': headline.headline(
      published.source, page.lines, [finding for _, finding in page.findings], remark
    ),
    'remark': remark,
    'tolerance': headline.tolerance_words(page.lines),
    'note': published.note,
  }
  return Section('The answer', TEMPLATE, 'answer', data)


def _facts(facts: Mapping[str, str]) -> Section:
  rest = [(name, value) for name, value in facts.items() if name != 'command']
  data = {'words': facts.get('command'), 'known': Table(('', 'this reproduction'), rest)}
  return Section('How it was run', TEMPLATE, 'facts', data)
