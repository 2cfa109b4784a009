"""FedEx: one prediction a sample of several experts' outputs, whose weights follow their confidence (Miles et al. 2024).

Outputs are float[experts, samples, classes], finite and not negative (softmax them before), and predictions
int64[samples]. The lowest class wins a tie. Source: Algorithm 2.

Departures and choices: line 2 of Algorithm 2 prints p = argmax_i sum_j w_ij m_j^(i), an expert. The text says "the
weighted average of the outputs of each of the expert models", and lines 4 and 7 use p as a class; so here
p = argmax_j sum_i w_ij m_j^(i). The rest is literal: t counts all samples, not those of a class, so the weights of
a class that is predicted late or seldom hardly move. Where all experts give the predicted class 0, the confidences
(0 / 0 in line 4) are equal, 1 / experts.
"""

import numpy as np

from tff_cluster.aggregation import expert_outputs
from tff_cluster.aggregation.rule import SUBJECT, PredictionRule
from tff_cluster.base.errors import InputError


def fedex(outputs: np.ndarray, start_weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
  """Predicts a stream of samples in their order (Algorithm 2).

  Args:
    outputs: float[experts, samples, classes].
    start_weights: float[experts, classes]; None: 1 / experts each.

  Returns:
    The predictions int64[samples] and the weights after the last sample, float64[experts, classes].

  Raises:
    InputError: if an array has a wrong shape or number.
  """
  outputs = expert_outputs.checked_outputs(outputs)
  weights = _start(outputs, start_weights)
  return _stream(outputs, _confidences(outputs), np.arange(outputs.shape[1]), weights), weights


def shuffled(
  outputs: np.ndarray, rng: np.random.Generator, times: int, start_weights: np.ndarray | None = None
) -> np.ndarray:
  """Returns what `fedex` predicts when the same samples come in another order.

  Args:
    outputs: float[experts, samples, classes].
    rng: Draws the orders.
    times: How many orders, at least 1.
    start_weights: As in `fedex`.

  Returns:
    int64[times, samples]. Column k belongs to sample k of `outputs`, whenever it came.

  Raises:
    InputError: if an array has a wrong shape or number, or times is below 1.
  """
  if times < 1:
    raise InputError(f'times={times}: must be at least 1')
  outputs = expert_outputs.checked_outputs(outputs)
  confidences = _confidences(outputs)
  predictions = np.empty((times, outputs.shape[1]), np.int64)
  for row in predictions:
    order = rng.permutation(outputs.shape[1])
    row[order] = _stream(outputs, confidences, order, _start(outputs, start_weights))
  return predictions


def _start(outputs: np.ndarray, start_weights: np.ndarray | None) -> np.ndarray:
  """Returns weights that may be written to."""
  if start_weights is None:
    return np.full((outputs.shape[0], outputs.shape[2]), 1.0 / outputs.shape[0])
  return expert_outputs.checked_weights(start_weights, outputs)


def _confidences(outputs: np.ndarray) -> np.ndarray:
  """Returns float64[experts, samples, classes], c^(i) of line 4 for every class that could be predicted."""
  # Added up expert after expert: NumPy's own sum may add in another order for another number of samples.
  total = np.zeros(outputs.shape[1:])
  for expert in outputs:
    total += expert
  equal = np.full_like(outputs, 1.0 / len(outputs))
  return np.divide(outputs, total, out=equal, where=total > 0.0)


def _stream(
  outputs: np.ndarray, confidences: np.ndarray, order: np.ndarray, weights: np.ndarray
) -> np.ndarray:
  """Predicts the samples in an order, and updates the weights in place."""
  predictions = np.empty(len(order), np.int64)
  for t, sample in enumerate(order.tolist(), start=1):
    predictions[t - 1] = _step(weights, outputs[:, sample], confidences[:, sample], t)
  return predictions


def _step(weights: np.ndarray, outputs: np.ndarray, confidences: np.ndarray, t: int) -> int:
  """Algorithm 2, lines 2 to 8, for one sample, the t-th from 1; all arrays [experts, classes].

  The weights before the update give the prediction; then those of the predicted class are updated in place. Columns that
  summed to 1 still do.
  """
  predicted = int((weights * outputs).sum(axis=0).argmax())
  weights[:, predicted] = (weights[:, predicted] * t + confidences[:, predicted]) / (t + 1)
  return predicted


def _predictions(probabilities: np.ndarray, start_weights: np.ndarray | None = None) -> np.ndarray:
  return fedex(probabilities, start_weights)[0]


RULE = PredictionRule(
  name='fedex',
  words='FedEx’s online layer (Algorithm 2)',
  function=_predictions,
  position=11,
  roles=frozenset({SUBJECT}),
)
