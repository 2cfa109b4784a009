"""Phase 3: the cluster models aggregated, beside each client's own (Rohith et al. 2020, section 6.3)."""

import dataclasses

import numpy as np

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import CLIENTS, MixingRule
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import evaluation, expert_evaluation, rule_evaluation
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files


def run_phase3(experiment: live_experiment_lib.Experiment, label: str) -> None:
  """Evaluates a clustering's models (section 6.3) and saves `phase3/LABEL.json`.

  Where it has finished, the rules that have come since are measured, and what was measured stays.
  """
  folder = experiment.folder
  if is_done(folder, label):
    return
  path, own = folder.phase3(label), rules.with_role(CLIENTS)
  saved = folder.load_finished(path, phase_files.Phase3) if path.exists() else None
  applied = _missing(saved)
  of_clusters = {rule.name: rule.of_clusters for rule in applied if rule.of_clusters is not None}
  with experiment.timed(f'Phase 3 of {label}', len(applied) + 1 + len(of_clusters)) as figures:
    models = rule_evaluation.of_phase2(experiment, label)
    assignment = models.assignment
    evaluations, clusters = {}, {}
    for rule in applied:
      evaluations[rule.name] = models.evaluation(rule)
      experiment.progress.update()
    matrices = {} if saved else {'unblended': np.eye(assignment.num_clusters)}
    matrices |= {name: of_models(assignment.num_clusters) for name, of_models in of_clusters.items()}
    for name, matrix in matrices.items():
      clusters[name] = evaluation.cluster_scores(experiment, assignment, models.stacked, matrix, models.known)
      experiment.progress.update()
    if saved is not None:
      evaluations |= saved.evaluations
      in_order = {rule.name: evaluations[rule.name] for rule in rules.mixing_rules()}
      scores = saved.cluster_scores | clusters
      files.save_json(
        path, dataclasses.replace(saved, evaluations=in_order | evaluations, cluster_scores=scores)
      )
      return
    experts = None
    if experiment.config.evaluation.experts:
      experts = expert_evaluation.evaluate(experiment, models.models)
    timing = figures(accuracy=evaluations[own.name].clients.mean_client_accuracy)
    files.save_json(path, phase_files.Phase3(evaluations, clusters, experts, timing))


def is_done(folder: RunFolder, label: str) -> bool:
  """Tells whether every rule that a run has was measured on a clustering."""
  path = folder.phase3(label)
  return path.exists() and not _missing(folder.load_finished(path, phase_files.Phase3))


def _missing(saved: phase_files.Phase3 | None) -> list[MixingRule]:
  return [rule for rule in rules.mixing_rules() if saved is None or rule.name not in saved.evaluations]
