"""What numbers over seeds settle: whether their mean lies inside a zone, outside of it, or neither is sure.

A zone is where a number must lie: near a printed one, or where a claim says. The mean over seeds lies inside where its 90%
Student interval does (two one-sided tests at 5%; Schuirmann 1987), outside where its 95% interval has nothing in common with the
zone. One or two seeds settle nothing. Margins are those of scorecard/units.py.
"""

import math
from collections.abc import Sequence

from tff_cluster.scorecard.intervals import student_interval

# From so many seeds on there is a verdict.
FEWEST_SEEDS = 3
INSIDE, OUTSIDE, UNDECIDED = 'inside', 'outside', 'undecided'
NOT_RUN, NOT_DECIDABLE = 'not run', 'not decidable here'
# By the number of seeds.
FEW = {1: 'one seed', 2: 'two seeds'}
_SLACK = 1e-9  # Keeps what is exactly at a limit from being judged by rounding of binary fractions.


def is_within(value: float, low: float, high: float) -> bool:
  """Returns whether a number lies in a zone, its ends included."""
  return low - _SLACK <= value <= high + _SLACK


def place(
  values: Sequence[float],
  low: float = -math.inf,
  high: float = math.inf,
  inside_of: int = 1,
  outside_of: int = 1,
  at_least: float = math.inf,
) -> str:
  """Returns where the mean of numbers lies: INSIDE, OUTSIDE, UNDECIDED, or 'one seed' or 'two seeds'.

  Args:
    values: At least one, one a seed; infinite where a ratio has no denominator or a target is never reached, nan where nothing can
      be said of a seed. With infinite ones there is no interval. They are INSIDE where all values lie inside, and so does the interval in
      which the farthest finite value stands in the place of what is infinite; OUTSIDE where all are infinite, or where all lie above the
      zone and their interval does with `at_least` in that place.
    low, high: The zone.
    inside_of, outside_of: Of how many that are decided together one is enough to be INSIDE, or OUTSIDE: the levels of the intervals are
      Bonferroni's.
    at_least: What is known of an infinite number, as of a target that was not reached the rounds that were run.
  """
  if len(values) < FEWEST_SEEDS:
    return FEW[len(values)]
  if any(map(math.isnan, values)):
    return UNDECIDED
  if any(map(math.isinf, values)):
    finite = [value for value in values if math.isfinite(value)]
    if all(is_within(value, low, high) for value in values):
      near = [min(max(value, min(finite)), max(finite)) for value in values] if finite else []
      return INSIDE if not near or _is_inside(near, low, high, inside_of) else UNDECIDED
    if not finite and len(set(values)) == 1:
      return OUTSIDE
    known = [at_least if value == math.inf else value for value in values]
    above = all(value > high + _SLACK for value in values) and all(map(math.isfinite, known))
    return OUTSIDE if above and _is_beyond(known, low, high, outside_of) else UNDECIDED
  if _is_inside(values, low, high, inside_of):
    return INSIDE
  return OUTSIDE if _is_beyond(values, low, high, outside_of) else UNDECIDED


def _is_inside(values: Sequence[float], low: float, high: float, inside_of: int) -> bool:
  """Returns whether the 90% interval of finite numbers lies in a zone."""
  inner = student_interval(values, 1 - 0.1 / inside_of)
  assert inner.low is not None and inner.high is not None
  return is_within(inner.low, low, high) and is_within(inner.high, low, high)


def _is_beyond(values: Sequence[float], low: float, high: float, outside_of: int) -> bool:
  """Returns whether the 95% interval of finite numbers has nothing in common with a zone."""
  outer = student_interval(values, 1 - 0.05 / outside_of)
  assert outer.low is not None and outer.high is not None
  return outer.high < low - _SLACK or outer.low > high + _SLACK


def place_of_answers(answers: Sequence[bool]) -> str:
  """Returns INSIDE where something is so in every seed, OUTSIDE where it is not in at least half of them, else UNDECIDED.

  What is either so or not has no Student interval.

  Args:
    answers: At least one, one a seed.
  """
  if len(answers) < FEWEST_SEEDS:
    return FEW[len(answers)]
  right = sum(answers)
  return INSIDE if right == len(answers) else OUTSIDE if 2 * right <= len(answers) else UNDECIDED


def agreed(places: Sequence[str], enough: int | None = None) -> str:
  """Returns the place of several together: INSIDE where enough are, OUTSIDE where too few still can be, else what hinders it.

  Args:
    places: What `place` returns, or another word for what is missing, of each.
    enough: How many must be INSIDE; None: all.

  Returns:
    INSIDE, OUTSIDE, a word for what is missing, 'one seed', 'two seeds' or UNDECIDED, the first that applies.
  """
  wanted = len(places) if enough is None else enough
  if places.count(INSIDE) >= wanted:
    return INSIDE
  if len(places) - places.count(OUTSIDE) < wanted:
    return OUTSIDE
  open_ones = [found for found in places if found not in (INSIDE, OUTSIDE)]
  missing = [found for found in open_ones if found != UNDECIDED and found not in FEW.values()]
  return next((found for found in (*missing, *FEW.values()) if found in open_ones), UNDECIDED)
