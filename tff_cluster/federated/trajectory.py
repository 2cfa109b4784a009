"""A FedAvg trajectory: the models of round 1, 2, 3 ... from given weights on given clients, kept as an artifact.

The artifact's name is a digest of all that determines the trajectory; how far it was run is no part of
it. So a run that was killed goes on from its last finished round, a request for round 40 continues from
round 20 of the same trajectory, and two clusterings that find the same cluster train it once. A cluster of all clients that
starts from the global model goes on as FedAvg without clusters does, and is not trained again.

`run` trains what is missing. What it gives names the rounds that it stands on (`Outcome.checkpoints`), which
storage/saved_rounds.py loads without it.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from tff_cluster.base import digests
from tff_cluster.base.cost import Cost
from tff_cluster.base.types import Json, Weights
from tff_cluster.federated import trainer as trainer_lib
from tff_cluster.storage import artifacts, saved_rounds

# Those of saved_rounds.COLUMNS that a model is measured for.
_MEASURED = ('validation_correct', 'validation_loss', 'test_correct', 'test_loss')
OnRound: TypeAlias = Callable[[int, dict[str, float]], None]
Stop: TypeAlias = Callable[[int, float], bool]


@dataclasses.dataclass(frozen=True, eq=False)
class History:
  """What was measured after each round.

  Attributes:
    rounds: int64[rounds], round numbers.
    validation_correct, test_correct: int64[rounds, members], rows predicted right by the round's model.
    validation_loss, test_loss: float64[rounds, members], summed cross-entropy.
    train_loss: float64[rounds], mean over the rows that the cohort visited.
    dropped: int64[rounds], clients whose update was not finite.
    update_norm: float64[rounds], Euclidean norm of the weighted mean update, by which the model moves unless the server has an
      optimizer or a learning rate of its own.
  """

  rounds: np.ndarray
  validation_correct: np.ndarray
  validation_loss: np.ndarray
  test_correct: np.ndarray
  test_loss: np.ndarray
  train_loss: np.ndarray
  dropped: np.ndarray
  update_norm: np.ndarray

  def after(self, round_number: int) -> 'History':
    """Returns what was measured in the rounds after one."""
    later = self.rounds > round_number
    return History(**{field.name: getattr(self, field.name)[later] for field in dataclasses.fields(self)})


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
  """What a request gives.

  Attributes:
    members: int64[members], positions of the clients.
    history: Of the rounds from the first to the one asked for.
    weights: The model after each of the rounds that were to be kept, by round number, and the one before the first round.
    cost: What training it all from the start costs.
    client_rounds_trained: What was trained now.
    checkpoints: Where the models are kept, for those who read them later.
  """

  members: np.ndarray
  history: History
  weights: dict[int, Weights]
  cost: Cost
  client_rounds_trained: int
  checkpoints: saved_rounds.Checkpoints


@dataclasses.dataclass(frozen=True, eq=False)
class Pull:
  """What clients' own models are pulled to: those that they receive in another trajectory (Ditto, Li et al. 2021), or a fixed one.

  Attributes:
    strength: lambda of lambda / 2 * |v - w|^2, which takes the place of optimizers.Local.proximal_mu.
    to: Name of that trajectory's folder in the store; a digest of a fixed model.
    cohort: Returns the clients that train in a round.
    model: Returns that trajectory's model after a round, the one before round 1 for 0.
  """

  strength: float
  to: str
  cohort: Callable[[int], np.ndarray]
  model: Callable[[int], Weights]


@dataclasses.dataclass(frozen=True, eq=False)
class Trajectory:
  """Clients that train together from a model on; how far, each request says.

  Attributes:
    trainer: Runs the rounds.
    store: Where trajectories are kept.
    settings: Every training setting that the rounds depend on (model, batch size, ...).
    members: int64[members], positions of the clients that take part, ascending.
    start_weights: Weights before the first round.
    start_round: Number of the round that they come from; the first round is start_round + 1.
    may_diverge: Whether it goes on where training diverges (Trainer.refuse_divergence), with the model as it is.
    pull: What the clients are pulled to; they train in the rounds whose cohort they are in there. None: nothing.
  """

  trainer: trainer_lib.Trainer
  store: artifacts.Store
  settings: Mapping[str, Json]
  members: np.ndarray
  start_weights: Weights
  start_round: int
  may_diverge: bool = False
  pull: Pull | None = None

  @property
  def determinants(self) -> Json:
    """All that the rounds depend on."""
    pull = self.pull
    return {
      'clients': [self.trainer.population.client_digests[k] for k in self.members],
      'start_weights': digests.of_arrays(self.start_weights),
      'start_round': int(self.start_round),
      'settings': self.settings,
      **({} if pull is None else {'pull': {'strength': pull.strength, 'to': pull.to}}),
    }

  @property
  def place(self) -> pathlib.Path:
    """The folder that has the rounds, whether or not it is there."""
    return self.store.place('fedavg', self.whole().determinants)

  def whole(self) -> 'Trajectory':
    """Returns the trajectory from the initial weights, if these clients had exactly this model after exactly this round.

    And if the server had nothing else in mind, such as what an aggregator learnt of earlier rounds: a trajectory starts
    without it. Else returns the trajectory as it is.
    """
    if self.start_round == 0:
      return self
    initial = self.trainer.computations.model.weights
    whole = dataclasses.replace(self, start_weights=initial, start_round=0)
    record = saved_rounds.load_or_none(self.store.place('fedavg', whole.determinants), self.start_round)
    if record is None:
      return self
    kept, fresh = (
      saved_rounds.state(record),
      self.trainer.state_arrays(self.trainer.start(self.start_weights)),
    )
    same = len(kept) == len(fresh) and all(map(np.array_equal, kept, fresh))
    return whole if same else self

  def cohort(self, number: int) -> np.ndarray:
    """Returns int64[cohort], the clients that train in a round."""
    if self.pull is None:
      return self.trainer.cohort(self.members, number)
    return np.intersect1d(self.members, self.pull.cohort(number))

  def cost(self, rounds: Iterable[int]) -> Cost:
    """Returns what some of its rounds cost."""
    return sum((self.trainer.cost(self.cohort(number)) for number in rounds), Cost())

  def round(
    self, state: trainer_lib.State, cohort: np.ndarray, number: int
  ) -> tuple[trainer_lib.State, dict[str, float]]:
    """Returns the state after a round, and figures as Trainer.round; where nobody trains it stays as it is."""
    if not len(cohort):
      return state, {'train_loss': np.nan, 'dropped': 0, 'update_norm': 0.0}
    pull = None if self.pull is None else (self.pull.strength, self.pull.model(number - 1))
    return self.trainer.round(state, cohort, number, pull=pull)


def run(
  trajectory: Trajectory,
  last_round: int,
  keep: Collection[int] = (),
  on_round: OnRound = lambda round_number, figures: None,
  stop: Stop | None = None,
  leave: Collection[int] = (),
) -> Outcome:
  """Returns a trajectory up to a round, training what the store does not have.

  Args:
    trajectory: The trajectory.
    last_round: Number of the last round.
    keep: Rounds whose models are wanted; start_round and last_round always are among the results.
    on_round: Called after each round, also for those that the store has, with the round's figures.
    stop: Ends the trajectory before last_round, after the first round for which stop(round, update_norm) is true; the
      models of that round and of the one before are among the results.
    leave: Rounds whose models are left in the store, too, for those who read them one by one; they are not among the results.

  A damaged file is set aside with a line in the log, and what it held is trained again.
  """
  start = trajectory.start_round
  whole = trajectory if stop is not None else trajectory.whole()
  if whole is not trajectory:

    def tell(number: int, figures: dict[str, float]) -> None:
      if number > start:
        on_round(number, figures)

    return _after(run(whole, last_round, {*keep, start}, tell, leave=leave), trajectory)
  folder = trajectory.store.artifact('fedavg', trajectory.determinants)
  wanted = {int(number) for number in keep if start < number <= last_round} | {last_round}
  left = {int(number) for number in leave if start < number < last_round} - wanted
  work = _Work(trajectory, folder, last_round, wanted, on_round, stop, left)
  kept = None
  if stop is None and saved_rounds.are_kept(folder, left):
    kept = saved_rounds.load_kept(folder, wanted)
  with contextlib.nullcontext() if kept is not None else trajectory.store.working_on(folder):
    record = work.do(kept)
    saved_rounds.tidy(folder, work.wanted | left)
  return work.outcome(record)


def _after(outcome: Outcome, trajectory: Trajectory) -> Outcome:
  """Returns what is after the start of a trajectory, of an outcome that begins earlier."""
  start, history = trajectory.start_round, outcome.history.after(trajectory.start_round)
  later = tuple(number for number in outcome.checkpoints.rounds if number > start)
  return dataclasses.replace(
    outcome,
    history=history,
    weights={number: model for number, model in outcome.weights.items() if number >= start},
    cost=trajectory.cost(history.rounds),
    checkpoints=dataclasses.replace(outcome.checkpoints, start_round=start, rounds=later),
  )


class _Work:
  """One request at work in the trajectory's folder.

  Attributes:
    wanted: Rounds whose models are asked for.
  """

  def __init__(
    self,
    trajectory: Trajectory,
    folder: pathlib.Path,
    last_round: int,
    wanted: set[int],
    on_round: OnRound,
    stop: Stop | None,
    left: set[int],
  ):
    self.wanted = wanted
    self._left = left
    self._trajectory, self._folder, self._last_round = trajectory, folder, last_round
    self._on_round, self._stop = on_round, stop
    self._models: dict[int, Weights] = {trajectory.start_round: tuple(trajectory.start_weights)}
    self._trained = 0

  def do(self, kept: dict[int, saved_rounds.Record] | None) -> saved_rounds.Record:
    """Reads what there is, trains the rest, and returns the record of the last round.

    Args:
      kept: All that is wanted, where it has been read and what is to be left is there; None where both are still to be
        looked for.
    """
    if self._stop is not None:
      self._stop_where_it_did(self._stop)
    missing = set[int]()
    if kept is None:
      # One at a time, because together they may not fit into memory.
      missing = {number for number in self._left if saved_rounds.keep(self._folder, number) is None}
      found = {number: saved_rounds.keep(self._folder, number) for number in self.wanted}
      kept = {number: record for number, record in found.items() if record is not None}
    num_arrays = len(self._trajectory.start_weights)
    self._models |= {number: saved_rounds.model(record, num_arrays) for number, record in kept.items()}
    start, missing = self._trajectory.start_round, missing | self.wanted - set(kept)
    if not missing:
      self._tell(kept[self._last_round], start, self._last_round)
      return kept[self._last_round]
    done = start
    while missing:
      told = done
      done, record = saved_rounds.newest(self._folder, min(missing)) or (start, _empty(self._trajectory))
      self._tell(record, told, done)
      record, done = self._train(record, done, self._until_the_next(missing))
      # It may have been told to stop.
      missing = {number for number in missing if done < number <= self._last_round}
    if done == self._last_round:
      return record
    self._tell(kept[self._last_round], done, self._last_round)
    return kept[self._last_round]

  def outcome(self, record: saved_rounds.Record) -> Outcome:
    """Returns what the request gives, from the record of the last round or a later one."""
    start = self._trajectory.start_round
    rounds = np.arange(start + 1, self._last_round + 1)
    history = History(rounds, *(record[name][: len(rounds)] for name in saved_rounds.COLUMNS))
    cost = self._trajectory.cost(rounds)
    kept = saved_rounds.Checkpoints(self._folder.name, start, tuple(sorted(set(self._models) - {start})))
    return Outcome(self._trajectory.members, history, self._models, cost, self._trained, kept)

  def _until_the_next(self, missing: Collection[int]) -> int:
    """Returns the last of the missing rounds before which, from the first one on, no round is there to go on from."""
    until, *later = sorted(missing)
    saved = artifacts.saved_rounds(self._folder)
    for number in later:
      if any(until < there <= number for there in saved):
        break
      until = number
    return until

  def _stop_where_it_did(self, stop: Stop) -> None:
    """Makes the round in which the trajectory stopped earlier the last one, where the store has it."""
    start = self._trajectory.start_round
    there = saved_rounds.newest(self._folder)
    norms: list[float] = [] if there is None else there[1]['update_norm'].tolist()
    reached = [r for r, norm in enumerate(norms, start + 1) if r <= self._last_round and stop(r, norm)]
    if reached:
      self._last_round, self._stop = reached[0], None
      ends = {r for r in (self._last_round - 1, self._last_round) if r > start}
      self.wanted = {r for r in self.wanted if r < self._last_round} | ends

  def _train(self, record: saved_rounds.Record, done: int, until: int) -> tuple[saved_rounds.Record, int]:
    """Trains from a round to another one, or to where it is told to stop; returns the last round's record and number."""
    trajectory, trainer = self._trajectory, self._trajectory.trainer
    arrays = saved_rounds.state(record)
    state = trainer.state_from_arrays(arrays) if arrays else trainer.start(trajectory.start_weights)
    while done < until:
      done += 1
      cohort, before = trajectory.cohort(done), trainer.weights(state)
      state, figures = trajectory.round(state, cohort, done)
      self._trained += len(cohort)
      after = trainer.weights(state)
      # Where nobody trained, the model is the one that was measured.
      measured = len(cohort) or not len(record['dropped'])
      record = _appended(record, trajectory, after if measured else None, figures)
      if self._stop is not None and self._stop(done, float(record['update_norm'][-1])):
        until = self._last_round = done
        self.wanted |= {done - 1, done}
        self._models[done - 1] = before
        saved_rounds.keep(self._folder, done - 1)
      keep = done in self.wanted | self._left
      saved_rounds.save(self._folder, done, keep, record, trainer.state_arrays(state))
      if done in self.wanted:
        self._models[done] = after
      self._tell(record, done - 1, done)
    return record, done

  def _tell(self, record: saved_rounds.Record, after: int, last: int) -> None:
    """Tells the figures of the rounds after one, up to another one; refuses a training that diverges, rounds in the store too."""
    trajectory = self._trajectory
    for number in range(after + 1, min(last, self._last_round) + 1):
      figures = _figures(trajectory, record, number - trajectory.start_round - 1)
      if figures['dropped'] and not trajectory.may_diverge:
        lost = _lost_cohorts(trajectory, record, number)
        trajectory.trainer.refuse_divergence(number, trajectory.members, lost)
      self._on_round(number, figures)


def _lost_cohorts(trajectory: Trajectory, record: saved_rounds.Record, last: int) -> Iterator[np.ndarray]:
  """Yields the cohorts from a round backwards, down to one of which an update was finite."""
  for number in range(last, trajectory.start_round, -1):
    cohort = trajectory.cohort(number)
    if record['dropped'][number - trajectory.start_round - 1] < len(cohort):
      return
    yield cohort


def _empty(trajectory: Trajectory) -> saved_rounds.Record:
  members = len(trajectory.members)
  return {
    'validation_correct': np.zeros((0, members), np.int64),
    'validation_loss': np.zeros((0, members)),
    'test_correct': np.zeros((0, members), np.int64),
    'test_loss': np.zeros((0, members)),
    'train_loss': np.zeros(0),
    'dropped': np.zeros(0, np.int64),
    'update_norm': np.zeros(0),
  }


def _appended(
  record: saved_rounds.Record, trajectory: Trajectory, after: Weights | None, figures: dict[str, float]
) -> saved_rounds.Record:
  """Returns the record with a row more, of a model that is to be measured, or, with None, of the one of the row before."""
  row = figures | (
    {name: record[name][-1] for name in _MEASURED} if after is None else _measured(trajectory, after)
  )
  return {name: np.concatenate([record[name], np.asarray(row[name])[None]]) for name in saved_rounds.COLUMNS}


def _measured(trajectory: Trajectory, weights: Weights) -> dict[str, np.ndarray]:
  population = trajectory.trainer.population
  validation, test = trajectory.trainer.measure_splits(
    weights, (population.validation, population.test), trajectory.members
  )
  return {
    'validation_correct': validation.correct,
    'validation_loss': validation.loss_sum,
    'test_correct': test.correct,
    'test_loss': test.loss_sum,
  }


def _figures(trajectory: Trajectory, record: saved_rounds.Record, index: int) -> dict[str, float]:
  population, members = trajectory.trainer.population, trajectory.members
  correct, test_correct = record['validation_correct'][index], record['test_correct'][index]
  return {
    'train_loss': float(record['train_loss'][index]),
    'validation_accuracy': float(np.mean(correct / population.validation.counts[members])),
    'test_accuracy': float(np.mean(test_correct / population.test.counts[members])),
    'dropped': float(record['dropped'][index]),
    'update_norm': float(record['update_norm'][index]),
  }
