"""What must not be overlooked: trainings that were lost, wrong groups behind fine accuracies, collapsed clusters, too few seeds."""

from collections.abc import Sequence

import numpy as np

from tff_cluster.base.words import plural, series
from tff_cluster.clustering.recovery import summed_up
from tff_cluster.report import lost_training
from tff_cluster.report.answer import GROUPS_WRONG_BELOW, Recovery
from tff_cluster.scorecard.contenders import ROUNDS, Contender, Runs
from tff_cluster.scorecard.paired_statistics import Statistics
from tff_cluster.scorecard.paired_verdicts import FEWEST_SEEDS
from tff_cluster.studies.comparison import answer


def recoveries(contender: Contender, runs: Runs) -> list[tuple[Recovery, ...]]:
  """Returns for each planted grouping one score a seed, the same under every seed, see clustering.recovery.summed_up."""
  truths = {seed: results.population.truths for seed, results in runs}
  found = []
  for name in dict.fromkeys(name for run in contender.runs for name in run.recovery):
    entries = [run for run in contender.runs if name in run.recovery]
    planted = [np.array(truths[run.seed][name]) for run in entries]
    measure, values = summed_up(
      [run.recovery[name] for run in entries], planted, all(run.members_tell for run in entries)
    )
    found.append(
      tuple(Recovery(name, measure, value, len(truth)) for value, truth in zip(values, planted, strict=True))
    )
  return found


def make_alarms(contenders: Sequence[Contender], statistics: Statistics, runs: Runs) -> list[str]:
  """Returns what must not be overlooked, the gravest first."""
  alarms = list(filter(None, [lost_training.told([results for _, results in runs])]))
  found = [contender for contender in contenders if contender.kind in ('disjoint', 'overlapping')]
  for side, words, joined in (
    ('above', 'above FedAvg’s', 'but'),
    ('unclear', 'not clearly different from FedAvg’s', 'and'),
  ):
    wrong = [
      told
      for contender in found
      if statistics.summary(contender.name, ROUNDS).gain.side == side
      and (told := _wrong_groups(contender, runs))
    ]
    if wrong:
      alarms.append(
        f'Accuracy is {words}, {joined} the groups are wrong: {series(wrong)}. '
        'Do not read these clusters as the structure of the data.'
      )
  several = [contender for contender in found if len(contender.runs[0].accuracy[ROUNDS]) > 1]
  for words, collapsed in (
    ('All clients have one model', lambda run: run.client_models == 1),
    (
      'More than half of the clusters have a single client',
      lambda run: 2 * run.singletons > run.num_clusters,
    ),
    (
      'Models ended without clients',
      lambda run: run.collapse is not None and run.collapse.empty_models > 0,
    ),
  ):
    named = [
      f'{contender.name} ({_of_seeds(count, contender)})'
      for contender in several
      if (count := sum(collapsed(run) for run in contender.runs))
    ]
    if named:
      alarms.append(f'{words}: {series(named)}.')
  if len(statistics.seeds) < FEWEST_SEEDS:
    only = len(statistics.seeds) == 1
    alarms.append(
      f'Only {plural(len(statistics.seeds), "seed")} {"was" if only else "were"} run: '
      f'{"the intervals speak of clients alone" if only else "that is intervals and no verdict"}, and other seeds may '
      f'answer otherwise. Run at least {answer.for_verdicts(statistics)}.'
    )
  return alarms


def _wrong_groups(contender: Contender, runs: Runs) -> str:
  """Returns the contender with its best score; empty where its groups are right under every seed, or none are known."""
  by_seed = zip(*recoveries(contender, runs), strict=True)
  real = [[recovery for recovery in of_seed if recovery.is_structure] for of_seed in by_seed]
  # One truth that is met is enough: the others describe the same clients at another grain.
  best = [max(of_seed, key=lambda recovery: recovery.value) for of_seed in real if of_seed]
  wrong = [recovery for recovery in best if recovery.value < GROUPS_WRONG_BELOW]
  if not wrong:
    return ''
  lowest = min(wrong, key=lambda recovery: recovery.value)
  told = f'lowest {lowest.shown} for “{lowest.truth}”'
  return f'{contender.name} ({told}, wrong under {_of_seeds(len(wrong), contender)})'


def _of_seeds(count: int, contender: Contender) -> str:
  return f'{count} of {plural(len(contender.runs), "seed")}'
