"""The rules of Phase 3 that --aggregation names, measured on each clustering beside the built-in ones.

What they give is saved apart from Phase 3, so that a rule can join a finished run, and one that fails leaves it alone.
"""

from collections.abc import Iterator

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import Rule, TrainingRule
from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.types import Json
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import failures, rule_evaluation
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files as files_lib


def run(experiment: live_experiment_lib.Experiment, label: str, failed: dict[str, Exception]) -> None:
  """Measures the rules that are new to a clustering, and saves `phase3/aggregation/LABEL.json` after each.

  Args:
    experiment: The experiment.
    label: A clustering whose Phase 2 is done.
    failed: What went wrong, by Rule.called; what stands there is not tried again.
  """
  path, models = experiment.folder.aggregation(label), None
  for rule in of(experiment.config, label):
    if rule.called in failed or _is_measured(_saved(experiment.folder, label), rule):
      continue
    name = f'Phase 3 of {label} by {rule.name}'
    steps = experiment.population.num_clients if isinstance(rule, TrainingRule) else 1
    with failures.apart(failed, rule.called), experiment.timed(name, steps) as figures:
      models = models or rule_evaluation.of_phase2(experiment, label)
      found = models.evaluation(rule)
      timing = figures(accuracy=found.clients.mean_client_accuracy)
      entry = phase_files.RuleMeasured(_determinants(rule), found, timing)
      saved = _saved(experiment.folder, label) | {rule.name: entry}
      files_lib.save_json(path, phase_files.AddedRules(saved))


def of(config: config_lib.ExperimentConfig, label: str) -> list[Rule]:
  """Returns the rules that apply to a clustering: no client goes on training where it has no model, but joins predictions."""
  joins = config.clustering(label).rule.joins_predictions
  added = rules.added(config.evaluation.aggregation)
  return [rule for rule in added if not (joins and isinstance(rule, TrainingRule))]


def is_done(folder: RunFolder, config: config_lib.ExperimentConfig) -> bool:
  """Tells whether every rule was measured on every clustering, as the rule is now."""
  return not any(missing(folder, config, clustering.label) for clustering in config.clusterings)


def missing(folder: RunFolder, config: config_lib.ExperimentConfig, label: str) -> list[Rule]:
  """Returns the rules that apply to a clustering and were not measured on it, as they are now."""
  return [rule for rule in of(config, label) if not _is_measured(_saved(folder, label), rule)]


def finished(
  folder: RunFolder, config: config_lib.ExperimentConfig, label: str
) -> Iterator[tuple[Rule, phase_files.RuleMeasured]]:
  """Yields each rule with what was measured of it.

  Raises:
    InputError: if one was not measured on this clustering.
  """
  for rule in of(config, label):
    saved = folder.load_finished(folder.aggregation(label), phase_files.AddedRules).rules
    if rule.name not in saved:
      raise InputError(
        f'{folder.root} has not measured {rule.called} on {label} yet: run python -m phases.phase3 {argument("output_dir", folder.root)} '
        'first'
      )
    yield rule, saved[rule.name]


def _saved(folder: RunFolder, label: str) -> dict[str, phase_files.RuleMeasured]:
  path = folder.aggregation(label)
  return folder.load_finished(path, phase_files.AddedRules).rules if path.exists() else {}


def _is_measured(saved: dict[str, phase_files.RuleMeasured], rule: Rule) -> bool:
  """Tells whether this very rule was measured, and its code was not changed since."""
  return rule.name in saved and saved[rule.name].determinants == _determinants(rule)


def _determinants(rule: Rule) -> dict[str, Json]:
  """Returns what tells a rule from another one of its name: the text that names it, and its code."""
  return {'aggregation': rule.path, 'code': rule.code}
