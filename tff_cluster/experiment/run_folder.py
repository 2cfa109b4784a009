"""Where the files of a run lie. Every phase reads what the phase before saved here."""

import dataclasses
import os
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tff_cluster.base import records
from tff_cluster.base.errors import InputError, argument
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import config_file, phase_files
from tff_cluster.storage import artifacts, files

# Folders of a run that hold its files, and those that have a folder for each clustering.
_FLAT = (
  'phase2',
  'phase3',
  'phase3/aggregation',
  'new_clients',
  'figures',
  'disturbance',
  'clusterings',
  'metrics',
)
_NESTED = ('clusterings', 'models', 'metrics')
_FILES = ('environment.json', 'population.npz', 'new_clients.npz', 'phase1.json', 'results.json', 'arrays.npz',
          'report.html', 'scorecard.json', 'scorecard.csv')  # fmt: skip
_Kind = TypeVar('_Kind', bound=phase_files.PhaseFile)
_Record = TypeVar('_Record', bound=records.Record)
_OF_CLUSTERS = re.compile(r'(cluster|segment)_[0-9]{3,}\.(keras|csv)')


@dataclasses.dataclass(frozen=True)
class RunFolder:
  """The folder of one experiment (output_dir).

  Attributes:
    root: The folder.
  """

  root: pathlib.Path

  @property
  def config(self) -> pathlib.Path:
    """The full configuration, which repeats the run as config_file."""
    return self.root / 'config.json'

  @property
  def environment(self) -> pathlib.Path:
    """Python, packages and machine."""
    return self.root / 'environment.json'

  @property
  def population(self) -> pathlib.Path:
    """The clients' rows as they were trained on."""
    return self.root / 'population.npz'

  @property
  def new_clients(self) -> pathlib.Path:
    """The rows of the clients that take no part."""
    return self.root / 'new_clients.npz'

  @property
  def store(self) -> pathlib.Path:
    """Artifacts: trajectories, signatures and what else runs can share (artifacts.Artifact)."""
    return self.root / 'store'

  @property
  def phase1(self) -> pathlib.Path:
    return self.root / 'phase1.json'

  @property
  def baseline(self) -> pathlib.Path:
    return self.root / 'phase2' / 'baseline.json'

  @property
  def local(self) -> pathlib.Path:
    """Every client trained alone."""
    return self.root / 'phase2' / 'local.json'

  def clusters(self, label: str) -> pathlib.Path:
    """The clusters of one clustering, beside its distances' linkage where it has one."""
    return self.root / 'clusterings' / label / 'clusters.json'

  def linkage(self, label: str) -> pathlib.Path:
    return self.root / 'clusterings' / label / 'linkage.npz'

  def choice(self, label: str) -> pathlib.Path:
    """The cuts among which distance_threshold=validation chose, and what each of them attained."""
    return self.root / 'clusterings' / label / 'choice.json'

  def splits(self, label: str) -> pathlib.Path:
    """The recursion of method bipartition: what was tested and split, and which clusters trained when."""
    return self.root / 'clusterings' / label / 'splits.json'

  def similarities(self, label: str) -> pathlib.Path:
    """The cosine similarities at each of its tests."""
    return self.root / 'clusterings' / label / 'similarities.npz'

  def client_accuracy(self, label: str) -> pathlib.Path:
    """The test accuracy of every client in every round."""
    return self.root / 'phase2' / f'client_accuracy_{label}.npz'

  def candidates(self, signature: str) -> pathlib.Path:
    """Clusterings of the same signatures that are compared but not trained."""
    return self.root / 'clusterings' / f'candidates_{signature}.json'

  def geometry(self, signature: str) -> pathlib.Path:
    """Distances and embedding of the signatures."""
    return self.root / 'clusterings' / f'geometry_{signature}.npz'

  def phase2(self, label: str) -> pathlib.Path:
    return self.root / 'phase2' / f'clustering_{label}.json'

  def phase3(self, label: str) -> pathlib.Path:
    return self.root / 'phase3' / f'{label}.json'

  def aggregation(self, label: str) -> pathlib.Path:
    """Phase 3 of one clustering by the rules that `aggregation` names."""
    return self.root / 'phase3' / 'aggregation' / f'{label}.json'

  @property
  def new_clients_baseline(self) -> pathlib.Path:
    """New clients with the model of FedAvg without clusters."""
    return self.root / 'new_clients' / 'baseline.json'

  def new_clients_of(self, label: str) -> pathlib.Path:
    """New clients with the models of the clusters that they are assigned to."""
    return self.root / 'new_clients' / f'clustering_{label}.json'

  def models(self, label: str) -> pathlib.Path:
    return self.root / 'models' / label

  def model(self, label: str, cluster: int) -> pathlib.Path:
    """A cluster's trained model, for tf.keras.models.load_model."""
    return self.models(label) / f'cluster_{cluster:03d}.keras'

  def metrics(self, name: str) -> pathlib.Path:
    """Per-round figures as CSV."""
    return self.root / 'metrics' / f'{name}.csv'

  def tensorboard(self, name: str) -> pathlib.Path:
    return self.root / 'tensorboard' / name

  @property
  def results(self) -> pathlib.Path:
    return self.root / 'results.json'

  @property
  def arrays(self) -> pathlib.Path:
    return self.root / 'arrays.npz'

  def sweep(self) -> None:
    """Removes what killed processes left in the folders of the run and in its own store; follows no link to a folder."""
    for folder in self._folders():
      files.sweep(folder)
    if not self.store.is_symlink():
      artifacts.Store(self.store).sweep()
    for fold in self._below('folds'):
      RunFolder(fold).sweep()

  def forget(self, label: str) -> None:
    """Removes what is saved of a clustering, but for what the store has of it."""
    for path in (
      self.clusters(label), self.linkage(label), self.choice(label), self.splits(label), self.similarities(label),
      self.client_accuracy(label), self.phase2(label), self.phase3(label), self.aggregation(label),
      self.new_clients_of(label),
      *self._of_clusters('models', label), *self._of_clusters('metrics', label),
    ):  # fmt: skip
      path.unlink(missing_ok=True)
    for fold in self._below('folds'):
      RunFolder(fold).forget(label)

  def foreign(self) -> pathlib.Path | None:
    """Returns something that lies, in a folder without a run, where a run would write; None where nothing does."""
    written = [self.root / name for name in _FILES]
    written += [
      self.root / name for name in ('phase2', 'phase3', 'new_clients', 'clusterings', 'metrics', 'folds')
    ]
    return next((path for path in written if os.path.lexists(path)), None)

  def sizes(self) -> dict[str, int]:
    """Returns the bytes that each file and folder of the run takes; a file of several names counts once, a link not at all."""
    counted, taken = set[tuple[int, int]](), dict[str, int]()
    for name in (*_FILES, self.config.name, *_FLAT, 'store', 'models', 'tensorboard', 'folds'):
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
    if not os.path.lexists(self.config):
      raise InputError(
        f'{argument("output_dir", self.root)} holds no run (no {self.config.name}); start one with python -m phases.phase1 '
        'or python -m phases.run_all'
      )
    return config_file.read_config(self.config)

  def load(self, path: pathlib.Path, phase: str, read: Callable[[pathlib.Path], Any] | None = None) -> Any:
    """Reads a file that a phase saved.

    Args:
      path: The file.
      phase: The phase.
      read: Reads it; default: store.load_json.

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
    given = f'{argument("config_file", self.config)} ' if phase in ('phase1', 'run_all') else ''
    return f'python -m phases.{phase} {given}{argument("output_dir", self.root)}'

  def load_finished(self, path: pathlib.Path, kind: type[_Kind]) -> _Kind:
    """Reads what a phase saved; raises as `load` does."""
    return self.load_record(path, kind.phase, kind)

  def load_record(self, path: pathlib.Path, phase: str, kind: type[_Record]) -> _Record:
    """Reads a record that a phase saved; raises as `load` does."""
    try:
      return kind.from_json(self.load(path, phase))
    except records.Mismatch as error:
      raise files.damage(path, f'it {error}') from error
