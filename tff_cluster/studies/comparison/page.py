"""The page that ends a comparison: overlapping clusterings against disjoint ones, FedAvg, local training and the oracle."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tff_cluster.base import cost
from tff_cluster.base.words import capital, plural
from tff_cluster.report import first_screen, latex, pages
from tff_cluster.report.atlas import data as atlas_data
from tff_cluster.report.atlas import page as atlas
from tff_cluster.report.figures import base, gains
from tff_cluster.report.pages import Section
from tff_cluster.report.pictures import Picture, save_drawn
from tff_cluster.scorecard import contenders, identical_clusterings, paired_statistics, summary
from tff_cluster.scorecard.contenders import BUDGETS, Contender
from tff_cluster.storage.files import write_file, write_json
from tff_cluster.storage.tables import csv_lines
from tff_cluster.studies.comparison import (
  alarms,
  answer,
  dial_figure,
  figures,
  malicious,
  new_clients,
  saved,
  sections,
  verdicts,
)
from tff_cluster.studies.comparison import dial as dials


def write(
  runs: contenders.Runs, facts: Mapping[str, str], folder: Path, arrays: atlas_data.Arrays | None = None
) -> Path:
  """Writes comparison.json, .csv and .tex, figures/*.svg and *.png, atlas.html and index.html into a folder.

  Args:
    runs: Seed and results of finished runs that differ in the seed only.
    facts: How it was run (command, client-rounds, ...), in the order of the page.
    folder: Where to.
    arrays: By seed, the run's arrays.npz; the atlas has no map of clients for a seed without them.

  Returns:
    The path of index.html; atlas.html (atlas.page.NAME) lies beside it.

  Raises:
    InputError: if the runs are not one experiment under several seeds, see contenders.read_contenders.
    EnvironmentFault: where a file cannot be written.
  """
  rows = contenders.read_contenders(runs)
  ordered = contenders.checked(runs)
  config = ordered[0][1].config
  target_accuracy = config.evaluation.target_accuracy
  found = paired_statistics.measure(rows, target_accuracy)
  dial = dials.read_dial(ordered, rows, target_accuracy)
  form = verdicts.planted_form(ordered)
  joining = new_clients.measure(ordered, rows)
  harm = malicious.measure(ordered, rows)
  checks = [*verdicts.make_checks(found, form), *new_clients.make_checks(joining)]
  told = [*([malicious.caution_of(harm)] if harm else []), *alarms.make_alarms(rows, found, ordered)]
  shown_lines = summary.of_comparison(rows, found)
  document = saved.document(ordered, rows, found, checks, told, dial) | {
    'new_clients': new_clients.document(joining),
    'malicious': malicious.document(harm),
    'summary': [line.to_json() for line in shown_lines],
    'command': facts.get('command'),
  }
  write_json(folder / 'comparison.json', document)
  write_file(folder / 'comparison.csv', csv_lines(document['lines']))
  tables = [sections.contenders_table(found, budget) for budget in found.budgets]
  write_file(folder / 'comparison.tex', latex.text(tables))
  unit = config.evaluation.budget
  pictures = [save_drawn(drawn, folder) for drawn in _drawn(rows, found, dial, unit)]

  def shown(section: str) -> list[Picture]:
    return [picture for picture in pictures if picture.section == section]

  remarks = [answer.enough_seeds(found), identical_clusterings.WORDS if any(c.parts for c in rows) else '']
  parts = [
    first_screen.section(
      document['answer']['headline'],
      first_screen.table(shown_lines, found.seeds, verdicts.of_gains(found, contenders.ROUNDS)),
      [*first_screen.about(found.seeds), *filter(None, remarks)],
      told,
      shown('answer'),
      {'The atlas: the same comparison to click through, client by client': atlas.NAME},
    ),
    _words_section(found, form, checks),
    sections.contenders_section(rows, found, shown('contenders')),
    sections.matrix_section(found),
    None if dial is None else dials.section(dial, shown('dial')),
    sections.recovery_section(rows, ordered),
    malicious.section(harm, ordered),
    new_clients.section(joining),
    sections.costs_section(rows, ordered, shown('costs')),
    sections.facts_section(ordered, facts),
  ]
  population, training = ordered[0][1].population, config.training
  title = f'{population.name}: clusterings against FedAvg'
  subtitle = (
    f'{plural(len(population.client_ids), "client")} · {training.phase1_rounds} and {plural(training.phase2_rounds, "round")} · '
    f'{plural(len(found.seeds), "seed")}: {", ".join(map(str, found.seeds))}'
  )
  atlas.write(atlas_data.make(ordered, arrays or {}, rows, document), title, subtitle, folder)
  target = folder / 'index.html'
  write_file(target, pages.page(title, subtitle, parts, __package__))
  return target


def _words_section(
  found: paired_statistics.Statistics, form: str, checks: Sequence[verdicts.Check]
) -> Section:
  expected = [check for check in checks if check.kind == 'expected']
  others = [check for check in checks if check.kind != 'expected']
  data = {
    'sentences': answer.sentences(found),
    'expected': None
    if form == 'unknown'
    else sections.checks_table(expected, 'expected of what was planted'),
    'statements': sections.checks_table(others, 'statement'),
  }
  return Section('Overlap, baselines and checks', sections.TEMPLATE, 'in_words', data)


def _drawn(
  rows: Sequence[Contender], found: paired_statistics.Statistics, dial: dials.Dial | None, unit: str
) -> Iterator[base.Drawn]:
  """Yields the pictures; costs are counted in a unit of cost.UNITS."""
  budgets = found.budgets
  marks = [_mark(contender, found, budget, unit) for contender in rows for budget in budgets]
  shapes = _shapes(rows)
  if found_gains := [gains.Gain(m.name, m.kind, m.budget, m.gain) for m in marks if m.gain is not None]:
    hollow = (
      f'Full marks are at equal rounds, hollow ones at {BUDGETS[budgets[1]]}. ' if len(budgets) > 1 else ''
    )
    yield first_screen.picture(gains.draw(found_gains), f'{hollow}{shapes}')
  yield (
      'worst_decile', 'contenders', 'The worst-off clients beside the mean',
      'The bar is the mean of the lowest tenth of clients, the mark the mean of all, both means over seeds. What raises the mean '
      f'and not the bar helps those who were well off. {shapes}',
      figures.worst_beside_mean(marks),
  )  # fmt: skip
  yield (
      'frontier', 'costs', 'Accuracy against cost',
      'Each mark is a contender: the further left the cheaper, the higher the better, the larger the more clusters a client is in. '
      f'{shapes}'
      + (f'A hollow mark, joined by a broken line, is the same contender stopped at FedAvg’s {cost.UNITS[unit]}. ' if len(budgets) > 1 else '')
      + 'Marks that would hide each other stand side by side. '
      'Intervals are in the picture of the differences.',
      figures.frontier(marks, cost.UNITS[unit]),
  )  # fmt: skip
  if dial is not None:
    positions = [_mark(position, dial.statistics, contenders.ROUNDS, unit) for position in dial.positions]
    others = [_mark(c, found, contenders.ROUNDS, unit) for c in rows if c.kind != 'overlapping']
    yield (
        'overlap_dial', 'dial', 'Accuracy against overlap and against traffic',
        'The line is dynamic distance as its threshold is turned from every client alone to all together, at equal rounds, with '
        '95% intervals over seeds and clients (cut off where they leave the picture); the marks are what does not overlap. A method is on the frontier where nothing to '
        'its left is as high.',
        dial_figure.dial(positions, [dial.label(i) for i in range(len(positions))], others),
    )  # fmt: skip


def _shapes(rows: Sequence[Contender]) -> str:
  """Returns what the marks of the clusterings that there are look like."""
  shapes = {
    'oracle': 'a diamond is the oracle',
    'disjoint': 'a square a disjoint clustering',
    'overlapping': 'a circle an overlapping one',
  }
  kinds = [shapes[kind] for kind in shapes if any(contender.kind == kind for contender in rows)]
  if len(kinds) < 2:
    return ''
  return f'{capital(", ".join(kinds))}. '.replace('A square a', 'A square is a')


def _mark(contender: Contender, found: paired_statistics.Statistics, budget: str, unit: str) -> figures.Mark:
  summary = found.summary(contender.name, budget)
  return figures.Mark(
    name=contender.name,
    kind=contender.kind,
    budget=BUDGETS[budget],
    accuracy=summary.mean,
    worst=summary.worst_decile,
    gain=None if summary.over_fedavg is None else summary.over_fedavg.interval,
    cost=float(np.mean([run.cost[budget].of(unit) for run in contender.runs])),
    memberships=float(np.mean([run.memberships for run in contender.runs])),
    num_bytes=float(np.mean([run.cost[budget].bytes for run in contender.runs])),
  )
