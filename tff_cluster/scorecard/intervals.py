"""Intervals for a mean over clients, over seeds and over both, and how often a difference has which sign."""

import bisect
import copy
import dataclasses
import itertools
import math
from collections.abc import Sequence

import numpy as np

from tff_cluster.base.errors import InputError
from tff_cluster.base.words import interval_points

SAME = 1e-12  # Differences of accuracies up to this are no difference.
_CHUNK = 500
# Of a difference: that of its interval, and that of the inner one by which it is equivalent.
LEVELS = (0.95, 0.9)
# Of the test over seeds whose number is asked for.
_TEST_LEVEL, _POWER = 0.05, 0.8


@dataclasses.dataclass(frozen=True)
class Interval:
  """A mean with its interval; low and high are None where one client, or one seed, leaves nothing to go by."""

  mean: float
  low: float | None
  high: float | None

  @property
  def side(self) -> str:
    """'above' or 'below' where the interval excludes zero; 'unclear' where it holds it or there is none."""
    if self.low is None or self.high is None or self.low <= 0.0 <= self.high:
      return 'unclear'
    return 'above' if self.mean > 0 else 'below'

  @property
  def points(self) -> tuple[str, str]:
    """'+1.2 points' and '+0.3 to +2.1 points' of a difference of shares, see words.interval_points."""
    return interval_points(self.mean, self.low, self.high)

  @property
  def without_unit(self) -> tuple[str, str]:
    """'+1.2' and '+0.3 to +2.1', for columns of points."""
    mean, span = self.points
    return mean.removesuffix(' points'), span.removesuffix(' points')

  def words(self, over: str = '') -> str:
    """Returns '+1.2 points (95% interval +0.3 to +2.1 points)'; `over` says over what the interval is, ' over clients' for instance."""
    mean, span = self.points
    return f'{mean} ({f"95% interval{over} {span}" if span else "no interval: one client"})'


@dataclasses.dataclass(frozen=True)
class SignTest:
  """How many differences have which sign.

  Attributes:
    better, worse: Numbers of differences above and below zero.
    equal: Number of the others.
    p_value: Chance of signs at least as uneven if both were equally likely.
  """

  better: int
  worse: int
  equal: int
  p_value: float


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
  import scipy.stats

  differences = np.asarray(differences, np.float64)
  mean = float(differences.mean())
  if len(differences) < 2:
    return Interval(mean, None, None)
  found = scipy.stats.bootstrap(
    (differences,),
    np.mean,
    n_resamples=samples,
    batch=_CHUNK,
    vectorized=True,
    confidence_level=level,
    method='percentile',
    random_state=rng,
  ).confidence_interval
  return Interval(mean, float(found.low), float(found.high))


def seed_and_client_intervals(
  differences: Sequence[np.ndarray],
  rng: np.random.Generator,
  levels: Sequence[float] = LEVELS,
  samples: int = 10_000,
  clients: Sequence[Sequence[str]] | None = None,
) -> list[Interval]:
  """Returns for each level the percentile bootstrap interval of the mean difference over seeds and clients.

  Seeds are drawn with replacement, and clients with replacement within each seed that is drawn (a two-stage bootstrap, Davison &
  Hinkley 1997, section 3.8). Where a client stands under several seeds, clients are drawn once for all of them instead, seeds and clients
  independently of each other (the pigeonhole bootstrap, Owen 2007, Annals of Applied Statistics 1(2)): more seeds of the same
  clients tell nothing of other clients. Every seed weighs the same. The interval speaks of other seeds and other clients. A bootstrap of few seeds
  is too narrow: where seeds differ more than clients, an interval of 95% covers about 73% with 3 seeds, 85% with 5, 90% with
  10 and 92% with 20 (simulated, normal). `student_interval` of the seeds' means covers 95% there.

  Args:
    differences: float[clients] a seed, one difference a client; seeds may differ in their number of clients.
    rng: Where the draws come from.
    levels: Coverages that are aimed at; all have the same draws.
    samples: Bootstrap samples.
    clients: Their ids, [clients] a seed; None where no client stands under two seeds.

  Returns:
    The mean of the seeds' means with its intervals. For one seed those of `paired_bootstrap`, over clients alone.

  Raises:
    InputError: if there is no seed, or a seed has no clients or a difference that is not finite.
  """
  if not len(differences):
    raise InputError('differences must be of at least one seed, found none')
  by_seed = [_checked(own, f'differences of seed number {k}') for k, own in enumerate(differences)]
  if len(by_seed) == 1:
    return [paired_bootstrap(by_seed[0], copy.deepcopy(rng), level, samples) for level in levels]
  if clients is not None and len({*itertools.chain(*clients)}) == sum(map(len, clients)):
    clients = None
  means = []
  for start in range(0, samples, _CHUNK):
    drawn = rng.integers(len(by_seed), size=(min(_CHUNK, samples - start), len(by_seed)))
    own = (
      _of_own_clients(by_seed, drawn, rng)
      if clients is None
      else _of_same_clients(by_seed, clients, drawn, rng)
    )
    means.append(own.mean(axis=1))
  mean, of_samples = float(np.mean([own.mean() for own in by_seed])), np.concatenate(means)
  ends = (np.quantile(of_samples, [(1 - level) / 2, (1 + level) / 2]) for level in levels)
  return [Interval(mean, float(low), float(high)) for low, high in ends]


def _of_own_clients(by_seed: Sequence[np.ndarray], drawn: np.ndarray, rng: np.random.Generator) -> np.ndarray:
  """Returns float[samples, seeds], means over clients that are drawn anew for every seed of int[samples, seeds]."""
  found = np.empty(drawn.shape)
  for k, own in enumerate(by_seed):
    here = drawn == k
    found[here] = own[rng.integers(len(own), size=(int(here.sum()), len(own)))].mean(axis=1)
  return found


def _of_same_clients(
  by_seed: Sequence[np.ndarray], clients: Sequence[Sequence[str]], drawn: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
  """Returns float[samples, seeds], means over clients that are drawn once for all seeds of a sample."""
  numbers = {client: number for number, client in enumerate(sorted({*itertools.chain(*clients)}))}
  times = rng.multinomial(len(numbers), np.full(len(numbers), 1.0 / len(numbers)), size=len(drawn))
  means = np.empty((len(drawn), len(by_seed)))
  for k, (own, who) in enumerate(zip(by_seed, clients, strict=True)):
    weights = times[:, [numbers[client] for client in who]]
    # A seed of which no client was drawn has them all.
    weights[~weights.any(axis=1)] = 1
    means[:, k] = weights @ own / weights.sum(axis=1)
  return np.take_along_axis(means, drawn, axis=1)


def cautious_intervals(
  differences: Sequence[np.ndarray],
  rng: np.random.Generator,
  samples: int = 10_000,
  levels: Sequence[float] = LEVELS,
  clients: Sequence[Sequence[str]] | None = None,
) -> list[Interval]:
  """Returns for each level the wider one, end by end, of `seed_and_client_intervals` and of `student_interval` over the seeds' means.

  The bootstrap is too narrow where few seeds differ, Student's interval where the means of few seeds lie close together by
  chance.

  Args:
    differences, rng, samples, levels, clients: As in `seed_and_client_intervals`.
  """
  means, found = [float(np.mean(own)) for own in differences], []
  bootstrapped = seed_and_client_intervals(differences, rng, levels, samples, clients)
  for level, drawn in zip(levels, bootstrapped, strict=True):
    by_seed = student_interval(means, level)
    lows = [low for low in (drawn.low, by_seed.low) if low is not None]
    highs = [high for high in (drawn.high, by_seed.high) if high is not None]
    found.append(Interval(drawn.mean, min(lows, default=None), max(highs, default=None)))
  return found


def sign_test(differences: np.ndarray) -> SignTest:
  """Returns the exact two-sided sign test, differences of zero left out (Dixon & Mood 1946).

  Args:
    differences: float[n], of clients or of seeds; up to SAME either way is zero.

  Returns:
    The numbers and the p-value, 1 where every difference is zero.

  Raises:
    InputError: if there are no differences, or one is not finite.
  """
  import scipy.stats

  values = _checked(differences, 'differences')
  better, worse = int((values > SAME).sum()), int((values < -SAME).sum())
  p_value = float(scipy.stats.binomtest(better, better + worse).pvalue) if better + worse else 1.0
  return SignTest(better, worse, len(values) - better - worse, p_value)


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
  quantile = float(scipy.special.stdtrit(count - 1, (1 + level) / 2))
  half = quantile * float(np.std(values, ddof=1)) / math.sqrt(count)
  return Interval(mean, mean - half, mean + half)


def student_p_value(values: Sequence[float]) -> float:
  """Returns the two-sided p-value of Student's t-test that the mean of numbers, one a seed and two at least, is zero.

  Numbers that do not vary give 0, or 1 where they are zero.
  """
  import scipy.special

  error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
  mean = abs(float(np.mean(values)))
  if error <= SAME:
    return float(mean <= SAME)
  return 2.0 * float(scipy.special.stdtr(len(values) - 1, -mean / error))


def seeds_needed(spread: float, difference: float) -> int:
  """Returns how many seeds would do to show a difference, given how much it varies from seed to seed.

  A true difference of this size is found with a power of 80% by the two-sided paired t-test over seeds at 5%, whose statistic is
  then noncentral t with noncentrality sqrt(n) difference / spread (Cohen 1988, Statistical Power Analysis, chapter 2). The
  spread is itself an estimate: of few seeds it is a rough one, and so is the answer.

  Args:
    spread: Standard deviation of the seeds' mean differences, at least 0.
    difference: What is to be shown, above 0, in the unit of the spread.

  Returns:
    The smallest number of seeds, at least 2.
  """
  import scipy.special

  def shows(count: int) -> bool:
    centre, beyond = math.sqrt(count) * difference, scipy.special.stdtrit(count - 1, 1.0 - _TEST_LEVEL / 2)
    # Far beyond the limit the chance is 1, and the noncentral t overflows.
    if centre >= 10.0 * beyond * spread:
      return True
    centre /= spread
    outside = scipy.special.nctdtr(count - 1, centre, -beyond) - scipy.special.nctdtr(
      count - 1, centre, beyond
    )
    return 1.0 + float(outside) >= _POWER

  enough = 2
  while not shows(enough):
    enough *= 2
  return bisect.bisect_left(range(enough + 1), True, lo=enough // 2 + 1, key=shows)


def _checked(differences: np.ndarray, name: str) -> np.ndarray:
  """Returns float64[n], at least one finite number."""
  values = np.asarray(differences, np.float64)
  if values.ndim != 1 or not len(values):
    raise InputError(f'{name} must be a list of at least one number, found shape {values.shape}')
  if not np.isfinite(values).all():
    raise InputError(f'{name} must be finite, found {values[~np.isfinite(values)][0]}')
  return values
