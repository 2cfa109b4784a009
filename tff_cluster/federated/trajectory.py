"""A FedAvg trajectory: the models of round 1, 2, 3 ... from given weights on given clients, kept as an artifact.

The artifact's name is a digest of all that determines the trajectory; how far it was run is no part of
it. So a run that was killed goes on from its last finished round, a request for round 40 continues from
round 20 of the same trajectory, and two clusterings that find the same cluster train it once.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from tff_cluster import digests
from tff_cluster import store as store_lib
from tff_cluster.federated import trainer as trainer_lib

_COLUMNS = (
    'validation_correct', 'validation_loss', 'test_correct', 'test_loss', 'train_loss', 'dropped',
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
  """

  rounds: np.ndarray
  validation_correct: np.ndarray
  validation_loss: np.ndarray
  test_correct: np.ndarray
  test_loss: np.ndarray
  train_loss: np.ndarray
  dropped: np.ndarray


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
  store: store_lib.Store,
  settings: Any,
  members: np.ndarray,
  start_weights: trainer_lib.Weights,
  start_round: int,
  last_round: int,
  keep: Collection[int] = (),
  on_round: Callable[[int, dict[str, float]], None] = lambda round_number, figures: None,
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

  Raises:
    store.DamagedFile: if the newest usable file of the trajectory is damaged.
  """
  population = trainer.population
  folder = store.artifact(
    'fedavg',
    {
      'clients': [population.client_digests[k] for k in members],
      'start_weights': digests.of_arrays(start_weights),
      'start_round': int(start_round),
      'settings': settings,
    },
  )
  wanted = {int(r) for r in keep if start_round < r <= last_round} | {last_round}
  asked = sum(len(trainer.cohort(members, r)) for r in range(start_round + 1, last_round + 1))
  weights: dict[int, trainer_lib.Weights] = {start_round: tuple(start_weights)}
  # The newest saved round that no wanted and missing round comes before.
  saved = _saved(folder)
  missing = sorted(r for r in wanted if r not in saved)
  usable = [r for r in saved if r <= (missing[0] if missing else last_round)]
  record: dict[str, np.ndarray]
  if usable:
    record = store_lib.load_arrays(saved[max(usable)])
    done = max(usable)
    state = trainer.state_from_arrays(_state_arrays(record))
  else:
    record, done, state = _empty(len(members)), start_round, trainer.start(start_weights)
  for number in sorted(wanted & set(saved)):
    kept = trainer.state_from_arrays(_state_arrays(store_lib.load_arrays(saved[number])))
    weights[number] = trainer.weights(kept)
  newest = max([done, *(wanted & set(saved))])
  for index in range(done - start_round):
    on_round(start_round + 1 + index, _figures(trainer, members, record, index))
  trained = 0
  target = max(missing, default=done)
  while done < target:
    done += 1
    cohort = trainer.cohort(members, done)
    state, figures = trainer.round(state, cohort, done)
    trained += len(cohort)
    record = _appended(record, trainer, members, trainer.weights(state), figures)
    _save(folder, done, done in wanted, record, trainer.state_arrays(state))
    if done in wanted:
      weights[done] = trainer.weights(state)
    on_round(done, _figures(trainer, members, record, done - start_round - 1))
  if newest >= last_round and done < last_round:
    record = store_lib.load_arrays(saved[last_round])
    for index in range(done - start_round, last_round - start_round):
      on_round(start_round + 1 + index, _figures(trainer, members, record, index))
  count = last_round - start_round
  history = History(np.arange(start_round + 1, last_round + 1), *(record[name][:count] for name in _COLUMNS))
  return Outcome(members, history, weights, asked, trained)


def _saved(folder: pathlib.Path) -> dict[int, pathlib.Path]:
  """Returns the saved rounds: kept ones (round_00020.npz) and the latest (latest_00007.npz)."""
  return {int(path.stem.rpartition('_')[2]): path for path in sorted(folder.glob('*_[0-9]*.npz'))}


def _save(
  folder: pathlib.Path, number: int, keep: bool, record: dict[str, np.ndarray], state: list[np.ndarray]
) -> None:
  """Saves a round, and then removes the one before unless that is to be kept."""
  path = folder / f'{"round" if keep else "latest"}_{number:05d}.npz'
  store_lib.save_arrays(path, record | {f'state_{i:04d}': leaf for i, leaf in enumerate(state)})
  for old in folder.glob('latest_[0-9]*.npz'):
    if old != path:
      old.unlink(missing_ok=True)


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
  }


def _appended(
  record: dict[str, np.ndarray],
  trainer: trainer_lib.Trainer,
  members: np.ndarray,
  weights: trainer_lib.Weights,
  figures: dict[str, float],
) -> dict[str, np.ndarray]:
  validation = trainer.measure(weights, trainer.population.validation, members)
  test = trainer.measure(weights, trainer.population.test, members)
  row = {
    'validation_correct': validation.correct,
    'validation_loss': validation.loss_sum,
    'test_correct': test.correct,
    'test_loss': test.loss_sum,
    'train_loss': figures['train_loss'],
    'dropped': figures['dropped'],
  }
  return {name: np.concatenate([record[name], np.asarray(row[name])[None]]) for name in _COLUMNS}


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
  }
