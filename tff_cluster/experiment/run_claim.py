"""The folder of a run: claimed by one experiment at a time."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tff_cluster.base import fields
from tff_cluster.base.environment import Environment, describe_environment, gone_on
from tff_cluster.base.errors import InputError, argument
from tff_cluster.experiment import config_file, users_code
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files, output_folders, sealed_json, small_file


@dataclasses.dataclass(frozen=True)
class Claim:
  """An experiment's claim to a folder that is locked for it; the folder is its own once `write` is called.

  Attributes:
    folder: The folder.
    config: The experiment, with the clusterings and added rules of Phase 3 that the folder has.
    there: The experiment that the folder holds; None where it holds none, or none of which a round was trained.
    store_dir: The folder of artifacts that the run is to use; None: its own, or the one that it has.
  """

  folder: RunFolder
  config: ExperimentConfig
  there: ExperimentConfig | None
  store_dir: str | None

  @property
  def adds(self) -> bool:
    """Whether the experiment, a clustering or a rule of it is new to the folder, from which `write` takes what is left of others."""
    return self.there is None or any(
      each not in known
      for wanted, known in (
        (self.config.clusterings, self.there.clusterings),
        (self.config.evaluation.aggregation, self.there.evaluation.aggregation),
      )
      for each in wanted
    )

  def write(self, works: bool = True) -> Path:
    """Writes config.json and environment.json; an experiment of which nothing was trained goes without a word.

    Call this once data, model and sizes are known to fit: a command that is refused must not lock its folder.

    Args:
      works: Whether something is to be computed. What a finished run ran on does not change when it is read again.

    Returns:
      The folder.
    """
    folder = self.folder
    if self.there is None:
      for run in (folder, *folder.folds()):
        for path in (run.population, run.new_clients):
          path.unlink(missing_ok=True)
    else:
      # Of a clustering of this name that was not made, or that a killed program was adding. Where there was no run, models are of others.
      for label in (each.label for each in self.config.clusterings if each not in self.there.clusterings):
        folder.forget(label)
    files.save_json(folder.config, self.config.to_json())
    if works or not folder.environment.exists():
      files.save_json(folder.environment, self._environment())
    self._link_store()
    return folder.root

  def _environment(self) -> Environment:
    now = describe_environment()
    if self.there is None or not self.folder.environment.exists():
      return now
    return gone_on(self.folder.load_record(self.folder.environment, 'run_all', Environment), now)

  @contextlib.contextmanager
  def linked(self) -> Iterator[None]:
    """Links the store ahead of `write`, for a block that keeps artifacts and may refuse the experiment, which undoes it."""
    made = self._link_store()
    try:
      yield
    except BaseException:
      if made:
        self.folder.store.unlink(missing_ok=True)
      raise

  def _link_store(self) -> bool:
    """Links the store that was asked for, where an earlier claim linked another one too; returns whether it did."""
    if self.store_dir is None:
      return False
    store, shared = self.folder.store, Path(os.path.abspath(self.store_dir))
    shared.mkdir(parents=True, exist_ok=True)
    if self.there is None and store.is_symlink() and not _is_same_folder(store, shared):
      store.unlink()
    if os.path.lexists(store):  # It is there now if it is the one that was asked for.
      return False
    store.symlink_to(_link_text(store, shared))
    return True


def claim_output_dir(path: str | Path, config: ExperimentConfig, store_dir: str | None = None) -> Claim:
  """Locks a folder for an experiment, for as long as the process lives, and looks whether it can have it.

  The folder is made where it is not there; nothing is written in it yet. What killed processes left in a folder that
  already has this experiment is removed.

  Args:
    store_dir: The folder in which it is to keep its artifacts; None: as it does, or in the folder itself.

  Raises:
    InputError: if the path is no folder, has files of others where a run writes, keeps its artifacts elsewhere, or
      holds another experiment of which something was trained; naming the first difference. Or what a user's model or method made there
      before it was changed.
    EnvironmentFault: if it cannot be written, or another process is at work in it.
  """
  folder = RunFolder(output_folders.lock(path))
  trained = folder.has_trained()
  # A link in a folder that nobody has claimed is its user's.
  if trained or not (folder.store.is_symlink() and os.path.lexists(folder.config)):
    _check_store(folder, store_dir)
  if not os.path.lexists(folder.config):
    if (foreign := folder.foreign()) is not None:
      raise _holds_foreign(path, folder.config, foreign)
    files.sweep(folder.root)
    return Claim(folder, config, None, store_dir)
  # What is refused has run nothing that it names.
  there = _read(path, folder, config_file.read_unchecked)
  same = dataclasses.replace(
    there,
    clusterings=config.clusterings,
    evaluation=dataclasses.replace(there.evaluation, aggregation=config.evaluation.aggregation),
  )
  if not trained and (foreign := _foreign_beside(folder, there.digest == config.digest)) is not None:
    raise _holds_foreign(path, folder.environment, foreign)
  if same.digest != config.digest:
    if not trained:
      return Claim(folder, config, None, store_dir)
    name, old, new = config_file.first_difference(same, config) or ('configuration', '?', '?')
    raise InputError(
      f'{argument("output_dir", path)} holds another experiment: {name} is {_plain(old)} there and {_plain(new)} here; '
      'choose another folder'
    )
  folder.sweep()
  if not trained:
    return Claim(folder, config, None, store_dir)
  there = _read(path, folder, config_file.read_config)
  users_code.check_model(folder, config.training.model)
  users_code.check_clusterings(folder, config.clusterings)
  # One Phase 1 serves any number of clusterings and rules of Phase 3: those that were made stay, new ones join them.
  made = tuple(c for c in there.clusterings if c in config.clusterings or folder.clusters(c.label).exists())
  try:
    joined = dataclasses.replace(
      config,
      clusterings=dataclasses.replace(there, clusterings=made)
      .with_clusterings(config.clusterings)
      .clusterings,
      evaluation=there.with_aggregation(config.evaluation.aggregation).evaluation,
    )
  except InputError as error:
    raise InputError(f'{argument("output_dir", path)} has other clusterings or rules: {error}') from None
  return Claim(folder, joined, there, store_dir)


def claim_output_dirs(wanted: Sequence[tuple[Path, ExperimentConfig]], store: Path) -> list[Claim]:
  """Claims the folders of experiments that share a store, and makes that where they all can be had; raises as `claim_output_dir`."""
  claims = [claim_output_dir(folder, config, str(store)) for folder, config in wanted]
  store.mkdir(parents=True, exist_ok=True)
  return claims


def check_no_run(path: str | Path, beside: str = '') -> None:
  """Raises InputError where a folder is that of a run; `beside` is the argument that asks for another one, for instance 'outputs_file'."""
  if RunFolder(Path(path)).config.exists():
    other = f' for {argument(beside)}' if beside else ''
    raise InputError(f'{argument("output_dir", path)} holds a run; choose another folder{other}')


def resume_output_dir(path: str | Path) -> Path:
  """Makes the folder of an earlier run this process's, as it is but for what killed processes left.

  Raises:
    InputError: if the folder holds no run.
    EnvironmentFault: if it cannot be written, or another process is at work in it.
  """
  RunFolder(Path(path)).check_is_run()
  folder = RunFolder(output_folders.lock(path))
  folder.sweep()
  # In a folder of which nothing was trained it would pass for the seal of a claim, and a user's files beside it for the claim's.
  if not folder.environment.exists() and (folder.has_trained() or _foreign_beside(folder, False) is None):
    files.save_json(folder.environment, describe_environment())
  return folder.root


def _read(path: str | Path, folder: RunFolder, read: Callable[[Path], ExperimentConfig]) -> ExperimentConfig:
  """Returns the experiment that a folder holds; raises InputError where it cannot be read."""
  try:
    return read(folder.config)
  except InputError as error:
    raise InputError(
      f'{argument("output_dir", path)} cannot be gone on with: {error}; choose another folder'
    ) from None


def _foreign_beside(folder: RunFolder, is_same: bool) -> Path | None:
  """Returns a user's file in a folder with a config.json of which nothing was trained; None where the folder is a claim's.

  A claim seals config.json, and then environment.json. A config.json without a seal is a user's, who may have it run there if it
  is of the same experiment.
  """
  if _is_sealed(folder.environment):
    return None
  is_users = not is_same and not _is_sealed(folder.config)
  return folder.foreign() or (folder.config if is_users else None)


def _is_sealed(path: Path) -> bool:
  try:
    return sealed_json.is_sealed(small_file.read(path))
  except (OSError, InputError):
    return False


def _holds_foreign(path: str | Path, missing: Path, foreign: Path) -> InputError:
  return InputError(
    f'{argument("output_dir", path)} holds no run (no {missing.name}), but {foreign.name} of others, where a run would '
    'write over files; choose another folder'
  )


def _check_store(folder: RunFolder, store_dir: str | None) -> None:
  """Raises InputError if a run keeps its artifacts elsewhere than in `store_dir`."""
  if store_dir is None or not os.path.lexists(folder.store):
    return
  if not _is_same_folder(folder.store, Path(store_dir)):
    raise InputError(
      f'{argument("store_dir", store_dir)}: the run in {folder.root} keeps its artifacts in {os.path.realpath(folder.store)}; '
      f'leave {argument("store_dir")} out or choose another {argument("output_dir")}'
      + (
        f'; where that store was moved or copied, remove the link {folder.store}'
        if folder.store.is_symlink()
        else ''
      )
    )


def _is_same_folder(one: Path, other: Path) -> bool:
  """Tells whether both paths are there and lead to the same folder."""
  return one.exists() and other.exists() and os.path.samefile(one, other)


def _link_text(link: Path, store: Path) -> Path:
  """Returns where a link is to lead: a relative path within the output folder of a program at work, which can be moved as a whole."""
  real, inside = Path(os.path.realpath(store)), Path(os.path.realpath(link.parent))
  if inside.is_relative_to(real.parent) and output_folders.is_locked(real.parent):
    return Path(os.path.relpath(real, inside))
  return store


def _plain(value: Any) -> str:
  return 'not given' if value is None else fields.as_text(value)
