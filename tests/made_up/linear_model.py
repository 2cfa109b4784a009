"""Multinomial logistic regression in NumPy, float64: what the training and the measures of linear models are compared with.

A model is a kernel and a bias, or both in one vector, the kernel first. Rows have any shape; bytes are divided by 255.
"""

import numpy as np
from scipy import special


def flat(weights):
  """Returns float64[features]."""
  arrays = [weights] if isinstance(weights, np.ndarray) else weights
  return np.concatenate([np.ravel(array) for array in arrays]).astype(np.float64)


def _inputs(x):
  """Returns float64[rows, inputs + 1], the last column of ones for the bias."""
  x = x.reshape(len(x), -1) / (255 if x.dtype == np.uint8 else 1)
  return np.hstack([x, np.ones((len(x), 1))])


def logits(weights, x):
  """Returns float64[rows, classes]."""
  inputs = _inputs(x)
  return inputs @ flat(weights).reshape(inputs.shape[1], -1)


def probabilities(weights, x):
  """Returns float64[rows, classes]."""
  return special.softmax(logits(weights, x), axis=1)


def cross_entropies(weights, x, y):
  """Returns float64[rows], in nats."""
  return -special.log_softmax(logits(weights, x), axis=1)[np.arange(len(y)), y]


def gradient(weights, x, y, row_weights=1.0):
  """Returns float64[features], of the mean of the rows' cross-entropies, each multiplied with its weight."""
  error = probabilities(weights, x)
  error[np.arange(len(y)), y] -= 1.0
  return np.ravel(_inputs(x).T @ (error * np.reshape(row_weights, (-1, 1)))) / len(y)


def sgd(start, x, y, orders, batch, rate, row_weights=None, weight_decay=0.0, proximal_mu=0.0, anchor=None, step=None, altered=lambda x, step: x):  # fmt: skip
  """Returns float64[features], a model after a client's epochs.

  Args:
    start: Where it starts.
    x, y: The client's rows.
    orders: In which order each epoch visits them.
    batch, rate: Rows and length of a step.
    row_weights: float64[rows], what their losses are multiplied with.
    weight_decay, proximal_mu: Of weight_decay / 2 * |w|^2 and proximal_mu / 2 * |w - anchor|^2 beside the loss.
    anchor: The start if not given.
    step: Takes weights and gradient, and gives the weights after it, where that is no plain descent.
    altered: Takes the rows of a step and its number, and gives what is trained on instead.
  """
  weights, number = flat(start), 0
  anchor = weights if anchor is None else flat(anchor)
  row_weights = np.ones(len(y)) if row_weights is None else row_weights
  step = step or (lambda weights, slope: weights - rate * slope)
  for order in orders:
    for rows in np.split(order, range(batch, len(order), batch)):
      slope = gradient(weights, altered(x[rows], number), y[rows], row_weights[rows])
      slope += weight_decay * weights + proximal_mu * (weights - anchor)
      weights, number = step(weights, slope), number + 1
  return weights
