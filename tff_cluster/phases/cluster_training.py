"""Phase 2: every cluster of a clustering trained to the last round, or what came of that read again."""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base.cost import Cost
from tff_cluster.base.types import Weights
from tff_cluster.clustering import assignment as assignment_lib
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.measured import EqualCost
from tff_cluster.phases import alternation, client_signatures, equal_cost, recursion
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import saved_rounds

if TYPE_CHECKING:
  from tff_cluster.federated import trajectory


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
  """The clusters of a clustering after Phase 2.

  Attributes:
    assignment: Who belongs to which cluster.
    outcomes: All trajectories; from the first round of Phase 2 on they hold every client in every round.
    last: Position in `outcomes` of the one that each cluster's last rounds are in.
    cost: What Phase 2 cost, with what the clustering itself cost.
    affordable: How far FedAvg's cost brings clusters that are trained as they are; None where it pays all of them.
    equal_cost: The same, measured, of a method that alternates.
  """

  assignment: assignment_lib.ClusterAssignment
  outcomes: list['trajectory.Outcome']
  last: list[int]
  cost: Cost
  affordable: equal_cost.Affordable | None = None
  equal_cost: EqualCost | None = None

  @property
  def clusters(self) -> list['trajectory.Outcome']:
    """The outcome of each cluster's last rounds."""
    return [self.outcomes[position] for position in self.last]

  def models(self, round_number: int) -> list[Weights]:
    """Returns each cluster's model after a round."""
    return [outcome.weights[round_number] for outcome in self.clusters]


@dataclasses.dataclass(frozen=True, eq=False)
class Loaded:
  """The clusters of a clustering whose Phase 2 has finished.

  Attributes:
    assignment: Who belongs to which cluster.
    models: The model of each cluster after the last round.
    phase2: What Phase 2 saved of them.
  """

  assignment: assignment_lib.ClusterAssignment
  models: list[Weights]
  phase2: phase_files.Phase2


def train_clusters(experiment: live_experiment_lib.Experiment, label: str) -> Trained:
  """Trains the clusters of a clustering; what the store has is not trained again."""
  folder = experiment.folder
  saved = folder.load_finished(folder.clusters(label), phase_files.Clusters)
  if folder.splits(label).exists():
    return _after_recursion(experiment, label, saved.assignment)
  if folder.alternation(label).exists():
    return _after_alternation(experiment, label, saved.assignment)
  work = Work(experiment, label)
  experiment.asked += client_signatures.start_cost(experiment, work.assignment.members_of_all).client_rounds
  found = experiment.each(work.train, work.idle_first())
  rows = list(range(work.assignment.num_clusters))
  outcomes = [found[row] for row in rows]
  for outcome in outcomes:
    experiment.count(outcome)
  total = sum((outcome.cost for outcome in outcomes), work.spent)
  return Trained(work.assignment, outcomes, rows, total, work.affordable)


class Work:
  """What Phase 2 is to train of a clustering of vectors: a trajectory a cluster.

  Attributes:
    assignment: The clusters.
    spent: What the clustering itself cost.
    affordable: See Trained.
  """

  def __init__(self, experiment: live_experiment_lib.Experiment, label: str):
    """Reads the clusters, and where each starts."""
    folder = experiment.folder
    saved = folder.load_finished(folder.clusters(label), phase_files.Clusters)
    self._experiment, self._label = experiment, label
    self.assignment = saved.assignment
    self.spent = equal_cost.of_finding(experiment, saved)
    self.affordable = equal_cost.Budget(experiment).of_clusters(self.assignment, self.spent)
    self._members = self.assignment.members_of_all
    starts = client_signatures.start_weights(experiment, self.assignment)
    self._starts = {row: experiment.unflatten(start) for row, start in enumerate(starts)}

  def train(self, row: int) -> 'trajectory.Outcome':
    """Trains a cluster to the last round, as far as the store lacks it; once, since it leaves the start behind."""
    training = self._experiment.config.training
    first, last = training.phase1_rounds, training.last_round
    keep = () if self.affordable is None else (self.affordable.round,)
    name = f'{self._label}/cluster_{row:03d}'
    return self._experiment.train(name, self._members[row], self._starts.pop(row), first, last, keep)

  def idle_first(self) -> Iterator[int]:
    """Yields the clusters, those last that another run on the same store is training just now."""
    return self._experiment.idle_first(
      self._members, list(self._starts.values()), self._experiment.config.training.phase1_rounds
    )


def load_clusters(experiment: live_experiment_lib.Experiment, label: str) -> Loaded:
  """Reads what `train_clusters` made, from the models that the file of Phase 2 names. Trains nothing.

  Raises:
    InputError: if Phase 2 of the clustering has not finished.
    MissingArtifact: if a model is not in the store any more, or damaged; Phase 2 makes it again.
    DamagedFile: if a file of the run is damaged.
  """
  folder, training = experiment.folder, experiment.config.training
  saved = folder.load_finished(folder.clusters(label), phase_files.Clusters)
  phase2 = folder.load_finished(folder.phase2(label), phase_files.Phase2)
  last = training.last_round
  models = experiment.load_each([phase2.trajectories[row] for row in phase2.last], 'phase2', last)
  return Loaded(saved.assignment, models, phase2)


def are_kept(experiment: live_experiment_lib.Experiment, label: str) -> bool:
  """Tells whether all models that the file of Phase 2 names can be read; damaged ones are set aside."""
  phase2 = experiment.folder.load_finished(experiment.folder.phase2(label), phase_files.Phase2)
  # Models of a method that alternates are in one file.
  several = {(saved.artifact, saved.rounds): saved for saved in phase2.trajectories}
  return all([saved_rounds.are_whole(experiment.store, saved) for saved in several.values()])


def rounds_kept_of_fedavg(experiment: live_experiment_lib.Experiment) -> set[int]:
  """Returns the rounds of FedAvg without clusters that `train_clusters` asks for where all clients are in one cluster.

  Such a cluster, from the global model, is FedAvg (federated.trajectory), so that its model at equal cost is kept with it.
  """
  if experiment.config.training.cluster_start != 'global_model':
    return set()
  rounds, budget = set(), equal_cost.Budget(experiment)
  for clustering in experiment.config.clusterings:
    path = experiment.folder.clusters(clustering.label)
    saved = experiment.folder.load_finished(path, phase_files.Clusters)
    assignment = saved.assignment
    if assignment.num_clusters > 1 or clustering.rule.trains:
      continue
    affordable = budget.of_clusters(assignment, equal_cost.of_finding(experiment, saved))
    if affordable is not None:
      rounds.add(affordable.round)
  return rounds


def _after_recursion(
  experiment: live_experiment_lib.Experiment, label: str, assignment: assignment_lib.ClusterAssignment
) -> Trained:
  trained = recursion.train_segments(experiment, label)
  leaves = recursion.leaves_of([segment for segment, _ in trained])
  position_of = {tuple(leaf.members): position for position, leaf in leaves.items()}
  last = [position_of[tuple(assignment.members(row))] for row in range(assignment.num_clusters)]
  outcomes = [outcome for _, outcome in trained]
  first = experiment.config.training.phase1_rounds + 1
  later = ((o.members, o.history.rounds[o.history.rounds >= first]) for o in outcomes)
  total = sum((experiment.trainer.cost_of_rounds(*each) for each in later), Cost())
  return Trained(assignment, outcomes, last, total)


def _after_alternation(
  experiment: live_experiment_lib.Experiment, label: str, assignment: assignment_lib.ClusterAssignment
) -> Trained:
  """Returns the clusters with what a trajectory of each would have: its model, and its clients' own accuracies round by round."""
  from tff_cluster.federated import trajectory

  record, saved = alternation.train(experiment, label), alternation.load(experiment.folder, label)
  start, last = saved.rounds.start_round, saved.rounds.rounds[-1]
  rounds, arrays = np.arange(start + 1, last + 1), len(experiment.trainer.computations.model.weights)
  outcomes = []
  for row, position in enumerate(saved.models):
    members = assignment.members(row)
    columns = {name: record[name] for name in saved_rounds.COLUMNS}
    history = {name: array[:, members] if array.ndim > 1 else array for name, array in columns.items()}
    # A round's updates that were left out are told once.
    history['dropped'] = history['dropped'] * (row == 0)
    kept = dataclasses.replace(saved.rounds, position=position)
    models = {last: saved_rounds.model(record, arrays, position)}
    outcomes.append(
      trajectory.Outcome(members, trajectory.History(rounds, **history), models, Cost(), 0, kept)
    )
  return Trained(assignment, outcomes, list(range(len(outcomes))), saved.cost, equal_cost=saved.equal_cost)
