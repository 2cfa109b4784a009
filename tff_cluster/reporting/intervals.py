"""Intervals for a mean over clients, and for a mean over seeds."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

_CHUNK = 500


@dataclasses.dataclass(frozen=True)
class Interval:
  """A mean with its interval; low and high are None where one client, or one seed, leaves nothing to go by."""

  mean: float
  low: float | None
  high: float | None

  @property
  def excludes_zero(self) -> bool:
    return self.low is not None and self.high is not None and (self.low > 0.0 or self.high < 0.0)


def paired_bootstrap(
  differences: np.ndarray, rng: np.random.Generator, level: float = 0.95, samples: int = 10_000
) -> Interval:
  """Returns the percentile bootstrap interval of the mean difference (Efron & Tibshirani 1993, chapter 13).

  Clients are drawn with replacement, and with a client both of its accuracies: that is what paired means.
  The interval speaks of other clients like these, not of other seeds.

  Args:
    differences: float[clients], one difference a client.
    rng: Where the draws come from.
    level: Coverage that is aimed at.
    samples: Bootstrap samples.
  """
  differences = np.asarray(differences, np.float64)
  count = len(differences)
  mean = float(differences.mean())
  if count < 2:
    return Interval(mean, None, None)
  means = np.concatenate(
    [
      differences[rng.integers(count, size=(min(_CHUNK, samples - start), count))].mean(axis=1)
      for start in range(0, samples, _CHUNK)
    ]
  )
  low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
  return Interval(mean, float(low), float(high))


def student_interval(values: Sequence[float], level: float = 0.95) -> Interval:
  """Returns the mean with its interval over seeds by Student's t; one value has no interval.

  Args:
    values: One a seed.
    level: How much of the distribution the interval covers.
  """
  import scipy.special

  count, mean = len(values), float(np.mean(values))
  if count < 2:
    return Interval(mean, None, None)
  half = scipy.special.stdtrit(count - 1, (1 + level) / 2) * float(np.std(values, ddof=1)) / math.sqrt(count)
  return Interval(mean, mean - half, mean + half)
