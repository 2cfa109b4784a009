"""The overlap dial of a comparison: what accuracy costs as clusters go from one client each to all clients together.

Beside the positions stands what a user could do who must choose one: under every seed the position whose clients have the
highest validation accuracy after the last round that the budget pays. It is chosen without test rows, so it may be compared with other
methods.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tff_cluster.base.words import percent, plural
from tff_cluster.clustering import overlap_dial
from tff_cluster.report import costs
from tff_cluster.report.pages import Section, Table
from tff_cluster.report.pictures import Picture
from tff_cluster.scorecard import paired_statistics, paired_verdicts
from tff_cluster.scorecard.claims import Finding
from tff_cluster.scorecard.contenders import BUDGETS, ROUNDS, Contender, Measured, Runs, read_positions
from tff_cluster.scorecard.paired_statistics import OnValidation, Statistics, Summary
from tff_cluster.studies.comparison import sections
from tff_cluster.studies.comparison.verdicts import OF_VERDICT, Check

CHOSEN = 'the dial, chosen on validation rows'


@dataclasses.dataclass(frozen=True, eq=False)
class Dial:
  """The dial of a comparison.

  Attributes:
    positions: One contender each, from every client alone to all together.
    quantiles: Of the distances, one a position; None for the first, whose threshold is 0.
    thresholds: float[positions][seeds], the distances that the quantiles are.
    chosen: Under every seed and at each budget the accuracy of the position with the highest validation accuracy, of equal ones the
      cheapest; what has no budget is of the one at equal rounds.
    chosen_positions: By budget, int[seeds].
    statistics: Of FedAvg without clusters, the positions and `chosen`.
    against: By budget, `chosen` against the disjoint clustering that validation rows choose; None without one.
  """

  positions: tuple[Contender, ...]
  quantiles: tuple[float | None, ...]
  thresholds: tuple[tuple[float, ...], ...]
  chosen: Contender
  chosen_positions: Mapping[str, tuple[int, ...]]
  statistics: Statistics
  against: Mapping[str, OnValidation | None]

  def summary(self, contender: Contender, budget: str) -> Summary:
    return self.statistics.summary(contender.name, budget)

  def label(self, position: int) -> str:
    """Returns what a position is called beside an axis."""
    value = self.quantiles[position]
    return 'alone' if value is None else 'together' if value == 1.0 else f'{value:.2g}'


def read_dial(runs: Runs, contenders: Sequence[Contender], target: float) -> Dial | None:
  """Returns the dial of runs that have one, else None.

  Args:
    runs: Checked runs, by ascending seed.
    contenders: The rows of the comparison.
    target: Test accuracy that clients are to reach.
  """
  positions = read_positions(runs)
  if not positions:
    return None
  of_runs = [[results.clustering(each.name) for each in positions] for _, results in runs]
  unit = runs[0][1].config.evaluation.budget
  best = {
    budget: tuple(_best([each.runs[k] for each in positions], budget, unit) for k in range(len(runs)))
    for budget in positions[0].runs[0].accuracy
  }
  chosen = Contender(CHOSEN, 'overlapping', tuple(_chosen(positions, best, k) for k in range(len(runs))))
  fedavg, disjoint = ([c for c in contenders if c.kind == kind] for kind in ('fedavg', 'disjoint'))
  return Dial(
    positions=tuple(positions),
    quantiles=tuple(overlap_dial.quantile(str(c.parameters[str(c.dial)])) for c in of_runs[0]),
    thresholds=tuple(zip(*([float(c.threshold or 0.0) for c in found] for found in of_runs), strict=True)),
    chosen=chosen,
    chosen_positions=best,
    statistics=paired_statistics.measure([*fedavg, *positions, chosen], target),
    against=paired_statistics.measure([*fedavg, *disjoint, chosen], target).chosen,
  )


def _best(found: Sequence[Measured], budget: str, unit: str) -> int:
  """Returns the position whose run has the highest validation accuracy at a budget, of equal ones the cheapest."""
  return min(range(len(found)), key=lambda k: (-found[k].validation[budget], found[k].cost[budget].of(unit)))


def _chosen(positions: Sequence[Contender], best: Mapping[str, Sequence[int]], seed: int) -> Measured:
  """Returns the runs of the chosen positions under the seed of this number as one, see Dial.chosen."""
  of_budget = {budget: positions[places[seed]].runs[seed] for budget, places in best.items()}
  return dataclasses.replace(
    of_budget[ROUNDS],
    accuracy={budget: run.accuracy[budget] for budget, run in of_budget.items()},
    validation={budget: run.validation[budget] for budget, run in of_budget.items()},
    cost={budget: run.cost[budget] for budget, run in of_budget.items()},
  )


def hindsight(dial: Dial, budget: str) -> int:
  """Returns the position with the highest mean test accuracy: what nobody can choose without test rows."""
  return int(np.argmax([dial.summary(position, budget).mean.mean for position in dial.positions]))


def make_checks(dial: Dial) -> list[Check]:
  """Returns whether the dial beats the disjoint clusterings, both chosen on validation rows, at either budget."""
  checks = []
  for budget, found in dial.against.items():
    statement = f'The dial beats disjoint clusterings, both chosen on validation rows, at {BUDGETS[budget]}'
    if found is None:
      finding = Finding('not run', '–', 'these runs have no disjoint clustering')
    else:
      (verdict,) = paired_verdicts.judge([found.difference])
      finding = Finding(
        OF_VERDICT.get(verdict, verdict), found.difference.words, f'against {found.disjoint.name}'
      )
    checks.append(Check(statement, 'dial', (budget,), finding))
  return checks


def sentences(dial: Dial) -> list[str]:
  """Returns where the dial stands best, by validation rows and in hindsight."""
  summary = dial.summary(dial.chosen, ROUNDS)
  memberships = float(np.mean([run.memberships for run in dial.chosen.runs]))
  places = ', '.join(dial.label(position) for position in dial.chosen_positions[ROUNDS])
  told = [
    f'Chosen on validation rows under every seed ({places}), the dial attains {percent(summary.mean.mean)} at equal rounds, '
    f'{summary.gain.words} against FedAvg, with {memberships:.1f} memberships a client.'
  ]
  position = hindsight(dial, ROUNDS)
  best = dial.summary(dial.positions[position], ROUNDS)
  overlap = float(np.mean([run.memberships for run in dial.positions[position].runs]))
  told.append(
    f'In hindsight, by test rows, the best of {plural(len(dial.positions), "position")} is “{dial.label(position)}”: '
    f'{percent(best.mean.mean)} with {overlap:.1f} memberships a client.'
  )
  return told


def section(dial: Dial, pictures: Sequence[Picture]) -> Section:
  """Returns the dial's sentences, its check and the table of its positions."""
  _, equal_cost = dial.statistics.summaries
  header = (
      '', 'threshold', 'clusters', 'memberships', 'at equal rounds', 'against FedAvg', 'harmed', f'at {BUDGETS[equal_cost]}', 'against FedAvg',
      *costs.HEADER,
  )  # fmt: skip
  rows = []
  for position, contender in enumerate(dial.positions):
    free, paid = (dial.summary(contender, budget) for budget in (ROUNDS, equal_cost))
    rows.append((
        dial.label(position), f'{np.mean(dial.thresholds[position]):.3g}', _mean([run.num_clusters or 0 for run in contender.runs]),
        _mean([run.memberships for run in contender.runs]), *sections.accuracy_cells(free), percent(free.gain.harmed),
        *sections.accuracy_cells(paid), *costs.cells([run.cost[ROUNDS] for run in contender.runs]),
    ))  # fmt: skip
  data = {
    'sentences': sentences(dial),
    'checks': sections.checks_table(make_checks(dial), 'statement'),
    'positions': Table(header, rows, range(1, len(header))),
    'pictures': pictures,
  }
  return Section('The overlap dial', sections.TEMPLATE, 'dial', data)


def _mean(values: Sequence[float]) -> str:
  return f'{np.mean(values):.1f}'
