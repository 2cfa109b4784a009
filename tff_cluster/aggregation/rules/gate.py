"""A gate over experts that is trained on true labels, which Miles et al. 2024 suggest for future work.

Their discussion puts FedEx's loss down to weights that follow confidence and not accuracy, and names "a gating
mechanism that takes true labels into account". Theirs would be reinforcement learning; this is the plainest such
gate, a multinomial logistic regression on the outputs of all experts.
"""

import warnings

import numpy as np

from tff_cluster.aggregation import expert_outputs
from tff_cluster.aggregation.rule import PredictionRule
from tff_cluster.base.errors import InputError

# Smaller shares count as this one: a logarithm of 0 has no end, and below it experts differ in noise.
_FLOOR = 1e-6
_MAX_ITERATIONS = 500


def gate(
  validation_probabilities: np.ndarray, validation_labels: np.ndarray, probabilities: np.ndarray
) -> np.ndarray:
  """Learns from validation rows which expert to trust for which class, and predicts other rows.

  The features of a sample are the logarithms of all experts' outputs, as shares of an expert's outputs for the
  sample, not below 1e-6. With logarithms, products of the experts' probabilities and corrections for classes that
  an expert saw too often are among the gates that can be learnt. L2 regularisation as scikit-learn has it (C = 1).

  Args:
    validation_probabilities: float[experts, validation rows, classes].
    validation_labels: int[validation rows]. A class that is not among them is never predicted.
    probabilities: float[experts, samples, classes] of the same experts.

  Returns:
    int64[samples], the same in every call: nothing is drawn.

  Raises:
    InputError: if an array has a wrong shape or number, or the two outputs differ in experts or classes.
  """
  from sklearn.exceptions import ConvergenceWarning  # Imported late: `--help` asks every rule for its name.
  from sklearn.linear_model import LogisticRegression

  validation_outputs = expert_outputs.checked_outputs(validation_probabilities)
  labels = expert_outputs.checked_labels(validation_labels, validation_outputs)
  outputs = expert_outputs.checked_outputs(probabilities)
  if (outputs.shape[0], outputs.shape[2]) != (validation_outputs.shape[0], validation_outputs.shape[2]):
    raise InputError(
      'outputs and validation_outputs must have the same experts and classes, found shapes '
      f'{list(outputs.shape)} and {list(validation_outputs.shape)}'
    )
  if (labels == labels[0]).all():
    return np.full(outputs.shape[1], labels[0])
  model = LogisticRegression(max_iter=_MAX_ITERATIONS)
  with warnings.catch_warnings():
    # Stopping there is part of the definition of this gate.
    warnings.simplefilter('ignore', ConvergenceWarning)
    model.fit(_features(validation_outputs), labels)
  return model.predict(_features(outputs))


def _features(outputs: np.ndarray) -> np.ndarray:
  """Returns float64[samples, experts * classes], from 0 (a share of 1) down to -1 (the floor)."""
  total = outputs.sum(axis=2, keepdims=True)
  equal = np.full_like(outputs, 1.0 / outputs.shape[2])
  shares = np.divide(outputs, total, out=equal, where=total > 0.0)
  logarithms = np.log(np.maximum(shares, _FLOOR)) / -np.log(_FLOOR)
  return np.moveaxis(logarithms, 0, 1).reshape(outputs.shape[1], -1)


RULE = PredictionRule(name='gate', words='gate trained on validation labels', function=gate, position=15)
