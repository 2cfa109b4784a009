"""From the signatures of a finished Phase 1 to clusters, with the training that a clustering itself asks for."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base.words import plural
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import alternation, client_signatures, failures, recursion, threshold_choice
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files

if TYPE_CHECKING:
  from tff_cluster.clustering import replay as replay_lib
  from tff_cluster.clustering import signatures as signatures_lib


def make_clusterings(
  experiment: live_experiment_lib.Experiment, clusterings: Sequence[config_lib.ClusteringConfig]
) -> dict[str, Exception]:
  """Makes clusterings, with the training that they ask for themselves; returns what failed, by label."""
  check_signatures(experiment.folder, clusterings)
  failed: dict[str, Exception] = {}
  # Those that alternate may start from the clusters of others.
  for clustering in sorted(clusterings, key=lambda each: each.rule.alternates):
    if is_made(experiment.folder, clustering):
      continue
    with (
      failures.apart(failed, clustering.label),
      experiment.progress.phase(f'clustering {clustering.label}') as tell,
    ):
      prepare_clustering(experiment, clustering)
      run_clustering(experiment.folder, clustering, experiment.config.training.seed)
      path = experiment.folder.clusters(clustering.label)
      tell(plural(len(experiment.folder.load_finished(path, phase_files.Clusters).clusters), 'cluster'))
  return failed


def needs_training(folder: RunFolder, clustering: config_lib.ClusteringConfig) -> bool:
  """Tells whether a clustering cannot be made from what Phase 1 saved: prepare_clustering comes first."""
  missing = (each.is_missing(folder, clustering) for each in (threshold_choice, recursion, alternation))
  return any(missing)


def prepare_clustering(
  experiment: live_experiment_lib.Experiment, clustering: config_lib.ClusteringConfig
) -> None:
  """Does the training that a clustering itself asks for: choosing its threshold, CFL's recursion, or rounds that alternate."""
  threshold_choice.run_choice(experiment, clustering)
  recursion.run_recursion(experiment, clustering)
  alternation.run(experiment, clustering)


def check_signatures(folder: RunFolder, clusterings: Sequence[config_lib.ClusteringConfig]) -> None:
  """Reads the signatures of the clusterings that are still to be made: what is wrong with them is no clustering's fault.

  Raises:
    InputError: see client_signatures.load.
    DamagedFile: if a file of them is damaged.
  """
  kinds = {clustering.signature for clustering in clusterings if not is_made(folder, clustering)}
  for kind in sorted(kinds & set(folder.load_finished(folder.phase1, phase_files.Phase1).signatures)):
    client_signatures.load(folder, kind)


def is_made(folder: RunFolder, clustering: config_lib.ClusteringConfig) -> bool:
  """Tells whether everything is there that belongs to a clustering's clusters."""
  label, kind = clustering.label, clustering.signature
  files = [folder.clusters(label), folder.geometry(kind), folder.candidates(kind)]
  if clustering.rule.has_linkage:
    files.append(folder.linkage(label))
  return not needs_training(folder, clustering) and all(path.exists() for path in files)


def run_clustering(folder: RunFolder, clustering: config_lib.ClusteringConfig, seed: int) -> None:
  """Clusters the devices of a finished Phase 1 and saves `clusterings/LABEL/clusters.json`. No TensorFlow."""
  from tff_cluster.clustering import diverged_clients, replay
  from tff_cluster.data import saved

  if is_made(folder, clustering):
    return
  kind = clustering.signature
  signatures, client_ids = client_signatures.load(folder, kind), client_signatures.client_ids(folder, kind)
  if not folder.geometry(kind).exists():
    files.save_arrays(folder.geometry(kind), _geometry(signatures, client_ids))
  if not folder.candidates(kind).exists():
    answers = replay.Replay(signatures, seed, with_silhouettes=True).alternatives()
    found = [_untrained(answer) for answer in answers]
    files.save_json(folder.candidates(kind), phase_files.Candidates(found))
  rule = clustering.rule
  if rule.trains:
    trained = recursion.clusters if rule.splits else alternation.clusters
    _save_clusters(folder, clustering, trained(folder, clustering.label, client_ids))
    return
  choice = None
  if rule.on_validation(clustering.options):
    choice = folder.load_finished(folder.choice(clustering.label), phase_files.ChoiceOfThreshold).choice
    clustering = threshold_choice.chosen(folder, clustering)
  truths, rows = None, None
  if rule.oracle or rule.reads_rows:
    population = saved.load_population(folder.population)
    truths, rows = population.truths, population.training_rows()
  outcome = diverged_clients.cluster(clustering, signatures, client_ids, seed, truths, rows)
  if rule.has_linkage:
    files.save_arrays(folder.linkage(clustering.label), {'linkage': np.asarray(outcome.linkage)})
  notes, assignment = list(outcome.notes), outcome.assignment
  if choice:
    after = f' after {plural(choice.rounds, "round")}' if choice.rounds > 1 else ''
    notes.append(f'the best of several thresholds on validation rows{after}')
  made = phase_files.Clusters(
    assignment.clusters,
    list(assignment.client_ids),
    clustering.label,
    kind,
    outcome.threshold,
    choice,
    notes,
    tuple(outcome.excluded),
    shares=None if assignment.shares is None else assignment.shares.tolist(),
    sent_bytes=outcome.sent_bytes,
  )
  _save_clusters(folder, clustering, made)


def _untrained(answer: 'replay_lib.Answer') -> phase_files.CandidateClusters:
  words = answer.config.words()
  return phase_files.CandidateClusters(
    words['method'],
    words['title'],
    words['told'],
    dict(answer.found.given),
    answer.num_clusters,
    answer.memberships,
    answer.silhouette,
    list(answer.found.notes),
    answer.assignment.clusters if answer.assignment else None,
  )


def _save_clusters(
  folder: RunFolder, clustering: config_lib.ClusteringConfig, made: phase_files.Clusters
) -> None:
  if not folder.clusters(made.label).exists():  # Else something beside it had to be made again.
    files.save_json(folder.clusters(made.label), dataclasses.replace(made, code=clustering.code))


def _geometry(signatures: 'signatures_lib.Signatures', client_ids: tuple[str, ...]) -> dict[str, np.ndarray]:
  """Returns distances float32[pairs] (distances.condensed) and embedding float64[clients, 2], NaN where a signature is not finite."""
  from tff_cluster.clustering import distances as distances_lib
  from tff_cluster.clustering import diverged_clients, embedding

  distances = signatures.distances('l2')
  here, count = diverged_clients.among(client_ids, signatures.client_ids), len(client_ids)
  everybodys = np.full((count, count), np.nan, np.float32)
  everybodys[np.ix_(here, here)] = distances.astype(np.float32)
  points = np.full((count, 2), np.nan)
  points[here] = embedding.classical_scaling(distances)
  return {'distances': distances_lib.condensed(everybodys), 'embedding': points}
