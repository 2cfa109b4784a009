"""Numbers in words: the one place that says how accuracies, differences, times and sizes are printed."""

from collections.abc import Mapping

_MINUS = '−'


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


def score(value: float | None) -> str:
  """Returns a recovery score such as ARI with two decimals; a dash for None.

  A score below 1 is never printed as 1.00, which readers would take for an exact match.
  """
  if value is None:
    return '–'
  text = _plain(value, 2)
  return '0.99' if text == '1.00' and value < 1.0 - 1e-12 else text


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
    if count < 999.5 or unit == 'TB':
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


def series(items: list[str]) -> str:
  """Returns 'a', 'a and b' or 'a, b and c'."""
  return items[0] if len(items) == 1 else f'{", ".join(items[:-1])} and {items[-1]}' if items else ''


def basis(method: str, signature: str | None) -> str:
  """Returns what a clustering was found on, after 'found on the clients’': 'weights', 'updates', ..."""
  if method == 'planted':
    return 'planted groups, an oracle'
  return 'updates, by recursive bi-partition' if method == 'bipartition' else str(signature)


def _plain(value: float, decimals: int) -> str:
  text = f'{value:.{decimals}f}'
  if text.startswith('-'):
    text = text[1:] if not text.strip('-0.') else _MINUS + text[1:]
  return text
