"""CLoVE (Bhatia et al. 2026, "CLoVE: Personalized Federated Learning through Clustering of Loss Vector Embeddings", ICML).

In each round a client that takes part is sent all K models and sends back its K mean losses on training rows. The server runs
k-means on these vectors, matches the groups to the models one to one so that the total loss is least (Hungarian algorithm), and
each model is averaged over its group, weighted by rows, as in FedAvg. Unlike IFCA, clients that all like one model best do not
collapse into it. The paper's algorithm was not at hand: this follows its abstract, and the authors' released code (repository
Nokia-Bell-Labs/Loss-Vector-based-Clustered-Federated-Learning).

With choose_number the number of groups is chosen in each round, as that code does where K is unknown (for appendix E.1.4, it
says): of Ward's clusterings of the loss vectors into 2 to num_clusters groups the one with the best silhouette, where a
larger number must be better than the best so far by a tenth of its size. That the paper itself says so is unverified.

Departures: the best of fifty k-means++ starts, not of one; clustering goes on in every round, where that code can stop it when
assignments were the same for three rounds; newcomers, and clients that no cohort ever had, join the model with the least loss,
where that code takes the nearest centroid; the first round clusters losses too, where most of the published runs draw
it at random.

Settled here: a loss that is not finite counts as twice the largest finite one; a model under which no client of the cohort has a finite
loss gets no group; a cohort has at most as many groups as clients, and one below three where the number is chosen; a model without a
group stays as it is; where the start gives clusters, the first
round trains them before any is found.
"""

import dataclasses

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.base.arrays import one_hot
from tff_cluster.base.fields import option
from tff_cluster.clustering import alternating
from tff_cluster.clustering.alternating import Alternating, Federation, State
from tff_cluster.clustering.methods import kmeans

# A larger number of groups must be better than a smaller one by this share of its silhouette, which may be below 0.
_BETTER = 0.1


@dataclasses.dataclass(frozen=True)
class Options(alternating.Options):
  """The options of CLoVE."""

  choose_number: bool = option(
    False, 'Whether a silhouette chooses the number of groups in each round; num_clusters is then the most.'
  )


class CLoVE(Alternating[Options]):
  """Clients whose losses under all models are alike train one model."""

  name = 'clove'
  title = 'CLoVE'
  options_type = Options
  trains_given = True
  parts_cohorts = True
  revision = 2

  def told_number(self, options: Options) -> int | None:
    """Returns the number of clusters, where it is not chosen and the start does not give it."""
    return None if options.choose_number else super().told_number(options)

  def step(self, options: Options, federation: Federation, state: State, number: int) -> State:
    """Returns the state after a round: losses are clustered, groups matched to models, and these trained."""
    cohort = federation.cohort(number)
    if not state.given:
      told = federation.losses(state.weights, cohort)
      usable = np.isfinite(told).any(axis=1)
      usable |= ~usable.any()
      losses = _finite(told[usable])
      most = min(losses.shape)
      count = _chosen_number(losses, most) if options.choose_number else most
      seed = seeding.integer_seed(federation.seed, 'loss vectors', number)
      labels = np.flatnonzero(usable)[matched(losses, kmeans.fit(losses.T, count, seed)[0])]
      state = state.estimated(cohort, one_hot(labels, len(told)), number)
    return dataclasses.replace(state, models=federation.fed_avg(number, state.models, state.users(cohort)))


def matched(losses: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """Returns int64[clients], each client's model: groups have different ones, and the sum of the clients' losses is least.

  Args:
    losses: float64[models, clients], finite.
    labels: int[clients], their groups, at most as many as models.
  """
  from scipy import optimize

  groups, group = np.unique(labels, return_inverse=True)
  total = losses @ one_hot(group, len(groups)).T
  models, chosen = optimize.linear_sum_assignment(total)
  model_of = np.empty(len(groups), np.int64)
  model_of[chosen] = models
  return model_of[group]


def _chosen_number(losses: np.ndarray, most: int) -> int:
  """Returns the number of groups, from 2 to `most`, but 1 for fewer than three clients: silhouettes need a pair and another."""
  from sklearn import cluster, metrics

  vectors, found, best = losses.T, 1, 0.0
  for count in range(2, min(most, len(vectors) - 1) + 1):
    score = metrics.silhouette_score(vectors, cluster.AgglomerativeClustering(count).fit_predict(vectors))
    if count == 2 or score > best + _BETTER * abs(best):
      found, best = count, score
  return found


def _finite(losses: np.ndarray) -> np.ndarray:
  """Returns the losses, twice the largest finite one, or 1 where that is 0, in place of what is not finite."""
  fine = np.isfinite(losses)
  return np.where(fine, losses, 2.0 * losses[fine].max(initial=0.0) or 1.0)


METHOD = CLoVE()
