"""Phase 3: the cluster models aggregated, beside each client's own (Rohith et al. 2020, section 6.3)."""

import numpy as np

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import CLIENTS
from tff_cluster.experiment import phase_files
from tff_cluster.phases import evaluation, expert_evaluation, rule_evaluation
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files


def run_phase3(experiment: live_experiment_lib.Experiment, label: str) -> None:
  """Evaluates a clustering's models (section 6.3) and saves `phase3/LABEL.json`."""
  folder = experiment.folder
  if folder.phase3(label).exists():
    return
  applied, own = rules.mixing_rules(), rules.with_role(CLIENTS)
  of_clusters = {rule.name: rule.of_clusters for rule in applied if rule.of_clusters is not None}
  with experiment.timed(f'Phase 3 of {label}', len(applied) + 1 + len(of_clusters)) as figures:
    models = rule_evaluation.of_phase2(experiment, label)
    assignment = models.assignment
    evaluations, clusters = {}, {}
    for rule in applied:
      evaluations[rule.name] = models.evaluation(rule)
      experiment.progress.update()
    matrices = {'unblended': np.eye(assignment.num_clusters)}
    matrices |= {name: of_models(assignment.num_clusters) for name, of_models in of_clusters.items()}
    for name, matrix in matrices.items():
      clusters[name] = evaluation.cluster_scores(experiment, assignment, models.stacked, matrix, models.known)
      experiment.progress.update()
    experts = None
    if experiment.config.evaluation.experts:
      experts = expert_evaluation.evaluate(experiment, models.models)
    timing = figures(accuracy=evaluations[own.name].clients.mean_client_accuracy)
    files.save_json(folder.phase3(label), phase_files.Phase3(evaluations, clusters, experts, timing))
