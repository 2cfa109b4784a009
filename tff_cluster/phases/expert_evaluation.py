"""Cluster models as experts on the global test set (FedEx, Miles et al. 2024, "Extensions").

Departures and choices: the test stream is the global test set in its own order; how much FedEx depends on the order is
measured on shuffles of it. The gate learns from all clients' validation rows. The paper's experts and its final model are
measured on the same test set, so the unclustered model stands beside them. An expert whose outputs for a row are not
finite, because the row is enormous, knows nothing of it: all classes alike.
"""

from collections.abc import Sequence

import numpy as np

from tff_cluster.aggregation import expert_comparison
from tff_cluster.aggregation.expert_outputs import ExpertOutputs
from tff_cluster.base.types import Weights
from tff_cluster.experiment.measured import Experts
from tff_cluster.phases import live_experiment as live_experiment_lib

_SHUFFLES = 10
_LEAST = 1e-7  # Of a probability, for a loss that stays finite.


def evaluate(experiment: live_experiment_lib.Experiment, models: Sequence[Weights]) -> Experts:
  """Returns how the cluster models do as experts.

  Args:
    experiment: The experiment.
    models: One model a cluster, as trajectories give them.
  """
  population, trainer = experiment.population, experiment.trainer
  with experiment.progress.stage('experts', len(models)):
    outputs, validation = [], []
    for weights in models:
      outputs.append(finite(trainer.predict(weights, population.global_test_x)))
      validation.append(finite(trainer.predict(weights, population.validation.x)))
      experiment.progress.update()
  labels = population.global_test_y
  given = ExpertOutputs(np.stack(outputs).astype(np.float64), labels.astype(np.int64), None)
  seen = {
    'validation_probabilities': np.stack(validation).astype(np.float64),
    'validation_labels': population.validation.y.astype(np.int64),
  }
  predictions, last_weights = expert_comparison.predict(given, seen)
  found = expert_comparison.compare(given, predictions, experiment.config.training.seed, _SHUFFLES)
  true = given.outputs[:, np.arange(len(labels)), labels]
  return Experts(
    **vars(found),
    expert_loss=(-np.log(np.maximum(true, _LEAST)).mean(axis=1)).tolist(),
    # What is minimised where softmax outputs are taken for logits, as the paper's losses are.
    expert_loss_twice=(np.log(np.exp(given.outputs).sum(axis=2)) - true).mean(axis=1).tolist(),
    weights=last_weights.tolist(),
  )


def finite(outputs: np.ndarray) -> np.ndarray:
  """Returns float32[rows, classes], where a row with NaN or infinity gives all classes alike."""
  known = np.isfinite(outputs).all(axis=1, keepdims=True)
  return np.where(known, outputs, np.float32(1.0 / outputs.shape[1]))
