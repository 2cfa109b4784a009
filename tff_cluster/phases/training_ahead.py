"""Trains side by side what Phase 2 asks for one after the other: FedAvg without clusters, all clusters, every client alone.

A FedAvg round of a few clients, or a cluster that draws one, leaves the other cores idle, and the next clustering need not
wait for it. All of these are trajectories that the store keeps, so they are trained here first; the phases then find them,
and measure and save as they do without this. What goes wrong is left to the phase that asks for it. Fine-tuning and Ditto come
after FedAvg's last round, and train their clients side by side themselves.
"""

import contextlib
import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tff_cluster.base.errors import InputError
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.config import FEDAVG, PERSONALIZED
from tff_cluster.phases import cluster_training, personalization, phase1, phase2
from tff_cluster.phases import live_experiment as live_experiment_lib

if TYPE_CHECKING:
  from tff_cluster.federated import trajectory

AHEAD = 'Phase 2, all of its models'


@dataclasses.dataclass(frozen=True)
class _Piece:
  """A trajectory that a phase asks for."""

  phase: str
  train: Callable[[], 'trajectory.Outcome']


@dataclasses.dataclass
class _Spent:
  """Seconds that pieces of a phase took, each on its own clock, and the client-rounds that the store lacked."""

  seconds: float = 0.0
  trained: int = 0


def train(experiment: live_experiment_lib.Experiment) -> None:
  """Trains what is missing, and tells the experiment what each phase has spent here: its share of the wall time."""
  missing = _missing(experiment)
  if len(missing) < 2:
    return  # A phase trains its own side by side.
  spent: dict[str, _Spent] = {}
  lock = threading.Lock()

  def work(piece: _Piece) -> None:
    began, trained = time.monotonic(), 0
    with contextlib.suppress(InputError, MemoryError):  # The phase fails of it again, and tells.
      trained = piece.train().client_rounds_trained
    took = time.monotonic() - began
    with lock:
      found = spent.setdefault(piece.phase, _Spent())
      found.seconds += took
      found.trained += trained

  begun = time.monotonic()
  with experiment.progress.phase(AHEAD, sum(missing.values())):
    experiment.each_of(work, _pieces(experiment, list(missing)))
  wall, busy = time.monotonic() - begun, sum(found.seconds for found in spent.values())
  for phase, found in spent.items():
    experiment.trained += found.trained
    experiment.spent_ahead[phase] = (wall * found.seconds / busy if busy else 0.0, found.trained)


def _missing(experiment: live_experiment_lib.Experiment) -> dict[str, int]:
  """Returns the phases that have not finished, with the rounds that they train one after the other."""
  folder, config = experiment.folder, experiment.config
  later = config.training.phase2_rounds
  missing = {} if phase1.baseline_is_done(experiment) else {FEDAVG: later}
  for clustering in config.clusterings:
    label = clustering.label
    if not (clustering.rule.trains or folder.phase2(label).exists()):
      clusters = folder.load_finished(folder.clusters(label), phase_files.Clusters).clusters
      missing[phase2.name_of(label)] = later * len(clusters)
  if personalization.LOCAL in personalization.missing(experiment):
    missing[PERSONALIZED[personalization.LOCAL]] = 0
  return missing


def _pieces(experiment: live_experiment_lib.Experiment, phases: list[str]) -> Iterator[_Piece]:
  """Yields the trajectories of phases; where clusters start is read once their turn comes."""
  for phase in phases:
    if phase == FEDAVG:
      yield _Piece(phase, lambda: phase1.train_baseline(experiment))
    elif phase == PERSONALIZED[personalization.LOCAL]:
      for client in range(experiment.population.num_clients):
        yield _Piece(phase, functools.partial(personalization.train_alone, experiment, client))
    else:
      label = next(c.label for c in experiment.config.clusterings if phase2.name_of(c.label) == phase)
      try:
        clusters = cluster_training.Work(experiment, label)
      except (InputError, MemoryError):
        continue  # Phase 2 fails of it again, and tells.
      for row in clusters.idle_first():
        yield _Piece(phase, functools.partial(clusters.train, row))
