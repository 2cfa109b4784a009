"""Numbers and ids in words: the one place that says how accuracies, differences, times, sizes and clients are printed.

And what libraries and other programs say, in one line.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_MINUS = '−'
_MOST_DECIMALS = 6
# Of what other programs and libraries say.
_LONGEST_LINE = 300
# What needs no quotes in a sentence or a list: letters and digits of any script, and signs that end nothing.
_PLAIN_ID = re.compile(r'[\w.:@/+-]+')


def message_of(error: BaseException) -> str:
  """Returns what an error says, in one line."""
  return ' '.join(str(error).split()) or 'no message'


def first_line(text: object, otherwise: str) -> str:
  """Returns the first line of a text or an error that says something, at most 300 characters; else what is given for that."""
  return next(_lines(text), otherwise)


def last_line(text: object, otherwise: str) -> str:
  """Returns the last such line."""
  return ([otherwise, *_lines(text)])[-1]


def percent(share: float | None, decimals: int = 1) -> str:
  """Returns a share from 0 to 1 as '93.4%'; a dash for None."""
  return '–' if share is None else f'{_plain(100.0 * share, decimals)}%'


def points(difference: float | None, decimals: int = 1) -> str:
  """Returns a difference of shares (0.051) in percentage points, always signed: '+5.1 points'."""
  return '–' if difference is None else f'{signed(100.0 * difference, decimals)} points'


def signed(value: float, decimals: int = 1) -> str:
  """Returns '+5.1', '−0.3' or, where nothing is left after rounding, '0.0'."""
  text = _plain(value, decimals)
  return text if text.startswith(_MINUS) or not text.strip('0.') else f'+{text}'


def score(value: float | None, decimals: int = 2) -> str:
  """Returns a recovery score such as ARI with two decimals or more; a dash for None.

  A score below 1 is never printed as 1.00, which readers would take for an exact match.
  """
  if value is None:
    return '–'
  text = _plain(value, decimals)
  return f'0.{"9" * decimals}' if text == f'1.{"0" * decimals}' and value < 1.0 - 1e-12 else text


def error(value: float | None) -> str:
  """Returns an error that is 0 at best with two decimals, a dash for None; one above 0 is never printed as 0.00."""
  if value is None:
    return '–'
  text = _plain(value, 2)
  return '< 0.01' if text == '0.00' and value > 1e-12 else text


def decimals_for(values: Sequence[float], verdict: Callable[..., Any], decimals: int = 1) -> int:
  """Returns with how many decimals numbers must be printed so that nobody judges them otherwise than we do.

  Args:
    values: The numbers in the unit in which they are printed, for instance percent.
    verdict: What is told beside them; takes as many numbers as there are values.
    decimals: The fewest.

  Returns:
    The fewest decimals at which the verdict on the rounded numbers is that on the numbers, at most 6.
  """
  values = [float(value) for value in values]
  told = verdict(*values)
  for fewest in range(decimals, _MOST_DECIMALS):
    if verdict(*(round(value, fewest) for value in values)) == told:
      return fewest
  return _MOST_DECIMALS


def differ(one: float, other: float) -> int:
  """Returns -1, 0 or 1 where the first number is below, equal to or above the second: a verdict for `decimals_for`."""
  return int(one > other) - int(one < other)


def points_apart(difference: float, decimals: int = 1) -> str:
  """Returns a difference of shares in points, never rounded to 0.0 unless it is none."""
  return points(difference, decimals_for([100.0 * difference], lambda d: differ(d, 0.0), decimals))


def interval_decimals(low: float, high: float) -> int:
  """Returns with how many decimals the ends of an interval are printed: one that excludes zero does so in print."""
  return decimals_for([low, high], lambda a, b: (a > 0.0, b < 0.0))


def interval_points(mean: float, low: float | None, high: float | None) -> tuple[str, str]:
  """Returns '+1.2 points' and '+0.3 to +2.1 points'; an interval that excludes zero does so in print.

  Args:
    mean: A difference of shares.
    low, high: Of its interval; None where there is none, and the second text is empty.
  """
  if low is None or high is None:
    return points(mean), ''
  decimals = interval_decimals(100.0 * low, 100.0 * high)
  return points(mean, decimals), f'{signed(100.0 * low, decimals)} to {points(high, decimals)}'


def client(client_id: str) -> str:
  """Returns a client's id as sentences, lists and tables show it: in quotes where it is more than one plain word."""
  return client_id if _PLAIN_ID.fullmatch(client_id) else f'“{client_id}”'


def duration(seconds: float) -> str:
  """Returns '12.3 s', '3 min 20 s' or '1 h 05 min'."""
  if seconds < 59.95:
    return f'{seconds:.1f} s'
  if seconds < 3599.5:
    minutes, rest = divmod(round(seconds), 60)
    return f'{minutes} min {rest:02d} s'
  hours, minutes = divmod(round(seconds / 60), 60)
  return f'{hours} h {minutes:02d} min'


def size(count: float) -> str:
  """Returns a number of bytes as '6.7 MB' (powers of 1000)."""
  for unit in ('B', 'kB', 'MB', 'GB', 'TB'):
    if abs(count) < 999.5 or unit == 'TB':
      break
    count /= 1000
  return f'{count:.0f} {unit}' if unit == 'B' else f'{count:.3g} {unit}'


def sizes(by_name: Mapping[str, int]) -> str:
  """Returns bytes by name as '337 MB (store 335 MB, figures 1.2 MB, other 0.9 MB)', what is below a percent in 'other'."""
  total = sum(by_name.values())
  large = {name: count for name, count in by_name.items() if count >= total / 100}
  parts = [f'{name} {size(count)}' for name, count in sorted(large.items(), key=lambda item: -item[1])]
  other = total - sum(large.values())
  return f'{size(total)} ({", ".join([*parts, *([f"other {size(other)}"] if other else [])])})'


def times(ratio: float) -> str:
  """Returns a ratio as '2.4 times'."""
  return f'{ratio:.1f} times'


def plural(count: int, noun: str) -> str:
  """Returns '1 client' or '1,200 clients'."""
  return f'{count:,} {noun}' + ('' if count == 1 else 's')


def capital(text: str) -> str:
  """Returns a text that begins a sentence."""
  return text[:1].upper() + text[1:]


def series(items: list[str]) -> str:
  """Returns 'a', 'a and b' or 'a, b and c'."""
  return items[0] if len(items) == 1 else f'{", ".join(items[:-1])} and {items[-1]}' if items else ''


def _plain(value: float, decimals: int) -> str:
  text = f'{value:.{decimals}f}'
  if text.startswith('-'):
    text = text[1:] if not text.strip('-0.') else _MINUS + text[1:]
  return text


def _lines(text: object) -> Iterator[str]:
  return (line.strip()[:_LONGEST_LINE] for line in str(text).splitlines() if line.strip())
