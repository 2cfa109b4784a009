"""Who is compared: one contender for each row of the comparison, read from the results of several seeds.

Two budgets are told apart. At equal rounds a client of several clusters trains for each of them, which costs more than
FedAvg; at equal cost, in client-rounds, bytes or passes as the runs' `budget` says, it stops when it has spent what FedAvg without
clusters spends in Phase 2.
"""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import EVERYBODY, TrainingRule
from tff_cluster.base.cost import Cost
from tff_cluster.base.errors import InputError
from tff_cluster.base.grouping import by_key
from tff_cluster.clustering import overlap_dial
from tff_cluster.clustering.membership_history import Alternated, Collapse
from tff_cluster.clustering.recovery import Recovery, all_in_all
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.config import FEDAVG, PERSONALIZED
from tff_cluster.experiment.measured import Evaluation, Personalized
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.experiment.results import Results
from tff_cluster.scorecard import identical_clusterings

# Kinds of what clusterings are compared with, FedAvg first, and what they are called beside a difference.
REFERENCES = {'fedavg': 'FedAvg', 'local': 'alone', 'fine_tuning': 'fine-tuned', 'ditto': 'Ditto'}
KINDS = (*REFERENCES, 'oracle', 'disjoint', 'overlapping')
# With their words. Runs have two, equal rounds and one of the others.
BUDGETS = {
  'equal_rounds': 'equal rounds',
  'equal_client_rounds': 'equal client-rounds',
  'equal_bytes': 'equal bytes',
  'equal_passes': 'equal passes',
}
ROUNDS, CLIENT_ROUNDS, BYTES, PASSES = BUDGETS
# What equal cost is, by the configuration's `budget`.
EQUAL_COST = {'rounds': CLIENT_ROUNDS, 'bytes': BYTES, 'passes': PASSES}
# What runs of one experiment may differ in: the seeds, and where the rows lie on a machine.
_FREE = {'training': ('seed',), 'data': ('data_seed', 'data_dir', 'data_file')}
Runs = Sequence[tuple[int, Results]]
_Value = TypeVar('_Value')


@dataclasses.dataclass(frozen=True, eq=False)
class Measured:
  """One contender under one seed.

  Attributes:
    seed: The seed.
    accuracy: float[clients] by budget, ROUNDS before that of equal cost, test accuracy of every client with its own model, 0 to 1.
    global_accuracy: By rule of Phase 3, accuracy on the global test set at equal rounds: of the one model, or the one way of
      predicting, that a rule has for everybody, else the mean over clusters of the models that it makes of theirs (blended);
      empty for rules without, and for clients alone. For FedAvg it is that of its one model under every rule.
    rule_accuracy: By rule other than that of `accuracy`, mean test accuracy of the clients at equal rounds; empty where
      nothing is clustered.
    clusters: The clusters, whatever their order; None where nothing is clustered.
    num_clusters: Number of clusters; None where nothing is clustered.
    singletons: Number of clusters with one client.
    memberships: Mean number of clusters of a client.
    client_models: How many different models clients have of their own.
    recovery: Scores by planted grouping, see tff_cluster/clustering/recovery.py; empty where nothing is clustered.
    cost: By budget, of Phase 2 and of finding the clusters. Baselines in which clients have models of their own cost all their rounds
      less FedAvg's Phase 1; they are not stopped earlier and cost the same at both.
    alternation: What rounds that alternated between clustering and training came to; None where there were none.
    collapse: What they had lost of their models at the end; None likewise.
    members_tell: False where every client is in every one of several clusters, see Clustering.members_tell.
    validation: By budget, mean over clients of the accuracy of their own models on validation rows; of runs that were kept before 2026-11-29 and
      have overlapping clusters which do not alternate, of their clusters' models. Empty where nothing is clustered.
    is_mixed: Whether every client has a share in each of the first planted groups, or in each of several clusters, so that members tell
      no two of them apart.
    trained_on: By training rule of Phase 3, float[clients], test accuracy of every client that trained its own model on; at equal
      rounds.
    owners: The clients' ids where the rows came with their owners, who may stand under several seeds; None where a seed deals the
      rows out anew.
  """

  seed: int
  accuracy: Mapping[str, np.ndarray]
  global_accuracy: Mapping[str, float]
  rule_accuracy: Mapping[str, float]
  clusters: frozenset[frozenset[str]] | None
  num_clusters: int | None
  singletons: int
  memberships: float
  client_models: int
  recovery: Mapping[str, Recovery]
  cost: Mapping[str, Cost]
  alternation: Alternated | None = None
  collapse: Collapse | None = None
  members_tell: bool = True
  validation: Mapping[str, float] = dataclasses.field(default_factory=dict)
  is_mixed: bool = False
  trained_on: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
  owners: Sequence[str] | None = None

  @property
  def found(self) -> Recovery | None:
    """Scores against the first of the planted groups; None without clusters or groups."""
    return next(iter(self.recovery.values()), None)

  @property
  def ari(self) -> float | None:
    """Adjusted Rand index against the first of the planted groups; None without, and where either side overlaps."""
    return None if self.found is None else self.found.ari

  @property
  def omega(self) -> float | None:
    """Omega index against the first of the planted groups; None without, and where members tell nothing of them."""
    return None if self.found is None or self.is_mixed else self.found.omega

  @property
  def share_match(self) -> float | None:
    """1 minus the share error where members tell nothing of the first planted groups, else None."""
    return 1.0 - self.found.share_error if self.found is not None and self.is_mixed else None


@dataclasses.dataclass(frozen=True, eq=False)
class Contender:
  """A row of the comparison.

  Attributes:
    name: FEDAVG, a title of config.PERSONALIZED, or the label of a clustering; of identical ones all their labels, see identical_clusterings.joined.
    kind: One of KINDS; a clustering that overlaps under any seed is 'overlapping', planted groups are 'oracle'. Where a
      method found just those, it is the method's.
    runs: One a seed, by ascending seed.
    parts: The contenders that it stands for, as they were asked for; none: itself alone.
  """

  name: str
  kind: str
  runs: tuple[Measured, ...]
  parts: tuple['Contender', ...] = ()

  @property
  def is_clustering(self) -> bool:
    return self.kind not in REFERENCES

  @property
  def each(self) -> tuple['Contender', ...]:
    """The contenders that it stands for, itself where it stands for no others."""
    return self.parts or (self,)

  @property
  def kinds(self) -> tuple[str, ...]:
    """The kinds of what it stands for, each once."""
    return tuple(dict.fromkeys(part.kind for part in self.each))


def read_contenders(runs: Runs) -> list[Contender]:
  """Returns FedAvg, the baselines of clients with models of their own, and every clustering in the order of the configuration.

  Clusterings with the same clusters and accuracies under every seed, at either budget, are one contender. Positions of the overlap dial are left out, see `read_positions`: a sweep is no contender.

  Args:
    runs: Seed and results of finished runs that differ in the seed only.

  Raises:
    InputError: if there are no runs, a seed is there twice or is not that of its run, the runs are not of one
      experiment.
  """
  ordered = checked(runs)
  contenders = [Contender(FEDAVG, 'fedavg', tuple(_fedavg(*run) for run in ordered))]
  for name, title in PERSONALIZED.items():
    own = [
      _personalized(seed, results, each)
      for seed, results in ordered
      for each in results.personalized
      if each.name == name
    ]
    if len(own) == len(ordered):
      contenders.append(Contender(title, name, tuple(own)))
  for label, found in _by_label(ordered).items():
    if overlap_dial.is_position(label):
      continue
    overlapping = any(entry.overlapping for *_, entry in found)
    kind = 'oracle' if found[0][2].kind == 'oracle' else 'overlapping' if overlapping else 'disjoint'
    contenders.append(Contender(label, kind, tuple(_clustering(*entry) for entry in found)))
  return [_together(same) for same in by_key(contenders, _identity).values()]


def _identity(contender: Contender) -> Hashable:
  if not contender.is_clustering:
    return contender.name
  return tuple(
    (run.clusters, *(accuracy.tobytes() for accuracy in run.accuracy.values())) for run in contender.runs
  )


def _together(same: Sequence[Contender]) -> Contender:
  if len(same) == 1:
    return same[0]
  kind = next((c.kind for c in same if c.kind != 'oracle'), 'oracle')
  return Contender(identical_clusterings.joined(c.name for c in same), kind, same[0].runs, tuple(same))


def read_positions(runs: Runs) -> list[Contender]:
  """Returns the positions of the overlap dial as overlapping contenders, in their order; none where it was not turned.

  Args:
    runs: Checked runs, by ascending seed.
  """
  return [
    Contender(label, 'overlapping', tuple(_clustering(*entry) for entry in found))
    for label, found in _by_label(runs).items()
    if overlap_dial.is_position(label)
  ]


def _by_label(runs: Runs) -> dict[str, list[tuple[int, Results, Clustering]]]:
  """Returns each clustering under all seeds, in the order of the first one; runs to which some were added later have others."""
  of_run = [{each.label: each for each in results.clusterings} for _, results in runs]
  return {
    label: [(seed, results, own[label]) for (seed, results), own in zip(runs, of_run, strict=True)]
    for label in of_run[0]
  }


def checked(runs: Runs) -> list[tuple[int, Results]]:
  """Returns the runs by ascending seed; raises InputError as `read_contenders` does."""
  if not runs:
    raise InputError('a comparison needs at least one finished run, given none')
  ordered = sorted(runs, key=lambda run: run[0])
  seeds = [seed for seed, _ in ordered]
  if repeated := sorted({seed for seed in seeds if seeds.count(seed) > 1}):
    raise InputError(f'seed {repeated[0]} is given twice; a comparison takes one run a seed')
  first: dict[str, Any] = {}
  for seed, results in ordered:
    own = results.config.training.seed
    if own != seed:
      raise InputError(f'the run given for seed {seed} was trained with seed {own}')
    plain = _without_seeds(results)
    first = first or plain
    if differing := sorted(name for name in {**first, **plain} if first.get(name) != plain.get(name)):
      name = differing[0]
      raise InputError(
        f'runs of one experiment differ in the seed only: {name} is {first.get(name)!r} for seed {seeds[0]} and '
        f'{plain.get(name)!r} for seed {seed}'
      )
  return ordered


def _without_seeds(results: Results) -> dict[str, Any]:
  """Returns the configuration's fields by dotted name."""
  plain = results.config.to_json()
  fields = {
    f'{section}.{name}': value
    for section in ('data', 'training', 'evaluation')
    for name, value in plain[section].items()
    if name not in _FREE.get(section, ())
  }
  # In whatever order: what failed and was run again, or was added later, is the last of its run.
  asked = {
    'clusterings': sorted(plain['clusterings'], key=str),
    'evaluation.aggregation': sorted(fields['evaluation.aggregation']),
    'clusterings that were run': sorted(c.label for c in results.clusterings),
  }
  return fields | asked


def client_accuracy(evaluation: Evaluation) -> np.ndarray:
  """Returns float64[clients], the test accuracy of every client, from 0 to 1."""
  return np.asarray(evaluation.client_accuracy, np.float64)


def _at_budgets(
  results: Results, at_rounds: _Value, at_equal_cost: _Value | None = None
) -> dict[str, _Value]:
  """Returns what a contender has at each budget; where nothing is given for equal cost, it is the same."""
  equal_cost = EQUAL_COST[results.config.evaluation.budget]
  return {ROUNDS: at_rounds, equal_cost: at_rounds if at_equal_cost is None else at_equal_cost}


def _fedavg(seed: int, results: Results) -> Measured:
  evaluation = results.baseline.evaluation
  assert evaluation.global_test is not None  # One model has one.
  right = evaluation.global_test.accuracy
  cost = _at_budgets(results, results.baseline.cost - results.phase1.cost)
  of_rules = [_global_accuracy(clustering) for clustering in results.clusterings]
  names = dict.fromkeys(name for found in of_rules for name in found)
  everybodys = dict.fromkeys(names or [rules.with_role(EVERYBODY).name], right)
  accuracy = _at_budgets(results, client_accuracy(evaluation))
  return Measured(
    seed, accuracy, everybodys, {}, None, None, 0, 1.0, 1, {}, cost,
    owners=results.population.client_ids if has_owners(results) else None,
  )  # fmt: skip


def has_owners(results: Results) -> bool:
  """Tells whether clients are the owners that the rows came with, the same ones whatever the seed."""
  return results.config.data.partition == 'by_writer'


def owners(contenders: Sequence[Contender]) -> list[Sequence[str]] | None:
  """Returns the clients of each seed where they are owners of their rows, else None: what intervals over seeds and clients take."""
  fedavg = next((c for c in contenders if c.kind == 'fedavg'), contenders[0])
  found = [run.owners for run in fedavg.runs if run.owners is not None]
  return found if len(found) == len(fedavg.runs) else None


def _personalized(seed: int, results: Results, found: Personalized) -> Measured:
  cost, accuracy = _at_budgets(results, found.cost), _at_budgets(results, client_accuracy(found.evaluation))
  clients = len(found.evaluation.client_accuracy)
  return Measured(seed, accuracy, {}, {}, None, None, 0, 1.0, clients, {}, cost)


def _global_accuracy(clustering: Clustering) -> dict[str, float]:
  """Returns Measured.global_accuracy of a clustering, in the order of pages."""
  found = {}
  for name, evaluation in clustering.evaluations.items():
    if evaluation.global_test is not None:
      found[name] = evaluation.global_test.accuracy
    elif name in clustering.cluster_scores:
      found[name] = float(np.mean(clustering.cluster_scores[name].global_test))
  return found


def _clustering(seed: int, results: Results, clustering: Clustering) -> Measured:
  of_clients, earlier = results_lib.own(clustering), clustering.equal_cost
  own = client_accuracy(of_clients)
  main = next(iter(clustering.recovery), None)
  return Measured(
    seed=seed,
    accuracy=_at_budgets(results, own, None if earlier is None else client_accuracy(earlier.evaluation)),
    global_accuracy=_global_accuracy(clustering),
    rule_accuracy={
      name: float(client_accuracy(evaluation).mean())
      for name, evaluation in clustering.evaluations.items()
      if evaluation is not of_clients
    },
    clusters=identical_clusterings.memberships(clustering),
    num_clusters=clustering.num_clusters,
    singletons=sum(len(members) == 1 for members in clustering.clusters),
    memberships=clustering.memberships,
    client_models=clustering.client_models,
    recovery=clustering.recovery,
    cost=_at_budgets(results, clustering.cost, None if earlier is None else earlier.cost),
    alternation=clustering.alternation,
    collapse=clustering.collapse,
    members_tell=clustering.members_tell,
    validation=_validation(results, clustering),
    is_mixed=main is not None
    and (not clustering.members_tell or all_in_all(np.asarray(results.population.truths[main]))),
    trained_on={
      rule.name: client_accuracy(clustering.evaluations[rule.name])
      for rule in results.rules
      if rule.kind == TrainingRule.kind and rule.name in clustering.evaluations
    },
  )


def _validation(results: Results, clustering: Clustering) -> dict[str, float]:
  """Returns Measured.validation."""
  if found := (results.validation or {}).get(clustering.label):
    return _at_budgets(results, found.at_end, found.at_equal_cost)
  history, earlier = clustering.history, clustering.equal_cost
  last = history.validation_accuracy[-1]
  if earlier is None:
    return _at_budgets(results, last)
  by_round = dict(zip(history.rounds, history.validation_accuracy, strict=True))
  told = earlier.validation_accuracy
  return _at_budgets(results, last, by_round[earlier.round] if told is None else told)
