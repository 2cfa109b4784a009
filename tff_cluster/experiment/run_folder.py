"""Where the files of a run lie. Every phase reads what the phase before saved here."""

import dataclasses
import os
import pathlib
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tff_cluster.base import records
from tff_cluster.base.errors import InputError, argument
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import config_file, phase_files
from tff_cluster.storage import artifacts, files, output_folders

# Folders of a run that hold its files, and those that have a folder for each clustering.
_FLAT = (
  'phase2', 'phase3', 'phase3/aggregation', 'new_clients', 'figures', 'disturbance', 'clusterings', 'metrics'
)  # fmt: skip
_NESTED = ('clusterings', 'models', 'metrics')
_FILES = ('environment.json', 'population.npz', 'new_clients.npz', 'phase1.json', 'results.json', 'arrays.npz',
          'report.html', 'scorecard.json', 'scorecard.csv', 'scorecard.tex')  # fmt: skip
# A run beside a comparison or a league would write over its figures.
_OF_STUDIES = ('comparison.json', 'league.json')
_Kind = TypeVar('_Kind', bound=phase_files.PhaseFile)
_Record = TypeVar('_Record', bound=records.Record)
_OF_CLUSTERS = re.compile(r'(cluster|segment)_[0-9]{3,}\.(keras|csv)')


class _At:
  """A path in the folder of a run."""

  def __init__(self, place: str):
    self._place = place

  def __get__(self, folder: 'RunFolder', owner: type | None = None) -> pathlib.Path:
    return folder.root / self._place


class _For:
  """Paths in the folder of a run, one for each name that is given: the label of a clustering, if nothing else is said."""

  def __init__(self, place: str):
    self._place = place

  def __get__(self, folder: 'RunFolder', owner: type | None = None) -> Callable[[str], pathlib.Path]:
    return lambda name: folder.root / self._place.format(name)


@dataclasses.dataclass(frozen=True)
class RunFolder:
  """The folder of one experiment (output_dir), and where its files lie; docs/reference/files.md says what is in each.

  Attributes:
    root: The folder.
  """

  root: pathlib.Path

  config = _At('config.json')
  environment = _At('environment.json')
  population = _At('population.npz')
  new_clients = _At('new_clients.npz')
  # Artifacts: trajectories, signatures and what else runs can share (artifacts.Artifact).
  store = _At(output_folders.STORE)
  results = _At('results.json')
  arrays = _At('arrays.npz')
  phase1 = _At('phase1.json')
  baseline = _At('phase2/baseline.json')
  # Of a baseline in which clients have models of their own, by its name (sections.PERSONALIZED).
  personalized = _For('phase2/{}.json')
  phase2 = _For('phase2/clustering_{}.json')
  client_accuracy = _For('phase2/client_accuracy_{}.npz')
  phase3 = _For('phase3/{}.json')
  # Phase 3 by the rules that `aggregation` names.
  aggregation = _For('phase3/aggregation/{}.json')
  clusters = _For('clusterings/{}/clusters.json')
  linkage = _For('clusterings/{}/linkage.npz')
  # The cuts among which distance_threshold=validation chose, and what each of them attained.
  choice = _For('clusterings/{}/choice.json')
  # The recursion of method bipartition, and the cosine similarities at each of its tests.
  splits = _For('clusterings/{}/splits.json')
  similarities = _For('clusterings/{}/similarities.npz')
  # The rounds of a method that alternates: what came of them, and who had which share in which model when.
  alternation = _For('clusterings/{}/alternation.json')
  memberships = _For('clusterings/{}/memberships.npz')
  # Of a kind of signatures: clusterings that are compared but not trained; distances and embedding.
  candidates = _For('clusterings/candidates_{}.json')
  geometry = _For('clusterings/geometry_{}.npz')
  # New clients with the model of FedAvg without clusters, and with those of the clusters that they are assigned to.
  new_clients_baseline = _At('new_clients/baseline.json')
  new_clients_of = _For('new_clients/clustering_{}.json')
  models = _For('models/{}')
  # Of a trajectory's name: figures of its rounds.
  metrics = _For('metrics/{}.csv')
  tensorboard = _For('tensorboard/{}')

  def model(self, label: str, cluster: int) -> pathlib.Path:
    """A cluster's trained model, for tf.keras.models.load_model."""
    return self.models(label) / f'cluster_{cluster:03d}.keras'

  def fold(self, index: int) -> 'RunFolder':
    """Where fold `index` (from 0) of the run lies."""
    return RunFolder(self.root / 'folds' / f'{index:02d}')

  def folds(self) -> list['RunFolder']:
    """The folds that are there."""
    return [RunFolder(path) for path in self._below('folds')]

  def saved_by_phases(self) -> Iterator[pathlib.Path]:
    """Yields the files from which the results of a finished run are put together, those of its folds too; its clients are not among them."""
    yield from (path for path in (self.config, self.environment, self.phase1) if path.exists())
    for name in ('clusterings', 'phase2', 'phase3', 'new_clients'):
      found = sorted((self.root / name).rglob('*'))
      yield from (path for path in found if path.is_file() and not files.is_temporary(path.name))
    for fold in self.folds():
      yield from fold.saved_by_phases()

  def sweep(self) -> None:
    """Removes what killed processes left in the folders of the run and in its own store; follows no link to a folder."""
    for folder in self._folders():
      files.sweep(folder)
    if not self.store.is_symlink():
      artifacts.Store(self.store).sweep()
    for fold in self.folds():
      fold.sweep()

  def forget(self, label: str) -> None:
    """Removes what is saved of a clustering, but for what the store has of it."""
    saved = (
      self.clusters, self.linkage, self.choice, self.splits, self.similarities, self.alternation,
      self.memberships, self.client_accuracy, self.phase2, self.phase3, self.aggregation, self.new_clients_of,
    )  # fmt: skip
    of_clusters = self._of_clusters('models', label) + self._of_clusters('metrics', label)
    for path in [*(at(label) for at in saved), *of_clusters]:
      path.unlink(missing_ok=True)
    for fold in self.folds():
      fold.forget(label)

  def foreign(self) -> pathlib.Path | None:
    """Returns something that lies, in a folder without a run, where a run would write, or a study that has figures there; None where nothing does."""
    folders = ('phase2', 'phase3', 'new_clients', 'clusterings', 'metrics', 'folds')
    written = (self.root / name for name in (*_FILES, *folders, *_OF_STUDIES))
    return next((path for path in written if os.path.lexists(path)), None)

  def sizes(self) -> dict[str, int]:
    """Returns the bytes that each file and folder of the run takes; a file of several names counts once, a link not at all."""
    counted, taken = set[tuple[int, int]](), dict[str, int]()
    for name in (*_FILES, self.config.name, *_FLAT, output_folders.STORE, 'models', 'tensorboard', 'folds'):
      path = self.root / name
      inside = [] if path.is_symlink() else [path, *sorted(path.rglob('*'))]
      for about in (each.lstat() for each in inside if each.is_file() and not each.is_symlink()):
        if (about.st_dev, about.st_ino) not in counted:
          counted.add((about.st_dev, about.st_ino))
          taken[name] = taken.get(name, 0) + about.st_size
    return taken

  def has_trained(self) -> bool:
    """Tells whether rounds of this run were trained, as far as its own folder shows."""
    if self.phase1.exists():
      return True
    try:
      if len(self.metrics('phase1').read_bytes().splitlines()) > 1:
        return True
    except OSError:
      pass
    if self.store.is_symlink():
      return False
    return any(artifacts.saved_rounds(folder) for folder in self.store.glob('fedavg-*'))

  def _folders(self) -> Iterator[pathlib.Path]:
    yield self.root
    for name in _FLAT:
      if not (self.root / name).is_symlink():
        yield self.root / name
    for name in _NESTED:
      yield from self._below(name)

  def _below(self, name: str) -> list[pathlib.Path]:
    folder = self.root / name
    if folder.is_symlink():
      return []
    return [path for path in sorted(folder.glob('*')) if path.is_dir() and not path.is_symlink()]

  def _of_clusters(self, name: str, label: str) -> list[pathlib.Path]:
    return [path for path in (self.root / name / label).glob('*') if _OF_CLUSTERS.fullmatch(path.name)]

  def load_config(self) -> config_lib.ExperimentConfig:
    """Reads the configuration of the run.

    Raises:
      InputError: if the folder holds no run, or its configuration is damaged.
    """
    self.check_is_run()
    return config_file.read_config(self.config)

  def check_is_run(self) -> None:
    """Raises InputError where the folder holds no run."""
    if not os.path.isfile(self.config):
      raise InputError(
        f'{argument("output_dir", self.root)} holds no run (no {self.config.name}); start one with python -m phases.phase1 '
        'or python -m phases.run_all'
      )

  def load(self, path: pathlib.Path, phase: str, read: Callable[[pathlib.Path], Any] | None = None) -> Any:
    """Reads a file that a phase saved.

    Args:
      read: Reads it; default: files.load_json.

    Raises:
      InputError: if that phase has not finished in this folder; says how to run it.
      DamagedFile: if the file is not what the phase saved.
    """
    try:
      return (read or files.load_json)(path)
    except FileNotFoundError as error:
      raise InputError(
        f'{self.root} has no {path.relative_to(self.root)} yet: run {self.command(phase)} first'
      ) from error

  def command(self, phase: str) -> str:
    """Returns the command that runs a phase in this folder."""
    # Only these take an experiment, and would take another one for it.
    given = [argument('config_file', shlex.quote(str(self.config)))] if phase in ('phase1', 'run_all') else []
    given += [argument('allow_imports')] if given and config_file.names_code(self.config) else []
    return ' '.join(
      [f'python -m phases.{phase}', *given, argument('output_dir', shlex.quote(str(self.root)))]
    )

  def load_finished(self, path: pathlib.Path, kind: type[_Kind]) -> _Kind:
    """Reads what a phase saved; raises as `load` does."""
    return self.load_record(path, kind.phase, kind)

  def load_record(self, path: pathlib.Path, phase: str, kind: type[_Record]) -> _Record:
    """Reads a record that a phase saved; raises as `load` does."""
    try:
      return kind.from_json(self.load(path, phase))
    except records.Mismatch as error:
      raise files.damage(path, f'it {error}') from error
