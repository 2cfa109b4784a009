"""Every rule of `experts` on the same outputs, and what they say side by side."""

from typing import Any

import numpy as np

from tff_cluster.aggregation import experts
from tff_cluster.aggregation.expert_outputs import ExpertOutputs
from tff_cluster.base import seeding


def predict(given: ExpertOutputs) -> tuple[dict[str, np.ndarray], np.ndarray]:
  """Runs every rule.

  Returns:
    int64[samples] for fedex, mean, vote and confidence, and for oracle where labels are given; and the weights
    of fedex after the last sample, float64[experts, classes].
  """
  predictions, weights = experts.fedex(given.outputs, given.start_weights)
  rules = {
    'fedex': predictions,
    'mean': experts.mean(given.outputs),
    'vote': experts.vote(given.outputs),
    'confidence': experts.confidence(given.outputs),
  }
  if given.labels is not None:
    rules['oracle'] = experts.oracle(given.outputs, given.labels)
  return rules, weights


def compare(
  given: ExpertOutputs, predictions: dict[str, np.ndarray], seed: int, num_shuffles: int
) -> dict[str, Any]:
  """Returns plain data on the predictions of `predict`.

  Args:
    given: What the rules ran on.
    predictions: int64[samples] by rule; fedex is among them.
    seed: Seed of the orders.
    num_shuffles: In how many other orders FedEx sees the samples, at least 1.

  Returns:
    All shares are from 0 to 1; accuracies are None without labels.
      num_experts, num_samples, num_classes: int.
      accuracy: by rule. expert_accuracy: [experts], each alone.
      agreement: by rule and rule, the share of samples that both predict alike.
      order_sensitivity: of FedEx over the orders: seed, num_shuffles; agreement [num_shuffles] with the
        predictions in the given order; changed, the share of samples that are not predicted alike in all orders
        (the given one is among them); accuracy [num_shuffles].
  """
  labels = given.labels
  orders = experts.shuffled(
    given.outputs, seeding.generator(seed, 'order of expert outputs'), num_shuffles, given.start_weights
  )
  alone = given.outputs.argmax(axis=2)
  return {
    'num_experts': given.num_experts,
    'num_samples': given.num_samples,
    'num_classes': given.num_classes,
    'accuracy': None if labels is None else {name: _share(row, labels) for name, row in predictions.items()},
    'expert_accuracy': None if labels is None else [_share(row, labels) for row in alone],
    'agreement': {
      name: {other: _share(row, column) for other, column in predictions.items()}
      for name, row in predictions.items()
    },
    'order_sensitivity': {
      'seed': seed,
      'num_shuffles': num_shuffles,
      'agreement': [_share(row, predictions['fedex']) for row in orders],
      'changed': float((orders != predictions['fedex']).any(axis=0).mean()),
      'accuracy': None if labels is None else [_share(row, labels) for row in orders],
    },
  }


def _share(one: np.ndarray, other: np.ndarray) -> float:
  return float((one == other).mean())
