"""The label wherever any expert puts it first: what no choice among the experts can surpass. It knows the labels."""

import numpy as np

from tff_cluster.aggregation import expert_outputs
from tff_cluster.aggregation.rule import CEILING, PredictionRule


def oracle(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """Returns int64[samples], the label where any expert puts it first, else the class with the highest mean output.

  Its accuracy is an upper bound of every rule that gives a class some expert puts first (a vote, the highest confidence,
  any choice of one expert a sample), and of the mean. FedEx and a gate weight classes unequally and could, rarely,
  be right where no expert is.

  Args:
    probabilities: float[experts, samples, classes].
    labels: int[samples], true classes from 0.

  Raises:
    InputError: if an array has a wrong shape or number.
  """
  outputs = expert_outputs.checked_outputs(probabilities)
  labels = expert_outputs.checked_labels(labels, outputs)
  return np.where((outputs.argmax(axis=2) == labels).any(axis=0), labels, outputs.mean(axis=0).argmax(axis=1))


RULE = PredictionRule(
  name='oracle',
  words='oracle: any expert is right',
  function=oracle,
  position=16,
  roles=frozenset({CEILING}),
)
