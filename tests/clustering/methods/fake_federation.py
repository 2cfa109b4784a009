"""Clients with quadratic losses as a clustering.alternating.Federation, in NumPy: a client's local work goes towards its target."""

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.base.arrays import one_hot
from tff_cluster.clustering.alternating import Model, State

SHAPES = ((2, 3), (3,))
FEATURES = 9
# How far of the way to its target a client comes in a round.
RATE = 0.4


def weights_of(vector):
  """Returns a model of two float32 arrays."""
  vector = np.asarray(vector, np.float32)
  return vector[:6].reshape(SHAPES[0]), vector[6:]


def vector_of(weights):
  """Returns float64[features]."""
  return np.concatenate([np.ravel(array) for array in weights]).astype(np.float64)


def models_of(vectors):
  """Returns a model for each vector."""
  return tuple(Model(weights_of(vector)) for vector in vectors)


def state_of(vectors, labels=None, clients=0):
  """Returns a state of these models, and memberships if labels of clients are given."""
  count = len(vectors)
  membership = np.zeros((count, clients)) if labels is None else one_hot(np.asarray(labels), count)
  return State(models_of(vectors), membership, np.zeros(membership.shape[1], np.int64))


class Fake:
  """Client k has the loss norm(w - targets[k])^2 / 2.

  Attributes:
    targets: float64[clients, features].
    drawn: What share of the clients takes part in a round.
    diverging: Ids of clients whose updates are NaN.
    starts: What clients started from, a list of float64[features] for each call of `updates`.
    known: Whether they made that themselves, for each call.
    proximal_mu: What pulled them there, for each call.
  """

  first_round = 0

  def __init__(self, targets, rows=None, drawn=1.0, diverging=(), seed=0, client_ids=None):
    self.targets = np.asarray(targets, np.float64)
    count = len(self.targets)
    self.client_ids = tuple(client_ids or (f'c{k:02}' for k in range(count)))
    self.rows = np.full(count, 10) if rows is None else np.asarray(rows)
    self.drawn, self.diverging, self.seed = drawn, diverging, seed
    self.starts, self.known, self.proximal_mu = [], [], []

  def permuted(self, order):
    """Returns the same clients in another order."""
    ids = [self.client_ids[k] for k in order]
    return Fake(self.targets[order], self.rows[order], self.drawn, self.diverging, self.seed, ids)

  def cohort(self, number):
    names = sorted(self.client_ids)
    size = round(self.drawn * len(names))
    some = seeding.generator(self.seed, 'cohort', number).choice(names, size, replace=False)
    return np.flatnonzero(np.isin(self.client_ids, some))

  def losses(self, models, clients):
    vectors = np.stack([vector_of(model) for model in models])
    return np.square(vectors[:, None] - self.targets[clients]).sum(axis=2) / 2

  def row_losses(self, models, clients):
    """Five rows a client, whose targets are around that of the client; their mean is `losses` but for a constant."""
    vectors, found = np.stack([vector_of(model) for model in models]), []
    for k in clients:
      offsets = seeding.generator(self.seed, 'rows', self.client_ids[k]).normal(size=(5, FEATURES))
      rows = self.targets[k] + offsets - offsets.mean(axis=0)
      found.append(np.square(vectors[:, None] - rows).sum(axis=2) / 2)
    return found

  def update(self, number, start, client):
    """Returns float32[features], what one client's weights become minus where it started."""
    name = self.client_ids[client]
    noise = seeding.generator(self.seed, 'noise', number, name).normal(scale=0.01, size=FEATURES)
    update = RATE * (self.targets[client] + noise - vector_of(start))
    return (update * (np.nan if name in self.diverging else 1.0)).astype(np.float32)

  def updates(self, number, starts, users, made_of=None, proximal_mu=0.0):
    self.starts.append([vector_of(start) for start in starts])
    self.known.append(made_of is not None)
    self.proximal_mu.append(proximal_mu)
    return [
      np.array([self.update(number, start, k) for k in clients], np.float32).reshape(-1, FEATURES)
      for start, clients in zip(starts, users, strict=True)
    ]

  def average(self, model, updates, weights):
    fine = np.isfinite(updates).all(axis=1)
    if not fine.any():
      return model
    mean = np.average(updates[fine].astype(np.float64), axis=0, weights=weights[fine])
    return Model(weights_of(vector_of(model.weights) + mean))

  def fed_avg(self, number, models, users, equal=False, row_weights=None):
    sent = self.updates(number, [model.weights for model in models], users)
    if row_weights is not None:  # A client whose rows weigh less goes less far.
      shares = [np.array([np.mean(row) for row in rows])[:, None] for rows in row_weights]
      sent = [update * share for update, share in zip(sent, shares, strict=True)]
    weights = [np.ones(len(clients)) if equal else self.rows[clients] for clients in users]
    return tuple(map(self.average, models, sent, weights))


def groups(seed, count, members, spread=0.1):
  """Returns float64[clients, features], targets around `count` centers, and the truth."""
  rng = np.random.default_rng(seed)
  truth = np.tile(np.arange(count), members)
  return rng.normal(size=(count, FEATURES))[truth] + spread * rng.normal(size=(len(truth), FEATURES)), truth
