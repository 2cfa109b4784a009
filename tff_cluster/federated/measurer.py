"""Measures models on clients' rows and on the global test set."""

import functools
from collections.abc import Sequence

import numpy as np

from tff_cluster.base import digests, environment
from tff_cluster.base.cost import Cost
from tff_cluster.base.types import Weights
from tff_cluster.data import class_counts
from tff_cluster.data import population as population_lib
from tff_cluster.engine import jobs as jobs_lib
from tff_cluster.engine import side_by_side
from tff_cluster.federated import tff_computations

# Rows of one piece of the global test set: pieces run side by side.
_ROWS_AT_ONCE = 500
# Bytes that a model's users may take to have it each, instead of a call for each model.
_MODELS_AT_ONCE = 1_000_000


class Measurer:
  """Measures models of one population.

  Attributes:
    population: The clients.
    computations: What runs in the worker.
    workers: Who has the clients work; default: the worker of this machine, a client a core at the same time.
  """

  def __init__(
    self,
    population: population_lib.Population,
    computations: tff_computations.Computations,
    workers: jobs_lib.Workers | None = None,
  ):
    self.workers = workers or jobs_lib.OneMachine(side_by_side.Slots(environment.available_cores()))
    self.population = population
    self.computations = computations

  def cost_of_measuring(self, split: population_lib.ClientRows, clients: np.ndarray, models: int = 1) -> Cost:
    """Returns what it costs that each of int64[clients] receives models and puts its rows of a split through each."""
    sent = models * len(clients)
    return Cost(
      models_down=sent,
      bytes_down=sent * self.computations.model.num_bytes,
      rows_forward=models * int(split.counts[clients].sum()),
    )

  def row_losses(
    self, models: Sequence[Weights], split: population_lib.ClientRows, clients: Sequence[int] | np.ndarray
  ) -> list[np.ndarray]:
    """Returns float32[models, rows] for each client, the cross-entropy of each of its rows under each model.

    All models travel together, as many as fit into a message.
    """
    sizes, parts = [self.computations.model.num_bytes] * len(models), []
    for some in jobs_lib.portions(sizes):
      stacked = [np.stack(arrays) for arrays in zip(*(models[k] for k in some), strict=True)]
      jobs = [self._measured(split, int(k)) for k in clients]
      parts.append(list(self.workers.each(self.computations.row_losses, [stacked], jobs)))
    return [np.concatenate([np.asarray(part) for part in each]) for each in zip(*parts, strict=True)]

  def measure(
    self, weights: Weights, split: population_lib.ClientRows, clients: Sequence[int] | np.ndarray
  ) -> class_counts.Scores:
    """Measures one model on the rows of some clients.

    Returns:
      Scores, one row a client of `clients`.
    """
    return self.measure_splits(weights, [split], clients)[0]

  def measure_splits(
    self, weights: Weights, splits: Sequence[population_lib.ClientRows], clients: Sequence[int] | np.ndarray
  ) -> list[class_counts.Scores]:
    """Measures one model on several splits of some clients; the model is sent once, and clients with the same rows are measured once.

    Returns:
      Scores for each split, one row a client of `clients`.
    """
    pairs = [(number, split.alike(int(k))) for number, split in enumerate(splits) for k in clients]
    few = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
    jobs = [self._measured(splits[number], k) for number, k in few]
    found = list(self.workers.each(self.computations.evaluate, [list(weights)], jobs))
    every, step = [found[few[pair]] for pair in pairs], len(clients)
    return [_scores(every[first : first + step]) for first in range(0, len(pairs), step)]

  def measure_each(
    self, models: Sequence[Weights], split: population_lib.ClientRows, users: Sequence[np.ndarray]
  ) -> class_counts.Scores:
    """Measures every model on the rows of the clients that use it.

    Args:
      models: The models.
      split: The rows.
      users: int64[users] of each model, positions of clients.

    Returns:
      Scores, one row a user, model after model.
    """
    size, total = self.computations.model.num_bytes, sum(map(len, users))
    if len(models) == 1 or size * total > _MODELS_AT_ONCE * len(models):
      found = [self.measure(weights, split, clients) for weights, clients in zip(models, users, strict=True)]
      return class_counts.concatenate(found)
    # Many small models with few users each: calls would take longer than what is computed.
    pairs = [(model, split.alike(int(k))) for model, clients in enumerate(users) for k in clients]
    few = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
    jobs = [self._measured(split, client, models[model]) for model, client in few]
    found = list(self.workers.each(self.computations.evaluate_each, [], jobs, size))
    return _scores([found[few[pair]] for pair in pairs])

  def measure_global(self, weights: Weights) -> class_counts.Scores:
    """Measures one model on the global test set, sent in pieces so that they run side by side."""
    pieces = self.measure(weights, self._global_pieces, range(len(self._global_pieces.counts)))
    return class_counts.Scores(pieces.counts.sum(axis=0, keepdims=True), pieces.loss_sum.sum(keepdims=True))

  def predict(self, weights: Weights, x: np.ndarray) -> np.ndarray:
    """Returns one model's probabilities for rows x [rows, ...], float32[rows, classes]."""
    pieces = np.split(x, range(_ROWS_AT_ONCE, len(x), _ROWS_AT_ONCE))
    # Models are asked for the same rows, one after the other: a worker of a cluster keeps them.
    names = (functools.cache(functools.partial(digests.of_arrays, [piece])) for piece in pieces)
    jobs = [jobs_lib.Job({'x': piece}, key=name) for piece, name in zip(pieces, names, strict=True)]
    result_bytes = 4 * self.population.num_classes * min(len(x), _ROWS_AT_ONCE)
    found = self.workers.each(self.computations.predict, [list(weights)], jobs, result_bytes)
    return np.concatenate([np.asarray(piece) for piece in found])

  def _measured(
    self, split: population_lib.ClientRows, client: int, model: Weights | None = None
  ) -> jobs_lib.Job:
    """Returns a client with its rows of a split, and with a model of its own where it brings one."""
    x, y = split.client(client)
    beside = {} if model is None else {'weights': list(model)}
    return jobs_lib.Job({'x': x, 'y': y}, beside, functools.partial(split.digest, client))

  @functools.cached_property
  def _global_pieces(self) -> population_lib.Split:
    """The global test set, its pieces in place of clients."""
    x, y = self.population.global_test_x, self.population.global_test_y
    return population_lib.Split(x, y, np.append(np.arange(0, len(y), _ROWS_AT_ONCE), len(y)).astype(np.int64))


def _scores(found: Sequence[jobs_lib.Result]) -> class_counts.Scores:
  """Returns what `evaluate` gave for each of some clients, a row a client."""
  counts = [np.asarray(result['counts'], np.int64) for result in found]
  return class_counts.Scores(np.stack(counts), np.array([float(result['loss_sum']) for result in found]))
