"""One model for everybody, in which accurate clusters count more (Rohith et al. 2020, section 6.3, second evaluation).

Departures and choices: a cluster's "highest attained accuracy" is measured on its members' validation rows; where clusters alternate
with training, it is that of the last round's model. Where all accuracies are zero, the weighted average is the plain average.
"""

import numpy as np

from tff_cluster.aggregation.rule import MixingRule
from tff_cluster.base.errors import InputError


def weighted(best_validation: np.ndarray) -> np.ndarray:
  """Returns float64[clusters, 1], proportional to the scores.

  Args:
    best_validation: float[clusters], each cluster's highest attained accuracy; not negative.

  Raises:
    InputError: if the scores are not such an array.
  """
  scores = np.asarray(best_validation, np.float64)
  if scores.ndim != 1 or not scores.size or not np.isfinite(scores).all() or (scores < 0.0).any():
    raise InputError(
      f'scores must be [clusters], finite and not negative, found {np.array2string(scores, threshold=8)}'
    )
  highest = scores.max()
  if highest == 0.0:
    return np.full((len(scores), 1), 1.0 / len(scores))
  shares = scores / highest  # The sum of tiny or huge scores could leave float64's range.
  return (shares / shares.sum())[:, None]


RULE = MixingRule(
  name='weighted', words='average weighted by validation accuracy', function=weighted, position=3
)
