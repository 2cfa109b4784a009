"""Accuracies of every contender at both budgets, and paired differences with intervals over seeds and clients."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.scorecard import chosen_on_validation
from tff_cluster.scorecard.contenders import REFERENCES, ROUNDS, Contender, owners
from tff_cluster.scorecard.intervals import SAME, Interval, SignTest, cautious_intervals, sign_test

# As in a run's history: a client with 99 of 100 rows right is at a target of 0.99, whatever the binary fractions say.
_SLACK = 1e-9


@dataclasses.dataclass(frozen=True)
class Difference:
  """Accuracy of one contender minus accuracy of another, client by client under the same seed.

  Attributes:
    interval: Mean of the seeds' means, with its 95% interval over seeds and clients.
    inner: The same with its 90% interval.
    clients: Signs over all clients of all seeds. Clients of a seed share models, so its p-value is too small.
    seeds: Signs of the seeds' means.
    harmed: Share of clients that are worse off, a mean over seeds.
    spread: Standard deviation of the seeds' means; None for one seed.
    by_seed: The seeds' means.
  """

  interval: Interval
  inner: Interval
  clients: SignTest
  seeds: SignTest
  harmed: float
  spread: float | None = None
  by_seed: tuple[float, ...] = ()

  def to_json(self) -> dict[str, Any]:
    """Returns it as pages' JSON has it, with its side."""
    return dataclasses.asdict(self) | {'side': self.side}

  @classmethod
  def of(cls, gains: Sequence[np.ndarray], interval: Interval, inner: Interval) -> 'Difference':
    """Returns the difference of float[clients] by seed, with its intervals at 95% and 90%."""
    means = np.array([gain.mean() for gain in gains])
    return cls(
      interval=interval,
      inner=inner,
      clients=sign_test(np.concatenate(gains)),
      seeds=sign_test(means),
      harmed=float(np.mean([np.mean(gain < -SAME) for gain in gains])),
      spread=float(np.std(means, ddof=1)) if len(means) > 1 else None,
      by_seed=tuple(means.tolist()),
    )

  @property
  def side(self) -> str:
    """That of zero on which its interval lies."""
    return self.interval.side

  @property
  def words(self) -> str:
    """'+1.2 points (95% interval +0.3 to +2.1 points)'."""
    return self.interval.words()

  @property
  def brief(self) -> str:
    """'+1.2 points, 95% interval +0.3 to +2.1'."""
    mean, span = self.interval.points
    return f'{mean}, 95% interval {span.removesuffix(" points")}' if span else mean


@dataclasses.dataclass(frozen=True)
class Summary:
  """One contender at one budget.

  Attributes:
    name, kind, kinds: See contenders.Contender.
    budget: A key of contenders.BUDGETS.
    mean: Mean client accuracy, with its 95% interval over seeds and clients.
    worst_decile: Mean accuracy of the lowest tenth of clients, a mean over seeds.
    at_target: Share of clients at the target accuracy, a mean over seeds.
    over: Against what clusterings are compared with, by kind (contenders.REFERENCES); None for itself, and where it was not run.
  """

  name: str
  kind: str
  budget: str
  mean: Interval
  worst_decile: float
  at_target: float
  over: Mapping[str, Difference | None]
  kinds: tuple[str, ...]

  @property
  def is_clustering(self) -> bool:
    return self.kind not in REFERENCES

  @property
  def over_fedavg(self) -> Difference | None:
    """The difference to FedAvg without clusters; None for itself."""
    return self.over['fedavg']

  @property
  def gain(self) -> Difference:
    """The difference to FedAvg without clusters, of anybody else."""
    if self.over_fedavg is None:
      raise ValueError(f'{self.name} is what clusterings are compared with')
    return self.over_fedavg


@dataclasses.dataclass(frozen=True)
class Pair:
  """An overlapping contender against a disjoint one, or against the oracle, at one budget; a contender may be both of these."""

  overlapping: str
  other: str
  other_kinds: tuple[str, ...]
  budget: str
  difference: Difference


@dataclasses.dataclass(frozen=True)
class OnValidation:
  """The overlapping clustering that validation rows choose under each seed, against the disjoint one that they choose.

  Attributes:
    overlapping, disjoint: Their numbers, see chosen_on_validation.choose.
    difference: The first minus the second.
  """

  overlapping: Summary
  disjoint: Summary
  difference: Difference


@dataclasses.dataclass(frozen=True)
class TrainedOn:
  """A contender whose clients trained their own models on by a rule of Phase 3, at equal rounds.

  Attributes:
    name: See contenders.Contender.
    rule: The rule's name.
    mean: Mean client accuracy, with its 95% interval over seeds and clients.
    over: Against FedAvg without clusters and fine-tuned FedAvg, by kind; None where the latter was not run.
  """

  name: str
  rule: str
  mean: Interval
  over: Mapping[str, Difference | None]


@dataclasses.dataclass(frozen=True)
class Statistics:
  """All numbers of a comparison.

  Attributes:
    seeds: The seeds, ascending.
    target: Test accuracy that clients are to reach.
    summaries: By the budgets of the runs, one for each contender in their order.
    pairs: By budget, the matrix of overlapping contenders against disjoint ones and the oracle.
    chosen: By budget, overlap against disjoint; None where either is missing.
    trained_on: Rule by rule, the contenders in their order.
  """

  seeds: tuple[int, ...]
  target: float
  summaries: dict[str, tuple[Summary, ...]]
  pairs: dict[str, tuple[Pair, ...]]
  chosen: dict[str, OnValidation | None]
  trained_on: tuple[TrainedOn, ...] = ()

  @property
  def budgets(self) -> tuple[str, ...]:
    """The budgets that are worth telling apart: the first alone where nobody's numbers differ between them."""
    first, *others = self.summaries
    numbers = {
      budget: [(s.mean, s.worst_decile, s.over_fedavg) for s in found]
      for budget, found in self.summaries.items()
    }
    return (first, *(budget for budget in others if numbers[budget] != numbers[first]))

  def summary(self, name: str, budget: str) -> Summary:
    return next(found for found in self.summaries[budget] if found.name == name)

  def pair(self, overlapping: str, other: str, budget: str) -> Pair:
    return next(p for p in self.pairs[budget] if (p.overlapping, p.other) == (overlapping, other))


def measure(contenders: Sequence[Contender], target: float, samples: int = 10_000) -> Statistics:
  """Returns the numbers of a comparison.

  Every interval has the same draws of seeds and clients, so that equal contenders have equal intervals.

  Args:
    contenders: All of the same seeds, FedAvg without clusters among them.
    target: Test accuracy that clients are to reach.
    samples: Bootstrap samples of an interval.
  """
  seeds = tuple(run.seed for run in contenders[0].runs)
  budgets = tuple(contenders[0].runs[0].accuracy)
  clients = owners(contenders)

  @functools.cache
  def of_bytes(values: tuple[bytes, ...]) -> list[Interval]:
    arrays = [np.frombuffer(value) for value in values]
    return cautious_intervals(arrays, seeding.generator(seeds[0], 'comparison'), samples, clients=clients)

  def intervals(values: Sequence[np.ndarray]) -> list[Interval]:
    return of_bytes(tuple(value.tobytes() for value in values))

  def difference(first: Contender, second: Contender, budget: str) -> Difference:
    values = [
      one.accuracy[budget] - two.accuracy[budget] for one, two in zip(first.runs, second.runs, strict=True)
    ]
    return Difference.of(values, *intervals(values))

  def against(contender: Contender, kind: str, budget: str) -> Difference | None:
    reference = next((c for c in contenders if c.kind == kind), None)
    return None if reference is None or reference is contender else difference(contender, reference, budget)

  def summary(contender: Contender, budget: str) -> Summary:
    accuracies = [run.accuracy[budget] for run in contender.runs]
    return Summary(
      name=contender.name,
      kind=contender.kind,
      kinds=contender.kinds,
      budget=budget,
      mean=share_interval(intervals(accuracies)[0]),
      worst_decile=float(np.mean([worst_decile(own) for own in accuracies])),
      at_target=float(np.mean([at_target(own, target) for own in accuracies])),
      over={kind: against(contender, kind, budget) for kind in REFERENCES},
    )

  def on_validation(budget: str) -> OnValidation | None:
    overlapping, disjoint = (
      chosen_on_validation.choose(contenders, kind, budget) for kind in ('overlapping', 'disjoint')
    )
    if overlapping is None or disjoint is None:
      return None
    of_both = summary(overlapping, budget), summary(disjoint, budget)
    return OnValidation(*of_both, difference(overlapping, disjoint, budget))

  def trained_on(contender: Contender, rule: str) -> TrainedOn:
    runs = tuple(dataclasses.replace(run, accuracy={ROUNDS: run.trained_on[rule]}) for run in contender.runs)
    tuned = dataclasses.replace(contender, runs=runs)
    over = {kind: against(tuned, kind, ROUNDS) for kind in ('fedavg', 'fine_tuning')}
    return TrainedOn(
      contender.name, rule, share_interval(intervals([run.accuracy[ROUNDS] for run in runs])[0]), over
    )

  trained = dict.fromkeys(rule for contender in contenders for rule in contender.runs[0].trained_on)
  rows = [contender for contender in contenders if contender.kind == 'overlapping']
  columns = [contender for contender in contenders if not {'oracle', 'disjoint'}.isdisjoint(contender.kinds)]
  return Statistics(
    seeds,
    target,
    {budget: tuple(summary(contender, budget) for contender in contenders) for budget in budgets},
    {
      budget: tuple(
        Pair(row.name, column.name, column.kinds, budget, difference(row, column, budget))
        for row in rows
        for column in columns
        if column is not row
      )
      for budget in budgets
    },
    {budget: on_validation(budget) for budget in budgets},
    tuple(
      trained_on(contender, rule)
      for rule in trained
      for contender in contenders
      if rule in contender.runs[0].trained_on
    ),
  )


def share_interval(interval: Interval) -> Interval:
  """Returns the interval of an accuracy, of which nothing lies below 0 or above 1."""
  if interval.low is None or interval.high is None:
    return interval
  return Interval(interval.mean, max(interval.low, 0.0), min(interval.high, 1.0))


def worst_decile(accuracy: np.ndarray) -> float:
  """Returns the mean of the lowest tenth of float[clients], rounded down to whole clients but at least one."""
  count = max(len(accuracy) // 10, 1)
  return float(np.sort(accuracy)[:count].mean())


def at_target(accuracy: np.ndarray, target: float) -> float:
  """Returns the share of float[clients] that are at the target."""
  return float(np.mean(accuracy >= target - _SLACK))
