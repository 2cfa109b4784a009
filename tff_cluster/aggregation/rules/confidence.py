"""The class of the highest single output of any expert."""

import numpy as np

from tff_cluster.aggregation import expert_outputs
from tff_cluster.aggregation.rule import PredictionRule


def confidence(probabilities: np.ndarray) -> np.ndarray:
  """Returns int64[samples] of float[experts, samples, classes]."""
  return expert_outputs.checked_outputs(probabilities).max(axis=0).argmax(axis=1)


RULE = PredictionRule(name='confidence', words='the most confident expert', function=confidence, position=14)
