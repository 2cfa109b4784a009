"""Runs rounds: draws cohorts and visit orders, hands the clients' rows to TFF, and measures models."""

import collections
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_cluster.base import digests, environment, seeding
from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.types import Weights
from tff_cluster.data import class_counts
from tff_cluster.data import population as population_lib
from tff_cluster.engine import side_by_side
from tff_cluster.federated import client_work, process

# A gRPC message over 2 GB kills the worker; the rest is room for what travels beside the payload.
_MESSAGE_BYTES = 400_000_000
# Rows of one piece of the global test set: pieces run side by side.
_ROWS_AT_ONCE = 500
# Bytes that a model's users may take to have it each, instead of a call for each model.
_MODELS_AT_ONCE = 500_000
_MAX_COHORT_BYTES = 1_800_000_000
# TFF refuses to send a client's sequence above this.
_MAX_CLIENT_BYTES = 100 * 2**20 - 2**16

# What the server keeps from round to round: the model, and what aggregator and optimizer remember.
State: TypeAlias = tff.learning.templates.LearningAlgorithmState


class Trainer:
  """Trains and measures models of one population.

  Attributes:
    population: The clients.
    computations: What runs in the worker.
    local_epochs: Passes over its rows that a client makes in a round.
    cohort_fraction: Share of the members that train in a round.
    seed: Seed of cohorts and visit orders.
    spread: Whether the clients are spread over several workers (engine/several_machines.py), which add nothing up.
    slots: Clients that train or measure at the same time, whichever thread asks for them; default: one a core.
  """

  def __init__(
    self,
    population: population_lib.Population,
    computations: process.Computations,
    local_epochs: int,
    cohort_fraction: float,
    seed: int,
    spread: bool = False,
    slots: side_by_side.Slots | None = None,
  ):
    self.spread = spread
    self.slots = slots or side_by_side.Slots(environment.available_cores())
    self.population = population
    self.computations = computations
    self.local_epochs = local_epochs
    self.cohort_fraction = cohort_fraction
    self.seed = seed
    self._initial_state: State | None = None
    self._check_sizes()

  def start(self, weights: Weights) -> State:
    """Returns a learning process state with these model weights."""
    if self._initial_state is None:
      self._initial_state = self.computations.learning_process.initialize()
    return self.computations.learning_process.set_model_weights(
      self._initial_state, tff.learning.models.ModelWeights(tuple(weights), ())
    )

  def state_arrays(self, state: State) -> list[np.ndarray]:
    """Returns the whole state (weights, aggregator, finalizer) as a list of arrays."""
    return [np.asarray(leaf) for leaf in tf.nest.flatten(state)]

  def state_from_arrays(self, arrays: Sequence[np.ndarray]) -> State:
    """Returns the state that state_arrays took apart."""
    like = self.start(self.computations.model.weights)
    return tf.nest.pack_sequence_as(like, list(arrays))

  def weights(self, state: State) -> Weights:
    """Returns the model weights of a state."""
    return tuple(np.asarray(w) for w in state.global_model_weights.trainable)

  def cohort(self, members: np.ndarray, round_number: int) -> np.ndarray:
    """Returns int64[cohort], the members that train in a round, ascending.

    The draw depends on who the members are, not on what their cluster is called or who found it.

    Args:
      members: int64[members], positions of clients, ascending.
      round_number: From 1.
    """
    size = population_lib.cohort_size(self.cohort_fraction, len(members))
    if size == len(members):
      return members
    names = digests.of_json(sorted(self.population.client_ids[k] for k in members))
    generator = seeding.generator(self.seed, 'cohort', names, round_number)
    return np.sort(generator.choice(members, size, replace=False))

  def round(
    self, state: State, cohort: np.ndarray, round_number: int, may_diverge: bool = False
  ) -> tuple[State, dict[str, float]]:
    """Runs one round of FedAvg.

    Args:
      state: The state before the round.
      cohort: int64[cohort], positions of the clients that train.
      round_number: From 1; part of the seed of the visit orders.
      may_diverge: Whether the state stays as it is where no client's update is finite, which else is an error.

    Returns:
      The state after the round, and {'train_loss': mean cross-entropy over the rows visited, 'dropped':
      clients whose update was not finite and was left out}.
    """
    data = [tf.data.Dataset.from_tensors(self._training_data(int(k), round_number)) for k in cohort]
    with self.slots.taken(len(cohort)):
      if self.spread:
        results = self.computations.client_results(state.global_model_weights, data)
        output = self.computations.finish_round(state, results)
      else:
        output = self.computations.learning_process.next(state, data)
    work = output.metrics['client_work']
    if int(work['dropped']) == len(cohort):
      if may_diverge:
        return state, {'train_loss': float(work['loss']), 'dropped': len(cohort)}
      raise InputError(
        f'round {round_number}: training diverged on every client of the cohort (NaN or infinity); use a smaller '
        f'{argument("learning_rate")}'
      )
    return output.state, {'train_loss': float(work['loss']), 'dropped': int(work['dropped'])}

  def local_updates(
    self,
    weights: Weights,
    clients: Sequence[int] | np.ndarray,
    round_number: int,
    into: Callable[[int, np.ndarray], None],
  ) -> None:
    """Trains each client on its own from the same weights, and hands over what it would have sent.

    Args:
      weights: Where every client starts.
      clients: Positions of the clients.
      round_number: The round whose visit orders are used: after round n - 1 of a trajectory, round n
        gives exactly the updates that round n averages.
      into: Called with (position in `clients`, float32[features] update: trained minus start; NaN where training
        was not finite).
    """
    update_bytes = self.computations.model.num_bytes
    for chunk in _chunks([update_bytes + self._row_bytes(self.population.train, int(k)) for k in clients]):
      data = [self._training_data(int(clients[i]), round_number) for i in chunk]
      with self.slots.taken(len(chunk)):
        updates = self.computations.local_updates(list(weights), data)
      for i, update in zip(chunk, updates, strict=True):
        into(i, np.asarray(update))

  def local_sketches(
    self,
    weights: Weights,
    clients: Sequence[int] | np.ndarray,
    round_number: int,
    projection: tuple[np.ndarray, np.ndarray],
    dimension: int,
    into: Callable[[int, np.ndarray], None],
  ) -> None:
    """Like local_updates, but clients send a projection of their update, not the update.

    Args:
      weights, clients, round_number: See local_updates.
      projection: (buckets int32[features], signs int8[features]); feature f of an update is added, with
        sign signs[f], to entry buckets[f] of the sketch.
      dimension: Length of a sketch.
      into: Called with (position in `clients`, float32[dimension] sketch, not finite where training was not).
    """
    sent = collections.OrderedDict(
      buckets=projection[0].astype(np.int32),
      signs=projection[1].astype(np.int8),
      dimension=np.int32(dimension),
    )
    for chunk in _chunks([4 * dimension + self._row_bytes(self.population.train, int(k)) for k in clients]):
      data = [self._training_data(int(clients[i]), round_number) for i in chunk]
      with self.slots.taken(len(chunk)):
        sketches = self.computations.local_sketches(list(weights), sent, data)
      for i, sketch in zip(chunk, sketches, strict=True):
        into(i, np.asarray(sketch))

  def mean_update(
    self, weights: Weights, clients: Sequence[int] | np.ndarray, round_number: int
  ) -> np.ndarray:
    """Returns float32[features], the plain mean of the clients' local_updates, added up in the worker."""
    if self.spread:
      updates = np.empty((len(clients), self.computations.model.num_parameters), np.float32)
      self.local_updates(weights, clients, round_number, updates.__setitem__)
      return np.asarray(self.computations.mean(list(updates)))
    data = [self._training_data(int(k), round_number) for k in clients]
    with self.slots.taken(len(data)):
      return np.asarray(self.computations.mean_update(list(weights), data))

  def measure(
    self, weights: Weights, split: population_lib.Split, clients: Sequence[int] | np.ndarray
  ) -> class_counts.Scores:
    """Measures one model on the rows of some clients.

    Returns:
      Scores, one row a client of `clients`.
    """
    return self.measure_splits(weights, [split], clients)[0]

  def measure_splits(
    self, weights: Weights, splits: Sequence[population_lib.Split], clients: Sequence[int] | np.ndarray
  ) -> list[class_counts.Scores]:
    """Measures one model on several splits of some clients; the model is sent once.

    Returns:
      Scores for each split, one row a client of `clients`.
    """
    pieces = [(split, int(k)) for split in splits for k in clients]
    counts, losses = [], []
    for chunk in _chunks([self._row_bytes(*piece) for piece in pieces]):
      data = [_rows(*pieces[i][0].client(pieces[i][1])) for i in chunk]
      with self.slots.taken(len(chunk)):
        found = self.computations.evaluate(list(weights), data)
      for result in found:
        counts.append(np.asarray(result['counts'], np.int64))
        losses.append(float(result['loss_sum']))
    step = len(clients)
    return [
      class_counts.Scores(np.stack(counts[first : first + step]), np.array(losses[first : first + step]))
      for first in range(0, len(pieces), step)
    ]

  def measure_each(
    self, models: Sequence[Weights], split: population_lib.Split, users: Sequence[np.ndarray]
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
    if len(models) > 1 and size * total > _MODELS_AT_ONCE * len(models):
      found = [self.measure(weights, split, clients) for weights, clients in zip(models, users, strict=True)]
      return class_counts.concatenate(found)
    # Many small models with few users each: calls would take longer than what is computed.
    pairs = [(model, int(k)) for model, clients in enumerate(users) for k in clients]
    counts, losses = [], []
    for chunk in _chunks([size + self._row_bytes(split, client) for _, client in pairs]):
      given = [pairs[i] for i in chunk]
      sent = [collections.OrderedDict(weights=list(models[m]), **_rows(*split.client(k))) for m, k in given]
      with self.slots.taken(len(chunk)):
        measured = self.computations.evaluate_each(sent)
      for result in measured:
        counts.append(np.asarray(result['counts'], np.int64))
        losses.append(float(result['loss_sum']))
    return class_counts.Scores(np.stack(counts), np.array(losses))

  def measure_global(self, weights: Weights) -> class_counts.Scores:
    """Measures one model on the global test set, sent in pieces so that they run side by side."""
    x, y = self.population.global_test_x, self.population.global_test_y
    offsets = np.append(np.arange(0, len(y), _ROWS_AT_ONCE), len(y)).astype(np.int64)
    pieces = self.measure(weights, population_lib.Split(x, y, offsets), range(len(offsets) - 1))
    return class_counts.Scores(pieces.counts.sum(axis=0, keepdims=True), pieces.loss_sum.sum(keepdims=True))

  def predict(self, weights: Weights, x: np.ndarray) -> np.ndarray:
    """Returns one model's probabilities for rows x [rows, ...], float32[rows, classes]."""
    pieces = np.split(x, range(_ROWS_AT_ONCE, len(x), _ROWS_AT_ONCE))
    found = []
    for chunk in _chunks([piece.nbytes for piece in pieces]):
      with self.slots.taken(len(chunk)):
        found += self.computations.predict(list(weights), [pieces[i] for i in chunk])
    return np.concatenate([np.asarray(piece) for piece in found])

  def _training_data(self, client: int, round_number: int) -> client_work.ClientData:
    x, y = self.population.train.client(client)
    generator = seeding.generator(self.seed, 'visit order', round_number, self.population.client_ids[client])
    order = np.stack([generator.permutation(len(y)) for _ in range(self.local_epochs)])
    scale = np.asarray(self.population.update_scale(client))
    return collections.OrderedDict(x=x, y=y, order=order.astype(np.int32), scale=scale)

  def _check_sizes(self) -> None:
    sizes = np.array([self._row_bytes(self.population.train, k) for k in range(self.population.num_clients)])
    sizes += self.population.train.counts * 4 * self.local_epochs
    largest = int(np.argmax(sizes))
    if sizes[largest] > _MAX_CLIENT_BYTES:
      raise InputError(
        f'client {self.population.client_ids[largest]} has {sizes[largest] / 1e6:.0f} MB of training rows, TFF sends at '
        f'most {_MAX_CLIENT_BYTES / 1e6:.0f} MB a client; use more clients or {argument("rows_per_client")}'
      )
    members = population_lib.cohort_size(self.cohort_fraction, len(sizes))
    sent = members * self.computations.model.num_bytes
    if self.spread and sent > _MAX_COHORT_BYTES:
      raise InputError(
        f'{argument("workers")}: a cohort sends {sent / 1e9:.1f} GB of updates, which one worker adds up and TFF sends at most '
        f'{_MAX_COHORT_BYTES / 1e9:.1f} GB of; use a smaller {argument("cohort_fraction")}, or one worker'
      )
    cohort = int(np.sort(sizes)[::-1][:members].sum())
    if cohort > _MAX_COHORT_BYTES:
      raise InputError(
        f'a cohort can hold {cohort / 1e9:.1f} GB of training rows, TFF sends at most {_MAX_COHORT_BYTES / 1e9:.1f} GB '
        f'a round; use a smaller {argument("cohort_fraction")}'
      )

  def _row_bytes(self, split: population_lib.Split, client: int) -> int:
    return int(split.counts[client]) * (split.x[:1].nbytes + 4)


def _chunks(sizes: Sequence[int]) -> Iterator[list[int]]:
  """Yields runs of positions whose messages stay below the limit.

  Args:
    sizes: Bytes that each position adds to a message.
  """
  chunk: list[int] = []
  total = 0
  for position, size in enumerate(sizes):
    if chunk and total + size > _MESSAGE_BYTES:
      yield chunk
      chunk, total = [], 0
    chunk.append(position)
    total += size
  if chunk:
    yield chunk


def _rows(x: np.ndarray, y: np.ndarray) -> collections.OrderedDict[str, np.ndarray]:
  return collections.OrderedDict(x=x, y=y)
