"""The tables of a comparison's page; each function returns one section's content."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base.words import interval_points, percent, plural, score, size
from tff_cluster.report.markup import Markup, table, tag, verdict_chip
from tff_cluster.scorecard import identical_clusterings
from tff_cluster.scorecard.contenders import BUDGETS, ROUNDS, Contender, Runs
from tff_cluster.scorecard.intervals import Interval, SignTest
from tff_cluster.scorecard.paired_statistics import Difference, Statistics, Summary
from tff_cluster.studies.comparison.alarms import recoveries
from tff_cluster.studies.comparison.verdicts import Check

_LOOKS = {'above': 'good', 'unclear': 'none', 'below': 'bad'}
_SCORES = {'onmi': 'ONMI', 'bcubed_f': 'BCubed F'}


def checks_table(checks: Sequence[Check], heading: str) -> Markup:
  """Returns checks with their verdicts, notes below the words."""
  rows = [
    ([c.words, tag('div', c.finding.note, class_='note')], c.finding.ours, verdict_chip(c.finding.verdict))
    for c in checks
  ]
  return table((heading, 'difference', 'verdict'), rows)


def contenders_section(contenders: Sequence[Contender], statistics: Statistics) -> list[Markup]:
  """Returns every contender's accuracies at equal client-rounds, and the global test set; at equal rounds see the answer."""
  has_local = any(contender.kind == 'local' for contender in contenders)
  tables = [contenders_table(statistics, budget) for budget in statistics.budgets if budget != ROUNDS]
  same = (
    'Nobody costs more than FedAvg without clusters, so at equal client-rounds all is as at equal rounds.'
  )
  return [
      *(tables or [tag('p', same)]),
      _by_rule(contenders, 'global_accuracy', 'On the global test set by rule of Phase 3, at equal rounds, mean over seeds'),
      tag(
          'p', 'A rule that makes one model for everybody is measured with it; one that makes a model of each cluster’s, with the '
          'mean over clusters. FedAvg has one model, which stands in all columns'
          + ('; clients alone have none for all.' if has_local else '.'),
          class_='note',
      ),
      _by_rule(
          [contender for contender in contenders if contender.runs[0].rule_accuracy], 'rule_accuracy',
          'On the clients’ own test rows by rule of Phase 3, at equal rounds, mean over clients and seeds',
      ),
      *_signs(statistics),
  ]  # fmt: skip


def _by_rule(contenders: Sequence[Contender], figure: str, caption: str) -> Markup:
  """Returns a table with a column for each rule of Phase 3.

  Args:
    contenders: Its rows; there is no table without any.
    figure: The attribute of contenders.Measured, accuracies by rule.
    caption: Above it.
  """
  names = list(dict.fromkeys(name for c in contenders for run in c.runs for name in getattr(run, figure)))
  rows = [
    (c.name, *(_mean_share([getattr(run, figure).get(name) for run in c.runs]) for name in names))
    for c in contenders
  ]
  return table(('', *names), rows, numeric=range(1, len(names) + 1), caption=caption) if rows else Markup('')


def contenders_note(statistics: Statistics) -> Markup:
  """Returns how to read a table of contenders."""
  return tag(
      'p', 'Accuracy of clients with their own models on their own test rows. Differences are of the same client under the same '
      f'seed, in points; below each mean its 95% interval over {plural(len(statistics.seeds), "seed")} and clients (the wider '
      'of a two-stage bootstrap and of Student’s interval over seeds). The worst decile is the mean of the lowest tenth of clients; '
      '“harmed” is the share of clients that are worse off.',
      class_='note',
  )  # fmt: skip


def contenders_table(statistics: Statistics, budget: str) -> Markup:
  """Returns every contender's accuracies at a budget."""
  has_local = any(summary.kind == 'local' for summary in statistics.summaries[budget])
  header = [
    '',
    'mean client',
    'worst decile',
    f'at {percent(statistics.target, 0)}',
    'against FedAvg',
    'harmed',
  ]
  header += ['against alone', 'harmed'] if has_local else []
  return table(
    header,
    [_contender_row(summary, has_local) for summary in statistics.summaries[budget]],
    numeric=range(1, len(header)),
    caption=f'At {BUDGETS[budget]}',
  )


def matrix_section(statistics: Statistics) -> list[Markup]:
  """Returns the differences of every overlapping contender to every disjoint one and to the oracle."""
  if not any(statistics.pairs.values()):
    return [tag('p', 'These runs have no overlapping clustering, or nothing to compare it with.')]
  tables = []
  for budget in statistics.budgets:
    name, pairs = BUDGETS[budget], statistics.pairs[budget]
    columns = list(dict.fromkeys((pair.other, pair.other_kinds) for pair in pairs))
    rows = [
      (row, *(_matrix_cell(statistics.pair(row, column, budget).difference) for column, _ in columns))
      for row in dict.fromkeys(pair.overlapping for pair in pairs)
    ]
    header = ('overlapping', *(f'{column} ({", ".join(kinds)})' for column, kinds in columns))
    tables.append(table(header, rows, caption=f'At {name}: row minus column'))
  return [
      tag(
          'p', 'Mean paired differences in points, with their 95% intervals over seeds and clients; green where the overlapping '
          'clustering is better, red where it is worse, grey where the interval holds zero. p is of the sign test over clients, '
          'and too small where clients of a seed share models; behind it the seeds that favour the row.',
      ),
      *tables,
  ]  # fmt: skip


def recovery_section(contenders: Sequence[Contender], runs: Runs) -> list[Markup]:
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
  words = 'One value for each seed, in their order; memberships, ONMI and BCubed are means over seeds.'
  if truths:
    words += (
      ' ARI, or Omega where either side overlaps, is 1 for exactly the planted groups and about 0 for chance; ONMI '
      '(overlapping NMI) and BCubed F are 1 for exactly those too, and not corrected for chance.'
    )
  else:
    words += ' No planted groups are known.'
  if any(clustering.get('excluded') for _, results in runs for clustering in results['clusterings']):
    words += ' Clients that were not clustered, because their updates were not finite, are not scored.'
  header: list[str] = ['clustering', 'kind', 'clusters', 'memberships', 'single clients']
  of_scores = ' and '.join(_SCORES.values())
  if len(truths) == 1:
    (name,) = truths
    rows = [(label, *shape, *scored[name][label]) for label, shape in shapes.items()]
    header += [f'“{name}”', of_scores]
    return [tag('p', words), table(header, rows, numeric=range(2, len(header)))]
  # Side by side, several planted groupings would leave the page.
  tables = [
    table(header, [(label, *shape) for label, shape in shapes.items()], numeric=range(2, len(header)))
  ]
  for name, of_name in scored.items():
    of_label = [(label, *cells) for label, cells in of_name.items()]
    tables.append(
      table(('clustering', f'“{name}”', of_scores), of_label, numeric=(1, 2), caption=f'Found of “{name}”')
    )
  return [tag('p', words), *tables]


def costs_section(contenders: Sequence[Contender]) -> list[Markup]:
  """Returns client-rounds and bytes of Phase 2."""
  fedavg = next(contender for contender in contenders if contender.kind == 'fedavg')
  paid = _mean_of(fedavg.runs, 'client_rounds', ROUNDS)
  every = [part for contender in contenders for part in contender.each]
  rows = []
  # The same clusters may have been dearer to find.
  for same in identical_clusterings.grouped(
    every, [_costs(part) if part.is_clustering else part.name for part in every]
  ):
    contender, name = same[0], identical_clusterings.joined(part.name for part in same)
    trained = {budget: _mean_of(contender.runs, 'client_rounds', budget) for budget in BUDGETS}
    sent = [size(_mean_of(contender.runs, way, ROUNDS)) for way in ('bytes_up', 'bytes_down')]
    ratio = f'{trained[ROUNDS] / paid:.2f}' if paid else '–'
    rows.append((name, *(f'{value:,.0f}' for value in trained.values()), ratio, *sent))
  header = ('', *(f'at {name}' for name in BUDGETS.values()), 'FedAvg’s, times', 'bytes up', 'bytes down')
  words = (
    'Client-rounds of Phase 2 and of finding the clusters, means over seeds. Bytes are those at equal rounds.'
  )
  if any(len(set(run.client_rounds.values())) > 1 for part in every for run in part.runs):
    words += (
      ' A clustering that costs more than FedAvg is measured again after the last round that FedAvg’s '
      'client-rounds pay.'
    )
  if any(part.kind == 'local' for part in every):
    words += ' Local training sends nothing, and trains every client in every round.'
  return [
      tag('p', words),
      table(header, rows, numeric=range(1, len(header))),
  ]  # fmt: skip


def _costs(contender: Contender) -> Hashable:
  """Returns the clusters and costs of a clustering under every seed."""
  return tuple(
    (run.clusters, *(tuple(of.values()) for of in (run.client_rounds, run.bytes_up, run.bytes_down)))
    for run in contender.runs
  )


def facts_section(runs: Runs, facts: Mapping[str, Any]) -> list[Markup]:
  """Returns the command, what the caller knows of the run, and seeds, machines, dates and digests of the runs."""
  rest = [
    (name.replace('_', ' '), f'{value:,}' if isinstance(value, int) else str(value))
    for name, value in facts.items()
    if name != 'command'
  ]
  ran = []
  for seed, results in runs:
    environment = results.get('environment') or {}
    known = [environment.get(name, '–') for name in ('machine', 'cores', 'started')]
    data_seed = results['config']['data']['data_seed']
    ran.append((seed, data_seed, *known, tag('code', results.get('digest', '–'))))
  header = ('seed', 'data seed', 'machine', 'cores', 'started', 'digest of the results')
  return [
    *([tag('pre', tag('code', facts['command']))] if 'command' in facts else []),
    *([table(('', 'this comparison'), rest)] if rest else []),
    table(header, ran, numeric=(0, 1), caption='One run a seed'),
  ]


def accuracy_cells(summary: Summary) -> list[Any]:
  """Returns the cells of a mean accuracy with its interval, and of the difference to FedAvg."""
  return [[percent(summary.mean.mean), low_high(summary.mean, percent)], difference_cell(summary.gain)]


def _contender_row(summary: Summary, has_local: bool) -> tuple[Any, ...]:
  kind = tag('div', ', '.join(summary.kinds), class_='note') if summary.is_clustering else None
  cells: list[Any] = [
    [summary.name, kind],
    [percent(summary.mean.mean), low_high(summary.mean, percent)],
    percent(summary.worst_decile),
    percent(summary.at_target),
  ]
  for difference in (summary.over_fedavg, summary.over_local)[: 2 if has_local else 1]:
    cells += [
      '–' if difference is None else difference_cell(difference),
      '–' if difference is None else percent(difference.harmed),
    ]
  return tuple(cells)


def difference_cell(difference: Difference) -> Markup:
  """Returns the mean difference in points, coloured by its side of zero, above its interval."""
  interval = difference.interval
  mean, span = interval_points(interval.mean, interval.low, interval.high)
  value = tag('span', mean.removesuffix(' points'), class_=f'chip {_LOOKS[difference.side]}')
  return tag('div', value, tag('div', span.removesuffix(' points'), class_='note') if span else None)


def _matrix_cell(difference: Difference) -> Markup:
  seeds = f'{difference.seeds.better} of {_count(difference.seeds)}'
  signs = f'p {_p_value(difference.clients.p_value)}; {seeds} seeds'
  return tag('div', difference_cell(difference), tag('div', signs, class_='note'))


def low_high(interval: Interval, words: Any) -> Markup | None:
  """Returns an interval as a note; None where there is none."""
  if interval.low is None or interval.high is None:
    return None
  return tag('div', f'{words(interval.low)} to {words(interval.high)}', class_='note')


def _signs(statistics: Statistics) -> list[Markup]:
  rows = []
  for summary in statistics.summaries[ROUNDS]:
    if summary.is_clustering:
      for name, difference in (('FedAvg', summary.over_fedavg), ('alone', summary.over_local)):
        if difference is not None:
          clients, seeds = difference.clients, difference.seeds
          rows.append((
              summary.name, name, f'{clients.better:,}', f'{clients.worse:,}', f'{clients.equal:,}', _p_value(clients.p_value),
              f'{seeds.better} of {_count(seeds)}', _p_value(seeds.p_value),
          ))  # fmt: skip
  if not rows:
    return []
  header = ('', 'against', 'clients better', 'worse', 'equal', 'p', 'seeds better', 'p')
  caption = 'Sign tests at equal rounds, exact, ties left out'
  shown = table(header, rows, numeric=range(2, len(header)), caption=caption)
  note = 'Clients of a seed share models, so the p-value over clients is too small; that over seeds is at least 0.25 for three seeds.'
  return [tag('details', tag('summary', 'Sign tests'), shown, tag('p', note, class_='note'))]


def _count(signs: SignTest) -> int:
  return signs.better + signs.worse + signs.equal


def _p_value(value: float) -> str:
  return '< 0.001' if value < 0.001 else f'{value:.3f}'


def _mean_share(values: Sequence[float | None]) -> str:
  known = [value for value in values if value is not None]
  return percent(float(np.mean(known))) if known else '–'


def _mean_of(runs: Sequence[Any], name: str, budget: str) -> float:
  return float(np.mean([getattr(run, name)[budget] for run in runs]))


def _scores(contender: Contender, runs: Runs, truth: str) -> tuple[str, str]:
  """Returns the values of all seeds with the name of their measure, and the means of the other scores."""
  values = next((scores for scores in recoveries(contender, runs) if scores[0].truth == truth), ())
  shown = (
    f'{", ".join(score(recovery.value) for recovery in values)} ({values[0].measure})' if values else '–'
  )
  return shown, _mean_scores(contender, truth)


def _mean_scores(contender: Contender, truth: str) -> str:
  cells = []
  for name in _SCORES:
    values = [run.recovery.get(truth, {}).get(name) for run in contender.runs]
    known = [value for value in values if value is not None]
    cells.append(score(float(np.mean(known)) if known else None))
  return ', '.join(cells)
