"""Federated Learning on two risks that are known as formulas (Sattler et al. 2019, figure 2).

Both risks are bowls, R(θ) = ½ max(0, ρ(θ) − h)², where ρ(θ) = √((θ − c)ᵀ A (θ − c)) is the distance from the centre c
in units of an ellipse's half axes. With h = 0 that is a quadratic with its one minimum in c. With h > 0 the bottom is
flat: all of ρ ≤ h is minimal. The gradient, max(0, ρ − h) A (θ − c) / ρ, is continuous and exact. Two clients are
congruent (assumption 1) exactly where their bottoms meet.

Departures and choices: the paper prints neither its risks nor a start. A round is one full gradient step, and the
norm of the mean gradient, not of the mean update (line 8 of Algorithm 1), is compared with ε₁: they differ by the
learning rate only.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from tff_cluster.base.errors import InputError
from tff_cluster.papers.sattler2019.toys.results import RisksToy

MOST_ROUNDS = 100_000
_GRID = 241  # Points a side of the grid on which risks are drawn.


@dataclasses.dataclass(frozen=True)
class Bowl:
  """A risk of two parameters, 0 at its minimum.

  Attributes:
    centre: c.
    half_axes: Of the ellipse ρ = 1; A has their inverse squares as eigenvalues.
    turn: By how many degrees the ellipse is turned, against the clock.
    flat: h, the size of the flat bottom in half axes; 0 for a single minimum.

  Raises:
    InputError: if a number is not finite, a half axis is not positive, or the flat bottom is negative.
  """

  centre: tuple[float, float]
  half_axes: tuple[float, float]
  turn: float = 0.0
  flat: float = 0.0

  def __post_init__(self):
    numbers = (*self.centre, *self.half_axes, self.turn, self.flat)
    if not all(map(math.isfinite, numbers)) or min(self.half_axes) <= 0 or self.flat < 0:
      raise InputError(
        f'{self}: allowed are finite numbers, half axes above 0 and a flat bottom of at least 0'
      )

  @property
  def matrix(self) -> np.ndarray:
    """A, float64[2, 2]."""
    cos, sin = math.cos(math.radians(self.turn)), math.sin(math.radians(self.turn))
    turned = np.array([[cos, -sin], [sin, cos]])
    return turned @ np.diag(np.array(self.half_axes, np.float64) ** -2) @ turned.T

  def risk(self, theta: np.ndarray) -> np.ndarray:
    """Returns R, float64[...], at float[..., 2]."""
    _, distance = self._from_centre(theta)
    return 0.5 * np.maximum(0.0, distance - self.flat) ** 2

  def gradient(self, theta: np.ndarray) -> np.ndarray:
    """Returns the gradient of R, float64[..., 2], at float[..., 2]."""
    offset, distance = self._from_centre(theta)
    outside = distance > self.flat
    # On the bottom, where the gradient is 0, ρ may be 0 as well.
    share = np.where(outside, 1.0 - self.flat / np.where(outside, distance, 1.0), 0.0)
    return share[..., None] * (offset @ self.matrix)

  def formula(self, number: int) -> str:
    """Returns the risk in words, as that of client `number`."""
    half = ' and '.join(f'{length:g}' for length in self.half_axes)
    ellipse = f'ρ: distance from ({self.centre[0]:g}, {self.centre[1]:g}) in half axes {half}, turned by {self.turn:g}°'
    return f'R{"₁₂"[number]}(θ) = ½ {f"max(0, ρ − {self.flat:g})" if self.flat else "ρ"}²; {ellipse}'

  def _from_centre(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    offset = np.asarray(theta, np.float64) - np.array(self.centre)
    return offset, np.sqrt(np.maximum(0.0, np.einsum('...i,ij,...j->...', offset, self.matrix, offset)))


INCONGRUENT = (Bowl((-1.3, 0.5), (1.9, 1.0), 25.0), Bowl((1.3, -0.5), (1.1, 1.7), -20.0))
# The same bowls with flat bottoms that are large enough to meet.
CONGRUENT = tuple(dataclasses.replace(bowl, flat=1.5) for bowl in INCONGRUENT)


def descend(
  gradients: Callable[[np.ndarray], np.ndarray],
  shares: np.ndarray,
  start: np.ndarray,
  rate: float,
  eps_1: float,
  most_rounds: int = MOST_ROUNDS,
) -> tuple[np.ndarray, np.ndarray]:
  """Runs Federated Learning (Algorithm 1) with one full gradient step a round.

  Args:
    gradients: From parameters float64[parameters] to the clients' gradients, float64[clients, parameters].
    shares: float64[clients], the clients' shares of all rows; the sum is 1.
    start: float64[parameters].
    rate: Learning rate.
    eps_1: The norm of the weighted mean gradient below which a point is stationary.
    most_rounds: Rounds to try.

  Returns:
    The parameters float64[rounds + 1, parameters], the last of them stationary, and the clients' gradients there,
    float64[rounds + 1, clients, parameters].

  Raises:
    InputError: if rate or eps_1 is not positive, or no stationary point is reached.
  """
  if not (rate > 0 and eps_1 > 0):
    raise InputError(f'rate {rate}, eps_1 {eps_1}: both must be above 0')
  theta = np.asarray(start, np.float64)
  path, seen = [], []
  for _ in range(most_rounds + 1):
    each = gradients(theta)
    path.append(theta)
    seen.append(each)
    mean = shares @ each
    norm = np.linalg.norm(mean)
    if norm < eps_1:
      return np.array(path), np.array(seen)
    if not np.isfinite(norm):  # A rate that is too high: what follows would be NaN to the last round.
      break
    theta = theta - rate * mean
  raise InputError(
    f'after {len(path) - 1} rounds the mean gradient has norm {norm:.3g}, not below eps_1 = {eps_1:g}; allowed are a '
    f'lower rate than {rate:g}, a higher eps_1 or more rounds'
  )


def run_risks(
  name: str,
  bowls: Sequence[Bowl],
  share: float = 0.5,
  start: Sequence[float] = (-2.2, -2.4),
  rate: float = 0.15,
  eps_1: float = 1e-6,
  eps_2: float = 1e-3,
) -> RisksToy:
  """Runs Federated Learning of two clients from a start to a stationary point.

  Args:
    name: 'incongruent' or 'congruent'.
    bowls: The two clients' risks.
    share: a₁, the first client's share of all rows.
    start: The parameters to start from.
    rate: Learning rate; every rate below the smallest half axis squared makes the mean risk fall in each round.
    eps_1, eps_2: See RisksToy.

  Raises:
    InputError: if there are not two risks, the share is not between 0 and 1, the start is not two finite numbers,
      eps_2 is not above eps_1, or no stationary point is reached.
  """
  if len(bowls) != 2:
    raise InputError(f'{len(bowls)} risks: two clients need two')
  if not 0 < share < 1:
    raise InputError(f'share {share}: allowed are numbers between 0 and 1, both excluded')
  if len(start) != 2 or not all(map(math.isfinite, start)):
    raise InputError(f'start {tuple(start)}: allowed are two finite numbers')
  check_norms(eps_1, eps_2)
  shares = np.array([share, 1.0 - share])
  path, seen = descend(
    lambda theta: np.stack([bowl.gradient(theta) for bowl in bowls]), shares, np.array(start), rate, eps_1
  )
  reach = float(max(np.abs(path).max(), np.abs([bowl.centre for bowl in bowls]).max()))
  axis = np.linspace(-1.0, 1.0, _GRID) * 1.25 * reach
  grid = np.stack(np.meshgrid(axis, axis), axis=-1)
  formulas = (bowls[0].formula(0), bowls[1].formula(1))
  risks = np.stack([bowl.risk(grid) for bowl in bowls])
  return RisksToy(name, formulas, shares, path, seen, eps_1, eps_2, axis, risks)


def run_figure2(share: float = 0.5) -> tuple[RisksToy, RisksToy]:
  """Returns figure 2 of the paper: the incongruent problem and the congruent one, from the same start.

  Args:
    share: a₁, the first client's share of all rows.

  Raises:
    InputError: if the share is not between 0 and 1.
  """
  return run_risks('incongruent', INCONGRUENT, share), run_risks('congruent', CONGRUENT, share)


def check_norms(eps_1: float, eps_2: float) -> None:
  """Raises InputError unless 0 < eps_1 < eps_2: else a stationary point could never satisfy criterion (5)."""
  if not 0 < eps_1 < eps_2 < math.inf:
    raise InputError(f'eps_1 {eps_1}, eps_2 {eps_2}: allowed are 0 < eps_1 < eps_2')
