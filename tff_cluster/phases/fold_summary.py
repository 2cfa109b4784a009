"""What the folds of a cross-validation say together."""

from collections.abc import Sequence

import numpy as np

from tff_cluster.data.class_counts import Metrics
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import results
from tff_cluster.experiment.measured import Timing
from tff_cluster.experiment.result_parts import CrossValidation, OverFolds
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.scorecard.intervals import student_interval


def finished(folder: RunFolder, config: config_lib.ExperimentConfig) -> list[results.Results]:
  """Returns the results of all folds; none where there are no folds, or not all have finished with the clusterings of the run."""
  folds = [folder.fold(index) for index in range(config.evaluation.num_folds)]
  if not all(fold.results.exists() for fold in folds):
    return []
  found, wanted = [results.read(fold.results) for fold in folds], config.of_fold.clusterings
  return found if all(each.config.clusterings == wanted for each in found) else []


def summarise(folds: Sequence[results.Results]) -> CrossValidation | None:
  """Returns `cross_validation` of results.json; None without folds."""
  return CrossValidation(len(folds), _summaries(folds)) if folds else None


def timing(folds: Sequence[results.Results]) -> list[Timing]:
  """Returns what each fold took, with all its phases."""
  return [
    Timing(
      f'fold {number}',
      sum(entry.seconds for entry in fold.timing),
      sum(entry.client_rounds_asked for entry in fold.timing),
      sum(entry.client_rounds_trained for entry in fold.timing),
    )
    for number, fold in enumerate(folds, 1)
  ]


def _summaries(each: Sequence[results.Results]) -> dict[str, OverFolds]:
  rows = {'unclustered/baseline': [fold.baseline.evaluation for fold in each]}
  for position, clustering in enumerate(each[0].clusterings):
    of_folds = [fold.clusterings[position].evaluations for fold in each]
    for name in clustering.evaluations:
      if all(name in found for found in of_folds):  # A rule may have come when some had finished.
        rows[f'{clustering.label}/{name}'] = [found[name] for found in of_folds]
  return {name: _over_folds([evaluation.clients for evaluation in found]) for name, found in rows.items()}


def _over_folds(found: Sequence[Metrics]) -> OverFolds:
  interval = student_interval([each.mean_client_accuracy for each in found])
  assert interval.low is not None and interval.high is not None  # There are two folds at least.
  precision, recall = ([getattr(each, name) for each in found] for name in ('precision', 'recall'))
  return OverFolds(
    interval.mean, interval.low, interval.high, float(np.mean(precision)), float(np.mean(recall))
  )
