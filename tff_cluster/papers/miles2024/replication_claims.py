"""What Miles et al. 2024 say in words of figure 1, their replication of FedAvg, each as a check over seeds that can come out against it.

Departures and choices: the paper names no limits. "Converges" is here a best accuracy of 97% within the rounds that were run; "the best
trade-off" is the fewest rounds; rounds to convergence are rounds to 95%, which most settings reach (scorecard.curves), and never where a
seed does not reach it; accuracy is that of the best round; fluctuation that of the last half. Settings are compared two by two, seed by
seed; where neither gets there, the pair says nothing. Rounds count as fewer by one round or more. Of IID clients the paper sees
"slightly lower accuracies" with B = 50 than with B = 10: there a twentieth of a point is a difference, as it is between numbers of epochs.
"""

import math
from collections.abc import Callable, Sequence

from tff_cluster.base.words import signed
from tff_cluster.papers.mcmahan2017 import BATCHES, EPOCHS, IID, NON_IID, row_name
from tff_cluster.scorecard import claims, units
from tff_cluster.scorecard.cells import Read
from tff_cluster.scorecard.claims import Claim, Part, show_percent
from tff_cluster.scorecard.curves import BEST, FLUCTUATION, rounds
from tff_cluster.scorecard.rows import Ours

_SOURCE = 'Miles et al. 2024, “Replication Analysis” and figure 1'
_CONVERGED, _REACHED, _TARGET = 97.0, 99.0, 95.0
_SLIGHTLY, _FEWER = 0.05, 1.0
Pairs = Sequence[tuple[str, str]]


def _rounds(ours: Ours) -> Sequence[float]:
  return [math.inf if value is None else value for value in rounds(_TARGET)(ours)]


def _show_rounds(value: float) -> str:
  if math.isinf(value):
    return 'only the second gets there' if value > 0 else 'only the first gets there'
  return f'{signed(value)} rounds'


def _more(
  pairs: Pairs,
  read: Read,
  margin: float,
  show: Callable[[float], str] = claims.show_points,
) -> tuple[Part, ...]:
  """Returns a part a pair: the first row has more by a margin."""
  return tuple(claims.compared(first, read, None, second, margin, show) for first, second in pairs)


def _faster(pairs: Pairs) -> tuple[Part, ...]:
  """Returns a part a pair: the first row needs fewer rounds."""
  return _more(_turned(pairs), _rounds, _FEWER, _show_rounds)


def _claim(words: str, *parts: Sequence[Part]) -> Claim:
  return Claim(words, _SOURCE, 'said in words', tuple(part for each in parts for part in each))


def _limit(names: Sequence[str], low: float = -math.inf, high: float = math.inf) -> tuple[Part, ...]:
  """Returns a part a row: its best accuracy."""
  return tuple(Part(name, (name,), claims.of(name, BEST), low, high, show_percent) for name in names)


def _of(partition: str, batch: int | None) -> list[str]:
  return [row_name(partition, batch, number) for number in EPOCHS]


def _against(partition: str, first: int | None, *others: int | None) -> list[tuple[str, str]]:
  """Returns the pairs of one batch size with others, epochs by epochs."""
  return [pair for other in others for pair in zip(_of(partition, first), _of(partition, other), strict=True)]


def _turned(pairs: Pairs) -> list[tuple[str, str]]:
  return [(second, first) for first, second in pairs]


_NEVER = row_name(IID, None, EPOCHS[0])
_BEST = row_name(NON_IID, 10, EPOCHS[-1])
_ALL = {
  partition: [name for batch in BATCHES for name in _of(partition, batch)] for partition in (IID, NON_IID)
}
_EPOCHS = [pair for batch in BATCHES for pair in zip(_of(IID, batch)[1:], _of(IID, batch)[:-1], strict=True)]
_BY = f'by {units.EQUIVALENT:g} points'
CLAIMS = {
  'fedex/figure1': (
    _claim(
      f'IID, all settings but B = inf with E = 1 converge: best accuracy at least {_CONVERGED:g}%',
      _limit([name for name in _ALL[IID] if name != _NEVER], _CONVERGED),
    ),
    _claim(f'IID, B = inf with E = 1 does not: best accuracy below {_CONVERGED:g}%', _limit([_NEVER], high=_CONVERGED)),
    _claim(
      f'IID, B = inf takes the most rounds, to {_TARGET:g}%, for every E (by {_FEWER:g} round)',
      _faster(_turned(_against(IID, None, 10, 50))),
    ),
    _claim(
      f'IID, B = 10 is the most accurate (slightly, by {_SLIGHTLY:g} points) and needs the fewest rounds to {_TARGET:g}%, for every E',
      _more(_against(IID, 10, 50, None), BEST, _SLIGHTLY), _faster(_against(IID, 10, 50, None)),
    ),
    _claim(
      f'IID, B = 50 and B = 10 produce similar results: best accuracies within {units.EQUIVALENT:g} points, for every E',
      tuple(
        claims.same(f'{a} and {b}', (a, b), claims.of(a, BEST), claims.of(b, BEST)) for a, b in _against(IID, 50, 10)
      ),
    ),
    _claim(
      f'IID, more epochs mean a higher accuracy (by {_SLIGHTLY:g} points) and fewer rounds to {_TARGET:g}%, for every B',
      _more(_EPOCHS, BEST, _SLIGHTLY), _faster(_EPOCHS),
    ),
    _claim(
      f'Non-IID, B = 10 is the most accurate ({_BY}) and needs the fewest rounds to {_TARGET:g}%, for every E',
      _more(_against(NON_IID, 10, 50, None), BEST, units.EQUIVALENT), _faster(_against(NON_IID, 10, 50, None)),
    ),
    _claim(
      f'Non-IID, B = inf is the least accurate, for every E ({_BY})',
      _more(_turned(_against(NON_IID, None, 10, 50)), BEST, units.EQUIVALENT),
    ),
    _claim(
      f'Non-IID, B = inf fluctuates most, for every E ({_BY})',
      _more(_against(NON_IID, None, 10, 50), FLUCTUATION, units.EQUIVALENT),
    ),
    _claim(
      f'Non-IID, “the best trade-off”, read as: B = 10 with E = 20 needs the fewest rounds of all to {_TARGET:g}%',
      _faster([(_BEST, name) for name in _ALL[NON_IID] if name != _BEST]),
    ),
    _claim(
      f'Non-IID fluctuates more than IID, for every B and E ({_BY})',
      _more(list(zip(_ALL[NON_IID], _ALL[IID], strict=True)), FLUCTUATION, units.EQUIVALENT),
    ),
    _claim(
      f'FedAvg reaches {_REACHED:g}%, read as: IID, B = 10, for every E (“a consistent 99% accuracy”, “Conclusions”)',
      _limit(_of(IID, 10), _REACHED),
    ),
  )
}  # fmt: skip
