"""Phase 2: each cluster trains on its own (Rohith et al. 2020, section 6.2)."""

import dataclasses
import pathlib
from collections.abc import Sequence

import numpy as np

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import CLIENTS
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.measured import EqualCost, OwnValidation
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import cluster_training, evaluation, own_models, phase3, rule_evaluation
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files


def name_of(label: str) -> str:
  """Returns what progress calls Phase 2 of a clustering."""
  return f'Phase 2 of {label}'


def run_phase2(experiment: live_experiment_lib.Experiment, label: str, export_models: bool = True) -> None:
  """Trains every cluster of a clustering (section 6.2) and saves `phase2/clustering_LABEL.json` and the models.

  Args:
    experiment: The experiment.
    label: Which clustering.
    export_models: Whether to write the models as .keras files beside the store. What was written earlier and is damaged
      is made again in any case.
  """
  folder, training = experiment.folder, experiment.config.training
  if is_done(folder, label, export_models) and not _models_are_missing(experiment, label):
    return
  # Where only something beside it is missing or damaged, what was measured stays.
  path = folder.phase2(label)
  saved = folder.load_finished(path, phase_files.Phase2) if path.exists() else None
  first, last = training.phase1_rounds + 1, training.last_round
  count = len(folder.load_finished(folder.clusters(label), phase_files.Clusters).clusters)
  with experiment.timed(name_of(label), count * training.phase2_rounds) as figures:
    trained = cluster_training.train_clusters(experiment, label)
    models = {} if saved is None else dict(saved.models)
    for row, outcome in enumerate(trained.clusters):
      model = folder.model(label, row)
      if export_models or _is_changed(model, models.get(model.name)):
        models[model.name] = experiment.exports.write(model, outcome.weights[last], models.get(model.name))
    if folder.splits(label).exists():
      _, _, accuracy = evaluation.client_accuracies(experiment, trained.outcomes, 1)
      files.save_arrays(folder.client_accuracy(label), {'test': accuracy.astype(np.float32)})
    stands_on = [outcome.checkpoints for outcome in trained.outcomes]
    if saved is not None:
      files.save_json(
        path,
        dataclasses.replace(saved, trajectories=stands_on, last=trained.last, models=models),
      )
      return
    if folder.alternation(label).exists():
      # The history is of the clients' own models, which may be mixtures, or were other ones earlier.
      best = [evaluation.last_validation(experiment, outcome) for outcome in trained.clusters]
    else:
      best = [evaluation.best_validation(experiment, outcome, first) for outcome in trained.clusters]
    history = evaluation.clustered_history(experiment, trained.outcomes, first)
    files.save_json(
      path,
      phase_files.Phase2(
        trajectories=stands_on,
        last=trained.last,
        cost=trained.cost,
        equal_cost=trained.equal_cost or _at_equal_cost(experiment, trained, best),
        history=history,
        best_validation=best,
        timing=figures(accuracy=history.test_accuracy[-1]),
        models=models,
        dropped_updates=evaluation.dropped_updates(trained.outcomes, first),
        validation=_own_validation(experiment, label, trained),
      ),
    )


def _at_equal_cost(
  experiment: live_experiment_lib.Experiment,
  trained: cluster_training.Trained,
  best_validation: Sequence[float],
) -> EqualCost | None:
  """Returns how far the clusters come at FedAvg's cost, with each client's own model after the last round that FedAvg's cost pays."""
  affordable = trained.affordable
  if affordable is None:
    return None
  made = trained.models(affordable.round)
  models = rule_evaluation.ClusterModels(experiment, trained.assignment, made, best_validation)
  evaluated = evaluation.evaluation(
    experiment, models.stacked, rules.with_role(CLIENTS).mixing(models.evidence)
  )
  is_start = affordable.round == experiment.config.training.phase1_rounds
  validation = evaluation.validation_accuracy(experiment, trained.assignment, made) if is_start else None
  return EqualCost(affordable.round, affordable.cost, evaluated, validation)


def _own_validation(
  experiment: live_experiment_lib.Experiment, label: str, trained: cluster_training.Trained
) -> OwnValidation | None:
  """Returns how good the clients' own models are on validation rows; None where the history of the clustering tells it."""
  if not trained.assignment.is_overlapping or experiment.folder.alternation(label).exists():
    return None
  rows, own = [experiment.population.validation], trained.assignment.own

  def accuracy(number: int) -> float:
    (found,) = own_models.scores(experiment, trained.models(number), own, False, rows)
    return float(found.client_accuracy.mean())

  at_equal_cost = None if trained.affordable is None else accuracy(trained.affordable.round)
  return OwnValidation(accuracy(experiment.config.training.last_round), at_equal_cost)


def _models_are_missing(experiment: live_experiment_lib.Experiment, label: str) -> bool:
  """Tells whether a later phase still needs models of a finished Phase 2 that the store does not have any more."""
  from tff_cluster.phases import added_rules  # Knows this module.

  folder, config = experiment.folder, experiment.config
  joined = not config.data.new_clients or folder.new_clients_of(label).exists()
  measured = joined and phase3.is_done(folder, label) and not added_rules.missing(folder, config, label)
  return not measured and not cluster_training.are_kept(experiment, label)


def is_done(folder: RunFolder, label: str, export_models: bool) -> bool:
  """Tells whether Phase 2 of a clustering has finished, and its models, where they are exported, are as they were."""
  if not folder.phase2(label).exists():
    return False
  if folder.splits(label).exists() and not folder.client_accuracy(label).exists():
    return False
  saved = folder.load_finished(folder.phase2(label), phase_files.Phase2)
  paths = {folder.models(label) / name: digest for name, digest in saved.models.items()}
  if export_models and not (paths and all(path.exists() for path in paths)):
    return False
  return not any(_is_changed(path, digest) for path, digest in paths.items())


def _is_changed(path: pathlib.Path, digest: str | None) -> bool:
  """Tells whether a file that was written with this SHA-256 is there with another one."""
  return digest is not None and files.file_digest(path) not in (None, digest)
