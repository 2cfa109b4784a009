"""Chooses the distance threshold of a clustering on validation rows, such as a hierarchical one (distance_threshold=validation).

Briggs et al. 2020, section III.B, "experiment with a range of distance thresholds and report the best performing
result". Here the range is a cut into each of a few numbers of clusters; every cut's clusters are trained for the
first round of Phase 2 or for its first N (distance_threshold=validation:N, or validation:last), and the cut with the
highest mean client accuracy on validation rows is kept (of equal ones the coarsest). Phase 2 goes on from those rounds, so
only the other cuts cost anything; a method that starts from the clusters (start=clustering) does not, and pays all of them.

Departures and choices: the paper names neither the range, nor the round in which a threshold was best, nor the rows; it appears to
be test accuracy, so what test rows would have chosen is saved beside it, and chooses nothing. A choice after more than one round has
every second cut of the range, and saves what its first round would have chosen. Clients whose updates were not finite
(clustering/diverged_clients.py) have no say.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tff_cluster.base.cost import Cost
from tff_cluster.clustering import assignment as assignment_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.measured import Choice, Cut, History
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import client_signatures, evaluation
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files as files_lib

# Roughly even steps of a ratio: what a cut does depends on how finely it cuts, not on single clusters.
_COUNTS = (1, 2, 3, 4, 6, 10, 16, 25, 40, 63)
# Of more than one round, each of which costs as much again.
_FEWER_COUNTS = (_COUNTS[0], *_COUNTS[1::2])
# Above the rounding of a mean of shares, below what one row of one client makes in it.
_SLACK = 1e-12


def counts(num_clients: int, rounds: int = 1) -> list[int]:
  """Returns into how many clusters the cuts go; the last leaves everybody alone, a cut that all linkages share.

  Args:
    num_clients: Clients that are clustered.
    rounds: How many rounds of Phase 2 each cut is trained for.
  """
  return [count for count in (_COUNTS if rounds == 1 else _FEWER_COUNTS) if count < num_clients] + [
    num_clients
  ]


def coarsest_best(accuracies: Sequence[float]) -> int:
  """Returns the position of the first of the highest accuracies, from 0 to 1, of cuts from the coarsest to the finest.

  Means over clients that are equal as fractions differ in their last bits by the order of the sum; that decides nothing.
  """
  return int(np.argmax(np.asarray(accuracies) >= max(accuracies) - _SLACK))


def is_missing(folder: RunFolder, clustering: config_lib.ClusteringConfig) -> bool:
  """Tells whether a clustering's threshold is still to be chosen."""
  return clustering.rule.on_validation(clustering.options) and not folder.choice(clustering.label).exists()


def chosen(folder: RunFolder, clustering: config_lib.ClusteringConfig) -> config_lib.ClusteringConfig:
  """Returns the clustering at the threshold that was chosen; as it is, where its threshold was given."""
  if not clustering.rule.on_validation(clustering.options):
    return clustering
  choice = folder.load_finished(folder.choice(clustering.label), phase_files.ChoiceOfThreshold).choice
  return clustering.changed(**clustering.rule.at_threshold(choice.candidates[choice.chosen].threshold))


def run_choice(experiment: live_experiment_lib.Experiment, clustering: config_lib.ClusteringConfig) -> None:
  """Saves `clusterings/LABEL/choice.json`; nothing for a threshold that is given."""
  if not is_missing(experiment.folder, clustering):
    return
  with experiment.timed() as figures:
    choice = _choice(experiment, clustering)
    files_lib.save_json(
      experiment.folder.choice(clustering.label), phase_files.ChoiceOfThreshold(choice, figures())
    )


def _choice(experiment: live_experiment_lib.Experiment, clustering: config_lib.ClusteringConfig) -> Choice:
  """Returns what each cut attained, and which is kept."""
  from tff_cluster.clustering import diverged_clients

  signatures = client_signatures.load(experiment.folder, clustering.signature)
  client_ids = experiment.population.client_ids
  rounds = clustering.rule.rounds_of_choice(clustering.options, experiment.config.training.phase2_rounds)
  candidates: list[Cut] = []
  first: list[float] = []
  costs: list[Cost] = []
  measuring = Cost()
  cuts = clustering.rule.cuts(clustering.options, signatures, counts(signatures.num_clients, rounds))
  with experiment.progress.stage(f'thresholds of {clustering.label}', len(cuts)):
    for threshold, labels in cuts:
      cut = assignment_lib.ClusterAssignment.from_labels(labels, signatures.client_ids)
      assignment = diverged_clients.put_back(cut, client_ids)
      clustered = diverged_clients.among(client_ids, signatures.client_ids)
      attained, cost = _attained(experiment, assignment, clustered, rounds)
      measuring += _measuring(experiment, assignment)
      candidates.append(
        Cut(
          threshold,
          assignment.num_clusters,
          attained.validation_accuracy[-1],
          attained.test_accuracy[-1],
          attained.share_at_target[-1],
        )
      )
      first.append(attained.validation_accuracy[0])
      costs.append(cost)
      experiment.progress.update(accuracy=candidates[-1].validation_accuracy)
  chosen = coarsest_best([candidate.validation_accuracy for candidate in candidates])
  best_on_test = coarsest_best([candidate.test_accuracy for candidate in candidates])
  best_after_one = coarsest_best(first) if rounds > 1 else None
  cost = sum(costs, measuring) - costs[chosen]
  return Choice(candidates, chosen, best_on_test, cost, rounds, best_after_one)


def _attained(
  experiment: live_experiment_lib.Experiment,
  assignment: assignment_lib.ClusterAssignment,
  clustered: np.ndarray,
  rounds: int,
) -> tuple[History, Cost]:
  """Returns what the clients' models attain in the first rounds of Phase 2, and what these cost.

  Args:
    experiment: The experiment.
    assignment: A cut, all clients in it.
    clustered: bool[clients], over whom accuracies are.
    rounds: How many.
  """
  from tff_cluster.federated import trajectory

  starts = client_signatures.start_weights(experiment, assignment)
  start_cost = client_signatures.start_cost(experiment, assignment.members_of_all)
  experiment.asked += start_cost.client_rounds
  begin = experiment.config.training.phase1_rounds
  members = assignment.members_of_all
  models = {row: experiment.unflatten(start) for row, start in enumerate(starts)}

  def train(row: int) -> trajectory.Outcome:
    asked = experiment.trajectory(members[row], models.pop(row), begin)
    # Another cut may be kept.
    asked = dataclasses.replace(asked, may_diverge=True)
    # What the models attain is all that is asked: of the finest cut every client has one.
    return dataclasses.replace(trajectory.run(asked, begin + rounds), weights={})

  found = experiment.each(train, experiment.idle_first(members, list(models.values()), begin))
  del starts
  outcomes = [found[row] for row in range(assignment.num_clusters)]
  cost = sum((outcome.cost for outcome in outcomes), start_cost)
  for outcome in outcomes:
    experiment.count(outcome)
  numbers, validation, test = evaluation.client_accuracies(experiment, outcomes, begin + 1)
  if not clustered.all():
    validation, test = validation[:, clustered], test[:, clustered]
  return evaluation.history(experiment, numbers, validation, test), cost


def _measuring(
  experiment: live_experiment_lib.Experiment, assignment: assignment_lib.ClusterAssignment
) -> Cost:
  """Returns what it costs that all members of a cut's clusters measure its models on their validation rows."""
  trainer, split = experiment.trainer, experiment.population.validation
  members = assignment.members_of_all
  return sum((trainer.cost_of_measuring(split, clients) for clients in members), Cost())
