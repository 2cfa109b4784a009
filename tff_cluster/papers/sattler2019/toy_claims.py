"""What CFL (Sattler et al. 2019) says of its toy problems, figures 1 and 2, each as a check that can fail.

The paper prints no number here. Where a limit decides, it is named in the claim or in the note of the finding. Toys are computed to the
end with exact gradients, not sampled: what they show is shown by one example, so that they have no seeds to judge over.
"""

from collections.abc import Callable, Mapping

import numpy as np

from tff_cluster.base.words import percent, plural
from tff_cluster.papers.sattler2019.toys.results import ClientsToy, RisksToy
from tff_cluster.scorecard.claims import FAILS, Finding, RuledClaim, judged
from tff_cluster.scorecard.verdicts import NOT_DECIDABLE

_PAPER = 'Sattler et al. 2019'
_LINE_AT_BEST = 0.75  # A line gets at most three of the four discs of XOR right.
_OPPOSITE = -0.999
_EQUAL = 1e-3  # Largest part of a gradient by which equation 3 may be missed.


def _decimals(value: float, count: int = 3) -> str:
  return f'{value:.{count}f}'.replace('-', '−')


def _no_line_fits(toys: Mapping[str, ClientsToy]) -> Finding:
  accuracy = toys['xor'].accuracy
  ours, reason = (
    f'{percent(accuracy)} of all rows right',
    'no line is right on more than three of the four discs',
  )
  return _algebra(accuracy <= _LINE_AT_BEST, ours, 'limit 75%', reason)


def _no_model_fits(toys: Mapping[str, ClientsToy]) -> Finding:
  toy, richer = toys['conditionals'], toys['conditionals_richer']
  ours = f'linear {percent(toy.accuracy)}, with x₁x₂ {percent(richer.accuracy)}'
  reason = f'no function of the inputs is right on more than {percent(toy.ceiling)} of both clusters’ answers to the points'
  return _algebra(max(toy.ceiling, toy.accuracy, richer.accuracy) <= _LINE_AT_BEST, ours, 'limit 75%', reason)


def _alone(toys: Mapping[str, ClientsToy]) -> Finding:
  each = [toys[name].alone for name in ('xor', 'conditionals')]
  ours = '; '.join(f'{percent(first)} and {percent(second)}' for first, second in each)
  return judged(
    all(values.min() == 1.0 for values in each), ours, 'left; right: a linear model trained on one cluster'
  )


_NO_FUNCTION = 'both clusters have opposite answers to the same points, so that no gradient can vanish'


def _violated(name: str, reason: str = '') -> Callable[[Mapping[str, ClientsToy]], Finding]:
  """Returns the rule of a toy; where nothing could come out against it, with the reason."""

  def rule(toys: Mapping[str, ClientsToy]) -> Finding:
    toy = toys[name]
    norms, mean = np.linalg.norm(toy.gradients, axis=1), np.linalg.norm(toy.gradients.mean(axis=0))
    ours = f'mean {mean:.1e}, clients {norms.min():.2f} to {norms.max():.2f}'
    note = f'norms of the gradients after {plural(toy.rounds, "round")}; ε₁ {toy.eps_1:g}, ε₂ {toy.eps_2:g}'
    is_so = bool(mean < toy.eps_1 and norms.min() >= toy.eps_2)
    return _algebra(is_so, ours, note, reason) if reason else judged(is_so, ours, note)

  return rule


def _signs(name: str) -> Callable[[Mapping[str, ClientsToy]], Finding]:
  def rule(toys: Mapping[str, ClientsToy]) -> Finding:
    toy = toys[name]
    same = toy.planted[:, None] == toy.planted
    within, across = float(toy.similarity[same].min()), float(toy.similarity[~same].max())
    ours = f'at least {_decimals(within)} within, at most {_decimals(across)} across'
    note = 'exactly 1 and −1 with endless data; counted as so above 0.9 and below −0.9'
    return judged(within > 0.9 and across < -0.9, ours, note)

  return rule


def _planted_found(name: str) -> Callable[[Mapping[str, ClientsToy]], Finding]:
  def rule(toys: Mapping[str, ClientsToy]) -> Finding:
    toy = toys[name]
    exact = np.array_equal(toy.groups[:, None] == toy.groups, toy.planted[:, None] == toy.planted)
    sizes = ' and '.join(str(size) for size in np.bincount(toy.groups))
    rest = float(np.linalg.norm(toy.group_gradients, axis=1).max())
    lowest = float(toy.client_accuracy.min())
    ours = f'{plural(len(toy.group_weights), "cluster")} of {sizes}; lowest client accuracy {percent(lowest)}'
    note = f'{"the planted ones" if exact else "not the planted ones"}; largest gradient after the split {rest:.1e}'
    return judged(exact and lowest == 1.0 and rest < toy.eps_2, ours, note)

  return rule


def _richer_is_congruent(toys: Mapping[str, ClientsToy]) -> Finding:
  toy = toys['xor_richer']
  largest = float(np.linalg.norm(toy.gradients, axis=1).max())
  ours = f'{percent(toy.accuracy)} right, largest gradient {largest:.1e}, {plural(len(toy.group_weights), "cluster")}'
  holds = toy.accuracy == 1.0 and largest < toy.eps_2 and not toy.groups.any()
  return judged(holds, ours, f'ε₂ {toy.eps_2:g}; drawn by us, not in the paper’s figure')


def _richer_is_not_enough(toys: Mapping[str, ClientsToy]) -> Finding:
  toy = toys['conditionals_richer']
  smallest = float(np.linalg.norm(toy.gradients, axis=1).min())
  ours = f'{percent(toy.accuracy)} right, smallest gradient {smallest:.2f}'
  holds = smallest >= toy.eps_2 and toy.accuracy <= _LINE_AT_BEST and bool(toy.groups.any())
  return _algebra(
    holds, ours, 'the model that is enough for XOR; drawn by us, not in the paper’s figure', _NO_FUNCTION
  )


def _last(toy: RisksToy) -> tuple[float, float, float]:
  """Returns the norms of both gradients and of their mean at the end of the path."""
  first, second, mean = (float(norm) for norm in toy.norms[-1])
  return first, second, mean


def _cosine(toy: RisksToy) -> float:
  first, second, _ = _last(toy)
  return (
    float(toy.gradients[-1, 0] @ toy.gradients[-1, 1] / (first * second)) if first * second else float('nan')
  )


def _converges(toys: Mapping[str, RisksToy]) -> Finding:
  pair = [toys[name] for name in ('incongruent', 'congruent')]
  ours = ' and '.join(f'{_last(toy)[2]:.1e} after {plural(len(toy.path) - 1, "round")}' for toy in pair)
  reason = 'a path that does not get there is not drawn: computing it ends with an error'
  return _algebra(all(_last(toy)[2] < toy.eps_1 for toy in pair), ours, f'ε₁ {pair[0].eps_1:g}', reason)


def _positive_norms(toys: Mapping[str, RisksToy]) -> Finding:
  toy = toys['incongruent']
  first, second, _ = _last(toy)
  reason = 'the risks are made without a common minimum, and both gradients vanish nowhere else'
  return _algebra(
    min(first, second) >= toy.eps_2, f'{first:.3f} and {second:.3f}', f'ε₂ {toy.eps_2:g}', reason
  )


def _opposite(toys: Mapping[str, RisksToy]) -> Finding:
  cosine = _cosine(toys['incongruent'])
  note = f'counted as opposite below {_decimals(_OPPOSITE)}'
  return _algebra(cosine < _OPPOSITE, f'cosine {_decimals(cosine, 6)}', note)


def _equation_3(toys: Mapping[str, RisksToy]) -> Finding:
  toy = toys['incongruent']
  first, second = toy.gradients[-1]
  missed = float(np.linalg.norm(first + toy.shares[1] / toy.shares[0] * second) / np.linalg.norm(first))
  note = f'a₁ {toy.shares[0]:g}, a₂ {toy.shares[1]:g}; up to {_EQUAL:g} of the gradient is left to ε₁'
  return _algebra(missed < _EQUAL, f'missed by {missed:.1e} of the gradient', note)


def _algebra(
  is_so: bool,
  ours: str,
  note: str,
  reason: str = 'it follows from a mean gradient near zero and two gradients that are not',
) -> Finding:
  """Returns the finding of what nothing could come out against but a fault of ours."""
  return Finding(NOT_DECIDABLE if is_so else FAILS, ours, f'{reason}; {note}')


def _area(toys: Mapping[str, RisksToy]) -> Finding:
  shares = {name: float((toy.risks.max(axis=0) == 0).mean()) for name, toy in toys.items()}
  ours = f'{percent(shares["congruent"])} of the picture, incongruent {percent(shares["incongruent"])}'
  is_so = shares['congruent'] > 0 and shares['incongruent'] == 0
  return _algebra(is_so, ours, 'ours, since the paper prints no formulas', 'the risks are made so')


def _vanishing_norms(toys: Mapping[str, RisksToy]) -> Finding:
  toy = toys['congruent']
  first, second, _ = _last(toy)
  return judged(max(first, second) < toy.eps_2, f'{first:.1e} and {second:.1e}', f'ε₂ {toy.eps_2:g}')


def _told_apart(toys: Mapping[str, RisksToy]) -> Finding:
  largest = {name: max(_last(toy)[:2]) for name, toy in toys.items()}
  holds = (
    largest['congruent'] < toys['congruent'].eps_2 and largest['incongruent'] >= toys['incongruent'].eps_2
  )
  ours = f'split at {largest["incongruent"]:.2f}, stopped at {largest["congruent"]:.1e}'
  return judged(holds, ours, 'the larger norm, against ε₂ (criterion 5)')


_FIGURE_1, _FIGURE_2 = f'{_PAPER}, figure 1', f'{_PAPER}, figure 2'
_BOTH = ('incongruent', 'congruent')
_WORDS = 'said in words'

CLAIMS: Mapping[str, tuple[RuledClaim, ...]] = {
    'cfl/figure1': (
        RuledClaim('Left: a linear model cannot fit all clients’ data at once', _FIGURE_1, _WORDS, ('xor',), _no_line_fits),
        RuledClaim(
            'Right: no model can fit all clients’ data at once', _FIGURE_1, _WORDS, ('conditionals', 'conditionals_richer',),
            _no_model_fits,
        ),
        RuledClaim(
            'In both cases the data of clients of one cluster can be separated easily', _FIGURE_1, _WORDS,
            ('xor', 'conditionals',), _alone,
        ),
        *(
            claim
            for side, name, reason in (('Left', 'xor', ''), ('Right', 'conditionals', _NO_FUNCTION))
            for claim in (
                RuledClaim(
                    f'{side}: one model for all ends where the mean gradient vanishes and the clients’ do not',
                    f'{_PAPER}, equation 3', _WORDS, (name,), _violated(name, reason),
                ),
                RuledClaim(
                    f'{side}: there, gradients of one cluster agree and those of different clusters are opposite (cosines above 0.9 and below −0.9)',
                    f'{_PAPER}, equation 4', '1 and −1', (name,), _signs(name),
                ),
                RuledClaim(
                    f'{side}: CFL finds the clusters, and then every client is right', f'{_PAPER}, equation 6', _WORDS,
                    (name,), _planted_found(name),
                ),
            )
        ),
        RuledClaim(
            'A model that is complex enough makes the clients of XOR congruent: nothing is split', f'{_PAPER}, section 1 (b)',
            _WORDS, ('xor_richer',), _richer_is_congruent,
        ),
        RuledClaim(
            'The same model leaves diverging conditionals incongruent', f'{_PAPER}, section 1 (a)', _WORDS,
            ('conditionals_richer',), _richer_is_not_enough,
        ),
    ),
    'cfl/figure2': (
        RuledClaim('Federated Learning converges to a stationary point of its objective', _FIGURE_2, _WORDS, _BOTH, _converges),
        RuledClaim('Incongruent: there the gradients of both clients are of positive norm', _FIGURE_2, _WORDS, _BOTH[:1], _positive_norms),
        RuledClaim('Incongruent: they point into opposite directions', f'{_FIGURE_2}, and equation 4', '−1', _BOTH[:1], _opposite),
        RuledClaim('Incongruent: ∇R₁ = −(a₂/a₁) ∇R₂', f'{_PAPER}, equation 3', 'derived', _BOTH[:1], _equation_3),
        RuledClaim('Congruent: there is an area where both risks are smallest', _FIGURE_2, _WORDS, _BOTH, _area),
        RuledClaim('Congruent: the norms of both gradients go to zero', _FIGURE_2, _WORDS, _BOTH[1:], _vanishing_norms),
        RuledClaim('The norms tell the two cases apart', f'{_FIGURE_2}, and criterion 5', _WORDS, _BOTH, _told_apart),
    ),
}  # fmt: skip
