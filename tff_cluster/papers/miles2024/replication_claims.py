"""What Miles et al. 2024 say in words of figure 1, their replication of FedAvg, each as a check that can fail.

Departures and choices: the paper names no limits. "Converges" is here a best accuracy of 97% within the rounds that
were run; "the best trade-off" is the fewest rounds; rounds to convergence are rounds to 95%, which most settings
reach (scorecard.curves), and infinity where a seed does not reach it; accuracy is that of the best round; fluctuation
that of the last half. Settings are compared two by two, by their means over seeds; where both have the same rounds,
none included, the pair says nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tff_cluster.base.words import decimals_for, differ, plural
from tff_cluster.papers.mcmahan2017 import BATCHES, EPOCHS, IID, NON_IID, row_name
from tff_cluster.scorecard.claims import Claim, Finding, Needs
from tff_cluster.scorecard.curves import CurveMeasures, measure
from tff_cluster.scorecard.rows import Ours

Rows = Mapping[str, Ours]
# Of two settings whether the first is as claimed against the second (None: the pair cannot tell), and the numbers in words.
Check = Callable[[CurveMeasures, CurveMeasures], tuple[bool | None, str]]
_SOURCE = 'Miles et al. 2024, “Replication Analysis” and figure 1'
_CONVERGED, _REACHED, _TARGET = 97.0, 99.0, 95.0
_TOLD = 3  # Pairs that do not hold are told one by one up to this many.


def _more_accurate(first: CurveMeasures, second: CurveMeasures) -> tuple[bool | None, str]:
  a, b = float(np.mean(first.best)), float(np.mean(second.best))
  decimals = decimals_for([a, b], differ, 2)
  return a > b, f'{a:.{decimals}f}% against {b:.{decimals}f}%'


def _at_least_as_accurate(first: CurveMeasures, second: CurveMeasures) -> tuple[bool | None, str]:
  more, words = _more_accurate(first, second)
  return more or bool(np.mean(first.best) == np.mean(second.best)), words


def _faster(first: CurveMeasures, second: CurveMeasures) -> tuple[bool | None, str]:
  a, b = first.mean_rounds(_TARGET), second.mean_rounds(_TARGET)
  decimals = decimals_for([a, b], differ) if np.isfinite([a, b]).all() else 1
  words = ' against '.join('not reached' if np.isinf(value) else f'{value:.{decimals}f}' for value in (a, b))
  return None if a == b else a < b, f'rounds {words}'


def _no_slower(first: CurveMeasures, second: CurveMeasures) -> tuple[bool | None, str]:
  faster, words = _faster(first, second)
  # Equal rounds are no more rounds; only where neither gets there the pair cannot tell.
  same = faster is None and np.isfinite(first.mean_rounds(_TARGET))
  return True if same else faster, words


def _fluctuates_more(first: CurveMeasures, second: CurveMeasures) -> tuple[bool | None, str]:
  a, b = float(np.mean(first.fluctuation)), float(np.mean(second.fluctuation))
  decimals = decimals_for([a, b], differ, 2)
  return a > b, f'fluctuation {a:.{decimals}f} against {b:.{decimals}f} points'


def _pairs(words: str, pairs: Sequence[tuple[str, str]], *checks: Check) -> Claim:
  """Returns the claim that every check holds of the first of each pair of rows against the second."""

  def rule(rows: Rows) -> Finding:
    found = {name: measure(row) for name, row in rows.items()}
    held, told, failed = 0, [], False
    known = [pair for pair in pairs if all(name in found for name in pair)]
    for first, second in known:
      answers = [check(found[first], found[second]) for check in checks]
      wrong = [numbers for holds, numbers in answers if holds is False]
      unsure = [numbers for holds, numbers in answers if holds is None]
      failed = failed or bool(wrong)
      held += not wrong and not unsure
      if wrong or unsure:
        told.append(
          f'{"not" if wrong else "undecided"} {first} against {second}: {", ".join(wrong or unsure)}'
        )
    more = [f'and {len(told) - _TOLD} more'] if len(told) > _TOLD else []
    verdict = 'fails' if failed else 'holds' if held == len(known) else 'undecided'
    return Finding(
      verdict, f'in {held} of {plural(len(known), "comparison")}', '; '.join([*told[:_TOLD], *more])
    )

  return Claim(words, _SOURCE, 'said in words', Needs(tuple(pairs), 1), rule)


def _limit(words: str, published: str, names: Sequence[str], limit: float, above: bool = True) -> Claim:
  """Returns the claim that the best accuracy of every row is at least (or below) a limit."""

  def rule(rows: Rows) -> Finding:
    best = {name: float(np.mean(measure(row).best)) for name, row in rows.items()}
    wrong = [name for name, value in best.items() if (value >= limit) != above]
    decimals = decimals_for(list(best.values()), lambda *v: [value >= limit for value in v], 2)
    told = [f'{name}: {best[name]:.{decimals}f}%' for name in wrong[:_TOLD]]
    more = [f'and {len(wrong) - _TOLD} more'] if len(wrong) > _TOLD else []
    ends = dict.fromkeys(f'{end:.{decimals}f}%' for end in (min(best.values()), max(best.values())))
    spread = f'best accuracy {" to ".join(ends)}'
    return Finding('fails' if wrong else 'holds', spread, '; '.join(['not', *told, *more]) if wrong else '')

  return Claim(words, _SOURCE, published, Needs(tuple((name,) for name in names), 1), rule)


def _of(partition: str, batch: int | None) -> list[str]:
  return [row_name(partition, batch, number) for number in EPOCHS]


def _against(partition: str, first: int | None, *others: int | None) -> list[tuple[str, str]]:
  """Returns the pairs of one batch size with others, epochs by epochs."""
  return [pair for other in others for pair in zip(_of(partition, first), _of(partition, other), strict=True)]


def _turned(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
  return [(second, first) for first, second in pairs]


_NEVER = row_name(IID, None, EPOCHS[0])
_BEST = row_name(NON_IID, 10, EPOCHS[-1])
_ALL = {
  partition: [name for batch in BATCHES for name in _of(partition, batch)] for partition in (IID, NON_IID)
}
CLAIMS: Mapping[str, tuple[Claim, ...]] = MappingProxyType(
  {
    'fedex/figure1': (
      _limit(
        f'IID, all settings but B = inf with E = 1 converge: best accuracy at least {_CONVERGED:g}%', 'said in words',
        [name for name in _ALL[IID] if name != _NEVER], _CONVERGED,
      ),
      _limit(
        f'IID, B = inf with E = 1 does not: best accuracy below {_CONVERGED:g}%', 'said in words', [_NEVER], _CONVERGED,
        above=False,
      ),
      _pairs(
        f'IID, B = inf takes the most rounds, to {_TARGET:g}%, for every E', _turned(_against(IID, None, 10, 50)), _faster,
      ),
      _pairs(
        f'IID, B = 10 is at least as accurate as B = 50 and needs no more rounds to {_TARGET:g}%, for every E',
        _against(IID, 10, 50), _at_least_as_accurate, _no_slower,
      ),
      _pairs(
        f'IID, with B = 10 more epochs mean a higher accuracy and fewer rounds to {_TARGET:g}%',
        list(zip(_of(IID, 10)[1:], _of(IID, 10)[:-1], strict=True)), _more_accurate, _faster,
      ),
      _pairs(
        f'Non-IID, B = 10 is the most accurate and needs the fewest rounds to {_TARGET:g}%, for every E',
        _against(NON_IID, 10, 50, None), _more_accurate, _faster,
      ),
      _pairs(
        'Non-IID, B = inf is the least accurate, for every E', _turned(_against(NON_IID, None, 10, 50)), _more_accurate,
      ),
      _pairs(
        'Non-IID, B = inf fluctuates most, for every E', _against(NON_IID, None, 10, 50), _fluctuates_more,
      ),
      _pairs(
        f'Non-IID, “the best trade-off”, read as: B = 10 with E = 20 needs the fewest rounds of all to {_TARGET:g}%',
        [(_BEST, name) for name in _ALL[NON_IID] if name != _BEST], _faster,
      ),
      _pairs(
        'Non-IID fluctuates more than IID, for every B and E', list(zip(_ALL[NON_IID], _ALL[IID], strict=True)),
        _fluctuates_more,
      ),
      _limit(
        f'FedAvg reaches {_REACHED:g}%, read as: IID, B = 10, for every E (“a consistent 99% accuracy”, “Conclusions”)',
        '99%', _of(IID, 10), _REACHED,
      ),
    )
  }
)  # fmt: skip
