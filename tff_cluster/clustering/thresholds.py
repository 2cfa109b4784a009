"""Distance thresholds that are given as words: mean, a number, or quantile:q."""

import numpy as np

from tff_cluster.base import fields
from tff_cluster.base.errors import InputError, argument


def parse_threshold(text: str) -> tuple[str, float]:
  """Reads a distance threshold: ('mean', nan), ('number', T) or ('quantile', q).

  Raises:
    InputError: where the text is none of them, or the number is out of range.
  """
  if text == 'mean':
    return 'mean', float('nan')
  kind, colon, number = text.rpartition(':')
  try:
    value = fields.number(number)
  except ValueError:
    value = float('nan')
  if kind == 'quantile' and 0.0 <= value <= 1.0:
    return 'quantile', value
  if not colon and 0.0 <= value < float('inf'):
    return 'number', value
  raise InputError(
    f'{argument("distance_threshold", text)}: allowed are mean, a number >= 0, or quantile:q with q from 0 to 1'
  )


def resolve(text: str, distances: np.ndarray) -> float | None:
  """Returns the threshold that the text means for these distances.

  Args:
    text: 'mean' (of all pairs i < j, Algorithm 2 of Rohith et al. 2020), a number, or 'quantile:q' (of all
      pairs, with linear interpolation).
    distances: float64[clients, clients].

  Returns:
    The threshold; None where it is taken from pairs and there is one client only.

  Raises:
    InputError: if the text is none of these.
  """
  # SciPy takes longer to load than flags may take to be read.
  from tff_cluster.clustering import distances as distances_lib

  kind, value = parse_threshold(text)
  if kind == 'number':
    return value
  pairs = distances_lib.condensed(distances)
  if not pairs.size:
    return None
  if kind == 'quantile':
    return float(np.quantile(pairs, value))
  # Rounding must not push the mean of equal distances below them: everybody would be alone.
  return float(np.clip(pairs.mean(), pairs.min(), pairs.max()))


def describe(text: str) -> str:
  """Returns what the text means, in words that follow a number in brackets."""
  kind, value = parse_threshold(text)
  words = {
    'mean': 'mean of all pairwise distances',
    'number': 'as given',
    'quantile': f'quantile {value:g} of the pairwise distances',
  }
  return words[kind]
