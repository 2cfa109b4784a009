"""The answer of a comparison in words; a difference counts where its interval excludes zero."""

from collections.abc import Iterator

from tff_cluster.base.words import capital, percent, plural, points, series
from tff_cluster.experiment.config import PERSONALIZED
from tff_cluster.scorecard.contenders import BUDGETS, ROUNDS
from tff_cluster.scorecard.intervals import seeds_needed
from tff_cluster.scorecard.paired_statistics import Difference, Statistics

# Points of mean client accuracy that are worth telling apart. Asked is for how many seeds a difference of this size takes: one as
# large as that observed would follow chance, and near zero no number of seeds shows it.
WORTH_SHOWING = 0.01


def sentences(statistics: Statistics) -> list[str]:
  """Returns overlap against disjoint at either budget, and the clusterings against clients with models of their own."""
  words = {
    'above': 'is better than',
    'unclear': 'is not shown to be better or worse than',
    'below': 'is worse than',
  }
  told: dict[str, list[str]] = {}
  for budget in statistics.summaries:
    overlapping, disjoint = (statistics.best(kind, budget) for kind in ('overlapping', 'disjoint'))
    if overlapping is not None and disjoint is not None:
      difference = statistics.pair(overlapping.name, disjoint.name, budget).difference
      sentence = (
        f'the best overlapping clustering, {overlapping.name} ({percent(overlapping.mean.mean)}), '
        f'{words[difference.side]} the best disjoint one, {disjoint.name} ({percent(disjoint.mean.mean)}): '
        f'{difference.words}{_would_do(difference, len(statistics.seeds))}.'
      )
      told.setdefault(sentence, []).append(f'at {BUDGETS[budget]}')
  found = [f'{capital(series(budgets))} {sentence}' for sentence, budgets in told.items()]
  return [*found, *_against_personalized(statistics)]


def _against_personalized(statistics: Statistics) -> Iterator[str]:
  """Yields which clusterings are better than each baseline in which clients have models of their own."""
  clusterings = [s for s in statistics.summaries[ROUNDS] if s.is_clustering and s.kind != 'oracle']
  for name, title in PERSONALIZED.items():
    over = {s.name: difference for s in clusterings if (difference := s.over[name]) is not None}
    if over:
      better = [label for label, difference in over.items() if difference.side == 'above']
      yield f'Better than {title}: {series(better) or "no clustering"}.'


def enough_seeds(statistics: Statistics) -> str:
  """Returns whether there are seeds enough for the clusterings whose interval holds zero, and how many would do.

  Empty where there are no clusterings.
  """
  count, worth = len(statistics.seeds), f'{100 * WORTH_SHOWING:g} point'
  gains = {s.name: s.gain for s in statistics.summaries[ROUNDS] if s.is_clustering}
  if not gains:
    return ''
  if count == 1:
    return (
      'One seed is too few: it does not tell how much seeds differ. Run 3 to see that, and how many would do.'
    )
  unclear = {name: gain for name, gain in gains.items() if gain.side == 'unclear'}
  needed = {name: _needed(gain) for name, gain in unclear.items()}
  lacking = [name for name, seeds in needed.items() if seeds > count]
  if lacking:
    whom = 'all of them' if len(lacking) == len(gains) > 1 else series(lacking)
    spread, most = max(unclear[name].spread or 0.0 for name in lacking), max(needed[name] for name in lacking)
    seen = max(_needed(unclear[name], unclear[name].interval.mean) for name in lacking)
    seen_words = f'{seen:,} would show differences as large as here and ' if seen < most else ''
    return (
      f'{plural(count, "seed")} are too few for {whom}: where seeds differ as here (standard deviation {_size(spread)}), '
      f'{seen_words}{most:,} would show one of {worth}, in four of five comparisons (paired t-test over seeds, 5%).'
    )
  if unclear:
    return (
      f'Where seeds differ as here, {plural(count, "seed")} show a difference of {worth} in four of five comparisons or more '
      '(paired t-test over seeds, 5%).'
    )
  return f'{plural(count, "seed")} are enough for that: no interval holds zero.'


def _would_do(difference: Difference, count: int) -> str:
  """Returns how many seeds would show a difference that is unclear; empty where there are as many, or only one."""
  if difference.side != 'unclear' or difference.spread is None or _needed(difference) <= count:
    return ''
  return f'; {_needed(difference):,} seeds would show a difference of {100 * WORTH_SHOWING:g} point in four of five comparisons'


def _needed(difference: Difference, size: float = 0.0) -> int:
  """Returns how many seeds would show a difference of this size, or of WORTH_SHOWING where it is less."""
  return seeds_needed(difference.spread or 0.0, max(abs(size), WORTH_SHOWING))


def _size(spread: float) -> str:
  return points(spread).removeprefix('+')
