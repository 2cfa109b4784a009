"""From trained models to the numbers in results.json (shapes and meanings: tff_cluster/experiment/measured.py)."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base.types import Weights
from tff_cluster.clustering import assignment as assignment_lib
from tff_cluster.data import class_counts
from tff_cluster.experiment.measured import ClusterScores, Evaluation, History, Stage
from tff_cluster.phases import client_scores, global_scores
from tff_cluster.phases import live_experiment as live_experiment_lib

if TYPE_CHECKING:
  from tff_cluster.federated import trajectory


def stage(
  experiment: live_experiment_lib.Experiment, outcome: 'trajectory.Outcome', last_round: int
) -> Stage:
  """Returns the numbers of unclustered FedAvg up to last_round."""
  weights = [array[None] for array in outcome.weights[last_round]]
  validation, test = _accuracies(experiment, outcome)
  return Stage(
    last_round,
    outcome.cost,
    history(experiment, outcome.history.rounds, validation, test),
    int(outcome.history.dropped.sum()),
    evaluation(experiment, weights, np.ones((1, 1))),
  )


def clustered_history(
  experiment: live_experiment_lib.Experiment, outcomes: Sequence['trajectory.Outcome'], first_round: int
) -> History:
  """Returns means over clients; a client in several clusters counts with the mean over them.

  Args:
    experiment: The experiment.
    outcomes: Trajectories; together they hold every client in every round from the first to the last.
    first_round: Rounds before it are left out.
  """
  rounds, validation, test = client_accuracies(experiment, outcomes, first_round)
  return history(experiment, rounds, validation, test)


def client_accuracies(
  experiment: live_experiment_lib.Experiment, outcomes: Sequence['trajectory.Outcome'], first_round: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Returns int64[rounds], and float64[rounds, clients] accuracies on validation and on test rows; see clustered_history."""
  rounds = np.arange(first_round, max(outcome.history.rounds[-1] for outcome in outcomes) + 1)
  sums = np.zeros((2, len(rounds), experiment.population.num_clients))
  counts = np.zeros(sums.shape[1:])
  for outcome in outcomes:
    held = outcome.history.rounds >= first_round
    place = np.ix_(outcome.history.rounds[held] - first_round, outcome.members)
    counts[place] += 1
    for kind, accuracy in enumerate(_accuracies(experiment, outcome)):
      sums[kind][place] += accuracy[held]
  validation, test = sums / counts
  return rounds, validation, test


def dropped_updates(outcomes: Sequence['trajectory.Outcome'], first_round: int) -> int:
  """Returns how many updates were not finite and left out, from a round on, over all trajectories."""
  return sum(int(o.history.dropped[o.history.rounds >= first_round].sum()) for o in outcomes)


def last_validation(experiment: live_experiment_lib.Experiment, outcome: 'trajectory.Outcome') -> float:
  """Returns the accuracy of a cluster's model after the last round over its members' validation rows."""
  weights = outcome.weights[int(outcome.history.rounds[-1])]
  validation = experiment.population.validation
  return experiment.trainer.measure(weights, validation, outcome.members).over_rows().accuracy


def best_validation(
  experiment: live_experiment_lib.Experiment, outcome: 'trajectory.Outcome', first_round: int
) -> float:
  """Returns the highest accuracy of a cluster's model in any round from the first on, over its members' validation rows."""
  rows = experiment.population.validation.counts[outcome.members].sum()
  held = outcome.history.rounds >= first_round
  return float((outcome.history.validation_correct[held].sum(axis=1) / rows).max())


def validation_accuracy(
  experiment: live_experiment_lib.Experiment,
  assignment: assignment_lib.ClusterAssignment,
  models: Sequence[Weights],
) -> float:
  """Returns the mean over clients of their accuracy on validation rows; see clustered_history.

  Args:
    experiment: The experiment.
    assignment: The clusters.
    models: One a cluster.
  """
  users = assignment.members_of_all
  found = experiment.trainer.measure_each(models, experiment.population.validation, users)
  clients = np.concatenate(users)
  sums = np.bincount(clients, found.client_accuracy, minlength=assignment.num_clients)
  return float((sums / np.bincount(clients, minlength=assignment.num_clients)).mean())


def evaluation(
  experiment: live_experiment_lib.Experiment,
  models: Sequence[np.ndarray],
  matrix: np.ndarray,
  known: dict[bytes, class_counts.Scores] | None = None,
) -> Evaluation:
  """Returns how good the models are that a mixing matrix makes.

  Args:
    experiment: The experiment.
    models: The cluster models, arrays with a leading axis [models].
    matrix: float64[models, clients], each client's model, or [models, 1], one model for everybody.
    known: See client_scores.measure.
  """
  of_clients = np.broadcast_to(matrix, (len(matrix), experiment.population.num_clients))
  columns, users = client_scores.distinct(of_clients)
  # Clients in different sets of clusters can make as many models as clients.
  result = client_scores.measure(experiment, models, columns, users, known).select(
    np.argsort(np.concatenate(users))
  )
  everybodys = None
  if columns.shape[1] == 1:
    _, (weights,) = next(client_scores.mixed(models, columns))
    everybodys = global_scores.metrics(experiment, weights)
  return Evaluation(everybodys, result.summary(), result.client_accuracy.tolist())


def cluster_scores(
  experiment: live_experiment_lib.Experiment,
  assignment: assignment_lib.ClusterAssignment,
  models: Sequence[np.ndarray],
  matrix: np.ndarray,
  known: dict[bytes, class_counts.Scores] | None = None,
) -> ClusterScores:
  """Returns each cluster model's accuracy on its members' test rows and on the global test set.

  Args:
    experiment: The experiment.
    assignment: The clusters.
    models: One model a cluster, arrays with a leading axis [clusters].
    matrix: float64[clusters, clusters], what is mixed of them for each cluster.
    known: See client_scores.measure.
  """
  users = assignment.members_of_all
  own = client_scores.measure(experiment, models, matrix, users, known)
  edges = np.cumsum([0, *map(len, users)])
  return ClusterScores(
    [own.select(slice(first, last)).over_rows().accuracy for first, last in itertools.pairwise(edges)],
    client_scores.global_accuracy(experiment, models, matrix),
  )


def _accuracies(
  experiment: live_experiment_lib.Experiment, outcome: 'trajectory.Outcome'
) -> tuple[np.ndarray, np.ndarray]:
  """Returns float64[rounds, members] accuracies on validation and on test rows."""
  population, members = experiment.population, outcome.members
  return (
    outcome.history.validation_correct / population.validation.counts[members],
    outcome.history.test_correct / population.test.counts[members],
  )


def history(
  experiment: live_experiment_lib.Experiment, rounds: np.ndarray, validation: np.ndarray, test: np.ndarray
) -> History:
  """Returns the means over clients of accuracies float64[rounds, clients]."""
  # A client with 99 of 100 rows right is at a target of 0.99, whatever the binary fractions say.
  target = experiment.config.evaluation.target_accuracy - 1e-9
  return History(
    [int(r) for r in rounds],
    validation.mean(axis=1).tolist(),
    test.mean(axis=1).tolist(),
    (test >= target).mean(axis=1).tolist(),
  )
