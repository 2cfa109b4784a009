"""The claims that Miles et al. 2024 (FedEx) make in words and print, each as a check that can fail.

Departures and choices: claims compare means over seeds, and say in how many seeds they hold. "Clients with similar data were
getting assigned to the same cluster" is checked on pairs of clients, with a limit that the claim names. Claims that say
"ours adds" are not the paper's, but what its explanation needs to be true.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tff_cluster.base.words import decimals_for, differ, percents, plural
from tff_cluster.papers.miles2024 import readings, tables
from tff_cluster.scorecard.claims import Claim, Finding, whole
from tff_cluster.scorecard.rows import Ours

Rows = Mapping[str, Ours]
Numbers = Callable[[Rows], list[float]]
_PAPER, _EXTENSION = 'Miles et al. 2024', 'Miles et al. 2024, “Extensions”'
_FEWER, _MORE = '3 clusters', '4 clusters'
# Of pairs of clients, between those that hold a common label and the others. A clustering that ignores labels has 0.
_ALIKE = 0.05
_SLACK = 1e-9  # Keeps what is exactly at the limit from failing by rounding of binary fractions.


def _accuracy(row: str, column: str) -> Numbers:
  """Returns what gives our percentages of a row's column, one a seed."""
  return lambda rows: readings.numbers(rows[row]).get(column, [])


def _oracle(row: str) -> Numbers:
  def of_rows(rows: Rows) -> list[float]:
    found = [experts.accuracy for experts in rows[row].experts if experts is not None]
    return [100.0 * accuracy['oracle'] for accuracy in found if accuracy is not None]

  return of_rows


def _above(high: Numbers, low: Numbers) -> Callable[[Rows], Finding]:
  """Returns a rule that holds where the mean of `high` is above that of `low`."""

  def rule(rows: Rows) -> Finding:
    first, second = high(rows), low(rows)
    if not first or not second:
      return Finding('not run', '–', 'experts were not asked for')
    means = [float(np.mean(values)) for values in (first, second)]
    note = ''
    # Two rows may have been run with different seeds; then only their means compare.
    if len(first) == len(second) > 1:
      note = f'in {sum(a > b for a, b in zip(first, second, strict=True))} of {len(first)} seeds'
    decimals = decimals_for(means, differ, 2)
    told = ' against '.join(f'{mean:.{decimals}f}%' for mean in means)
    return Finding('holds' if means[0] > means[1] else 'fails', told, note)

  return rule


def _noise_in_one_cluster(rows: Rows) -> Finding:
  """Checks in every seed that the clients of CIFAR-10, the last group of the truth 'source', are in one cluster."""
  (found,) = rows.values()
  told, right = [], []
  for counts in found.shared.get('source', ()):
    table = np.asarray(counts)
    noisy, plain = table[-1], table[:-1].sum(axis=0)
    held = np.flatnonzero(noisy)
    right.append(len(held) == 1)
    told.append(f'{noisy.sum()} in {plural(len(held), "cluster")} with {plain[held].sum()} of MNIST')
  if not told:
    return Finding('not run', '–', 'no client holds CIFAR-10')
  return Finding('holds' if all(right) else 'fails', '; '.join(told), _seeds(right))


def _alike_together(rows: Rows) -> Finding:
  (found,) = rows.values()
  if any(None in pair for pair in found.together) or not found.together:
    return Finding('undecided', '–', 'all pairs of clients hold a common label, or none does')
  pairs = np.array(found.together, np.float64)
  common, others = pairs.mean(axis=0)
  right = [a - b >= _ALIKE - _SLACK for a, b in pairs]
  told = percents((common, others), lambda a, b: a - b >= 100.0 * (_ALIKE - _SLACK))
  return Finding(
    'holds' if common - others >= _ALIKE - _SLACK else 'fails',
    f'{" against ".join(told)} of the pairs',
    _seeds(right),
  )


def _seeds(right: list[bool]) -> str:
  return f'in {sum(right)} of {len(right)} seeds' if len(right) > 1 else ''


def _table(name: str) -> tuple[Claim, ...]:
  printed = tables.PRINTED[name]
  source = f'{_PAPER}, table {name[-1]}'

  def against(high: float, low: float) -> str:
    return f'{high:.2f}% against {low:.2f}%'

  claims = [
    Claim(
      f'FedAvg without clusters is more accurate than FedEx with {row}', source,
      against(printed[row].fedavg.accuracy, printed[row].fedex), whole(row),
      _above(_accuracy(row, readings.FEDAVG), _accuracy(row, readings.FEDEX)),
    )
    for row in printed
  ]  # fmt: skip
  for row, numbers in printed.items():
    best = numbers.ranked[0]
    # In table 1 FedEx with four clusters stands below each of its experts.
    if best is not None and numbers.fedex > best.accuracy:
      claims.append(
        Claim(
          f'FedEx with {row} is more accurate than each of its experts alone', source,
          against(numbers.fedex, best.accuracy), whole(row),
          _above(_accuracy(row, readings.FEDEX), _accuracy(row, readings.expert_column(1))),
        )
      )  # fmt: skip
  claims.append(
    Claim(
      'FedEx is less accurate with 4 clusters than with 3', source,
      against(printed[_FEWER].fedex, printed[_MORE].fedex), whole(_FEWER, _MORE),
      _above(_accuracy(_FEWER, readings.FEDEX), _accuracy(_MORE, readings.FEDEX)),
    )
  )  # fmt: skip
  claims += [
    Claim(
      f'With {row}, some expert is right more often than FedAvg is (ours adds the oracle): what is lost lies in the combination',
      _EXTENSION, 'said in words', whole(row), _above(_oracle(row), _accuracy(row, readings.FEDAVG)),
    )
    for row in printed
  ]  # fmt: skip
  return tuple(claims)


def _noise(source: str) -> Claim:
  return Claim(
    'All clients that hold CIFAR-10 are in one cluster, of four',
    source,
    'drawn',
    whole(_MORE),
    _noise_in_one_cluster,
  )


_ALIKE_CLAIM = Claim(
  'Clients with similar data are in one cluster: of pairs that hold a common label, at least '
  f'{100 * _ALIKE:g} points more than of the others',
  f'{_EXTENSION} and figure 2', 'drawn', whole(_MORE), _alike_together,
)  # fmt: skip
CLAIMS: Mapping[str, tuple[Claim, ...]] = MappingProxyType(
  {
    'fedex/table1': _table('fedex/table1'),
    'fedex/table2': (*_table('fedex/table2'), _noise(f'{_EXTENSION} and figure 3')),
    'fedex/figure2': (_ALIKE_CLAIM,),
    'fedex/figure3': (_noise(f'{_EXTENSION} and figure 3'),),
  }
)
