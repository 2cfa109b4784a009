"""Every rule of predictions on the same outputs, and what they say side by side."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.expert_outputs import ExpertOutputs
from tff_cluster.aggregation.rule import SUBJECT
from tff_cluster.aggregation.rules import fedex
from tff_cluster.base import records, seeding


@dataclasses.dataclass(frozen=True)
class OrderSensitivity(records.Record):
  """FedEx on the same samples in other orders. Shares are from 0 to 1.

  Attributes:
    seed: Of the orders.
    num_shuffles: How many.
    agreement: [num_shuffles], with the predictions in the given order.
    changed: Share of the samples that are not predicted alike in all orders (the given one is among them).
    accuracy: [num_shuffles]; None without labels.
  """

  seed: int
  num_shuffles: int
  agreement: list[float]
  changed: float
  accuracy: list[float] | None


@dataclasses.dataclass(frozen=True)
class Comparison(records.Record):
  """What the rules of predictions say side by side. Shares are from 0 to 1; accuracies are None without labels.

  Attributes:
    num_experts, num_samples, num_classes: Of the outputs.
    accuracy: By rule; the oracle knows the labels, the gate is trained on validation rows.
    expert_accuracy: [experts], each alone.
    agreement: By rule and rule, the share of samples that both predict alike.
    order_sensitivity: Of FedEx.
  """

  num_experts: int
  num_samples: int
  num_classes: int
  accuracy: dict[str, float] | None
  expert_accuracy: list[float] | None
  agreement: dict[str, dict[str, float]]
  order_sensitivity: OrderSensitivity


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
) -> Comparison:
  """Returns how the predictions of `predict` compare.

  Args:
    given: What the rules ran on.
    predictions: int64[samples] by rule; FedEx is among them.
    seed: Seed of the orders.
    num_shuffles: In how many other orders FedEx sees the samples, at least 1.
  """
  labels, subject = given.labels, predictions[rules.with_role(SUBJECT).name]
  orders = fedex.shuffled(
    given.outputs, seeding.generator(seed, 'order of expert outputs'), num_shuffles, given.start_weights
  )
  alone = given.outputs.argmax(axis=2)
  experts, samples, classes = given.outputs.shape
  return Comparison(
    num_experts=experts,
    num_samples=samples,
    num_classes=classes,
    accuracy=None if labels is None else {name: _share(row, labels) for name, row in predictions.items()},
    expert_accuracy=None if labels is None else [_share(row, labels) for row in alone],
    agreement={
      name: {other: _share(row, column) for other, column in predictions.items()}
      for name, row in predictions.items()
    },
    order_sensitivity=OrderSensitivity(
      seed=seed,
      num_shuffles=num_shuffles,
      agreement=[_share(row, subject) for row in orders],
      changed=float((orders != subject).any(axis=0).mean()),
      accuracy=None if labels is None else [_share(row, labels) for row in orders],
    ),
  )


def _share(one: np.ndarray, other: np.ndarray) -> float:
  return float((one == other).mean())
