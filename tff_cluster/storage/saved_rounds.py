"""Rounds of trajectories on disk: a file holds the whole state after a round, and the history up to it.

Rounds that somebody asked for are kept (round_00020.npz). Of the others only the latest is there (latest_00007.npz), for a
trajectory that is stopped to go on from.
"""

import dataclasses
import functools
import math
import pathlib
from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

import numpy as np

from tff_cluster.base import records
from tff_cluster.base.types import Weights
from tff_cluster.storage import artifacts, files

COLUMNS = (
  'validation_correct', 'validation_loss', 'test_correct', 'test_loss', 'train_loss', 'dropped', 'update_norm',
)  # fmt: skip
# COLUMNS, a row a round, and the state as state_0000, state_0001, ...: the model's weights come first.
Record: TypeAlias = dict[str, np.ndarray]


def _artifact_name(found: object) -> str:
  if isinstance(found, str) and artifacts.is_name(found):
    return found
  raise records.Mismatch('names no trajectory')


@dataclasses.dataclass(frozen=True)
class Checkpoints(records.Record):
  """Rounds of a trajectory that results stand on.

  Attributes:
    artifact: Name of the trajectory's folder in the store.
    start_round: The round that the results start from; the folder has it only where the trajectory is from earlier on.
    rounds: Later rounds, ascending, whose models the folder keeps.
    position: Which of the models of a round it is, where a state holds several.
  """

  artifact: str = dataclasses.field(metadata=records.about(read=_artifact_name))
  start_round: int
  rounds: tuple[int, ...]
  position: int = records.optional(0)


def load(
  store: artifacts.Store, saved: Checkpoints, like: Weights, remedy: str, rounds: Collection[int] = ()
) -> dict[int, Weights]:
  """Reads models that results stand on, and nothing else.

  Args:
    store: Where they lie.
    saved: Which they are.
    like: Weights of the same shapes.
    remedy: What makes them again, for instance 'run python -m phases.phase2'.
    rounds: Those of the rounds that are wanted; default: all.

  Returns:
    The models by round number.

  Raises:
    MissingArtifact: if one of them is not there, or not whole.
  """
  store.use(saved.artifact)
  return {
    number: _load_model(store, saved, number, like, remedy, files.load_arrays)
    for number in rounds or saved.rounds
  }


def load_each(
  store: artifacts.Store, several: Sequence[Checkpoints], number: int, like: Weights, remedy: str
) -> list[Weights]:
  """Reads the model after a round of each of several trajectories; arguments and errors as in `load`."""
  for name in {saved.artifact for saved in several}:
    store.use(name)
  # All models of a method that alternates are in one file.
  read = functools.lru_cache(maxsize=1)(files.load_arrays)
  return [_load_model(store, saved, number, like, remedy, read) for saved in several]


def _load_model(
  store: artifacts.Store,
  saved: Checkpoints,
  number: int,
  like: Weights,
  remedy: str,
  read: Callable[[pathlib.Path], Record],
) -> Weights:
  path = _kept(store.root / saved.artifact, number)
  try:
    weights = model(read(path), len(like), saved.position)
    why = 'is damaged: it has another model'
  except FileNotFoundError:
    weights, why = (), 'is not there any more'
  except files.DamagedFile as damage:
    weights, why = (), str(damage).partition('; ')[0].removeprefix(f'{path} ')
  if [array.shape for array in weights] != [array.shape for array in like]:
    raise artifacts.MissingArtifact(f'{path} {why}: {remedy}, which trains it again')
  return weights


def are_whole(store: artifacts.Store, saved: Checkpoints) -> bool:
  """Tells whether models that results stand on can be read; a damaged file is set aside with a line in the log."""
  records = [load_or_none(store.root / saved.artifact, number) for number in saved.rounds]
  return all(record is not None for record in records)


def load_or_none(folder: pathlib.Path, number: int) -> Record | None:
  """Returns what was saved of a round; None where it was not, or is damaged and then set aside."""
  path = artifacts.saved_rounds(folder).get(number)
  # It can be gone meanwhile: another run is at work there, and had it as its latest round.
  record = None if path is None else files.load_or_none(path)
  return None if record is None or not set(COLUMNS) <= set(record) else record


def load_kept(folder: pathlib.Path, numbers: Collection[int]) -> dict[int, Record] | None:
  """Returns what was saved of these rounds where all are kept and whole, or None.

  Kept rounds stay as they are while another run trains later ones, so nobody has to wait for that.
  """
  paths = {number: _kept(folder, number) for number in numbers}
  if not all(path.exists() for path in paths.values()):
    return None
  try:
    records = {number: files.load_arrays(path) for number, path in paths.items()}
  except (FileNotFoundError, files.DamagedFile):  # Pruned meanwhile, or set aside by who takes the lock.
    return None
  return records if all(set(COLUMNS) <= set(record) for record in records.values()) else None


def are_kept(folder: pathlib.Path, numbers: Collection[int]) -> bool:
  """Tells whether these rounds are kept and whole, reading one at a time."""
  return all(load_kept(folder, [number]) is not None for number in numbers)


def keep(folder: pathlib.Path, number: int) -> Record | None:
  """Returns what was saved of a round, and keeps it where it was only the latest; None as for load_or_none."""
  record = load_or_none(folder, number)
  latest = folder / f'latest_{number:05d}.npz'
  if record is not None and latest.exists():
    try:
      latest.rename(_kept(folder, number))
    except FileNotFoundError:  # Tidied away by a run that found all that it wanted, and takes no lock.
      files.save_arrays(_kept(folder, number), record)
  return record


def newest(folder: pathlib.Path, limit: float = math.inf) -> tuple[int, Record] | None:
  """Returns the newest whole round up to a limit, and what was saved of it; None where there is none."""
  for number in sorted((r for r in artifacts.saved_rounds(folder) if r <= limit), reverse=True):
    record = load_or_none(folder, number)
    if record is not None:
      return number, record
  return None


def save(
  folder: pathlib.Path, number: int, kept: bool, record: Record, state_arrays: list[np.ndarray]
) -> None:
  """Saves a round, and then removes earlier ones unless they are kept."""
  path = _kept(folder, number) if kept else folder / f'latest_{number:05d}.npz'
  files.save_arrays(path, record | {_state_name(i): leaf for i, leaf in enumerate(state_arrays)})
  for saved, old in artifacts.saved_rounds(folder).items():
    if saved < number and old.name.startswith('latest_'):
      old.unlink(missing_ok=True)


def tidy(folder: pathlib.Path, wanted: Collection[int]) -> None:
  """Removes what a killed program left: half a file, or a latest round with the one after it beside it."""
  files.sweep(folder)
  saved = artifacts.saved_rounds(folder)
  for number, path in saved.items():
    if number + 1 in saved and number not in wanted and path.name.startswith('latest_'):
      path.unlink(missing_ok=True)


def state(record: Record) -> list[np.ndarray]:
  """Returns the state after a round as a list of arrays."""
  count = sum(name.startswith('state_') for name in record)
  return [record[_state_name(position)] for position in range(count)]


def model(record: Record, num_arrays: int, position: int = 0) -> Weights:
  """Returns a model after a round, which is so many arrays; a state begins with its models, one after the other."""
  return tuple(state(record)[position * num_arrays : (position + 1) * num_arrays])


def _state_name(position: int) -> str:
  return f'state_{position:04d}'


def _kept(folder: pathlib.Path, number: int) -> pathlib.Path:
  return folder / f'round_{number:05d}.npz'
