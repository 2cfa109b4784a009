"""Runs rounds: draws cohorts and visit orders, and hands the clients' rows to TFF."""

import collections
import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_cluster.base import digests, seeding
from tff_cluster.base.arrays import distance
from tff_cluster.base.cost import Cost
from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.types import Weights
from tff_cluster.data import population as population_lib
from tff_cluster.engine import jobs as jobs_lib
from tff_cluster.federated import chunked_sum, client_work, measurer, message_sizes, tff_computations

# What the server keeps from round to round: the model, and what aggregator and optimizer remember.
State: TypeAlias = tff.learning.templates.LearningAlgorithmState
# mu of a penalty mu / 2 * |w - anchor|^2, and that anchor.
Pull: TypeAlias = tuple[float, Weights]
_Output: TypeAlias = tff.learning.templates.LearningProcessOutput
# So many clients without a finite update tell of the training, and not of these clients.
_TELLING = 5
# Most that the models of a round and their clients may take in the worker for all to be one call; beyond it a call is cheap beside them.
_JOINED_BYTES = 200_000_000


class Trainer(measurer.Measurer):
  """Trains and measures models of one population.

  Attributes, beside those of Measurer:
    local_epochs: Passes over its rows that a client makes in a round.
    cohort_fraction: Share of the members that train in a round.
    seed: Seed of cohorts, visit orders and dropout.
    sends: Whether clients send what they train, so that malicious ones alter it (data/malicious.py).
  """

  def __init__(
    self,
    population: population_lib.Population,
    computations: tff_computations.Computations,
    local_epochs: int,
    cohort_fraction: float,
    seed: int,
    workers: jobs_lib.Workers | None = None,
  ):
    super().__init__(population, computations, workers)
    self.local_epochs = local_epochs
    self.cohort_fraction = cohort_fraction
    self.seed = seed
    self.sends = True
    self._initial_state: State | None = None
    message_sizes.check(population, cohort_fraction, local_epochs)

  @functools.cached_property
  def alone(self) -> 'Trainer':
    """This trainer for clients that train for themselves: what they train goes to no server, and nobody alters it."""
    other = copy.copy(self)
    other.computations, other.sends, other._initial_state = self.computations.alone, False, None
    return other

  def start(self, weights: Weights) -> State:
    """Returns a learning process state with these model weights."""
    if self._initial_state is None:
      self._initial_state = self.computations.initialize()
    # Put in here: no call of the worker is needed for it.
    return _with_weights(self._initial_state, weights)

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

  def cost(self, clients: np.ndarray) -> Cost:
    """Returns what it costs that each of int64[clients] receives a model, trains it for a round and sends what it became."""
    count, size = len(clients), self.computations.model.num_bytes
    rows = self.local_epochs * int(self.population.train.counts[clients].sum())
    return Cost(count, count, count, count * size, count * size, rows)

  def cost_of_rounds(self, members: np.ndarray, rounds: Iterable[int]) -> Cost:
    """Returns what rounds of FedAvg of int64[members] cost."""
    return sum((self.cost(self.cohort(members, number)) for number in rounds), Cost())

  def round(
    self,
    state: State,
    cohort: np.ndarray,
    round_number: int,
    equal: bool = False,
    row_weights: Sequence[np.ndarray] | None = None,
    pull: Pull | None = None,
  ) -> tuple[State, dict[str, float]]:
    """Runs one round of FedAvg.

    Args:
      state: The state before the round.
      cohort: int64[cohort], positions of the clients that train.
      round_number: From 1; part of the seed of visit orders and dropout, and what the learning rate decays by.
      equal: Whether all clients weigh the same; else each by its number of rows (McMahan et al. 2017).
      row_weights: float[rows] of each client of the cohort, which the losses of its rows are multiplied with; None: 1.
      pull: What clients are pulled to, in place of what the computations pull them to.

    Returns:
      The state after the round, the one before it where no client's update is finite, and {'train_loss': mean cross-entropy over the rows visited, 'visited': how many these were, without
      those of clients that were left out, 'dropped': clients whose update was not finite and was left out, 'update_norm':
      Euclidean norm of the weighted mean update}.
    """
    strength, anchor = (None, None) if pull is None else pull
    jobs = self._training(cohort, round_number, equal, row_weights, anchor)
    computations = self.computations.varied(strength, row_weights is not None, anchor is not None)
    run = self._round_apart if self.workers.apart else self._round_in_one_call
    output = run(computations, state, jobs)
    work = output.metrics['client_work']
    figures = {
      'train_loss': float(work['loss']),
      'visited': int(work['rows']),
      'dropped': int(work['dropped']),
    }
    if figures['dropped'] == len(cohort):
      return state, figures | {'update_norm': 0.0}
    return output.state, figures | {'update_norm': self._update_norm(state, output)}

  def refuse_divergence(self, round_number: int, members: np.ndarray, rounds: Iterable[np.ndarray]) -> None:
    """Raises InputError where it is the training that diverges, and not single clients of it.

    That is so where all members, or five if they are more, trained since the last finite update, not counting those that send NaN on
    purpose.

    Args:
      round_number: The last round.
      members: int64[members], positions of those that take part.
      rounds: Who trained in each round, from the last one backwards, down to one in which somebody's update was finite.
    """
    telling = min(_TELLING, len(members) - sum(map(self._sends_nan, members)))
    tried = set[int]()
    for clients in rounds:
      tried.update(int(k) for k in clients if not self._sends_nan(k))
      if tried and len(tried) >= telling:
        raise InputError(
          f'round {round_number}: training diverged on every client that was drawn (NaN or infinity); use a smaller '
          f'{argument("learning_rate")}, or rows whose values are nearer to 1'
        )

  def joins_rounds(self, cohorts: Sequence[np.ndarray]) -> bool:
    """Whether `several_rounds` is to be asked for: the model becomes the mean of the clients', here, and a call is dear beside them.

    Args:
      cohorts: int64[cohort] of each model, positions of the clients that train.
    """
    if self.workers.apart or not self.computations.is_mean or sum(len(cohort) > 0 for cohort in cohorts) < 2:
      return False
    rows = sum(int(self.population.train.counts[cohort].sum()) for cohort in cohorts)
    # x, y, the orders, and a weight for each row.
    message = rows * (self.population.train.x[:1].nbytes + 4 + 4 * self.local_epochs + 4)
    # A worker keeps what clients return, and all sums after each chunk, until the call ends.
    chunks = sum(len(chunked_sum.chunks(len(cohort))) for cohort in cohorts)
    models = 3 * sum(map(len, cohorts)) + _padded(len(cohorts)) * chunks
    return message + models * self.computations.model.num_bytes <= _JOINED_BYTES

  def several_rounds(
    self,
    states: Sequence[State],
    cohorts: Sequence[np.ndarray],
    round_number: int,
    equal: bool = False,
    row_weights: Sequence[Sequence[np.ndarray]] | None = None,
  ) -> list[tuple[State, dict[str, float]]]:
    """Runs one round of FedAvg of each of several models in one call of the worker.

    A call costs as much as the training of a small client, so that models of few clients each take less time together.

    Args:
      states: The models' states before the round.
      cohorts: int64[cohort] of each, positions of the clients that train, for which joins_rounds.
      round_number, equal: See `round`.
      row_weights: Those of `round` for each model.

    Returns:
      For each model what `round` returns, without the norm of the update.
    """
    computations = self.computations.varied(weighs_rows=row_weights is not None)
    jobs = [
      dataclasses.replace(job, beside={**job.beside, 'which': np.int32(position)})
      for position, cohort in enumerate(cohorts)
      for job in self._training(
        cohort, round_number, equal, None if row_weights is None else row_weights[position]
      )
    ]
    # Models without clients fill up, so that few computations serve any number.
    count = _padded(len(states))
    models = [self.weights(state) for state in (*states, *[states[0]] * (count - len(states)))]
    stacked = tuple(np.stack(arrays) for arrays in zip(*models, strict=True))
    with self.workers.busy(len(jobs)):
      found, counts = computations.several_rounds(count)(stacked, [job.argument for job in jobs])
    visited = np.maximum(counts['rows'], np.float32(1))
    after: list[tuple[State, dict[str, float]]] = []
    for position, state in enumerate(states):
      # Copied: a part would keep the whole alive.
      weights = [np.array(arrays[position]) for arrays in found]
      figures = {
        'train_loss': float(counts['loss_sum'][position] / visited[position]),
        'visited': int(counts['rows'][position]),
        'dropped': int(counts['dropped'][position]),
      }
      after.append((_with_weights(state, weights), figures))
    return after

  def _sends_nan(self, client: int) -> bool:
    """Tells whether a client is malicious and sends NaN, whatever it trained to."""
    return self.sends and bool(np.isnan(self.population.update_scale(int(client))))

  def local_updates(
    self,
    weights: Weights,
    clients: Sequence[int] | np.ndarray,
    round_number: int,
    into: Callable[[int, np.ndarray], None],
    proximal_mu: float = 0.0,
  ) -> None:
    """Trains each client on its own from the same weights, and hands over what it would have sent.

    Args:
      weights: Where every client starts.
      clients: Positions of the clients.
      round_number: The round whose visit orders are used: after round n - 1 of a trajectory, round n
        gives exactly the updates that round n averages.
      into: Called with (position in `clients`, float32[features] update: trained minus start; NaN where training
        was not finite).
      proximal_mu: Added to that of the computations (optimizers.Local).
    """
    size, jobs = self.computations.model.num_bytes, self._training(clients, round_number)
    mu = self.computations.local.proximal_mu + proximal_mu
    computations = self.computations.varied(proximal_mu=mu)
    for i, update in enumerate(self.workers.each(computations.local_updates, [list(weights)], jobs, size)):
      into(i, np.asarray(update))

  def update_matrix(
    self,
    weights: Weights,
    clients: Sequence[int] | np.ndarray,
    round_number: int,
    proximal_mu: float = 0.0,
  ) -> np.ndarray:
    """Returns float32[clients, features], the local_updates of a few clients; NaN where training was not finite."""
    updates = np.empty((len(clients), self.computations.model.num_parameters), np.float32)
    self.local_updates(weights, clients, round_number, updates.__setitem__, proximal_mu)
    return updates

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
    jobs = self._training(clients, round_number)
    for i, sketch in enumerate(
      self.workers.each(self.computations.local_sketches, [list(weights), sent], jobs, 4 * dimension)
    ):
      into(i, np.asarray(sketch))

  def average(self, state: State, updates: np.ndarray, weights: Sequence[float] | np.ndarray) -> State:
    """Returns the state after the server's part of a round; clients' updates that are the same as in `round` give its bits.

    Args:
      state: The state before.
      updates: float32[clients, features], trained minus start; rows that are not finite are left out.
      weights: float[clients], what each weighs in the mean.
    """
    finite = np.isfinite(updates).all(axis=1)
    if not finite.any():
      return state
    like = self.computations.model.weights
    edges = np.cumsum([w.size for w in like])[:-1]
    sent = -updates
    sent[~finite] = 0.0
    counted = np.where(finite, weights, 0.0).astype(np.float32)

    def shaped(flat: np.ndarray) -> Weights:
      return tuple(piece.reshape(w.shape) for piece, w in zip(np.split(flat, edges), like, strict=True))

    # Sums and means are taken here: sending all updates to the worker took longer than training them.
    if self.computations.is_mean:
      mean = chunked_sum.mean(sent, counted)
      if not np.isfinite(mean).all():
        return state
      pairs = zip(self.weights(state), shaped(mean), strict=True)
      return _with_weights(state, [chunked_sum.flushed(chunked_sum.flushed(w) - step) for w, step in pairs])
    nothing = collections.OrderedDict(loss_sum=np.float32(0), rows=np.float32(0), dropped=np.int32(0))
    if self.computations.adds_up_chunks:
      total, total_weight = chunked_sum.sum_of(sent, counted)
      added = collections.OrderedDict(update=shaped(total), weight=total_weight)
      return self.computations.finish_mean(state, [collections.OrderedDict(sum=added, counts=nothing)]).state
    self._check_updates(len(sent))
    results = []
    for update, weight, last in zip(sent, counted, chunked_sum.is_last(len(sent)), strict=True):
      one = collections.OrderedDict(update=shaped(update), last=np.asarray(last))
      results.append((tff.learning.templates.ClientResult(one, weight), nothing))
    return self.computations.finish_each(state, results).state

  def _check_updates(self, clients: int) -> None:
    """Raises InputError if the aggregator, which takes all updates at once, cannot be sent those of so many clients."""
    message_sizes.check_updates(clients, self.computations.model.num_bytes)

  def mean_update(
    self, weights: Weights, clients: Sequence[int] | np.ndarray, round_number: int
  ) -> np.ndarray:
    """Returns float32[features], the plain mean of the clients' local_updates, which are added up where they are made."""
    jobs = self._training(clients, round_number, equal=True)
    model = tff.learning.models.ModelWeights(tuple(weights), ())
    # By chunks, on one machine too: they may be more clients than a cohort, whose rows alone are known to fit into a message.
    chunks = [[jobs[k] for k in chunk] for chunk in chunked_sum.chunks(len(jobs))]
    found = self.computations.add_totals(
      self._few(self.workers.totals(self.computations.totals, [model], chunks))
    )
    if found['counts']['dropped']:
      return np.full(self.computations.model.num_parameters, np.nan, np.float32)
    total = np.concatenate([np.ravel(array) for array in found['sum']['update']])
    return -total / np.float32(found['sum']['weight'])

  def _update_norm(self, before: State, output: _Output) -> float:
    if self.computations.server.is_mean:
      return distance(self.weights(before), self.weights(output.state))
    return float(output.metrics['finalizer']['update_norm'])

  def _round_in_one_call(
    self, computations: tff_computations.Computations, state: State, jobs: Sequence[jobs_lib.Job]
  ) -> _Output:
    with self.workers.busy(len(jobs)):
      return computations.learning_process.next(state, [job.argument for job in jobs])

  def _round_apart(
    self, computations: tff_computations.Computations, state: State, jobs: Sequence[jobs_lib.Job]
  ) -> _Output:
    """Runs the clients' part of a round elsewhere, and the server's here."""
    model = state.global_model_weights
    if not computations.adds_up_chunks:
      self._check_updates(len(jobs))
      results = list(
        self.workers.each(computations.client_results, [model], jobs, computations.model.num_bytes)
      )
      return computations.finish_each(state, results)
    chunks = [[jobs[k] for k in chunk] for chunk in chunked_sum.chunks(len(jobs))]
    return computations.finish_mean(
      state, self._few(self.workers.totals(computations.totals, [model], chunks))
    )

  def _few(self, totals: Iterable[jobs_lib.Result]) -> list[jobs_lib.Result]:
    """Adds up what is too much for one message, as it comes; the order of the additions stays."""
    most = max(jobs_lib.MESSAGE_BYTES // self.computations.model.num_bytes, 2)
    few: list[jobs_lib.Result] = []
    for total in totals:
      if len(few) == most:
        few = [self.computations.add_totals(few)]
      few.append(total)
    return few

  def _training(
    self,
    clients: Sequence[int] | np.ndarray,
    round_number: int,
    equal: bool = False,
    row_weights: Sequence[np.ndarray] | None = None,
    anchor: Weights | None = None,
  ) -> list[jobs_lib.Job]:
    """Returns the clients with what they are sent to train on.

    Args:
      clients: Positions.
      round_number: Their visit orders are drawn for it.
      equal: Whether all weigh the same; else each by its number of rows (McMahan et al. 2017).
      row_weights, anchor: See `round`.
    """
    population, computations, jobs = self.population, self.computations, []
    rate = computations.local.rate(round_number)
    for place, last in enumerate(chunked_sum.is_last(len(clients))):
      k = int(clients[place])
      rows = len(population.train.client(k)[1])
      generator = seeding.generator(self.seed, 'visit order', round_number, population.client_ids[k])
      order = np.stack([generator.permutation(rows) for _ in range(self.local_epochs)])
      weight = 1.0 if equal else rows
      seed = seeding.integer_seed(self.seed, 'dropout', round_number, population.client_ids[k])
      drawn_from = seed if computations.model.draws else None
      weighed = None if row_weights is None else row_weights[place]
      beside = client_work.beside_rows(
        order,
        population.update_scale(k) if self.sends else 1.0,
        weight,
        last,
        rate,
        drawn_from,
        weighed,
        anchor,
      )
      jobs.append(dataclasses.replace(self._measured(population.train, k), beside=beside))
    return jobs


def _padded(models: int) -> int:
  """Returns the next multiple of four."""
  return -(-models // 4) * 4


def _with_weights(state: State, weights: Sequence[np.ndarray]) -> State:
  """Returns a state with other model weights."""
  return state._replace(global_model_weights=tff.learning.models.ModelWeights(tuple(weights), ()))
