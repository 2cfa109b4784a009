"""The answer of a comparison in words; what counts as a verdict says scorecard/paired_verdicts.py."""

from collections.abc import Iterator, Mapping

from tff_cluster.base.words import capital, percent, plural, points, series
from tff_cluster.experiment.config import PERSONALIZED
from tff_cluster.scorecard import paired_verdicts
from tff_cluster.scorecard.contenders import BUDGETS, ROUNDS
from tff_cluster.scorecard.intervals import seeds_needed
from tff_cluster.scorecard.paired_statistics import Difference, OnValidation, Statistics
from tff_cluster.studies.comparison import verdicts

# Points of mean client accuracy that are worth telling apart. Asked is for how many seeds a difference of this size takes: one as
# large as that observed would follow chance, and near zero no number of seeds shows it.
WORTH_SHOWING = 0.01
_WORDS = {
  paired_verdicts.HELPS: 'is better than',
  paired_verdicts.EQUIVALENT: f'is practically as good (within {paired_verdicts.WITHIN}) as',
  paired_verdicts.UNDECIDED: 'is not shown to be better or worse than',
  paired_verdicts.HARMS: 'is worse than',
}
# With too few seeds for a verdict.
_SIDES = {
  'above': 'came out above',
  'unclear': 'is not shown to be better or worse than',
  'below': 'came out below',
}


def sentences(statistics: Statistics) -> list[str]:
  """Returns overlap against disjoint at either budget, and the clusterings against clients with models of their own.

  Clusterings whose clients trained on for themselves are compared with fine-tuned FedAvg, too.
  """
  told: dict[str, list[str]] = {}
  for budget, found in statistics.chosen.items():
    if found is not None:
      told.setdefault(_overlap(found), []).append(f'at {BUDGETS[budget]}')
  found_words = [f'{capital(series(budgets))} {sentence}' for sentence, budgets in told.items()]
  return [*found_words, *_against_personalized(statistics), *_trained_on(statistics)]


def _overlap(found: OnValidation) -> str:
  """Returns the sentence on the overlapping and the disjoint clustering that validation rows choose."""
  difference, seeds = found.difference, len(found.difference.by_seed)
  (verdict,) = paired_verdicts.judge([difference])
  few = paired_verdicts.too_few(seeds)
  return (
    f'the overlapping clustering that validation rows choose, {found.overlapping.name} ({percent(found.overlapping.mean.mean)}), '
    f'{_SIDES[difference.side] if few else _WORDS[verdict]} the disjoint one that they choose, '
    f'{found.disjoint.name} ({percent(found.disjoint.mean.mean)}): {difference.words}{_would_do(difference, seeds)}'
    f'{f", and {few} {_give(seeds)} no verdict" if few else ""}.'
  )


def _give(seeds: int) -> str:
  return 'gives' if seeds == 1 else 'give'


def _against_personalized(statistics: Statistics) -> Iterator[str]:
  """Yields which clusterings are better than each baseline in which clients have models of their own."""
  clusterings = [s for s in statistics.summaries[ROUNDS] if s.is_clustering and s.kind != 'oracle']
  for name, title in PERSONALIZED.items():
    over = {s.name: difference for s in clusterings if (difference := s.over[name]) is not None}
    if over:
      yield _better(statistics, title, over)


def _trained_on(statistics: Statistics) -> Iterator[str]:
  """Yields which clusterings are better than fine-tuned FedAvg once their clients have trained on for themselves, too."""
  oracles = {s.name for s in statistics.summaries[ROUNDS] if s.kind == 'oracle'}
  found = [each for each in statistics.trained_on if each.name not in oracles]
  for rule in dict.fromkeys(each.rule for each in found):
    of_rule = [each for each in found if each.rule == rule]
    over = {each.name: gain for each in of_rule if (gain := each.over['fine_tuning']) is not None}
    if over:
      yield _better(statistics, PERSONALIZED['fine_tuning'], over, f', trained on by clients ({rule})')


def _better(statistics: Statistics, than: str, over: Mapping[str, Difference], how: str = '') -> str:
  """Returns which clusterings, by their differences, are better than something."""
  few = paired_verdicts.too_few(len(statistics.seeds))
  if few:
    above = [label for label, difference in over.items() if difference.side == 'above']
    return f'Above {than}, by intervals over {few}{how}: {series(above) or "no clustering"}.'
  judged = paired_verdicts.judge(list(over.values()))
  better = [label for label, verdict in zip(over, judged, strict=True) if verdict == paired_verdicts.HELPS]
  return f'Better than {than}{how}: {series(better) or "no clustering"}.'


def enough_seeds(statistics: Statistics) -> str:
  """Returns whether there are seeds enough for verdicts on all clusterings, and how many would show what is not shown.

  Empty where there are no clusterings.
  """
  gains = {s.name: s.gain for s in statistics.summaries[ROUNDS] if s.is_clustering}
  if not gains:
    return ''
  together = _together(statistics)
  return ' '.join(
    filter(None, [_for_verdicts(len(statistics.seeds), together), _for_size(statistics.seeds, gains)])
  )


def for_verdicts(statistics: Statistics) -> int:
  """Returns how many seeds verdicts on all clusterings take."""
  return paired_verdicts.seeds_for(_together(statistics))


def _together(statistics: Statistics) -> int:
  return max(map(len, verdicts.gain_families(statistics, ROUNDS)))


def _for_verdicts(count: int, clusterings: int) -> str:
  """Returns how many seeds a verdict takes; empty where there are as many."""
  needed = paired_verdicts.seeds_for(clusterings)
  if count >= needed:
    return ''
  of = (
    'one clustering takes' if clusterings == 1 else f'{clusterings} clusterings with Holm’s correction takes'
  )
  is_few = count < paired_verdicts.FEWEST_SEEDS
  given = (
    f'{plural(count, "seed")} {_give(count)} intervals and no verdict'
    if is_few
    else f'With {plural(count, "seed")} no difference can be shown'
  )
  return f'{given}: a sign test over seeds for {of} {needed}.'


def _for_size(seeds: tuple[int, ...], gains: dict[str, Difference]) -> str:
  """Returns whether there are enough for the clusterings whose interval holds zero."""
  count, worth = len(seeds), f'{100 * WORTH_SHOWING:g} point'
  unclear = {name: gain for name, gain in gains.items() if gain.side == 'unclear'}
  if count == 1:
    return 'One seed does not tell how much seeds differ.'
  needed = {name: _needed(gain) for name, gain in unclear.items()}
  lacking = [name for name, enough in needed.items() if enough > count]
  if lacking:
    whom = 'all of them' if len(lacking) == len(gains) > 1 else series(lacking)
    spread, most = max(unclear[name].spread or 0.0 for name in lacking), max(needed[name] for name in lacking)
    seen = max(_needed(unclear[name], unclear[name].interval.mean) for name in lacking)
    shown = [f'a gain as large as here with {seen:,} seeds'] if seen < most else []
    shown.append(f'one of {worth} with {most:,} seeds' if shown else f'a gain of {worth} with {most:,} seeds')
    return (
      f'{plural(count, "seed")} are too few for {whom}: gains vary from seed to seed with a standard deviation of up to {points(spread).removeprefix("+")}. '
      f'A paired t-test over seeds (5%) has a chance of 80% to show {series(shown)}.'
    )
  if unclear:
    return (
      f'{plural(count, "seed")} are enough where gains vary from seed to seed as here: a paired t-test over seeds (5%) has a chance of '
      f'80% or more to show a gain of {worth}.'
    )
  return 'At equal rounds no interval holds zero.'


def _would_do(difference: Difference, count: int) -> str:
  """Returns how many seeds would show a difference that is unclear; empty where there are as many, or only one."""
  if difference.side != 'unclear' or difference.spread is None or _needed(difference) <= count:
    return ''
  return f'; {_needed(difference):,} seeds would show a difference of {100 * WORTH_SHOWING:g} point with a chance of 80%'


def _needed(difference: Difference, size: float = 0.0) -> int:
  """Returns how many seeds would show a difference of this size, or of WORTH_SHOWING where it is less."""
  return seeds_needed(difference.spread or 0.0, max(abs(size), WORTH_SHOWING))
