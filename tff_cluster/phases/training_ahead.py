"""Trains side by side what Phase 2 asks for one after the other: FedAvg without clusters, all clusters, every client alone.

A FedAvg round of a few clients, or a cluster that draws one, leaves the other cores idle, and the next clustering need not
wait for it. All of these are trajectories that the store keeps, so they are trained here first; the phases then find them,
and measure and save as they do without this. What goes wrong is left to the phase that asks for it. Fine-tuning and Ditto come
after FedAvg's last round, and train their clients side by side themselves.
"""

import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tff_cluster.base import cancelling
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.config import FEDAVG, PERSONALIZED
from tff_cluster.phases import cluster_training, failures, personalization, phase1, phase2
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
  """Seconds that pieces of a phase took, each on its own clock, and the client-rounds that the store lacked.

  Those for where clusters start, too, which have been added to the experiment's.
  """

  seconds: float = 0.0
  trained: int = 0
  for_starts: int = 0


def train(experiment: live_experiment_lib.Experiment) -> None:
  """Trains what is missing, and tells the experiment what each phase has spent here: its share of the wall time."""
  missing = _missing(experiment)
  if len(missing) < 2:
    return  # A phase trains its own side by side.
  spent = {phase: _Spent() for phase in missing}
  lock = threading.Lock()

  def work(piece: _Piece) -> None:
    began, trained = time.monotonic(), 0
    try:
      trained = piece.train().client_rounds_trained
    except Exception as error:
      if isinstance(error, cancelling.Cancelled) or failures.ends_all(error):
        raise
      # The phase fails of it again, and tells.
    took = time.monotonic() - began
    with lock:
      spent[piece.phase].seconds += took
      spent[piece.phase].trained += trained

  begun = time.monotonic()
  with experiment.progress.phase(AHEAD, sum(missing.values())):
    experiment.each_of(work, _pieces(experiment, spent))
  wall, busy = time.monotonic() - begun, sum(found.seconds for found in spent.values())
  for phase, found in spent.items():
    experiment.trained += found.trained
    experiment.spent_ahead[phase] = (
      wall * found.seconds / busy if busy else 0.0,
      found.trained + found.for_starts,
    )


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


def _pieces(experiment: live_experiment_lib.Experiment, spent: dict[str, _Spent]) -> Iterator[_Piece]:
  """Yields the trajectories of phases; where clusters start is read, or trained, once their turn comes."""
  for phase, found in spent.items():
    if phase == FEDAVG:
      yield _Piece(phase, lambda: phase1.train_baseline(experiment))
    elif phase == PERSONALIZED[personalization.LOCAL]:
      for client in range(experiment.population.num_clients):
        yield _Piece(phase, functools.partial(personalization.train_alone, experiment, client))
    else:
      label = next(c.label for c in experiment.config.clusterings if phase2.name_of(c.label) == phase)
      trained = experiment.trained
      try:
        clusters = cluster_training.Work(experiment, label)
      except Exception as error:
        if failures.ends_all(error):
          raise
        continue  # Phase 2 fails of it again, and tells.
      finally:
        found.for_starts += experiment.trained - trained
      for row in clusters.idle_first():
        yield _Piece(phase, functools.partial(clusters.train, row))
