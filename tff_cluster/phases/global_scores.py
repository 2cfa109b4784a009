"""How good models are on the global test set: each is measured once, then the store keeps its counts.

Tables share clusters between their rows, and a Phase 3 of a hundred clusters measures for minutes; a stopped one goes on.
"""

import dataclasses

from tff_cluster.base import digests
from tff_cluster.base.types import Weights
from tff_cluster.data import class_counts
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files as files_lib

_KEPT = [field.name for field in dataclasses.fields(class_counts.Scores)]


def metrics(experiment: live_experiment_lib.Experiment, weights: Weights) -> class_counts.RowMetrics:
  """Returns how good a model is on the global test set.

  Args:
    experiment: The experiment.
    weights: The model.
  """
  artifact = experiment.store.artifact(
    'global_scores',
    experiment.model_settings | {'rows': experiment.population.global_test_digest, 'kept': _KEPT},
  )
  path = artifact / f'{digests.of_arrays(weights)}.npz'
  kept = files_lib.load_or_none(path)
  if not kept:
    kept = vars(experiment.trainer.measure_global(weights))
    # Not held while it is measured: what two runs side by side find is the same.
    with experiment.store.working_on(artifact):
      files_lib.save_arrays(path, kept)
  return class_counts.Scores(**kept).over_rows()
