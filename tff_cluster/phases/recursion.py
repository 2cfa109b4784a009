"""Clusterings that are split while clients train, such as Clustered Federated Learning (CFL, Sattler et al. 2019).

What is tested and split is the method's (clustering/methods/bipartition.py); here are the clients that it trains, and what
a run keeps of it.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base import digests
from tff_cluster.base.types import Weights
from tff_cluster.clustering import assignment as assignment_lib
from tff_cluster.clustering.recursion import Segment, Trained
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files as files_lib

if TYPE_CHECKING:
  from tff_cluster.federated import trajectory as trajectory_lib


class Clients:
  """The clients of an experiment as a clustering.recursion.Federation.

  Attributes:
    client_ids, initial, first_round, last_round: See there.
  """

  def __init__(self, experiment: live_experiment_lib.Experiment, label: str):
    self._experiment, self._label = experiment, label
    self.client_ids = experiment.population.client_ids
    self.initial = experiment.trainer.computations.model.weights
    self.first_round = experiment.config.training.phase1_rounds
    self.last_round = experiment.config.training.last_round

  def train(
    self, members: np.ndarray, start: Weights, start_round: int, stop: Callable[[int, float], bool]
  ) -> Trained:
    """Trains a cluster to the last round, or until stop(round, norm of the mean update)."""
    from tff_cluster.federated import trajectory

    experiment = self._experiment
    with experiment.progress.stage(f'{self._label}: {len(members)} clients', self.last_round - start_round):
      outcome = trajectory.run(
        experiment.trajectory(members, start, start_round),
        self.last_round,
        on_round=lambda number, figures: experiment.progress.update(
          accuracy=figures['validation_accuracy'], update_norm=figures['update_norm']
        ),
        stop=stop,
      )
    experiment.trained += outcome.client_rounds_trained
    number = int(outcome.history.rounds[-1])
    norm = float(outcome.history.update_norm[-1])
    return Trained(number, norm, outcome.weights.get(number - 1), outcome.weights[number])

  def compare(self, members: np.ndarray, base: Weights, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the cosine similarities float64[members, members] and the norms float64[members] of a round's updates."""
    return _similarity(self._experiment, base, members, number)


def is_missing(folder: RunFolder, clustering: config_lib.ClusteringConfig) -> bool:
  """Tells whether a clustering that is made while clients train has not been made."""
  saved = (folder.splits(clustering.label), folder.similarities(clustering.label))
  return clustering.rule.splits and not all(path.exists() for path in saved)


def run_recursion(
  experiment: live_experiment_lib.Experiment, clustering: config_lib.ClusteringConfig
) -> None:
  """Trains and splits until the last round, and saves `clusterings/LABEL/splits.json`."""
  if not is_missing(experiment.folder, clustering):
    return
  with experiment.timed() as figures:
    found = clustering.rule.rounds(clustering.options, Clients(experiment, clustering.label))
    # Phase 1 has asked for its own rounds.
    begin = experiment.config.training.phase1_rounds
    experiment.asked += sum(
      len(s.members) * max(s.end_round - max(s.start_round, begin), 0) for s in found.segments
    )
    files_lib.save_arrays(
      experiment.folder.similarities(clustering.label),
      {f'{k:03d}': matrix for k, (_, matrix) in enumerate(found.tests)},
    )
    files_lib.save_json(
      experiment.folder.splits(clustering.label),
      phase_files.Splits([test for test, _ in found.tests], found.segments, figures()),
    )


def clusters(folder: RunFolder, label: str, client_ids: tuple[str, ...]) -> phase_files.Clusters:
  """Returns the clusters that were split no further."""
  leaves = leaves_of(segments(folder, label))
  members = [[client_ids[k] for k in leaf.members] for leaf in leaves.values()]
  found = assignment_lib.ClusterAssignment.from_clusters(members, client_ids).clusters
  told, out = notes(folder, label), excluded(folder, label)
  return phase_files.Clusters(found, list(client_ids), label, 'updates', None, None, told, out)


def leaves_of(recursion: Sequence[Segment]) -> dict[int, Segment]:
  """Returns the clusters that were split no further, by position."""
  parents = {segment.parent for segment in recursion}
  return {position: segment for position, segment in enumerate(recursion) if position not in parents}


def excluded(folder: RunFolder, label: str) -> tuple[str, ...]:
  """Returns the clients that were left out of some test, because their updates were not finite."""
  tests = _saved(folder, label).tests
  out = {client_id for test in tests for client_id in test.excluded}
  # The first test is of all clients, in their order.
  return tuple(i for i in (tests[0].cluster if tests else ()) if i in out)


def notes(folder: RunFolder, label: str) -> list[str]:
  """Returns what a reader must know of a recursion."""
  tests = _saved(folder, label).tests
  told = []
  if not tests:
    told.append('no cluster became stationary (stationary_norm), so none was tested')
  kept = [test for test in tests if test.verdict == 'kept']
  if kept:
    told.append(f'{len(kept)} of {len(tests)} tests found a split that a guard forbids: {kept[-1].reason}')
  told += [test.two_kinds.words for test in tests if test.two_kinds is not None]
  if out := excluded(folder, label):
    from tff_cluster.clustering import diverged_clients as diverged_clients_lib

    told.append(diverged_clients_lib.note_of_splits(out))
  return told


def train_segments(
  experiment: live_experiment_lib.Experiment, label: str
) -> list[tuple[Segment, 'trajectory_lib.Outcome']]:
  """Returns every cluster of a finished recursion with its outcome, training what the store does not have any more.

  The outcomes of clusters that were split hold the model before their last round too.
  """
  found: list[tuple[Segment, trajectory_lib.Outcome]] = []
  recursion = segments(experiment.folder, label)
  parents = {segment.parent for segment in recursion}
  for number, segment in enumerate(recursion):
    if segment.parent is None:
      start = experiment.trainer.computations.model.weights
    else:
      start = found[segment.parent][1].weights[segment.start_round]
    # The store has the model before the last round of those that were split: the updates of that round split them.
    keep = (segment.end_round - 1,) if number in parents else ()
    name = f'{label}/segment_{number:03d}'
    outcome = experiment.train(
      name, np.array(segment.members), start, segment.start_round, segment.end_round, keep
    )
    # `run_recursion` asked for all; what the store lacks is asked for again.
    experiment.asked += outcome.client_rounds_trained
    experiment.trained += outcome.client_rounds_trained
    found.append((segment, outcome))
  return found


def _similarity(
  experiment: live_experiment_lib.Experiment, weights: Weights, members: np.ndarray, number: int
) -> tuple[np.ndarray, np.ndarray]:
  """Returns what `Clients.compare` does, kept in the store."""
  from tff_cluster.clustering import diverged_clients as diverged_clients_lib
  from tff_cluster.clustering import halves, signatures

  clients = [experiment.population.client_digests[k] for k in members]
  folder = experiment.store.artifact(
    'similarity',
    {
      'base': digests.of_arrays(weights),
      'round': number,
      'clients': clients,
      'settings': experiment.settings,
    },
  )
  path = folder / 'similarity.npz'
  experiment.asked += len(members)
  with experiment.store.working_on(folder):
    if path.exists():
      try:
        saved = files_lib.load_arrays(path)
        return saved['similarity'], saved['norms']
      except files_lib.DamagedFile as damage:
        files_lib.set_aside(path, damage)
    updates = experiment.trainer.update_matrix(weights, members, number)
    experiment.trained += len(members)
    ids = tuple(experiment.population.client_ids[k] for k in members)
    norms = np.array([np.sqrt(np.square(update, dtype=np.float64).sum()) for update in updates])
    finite = diverged_clients_lib.finite_rows(updates)
    if finite.all():
      similarity = halves.similarities(signatures.Signatures(updates, ids))
    else:
      norms[~finite] = np.nan
      similarity = np.full((len(members), len(members)), np.nan)
      if finite.any():
        compared = signatures.Signatures.numbered(updates[finite])
        similarity[np.ix_(finite, finite)] = halves.similarities(compared)
    files_lib.save_arrays(path, {'similarity': similarity, 'norms': norms})
  return similarity, norms


def tested(folder: RunFolder, label: str) -> list[list[str]]:
  """Returns the clients of each cluster that was tested; of none where the recursion has not been run."""
  return [test.cluster for test in _saved(folder, label).tests] if folder.splits(label).exists() else []


def segments(folder: RunFolder, label: str) -> list[Segment]:
  """Returns every cluster of a finished recursion, each after the one that it was split from."""
  return _saved(folder, label).segments


def _saved(folder: RunFolder, label: str) -> phase_files.Splits:
  return folder.load_finished(folder.splits(label), phase_files.Splits)
