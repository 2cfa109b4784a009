"""FedEM: federated expectation-maximization (Marfoq et al. 2021, "Federated Multi-Task Learning under a Mixture of Distributions").

Each row of a client comes from one of K components, and the client has shares pi_k of them. A round is Algorithm 1 of the paper:
for each row j, q_k(j) is proportional to pi_k exp(-loss_jk) (E-step); pi_k is the mean of q_k over the client's rows, and model k
trains on the loss of its rows weighted by q_k (M-step); the server averages each model over the clients by their rows. A client
predicts with sum_k pi_k softmax_k.

Departure from equation 7: no share counts as less than 1e-4 in an E-step, wherever it has fallen below that, because one of 0
would never come back. So a model that a client has hardly any share in explains a little more of its rows than in the paper.

Settled here: a client that no round ever had has equal shares. Where the start gives clusters, the first round has no E-step: a
client trains the models that it has a share in, on rows that all weigh as much as that share. The order of the steps (q from
the shares of the round before, then the new shares, then training) and the loss of a batch (the sum of the weighted losses over
the batch's rows, not over their weights) are those of the authors' code (repository omarfoq/FedEM, read in November 2026).
Newcomers, as the paper says of clients that were not there for training, only estimate their shares: E-steps with fixed models
until they stand still.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tff_cluster.base.fields import option
from tff_cluster.clustering.alternating import Alternating, Federation, State
from tff_cluster.clustering.alternating import Options as AlternatingOptions

_LEAST = 1e-4
_STEPS, _STILL = 200, 1e-6


@dataclasses.dataclass(frozen=True)
class Options(AlternatingOptions):
  """The options of FedEM."""

  num_clusters: int = option(3, 'Number of components K.', at_least=1)


class FedEM(Alternating[Options]):
  """Every client trains every model, on rows weighted by how well it explains them."""

  name = 'fedem'
  title = 'FedEM'
  options_type = Options
  overlaps = True
  joins_predictions = True
  trains_all = True
  revision = 1

  def step(self, options: Options, federation: Federation, state: State, number: int) -> State:
    """Returns the state after a round: an E-step on each client, and the M-step of shares and models."""
    cohort = federation.cohort(number)
    if state.given:
      users = state.users(cohort)
      weights = [
        [np.full(federation.rows[client], shares[client]) for client in clients]
        for shares, clients in zip(state.membership, users, strict=True)
      ]
    else:
      losses = federation.row_losses(state.weights, cohort)
      found = [
        responsibilities(rows, shares) for rows, shares in zip(losses, state.own[:, cohort].T, strict=True)
      ]
      shares = np.stack([rows.mean(axis=1) for rows in found], axis=1)
      state = state.estimated(cohort, shares / shares.sum(axis=0), number)
      users = [cohort] * len(state.models)
      weights = [[rows[k] for rows in found] for k in range(len(users))]
    models = federation.fed_avg(number, state.models, users, row_weights=weights)
    return dataclasses.replace(state, models=models)

  def assign(self, options: Options, row_losses: Sequence[np.ndarray]) -> np.ndarray:
    """Returns float64[models, clients], the shares that E-steps with these models come to rest at, from equal ones."""
    return np.stack([_settled(rows) for rows in row_losses], axis=1)


METHOD = FedEM()


def responsibilities(losses: np.ndarray, shares: np.ndarray) -> np.ndarray:
  """Returns float64[models, rows], columns sum to 1: how likely each model explains a row.

  That is equation 7 of the paper (E-step), but that no share counts as less than 1e-4: see above.

  Args:
    losses: float[models, rows], negative log-likelihoods; a model whose loss is not finite explains nothing.
    shares: float64[models], of the client.
  """
  logs = np.log(np.maximum(shares, _LEAST))[:, None] - np.where(np.isfinite(losses), losses, np.inf)
  highest = logs.max(axis=0)
  logs = np.where(np.isfinite(highest), logs - np.where(np.isfinite(highest), highest, 0.0), 0.0)
  likely = np.exp(logs)
  return likely / likely.sum(axis=0)


def _settled(losses: np.ndarray) -> np.ndarray:
  """Returns float64[models], the shares of one client."""
  shares = np.full(len(losses), 1.0 / len(losses))
  for _ in range(_STEPS):
    before, shares = shares, responsibilities(losses, shares).mean(axis=1)
    if np.abs(shares - before).max() < _STILL:
      break
  return shares / shares.sum()
