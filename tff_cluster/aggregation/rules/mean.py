"""The class with the highest mean of all experts' outputs."""

import numpy as np

from tff_cluster.aggregation import expert_outputs
from tff_cluster.aggregation.rule import PredictionRule


def mean(probabilities: np.ndarray) -> np.ndarray:
  """Returns int64[samples], the class with the highest mean of float[experts, samples, classes]; the lowest where some tie."""
  return expert_outputs.checked_outputs(probabilities).mean(axis=0).argmax(axis=1)


RULE = PredictionRule(name='mean', words='mean of the outputs', function=mean, position=12)
