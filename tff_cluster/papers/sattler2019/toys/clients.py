"""Two toy cases in which no single model fits all clients, and what CFL makes of them (Sattler et al. 2019, figure 1).

Each of two planted clusters has the same number of clients, and each client as many rows, spread over four discs or two
of them. Left in the figure, the XOR problem: label 1 where x₁ and x₂ have the same sign; the first cluster sees the
discs with x₁ > 0, the second those with x₁ < 0. No line separates all rows, while each cluster has one of its own.
Right, diverging conditionals: both clusters see all discs; the first gives label 1 where x₁ > 0, the second where x₁ < 0.

The model is logistic regression: a client's risk is the mean of log(1 + exp(−s w·φ(x))), where s is 1 for label 1 and
−1 for label 0, and its gradient −mean s φ(x) / (1 + exp(s w·φ(x))) is exact. φ(x) is (x₁, x₂, 1), or with the product
x₁ x₂ beside them, which is enough for XOR.

Departures and choices: the paper prints no numbers of its toys, so discs and sizes are ours. A cluster that can be
separated has no best weights, only better and better ones; its gradients vanish nonetheless, so that the criteria
ε₁ and ε₂ work as they are. A cluster is split as in Algorithm 2.
"""

from collections.abc import Iterator

import numpy as np
from scipy import special

from tff_cluster.base.errors import InputError
from tff_cluster.base.seeding import generator
from tff_cluster.clustering import halves
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.papers.sattler2019.toys.results import ClientsToy
from tff_cluster.papers.sattler2019.toys.risks import check_norms, descend

# Centres of the discs of each cluster.
_DISCS = {
  'xor': (((1.0, 1.0), (1.0, -1.0)), ((-1.0, 1.0), (-1.0, -1.0))),
  'conditionals': (((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)),) * 2,
}
PROBLEMS = tuple(_DISCS)
MOST_CLIENTS = 10
_RADIUS = 0.75  # Below 1, so that discs of different labels never touch.
_START = (0.6, -0.8, 0.4, -0.3)  # Not zero: there the gradients already cancel, and nothing would be trained.
_RATE = 2.0  # Below 2 / L: features of these discs give gradients with Lipschitz constants L of about 0.3.
_GRID, _REACH = 161, 2.1


def run_clients(
  problem: str,
  richer: bool = False,
  clients: int = 10,
  rows: int = 40,
  seed: int = 0,
  eps_1: float = 1e-3,
  eps_2: float = 1e-2,
) -> ClientsToy:
  """Trains one model for all clients to a stationary point, then one for each cluster that CFL finds.

  Args:
    problem: One of PROBLEMS.
    richer: Whether the model has the product of both inputs as a feature.
    clients: In both clusters together, even.
    rows: Of each client, a multiple of 4, so that every disc has as many.
    seed: For the points.
    eps_1, eps_2: See ClientsToy.

  Raises:
    InputError: if a choice is unknown, a number is out of range, or no stationary point is reached.
  """
  if problem not in PROBLEMS:
    raise InputError(f'problem {problem!r}: allowed are {", ".join(PROBLEMS)}')
  if clients % 2 or not 2 <= clients <= MOST_CLIENTS:
    raise InputError(f'{clients} clients: allowed are even numbers from 2 to {MOST_CLIENTS}')
  if rows % 4 or rows < 4:
    raise InputError(f'{rows} rows: allowed are multiples of 4, from 4 on')
  check_norms(eps_1, eps_2)
  planted = np.arange(clients) % 2
  points = np.stack([_draw(problem, int(k), rows, seed, i) for i, k in enumerate(planted)])
  labels = np.stack([label(problem, x, int(k)) for x, k in zip(points, planted, strict=True)])
  phi = features(points, richer)
  start = np.array(_START[: phi.shape[-1]])

  def train(members: np.ndarray, begin: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    shares = np.full(len(members), 1.0 / len(members))
    path, seen = descend(lambda w: gradients(w, phi[members], labels[members]), shares, begin, _RATE, eps_1)
    return path[-1], seen[-1], len(path) - 1

  everybody = np.arange(clients)
  weights, seen, rounds = train(everybody, start)

  def cluster(
    members: np.ndarray, at: np.ndarray, each: np.ndarray
  ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yields clusters as members, weights and the members' gradients (Algorithm 2 behind its line 2)."""
    if len(members) == 1 or np.linalg.norm(each, axis=1).max() < eps_2:
      yield members, at, each
      return
    half, _ = halves.bipartition(_similarities(each))
    for side in (members[half == 0], members[half == 1]):
      yield from cluster(side, *train(side, at)[:2])

  found = sorted(cluster(everybody, weights, seen), key=lambda part: part[0].min())
  groups, group_gradients = np.zeros(clients, np.int64), np.zeros_like(seen)
  for number, (members, _, each) in enumerate(found):
    groups[members], group_gradients[members] = number, each
  group_weights = np.stack([at for _, at, _ in found])
  alone = [train(np.flatnonzero(planted == k), start)[0] for k in (0, 1)]
  axis = np.linspace(-_REACH, _REACH, _GRID)
  grid = features(np.stack(np.meshgrid(axis, axis), axis=-1), richer)
  return ClientsToy(
    name=f'{problem}_richer' if richer else problem,
    points=points,
    labels=labels,
    planted=planted,
    features=('x₁', 'x₂', 'x₁x₂', '1') if richer else ('x₁', 'x₂', '1'),
    weights=weights,
    gradients=seen,
    similarity=_similarities(seen),
    groups=groups,
    group_weights=group_weights,
    group_gradients=group_gradients,
    accuracy=float(np.mean(_right(weights, phi, labels))),
    alone=np.array([_right(alone[k], phi[planted == k], labels[planted == k]).mean() for k in (0, 1)]),
    client_accuracy=np.array([_right(group_weights[groups[i]], phi[i], labels[i]).mean() for i in everybody]),
    ceiling=ceiling(problem, points.reshape(-1, 2)),
    rounds=rounds,
    eps_1=eps_1,
    eps_2=eps_2,
    axis=axis,
    scores=np.stack([grid @ w for w in (weights, *group_weights)]),
  )


def run_figure1(seed: int = 0) -> tuple[ClientsToy, ...]:
  """Returns figure 1 of the paper, XOR and diverging conditionals, then both with the richer model.

  Args:
    seed: For the points.
  """
  return tuple(run_clients(problem, richer, seed=seed) for richer in (False, True) for problem in PROBLEMS)


def features(points: np.ndarray, richer: bool) -> np.ndarray:
  """Returns φ, float64[..., 3] or with the product float64[..., 4], of float[..., 2]."""
  x, y = np.moveaxis(np.asarray(points, np.float64), -1, 0)
  return np.stack([x, y, x * y, np.ones_like(x)] if richer else [x, y, np.ones_like(x)], axis=-1)


def label(problem: str, points: np.ndarray, cluster: int) -> np.ndarray:
  """Returns the label that a cluster gives to points, int64[...] from float[..., 2]; its p(y|x) is 1 there."""
  if problem == 'xor':
    return (points[..., 0] * points[..., 1] > 0).astype(np.int64)
  return ((points[..., 0] > 0) != bool(cluster)).astype(np.int64)


def ceiling(problem: str, points: np.ndarray) -> float:
  """Returns the share of points, float[rows, 2], on which one function can be right for both clusters at best.

  Each point counts half for either cluster; where they give it different labels, any answer is wrong for one.
  """
  ones = np.mean([label(problem, points, cluster) for cluster in (0, 1)], axis=0)
  return float(np.mean(np.maximum(ones, 1.0 - ones)))


def risks(weights: np.ndarray, phi: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """Returns the clients' mean logistic losses, float64[clients].

  Args:
    weights: float64[features].
    phi: float64[clients, rows, features].
    labels: int[clients, rows], 0 or 1.
  """
  return np.logaddexp(0.0, -_signs(labels) * (phi @ weights)).mean(axis=1)


def gradients(weights: np.ndarray, phi: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """Returns the gradients of `risks`, float64[clients, features]; arguments as there."""
  signs = _signs(labels)
  pull = signs * special.expit(-signs * (phi @ weights))
  return -np.einsum('cr,crf->cf', pull, phi) / phi.shape[1]


def _draw(problem: str, cluster: int, rows: int, seed: int, client: int) -> np.ndarray:
  """Returns a client's points, float64[rows, 2], spread evenly over its cluster's discs."""
  rng = generator(seed, 'toy points', problem, client)
  length, angle = _RADIUS * np.sqrt(rng.random(rows)), 2.0 * np.pi * rng.random(rows)
  centres = np.array(_DISCS[problem][cluster])
  centres = centres[np.arange(rows) % len(centres)]
  return centres + length[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _similarities(updates: np.ndarray) -> np.ndarray:
  return halves.similarities(Signatures.numbered(updates))


def _signs(labels: np.ndarray) -> np.ndarray:
  return 2.0 * labels - 1.0


def _right(weights: np.ndarray, phi: np.ndarray, labels: np.ndarray) -> np.ndarray:
  return (phi @ weights > 0) == (np.asarray(labels) == 1)
