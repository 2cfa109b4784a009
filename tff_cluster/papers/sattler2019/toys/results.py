"""What the toy problems of CFL (Sattler et al. 2019, figures 1 and 2) give, as plain data for their pictures and claims."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class ClientsToy:
  """Clients of two planted clusters with one classifier for all, and with one for each cluster that CFL finds (figure 1).

  Attributes:
    name: 'xor' or 'conditionals', followed by '_richer' where the model has the product of both inputs as well.
    points: float64[clients, rows, 2].
    labels: int64[clients, rows], 0 or 1.
    planted: int64[clients], the planted clusters.
    features: What the model sees, for instance ('x₁', 'x₂', '1').
    weights: float64[features], the one model at the stationary point of Federated Learning.
    gradients: float64[clients, features], the clients' gradients there.
    similarity: float64[clients, clients], their cosines (equation 4); the diagonal is 1.
    groups: int64[clients], the clusters of CFL, numbered by first member; all 0 where nothing was split.
    group_weights: float64[groups, features], one model a cluster.
    group_gradients: float64[clients, features], gradients at the model of the own cluster.
    accuracy: Share of all rows on which the one model is right.
    alone: float64[2], share of the rows of each planted cluster on which a model trained on it alone is right.
    client_accuracy: float64[clients], share of a client's rows on which the model of its cluster found is right.
    ceiling: The share of all rows on which any function of the inputs could be right at best.
    rounds: Rounds to the stationary point.
    eps_1, eps_2: The norms below which a point is stationary for all clients together, and for each.
    axis: float64[n], coordinates of a square grid, the same both ways.
    scores: float64[1 + groups, n, n], the one model's and the clusters' models' scores on it (label 1 above zero),
      second input by first.
  """

  name: str
  points: np.ndarray
  labels: np.ndarray
  planted: np.ndarray
  features: tuple[str, ...]
  weights: np.ndarray
  gradients: np.ndarray
  similarity: np.ndarray
  groups: np.ndarray
  group_weights: np.ndarray
  group_gradients: np.ndarray
  accuracy: float
  alone: np.ndarray
  client_accuracy: np.ndarray
  ceiling: float
  rounds: int
  eps_1: float
  eps_2: float
  axis: np.ndarray
  scores: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class RisksToy:
  """Two clients with risks that are known as formulas, and the path of Federated Learning (figure 2).

  Attributes:
    name: 'incongruent' or 'congruent'.
    formulas: The two risks in words.
    shares: float64[2], a₁ and a₂, their weights in the mean; the sum is 1.
    path: float64[rounds + 1, 2], the parameters from the start to the stationary point.
    gradients: float64[rounds + 1, 2, 2], the gradient of each client's risk along the path.
    eps_1, eps_2: The norms below which a point is stationary for all clients together, and for each.
    axis: float64[n], coordinates of a square grid, the same both ways.
    risks: float64[2, n, n], both risks on it, second parameter by first; 0 where a risk is smallest.
  """

  name: str
  formulas: tuple[str, str]
  shares: np.ndarray
  path: np.ndarray
  gradients: np.ndarray
  eps_1: float
  eps_2: float
  axis: np.ndarray
  risks: np.ndarray

  @property
  def norms(self) -> np.ndarray:
    """Norms along the path of both clients' gradients and of their weighted mean, float64[rounds + 1, 3]."""
    mean = np.tensordot(self.gradients, self.shares, axes=((1,), (0,)))
    return np.linalg.norm(np.concatenate([self.gradients, mean[:, None]], axis=1), axis=-1)
