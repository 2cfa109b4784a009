"""The rules of Phase 3 that --aggregation names, measured on each clustering beside the built-in ones.

What they give is saved apart from Phase 3, so that a rule can join a finished run, and one that fails leaves it alone.
"""

from collections.abc import Iterator
from typing import Any

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import Rule
from tff_cluster.base.errors import InputError, argument
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.phases import rule_evaluation, three_phase
from tff_cluster.storage import files as files_lib


def run(experiment: live_experiment_lib.Experiment, label: str, failed: dict[str, Exception]) -> None:
  """Measures the rules that are new to a clustering, and saves `phase3/aggregation/LABEL.json` after each.

  Args:
    experiment: The experiment.
    label: A clustering whose Phase 2 is done.
    failed: What went wrong, by Rule.called; what stands there is not tried again.
  """
  path, models = experiment.folder.aggregation(label), None
  for rule in rules.added(experiment.config.evaluation.aggregation):
    if rule.called in failed or _evaluation(_saved(experiment.folder, label), rule) is not None:
      continue
    name = f'Phase 3 of {label} by {rule.name}'
    with three_phase.apart(failed, rule.called), experiment.timed(name) as figures:
      models = models or rule_evaluation.of_phase2(experiment, label)
      found = models.evaluation(rule)
      entry = {
        'determinants': _determinants(rule),
        'evaluation': found,
        'timing': figures(accuracy=found['clients']['mean_client_accuracy']),
      }
      files_lib.save_json(path, _saved(experiment.folder, label) | {rule.name: entry})


def is_done(folder: RunFolder, config: config_lib.ExperimentConfig) -> bool:
  """Tells whether every rule was measured on every clustering, as the rule is now."""
  return all(is_measured(folder, config, clustering.label) for clustering in config.clusterings)


def is_measured(folder: RunFolder, config: config_lib.ExperimentConfig, label: str) -> bool:
  """Tells whether every rule was measured on a clustering, as the rule is now."""
  added = rules.added(config.evaluation.aggregation)
  return all(_evaluation(_saved(folder, label), rule) is not None for rule in added)


def finished(
  folder: RunFolder, config: config_lib.ExperimentConfig, label: str
) -> Iterator[tuple[Rule, dict[str, Any], dict[str, Any]]]:
  """Yields each rule with its EVALUATION and its timing.

  Raises:
    InputError: if one was not measured on this clustering.
  """
  for rule in rules.added(config.evaluation.aggregation):
    saved = folder.load_finished(folder.aggregation(label), 'phase3')
    if rule.name not in saved:
      raise InputError(
        f'{folder.root} has not measured {rule.called} on {label} yet: run python -m phases.phase3 {argument("output_dir", folder.root)} '
        'first'
      )
    entry = saved[rule.name]
    yield rule, entry['evaluation'], entry['timing']


def _saved(folder: RunFolder, label: str) -> dict[str, Any]:
  path = folder.aggregation(label)
  return dict(folder.load_finished(path, 'phase3')) if path.exists() else {}


def _evaluation(saved: dict[str, Any], rule: Rule) -> dict[str, Any] | None:
  """Returns what was measured of this very rule; None where there is nothing, or its code was changed since."""
  entry = saved.get(rule.name)
  return entry['evaluation'] if entry and entry['determinants'] == _determinants(rule) else None


def _determinants(rule: Rule) -> dict[str, Any]:
  """Returns what tells a rule from another one of its name: the text that names it, and its code."""
  return {'aggregation': rule.path, 'code': rule.code}
