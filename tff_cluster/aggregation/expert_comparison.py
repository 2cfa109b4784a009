"""Every rule of predictions on the same outputs, and what they say side by side."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.expert_outputs import ExpertOutputs
from tff_cluster.aggregation.rule import SUBJECT
from tff_cluster.aggregation.rules import fedex
from tff_cluster.base import seeding


def predict(
  given: ExpertOutputs, validation: Mapping[str, np.ndarray] | None = None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
  """Runs every built-in rule that can do with what is known.

  Args:
    given: What the experts gave; the oracle needs labels.
    validation: `validation_probabilities` and `validation_labels`, where they are known; the gate needs them.

  Returns:
    int64[samples] by rule, and the weights of FedEx after the last sample, float64[experts, classes].
  """
  known = {
    'probabilities': given.outputs,
    'labels': given.labels,
    'start_weights': given.start_weights,
    **(validation or {}),
  }
  predictions = {
    rule.name: rule.predict(known) for rule in rules.prediction_rules() if rule.can_do_with(known)
  }
  return predictions, fedex.fedex(given.outputs, given.start_weights)[1]


def compare(
  given: ExpertOutputs, predictions: dict[str, np.ndarray], seed: int, num_shuffles: int
) -> dict[str, Any]:
  """Returns plain data on the predictions of `predict`.

  Args:
    given: What the rules ran on.
    predictions: int64[samples] by rule; FedEx is among them.
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
  labels, subject = given.labels, predictions[rules.with_role(SUBJECT).name]
  orders = fedex.shuffled(
    given.outputs, seeding.generator(seed, 'order of expert outputs'), num_shuffles, given.start_weights
  )
  alone = given.outputs.argmax(axis=2)
  return {
    **dict(zip(('num_experts', 'num_samples', 'num_classes'), given.outputs.shape, strict=True)),
    'accuracy': None if labels is None else {name: _share(row, labels) for name, row in predictions.items()},
    'expert_accuracy': None if labels is None else [_share(row, labels) for row in alone],
    'agreement': {
      name: {other: _share(row, column) for other, column in predictions.items()}
      for name, row in predictions.items()
    },
    'order_sensitivity': {
      'seed': seed,
      'num_shuffles': num_shuffles,
      'agreement': [_share(row, subject) for row in orders],
      'changed': float((orders != subject).any(axis=0).mean()),
      'accuracy': None if labels is None else [_share(row, labels) for row in orders],
    },
  }


def _share(one: np.ndarray, other: np.ndarray) -> float:
  return float((one == other).mean())
