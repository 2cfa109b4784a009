"""The claims that Rohith et al. 2020 make in words, each as a check that can fail."""

import dataclasses
from collections.abc import Callable

from tff_cluster.papers import rohith2020
from tff_cluster.reporting.evidence import Evidence
from tff_cluster.scorecard.words import decimals_for, differ, percents, points

VERDICTS = ('holds', 'fails', 'undecided', 'not run')
_PRINTED = 0.0005  # Table 3 prints tenths of a point; what is nearer than half of one prints the same.
_KEPT = 0.01


@dataclasses.dataclass(frozen=True)
class Finding:
  """How a claim fared: one of VERDICTS, our numbers in words, and what a reader must know."""

  verdict: str
  ours: str
  note: str = ''


@dataclasses.dataclass(frozen=True)
class Claim:
  """A claim.

  Attributes:
    words: What is claimed.
    source: Where.
    published: The paper's own numbers for it, in words.
    needs: The methods without which it cannot be checked.
    rule: Checks it; called only where all needed methods were run.
  """

  words: str
  source: str
  published: str
  needs: tuple[str, ...]
  rule: Callable[[Evidence], Finding]

  def check(self, evidence: Evidence) -> Finding:
    missing = [method for method in self.needs if method not in evidence.methods]
    if missing:
      return Finding('not run', '–', f'this run has no {" and no ".join(missing)} clustering')
    return self.rule(evidence)


def _verdict(condition: bool) -> str:
  return 'holds' if condition else 'fails'


def _average_above_phase1(method: str) -> Callable[[Evidence], Finding]:
  def rule(evidence: Evidence) -> Finding:
    ours = evidence.methods[method]
    before, after, baseline = ours['phase1_global'], ours['average_global'], evidence.baseline['global']
    told = percents((before, after, baseline), lambda a, b, c: (differ(b, a), differ(b, c)))
    note = f'at equal rounds the unclustered model has {told[2]}, so the comparison that matters '
    note += 'fails' if after <= baseline else 'holds too' if after > before else 'holds'
    return Finding(_verdict(after > before), f'{told[0]} → {told[1]}', note)

  return rule


def _weighting_changes_nothing(method: str) -> Callable[[Evidence], Finding]:
  def rule(evidence: Evidence) -> Finding:
    plain, weighted = evidence.methods[method]['average_global'], evidence.methods[method]['weighted_global']
    change = 100.0 * (weighted - plain)
    # The slack keeps a change of exactly the limit from being judged by rounding of binary fractions.
    limit = 100.0 * _PRINTED - 1e-9
    told = percents((plain, weighted), lambda a, b: abs(b - a) < limit)
    decimals = decimals_for([change], lambda d: abs(d) < limit, 2)
    note = f'weighted minus plain: {points(weighted - plain, decimals)}; from {100 * _PRINTED:g} points on it is a change'
    return Finding(_verdict(abs(change) < limit), f'{told[0]} and {told[1]}', note)

  return rule


def _dynamic_gains_more(evidence: Evidence) -> Finding:
  gains = {m: evidence.methods[m]['average_global'] - evidence.methods[m]['phase1_global'] for m in _BOTH}
  found = (gains['dynamic_distance'], gains['kmeans'])
  decimals = decimals_for([100.0 * gain for gain in found], differ)
  return Finding(
    _verdict(found[0] > found[1]),
    ' and '.join(points(gain, decimals) for gain in found),
    'here both start from the same Phase 1; in the paper from two runs, and its level after K-means is higher',
  )


def _overlap_serves_clients_better(evidence: Evidence) -> Finding:
  dynamic, kmeans = (evidence.methods[m]['own_mean'] for m in ('dynamic_distance', 'kmeans'))
  return Finding(
      _verdict(dynamic > kmeans), ' and '.join(percents((dynamic, kmeans), differ)),
      'mean client accuracy with own models; overlap also trains more, see the costs',
  )  # fmt: skip


def _clients_beat_baseline(method: str) -> Callable[[Evidence], Finding]:
  def rule(evidence: Evidence) -> Finding:
    ours, baseline = evidence.methods[method]['own_mean'], evidence.baseline['mean']
    note = 'at equal rounds; the paper compares with the end of Phase 1 only'
    return Finding(_verdict(ours > baseline), ', unclustered '.join(percents((ours, baseline), differ)), note)

  return rule


def _raises_highest(method: str) -> Callable[[Evidence], Finding]:
  def rule(evidence: Evidence) -> Finding:
    before, after = evidence.phase1['highest'], evidence.methods[method]['highest']
    told = ' → '.join(percents((before, after), lambda a, b: (differ(a, b), a >= 100.0)))
    if before >= 1.0:
      return Finding('undecided', told, 'a client was at 100% before any clustering, so nothing could rise')
    return Finding(_verdict(after > before), told)

  return rule


def _above_hierarchical(evidence: Evidence) -> Finding:
  theirs = evidence.methods['hierarchical']['own_highest']
  ours = [evidence.methods[m]['highest'] for m in _BOTH]
  numbers = _beside_hierarchical(ours, theirs, lambda *v: (min(v[:2]) > v[2], v[2] >= 100.0))
  if theirs >= 1.0:
    return Finding(
      'undecided', numbers, 'hierarchical clustering has a client at 100%, which nothing can exceed'
    )
  return Finding(_verdict(min(ours) > theirs), numbers)


def _few_at_highest(evidence: Evidence) -> Finding:
  theirs = evidence.methods['hierarchical']['own_share_at_highest']
  ours = [evidence.methods[m]['share_at_highest'] for m in _BOTH]
  return Finding(
    _verdict(max(ours) < theirs), _beside_hierarchical(ours, theirs, lambda *v: max(v[:2]) < v[2])
  )


def _beside_hierarchical(ours: list[float], theirs: float, verdict: Callable[..., object]) -> str:
  kmeans, dynamic, hierarchical = percents([*ours, theirs], verdict)
  return f'{kmeans} and {dynamic}, hierarchical {hierarchical}'


def _specialisation_kept(method: str) -> Callable[[Evidence], Finding]:
  def rule(evidence: Evidence) -> Finding:
    before, after = (evidence.methods[method][f'members_{kind}'] for kind in ('unblended', 'blended'))
    # The slack keeps a loss of exactly one point from failing by rounding of binary fractions.
    told = percents((before, after), lambda a, b: a - b <= 100.0 * _KEPT + 1e-9)
    return Finding(
        _verdict(before - after <= _KEPT + 1e-9), ' → '.join(told),
        f'mean over clusters on their members’ test rows; counted as kept where blending costs at most {100 * _KEPT:g} point',
    )  # fmt: skip

  return rule


def _generality_gained(method: str) -> Callable[[Evidence], Finding]:
  def rule(evidence: Evidence) -> Finding:
    before, after = (evidence.methods[method][f'global_{kind}'] for kind in ('unblended', 'blended'))
    return Finding(
        _verdict(after > before), ' → '.join(percents((before, after), differ)), 'mean over clusters on the global test set'
    )  # fmt: skip

  return rule


_BOTH = ('kmeans', 'dynamic_distance')
_PAPER = 'Rohith et al. 2020'

CLAIMS: tuple[Claim, ...] = (
    *(
        Claim(
            f'{rohith2020.NAMES[m]}: the average of the cluster models is better on the global test set than Phase 1',
            f'{_PAPER}, table 3', rohith2020.AVERAGE[m], (m,), _average_above_phase1(m),
        )
        for m in _BOTH
    ),
    *(
        Claim(
            f'{rohith2020.NAMES[m]}: weighting the clusters by their accuracy changes nothing',
            f'{_PAPER}, table 3', rohith2020.WEIGHTED[m], (m,), _weighting_changes_nothing(m),
        )
        for m in _BOTH
    ),
    Claim(
        'Dynamic clustering gains more over Phase 1 than K-means (global test set)', f'{_PAPER}, section 7.2',
        '+2.0 points and +0.9 points', _BOTH, _dynamic_gains_more,
    ),
    Claim(
        'Overlapping clusters serve the clients better than disjoint ones', f'{_PAPER}, section 8', 'said in words',
        _BOTH, _overlap_serves_clients_better,
    ),
    *(
        Claim(
            f'{rohith2020.NAMES[m]}: clients do better than with FedAvg without clusters', f'{_PAPER}, section 8',
            'said in words', (m,), _clients_beat_baseline(m),
        )
        for m in _BOTH
    ),
    *(
        Claim(
            f'{rohith2020.NAMES[m]}: the highest client accuracy rises', f'{_PAPER}, figures 4 and 5, table 2',
            'drawn', (m,), _raises_highest(m),
        )
        for m in _BOTH
    ),
    Claim(
        'Both reach a higher highest client accuracy than hierarchical clustering', f'{_PAPER}, tables 1 and 2',
        '99.6% and 99.7%, hierarchical 98.1%', (*_BOTH, 'hierarchical'), _above_hierarchical,
    ),
    Claim(
        'Fewer clients are at the highest accuracy than with hierarchical clustering', f'{_PAPER}, tables 1 and 2',
        '26% and 28%, hierarchical 67%', (*_BOTH, 'hierarchical'), _few_at_highest,
    ),
    *(
        Claim(
            f'{rohith2020.NAMES[m]}: blended with the average of all, clusters keep their specialisation',
            f'{_PAPER}, section 6.3', 'asked, not answered', (m,), _specialisation_kept(m),
        )
        for m in _BOTH
    ),
    *(
        Claim(
            f'{rohith2020.NAMES[m]}: blended with the average of all, clusters generalise better',
            f'{_PAPER}, section 6.3', 'asked, not answered', (m,), _generality_gained(m),
        )
        for m in _BOTH
    ),
)  # fmt: skip
