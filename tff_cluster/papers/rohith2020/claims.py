"""The claims that Rohith et al. 2020 make in words, each as a check that can fail; means over seeds are compared."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tff_cluster.base.words import decimals_for, differ, percents, points
from tff_cluster.papers.rohith2020.tables import (
  DYNAMIC,
  HIERARCHICAL,
  KMEANS,
  PAPER,
  cluster_scores,
  evaluation,
  globally,
)
from tff_cluster.scorecard.cells import Read
from tff_cluster.scorecard.claims import Claim, Finding, judged, whole
from tff_cluster.scorecard.rows import Ours

Rows = Mapping[str, Ours]
_PRINTED = 0.0005  # Table 3 prints tenths of a point; what is nearer than half of one prints the same.
_KEPT = 0.01
_SLACK = 1e-9  # Keeps what is exactly at a limit from being judged by rounding of binary fractions.
_HIGHEST = evaluation('blended', 'highest_client_accuracy')
_OWN_MEAN = evaluation('own', 'mean_client_accuracy')
_METHODS = (KMEANS.name, DYNAMIC.name)
_ALL = (*_METHODS, HIERARCHICAL.name)


def _mean(values: Sequence[float | None]) -> float:
  """Returns the mean over seeds of percentages, as a share."""
  return float(np.mean([value for value in values if value is not None])) / 100.0


def _of(rows: Rows, name: str, *reads: Read) -> list[float]:
  return [_mean(read(rows[name])) for read in reads]


def _stage(rows: Rows, name: str, stage: str, of: Callable[[np.ndarray], float]) -> float:
  """Returns a statistic of the clients' accuracies with FedAvg's model, from 0 to 1."""
  return _mean(rows[name].stage(stage, lambda e: of(np.asarray(e.client_accuracy, np.float64))))


def _average_above_phase1(name: str) -> Callable[[Rows], Finding]:
  def rule(rows: Rows) -> Finding:
    before, after, baseline = _of(rows, name, *map(globally, ('phase1', 'average', 'baseline')))
    told = percents((before, after, baseline), lambda a, b, c: (differ(b, a), differ(b, c)))
    note = f'at equal rounds the unclustered model has {told[2]}, so the comparison that matters '
    note += 'fails' if after <= baseline else 'holds too' if after > before else 'holds'
    return judged(after > before, f'{told[0]} → {told[1]}', note)

  return rule


def _weighting_changes_nothing(name: str) -> Callable[[Rows], Finding]:
  def rule(rows: Rows) -> Finding:
    plain, weighted = _of(rows, name, globally('average'), globally('weighted'))
    change, limit = 100.0 * (weighted - plain), 100.0 * _PRINTED - _SLACK
    told = percents((plain, weighted), lambda a, b: abs(b - a) < limit)
    decimals = decimals_for([change], lambda d: abs(d) < limit, 2)
    note = f'weighted minus plain: {points(weighted - plain, decimals)}; from {100 * _PRINTED:g} points on it is a change'
    return judged(abs(change) < limit, f'{told[0]} and {told[1]}', note)

  return rule


def _dynamic_gains_more(rows: Rows) -> Finding:
  levels = [_of(rows, name, globally('phase1'), globally('average')) for name in (DYNAMIC.name, KMEANS.name)]
  gains = [after - before for before, after in levels]
  decimals = decimals_for([100.0 * gain for gain in gains], differ)
  return judged(
    gains[0] > gains[1],
    ' and '.join(points(gain, decimals) for gain in gains),
    'here both start from the same Phase 1; in the paper from two runs, and its level after K-means is higher',
  )


def _overlap_serves_clients_better(rows: Rows) -> Finding:
  dynamic, kmeans = (_mean(_OWN_MEAN(rows[name])) for name in (DYNAMIC.name, KMEANS.name))
  return judged(
    dynamic > kmeans,
    ' and '.join(percents((dynamic, kmeans), differ)),
    'mean client accuracy with own models; overlap also trains more, see the costs',
  )


def _clients_beat_baseline(name: str) -> Callable[[Rows], Finding]:
  def rule(rows: Rows) -> Finding:
    ours, baseline = _mean(_OWN_MEAN(rows[name])), _stage(rows, name, 'baseline', np.mean)
    note = 'at equal rounds; the paper compares with the end of Phase 1 only'
    return judged(ours > baseline, ', unclustered '.join(percents((ours, baseline), differ)), note)

  return rule


def _raises_highest(name: str) -> Callable[[Rows], Finding]:
  def rule(rows: Rows) -> Finding:
    before, after = _stage(rows, name, 'phase1', np.max), _mean(_HIGHEST(rows[name]))
    told = ' → '.join(percents((before, after), lambda a, b: (differ(a, b), a >= 100.0)))
    if before >= 1.0:
      return Finding('undecided', told, 'a client was at 100% before any clustering, so nothing could rise')
    return judged(after > before, told)

  return rule


_QUOTED = 'the paper’s number of FL+HC is a mean over clients, and its share that at 99%; these compare like with like'


def _above_hierarchical(rows: Rows) -> Finding:
  ours = [_mean(_HIGHEST(rows[name])) for name in _METHODS]
  theirs = _mean(evaluation('own', 'highest_client_accuracy')(rows[HIERARCHICAL.name]))
  numbers = _beside_hierarchical(ours, theirs, lambda *v: (min(v[:2]) > v[2], v[2] >= 100.0))
  if theirs >= 1.0:
    return Finding(
      'undecided',
      numbers,
      f'hierarchical clustering has a client at 100%, which nothing can exceed; {_QUOTED}',
    )
  return judged(min(ours) > theirs, numbers, _QUOTED)


def _few_at_highest(rows: Rows) -> Finding:
  ours = [_mean(evaluation('blended', 'share_at_highest')(rows[name])) for name in _METHODS]
  theirs = _mean(evaluation('own', 'share_at_highest')(rows[HIERARCHICAL.name]))
  return judged(max(ours) < theirs, _beside_hierarchical(ours, theirs, lambda *v: max(v[:2]) < v[2]), _QUOTED)


def _beside_hierarchical(ours: list[float], theirs: float, verdict: Callable[..., object]) -> str:
  kmeans, dynamic, hierarchical = percents([*ours, theirs], verdict)
  return f'{kmeans} and {dynamic}, hierarchical {hierarchical}'


def _specialisation_kept(name: str) -> Callable[[Rows], Finding]:
  def rule(rows: Rows) -> Finding:
    before, after = _of(rows, name, *(cluster_scores(kind, 'members') for kind in ('unblended', 'blended')))
    told = percents((before, after), lambda a, b: a - b <= 100.0 * _KEPT + _SLACK)
    return judged(
      before - after <= _KEPT + _SLACK,
      ' → '.join(told),
      f'mean over clusters on their members’ test rows; counted as kept where blending costs at most {100 * _KEPT:g} point',
    )

  return rule


def _generality_gained(name: str) -> Callable[[Rows], Finding]:
  def rule(rows: Rows) -> Finding:
    before, after = _of(
      rows, name, *(cluster_scores(kind, 'global_test') for kind in ('unblended', 'blended'))
    )
    told = ' → '.join(percents((before, after), differ))
    return judged(after > before, told, 'mean over clusters on the global test set')

  return rule


_AVERAGE = {KMEANS.name: '92.5% → 93.4%', DYNAMIC.name: '91% → 93%'}
_WEIGHTED = {KMEANS.name: '93.4% and 93.4%', DYNAMIC.name: '93% and 93%'}


def _rises(name: str) -> Claim:
  return Claim(
    f'{name}: the highest client accuracy rises', f'{PAPER}, figures 4 and 5, table 2', 'drawn', whole(name),
    _raises_highest(name),
  )  # fmt: skip


CLAIMS: Mapping[str, tuple[Claim, ...]] = {
  'rohith2020/table1': (
    Claim(
      'Both reach a higher highest client accuracy than hierarchical clustering', f'{PAPER}, tables 1 and 2',
      '99.6% and 99.7%, hierarchical 98.1%', whole(*_ALL), _above_hierarchical,
    ),
    Claim(
      'Fewer clients are at the highest accuracy than with hierarchical clustering', f'{PAPER}, tables 1 and 2',
      '26% and 28%, hierarchical 67%', whole(*_ALL), _few_at_highest,
    ),
  ),
  'rohith2020/table2': (
    Claim(
      'Overlapping clusters serve the clients better than disjoint ones', f'{PAPER}, section 8', 'said in words',
      whole(*_METHODS), _overlap_serves_clients_better,
    ),
    *(
      Claim(
        f'{name}: clients do better than with FedAvg without clusters', f'{PAPER}, section 8', 'said in words',
        whole(name), _clients_beat_baseline(name),
      )
      for name in _METHODS
    ),
    *map(_rises, _METHODS),
  ),
  'rohith2020/table3': (
    *(
      Claim(
        f'{name}: the average of the cluster models is better on the global test set than Phase 1', f'{PAPER}, table 3',
        _AVERAGE[name], whole(name), _average_above_phase1(name),
      )
      for name in _METHODS
    ),
    *(
      Claim(
        f'{name}: weighting the clusters by their accuracy changes nothing', f'{PAPER}, table 3', _WEIGHTED[name],
        whole(name), _weighting_changes_nothing(name),
      )
      for name in _METHODS
    ),
    Claim(
      'Dynamic clustering gains more over Phase 1 than K-means (global test set)', f'{PAPER}, section 7.2',
      '+2.0 points and +0.9 points', whole(*_METHODS), _dynamic_gains_more,
    ),
    *(
      Claim(
        f'{name}: blended with the average of all, clusters keep their specialisation', f'{PAPER}, section 6.3',
        'asked, not answered', whole(name), _specialisation_kept(name),
      )
      for name in _METHODS
    ),
    *(
      Claim(
        f'{name}: blended with the average of all, clusters generalise better', f'{PAPER}, section 6.3',
        'asked, not answered', whole(name), _generality_gained(name),
      )
      for name in _METHODS
    ),
  ),
  'rohith2020/figure4': (_rises(KMEANS.name),),
  'rohith2020/figure5': (_rises(DYNAMIC.name),),
}  # fmt: skip
