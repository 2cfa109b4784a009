"""The page that ends a league: which method to take when, and whether overlapping clusters beat disjoint ones."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tff_cluster.base.words import percent, plural, score, series
from tff_cluster.experiment.config import FEDAVG
from tff_cluster.report import first_screen, lost_training, pages
from tff_cluster.report.pages import Cell, Section, Table
from tff_cluster.report.pictures import Picture, save_drawn
from tff_cluster.scorecard import paired_verdicts
from tff_cluster.scorecard.contenders import BUDGETS, ROUNDS, Runs
from tff_cluster.scorecard.intervals import Interval
from tff_cluster.storage.files import write_file, write_json
from tff_cluster.storage.tables import csv_lines
from tff_cluster.studies.comparison import answer, csv_columns, malicious
from tff_cluster.studies.league import figure, standings
from tff_cluster.studies.league.standings import League

_TEMPLATE = 'league.html'
_CHOSEN = 'Of each kind validation rows choose the method, under each seed and setting.'


def write(finished: Mapping[str, Runs], facts: Mapping[str, str], folder: Path) -> Path:
  """Writes league.json, league.csv, figures/league.* and index.html into a folder; returns the path of the page.

  Args:
    finished: By setting, seed and results of its runs; its own comparison lies in FOLDER/SETTING.
    facts: How it was run.
    folder: Where to.
  """
  league = standings.measure(finished)
  lost = {name: lost_training.told([results for _, results in runs]) for name, runs in finished.items()}
  alarms = [f'{name}: {words}' for name, words in lost.items() if words]
  for setting in league.settings:
    # Ranks are over all clients, malicious ones too.
    if harm := malicious.measure(finished[setting.name], list(setting.parts.values())):
      alarms.append(f'{setting.name}: {malicious.caution_of(harm)}')
  document = {
    'settings': [setting.name for setting in league.settings],
    'seeds': list(league.seeds),
    'digests': {
      name: {str(seed): results.digest for seed, results in runs} for name, runs in finished.items()
    },
    'standings': {
      budget: [_plain(each, standings.overall(league, each.name, budget)) for each in found]
      for budget, found in league.standings.items()
    },
    'answer': {budget: sentences(league, budget) for budget in league.budgets},
    'alarms': alarms,
    'command': facts.get('command'),
  }
  write_json(folder / 'league.json', document)
  lines = [
    {'setting': setting.name, **line}
    for setting in league.settings
    for line in csv_columns.lines(list(setting.parts.values()), setting.statistics.target)
  ]
  write_file(folder / 'league.csv', csv_lines(lines))
  picture = _picture(league, folder)
  # The first screen has the others.
  in_words = [words for words in sentences(league, ROUNDS)[1:] if words not in few(league)]
  parts = [
    _answer(league, picture, [*alarms, *few(league)]),
    Section('Where clustering helps, and overlap', _TEMPLATE, 'in_words', {'sentences': in_words}),
    *(_ranks(league, budget) for budget in league.budgets),
    *(_setting(league, setting) for setting in league.settings),
    Section('How it was run', _TEMPLATE, 'facts', {'facts': facts}),
  ]
  title = 'Which method to take when'
  subtitle = f'{plural(len(league.settings), "setting")} · {plural(len(league.seeds), "seed")}'
  target = folder / 'index.html'
  write_file(target, pages.page(title, subtitle, parts, __package__))
  return target


def headline(league: League, budget: str) -> str:
  """Returns who ranks first and who is not shown to rank behind it, in one sentence."""
  first, *_ = found = league.standings[budget]
  over = f'Over {plural(len(league.settings), "setting")} and {plural(len(league.seeds), "seed")} at {BUDGETS[budget]}'
  told = f'{over}, {first.name} has the best mean rank ({_rank(first.rank)})'
  ties = standings.not_behind(found)
  if len(found) == 1:
    return f'{told}, of one.'
  if len(league.seeds) < (needed := paired_verdicts.seeds_for(len(found) - 1)):
    seeds = plural(len(league.seeds), 'seed')
    shows = 'shows' if len(league.seeds) == 1 else 'show'
    return f'{told}, and {seeds} {shows} no order of the {len(found)} methods, which takes {needed}.'
  if not ties:
    return f'{told}, and all {len(found) - 1} others are shown to rank behind it.'
  names = (
    series([each.name for each in ties]) if len(ties) <= 3 else f'{len(ties)} of {len(found) - 1} others'
  )
  return f'{told}, but {names} {"is" if len(ties) == 1 else "are"} not shown to rank behind it.'


def sentences(league: League, budget: str) -> list[str]:
  """Returns the answer: who ranks first, where clustering helps, and whether overlap does."""
  told = [headline(league, budget)]
  above = standings.helped(league, budget)
  if helped := {name: found for name, found in above.items() if found}:
    each = [f'{name} ({series(found[:2])})' for name, found in helped.items()]
    told.append(
      f'More than FedAvg without clusters, by an interval that excludes zero, is attained on {series(each)}.'
    )
  if not_helped := [name for name, found in above.items() if not found]:
    told.append(f'No method attains more than FedAvg, by such an interval, on {series(not_helped)}.')
  pairs = standings.overlap_answers(league, budget)
  for side, words in (
    ('above', 'Overlapping clusters lie above disjoint ones on'),
    ('below', 'Overlapping clusters lie below disjoint ones on'),
    ('unclear', 'Whether overlapping clusters beat disjoint ones is undecided on'),
  ):
    where = [
      f'{name} ({found.overlapping.name} against {found.disjoint.name}: {found.difference.brief})'
      for name, found in pairs.items()
      if found.difference.side == side
    ]
    if where:
      told.append(f'{words} {series(where)}.')
  return [
    *told,
    *([_CHOSEN] if pairs else []),
    *few(league),
  ]


def few(league: League) -> list[str]:
  """Returns how many seeds verdicts take; nothing where there are as many."""
  needed = max(answer.for_verdicts(setting.statistics) for setting in league.settings)
  if len(league.seeds) >= needed:
    return []
  return [
    f'These are intervals and no verdicts: with so many methods Holm’s correction takes {needed} seeds, and {len(league.seeds)} were run.'
  ]


def _answer(league: League, picture: Picture, alarms: Sequence[str]) -> Section:
  header = (
    'method', 'mean rank', '95% interval', 'helped', 'harmed', 'not shown', 'groups found', 'client-rounds, × FedAvg', 'bytes, × FedAvg',
  )  # fmt: skip
  rows = [_standing(league, each) for each in league.standings[ROUNDS]]
  about = (
    f'Ranks are by mean client accuracy at equal rounds, 1 for the best; intervals are over {plural(len(league.seeds), "seed")}. '
    'Helped, harmed and not shown count settings by the side of zero of the 95% interval of the difference to FedAvg without clusters, '
    'which is not corrected for the number of methods. '
    'Groups found is the mean Omega index over settings with planted groups whose members tell them apart, costs are means over settings, Phase 1 included.'
  )
  return first_screen.section(
    headline(league, ROUNDS),
    Table(header, rows, range(1, len(header))),
    [about],
    alarms,
    [picture],
  )


def _standing(league: League, standing: standings.Standing) -> list[Any]:
  found = standings.overall(league, standing.name, ROUNDS)
  is_fedavg = standing.name == FEDAVG
  return [
    Cell(standing.name, ('' if is_fedavg else standing.kind,)),
    f'{standing.rank.mean:.1f}',
    _span(standing.rank) or '–',
    *('–' if is_fedavg else str(count) for count in (found.above, found.below, found.unclear)),
    score(found.omega),
    f'{found.client_rounds:.2f}',
    f'{found.bytes:.2f}',
  ]


def _picture(league: League, folder: Path) -> Picture:
  names = [name for name in league.names if name != FEDAVG]
  points = np.full((len(names), len(league.settings)), np.nan)
  certain = np.zeros(points.shape, bool)
  for column, setting in enumerate(league.settings):
    for row, name in enumerate(names):
      if (difference := league.gain(setting, name, ROUNDS)) is not None:
        points[row, column] = 100 * difference.interval.mean
        certain[row, column] = difference.side != 'unclear'
  drawn = figure.gains(points, certain, names, [setting.name for setting in league.settings])
  caption = (
    'Points of mean client accuracy above FedAvg without clusters, same clients and seeds, at equal rounds; bold where the '
    '95% interval over seeds and clients excludes zero. An empty field was not run: nothing is planted there.'
  )
  return save_drawn(
    ('league', 'answer', 'Differences to FedAvg, by method and setting', caption, drawn), folder
  )


def _ranks(league: League, budget: str) -> Section:
  header = ['method', 'kind', 'mean rank', '95% interval over seeds', *(s.name for s in league.settings)]
  rows = [
    [
      each.name, each.kind, f'{each.rank.mean:.1f}', _span(each.rank), *(f'{r:.1f}' for r in each.ranks.values()),
    ]
    for each in league.standings[budget]
  ]  # fmt: skip
  table = Table(header, rows, numeric=range(2, len(header)))
  return Section(f'Ranks at {BUDGETS[budget]}', _TEMPLATE, 'ranks', {'table': table})


def _setting(league: League, setting: standings.InSetting) -> Section:
  header = [
    'method', 'accuracy', 'gain, points', '95% interval', 'worst tenth', 'harmed', 'recovery', 'share error', 'collapsed',
    'client-rounds', 'MB',
  ]  # fmt: skip
  rows = list(_lines(setting, league.budgets))
  table = Table(header, rows, numeric=range(1, len(header)))
  return Section(setting.name, _TEMPLATE, 'setting', {'table': table, 'page': f'{setting.name}/index.html'})


def _lines(setting: standings.InSetting, budgets: Sequence[str]) -> Iterator[list[Any]]:
  for name, part in setting.parts.items():
    for budget in budgets:
      summary, gain = setting.summary(name, budget), setting.summary(name, budget).over_fedavg
      known = [run.found for run in part.runs if run.found is not None]
      omegas = [run.omega for run in part.runs if run.omega is not None]
      matches = [run.share_match for run in part.runs if run.share_match is not None]
      ended = [run.collapse for run in part.runs if run.collapse is not None]
      costs = [run.cost[budget] for run in part.runs]
      below = (part.kind if name != FEDAVG else None, BUDGETS[budget] if len(budgets) > 1 else None)
      yield [
        Cell(name, below),
        percent(summary.mean.mean),
        *(('', '') if gain is None else gain.interval.without_unit),
        percent(summary.worst_decile),
        '' if gain is None else percent(gain.harmed),
        f'{np.mean(omegas):.2f}'
        if omegas
        else Cell(f'{np.mean(matches):.2f}', ('share match',))
        if matches
        else '',
        f'{np.mean([score.share_error for score in known]):.2f}' if known else '',
        f'{sum(each.happened for each in ended)} of {len(ended)}' if ended else '',
        f'{np.mean([cost.client_rounds for cost in costs]):,.0f}',
        f'{np.mean([cost.bytes for cost in costs]) / 1e6:,.1f}',
      ]


def _plain(standing: standings.Standing, overall: standings.Overall) -> dict[str, object]:
  return {
    'name': standing.name,
    'kind': standing.kind,
    'rank': standing.rank.mean,
    'low': standing.rank.low,
    'high': standing.rank.high,
    'ranks': dict(standing.ranks),
    **dataclasses.asdict(overall),
  }


def _rank(rank: Interval) -> str:
  span = _span(rank)
  return f'{rank.mean:.1f}' + (f', 95% interval {span}' if span else '')


def _span(rank: Interval) -> str:
  return '' if rank.low is None or rank.high is None else f'{rank.low:.1f} to {rank.high:.1f}'
