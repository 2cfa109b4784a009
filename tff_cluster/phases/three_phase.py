"""The three-phase method of Rohith et al. 2020, "Federated Learning through Distance-Based Clustering".

Phase 1   FedAvg over all clients; every device keeps the weights that it sent in the last round.
(between) clustering of those weights; the clusterings all stand on the same Phase 1.
Phase 2   each cluster starts from the plain mean of its members' weights and runs FedAvg on its own.
Phase 3   average, weighted and blended aggregation of the cluster models, beside each client's own model.

Departures and choices: E = 1 and B = 20 are defaults, the paper names neither. A cluster's "highest
attained accuracy" is measured on its members' validation rows, never on test rows. Beside the clusterings
stands a baseline that the paper lacks: the same FedAvg gone on for as many rounds as Phase 2 has.

FL+HC (Briggs et al. 2020, Algorithm 1) is the same phases with signature=updates and cluster_start=global_model. With
a method that alternates, such as CFL's recursion, clustering and Phase 2 are one (phases/training_while_clustering.py).
"""

import contextlib
import dataclasses
import logging
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import CLIENTS
from tff_cluster.base.errors import EnvironmentFault, InputError, argument
from tff_cluster.clustering import assignment as assignment_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import (
  client_signatures,
  cluster_training,
  evaluation,
  expert_evaluation,
  rule_evaluation,
  threshold_choice,
)
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.phases import training_while_clustering as recursion
from tff_cluster.storage import files as files_lib
from tff_cluster.storage import folder_guard, saved_rounds

if TYPE_CHECKING:
  from tff_cluster.clustering import signatures as signatures_lib

FEDAVG = 'FedAvg without clusters'
_LOG = logging.getLogger(__name__)


class ClusteringsFailed(InputError):
  """Some clusterings of a run, or rules of Phase 3 that it was given, failed; it has the others.

  Attributes:
    done: Labels of the others.
    report: The report on them, where one was asked for.
  """

  def __init__(self, failed: Mapping[str, Exception], done: Sequence[str]):
    causes = '; '.join(_cause(what, error) for what, error in failed.items())
    super().__init__(
      f'{causes}. What failed is not in the run any more: give it again with other parameters, or leave it out; '
      f'done: {", ".join(done) or "none"}'
    )
    self.done = tuple(done)
    self.report: pathlib.Path | None = None


@contextlib.contextmanager
def apart(failed: dict[str, Exception], label: str) -> Iterator[None]:
  """Notes what goes wrong with one clustering, or one rule of Phase 3, so that the others go on; a failing machine ends all.

  Args:
    failed: Takes the error.
    label: Of the clustering; of a rule, Rule.called.
  """
  try:
    yield
  except (EnvironmentFault, OSError):
    raise
  except Exception as error:
    if folder_guard.lost():
      raise
    if not isinstance(error, (InputError, MemoryError)):
      _LOG.error('%s failed by a fault of this software', label, exc_info=True)
    failed[label] = error


def drop(
  folder: RunFolder, config: config_lib.ExperimentConfig, failed: Mapping[str, Exception]
) -> config_lib.ExperimentConfig:
  """Takes what failed out of a run, so that it can be given again in another way, and returns what is left.

  What was saved of it stays until another of its name comes.
  """
  left = config.without(failed)
  if failed:
    files_lib.save_json(folder.config, left.to_json())
  return left


def make_clusterings(
  experiment: live_experiment_lib.Experiment, clusterings: Sequence[config_lib.ClusteringConfig]
) -> dict[str, Exception]:
  """Makes clusterings, with the training that they ask for themselves; returns what failed, by label."""
  check_signatures(experiment.folder, clusterings)
  failed: dict[str, Exception] = {}
  for clustering in clusterings:
    if is_made(experiment.folder, clustering):
      continue
    with apart(failed, clustering.label), experiment.progress.phase(f'clustering {clustering.label}') as tell:
      prepare_clustering(experiment, clustering)
      run_clustering(experiment.folder, clustering, experiment.config.training.seed)
      saved = experiment.folder.load_finished(experiment.folder.clusters(clustering.label), 'clustering')
      tell('1 cluster' if len(saved['clusters']) == 1 else f'{len(saved["clusters"]):,} clusters')
  return failed


def run_phase1(experiment: live_experiment_lib.Experiment) -> None:
  """Runs FedAvg over all clients (section 6.1) and saves `phase1.json` and the signatures that clusterings ask for."""
  if client_signatures.phase1_is_whole(experiment.folder):
    return
  training, trainer = experiment.config.training, experiment.trainer
  last = training.phase1_rounds
  with experiment.timed('Phase 1', last + experiment.population.num_clients) as figures:
    outcome = experiment.train(
      'phase1', experiment.everyone, trainer.computations.model.weights, 0, last, keep=(last - 1,)
    )
    kinds = sorted(client_signatures.kinds(training, (c.signature for c in experiment.config.clusterings)))
    signatures = {kind: client_signatures.save(experiment, kind, outcome.weights) for kind in kinds}
    client_signatures.check(experiment, signatures)
    sketch = client_signatures.sketch_report(experiment, min(signatures.values())) if signatures else None
    stage = evaluation.stage(experiment, outcome, last)
    files_lib.save_json(
      experiment.folder.phase1,
      {
        'stage': stage,
        'trajectory': outcome.checkpoints.to_json(),
        'signatures': signatures,
        'sketch': sketch,
        'parameters': trainer.computations.model.num_parameters,
        'model_bytes': trainer.computations.model.num_bytes,
        'timing': figures(accuracy=stage['evaluation']['clients']['mean_client_accuracy']),
      },
    )


def needs_training(folder: RunFolder, clustering: config_lib.ClusteringConfig) -> bool:
  """Tells whether a clustering cannot be made from what Phase 1 saved: prepare_clustering comes first."""
  return threshold_choice.is_missing(folder, clustering) or recursion.is_missing(folder, clustering)


def prepare_clustering(
  experiment: live_experiment_lib.Experiment, clustering: config_lib.ClusteringConfig
) -> None:
  """Does the training that a clustering itself asks for: choosing its threshold, or CFL's recursion."""
  threshold_choice.run_choice(experiment, clustering)
  recursion.run_recursion(experiment, clustering)


def check_signatures(folder: RunFolder, clusterings: Sequence[config_lib.ClusteringConfig]) -> None:
  """Reads the signatures of the clusterings that are still to be made: what is wrong with them is no clustering's fault.

  Raises:
    InputError: see client_signatures.load.
    DamagedFile: if a file of them is damaged.
  """
  kinds = {clustering.signature for clustering in clusterings if not is_made(folder, clustering)}
  for kind in sorted(kinds & set(folder.load_finished(folder.phase1, 'phase1')['signatures'])):
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
    files_lib.save_arrays(folder.geometry(kind), _geometry(signatures, client_ids))
  if not folder.candidates(kind).exists():
    files_lib.save_json(
      folder.candidates(kind),
      [
        {
          **{name: candidate.config.words()[name] for name in ('method', 'title', 'told')},
          'parameters': dict(candidate.found.given),
          'num_clusters': candidate.num_clusters,
          'memberships': candidate.memberships,
          'silhouette': candidate.silhouette,
          'clusters': candidate.assignment.clusters if candidate.assignment else None,
          'notes': list(candidate.found.notes),
        }
        for candidate in replay.Replay(signatures, seed, with_silhouettes=True).alternatives()
      ],
    )
  rule = clustering.rule
  if rule.alternates:
    assignment = recursion.assignment(folder, clustering.label, client_ids)
    notes, out = recursion.notes(folder, clustering.label), recursion.excluded(folder, clustering.label)
    _save_clusters(folder, clustering.label, assignment, 'updates', None, None, notes, out)
    return
  choice = None
  if rule.on_validation(clustering.options):
    choice = folder.load_finished(folder.choice(clustering.label), 'clustering')
    del choice['timing']
    clustering = threshold_choice.chosen(folder, clustering)
  truths = saved.load_population(folder.population).truths if rule.oracle else None
  outcome = diverged_clients.cluster(clustering, signatures, client_ids, seed, truths)
  if rule.has_linkage:
    files_lib.save_arrays(folder.linkage(clustering.label), {'linkage': np.asarray(outcome.linkage)})
  notes = [*outcome.notes, *(['the best of several thresholds on validation rows'] if choice else [])]
  _save_clusters(
    folder, clustering.label, outcome.assignment, kind, outcome.threshold, choice, notes, outcome.excluded
  )


def run_baseline(experiment: live_experiment_lib.Experiment) -> None:
  """Goes on with Phase 1 for the rounds of Phase 2, unclustered, and saves `phase2/baseline.json`."""
  if _baseline_is_done(experiment):
    return
  training = experiment.config.training
  last = training.phase1_rounds + training.phase2_rounds
  with experiment.timed(FEDAVG, last) as figures:
    weights = experiment.trainer.computations.model.weights
    keep = {
      training.phase1_rounds - 1,
      training.phase1_rounds,
      *cluster_training.rounds_kept_of_fedavg(experiment),
    }
    outcome = experiment.train('baseline', experiment.everyone, weights, 0, last, keep)
    stage = evaluation.stage(experiment, outcome, last)
    timing = figures(accuracy=stage['evaluation']['clients']['mean_client_accuracy'])
    files_lib.save_json(
      experiment.folder.baseline,
      {'stage': stage, 'trajectory': outcome.checkpoints.to_json(), 'timing': timing},
    )


def _baseline_is_done(experiment: live_experiment_lib.Experiment) -> bool:
  """Tells whether the baseline has finished, with the model that is still asked for: by new clients only."""
  folder = experiment.folder
  if not folder.baseline.exists():
    return False
  if not experiment.config.data.new_clients or folder.new_clients_baseline.exists():
    return True
  saved = folder.load_finished(folder.baseline, 'phase2')['trajectory']
  return saved_rounds.are_whole(experiment.store, saved_rounds.Checkpoints.from_json(saved, folder.baseline))


def run_phase2(experiment: live_experiment_lib.Experiment, label: str, export_models: bool = True) -> None:
  """Trains every cluster of a clustering (section 6.2) and saves `phase2/clustering_LABEL.json` and the models.

  Args:
    experiment: The experiment.
    label: Which clustering.
    export_models: Whether to write the models as .keras files beside the store. What was written earlier and is damaged
      is made again in any case.
  """
  folder, training = experiment.folder, experiment.config.training
  if phase2_is_done(folder, label, export_models) and not _models_are_missing(experiment, label):
    return
  # Where only something beside it is missing or damaged, what was measured stays.
  saved = dict(folder.load_finished(folder.phase2(label), 'phase2')) if folder.phase2(label).exists() else {}
  first, last = training.phase1_rounds + 1, training.phase1_rounds + training.phase2_rounds
  count = len(folder.load_finished(folder.clusters(label), 'clustering')['clusters'])
  with experiment.timed(f'Phase 2 of {label}', count * training.phase2_rounds) as figures:
    trained = cluster_training.train_clusters(experiment, label)
    models = dict(saved.get('models', {}))
    for row, outcome in enumerate(trained.clusters):
      path = folder.model(label, row)
      if export_models or _is_changed(path, models.get(path.name)):
        models[path.name] = experiment.export_model(path, outcome.weights[last], models.get(path.name))
    if folder.splits(label).exists():
      _, _, accuracy = evaluation.client_accuracies(experiment, trained.outcomes, 1)
      files_lib.save_arrays(folder.client_accuracy(label), {'test': accuracy.astype(np.float32)})
    dropped = evaluation.dropped_updates(trained.outcomes, first)
    best = [evaluation.best_validation(experiment, outcome, first) for outcome in trained.clusters]
    history = evaluation.clustered_history(experiment, trained.outcomes, first)
    files_lib.save_json(
      folder.phase2(label),
      saved | trained.kept() | {'models': models}
      if saved
      else {
        **trained.kept(),
        'ledger': evaluation.ledger(experiment, trained.client_rounds),
        'equal_cost': _at_equal_cost(experiment, trained, best),
        'history': history,
        'best_validation': best,
        'timing': figures(accuracy=history['test_accuracy'][-1]),
        'models': models,
        **({'dropped_updates': dropped} if dropped else {}),
      },
    )


def _at_equal_cost(
  experiment: live_experiment_lib.Experiment,
  trained: cluster_training.Trained,
  best_validation: Sequence[float],
) -> dict[str, Any] | None:
  """Returns `equal_cost` of results.json, with each client's own model after the last round that FedAvg's cost pays."""
  equal_cost = trained.equal_cost
  if equal_cost is None:
    return None
  models = rule_evaluation.ClusterModels(
    experiment, trained.assignment, trained.models(equal_cost.round), best_validation
  )
  evaluated = evaluation.evaluation(
    experiment, models.stacked, rules.with_role(CLIENTS).mixing(models.evidence)
  )
  return dataclasses.asdict(equal_cost) | {'evaluation': evaluated}


def _models_are_missing(experiment: live_experiment_lib.Experiment, label: str) -> bool:
  """Tells whether a later phase still needs models of a finished Phase 2 that the store does not have any more."""
  from tff_cluster.phases import added_rules  # Knows this module.

  folder, config = experiment.folder, experiment.config
  later = [folder.phase3(label)]
  later += [folder.new_clients_of(label)] if config.data.new_clients else []
  measured = all(path.exists() for path in later) and added_rules.is_measured(folder, config, label)
  return not measured and not cluster_training.are_kept(experiment, label)


def phase2_is_done(folder: RunFolder, label: str, export_models: bool) -> bool:
  """Tells whether Phase 2 of a clustering has finished, and its models, where they are exported, are as they were."""
  if not folder.phase2(label).exists():
    return False
  if folder.splits(label).exists() and not folder.client_accuracy(label).exists():
    return False
  models = folder.load_finished(folder.phase2(label), 'phase2').get('models', {})
  paths = {folder.models(label) / name: digest for name, digest in models.items()}
  if export_models and not (paths and all(path.exists() for path in paths)):
    return False
  return not any(_is_changed(path, digest) for path, digest in paths.items())


def _is_changed(path: pathlib.Path, digest: str | None) -> bool:
  """Tells whether a file that was written with this SHA-256 is there with another one."""
  return digest is not None and files_lib.file_digest(path) not in (None, digest)


def is_done(folder: RunFolder, config: config_lib.ExperimentConfig, export_models: bool) -> bool:
  """Tells whether there is nothing left to train, cluster, measure or export in a run."""
  finished = [folder.phase1, folder.baseline, *(folder.phase3(c.label) for c in config.clusterings)]
  finished += [folder.local] if config.evaluation.local_training else []
  if config.data.new_clients:
    finished += [folder.new_clients_of(clustering.label) for clustering in config.clusterings]
    finished.append(folder.new_clients_baseline)
  return all(path.exists() for path in finished) and all(
    is_made(folder, clustering) and phase2_is_done(folder, clustering.label, export_models)
    for clustering in config.clusterings
  )


def run_phase3(experiment: live_experiment_lib.Experiment, label: str) -> None:
  """Evaluates a clustering's models (section 6.3) and saves `phase3/LABEL.json`."""
  folder = experiment.folder
  if folder.phase3(label).exists():
    return
  applied, own = rules.mixing_rules(), rules.with_role(CLIENTS)
  of_clusters = {rule.name: rule.of_clusters for rule in applied if rule.of_clusters is not None}
  with experiment.timed(f'Phase 3 of {label}', len(applied) + 1 + len(of_clusters)) as figures:
    models = rule_evaluation.of_phase2(experiment, label)
    assignment = models.assignment
    evaluations, clusters = {}, {}
    for rule in applied:
      evaluations[rule.name] = models.evaluation(rule)
      experiment.progress.update()
    matrices = {'unblended': np.eye(assignment.num_clusters)}
    matrices |= {name: of_models(assignment.num_clusters) for name, of_models in of_clusters.items()}
    for name, matrix in matrices.items():
      clusters[name] = evaluation.cluster_scores(experiment, assignment, models.stacked, matrix)
      experiment.progress.update()
    experts = None
    if experiment.config.evaluation.experts:
      experts = expert_evaluation.evaluate(experiment, models.models)
    files_lib.save_json(
      folder.phase3(label),
      {
        'evaluations': evaluations,
        'cluster_scores': clusters,
        'experts': experts,
        'timing': figures(accuracy=evaluations[own.name]['clients']['mean_client_accuracy']),
      },
    )


def _geometry(signatures: 'signatures_lib.Signatures', client_ids: tuple[str, ...]) -> dict[str, np.ndarray]:
  """Returns distances float32[clients, clients] and embedding float64[clients, 2], NaN where a signature is not finite."""
  from tff_cluster.clustering import diverged_clients, embedding

  distances = signatures.distances('l2')
  here, count = diverged_clients.among(client_ids, signatures.client_ids), len(client_ids)
  everybodys = np.full((count, count), np.nan, np.float32)
  everybodys[np.ix_(here, here)] = distances.astype(np.float32)
  points = np.full((count, 2), np.nan)
  points[here] = embedding.classical_scaling(distances)
  return {'distances': everybodys, 'embedding': points}


def _save_clusters(
  folder: RunFolder,
  label: str,
  assignment: assignment_lib.ClusterAssignment,
  signature: str,
  threshold: float | None,
  choice: dict[str, Any] | None,
  notes: list[str],
  excluded: tuple[str, ...] = (),
) -> None:
  if folder.clusters(label).exists():
    return  # Something beside it had to be made again.
  files_lib.save_json(
    folder.clusters(label),
    {
      **assignment.to_json(),
      'label': label,
      'signature': signature,
      'threshold': threshold,
      'choice': choice,
      'notes': notes,
      **({'excluded': list(excluded)} if excluded else {}),
    },
  )


def _cause(what: str, error: Exception) -> str:
  told = _told(error)
  # What is said of a rule begins with what it is called, unless it is a fault of this software.
  if what.startswith(argument('aggregation')):
    return told if told.startswith(what) else f'{what}: {told}'
  return f'clustering {what}: {told}'


def _told(error: Exception) -> str:
  """Returns the cause, with the marks of the arguments that it names: see errors.Fault."""
  if isinstance(error, InputError):
    return error.marked
  return (
    f'not enough memory ({error})' if isinstance(error, MemoryError) else f'{type(error).__name__}: {error}'
  )
