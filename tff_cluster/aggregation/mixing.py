"""New models as weighted means of models: the rules that make them (rules/) differ in a matrix only.

A mixing matrix is float64[models, columns]; its columns sum to 1, and column c is the recipe of the c-th new
model. Source of start weights: Rohith et al. 2020, section 6.2.
"""

from collections.abc import Sequence

import numpy as np

from tff_cluster.base.types import Weights
from tff_cluster.clustering.assignment import ClusterAssignment

_CHUNK_BYTES = 32 * 2**20
# Models of a column from which on it is worth while to look for what columns have in common.
_MANY = 32
# Weights that differ by less than this share of each other are the same: rounding where the matrix was made.
_SLACK = 2.0**-40


def start_weights(assignment: ClusterAssignment, finite: np.ndarray | None = None) -> np.ndarray:
  """Returns float64[clusters, clients], rows sum to 1: a cluster starts from its members' mean (section 6.2).

  The row of a cluster none of whose members has finite weights is 0.

  Transposed it is a mixing matrix over the clients' models.

  Args:
    assignment: The clusters.
    finite: bool[clients], whose weights are finite; the others have no part in the mean. All, if not given.
  """
  member = assignment.membership if finite is None else assignment.membership * finite
  return member / np.maximum(member.sum(axis=1, keepdims=True), 1)


def apply_mixing(
  weights: Sequence[np.ndarray], mixing: np.ndarray, chunk_bytes: int = _CHUNK_BYTES
) -> list[np.ndarray]:
  """Mixes models.

  Sums run in float64. A model with weight 0 takes no part, so that a diverged model (NaN) stays with those who
  use it.

  Args:
    weights: The models' arrays, each [models, ...]; may be memmaps.
    mixing: float64[models, columns], columns sum to 1.
    chunk_bytes: About how much memory the working copies may take beside the result.

  Returns:
    The new models' arrays, each float32[columns, ...].

  Raises:
    ValueError: if mixing is no mixing matrix, or an array's leading axis is not its number of models.
  """
  mixing = np.asarray(mixing, np.float64)
  if mixing.ndim != 2 or 0 in mixing.shape:
    raise ValueError(f'mixing must be [models, columns], found shape {mixing.shape}')
  sums = mixing.sum(axis=0)
  if not np.allclose(sums, 1.0, rtol=0.0, atol=1e-9):
    column = int(np.argmax(~np.isclose(sums, 1.0, rtol=0.0, atol=1e-9)))
    raise ValueError(f'columns of mixing must sum to 1; column {column} sums to {sums[column]:.12g}')
  for position, array in enumerate(weights):
    if np.ndim(array) < 1 or len(array) != len(mixing):
      raise ValueError(
        f'array {position} has shape {np.shape(array)}, expected a leading axis of {len(mixing)} models'
      )
  with np.errstate(invalid='ignore', over='ignore'):  # Models that diverged.
    return [_mix(array, mixing, chunk_bytes) for array in weights]


def mixed_model(weights: Sequence[np.ndarray], column: np.ndarray) -> Weights:
  """Returns the model that a column of a mixing matrix makes, float64[models]; see `apply_mixing`."""
  return tuple(array[0] for array in apply_mixing(weights, column[:, None]))


def _mix(array: np.ndarray, mixing: np.ndarray, chunk_bytes: int) -> np.ndarray:
  taking_part = np.flatnonzero(mixing.any(axis=1))
  mixing = mixing[taking_part]
  flat = np.reshape(array, (len(array), -1))
  columns = mixing.shape[1]
  common = _common_weights(mixing)
  result = np.empty((columns, flat.shape[1]), np.float32)
  width = max(chunk_bytes // (8 * (len(mixing) + columns)), 1)
  for start in range(0, flat.shape[1], width):
    part = flat[:, start : start + width]
    chunk = np.asarray(part if len(mixing) == len(flat) else part[taking_part], np.float64)
    shared = (chunk.sum(axis=0), np.abs(chunk).sum(axis=0)) if common.any() else None
    for column in range(columns):
      if shared is not None and common[column]:
        mixed = _mix_shared(chunk, mixing[:, column], common[column], *shared)
      else:
        mixed = _mix_plainly(chunk, mixing[:, column])
      result[column, start : start + width] = mixed
  return result.reshape(columns, *np.shape(array)[1:])


def _common_weights(mixing: np.ndarray) -> np.ndarray:
  """Returns float64[columns], what a column gives to most models; 0 where that is different, or there are few models."""
  if len(mixing) <= _MANY:
    return np.zeros(mixing.shape[1])
  usual = np.median(mixing, axis=0)
  alike = (np.abs(mixing - usual) <= _SLACK * usual).sum(axis=0)
  return np.where(2 * alike > len(mixing), usual, 0.0)


def _mix_plainly(chunk: np.ndarray, weights: np.ndarray) -> np.ndarray:
  """Returns float64[features], the models' weighted sum.

  Added up model after model: a matrix product gives other bits with another number of threads or of columns, and start
  weights must be the same bits in every phase and after every resume.
  """
  total = np.zeros(chunk.shape[1])
  for model in np.flatnonzero(weights):
    total += weights[model] * chunk[model]
  return total


def _mix_shared(
  chunk: np.ndarray, weights: np.ndarray, common: float, sums: np.ndarray, magnitudes: np.ndarray
) -> np.ndarray:
  """Returns what _mix_plainly gives, to the bit of float32, without going through all models.

  It is the common weight times the models' sum, and what some models have beside that. Sums in another order differ by
  rounding, which has a bound; where a float32 could come out otherwise within it, the sum is made as it is there.

  Args:
    chunk: float64[models, features].
    weights: float64[models].
    common: What almost all of them are.
    sums, magnitudes: float64[features], the models' sum and that of their absolute values.
  """
  others = weights - common
  others[np.abs(others) <= _SLACK * abs(common)] = 0.0
  some = np.flatnonzero(others)
  total, magnitude = common * sums, abs(common) * magnitudes
  for model in some:
    total += others[model] * chunk[model]
    magnitude = magnitude + np.abs(others[model] * chunk[model])
  bound = ((len(weights) + 8) * 2.0**-51 + _SLACK) * magnitude
  # Also what is not finite.
  unsure = np.flatnonzero(~((total - bound).astype(np.float32) == (total + bound).astype(np.float32)))
  if len(unsure):
    part = np.flatnonzero(weights)
    # Accumulated, which is model after model as well.
    total[unsure] = np.cumsum(weights[part, None] * chunk[np.ix_(part, unsure)], axis=0)[-1]
  return total
