"""What clusterings are measured against beside FedAvg: every client alone, and the planted groups.

Neither is a method. Local training tells what a client has without the others: it trains from the initial model, on
its own rows, for as many rounds as both phases have. The planted groups (clustering/methods/planted.py) tell what clusters
could gain if they were found.

A client alone whose update is not finite stays with the model that it has, as it would among others.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base.cost import Cost
from tff_cluster.clustering import methods
from tff_cluster.data import class_counts
from tff_cluster.data import population as population_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.measured import Evaluation, Local
from tff_cluster.phases import evaluation
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files as files_lib
from tff_cluster.storage import saved_rounds

if TYPE_CHECKING:
  from tff_cluster.federated import trajectory

LOCAL = 'every client alone'


def check(population: population_lib.Population, config: config_lib.ExperimentConfig) -> None:
  """Raises InputError if an oracle asks for planted groups that these clients do not have."""
  from tff_cluster.clustering import signatures

  for clustering in config.clusterings:
    if clustering.rule.oracle:
      nobody = signatures.Signatures(np.zeros((population.num_clients, 1)), population.client_ids)
      methods.cluster(clustering, nobody, 0, population.truths)


def train_alone(experiment: live_experiment_lib.Experiment, client: int) -> 'trajectory.Outcome':
  """Trains a client alone, as far as the store lacks it; counts nothing."""
  from tff_cluster.federated import trajectory

  training, initial = experiment.config.training, experiment.trainer.computations.model.weights
  alone = experiment.trajectory(np.array([client]), initial, 0, may_diverge=True)
  return trajectory.run(alone, training.phase1_rounds + training.phase2_rounds)


def run_local(experiment: live_experiment_lib.Experiment) -> None:
  """Trains every client alone and saves `phase2/local.json`."""
  path = experiment.folder.local
  if not experiment.config.evaluation.local_training or path.exists():
    return
  training, population = experiment.config.training, experiment.population
  last = training.phase1_rounds + training.phase2_rounds

  def train(client: int) -> tuple['trajectory.Outcome', saved_rounds.Checkpoints, class_counts.Scores]:
    outcome = train_alone(experiment, client)
    experiment.count(outcome)
    scores = experiment.trainer.measure(outcome.weights[last], population.test, [client])
    experiment.progress.update()
    # The store has the models; those of 1,000 clients would not fit into memory.
    return dataclasses.replace(outcome, weights={}), outcome.checkpoints, scores

  with experiment.timed(LOCAL, population.num_clients) as figures:
    trained = experiment.each(train, range(population.num_clients))
    in_order = [trained[client] for client in range(population.num_clients)]
    outcomes, kept = [outcome for outcome, _, _ in in_order], [saved for _, saved, _ in in_order]
    scores = class_counts.concatenate([measured for _, _, measured in in_order])
    trained_alone = sum((outcome.cost for outcome in outcomes), Cost())
    dropped = sum(int(outcome.history.dropped.sum()) for outcome in outcomes)
    local = Local(
      Cost(client_rounds=trained_alone.client_rounds, rows_trained=trained_alone.rows_trained),
      evaluation.clustered_history(experiment, outcomes, 1),
      Evaluation(None, scores.summary(), scores.client_accuracy.tolist()),
      dropped,
    )
    timing = figures(accuracy=float(scores.client_accuracy.mean()))
    files_lib.save_json(path, phase_files.LocalTraining(kept, local, timing))
