"""The claims that Rohith et al. 2020 make in words, each as a check over seeds that can come out against the paper.

Departures and choices:
  Table 1 quotes table IV of Briggs et al. 2020, whose 98.1% is a mean over clients and whose 67% are clients at 99%; section 7.2 takes the
    mean for the highest accuracy and sets its own highest beside it. Here means stand beside means and shares at 99% beside shares
    at 99%. A highest accuracy says nothing where a client is at 100% before any clustering.
  Section 7.2 gives clients the blended models ("updated with average weights of all the clusters"); so do these claims. That a device is
    the mean over its clusters (section 5.2.4) is checked beside ("own models").
  "The baseline FL" is FedAvg without clusters at equal rounds; section 8 compares with it, table 3 with the end of Phase 1.
  "Slightly better results on the global model" (section 7.2) is explained there by gains of 0.9 and 2 points: it is a claim about gains.
  What section 6.3 asks and does not answer is asked here. That training without feedback to the global model is better (section 8) is not
    checked: nothing here trains with such feedback.
"""

from collections.abc import Callable, Mapping

from tff_cluster.papers.rohith2020.tables import (
  DYNAMIC,
  HIERARCHICAL,
  KMEANS,
  PAPER,
  QUOTED,
  at_target,
  cluster_scores,
  globally,
  mean_client,
  over_folds,
)
from tff_cluster.scorecard import claims, units
from tff_cluster.scorecard.cells import Read
from tff_cluster.scorecard.claims import Claim, Part, Rows
from tff_cluster.scorecard.rows import Row

_BY = f'(by {units.EQUIVALENT:g} points)'
_METHODS = (KMEANS, DYNAMIC)
_MODELS = {'blended': 'blended models', 'own': 'own models'}
# Table 3 prints tenths of a point for K-means and whole points for dynamic clustering: what is nearer than half of one prints the same.
_PRINTS_SAME = {KMEANS.name: 0.05, DYNAMIC.name: 0.5}
_AVERAGE = {KMEANS.name: '92.5% → 93.4%', DYNAMIC.name: '91% → 93%'}
_WEIGHTED = {KMEANS.name: '93.4% and 93.4%', DYNAMIC.name: '93% and 93%'}


def _over_clients(stage: str) -> Read:
  """Reads the mean over clients of FedAvg's model, in percent: 'phase1' or 'baseline'."""
  return lambda ours: ours.stage(stage, lambda found: found.clients.mean_client_accuracy)


def _across(
  high: Row, low: Row, read: Read, other: Read | None = None, margin: float = units.EQUIVALENT
) -> tuple[Part, ...]:
  """Returns the part that a number of a row is above another one of it, or that of another row."""
  return (claims.compared(high.name, read, other, low.name, margin),)


def _table1() -> tuple[Claim, ...]:
  source = f'{PAPER}, section 7.2, tables 1 and 2'
  return (
    Claim(
      f'Clients of both are more accurate than those of hierarchical clustering: means over clients {_BY}', source,
      '99.6% and 99.7% (the highest), hierarchical 98.1% (a mean)',
      tuple(part for row in _METHODS for part in _across(row, HIERARCHICAL, mean_client('blended'), mean_client('own'))), undecidable=_quoted,
    ),
    Claim(
      f'Fewer clients than with hierarchical clustering are as accurate: clients at 99% {_BY}', source,
      '26% and 28% (at the highest), hierarchical 67% (at 99%)',
      tuple(part for row in _METHODS for part in _across(HIERARCHICAL, row, at_target('own'), at_target('blended'))), undecidable=_quoted,
    ),
  )  # fmt: skip


def _quoted(rows: Rows) -> str:
  """Returns why no run of table 1 decides a claim about what it quotes."""
  del rows
  return QUOTED


def _table2() -> tuple[Claim, ...]:
  found = []
  for models, words in _MODELS.items():
    read = mean_client(models)
    found.append(
      Claim(
        f'Overlapping clusters serve the clients better than disjoint ones: {words} {_BY}', f'{PAPER}, section 8',
        'said in words', _across(DYNAMIC, KMEANS, read),
      )
    )  # fmt: skip
    found += [
      Claim(
        f'{row.name}: clients do better than with FedAvg without clusters: {words} {_BY}', f'{PAPER}, section 8',
        'said in words', _across(row, row, read, _over_clients('baseline')),
      )
      for row in _METHODS
    ]  # fmt: skip
  found += [
    Claim(
      f'{row.name}: similar clients are formed into clusters: of pairs that hold a common label, at least {claims.ALIKE:g} points more are in one '
      'cluster than of the others', f'{PAPER}, section 8', 'said in words', (claims.together(row.name),), undecidable=claims.all_alike,
    )
    for row in _METHODS
  ]  # fmt: skip
  return tuple(found)


def _table3() -> tuple[Claim, ...]:
  return (
    *_of_each(
      f'the average of the cluster models is better on the global test set than Phase 1 {_BY}', 'section 7.2, table 3', _AVERAGE,
      lambda row: _across(row, row, globally('average'), globally('phase1')),
    ),
    *_of_each(
      f'the average of the cluster models is better on the global test set than FedAvg without clusters {_BY} (ours adds equal rounds)',
      'section 8', dict.fromkeys(_AVERAGE, 'said in words'),
      lambda row: _across(row, row, globally('average'), globally('baseline')),
    ),
    *_of_each(
      'weighting the clusters by their accuracy changes nothing (it prints the same)', 'table 3', _WEIGHTED, _prints_same
    ),
    Claim(
      f'Dynamic clustering gains more over Phase 1 than K-means, on the global test set {_BY}; both go on from one Phase 1 here, so that '
      'its level is higher by as much', f'{PAPER}, section 7.2',
      '+2.0 points and +0.9 points, from two runs of Phase 1; the level is higher with K-means',
      (claims.above('gains', (DYNAMIC.name, KMEANS.name), _gain(DYNAMIC), _gain(KMEANS)),),
    ),
    *_of_each(
      f'blended with the average of all, clusters keep their specialisation (they lose at most {units.EQUIVALENT:g} points on their '
      'members’ test rows) (ours answers it)', 'section 6.3', dict.fromkeys(_AVERAGE, 'asked, not answered'),
      lambda row: _across(row, row, cluster_scores('blended', 'members'), cluster_scores('unblended', 'members'), -units.EQUIVALENT),
    ),
    *_of_each(
      f'blended with the average of all, clusters generalise better, on the global test set {_BY} (ours answers it)', 'section 6.3',
      dict.fromkeys(_AVERAGE, 'asked, not answered'),
      lambda row: _across(row, row, cluster_scores('blended', 'global_test'), cluster_scores('unblended', 'global_test')),
    ),
  )  # fmt: skip


def _folds() -> tuple[Claim, ...]:
  return tuple(
    Claim(
      f'{row.name}: in ten-fold cross-validation clients do better than with FedAvg without clusters, in the mean over folds: {words} {_BY}',
      f'{PAPER}, sections 4.1 and 8', 'said in words', _across(row, row, over_folds(models), over_folds('baseline')),
    )
    for models, words in _MODELS.items()
    for row in _METHODS
  )  # fmt: skip


def _of_each(
  words: str, where: str, published: Mapping[str, str], parts: Callable[[Row], tuple[Part, ...]]
) -> tuple[Claim, ...]:
  """Returns the claim about each method."""
  return tuple(
    Claim(f'{row.name}: {words}', f'{PAPER}, {where}', published[row.name], parts(row)) for row in _METHODS
  )


def _prints_same(row: Row) -> tuple[Part, ...]:
  readings = (claims.of(row.name, globally('weighted')), claims.of(row.name, globally('average')))
  return (claims.same(row.name, (row.name,), *readings, _PRINTS_SAME[row.name]),)


def _gain(row: Row) -> claims.Reading:
  return claims.less(claims.of(row.name, globally('average')), claims.of(row.name, globally('phase1')))


def _drawn(row: Row, figure: int) -> tuple[Claim, ...]:
  """Returns what figures 4 and 5 draw of 20 clients, asked of all of them."""
  return (
    Claim(
      f'{row.name}: on average over clients accuracy is higher in Phase 3 (blended models) than in Phase 1 {_BY}', f'{PAPER}, figure {figure}',
      'drawn for 20 clients', _across(row, row, mean_client('blended'), _over_clients('phase1')),
    ),
  )  # fmt: skip


CLAIMS: Mapping[str, tuple[Claim, ...]] = {
  'rohith2020/table1': _table1(),
  'rohith2020/table2': _table2(),
  'rohith2020/table3': _table3(),
  'rohith2020/folds': _folds(),
  'rohith2020/figure4': _drawn(KMEANS, 4),
  'rohith2020/figure5': _drawn(DYNAMIC, 5),
}
