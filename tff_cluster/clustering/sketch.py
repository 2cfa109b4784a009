"""Count sketches: long signatures in few numbers, with nearly the same Euclidean distances.

Every feature has one bucket and one sign, drawn from a seed; a client's sketch is, in each bucket, the sum of its
signed features there (Charikar, Chen and Farach-Colton 2002, "Finding Frequent Items in Data Streams"; as a
projection that keeps inner products, Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask
Learning"). The sketch is linear, needs one pass over a vector and can be taken where the vector is: a client that
knows seed and dimension sends `dimension` numbers instead of its weights.

Squared Euclidean distances and inner products of sketches are unbiased: their expectation over seeds is that of
the vectors. The standard deviation is at most sqrt(2 / dimension) of a squared distance itself, and of an inner product
of the product of the two lengths. So Euclidean distances, and by
them k-means, dynamic distance and all linkages under l2, and cosine distances carry over.

Departures and choices: no sketch of this kind keeps sums of absolute differences. The l1 distance of two sketches
can be clustered by, but it does not estimate the l1 distance of the vectors.
"""

import dataclasses

import numpy as np

from tff_cluster.base import records, seeding
from tff_cluster.base.errors import InputError


@dataclasses.dataclass(frozen=True)
class Distortion(records.Record):
  """How much a sketch changes Euclidean distances: |of sketches - of vectors| / of vectors, over pairs.

  Attributes:
    mean: Mean relative error.
    percentile_95: Not exceeded by 95% of the pairs.
    maximum: The largest.
    pairs: Pairs counted; those of equal vectors have equal sketches and no relative error. Without any, all is 0.
  """

  mean: float
  percentile_95: float
  maximum: float
  pairs: int


def projection(features: int, dimension: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns where each feature goes: buckets int32[features] in [0, dimension) and signs int8[features], -1 or 1.

  Args:
    features: Numbers a vector.
    dimension: Numbers a sketch.
    seed: Seed; equal arguments give equal arrays on every machine.

  Raises:
    InputError: if a number is below 1, or the dimension is not below 2**31.
  """
  if features < 1:
    raise InputError(f'a sketch of {features} features: at least 1 is needed')
  if not 1 <= dimension < 2**31:
    raise InputError(f'sketch dimension {dimension}: must be at least 1 and below 2**31')
  draw = seeding.generator(seed, 'count sketch', features, dimension)
  buckets = draw.integers(dimension, size=features, dtype=np.int32)
  signs = draw.integers(2, size=features, dtype=np.int8) * np.int8(2) - np.int8(1)
  return buckets, signs


def sketch(vectors: np.ndarray, dimension: int, seed: int) -> np.ndarray:
  """Returns the vectors' count sketches.

  sketch[client, b] is the sum of signs[f] * vectors[client, f] over the features f with buckets[f] == b, for the
  arrays of `projection(features, dimension, seed)`; summed in float64.

  Args:
    vectors: float[clients, features]; may be a memmap, which is read once, a client at a time.
    dimension: Numbers a sketch.
    seed: Seed of the projection.

  Returns:
    float32[clients, dimension].

  Raises:
    InputError: as `projection`; also if the vectors are no matrix, or a sum overflows float32.
  """
  if vectors.ndim != 2:
    raise InputError(f'vectors to sketch must be [clients, features], found shape {vectors.shape}')
  buckets, signs = projection(vectors.shape[1], dimension, seed)
  places = buckets.astype(np.intp)  # Once, and not at every call of bincount.
  result = np.empty((len(vectors), dimension), np.float32)
  with np.errstate(over='ignore', invalid='ignore'):
    for row, vector in zip(result, vectors, strict=True):
      row[:] = np.bincount(places, weights=signs * np.asarray(vector), minlength=dimension)
  if not np.isfinite(result).all():
    raise InputError('the sketches of these vectors overflow; scale the vectors down')
  return result


def distortion(vectors: np.ndarray, sketches: np.ndarray) -> Distortion:
  """Returns by how much the Euclidean distances of some clients' sketches are off.

  Args:
    vectors: float[clients, features], a sample of the clients: time grows with the square of their number.
    sketches: float[clients, dimension], of the same clients in the same order.

  Raises:
    InputError: if the clients are not equally many.
  """
  from tff_cluster.clustering import distances as distances_lib  # SciPy, which readers of results need not.

  if len(vectors) != len(sketches):
    raise InputError(f'{len(vectors)} vectors and {len(sketches)} sketches; give those of the same clients')
  exact, found = (
    distances_lib.condensed(distances_lib.pairwise_distances(of, 'l2')) for of in (vectors, sketches)
  )
  apart = exact > 0.0
  if not apart.any():
    return Distortion(0.0, 0.0, 0.0, 0)
  errors = np.abs(found[apart] / exact[apart] - 1.0)
  return Distortion(
    float(errors.mean()), float(np.quantile(errors, 0.95)), float(errors.max()), int(apart.sum())
  )
