"""Phase 2: every cluster of a clustering trained to the last round, whatever the clusters came from."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from tff_cluster.clustering import assignment as assignment_lib
from tff_cluster.phases import client_signatures
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.phases import training_while_clustering as recursion


@dataclasses.dataclass(frozen=True)
class EqualCost:
  """How far a clustering comes on the client-rounds that FedAvg without clusters spends in Phase 2.

  Attributes:
    round: The last round that it can pay; the last one of Phase 1 where it can pay none.
    client_rounds: What it has spent then, with what the clustering itself cost.
  """

  round: int
  client_rounds: int


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
  """The clusters of a clustering after Phase 2.

  Attributes:
    assignment: Who belongs to which cluster.
    clusters: One federated.trajectory.Outcome a cluster, that of its last rounds.
    outcomes: All trajectories; from the first round of Phase 2 on they hold every client in every round.
    client_rounds: What Phase 2 cost, with what the clustering itself cost.
    equal_cost: None where it cost no more than FedAvg without clusters.
  """

  assignment: assignment_lib.ClusterAssignment
  clusters: list[Any]
  outcomes: list[Any]
  client_rounds: int
  equal_cost: EqualCost | None = None


def train_clusters(experiment: live_experiment_lib.Experiment, label: str, log: bool = True) -> Trained:
  """Trains the clusters of a clustering, or reads what the store has of them.

  Args:
    experiment: The experiment.
    label: Which clustering.
    log: See Experiment.train; its costs are counted once, by the call that logs.
  """
  folder, training = experiment.folder, experiment.config.training
  saved = folder.load_finished(folder.clusters(label), 'clustering')
  assignment = assignment_lib.ClusterAssignment.from_json(saved)
  if folder.splits(label).exists():
    return _after_recursion(experiment, label, assignment, log)
  last = training.phase1_rounds + training.phase2_rounds
  starts = client_signatures.start_weights(experiment, assignment)
  if log:
    experiment.asked += client_signatures.start_cost(experiment, assignment)
  spent = _spent(experiment, saved, assignment)
  equal_cost = _equal_cost(experiment, assignment, spent)
  keep = () if equal_cost is None else (equal_cost.round,)
  members = [assignment.members(row) for row in range(assignment.num_clusters)]
  models = [experiment.unflatten(start) for start in starts]
  found = {
    row: experiment.train(
      f'{label}/cluster_{row:03d}', members[row], models[row], training.phase1_rounds, last, keep, log
    )
    for row in experiment.idle_first(members, models, training.phase1_rounds)
  }
  outcomes = [found[row] for row in range(assignment.num_clusters)]
  total = spent + sum(outcome.client_rounds_asked for outcome in outcomes)
  return Trained(assignment, outcomes, outcomes, total, equal_cost)


def rounds_kept_of_fedavg(experiment: live_experiment_lib.Experiment) -> set[int]:
  """Returns the rounds of FedAvg without clusters that `train_clusters` asks for where all clients are in one cluster.

  Such a cluster, from the global model, is FedAvg (federated.trajectory), so that its model at equal cost is kept with it.
  """
  if experiment.config.training.cluster_start != 'global_model':
    return set()
  rounds = set()
  for clustering in experiment.config.clusterings:
    saved = experiment.folder.load_finished(experiment.folder.clusters(clustering.label), 'clustering')
    assignment = assignment_lib.ClusterAssignment.from_json(saved)
    if assignment.num_clusters > 1 or experiment.folder.splits(clustering.label).exists():
      continue
    budget = _equal_cost(experiment, assignment, _spent(experiment, saved, assignment))
    if budget is not None:
      rounds.add(budget.round)
  return rounds


def _spent(
  experiment: live_experiment_lib.Experiment,
  saved: Mapping[str, Any],
  assignment: assignment_lib.ClusterAssignment,
) -> int:
  """Returns the client-rounds that a clustering cost before its clusters were trained."""
  kinds = client_signatures.kinds(experiment.config.training, (saved['signature'],))
  signatures = sum(client_signatures.cost(experiment, kind) for kind in kinds)
  choice = saved['choice']['other_client_rounds'] if saved['choice'] else 0
  return client_signatures.start_cost(experiment, assignment) + signatures + choice


def _equal_cost(
  experiment: live_experiment_lib.Experiment, assignment: assignment_lib.ClusterAssignment, spent: int
) -> EqualCost | None:
  training, trainer = experiment.config.training, experiment.trainer
  rounds = range(training.phase1_rounds + 1, training.phase1_rounds + training.phase2_rounds + 1)
  members = [assignment.members(row) for row in range(assignment.num_clusters)]
  budget = sum(len(trainer.cohort(experiment.everyone, number)) for number in rounds)
  for number in rounds:
    cost = sum(len(trainer.cohort(cluster, number)) for cluster in members)
    if spent + cost > budget:
      return EqualCost(number - 1, spent)
    spent += cost
  return None


def _after_recursion(
  experiment: live_experiment_lib.Experiment,
  label: str,
  assignment: assignment_lib.ClusterAssignment,
  log: bool,
) -> Trained:
  trained = recursion.trajectories(experiment, label, log)
  parents = {segment.parent for segment, _ in trained}
  leaves = {
    tuple(segment.members): outcome for i, (segment, outcome) in enumerate(trained) if i not in parents
  }
  clusters = [leaves[tuple(assignment.members(row))] for row in range(assignment.num_clusters)]
  outcomes = [outcome for _, outcome in trained]
  first = experiment.config.training.phase1_rounds + 1
  total = sum(len(o.members) * int(np.sum(o.history.rounds >= first)) for o in outcomes)
  return Trained(assignment, clusters, outcomes, total)
