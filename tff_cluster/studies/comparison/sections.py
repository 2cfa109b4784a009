"""The tables and sections of a comparison's page."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base import cost as cost_lib
from tff_cluster.base.grouping import by_key
from tff_cluster.base.words import error, percent, plural, score
from tff_cluster.clustering.membership_history import Alternated, Collapse
from tff_cluster.experiment.config import PERSONALIZED
from tff_cluster.report import costs
from tff_cluster.report.first_screen import LOOKS, OF_VERDICT
from tff_cluster.report.pages import Cell, Section, Table, verdict_cell
from tff_cluster.report.pictures import Picture
from tff_cluster.scorecard import identical_clusterings, paired_verdicts
from tff_cluster.scorecard.contenders import (
  BUDGETS,
  EQUAL_COST,
  REFERENCES,
  ROUNDS,
  Contender,
  Measured,
  Runs,
)
from tff_cluster.scorecard.intervals import Interval, SignTest
from tff_cluster.scorecard.paired_statistics import Difference, Statistics, Summary
from tff_cluster.studies.comparison.alarms import recoveries
from tff_cluster.studies.comparison.verdicts import Check, of_gains, of_pairs

TEMPLATE = 'comparison.html'
# Means of other scores, and how they are printed.
_SCORES: Mapping[str, tuple[str, Callable[[float | None], str]]] = {
  'onmi': ('ONMI', score),
  'bcubed_f': ('BCubed', score),
  'share_error': ('share error', error),
}


def checks_table(checks: Sequence[Check], heading: str) -> Table:
  """Returns checks with their verdicts, notes below the words."""
  rows = [(Cell(c.words, (c.finding.note,)), c.finding.ours, verdict_cell(c.finding.verdict)) for c in checks]
  return Table((heading, 'difference', 'verdict'), rows)


def contenders_section(
  contenders: Sequence[Contender], statistics: Statistics, pictures: Sequence[Picture]
) -> Section:
  """Returns every contender's accuracies at all budgets, and the global test set."""
  tables = [contenders_table(statistics, budget) for budget in statistics.budgets]
  data = {
    'tables': tables,
    'equal_cost': BUDGETS[list(statistics.summaries)[-1]],
    'everybodys': _by_rule(
      contenders,
      'global_accuracy',
      'On the global test set by rule of Phase 3, at equal rounds, mean over seeds',
    ),
    'of_clients': _by_rule(
      [contender for contender in contenders if contender.runs[0].rule_accuracy],
      'rule_accuracy',
      'On the clients’ own test rows by rule of Phase 3, at equal rounds, mean over clients and seeds',
    ),
    'trained_on': _trained_on(statistics),
    'own_models': any(contender.kind in PERSONALIZED for contender in contenders),
    'signs': _signs(statistics),
    'pictures': pictures,
  }
  return Section('All contenders', TEMPLATE, 'contenders', data)


def _by_rule(contenders: Sequence[Contender], figure: str, caption: str) -> Table:
  """Returns a table with a column for each rule of Phase 3, without rows where there are no contenders.

  Args:
    contenders: Its rows.
    figure: The attribute of contenders.Measured, accuracies by rule.
    caption: Above it.
  """
  names = list(dict.fromkeys(name for c in contenders for run in c.runs for name in getattr(run, figure)))
  rows = [
    (c.name, *(_mean_share([getattr(run, figure).get(name) for run in c.runs]) for name in names))
    for c in contenders
  ]
  return Table(('', *names), rows, range(1, len(names) + 1), caption)


def _trained_on(statistics: Statistics) -> Table:
  """Returns own models that clients trained on for themselves, without rows where no rule has them do so."""
  kinds = [
    kind for kind in ('fedavg', 'fine_tuning') if any(each.over[kind] for each in statistics.trained_on)
  ]
  header = ['', 'rule', 'mean client', *(f'− {REFERENCES[kind]}' for kind in kinds)]
  rows = []
  for each in statistics.trained_on:
    found = [difference for kind in kinds if (difference := each.over[kind]) is not None]
    told = [difference_cell(difference, f'{percent(difference.harmed)} harmed') for difference in found]
    rows.append((each.name, each.rule, mean_cell(each.mean, percent), *told))
  caption = 'Own models that clients trained on for themselves, on their own test rows, at equal rounds'
  return Table(header, rows, range(2, len(header)), caption)


def contenders_table(statistics: Statistics, budget: str) -> Table:
  """Returns every contender's accuracies at a budget."""
  summaries = statistics.summaries[budget]
  kinds = [summary.kind for summary in summaries if summary.kind in REFERENCES]
  header = ['', 'mean client', 'worst decile', f'at {100 * statistics.target:g}%']
  # With all baselines the table just fits the page, so what is harmed stands in the cell.
  header += [f'− {REFERENCES[kind]}' for kind in kinds]
  verdicts = of_gains(statistics, budget)
  rows = [_contender_row(summary, kinds, verdicts.get(summary.name)) for summary in summaries]
  return Table(header, rows, range(1, len(header)), f'At {BUDGETS[budget]}')


def matrix_section(statistics: Statistics) -> Section:
  """Returns the differences of every overlapping contender to every disjoint one and to the oracle."""
  tables = []
  for budget in statistics.budgets if any(statistics.pairs.values()) else ():
    name, pairs, verdicts = BUDGETS[budget], statistics.pairs[budget], of_pairs(statistics, budget)
    columns = list(dict.fromkeys((pair.other, pair.other_kinds) for pair in pairs))
    rows = [
      (row, *(_matrix_cell(statistics, budget, (row, column), verdicts) for column, _ in columns))
      for row in dict.fromkeys(pair.overlapping for pair in pairs)
    ]
    header = ('overlapping', *(f'{column} ({", ".join(kinds)})' for column, kinds in columns))
    tables.append(Table(header, rows, caption=f'At {name}: row minus column'))
  return Section('Overlapping against disjoint', TEMPLATE, 'matrix', {'tables': tables})


def recovery_section(contenders: Sequence[Contender], runs: Runs) -> Section:
  """Returns how well every clustering finds the planted groups, and what clusters it found."""
  found = [contender for contender in contenders if contender.is_clustering]
  truths = list(dict.fromkeys(name for c in found for run in c.runs for name in run.recovery))
  shapes = {
    contender.name: (
      ', '.join(contender.kinds),
      ', '.join(str(run.num_clusters) for run in contender.runs),
      f'{np.mean([run.memberships for run in contender.runs]):.1f}',
      ', '.join(str(run.singletons) for run in contender.runs),
    )
    for contender in found
  }
  scored = {name: {contender.name: _scores(contender, runs, name) for contender in found} for name in truths}
  header: list[str] = ['clustering', 'kind', 'clusters', 'memberships', 'singletons']
  of_scores = ', '.join(name for name, _ in _SCORES.values())
  if len(truths) == 1:
    (name,) = truths
    rows = [(label, *shape, *scored[name][label]) for label, shape in shapes.items()]
    header += [f'“{name}”', of_scores]
    tables = [Table(header, rows, range(2, len(header)))]
  else:
    # Side by side, several planted groupings would leave the page.
    tables = [Table(header, [(label, *shape) for label, shape in shapes.items()], range(2, len(header)))]
    for name, of_name in scored.items():
      of_label = [(label, *cells) for label, cells in of_name.items()]
      tables.append(
        Table(('clustering', f'“{name}”', of_scores), of_label, (1, 2), caption=f'Found of “{name}”')
      )
  data = {
    'any_truth': bool(truths),
    'rounds': _rounds_table(found),
    'any_excluded': any(c.excluded for _, results in runs for c in results.clusterings),
    'tables': tables,
  }
  return Section('Planted groups and found clusters', TEMPLATE, 'recovery', data)


def _alternated(contender: Contender) -> list[tuple[Alternated, Collapse]]:
  """Returns what rounds that alternated came to, one a seed; of contenders that it stands for, the first that has any."""
  of_each = (
    [(run.alternation, run.collapse) for run in part.runs if run.alternation and run.collapse]
    for part in contender.each
  )
  return next((found for found in of_each if found), [])


def _rounds_table(found: Sequence[Contender]) -> Table:
  """Returns what rounds that alternated came to, without rows where there were none; under every seed, in their order."""
  rows = []
  for contender in found:
    if each := _alternated(contender):
      rows.append((
        contender.name,
        f'{sum(lost.happened for _, lost in each)} of {len(each)}',
        f'{sum(lost.all_in_one for _, lost in each)} of {len(each)}',
        ', '.join(f'{lost.empty_models} of {lost.num_models}' for _, lost in each),
        ', '.join(f'{one.changed[-1]:,}' for one, _ in each),
        ', '.join(str(one.oldest) for one, _ in each),
      ))  # fmt: skip
  header = (
    '',
    'collapsed',
    'all in one',
    'models without clients',
    'moved in the last round',
    'oldest membership',
  )
  return Table(header, rows, range(1, len(header)), 'Methods that alternate between clustering and training')


def costs_section(contenders: Sequence[Contender], runs: Runs, pictures: Sequence[Picture]) -> Section:
  """Returns what Phase 2 and finding the clusters cost, and how often FedAvg's part of the budget that is."""
  unit = runs[0][1].config.evaluation.budget
  equal_cost = EQUAL_COST[unit]
  fedavg = next(contender for contender in contenders if contender.kind == 'fedavg')
  paid = _mean_of(fedavg.runs, unit)
  every = [part for contender in contenders for part in contender.each]
  rows = []
  # The same clusters may have been dearer to find.
  for same in by_key(every, lambda part: _costs(part) if part.is_clustering else part.name).values():
    contender, name = same[0], identical_clusterings.joined(part.name for part in same)
    spent = [run.cost[ROUNDS] for run in contender.runs]
    at_equal_cost = [run.cost[equal_cost] for run in contender.runs]
    ratio = f'{_mean_of(contender.runs, unit) / paid:.2f}' if paid else '–'
    rows.append((name, *costs.cells(spent), ratio, costs.in_unit(at_equal_cost, unit)))
  words = cost_lib.UNITS[unit]
  header = ('', *costs.HEADER, 'FedAvg’s, times', f'at {BUDGETS[equal_cost]}')
  data = {
    'stopped': any(len(set(run.cost.values())) > 1 for part in every for run in part.runs),
    'budget': words,
    'kinds': {part.kind for part in every},
    'spent': Table(header, rows, range(1, len(header))),
    'about_costs': costs.WORDS,
    'pictures': pictures,
  }
  return Section('What it cost', TEMPLATE, 'costs', data)


def _costs(contender: Contender) -> Hashable:
  """Returns the clusters and costs of a clustering under every seed."""
  return tuple((run.clusters, *run.cost.values()) for run in contender.runs)


def facts_section(runs: Runs, facts: Mapping[str, str]) -> Section:
  """Returns the command, what the caller knows of the run, and seeds, machines, dates and digests of the runs."""
  rest = [(name, value) for name, value in facts.items() if name != 'command']
  ran = []
  for seed, results in runs:
    ran_on = results.environment
    digest = Cell(results.digest, look='digest', element='code')
    ran.append((seed, results.config.data.data_seed, ran_on.machine, ran_on.cores, ran_on.started, digest))
  header = ('seed', 'data seed', 'machine', 'cores', 'started', 'digest of the results')
  data = {
    'words': facts.get('command'),
    'known': Table(('', 'this comparison'), rest),
    'runs': Table(header, ran, (0, 1), 'One run a seed'),
  }
  return Section('How it was run', TEMPLATE, 'facts', data)


def accuracy_cells(summary: Summary) -> list[Any]:
  """Returns the cells of a mean accuracy with its interval, and of the difference to FedAvg."""
  return [mean_cell(summary.mean, percent), difference_cell(summary.gain)]


def _contender_row(summary: Summary, kinds: Sequence[str], verdict: str | None) -> tuple[Any, ...]:
  """Returns the cells of a contender; the verdict is that against FedAvg."""
  cells: list[Any] = [
    Cell(summary.name, (', '.join(summary.kinds),) if summary.is_clustering else ()),
    mean_cell(summary.mean, percent),
    percent(summary.worst_decile),
    percent(summary.at_target),
  ]
  for kind in kinds:
    difference, own = summary.over[kind], verdict if kind == 'fedavg' else None
    cells.append(
      '–'
      if difference is None
      else difference_cell(difference, f'{percent(difference.harmed)} harmed', verdict=own)
    )
  return tuple(cells)


def difference_cell(difference: Difference, *notes: str, verdict: str | None = None) -> Cell:
  """Returns the mean difference in points, above its interval and further notes.

  It is coloured by its verdict (paired_verdicts.judge), by its side of zero where it was not judged, and not at all where it is of too few
  seeds for a verdict.
  """
  mean, span = difference.interval.without_unit
  few = paired_verdicts.too_few(len(difference.by_seed))
  side = OF_VERDICT.get(verdict or '', difference.side)
  look = f'chip {LOOKS["unclear" if few else side]}'
  return Cell(mean, (span, *notes), look)


def _matrix_cell(
  statistics: Statistics, budget: str, pair: tuple[str, str], verdicts: Mapping[tuple[str, str], str]
) -> Cell | str:
  """Returns the difference of a pair with its verdict, where there are seeds enough, and the seeds that favour its row."""
  if pair not in verdicts:
    return '–'
  difference = statistics.pair(*pair, budget).difference
  verdict = verdicts[pair]
  told = '' if paired_verdicts.too_few(len(statistics.seeds)) else f'{verdict}; '
  seeds = f'{difference.seeds.better} of {plural(_count(difference.seeds), "seed")}'
  return difference_cell(difference, f'{told}{seeds}', verdict=verdict)


def mean_cell(interval: Interval, words: Callable[[float], str]) -> Cell:
  """Returns a mean above its interval, where it has one."""
  if interval.low is None or interval.high is None:
    return Cell(words(interval.mean))
  return Cell(words(interval.mean), (f'{words(interval.low)} to {words(interval.high)}',))


def _signs(statistics: Statistics) -> Table:
  rows = []
  for summary in statistics.summaries[ROUNDS]:
    if summary.is_clustering:
      for kind, difference in summary.over.items():
        if difference is not None:
          clients, seeds = difference.clients, difference.seeds
          rows.append((
              summary.name, REFERENCES[kind], f'{clients.better:,}', f'{clients.worse:,}', f'{clients.equal:,}', _p_value(clients.p_value),
              f'{seeds.better} of {_count(seeds)}', _p_value(seeds.p_value),
          ))  # fmt: skip
  header = ('', 'against', 'clients better', 'worse', 'equal', 'p', 'seeds better', 'p')
  caption = 'Sign tests at equal rounds, exact, ties left out'
  return Table(header, rows, range(2, len(header)), caption)


def _count(signs: SignTest) -> int:
  return signs.better + signs.worse + signs.equal


def _p_value(value: float) -> str:
  return '< 0.001' if value < 0.001 else f'{value:.3f}'


def _mean_share(values: Sequence[float | None]) -> str:
  known = [value for value in values if value is not None]
  return percent(float(np.mean(known))) if known else '–'


def _mean_of(runs: Sequence[Measured], unit: str) -> float:
  """Returns what runs cost at equal rounds, in one of cost.UNITS."""
  return float(np.mean([run.cost[ROUNDS].of(unit) for run in runs]))


def _scores(contender: Contender, runs: Runs, truth: str) -> tuple[str, str]:
  """Returns the values of all seeds with the name of their measure, and the means of the other scores."""
  values = next((scores for scores in recoveries(contender, runs) if scores[0].truth == truth), ())
  shown = (
    f'{", ".join(score(recovery.value) for recovery in values)} ({values[0].measure})' if values else '–'
  )
  return shown, _mean_scores(contender, truth)


def _mean_scores(contender: Contender, truth: str) -> str:
  cells = []
  for name, (_, shown) in _SCORES.items():
    known = [getattr(run.recovery[truth], name) for run in contender.runs if truth in run.recovery]
    cells.append(shown(float(np.mean(known)) if known else None))
  return ', '.join(cells)
