"""FeSEM (Xie et al. 2020, "Multi-Center Federated Learning", arXiv 2005.01026; Long et al. 2023, World Wide Web 26).

The distance-based loss sum_k sum_i r_ik norm(w_i - c_k)^2 is brought down by turns: a client that was drawn trains from the
centre of its cluster, and sends w_i; the server assigns it to the nearest centre (E-step), and moves each centre to the plain
mean of the w_i that it got (M-step); the next round goes on from there. With the clients' vectors this is a step of Lloyd's
iteration. The papers' equations and algorithms were not at hand: what stands here follows their abstracts and public code.

What is clustered is the whole model, all weights flattened. A public version by the authors of WeCFL (FedBase) clusters the
last layer's kernel only, and runs k-means anew in each round.

Settled here:

* While nothing is known of anybody, all clients train from the first model, which is every cluster's centre then, and k-means
  (scikit-learn, seeded, fifty k-means++ starts) over what they send makes the clusters. So does FedBase. Nearest of K unrelated
  initial models, as another public version has it (FlexCFL), would be the one that a client started from. So of the models of
  start=random and start=warm only the first is used, which has no noise: a `start_noise` that is given is refused.
* A client of which nothing is known in a later round trains from the mean of the models, each weighted by those who have it.
* A client's vector is not kept: who is not drawn has no part in the means, and stays in its cluster.
* What is not finite is left out, and its client stays where it was. Of equally near centres the first counts. A cluster that
  nobody is assigned to keeps its centre.
* Where the start gives clusters, the first round trains them and moves their centres before any client is assigned.
* The mean goes through the server's aggregator and optimizer, as the update of the centre.

Departure: clients that no cohort ever had, and newcomers, send no weights. They join the model with the least loss on their
training rows.
"""

import dataclasses

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.base.arrays import one_hot
from tff_cluster.base.errors import InputError, argument
from tff_cluster.clustering import trained
from tff_cluster.clustering.alternating import Alternating, Federation, Options, State
from tff_cluster.clustering.methods import kmeans


class FeSEM(Alternating[Options]):
  """Each client belongs to the model that is nearest to what it trained to; all clients weigh the same."""

  name = 'fesem'
  title = 'FeSEM'
  options_type = Options
  parts_cohorts = True
  revision = 1
  equal = True

  def check(self, options: Options) -> None:
    """Raises InputError where noise is given for models of which none but the first is used."""
    super().check(options)
    if options.start_noise != Options.start_noise:
      raise InputError(
        f'{argument("start_noise", options.start_noise)} has no effect on {self.name}, whose clients all start from the first '
        'model, which has no noise; leave it out'
      )

  def step(self, options: Options, federation: Federation, state: State, number: int) -> State:
    """Returns the state after a round: clients train from their centres, are assigned, and move the centres."""
    cohort = federation.cohort(number)
    rows = np.ones(len(cohort)) if self.equal else federation.rows[cohort].astype(np.float64)
    first = not state.membership.any()
    models = state.models[:1] * len(state.models) if first else state.models
    sent = trained.train(federation, number, models, _shares(state)[:, cohort], cohort)
    some = np.flatnonzero(sent.finite)
    if len(some) and not state.given:
      weights = [model.weights for model in models]
      labels = (
        _groups(sent.minus(weights[0], some), len(models), rows[some], federation.seed, number)
        if first
        else np.argmin(sent.distances(weights)[:, some], axis=0)
      )
      state = state.estimated(cohort[some], one_hot(labels, len(models)), number)
    models = sent.average(federation, models, state.membership[:, cohort], rows)
    return dataclasses.replace(state, models=models)


def _shares(state: State) -> np.ndarray:
  """Returns float64[models, clients], columns sum to 1: of which models the mean is that a client trains from."""
  known = state.membership.any(axis=0)
  if not known.any():
    return one_hot(np.zeros(len(known)), len(state.models))
  usual = state.membership[:, known].mean(axis=1, keepdims=True)
  return np.where(known, state.membership, usual)


def _groups(vectors: np.ndarray, count: int, rows: np.ndarray, seed: int, number: int) -> np.ndarray:
  """Returns int64[clients], the clusters that k-means finds, at most `count`, in order of their first members."""
  from tff_cluster.clustering.signatures import (
    Signatures,
  )  # It imports SciPy, and every help page this module.

  count = min(count, len(vectors))
  seed = seeding.integer_seed(seed, 'first centers', count, number)
  return kmeans.fit(Signatures.numbered(vectors).coordinates(), count, seed, rows)[0]


METHOD = FeSEM()
