"""What clients of a round trained to, each from a mean of the models, and what that is to any other model.

For methods whose server looks at the clients' weights, or averages what a client trained into several models.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tff_cluster.base.types import Weights
from tff_cluster.clustering.alternating import Federation, Model


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
  """Clients after their local work.

  Attributes:
    clients: int64[clients], their positions.
    starts: float32[starts, features], where they started.
    start_of: int64[clients], who started where.
    updates: A client's float32[features] each: its weights minus its start; NaN where training was not finite.
  """

  clients: np.ndarray
  starts: np.ndarray
  start_of: np.ndarray
  updates: Sequence[np.ndarray]

  @property
  def finite(self) -> np.ndarray:
    """bool[clients], whose weights are finite."""
    return np.array([bool(np.isfinite(update).all()) for update in self.updates], bool)

  def minus(self, model: Weights, places: np.ndarray) -> np.ndarray:
    """Returns float32[places, features], clients' weights minus a model; their updates to the bit where they started from it."""
    found, flat = np.empty((len(places), self.starts.shape[1]), np.float32), flatten(model)
    for row, place in enumerate(places):
      found[row] = self.updates[place] + (self.starts[self.start_of[place]].astype(np.float64) - flat)
    return found

  def distances(self, models: Sequence[Weights]) -> np.ndarray:
    """Returns float64[models, clients], squared Euclidean distances of the clients' weights; NaN where they are not finite."""
    found = np.empty((len(models), len(self.clients)))
    for k, model in enumerate(models):
      offsets = self.starts.astype(np.float64) - flatten(model)
      for place, update in enumerate(self.updates):
        found[k, place] = np.square(update + offsets[self.start_of[place]]).sum()
    return found

  def average(
    self, federation: Federation, models: Sequence[Model], membership: np.ndarray, weights: np.ndarray
  ) -> tuple[Model, ...]:
    """Returns each model after the server's part of a round; one that nobody has a share in stays as it is.

    Args:
      federation: The clients.
      models: The models before.
      membership: float64[models, clients]; who has a share in a model is averaged into it.
      weights: float64[clients], what each client weighs in a mean.
    """
    found = []
    for model, row in zip(models, membership, strict=True):
      users = np.flatnonzero(row > 0.0)
      if len(users):
        model = federation.average(model, self.minus(model.weights, users), weights[users])
      found.append(model)
    return tuple(found)


def train(
  federation: Federation,
  number: int,
  models: Sequence[Model],
  shares: np.ndarray,
  clients: np.ndarray,
  made_of: Sequence[Weights] | None = None,
  proximal_mu: float = 0.0,
) -> Trained:
  """Has clients train, each from the mean of the models, weighted by its shares.

  Args:
    federation: The clients.
    number: The round.
    models: The models.
    shares: float64[models, clients], columns sum to 1.
    clients: int64[clients], their positions, ascending.
    made_of, proximal_mu: See Federation.updates.
  """
  columns, start_of = np.unique(shares, axis=1, return_inverse=True)
  start_of = start_of.reshape(-1)
  weights = [model.weights for model in models]
  starts = [mean(weights, column) for column in columns.T]
  places = [np.flatnonzero(start_of == start) for start in range(len(starts))]
  users = [clients[some] for some in places]
  sent = federation.updates(number, starts, users, made_of, proximal_mu)
  updates = {
    int(k): row for some, rows in zip(places, sent, strict=True) for k, row in zip(some, rows, strict=True)
  }
  return Trained(
    clients, np.stack([flatten(start) for start in starts]), start_of, [updates[k] for k in sorted(updates)]
  )


def mean(models: Sequence[Weights], shares: np.ndarray) -> Weights:
  """Returns the mean of models, float32, weighted by shares that sum to 1; a model that has all of it is given back as it is."""
  used = np.flatnonzero(shares)
  if len(used) == 1:
    return models[used[0]]
  total = [np.zeros(array.shape) for array in models[0]]
  for k in used:
    total = [array + shares[k] * added for array, added in zip(total, models[k], strict=True)]
  return tuple(array.astype(np.float32) for array in total)


def flatten(weights: Weights) -> np.ndarray:
  """Returns float32[features], a model's arrays one after the other."""
  return np.concatenate([np.ravel(array) for array in weights])
