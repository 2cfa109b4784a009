"""Where the files of a run lie. Every phase reads what the phase before saved here."""

import dataclasses
import os
import pathlib
from typing import Any

from tff_cluster import config as config_lib
from tff_cluster import store
from tff_cluster.cli import config_file
from tff_cluster.errors import InputError


class _Saved(dict):
  """What a phase saved; a key that is not there is damage, not a fault of this software."""

  def __init__(self, path: pathlib.Path, saved: dict[str, Any]):
    super().__init__(saved)
    self._path = path

  def __missing__(self, key: str) -> Any:
    raise store.DamagedFile(f'{self._path} is damaged: it has no {key!r}; remove it to have it made again')


@dataclasses.dataclass(frozen=True)
class RunFolder:
  """The folder of one experiment (--output_dir).

  Attributes:
    root: The folder.
  """

  root: pathlib.Path

  @property
  def config(self) -> pathlib.Path:
    """The full configuration; repeats the run with --config_file."""
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

  @property
  def new_clients_baseline(self) -> pathlib.Path:
    """New clients with the model of FedAvg without clusters."""
    return self.root / 'new_clients' / 'baseline.json'

  def new_clients_of(self, label: str) -> pathlib.Path:
    """New clients with the models of the clusters that they are assigned to."""
    return self.root / 'new_clients' / f'clustering_{label}.json'

  def model(self, label: str, cluster: int) -> pathlib.Path:
    """A cluster's trained model, for tf.keras.models.load_model."""
    return self.root / 'models' / label / f'cluster_{cluster:03d}.keras'

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

  def load_config(self) -> config_lib.ExperimentConfig:
    """Reads the configuration of the run.

    Raises:
      InputError: if the folder holds no run, or its configuration is damaged.
    """
    if not os.path.lexists(self.config):
      raise InputError(
        f'--output_dir={self.root} holds no run (no {self.config.name}); start one with python -m phases.phase1 '
        'or python -m phases.run_all'
      )
    return config_file.read_config(self.config)

  def load_finished(self, path: pathlib.Path, phase: str) -> dict:
    """Reads what a phase saved.

    Raises:
      InputError: if that phase has not finished in this folder; says how to run it.
      DamagedFile: if the file is not what the phase saved; also when a key is asked for later that is not there.
    """
    try:
      saved = store.load_json(path)
      if not isinstance(saved, dict):
        raise store.DamagedFile(
          f'{path} is damaged: it holds no JSON object; remove it to have it made again'
        )
      return _Saved(path, saved)
    except FileNotFoundError as error:
      raise InputError(
        f'{self.root} has no {path.relative_to(self.root)} yet: run python -m phases.{phase} '
        f'--output_dir={self.root} first'
      ) from error
