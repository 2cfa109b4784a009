"""A FedAvg trajectory: the models of round 1, 2, 3 ... from given weights on given clients, kept as an artifact.

The artifact's name is a digest of all that determines the trajectory; how far it was run is no part of
it. So a run that was killed goes on from its last finished round, a request for round 40 continues from
round 20 of the same trajectory, and two clusterings that find the same cluster train it once. A cluster of all clients that
starts from the global model goes on as FedAvg without clusters does, and is not trained again.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from tff_cluster.base import digests
from tff_cluster.federated import trainer as trainer_lib
from tff_cluster.storage import artifacts
from tff_cluster.storage import files as files_lib

_COLUMNS = (
    'validation_correct', 'validation_loss', 'test_correct', 'test_loss', 'train_loss', 'dropped', 'update_norm',
)  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class History:
  """What was measured after each round.

  Attributes:
    rounds: int64[rounds], round numbers.
    validation_correct, test_correct: int64[rounds, members], rows predicted right by the round's model.
    validation_loss, test_loss: float64[rounds, members], summed cross-entropy.
    train_loss: float64[rounds], mean over the rows that the cohort visited.
    dropped: int64[rounds], clients whose update was not finite.
    update_norm: float64[rounds], Euclidean norm of the round's change of the model, which is the weighted mean update.
  """

  rounds: np.ndarray
  validation_correct: np.ndarray
  validation_loss: np.ndarray
  test_correct: np.ndarray
  test_loss: np.ndarray
  train_loss: np.ndarray
  dropped: np.ndarray
  update_norm: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
  """What a request gives.

  Attributes:
    members: int64[members], positions of the clients.
    history: Of the rounds from the first to the one asked for.
    weights: The model after each of the rounds that were to be kept, by round number.
    client_rounds_asked: What training it all from the start costs, in client-rounds.
    client_rounds_trained: What was trained now.
  """

  members: np.ndarray
  history: History
  weights: dict[int, trainer_lib.Weights]
  client_rounds_asked: int
  client_rounds_trained: int


def run(
  trainer: trainer_lib.Trainer,
  store: artifacts.Store,
  settings: Any,
  members: np.ndarray,
  start_weights: trainer_lib.Weights,
  start_round: int,
  last_round: int,
  keep: Collection[int] = (),
  on_round: Callable[[int, dict[str, float]], None] = lambda round_number, figures: None,
  stop: Callable[[int, float], bool] | None = None,
  may_diverge: bool = False,
) -> Outcome:
  """Returns the trajectory up to a round, training what the store does not have.

  Args:
    trainer: Runs the rounds.
    store: Where trajectories are kept.
    settings: JSON value with every training setting that the rounds depend on (model, batch size, ...).
    members: int64[members], positions of the clients that take part, ascending.
    start_weights: Weights before the first round.
    start_round: Number of the round that they come from; the first round is start_round + 1.
    last_round: Number of the last round.
    keep: Rounds whose models are wanted; start_round and last_round always are among the results.
    on_round: Called after each round, also for those that the store has, with the round's figures.
    stop: Ends the trajectory before last_round, after the first round for which stop(round, update_norm) is true; the
      models of that round and of the one before are among the results.
    may_diverge: See Trainer.round.

  A damaged file is set aside with a line in the log, and what it held is trained again.
  """
  initial = trainer.computations.model.weights
  if stop is None and _goes_on(trainer, store, settings, members, start_weights, start_round):
    whole = run(
      trainer,
      store,
      settings,
      members,
      initial,
      0,
      last_round,
      {*keep, start_round},
      lambda number, figures: on_round(number, figures) if number > start_round else None,
      may_diverge=may_diverge,
    )
    return _after(whole, trainer, start_round)
  folder = store.artifact('fedavg', _determinants(trainer, settings, members, start_weights, start_round))
  wanted = {int(r) for r in keep if start_round < r <= last_round} | {last_round}
  first = start_round + 1
  weights: dict[int, trainer_lib.Weights] = {start_round: tuple(start_weights)}
  found = _all_kept(folder, wanted) if stop is None else None
  with store.working_on(folder) if found is None else contextlib.nullcontext():
    if stop is not None:
      norms = _update_norms(folder, start_round)
      reached = [r for r, norm in enumerate(norms, first) if r <= last_round and stop(r, norm)]
      if reached:
        last_round, stop = reached[0], None
        wanted = {r for r in wanted if r < last_round} | {
          r for r in (last_round - 1, last_round) if r > start_round
        }
    if found is None:
      found = {number: record for number in wanted if (record := _load(folder, number)) is not None}
    for number, record in found.items():
      weights[number] = trainer.weights(trainer.state_from_arrays(_state_arrays(record)))
    missing = sorted(wanted - set(found))
    done, record = _newest(folder, missing[0], start_round) if missing else (last_round, found[last_round])
    if record is None:
      record, state = _empty(len(members)), trainer.start(start_weights)
    else:
      state = trainer.state_from_arrays(_state_arrays(record))
    for number in range(first, min(done, last_round) + 1):
      on_round(number, _figures(trainer, members, record, number - first))
    trained = 0
    while missing and done < missing[-1]:
      done += 1
      cohort = trainer.cohort(members, done)
      before = trainer.weights(state)
      state, figures = trainer.round(state, cohort, done, may_diverge)
      trained += len(cohort)
      record = _appended(record, trainer, members, before, trainer.weights(state), figures)
      if stop is not None and stop(done, float(record['update_norm'][-1])):
        missing, last_round = [done], done
        wanted |= {done - 1, done}
        weights[done - 1] = before
        _keep(folder, done - 1)
      _save(folder, done, done in wanted, record, trainer.state_arrays(state))
      if done in wanted:
        weights[done] = trainer.weights(state)
      on_round(done, _figures(trainer, members, record, done - first))
    if done < last_round:
      record = found[last_round]
      for number in range(done + 1, last_round + 1):
        on_round(number, _figures(trainer, members, record, number - first))
    _tidy(folder, wanted)
  count = last_round - start_round
  history = History(np.arange(first, last_round + 1), *(record[name][:count] for name in _COLUMNS))
  asked = sum(len(trainer.cohort(members, r)) for r in history.rounds)
  return Outcome(members, history, weights, asked, trained)


def place(
  trainer: trainer_lib.Trainer,
  store: artifacts.Store,
  settings: Any,
  members: np.ndarray,
  start_weights: trainer_lib.Weights,
  start_round: int,
) -> pathlib.Path:
  """Returns the folder that has the rounds of a trajectory (arguments as for `run`), whether or not it is there."""
  if _goes_on(trainer, store, settings, members, start_weights, start_round):
    start_weights, start_round = trainer.computations.model.weights, 0
  return store.place('fedavg', _determinants(trainer, settings, members, start_weights, start_round))


def _goes_on(
  trainer: trainer_lib.Trainer,
  store: artifacts.Store,
  settings: Any,
  members: np.ndarray,
  start_weights: trainer_lib.Weights,
  start_round: int,
) -> bool:
  """Tells whether these clients, trained from the initial weights, had exactly this model after exactly this round.

  And whether the server had nothing else in mind, such as what an aggregator learnt of earlier rounds: a trajectory
  starts without it.
  """
  if start_round == 0:
    return False
  initial = trainer.computations.model.weights
  folder = store.place('fedavg', _determinants(trainer, settings, members, initial, 0))
  try:
    record = _load(folder, start_round)
  except FileNotFoundError:  # Another run is at work there, and had it as its latest round.
    return False
  if record is None:
    return False
  kept, fresh = _state_arrays(record), trainer.state_arrays(trainer.start(start_weights))
  return len(kept) == len(fresh) and all(map(np.array_equal, kept, fresh))


def _after(outcome: Outcome, trainer: trainer_lib.Trainer, start_round: int) -> Outcome:
  """Returns what is after a round of a trajectory from round 0, as a trajectory from that round."""
  history = History(
    **{
      field.name: getattr(outcome.history, field.name)[start_round:] for field in dataclasses.fields(History)
    }
  )
  return dataclasses.replace(
    outcome,
    history=history,
    weights={number: weights for number, weights in outcome.weights.items() if number >= start_round},
    client_rounds_asked=sum(len(trainer.cohort(outcome.members, r)) for r in history.rounds),
  )


def newest_round(folder: pathlib.Path) -> int:
  """Returns the number of the newest round that a trajectory's folder has; 0 where it has none."""
  return max(artifacts.saved_rounds(folder), default=0)


def _determinants(
  trainer: trainer_lib.Trainer,
  settings: Any,
  members: np.ndarray,
  start_weights: trainer_lib.Weights,
  start_round: int,
) -> dict[str, Any]:
  return {
    'clients': [trainer.population.client_digests[k] for k in members],
    'start_weights': digests.of_arrays(start_weights),
    'start_round': int(start_round),
    'settings': settings,
  }


def _load(folder: pathlib.Path, number: int) -> dict[str, np.ndarray] | None:
  """Returns what was saved of a round, or None where it was not, or is damaged."""
  path = artifacts.saved_rounds(folder).get(number)
  if path is None:
    return None
  try:
    record = files_lib.load_arrays(path)
    # What an earlier version saved without one of the columns is trained again.
    return record if set(_COLUMNS) <= set(record) else None
  except files_lib.DamagedFile as damage:
    files_lib.set_aside(path, damage)
    return None


def _all_kept(folder: pathlib.Path, numbers: Collection[int]) -> dict[int, dict[str, np.ndarray]] | None:
  """Returns what was saved of these rounds where all are kept and whole, or None.

  Kept rounds stay as they are while another run trains later ones, so nobody has to wait for that.
  """
  paths = {number: folder / f'round_{number:05d}.npz' for number in numbers}
  if not all(path.exists() for path in paths.values()):
    return None
  try:
    records = {number: files_lib.load_arrays(path) for number, path in paths.items()}
  except (FileNotFoundError, files_lib.DamagedFile):  # Pruned meanwhile, or set aside by who takes the lock.
    return None
  return records if all(set(_COLUMNS) <= set(record) for record in records.values()) else None


def _newest(folder: pathlib.Path, limit: int, start: int) -> tuple[int, dict[str, np.ndarray] | None]:
  """Returns the newest whole round up to a limit, and what was saved of it; (start, None) where there is none."""
  for number in sorted((r for r in artifacts.saved_rounds(folder) if r <= limit), reverse=True):
    record = _load(folder, number)
    if record is not None:
      return number, record
  return start, None


def _update_norms(folder: pathlib.Path, start: int) -> np.ndarray:
  """Returns the update norms of all rounds that the store has."""
  _, record = _newest(folder, newest_round(folder), start)
  return np.zeros(0) if record is None else record['update_norm']


def _keep(folder: pathlib.Path, number: int) -> None:
  """Keeps a round that was only the latest."""
  path = folder / f'latest_{number:05d}.npz'
  if path.exists():
    path.rename(folder / f'round_{number:05d}.npz')


def _save(
  folder: pathlib.Path, number: int, keep: bool, record: dict[str, np.ndarray], state: list[np.ndarray]
) -> None:
  """Saves a round, and then removes earlier ones unless they are to be kept."""
  path = folder / f'{"round" if keep else "latest"}_{number:05d}.npz'
  files_lib.save_arrays(path, record | {f'state_{i:04d}': leaf for i, leaf in enumerate(state)})
  for saved, old in artifacts.saved_rounds(folder).items():
    if saved < number and old.name.startswith('latest_'):
      old.unlink(missing_ok=True)


def _tidy(folder: pathlib.Path, wanted: Collection[int]) -> None:
  """Removes what a killed program left: half a file, or a latest round with the one after it beside it."""
  files_lib.sweep(folder)
  saved = artifacts.saved_rounds(folder)
  for number, path in saved.items():
    if number + 1 in saved and number not in wanted and path.name.startswith('latest_'):
      path.unlink(missing_ok=True)


def _state_arrays(record: dict[str, np.ndarray]) -> list[np.ndarray]:
  return [record[name] for name in sorted(record) if name.startswith('state_')]


def _empty(members: int) -> dict[str, np.ndarray]:
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
  record: dict[str, np.ndarray],
  trainer: trainer_lib.Trainer,
  members: np.ndarray,
  before: trainer_lib.Weights,
  weights: trainer_lib.Weights,
  figures: dict[str, float],
) -> dict[str, np.ndarray]:
  splits = (trainer.population.validation, trainer.population.test)
  validation, test = trainer.measure_splits(weights, splits, members)
  row = {
    'validation_correct': validation.correct,
    'validation_loss': validation.loss_sum,
    'test_correct': test.correct,
    'test_loss': test.loss_sum,
    'train_loss': figures['train_loss'],
    'dropped': figures['dropped'],
    'update_norm': _distance(before, weights),
  }
  return {name: np.concatenate([record[name], np.asarray(row[name])[None]]) for name in _COLUMNS}


def _distance(one: trainer_lib.Weights, other: trainer_lib.Weights) -> float:
  """Returns the Euclidean distance of two models."""
  squares = (np.square(a.astype(np.float64) - b).sum() for a, b in zip(one, other, strict=True))
  return float(np.sqrt(sum(squares)))


def _figures(
  trainer: trainer_lib.Trainer, members: np.ndarray, record: dict[str, np.ndarray], index: int
) -> dict[str, float]:
  population = trainer.population
  return {
    'train_loss': float(record['train_loss'][index]),
    'validation_accuracy': float(
      np.mean(record['validation_correct'][index] / population.validation.counts[members])
    ),
    'test_accuracy': float(np.mean(record['test_correct'][index] / population.test.counts[members])),
    'dropped': float(record['dropped'][index]),
    'update_norm': float(record['update_norm'][index]),
  }
