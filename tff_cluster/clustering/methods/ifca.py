"""The Iterative Federated Clustering Algorithm, IFCA (Ghosh et al. 2020, "An Efficient Framework for Clustered Federated Learning").

Algorithm 1, option "model averaging": in each round a client that takes part is sent all K models, finds the one with the least
loss on its training rows, trains it, and the server takes the plain mean of what the clients of a model return.

Settled here: a model that no client chose stays as it is; of equal losses the first model's counts; where the start gives
clusters, the first round trains them before any client chooses. Departure: clients train in mini-batches, as everywhere in this
suite, and not with full gradients.
"""

import dataclasses

from tff_cluster.clustering.alternating import Alternating, Federation, Options, State


class IFCA(Alternating[Options]):
  """Each client trains the model that fits its training rows best."""

  name = 'ifca'
  title = 'IFCA'
  options_type = Options
  trains_given = True
  equal = True

  def step(self, options: Options, federation: Federation, state: State, number: int) -> State:
    """Returns the state after a round: clients choose by loss, and each model is averaged over those that chose it."""
    cohort = federation.cohort(number)
    if not state.given:
      losses = federation.losses(state.weights, cohort)
      state = state.estimated(cohort, self.estimate(options, losses), number)
    models = federation.fed_avg(number, state.models, state.users(cohort), self.equal)
    return dataclasses.replace(state, models=models)


METHOD = IFCA()
