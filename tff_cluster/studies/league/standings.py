"""The numbers of a league: what each method attains in each setting, and how it ranks over all of them."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tff_cluster.base.cost import Cost
from tff_cluster.experiment.config import FEDAVG
from tff_cluster.scorecard import contenders as contenders_lib
from tff_cluster.scorecard import paired_statistics, paired_verdicts
from tff_cluster.scorecard.contenders import Contender, Runs
from tff_cluster.scorecard.intervals import Interval, sign_test, student_interval, student_p_value
from tff_cluster.scorecard.paired_statistics import Difference, OnValidation, Statistics, Summary

_FEWEST_SEEDS = 3


@dataclasses.dataclass(frozen=True, eq=False)
class InSetting:
  """A setting with its contenders.

  Attributes:
    name: Of the setting.
    statistics: Of its comparison.
    parts: The contenders as they were asked for, by name: of identical ones each.
    rows: The name in `statistics` that stands for each of them.
    phase1: By seed, what Phase 1 cost, which costs of contenders leave out.
  """

  name: str
  statistics: Statistics
  parts: Mapping[str, Contender]
  rows: Mapping[str, str]
  phase1: Mapping[int, Cost]

  def summary(self, name: str, budget: str) -> Summary:
    """Returns the numbers of a contender at a budget."""
    return self.statistics.summary(self.rows[name], budget)


@dataclasses.dataclass(frozen=True, eq=False)
class Standing:
  """How a contender ranks.

  Attributes:
    name, kind: See contenders.Contender; a method that overlaps in any setting is 'overlapping'.
    rank: Its mean rank over settings, 1 for the best, with Student's 95% interval over seeds, from three on. Seeds that happen to be equal
      have none: ranks are few numbers, and an interval of nothing would promise too much.
    ranks: By setting, the mean over seeds.
    by_seed: By seed, the mean over settings.
  """

  name: str
  kind: str
  rank: Interval
  ranks: Mapping[str, float]
  by_seed: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Overall:
  """What a contender did over all settings, at a budget.

  Attributes:
    above, below, unclear: Settings by the side of FedAvg's accuracy on which its interval lies.
    omega: Mean Omega index over runs with planted groups; None where nothing is planted, or every client has rows of every group.
    client_rounds, bytes: Means over runs of what a run costs, Phase 1 included, in what FedAvg without clusters does.
    collapsed, alternating: Runs in which a method that alternates left a model without clients, or all clients with one, of so many.
  """

  above: int
  below: int
  unclear: int
  omega: float | None
  client_rounds: float
  bytes: float
  collapsed: int
  alternating: int


@dataclasses.dataclass(frozen=True, eq=False)
class League:
  """All numbers.

  Attributes:
    settings: In their order.
    seeds: Of each setting, the same.
    budgets: Equal rounds, and the other one where it is told apart.
    standings: By budget, the best first.
  """

  settings: Sequence[InSetting]
  seeds: tuple[int, ...]
  budgets: tuple[str, ...]
  standings: Mapping[str, Sequence[Standing]]

  @property
  def names(self) -> list[str]:
    """All contenders of any setting, FedAvg first."""
    return list(dict.fromkeys(name for setting in self.settings for name in setting.parts))

  def gain(self, setting: InSetting, name: str, budget: str) -> Difference | None:
    """Returns a contender's difference to FedAvg in a setting; None for FedAvg, and where it was not run."""
    return setting.summary(name, budget).over_fedavg if name in setting.parts else None


def measure(finished: Mapping[str, Runs]) -> League:
  """Returns the numbers of a league.

  Args:
    finished: By setting, seed and results of its runs; all settings have the same seeds.
  """
  settings = [_in_setting(name, runs) for name, runs in finished.items()]
  budgets = tuple(dict.fromkeys(budget for setting in settings for budget in setting.statistics.budgets))
  standings = {budget: _standings(settings, budget) for budget in budgets}
  return League(settings, settings[0].statistics.seeds, budgets, standings)


def ranks_of(accuracies: np.ndarray) -> np.ndarray:
  """Returns float64[..., contenders], ranks by accuracy, 1 for the highest; equal ones (up to 12 decimals) share the mean of theirs."""
  from scipy import stats

  return stats.rankdata(-np.round(accuracies, 12), axis=-1)


def _in_setting(name: str, runs: Runs) -> InSetting:
  rows = contenders_lib.read_contenders(runs)
  target = runs[0][1].config.evaluation.target_accuracy
  parts = {part.name: part for row in rows for part in row.each}
  stands_for = {part.name: row.name for row in rows for part in row.each}
  phase1 = {seed: results.phase1.cost for seed, results in runs}
  return InSetting(name, paired_statistics.measure(rows, target), parts, stands_for, phase1)


def _standings(settings: Sequence[InSetting], budget: str) -> list[Standing]:
  """Returns the standings of those that every setting has, without oracles, the best first."""
  names = [
    name
    for name, part in settings[0].parts.items()
    if part.kind != 'oracle' and all(name in setting.parts for setting in settings)
  ]
  accuracy = np.array(
    [
      [[run.accuracy[budget].mean() for run in setting.parts[name].runs] for name in names]
      for setting in settings
    ]
  )
  ranks = ranks_of(accuracy.transpose(0, 2, 1))  # [settings, seeds, contenders]
  found = [
    Standing(
      name,
      _kind([setting.parts[name].kind for setting in settings]),
      _rank(ranks[:, :, k].mean(axis=0).tolist(), len(names)),
      {setting.name: float(ranks[i, :, k].mean()) for i, setting in enumerate(settings)},
      tuple(ranks[:, :, k].mean(axis=0).tolist()),
    )
    for k, name in enumerate(names)
  ]
  return sorted(found, key=lambda standing: standing.rank.mean)


def _rank(by_seed: Sequence[float], contenders: int) -> Interval:
  """Returns Standing.rank; nothing of its interval lies before the first or behind the last."""
  rank = student_interval(by_seed)
  if len(by_seed) < _FEWEST_SEEDS or len(set(by_seed)) == 1 or rank.low is None or rank.high is None:
    return Interval(rank.mean, None, None)
  return Interval(rank.mean, max(rank.low, 1.0), min(rank.high, float(contenders)))


def _kind(kinds: Sequence[str]) -> str:
  return 'overlapping' if 'overlapping' in kinds else kinds[0]


def not_behind(found: Sequence[Standing]) -> list[Standing]:
  """Returns who is not shown to rank behind the first over seeds at 5%, after Holm's correction for all others.

  Student's test and the exact sign test must both show it: ranks are few numbers, whose gaps may not vary at all. Fewer seeds than a verdict takes (paired_verdicts.FEWEST_SEEDS) show nobody to be behind. Who is the first is known by the same seeds,
  which the correction does not make up for.
  """
  first, *others = found
  if paired_verdicts.too_few(len(first.by_seed)):
    return others
  gaps = [np.subtract(other.by_seed, first.by_seed).tolist() for other in others]
  corrected = paired_verdicts.holm(
    [max(student_p_value(gap), sign_test(np.array(gap)).p_value) for gap in gaps]
  )
  return [other for other, p_value in zip(others, corrected, strict=True) if p_value >= paired_verdicts.LEVEL]


def overall(league: League, name: str, budget: str) -> Overall:
  """Returns what a contender that every setting has did over all of them."""
  every = [setting.summary(name, budget).over_fedavg for setting in league.settings]
  sides = [difference.side for difference in every if difference is not None]
  pairs = [
    (run, setting.phase1[run.seed] + run.cost[budget], setting.phase1[run.seed] + fedavg.cost[budget])
    for setting in league.settings
    for run, fedavg in zip(setting.parts[name].runs, setting.parts[FEDAVG].runs, strict=True)
  ]
  ended = [run.collapse for run, *_ in pairs if run.collapse is not None]
  omegas = [run.omega for run, *_ in pairs if run.omega is not None]

  def spent(unit: str) -> float:
    return float(np.mean([own.of(unit) / fedavgs.of(unit) for _, own, fedavgs in pairs]))

  return Overall(
    sides.count('above'),
    sides.count('below'),
    sides.count('unclear'),
    float(np.mean(omegas)) if omegas else None,
    spent('rounds'),
    spent('bytes'),
    sum(each.happened for each in ended),
    len(ended),
  )


def helped(league: League, budget: str) -> dict[str, list[str]]:
  """Returns by setting the methods whose interval lies above FedAvg's, oracles left out, the highest first."""
  found = {}
  for setting in league.settings:
    above = [
      (difference.interval.mean, name)
      for name, part in setting.parts.items()
      if part.kind != 'oracle'
      and name != FEDAVG
      and (difference := league.gain(setting, name, budget)) is not None
      and difference.side == 'above'
    ]
    found[setting.name] = [name for _, name in sorted(above, reverse=True)]
  return found


def overlap_answers(league: League, budget: str) -> dict[str, OnValidation]:
  """Returns by setting the overlapping method and the disjoint one that validation rows choose under each seed."""
  found = {setting.name: setting.statistics.chosen.get(budget) for setting in league.settings}
  return {name: chosen for name, chosen in found.items() if chosen is not None}
