"""FedSoft (Ruan and Joe-Wong 2022, "FedSoft: Soft Clustered Federated Learning with Proximal Local Updating").

Every `estimation_interval` rounds a client's importance u_s of cluster s is the share of its training rows whose loss is least
under model s, at least 1e-4. In a round each cluster draws clients with probability proportional to u_s n; a client that any
cluster drew minimises F(w) + lambda / 2 sum_s u_s |w - c_s|^2, and each cluster's model becomes the plain mean of what the clients
that it drew return. Where all clients take part, none is drawn, and the mean is weighted by u_s n (as in the authors' code,
repository ycruan/FedSoft, read in November 2026).

Because the shares sum to 1, the pull to all models is the pull to their mixture sum_s u_s c_s: a proximal step (FedProx, Li et al.
2020) that starts there. Where a client makes one step a round, nothing is pulled: a note says so, and a strength that was
given is refused.

Departures: in the authors' code a client goes on from the model that it had in the round before. Here it starts from the mixture,
so that nobody keeps a model a client, and the clients' own models are these mixtures; the paper's personalized ones, which are what
clients trained last, are the rule of Phase 3 in aggregation/rules/fine_tuned.py. With C < 1 a cluster draws C m / K of the m
clients, rounded, at least one and no more than have a share in it; the paper has a number of its own. A client that several
clusters draw trains once. So at most K max(round(C m / K), 1) clients train, which can be more than FedAvg's C m where K exceeds
that or C m / K is rounded up.

Where clusters are given, the first round draws by their members too: clusters may start from the same model, and would draw the
same clients. A client is then sent the one mixture that it starts from, which the server can make; later all K models.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tff_cluster.base import digests, seeding
from tff_cluster.base.fields import option
from tff_cluster.clustering import trained
from tff_cluster.clustering.alternating import Alternating, Federation, State
from tff_cluster.clustering.alternating import Options as AlternatingOptions

_LEAST = 1e-4


@dataclasses.dataclass(frozen=True)
class Options(AlternatingOptions):
  """The options of FedSoft."""

  attraction: float = option(
    0.1, 'lambda, how strongly clients are pulled to the mixture of their models.', at_least=0.0
  )
  estimation_interval: int = option(1, 'Shares are estimated in every so many rounds (tau).', at_least=1)


class FedSoft(Alternating[Options]):
  """Every client has shares in the models, trains from their mixture, and feeds the models by its shares."""

  name = 'fedsoft'
  title = 'FedSoft'
  options_type = Options
  overlaps = True
  idle_in_one_step = ('attraction',)

  def revision_of(self, options: Options) -> int:
    """Returns the revision: rounds that start from clusters are drawn and counted in another way than at first."""
    return 1 + (options.start == 'clustering')

  def step(self, options: Options, federation: Federation, state: State, number: int) -> State:
    """Returns the state after a round."""
    everyone = np.arange(len(federation.client_ids))
    if not state.given and (number - federation.first_round - 1) % options.estimation_interval == 0:
      shares = self.assign(options, federation.row_losses(state.weights, everyone))
      state = state.estimated(everyone, shares, number)
    weights = self._weights(federation, state, number)
    clients = np.flatnonzero(weights.any(axis=0))
    shares = state.own[:, clients]
    made_of = None if state.given else state.weights
    sent = trained.train(federation, number, state.models, shares, clients, made_of, options.attraction)
    models = [
      sent.average(federation, [model], row[None, clients], row[clients])[0]
      for model, row in zip(state.models, weights, strict=True)
    ]
    return dataclasses.replace(state, models=tuple(models))

  def assign(self, options: Options, row_losses: Sequence[np.ndarray]) -> np.ndarray:
    """Returns float64[models, clients], the shares of rows that each model has the least loss of, at least 1e-4.

    A model under which no row of a client has a finite loss gets nothing of it, unless all are such.
    """
    # A model that diverged has no row's least loss.
    best = (np.argmin(np.where(np.isnan(rows), np.inf, rows), axis=0) for rows in row_losses)
    counted = [np.bincount(least, minlength=len(rows)) for least, rows in zip(best, row_losses, strict=True)]
    fine = np.stack([np.isfinite(rows).any(axis=1) for rows in row_losses], axis=1)
    fine |= ~fine.any(axis=0)
    shares = np.stack([np.maximum(count / count.sum(), _LEAST) for count in counted], axis=1) * fine
    return shares / shares.sum(axis=0)

  def _weights(self, federation: Federation, state: State, number: int) -> np.ndarray:
    """Returns float64[models, clients], what each client weighs in each mean; 0 for those that a model did not draw."""
    importance = state.own * federation.rows
    size = len(federation.cohort(number))
    if size == len(federation.rows):
      return importance
    size = max(round(size / len(importance)), 1)
    weights = np.zeros_like(importance)
    # Neither the order of the models nor that of the clients decides who is drawn.
    names = np.argsort(federation.client_ids)
    for row, (likely, model) in enumerate(zip(importance[:, names], state.weights, strict=True)):
      told = [*model, state.own[row, names]] if state.given else model
      generator = seeding.generator(federation.seed, 'clients of a model', digests.of_arrays(told), number)
      # Clusters that are given may have fewer clients.
      count = min(size, np.count_nonzero(likely))
      if not count:  # No client's row has a finite loss under the model, and nobody trains it.
        continue
      weights[row, generator.choice(names, count, replace=False, p=likely / likely.sum())] = 1.0
    return weights


METHOD = FedSoft()
