"""New models as weighted means of models: average, weighted, own and blended differ in a matrix only.

A mixing matrix is float64[models, columns]; its columns sum to 1, and column c is the recipe of the c-th new
model. Sources: Rohith et al. 2020, sections 5.2.4 (own models), 6.2 (start weights) and 6.3 (the three
evaluations).

Departures and choices: a weighted average whose scores are all zero is the plain average.
"""

from collections.abc import Sequence

import numpy as np

from tff_cluster.assignment import ClusterAssignment
from tff_cluster.errors import InputError

_CHUNK_BYTES = 32 * 2**20


def average(num_models: int) -> np.ndarray:
  """Returns float64[models, 1], the mean of all models (section 6.3, first evaluation)."""
  _check_count(num_models)
  return np.full((num_models, 1), 1.0 / num_models)


def weighted(scores: np.ndarray) -> np.ndarray:
  """Returns float64[models, 1], proportional to the scores (section 6.3, second evaluation).

  Args:
    scores: float[models], each cluster's highest attained accuracy; not negative.

  Raises:
    InputError: if the scores are not such an array.
  """
  scores = np.asarray(scores, np.float64)
  if scores.ndim != 1 or not scores.size or not np.isfinite(scores).all() or (scores < 0.0).any():
    raise InputError(
      f'scores must be [models], finite and not negative, found {np.array2string(scores, threshold=8)}'
    )
  highest = scores.max()
  if highest == 0.0:
    return average(len(scores))
  shares = scores / highest  # The sum of tiny or huge scores could leave float64's range.
  return (shares / shares.sum())[:, None]


def own_models(assignment: ClusterAssignment) -> np.ndarray:
  """Returns float64[clusters, clients]: a client's model is the mean of its clusters' models (section 5.2.4)."""
  return assignment.membership / assignment.membership.sum(axis=0)


def blended_clusters(num_models: int) -> np.ndarray:
  """Returns float64[models, models]: each model becomes the mean of itself and the average (section 6.3, third)."""
  _check_count(num_models)
  return 0.5 * np.eye(num_models) + 0.5 / num_models


def blended(assignment: ClusterAssignment) -> np.ndarray:
  """Returns float64[clusters, clients]: a client's model is the mean of its clusters' blended models."""
  return blended_clusters(assignment.num_clusters) @ own_models(assignment)


def start_weights(assignment: ClusterAssignment, finite: np.ndarray | None = None) -> np.ndarray:
  """Returns float64[clusters, clients], rows sum to 1: a cluster starts from its members' mean (section 6.2).

  Transposed it is a mixing matrix over the clients' models.

  Args:
    assignment: The clusters.
    finite: bool[clients], whose weights are finite; the others have no part in the mean. All, if not given.

  Raises:
    InputError: if no member of a cluster has finite weights.
  """
  member = assignment.membership if finite is None else assignment.membership * finite
  counts = member.sum(axis=1, keepdims=True)
  if not counts.all():
    first = assignment.client_ids[assignment.members(int(np.argmin(counts)))[0]]
    raise InputError(
      f'client {first}: its weights became NaN or infinite, and so did those of its whole cluster, which has nothing to '
      'start from; use a smaller --learning_rate'
    )
  return member / counts


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
  return [_mix(array, mixing, chunk_bytes) for array in weights]


def _mix(array: np.ndarray, mixing: np.ndarray, chunk_bytes: int) -> np.ndarray:
  models, columns = mixing.shape
  flat = np.reshape(array, (models, -1))
  result = np.empty((columns, flat.shape[1]), np.float32)
  width = max(chunk_bytes // (8 * (models + columns)), 1)
  for start in range(0, flat.shape[1], width):
    chunk = np.asarray(flat[:, start : start + width], np.float64)
    for column in range(columns):
      # Added up model after model: a matrix product gives other bits with another number of threads or of
      # columns, and start weights must be the same bits in every phase and after every resume.
      total = np.zeros(chunk.shape[1])
      for model in np.flatnonzero(mixing[:, column]):
        total += mixing[model, column] * chunk[model]
      result[column, start : start + width] = total
  return result.reshape(columns, *np.shape(array)[1:])


def _check_count(num_models: int) -> None:
  if num_models < 1:
    raise InputError(f'num_models={num_models}: must be at least 1')
