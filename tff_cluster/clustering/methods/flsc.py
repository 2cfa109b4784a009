"""FLSC (Li, Li and Varshney 2021, "Federated Learning with Soft Clustering", IEEE Internet of Things Journal).

IFCA whose clusters overlap: in each round a client that takes part is sent all K models, joins the n of them with the least
loss on its training rows, trains from the mean of their weights, and what it trained to goes into the mean of each of them.

The paper's algorithm was not at hand: this follows its abstract and a public version by others. That one has clients train
from the models that they joined in the round before, the first time n random ones; here they join first, as in IFCA. It takes
plain means, as here.

Settled here: each of a client's n models has a share of 1/n in it, and its own model is their mean, from which it would train;
clients make that mean themselves, so no further model is sent; of equal losses the first models' count; a model that no client
joined stays as it is; an update that is not finite is left out, and so is a model whose loss is not, where a client has another; where the start gives clusters, the first round trains them before any
client joins others, from a mean that the server sends. The mean goes through the server's aggregator and optimizer, as an
update of each model.
"""

import dataclasses

import numpy as np

from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.fields import option
from tff_cluster.clustering import alternating, trained
from tff_cluster.clustering.alternating import Alternating, Federation, State


@dataclasses.dataclass(frozen=True)
class Options(alternating.Options):
  """The options of FLSC."""

  num_joined: int = option(2, 'How many models n a client joins, at most num_clusters.', at_least=1)


class FLSC(Alternating[Options]):
  """Each client trains the mean of the models that fit its training rows best, and feeds all of them."""

  name = 'flsc'
  title = 'FLSC'
  options_type = Options
  overlaps = True
  revision = 1

  def check(self, options: Options) -> None:
    """Raises InputError where clients would join more models than there are."""
    super().check(options)
    if options.start != 'clustering' and options.num_joined > options.num_clusters:
      raise InputError(
        f'{argument("num_joined", options.num_joined)}: must be at most {argument("num_clusters", options.num_clusters)}'
      )

  def step(self, options: Options, federation: Federation, state: State, number: int) -> State:
    """Returns the state after a round: clients join models by loss, train their mean, and each is averaged over who joined."""
    cohort = federation.cohort(number)
    made_of = None if state.given else state.weights
    if not state.given:
      losses = federation.losses(state.weights, cohort)
      state = state.estimated(cohort, self.estimate(options, losses), number)
    shares = state.membership[:, cohort]
    sent = trained.train(federation, number, state.models, shares, cohort, made_of)
    models = sent.average(federation, state.models, shares, np.ones(len(cohort)))
    return dataclasses.replace(state, models=models)

  def estimate(self, options: Options, losses: np.ndarray) -> np.ndarray:
    """Returns float64[models, clients], 1/n in each of the n models with the least losses; all of them, if they are fewer.

    Of those only the models whose loss is finite count, unless none is.
    """
    joined = np.argsort(losses, axis=0, kind='stable')[: options.num_joined]
    fine = np.isfinite(np.take_along_axis(losses, joined, axis=0))
    fine |= ~fine.any(axis=0)
    shares = np.zeros(losses.shape)
    np.put_along_axis(shares, joined, fine / fine.sum(axis=0), axis=0)
    return shares


METHOD = FLSC()
