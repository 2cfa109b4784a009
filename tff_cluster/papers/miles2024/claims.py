"""The claims that Miles et al. 2024 (FedEx) make in words and print, each as a check over seeds that can come out against the paper.

Departures and choices: "a noticeable decline" is a difference by the margin of scorecard/units.py. That FedEx is above or below its experts, and
worse with four clusters than with three, is what the tables print; no sentence says it. "Clients with similar data were getting assigned
to the same cluster" is checked on pairs of clients, with a limit that the claim names. That clients with CIFAR-10 are most of
their cluster is not said: without it a cluster of nearly everybody would do, so that it is a claim of ours. FedAvg goes up and down by points from
round to round, and results keep its accuracy on the global test set after the last one alone: claims about it must hold in that round, where the
experts are measured, and for the mean over clients and the last rounds, in which a short training still rises. The paper blames the combination, not
the experts, "using the process of elimination", and says that it reinforces mistakes: it is set beside the plain mean of the same outputs. An oracle that takes the right expert of several is right far too often to refute that, so that a gate
is asked that has learned from labelled validation rows (ours adds it): the paper proposes such a one.
"""

from collections.abc import Callable, Mapping

import numpy as np

from tff_cluster.papers.miles2024 import readings, tables
from tff_cluster.scorecard import claims, units
from tff_cluster.scorecard.claims import Claim, Part, Reading
from tff_cluster.scorecard.rows import Ours

_PAPER, _EXTENSION = 'Miles et al. 2024', 'Miles et al. 2024, “Extensions”'
_FEWER, _MORE = '3 clusters', '4 clusters'
_BY = f'(by {units.EQUIVALENT:g} points)'


def _accuracy(row: str, column: str) -> Reading:
  """Returns what gives our percentages of a row's column, by seed."""
  return claims.of(row, lambda ours: readings.numbers(ours).get(column, []))


# What is read of FedAvg without clusters.
_FEDAVG: Mapping[str, Callable[[str], Reading]] = {
  'last round': lambda row: _accuracy(row, readings.FEDAVG),
  'mean over clients and the last rounds': lambda row: claims.of(
    row, lambda ours: ours.baseline_windows['accuracy_end']
  ),
}
_IN_BOTH = 'in the last round and in the mean over clients and the last rounds'


def _combined(row: str, rule: str) -> Reading:
  """Returns what gives the accuracy of the experts together, by a rule, in percent and by seed."""

  def of_row(ours: Ours) -> list[float]:
    found = [experts.accuracy for experts in ours.experts if experts is not None]
    return [100.0 * accuracy[rule] for accuracy in found if accuracy is not None]

  return claims.of(row, of_row)


def _above(high: Reading, low: Reading, *rows: str) -> tuple[Part, ...]:
  return (claims.above(' against '.join(rows), rows, high, low),)


def _noise_together(ours: Ours) -> list[bool]:
  """Returns whether the clients of CIFAR-10, the last group of the truth 'source', are in one cluster."""
  return [int(np.count_nonzero(table[-1])) == 1 for table in ours.shared.get('source', ())]


def _noise_alone(ours: Ours) -> list[bool]:
  """Returns whether they are most of the clients of the cluster that most of them are in."""
  found = []
  for table in ours.shared.get('source', ()):
    noise, everybody = np.asarray(table)[-1], np.sum(table, axis=0)
    found.append(bool(2 * noise.max() > everybody[noise.argmax()]))
  return found


def _table(name: str) -> tuple[Claim, ...]:
  printed = tables.PRINTED[name]
  source = f'{_PAPER}, table {name[-1]}'

  def against(high: float, low: float) -> str:
    return f'{high:.2f}% against {low:.2f}%'

  found = [
    Claim(
      f'FedAvg without clusters is more accurate than FedEx with {row}, {_IN_BOTH} {_BY}', f'{source} and {_EXTENSION.partition(", ")[2]}',
      against(printed[row].fedavg.accuracy, printed[row].fedex),
      tuple(
        claims.above(f'{row}, {when}', (row,), fedavg(row), _accuracy(row, readings.FEDEX)) for when, fedavg in _FEDAVG.items()
      ),
    )
    for row in printed
  ]  # fmt: skip
  for row, numbers in printed.items():
    known = [expert for expert in numbers.ranked if expert is not None]
    best, worst = known[0], known[-1]
    if numbers.fedex < worst.accuracy:  # Of table 1 with four clusters, where one expert is N/A.
      found.append(
        Claim(
          f'FedEx with {row} is less accurate than each of its {len(known)} best experts alone {_BY}', source,
          against(numbers.fedex, worst.accuracy),
          _above(_accuracy(row, readings.expert_column(len(known))), _accuracy(row, readings.FEDEX), row),
        )
      )  # fmt: skip
    if numbers.fedex > best.accuracy:
      found.append(
        Claim(
          f'FedEx with {row} is more accurate than each of its experts alone {_BY}', source,
          against(numbers.fedex, best.accuracy),
          _above(_accuracy(row, readings.FEDEX), _accuracy(row, readings.expert_column(1)), row),
        )
      )  # fmt: skip
  found.append(
    Claim(
      f'FedEx is less accurate with 4 clusters than with 3 {_BY}', source, against(printed[_FEWER].fedex, printed[_MORE].fedex),
      _above(_accuracy(_FEWER, readings.FEDEX), _accuracy(_MORE, readings.FEDEX), _FEWER, _MORE),
    )
  )  # fmt: skip
  found += [
    Claim(
      f'With {row} the combination is the bottleneck, not the experts: a gate that has seen labels is at most {units.EQUIVALENT:g} points '
      f'below FedAvg, {_IN_BOTH} (ours adds the gate)',
      _EXTENSION, 'said in words',
      tuple(
        claims.above(f'{row}, {when}', (row,), _combined(row, 'gate'), fedavg(row), -units.EQUIVALENT) for when, fedavg in _FEDAVG.items()
      ),
    )
    for row in printed
  ]  # fmt: skip
  found += [
    Claim(
      f'With {row} the combination reinforces mistakes: FedEx is less accurate than the plain mean of the same outputs {_BY} (ours adds the mean)',
      f'{_PAPER}, “Introduction” and {_EXTENSION.partition(", ")[2]}', 'said in words', _above(_combined(row, 'mean'), _accuracy(row, readings.FEDEX), row),
    )
    for row in printed
  ]  # fmt: skip
  return tuple(found)


_NOISE = (
  Claim(
    'All clients that hold CIFAR-10 are in one cluster of four, in every seed', f'{_EXTENSION} and figure 3', 'drawn, and said in words',
    (claims.answer(_MORE, _noise_together),),
  ),
  Claim(
    'Clients that hold CIFAR-10 are most of the clients of their cluster, in every seed (ours)', f'{_EXTENSION} and figure 3', 'drawn',
    (claims.answer(_MORE, _noise_alone),),
  ),
)  # fmt: skip
_ALIKE = Claim(
  f'Clients with similar data are in one cluster: of pairs that hold a common label, at least {claims.ALIKE:g} points more than of the others',
  f'{_EXTENSION} and figure 2', 'drawn', (claims.together(_MORE),), undecidable=claims.all_alike,
)  # fmt: skip
CLAIMS: Mapping[str, tuple[Claim, ...]] = {
  'fedex/table1': _table('fedex/table1'),
  'fedex/table2': (*_table('fedex/table2'), *_NOISE),
  'fedex/figure2': (_ALIKE,),
  'fedex/figure3': _NOISE,
}
