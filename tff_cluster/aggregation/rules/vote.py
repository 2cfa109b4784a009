"""The class that most experts put first."""

import numpy as np

from tff_cluster.aggregation import expert_outputs
from tff_cluster.aggregation.rule import PredictionRule


def vote(probabilities: np.ndarray) -> np.ndarray:
  """Returns int64[samples]; of classes with as many votes, the one with the highest mean output.

  Args:
    probabilities: float[experts, samples, classes].
  """
  outputs = expert_outputs.checked_outputs(probabilities)
  votes = (outputs.argmax(axis=2)[:, :, None] == np.arange(outputs.shape[2])).sum(axis=0)
  most = votes == votes.max(axis=1, keepdims=True)
  return np.where(most, outputs.mean(axis=0), -1.0).argmax(axis=1)


RULE = PredictionRule(name='vote', words='majority vote', function=vote, position=13)
