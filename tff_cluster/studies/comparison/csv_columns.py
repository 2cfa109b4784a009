"""comparison.csv: one line for each contender, seed and budget. A column is an entry here, and nothing else.

Accuracies and shares are from 0 to 1; a value that does not exist (None) is an empty cell.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base.cost import Cost
from tff_cluster.clustering.membership_history import Alternated
from tff_cluster.experiment.config import FEDAVG, PERSONALIZED
from tff_cluster.scorecard import paired_statistics
from tff_cluster.scorecard.contenders import BUDGETS, KINDS, ROUNDS, Contender, Measured
from tff_cluster.scorecard.intervals import SAME


@dataclasses.dataclass(frozen=True)
class Line:
  """What a line is about.

  Attributes:
    contender: The contender.
    run: It under one seed.
    budget: A key of contenders.BUDGETS.
    target: Test accuracy that clients are to reach.
    references: FedAvg and clients with models of their own under the same seed, by their kind, those that were run.
  """

  contender: Contender
  run: Measured
  budget: str
  target: float
  references: Mapping[str, Measured]

  @property
  def alternation(self) -> Alternated | None:
    return self.run.alternation

  def found(self, score: str) -> float | None:
    """Returns a score (clustering/recovery.py) as it is against the first of the planted groups; None without clusters or groups."""
    return None if self.run.found is None else getattr(self.run.found, score)

  @property
  def accuracy(self) -> np.ndarray:
    """float64[clients], test accuracy of every client with its own model."""
    return self.run.accuracy[self.budget]

  def harmed(self, reference: str) -> float | None:
    """Returns the share of clients that are worse off than with a reference; None without it, and for itself."""
    other = self.references.get(reference)
    if other is None or other is self.run:
      return None
    return float(np.mean(self.accuracy - other.accuracy[self.budget] < -SAME))


@dataclasses.dataclass(frozen=True)
class Column:
  """A column: its name, what it means in words, and how its value follows from a line."""

  name: str
  meaning: str
  value: Callable[[Line], Any]


def _cost(name: str, meaning: str) -> Column:
  """Returns the column of a part of the cost."""
  return Column(name, meaning, lambda line: getattr(line.run.cost[line.budget], name))


_BEFORE_RULES = (
  Column(
    'contender', 'label of the clustering, or of what it is compared with', lambda line: line.contender.name
  ),
  Column('kind', f'one of {", ".join(KINDS)}', lambda line: line.contender.kind),
  Column('seed', 'of training', lambda line: line.run.seed),
  Column(
    'budget',
    f'one of {", ".join(BUDGETS)}; runs have the first and one of the others',
    lambda line: line.budget,
  ),
  Column('clients', 'number of clients', lambda line: len(line.accuracy)),
  Column('accuracy', 'mean over clients with their own models', lambda line: float(line.accuracy.mean())),
  Column(
    'worst_decile',
    'mean over the lowest tenth of the clients',
    lambda line: paired_statistics.worst_decile(line.accuracy),
  ),
  Column(
    'at_target',
    'share of clients at the target accuracy',
    lambda line: paired_statistics.at_target(line.accuracy, line.target),
  ),
  Column(
    'validation',
    'mean over clients of the accuracy on their validation rows, by which a clustering of a kind is chosen',
    lambda line: line.run.validation.get(line.budget),
  ),
  *(
    Column(
      f'harmed_{kind}',
      f'share of clients worse off than with {words}',
      functools.partial(Line.harmed, reference=kind),
    )
    for kind, words in {'fedavg': FEDAVG, **PERSONALIZED}.items()
  ),
)
_AFTER_RULES = (
  Column('num_clusters', 'clusters', lambda line: line.run.num_clusters),
  Column('singletons', 'clusters with one client', lambda line: line.run.singletons),
  Column('memberships', 'mean number of clusters of a client', lambda line: line.run.memberships),
  Column(
    'client_models', 'different models that clients have of their own', lambda line: line.run.client_models
  ),
  *(_cost(field.name, 'It is of Phase 2 and of finding the clusters.') for field in dataclasses.fields(Cost)),
  _cost('passes', 'of rows forward, one that is trained on counts as three'),
  Column(
    'ari', 'adjusted Rand index against the first of the planted groups', lambda line: line.found('ari')
  ),
  Column('omega', 'Omega index against them', lambda line: line.found('omega')),
  Column(
    'share_error',
    'how far shares in clusters are from their planted ones',
    lambda line: line.found('share_error'),
  ),
  Column(
    'collapsed',
    'of a method that alternates with training: 1 where a model ended without clients, or all clients with one model, else 0',
    lambda line: line.run.collapse and int(line.run.collapse.happened),
  ),
  Column(
    'empty_models',
    'likewise: how many models ended without clients',
    lambda line: line.run.collapse and line.run.collapse.empty_models,
  ),
  Column(
    'changed_last',
    'likewise: clients that changed their model in the last round',
    lambda line: line.alternation and line.alternation.changed[-1],
  ),
)


def _by_rule(accuracies: str, rule: str) -> Callable[[Line], float | None]:
  """Returns what tells a rule's accuracy, which is known at equal rounds only."""
  return lambda line: getattr(line.run, accuracies).get(rule) if line.budget == ROUNDS else None


def columns(contenders: Sequence[Contender]) -> list[Column]:
  """Returns the columns; those of the rules of Phase 3 are of the rules that any contender has."""
  runs = [run for contender in contenders for run in contender.runs]
  return with_rules(
    dict.fromkeys(rule for run in runs for rule in run.global_accuracy),
    dict.fromkeys(rule for run in runs for rule in run.rule_accuracy),
  )


def with_rules(everybodys: Iterable[str], of_clients: Iterable[str]) -> list[Column]:
  """Returns the columns where these rules have an accuracy on the global test set, and these one of the clients."""
  return [
    *_BEFORE_RULES,
    *(
      Column(
        f'global_{rule}',
        f'{rule}: accuracy on the global test set; of a rule that makes a model for each cluster, mean over clusters',
        _by_rule('global_accuracy', rule),
      )
      for rule in everybodys
    ),
    *(
      Column(
        f'clients_{rule}',
        f'{rule}: mean over clients',
        _by_rule('rule_accuracy', rule),
      )
      for rule in of_clients
    ),
    *_AFTER_RULES,
  ]


def lines(contenders: Sequence[Contender], target: float) -> list[dict[str, Any]]:
  """Returns the lines of comparison.csv, by column; all lines have the same columns.

  Args:
    contenders: The rows of the comparison.
    target: Test accuracy that clients are to reach.
  """
  found = columns(contenders)
  return [{column.name: column.value(line) for column in found} for line in _lines(contenders, target)]


def _lines(contenders: Sequence[Contender], target: float) -> Iterator[Line]:
  references = {
    contender.kind: {run.seed: run for run in contender.runs}
    for contender in contenders
    if not contender.is_clustering
  }
  for contender in itertools.chain.from_iterable(row.each for row in contenders):
    for run in contender.runs:
      of_seed = {kind: runs[run.seed] for kind, runs in references.items()}
      for budget in run.accuracy:
        yield Line(contender, run, budget, target, of_seed)
