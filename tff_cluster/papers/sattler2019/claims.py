"""The claims that Sattler et al. 2019 (CFL) make in words, each as a check over seeds that can come out against the paper.

Departures and choices:
  "Around", "close to", "distinct" and "immediate" need limits, which the claims name. "25% increase" is read as points.
  The paper says of "all clients" of the cluster that is split off first that they rise, and does not say which half that is: it is the one whose
    clients all rise most.
  Every client is tested on all of D^test with its group's labels (equation 7), so that clients of a group that have one model have one
    accuracy: means are over groups of equal size, and "all clients" are four numbers as long as no group is split.
  That all clients' accuracy more than doubles, and ends close to 60%, is checked on every client, in the last round and at the end of Phase 1: that
    is the Federated Learning solution, after 50 rounds. Results keep accuracies of single clients in these two rounds alone, so that no window of
    rounds can stand for them.
  A cluster is tested once it has trained 50 rounds and is stationary, and never in the last round: where a final cluster was not, its
    similarities are not known, and the claim about final clusters is not decidable.
  The rounds in which splits come are ours: a cluster trains 50 rounds before it may be split. What can fail is that three splits, one at a
    time, are enough.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tff_cluster.base.words import capital, plural
from tff_cluster.clustering import halves
from tff_cluster.experiment.result_parts import Split
from tff_cluster.experiment.results import own
from tff_cluster.papers.sattler2019 import tables
from tff_cluster.scorecard import claims, units
from tff_cluster.scorecard.cells import Read
from tff_cluster.scorecard.claims import Claim, Part, Rows, show_percent
from tff_cluster.scorecard.rows import WINDOW, Ours, Row

_PAPER = 'Sattler et al. 2019'
_AROUND, _CLOSE = (15.0, 25.0), (55.0, 65.0)
_RISE = 25.0 - units.PERCENT.margin
_AFTER = 'in the mean of the five rounds after it over that of the five up to it'
_ZERO = 0.1
# "Converged to a stationary point": the mean of m updates is no longer than that of m independent ones of the largest norm, 1 / sqrt(m) of it.
_STATIONARY = 1.0
# Rounds before the first split, at the least, that tell of stagnation: two windows, after a third in which a new model rises.
_SETTLED = 3 * WINDOW


def _before(ours: Ours, back: int = 0) -> list[float]:
  """Returns the mean accuracy of the one model over the WINDOW rounds before the first split, or so many rounds earlier."""
  last = ours.rounds_after - 1 - back
  rounds = range(max(last - WINDOW + 1, 1), last + 1)
  return [float(np.mean([curve[number] for number in rounds])) for curve in ours.baseline_by_seed]


def _too_soon(rows: Rows) -> str:
  """Returns why rows cannot tell whether accuracy stagnates, where the rounds before it are those in which every model rises."""
  fewest = min(ours.rounds_after - 1 for ours in rows.values())
  return (
    f'only {plural(fewest, "round")} lie before the first split, and in the first every model rises'
    if fewest < _SETTLED
    else ''
  )


def _parted(tests: Sequence[Split] | None) -> list[Split]:
  return [test for test in tests or () if test.verdict == 'split']


def _first_gap(ours: Ours) -> list[float | None]:
  """Returns the similarity gap (clustering/halves.py) of the first split; None without a split."""
  return [_parted(tests)[0].similarity_gap if _parted(tests) else None for tests in ours.splits]


def _rises(ours: Ours) -> list[list[float]]:
  """Returns for each split what all clients of one of its halves, the one for which this is more, rise by (Split.half_rise), in points."""
  return [[100.0 * max(test.half_rise or (np.nan,)) for test in _parted(tests)] for tests in ours.splits]


def _stationary(ours: Ours) -> list[float | None]:
  """Returns sqrt(m) times the norm of the mean update, divided by the largest of a client's, at the first split; None without a split."""
  first = [test for tests in ours.splits for test in [*_parted(tests), None][:1]]
  return [
    len(test.cluster) ** 0.5 * test.mean_update_norm / test.max_update_norm
    if test and test.max_update_norm
    else None
    for test in first
  ]


def _three_splits(ours: Ours) -> list[bool]:
  """Returns whether three splits in three rounds left the planted groups."""
  rounds = [[test.round for test in _parted(tests)] for tests in ours.splits]
  return [
    len(set(r)) == len(r) == 3 and good
    for r, good in zip(rounds, claims.are_groups('group')(ours), strict=True)
  ]


def _in_one_cluster(ours: Ours) -> list[bool]:
  return [count == 1 for count in ours.num_clusters]


def _last_tests(ours: Ours) -> list[list[Split | None]]:
  """Returns by seed the last test of each final cluster of several clients; None for a cluster that was never tested."""
  found = []
  for clustering in ours.clusterings:
    tests = {frozenset(test.cluster): test for test in clustering.splits or ()}
    found.append([tests.get(frozenset(cluster)) for cluster in clustering.clusters if len(cluster) > 1])
  return found


def _similarity_left(ours: Ours) -> list[float | None]:
  """Returns the mean similarity in the final cluster where it is highest; None where one was never tested.

  The mean over pairs of m vectors is never below -1 / (m - 1), which it is where they sum to nothing: that is zero here.
  """
  found: list[float | None] = []
  for tests in _last_tests(ours):
    left = [test.mean_similarity for test in tests if test is not None]
    found.append(max(left) if left and len(left) == len(tests) else None)
  return found


def _not_told(rows: Rows) -> str:
  """Returns why similarities of final clusters are not known, or tell nothing."""
  tests = [test for ours in rows.values() for of_seed in _last_tests(ours) for test in of_seed]
  if without := tests.count(None):
    return f'{without} of {plural(len(tests), "final cluster")} were never tested'
  if not all(all(claims.are_groups('group')(ours)) for ours in rows.values()):
    return (
      'final clusters are not the planted groups: similarities of clients of several groups cancel in a mean'
    )
  return ''


def _least_growth(ours: Ours) -> list[float]:
  """Returns the accuracy in the end divided by that of Federated Learning, of the client for which this is least."""
  found = []
  for run, clustering in zip(ours.runs, ours.clusterings, strict=True):
    before = np.asarray(run.results.phase1.evaluation.client_accuracy, np.float64)
    after = np.asarray(own(clustering).client_accuracy, np.float64)
    known = before > 0.0
    found.append(float(np.min(after[known] / before[known])) if known.any() else np.inf)
  return found


def _ends(client: Callable[[Sequence[float]], float]) -> Read:
  """Returns the accuracy in the last round of a client that is chosen by it, in percent."""
  return lambda ours: [100.0 * client(own(clustering).client_accuracy) for clustering in ours.clusterings]


def _show_similarity(value: float) -> str:
  return f'{value:.2f}'.replace('-', '−')


def _in(
  name: str, read: Read, low: float, high: float = np.inf, show: Callable[[float], str] = claims.show_points
) -> tuple[Part, ...]:
  """Returns the part that a number of figure 3 lies in a zone."""
  row = tables.FIGURE3.rows[0].name
  return (Part(name, (row,), claims.of(row, read), low, high, show),)


def _figure3() -> tuple[Claim, ...]:
  row = tables.FIGURE3.rows[0].name

  def claim(
    words: str,
    published: str,
    parts: tuple[Part, ...],
    undecidable: Callable[[Rows], str] | None = None,
    is_of_its_setting: bool = False,
  ) -> Claim:
    source = f'{_PAPER}, section 4 and figure 3'
    return Claim(words, source, published, parts, None, undecidable, is_of_its_setting)

  return (
    claim(
      f'Before the first split client accuracies are at around 20% ({_AROUND[0]:g}% to {_AROUND[1]:g}%, mean of the last {WINDOW} rounds)',
      'around 20%', _in('level', _before, *_AROUND, show_percent),
    ),
    claim(
      f'They stagnate: the mean of those {WINDOW} rounds is within {units.EQUIVALENT:g} points of that of the {WINDOW} rounds before',
      'stagnate',
      (claims.same('change', (row,), claims.of(row, _before), claims.of(row, lambda ours: _before(ours, WINDOW))),),
      _too_soon,
    ),
    claim(
      'Training has converged to a stationary point: at the first split the mean update is no longer than that of independent updates would be, '
      '1/√m of the longest of m clients', 'said in words',
      _in('times that', _stationary, -np.inf, _STATIONARY, show=lambda v: f'{v:.2f} times that'),
    ),
    claim(
      f'A distinct gap has developed in the similarities at the first split: every client is at least {halves.GAP:g} more similar to one of '
      'its own half than any two across', 'a distinct gap, drawn',
      _in('gap', _first_gap, halves.GAP, show=_show_similarity),
    ),
    claim('Three splits, one at a time, separate all clusters', 'rounds 50, 100 and 150', (claims.answer(row, _three_splits),)),
    claim(
      f'The first split is followed by an immediate rise of all clients separated out: in one of its halves every client rises by {_RISE:g} points '
      f'({_AFTER})', '25% for all of them', _in('rise', lambda ours: [of[0] if of else None for of in _rises(ours)], _RISE),
      is_of_its_setting=True,
    ),
    claim(
      f'Every split leads to an immediate improvement: in one of its halves every client rises (by {units.EQUIVALENT:g} points, '
      f'{_AFTER})', 'in rounds 50, 100 and 150',
      _in('least of all splits', lambda ours: [min(of, default=None) for of in _rises(ours)], units.EQUIVALENT),
    ),
    claim('All clusters are the planted groups', 'said in words', (claims.answer(row, claims.are_groups('group')),)),
    claim(
      f'Similarity within the final clusters drops to close to zero (mean over pairs of clients, in each cluster at most {_ZERO:g})', 'close to zero',
      _in('similarity', _similarity_left, -np.inf, _ZERO, _show_similarity), _not_told,
    ),
    claim(
      'The accuracy of all clients more than doubles from the end of Phase 1 to the last round: of the client for which it grows least',
      'more than doubled, around 20% → close to 60%',
      _in('growth', _least_growth, 2.0, show=lambda v: f'{v:.2f} times'),
    ),
    claim(
      f'The accuracy of all clients ends close to 60% ({_CLOSE[0]:g}% to {_CLOSE[1]:g}%, in the last round)', 'close to 60%',
      (*_in('the lowest client', _ends(min), *_CLOSE, show_percent), *_in('the highest client', _ends(max), *_CLOSE, show_percent)),
    ),
    _never_below(tables.FIGURE3.rows),
  )  # fmt: skip


def _gain(row: Row, margin: float) -> Part:
  """Returns the part that clients end above FedAvg by a margin in points."""
  return claims.compared(
    row.name,
    lambda ours: ours.windows['accuracy_end'],
    lambda ours: ours.baseline_windows['accuracy_end'],
    margin=margin,
  )


def _never_below(rows: Sequence[Row], words: str = 'Clients') -> Claim:
  """Returns the claim of the abstract, that CFL is never below Federated Learning."""
  where = ', in every row' if len(rows) > 1 else ''
  return Claim(
    f'{words} are never less accurate on average than with FedAvg{where} (at most {units.EQUIVALENT:g} points)', f'{_PAPER}, abstract',
    'always greater or equal', tuple(_gain(row, -units.EQUIVALENT) for row in rows), undecidable=claims.all_fedavg,
  )  # fmt: skip


def _splits() -> tuple[Claim, ...]:
  found = []
  for variant in (tables.AS_PRINTED, tables.GUARDED):
    rows = [row for row in tables.SPLITS.rows if variant in row.name]
    swapped, turned = ([row for row in rows if word in row.name] for word in tables.PLANTED)
    alike = [row for row in rows if row not in (*swapped, *turned)]
    guards = ' (ours)' if variant == tables.GUARDED else ''

    def groups(of: Sequence[Row]) -> tuple[Part, ...]:
      return tuple(claims.answer(row.name, claims.are_groups('group')) for row in of)

    for words, where, parts in (
      (f'clients that agree (IID, skewed labels) stay in one cluster, in every run{guards}', 'section 5',
       tuple(claims.answer(row.name, _in_one_cluster) for row in alike)),
      (f'groups that swap labels are found exactly, in every run{guards}', 'section 2', groups(swapped)),
      # A model that is large enough fits all turns at once: by the paper's own definition these clients may be congruent.
      ('groups of turned images are found exactly, in every run (ours)', 'section 2', groups(turned)),
      (f'clients of groups that swap labels do better than with FedAvg, in every row (by {units.EQUIVALENT:g} points){guards}', 'section 2',
       tuple(_gain(row, units.EQUIVALENT) for row in swapped)),
      (f'clients of groups of turned images do better than with FedAvg, in every row (by {units.EQUIVALENT:g} points) (ours)', 'section 2',
       tuple(_gain(row, units.EQUIVALENT) for row in turned)),
    ):  # fmt: skip
      found.append(Claim(f'{capital(variant)}: {words}', f'{_PAPER}, {where}', 'said in words', parts))
    found.append(_never_below(rows, f'{capital(variant)}: clients'))
  return tuple(found)


CLAIMS: Mapping[str, tuple[Claim, ...]] = {tables.FIGURE3.name: _figure3(), tables.SPLITS.name: _splits()}
