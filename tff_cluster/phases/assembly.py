"""Puts what the phases saved together: results.json and arrays.npz (schema: tff_cluster/experiment/results.py)."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tff_cluster.aggregation import rules
from tff_cluster.base.environment import Environment
from tff_cluster.base.words import capital
from tff_cluster.clustering import assignment as assignment_lib
from tff_cluster.clustering import distances, diverged_clients, membership_history, recovery
from tff_cluster.clustering import recursion as recursion_lib
from tff_cluster.clustering.membership_history import Alternated
from tff_cluster.clustering.recovery import Recovery
from tff_cluster.data import population as population_lib
from tff_cluster.data import saved as saved_population
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import phase_files, results
from tff_cluster.experiment.measured import JoinedClients, OwnValidation, Timing
from tff_cluster.experiment.result_parts import (
  AccuracyOfNewClients,
  AddedRule,
  Artifacts,
  Candidate,
  Clustering,
  Joined,
  NewClients,
  Population,
  Rows,
  Split,
  Training,
)
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import added_rules, fold_summary, malicious_scores
from tff_cluster.scorecard import summary
from tff_cluster.storage import files, saved_rounds

# Rounds after a split whose accuracy is told beside that of as many before it.
_ABOUT_SPLIT = 5


def run_assembly(folder: RunFolder, population: population_lib.Population) -> results.Results:
  """Writes results.json and arrays.npz, and returns the results. Of a run's phases it alone looks at planted truth.

  Raises:
    InputError: if a phase has not finished for a clustering of the run.
    sealed_json.NewerFile: if the folder has results of a later version.
  """
  config = folder.load_config()
  _look_at_what_is_there(folder)
  phase1 = folder.load_finished(folder.phase1, phase_files.Phase1)
  baseline = folder.load_finished(folder.baseline, phase_files.Baseline)
  timing = [phase1.timing.of('Phase 1'), baseline.timing.of('Phase 2, unclustered baseline')]
  own_models = {
    name: folder.load_finished(folder.personalized(name), phase_files.OwnModels)
    for name in config.evaluation.personalized
  }
  timing += [each.timing.of(capital(each.found.title)) for each in own_models.values()]
  new, new_clients = None, None
  if config.data.new_clients:
    new = saved_population.load_population(folder.new_clients)
    fedavg = folder.load_finished(folder.new_clients_baseline, phase_files.NewClientsBaseline)
    timing.append(fedavg.timing.of('New clients, unclustered baseline'))
    new_clients = _new_clients(new, fedavg.client_accuracy)
  clusterings: list[Clustering] = []
  trajectories: dict[str, list[saved_rounds.Checkpoints]] = {}
  validation: dict[str, OwnValidation] = {}
  arrays: dict[str, np.ndarray] = {}
  for clustering in config.clusterings:
    label = clustering.label
    saved = folder.load_finished(folder.clusters(label), phase_files.Clusters)
    phase2 = folder.load_finished(folder.phase2(label), phase_files.Phase2)
    phase3 = folder.load_finished(folder.phase3(label), phase_files.Phase3)
    timing += [
      *_training_of_clustering(folder, label),
      phase2.timing.of(f'Phase 2, {label}'),
      phase3.timing.of(f'Phase 3, {label}'),
    ]
    for rule, measured in added_rules.finished(folder, config, label):
      phase3.evaluations[rule.name] = measured.evaluation
      timing.append(measured.timing.of(f'Phase 3, {label}, {rule.name}'))
    splits = None
    if folder.splits(label).exists():
      matrices = folder.load(folder.similarities(label), 'clustering', files.load_arrays)
      arrays |= {f'similarity_{label}_{number}': matrix for number, matrix in matrices.items()}
      accuracy = arrays[f'client_accuracy_{label}'] = folder.load(
        folder.client_accuracy(label), 'phase2', files.load_arrays
      )['test']
      tests = folder.load_finished(folder.splits(label), phase_files.Splits).tests
      splits = [_split(test, accuracy, population) for test in tests]
    alternated = None
    if clustering.rule.alternates:
      alternated, ways = _alternation(folder, clustering)
      arrays |= ways
    joined = None
    if new is not None:
      found = folder.load_finished(folder.new_clients_of(label), phase_files.NewClientsJoined)
      timing.append(found.timing.of(f'New clients, {label}'))
      joined = Joined(**vars(found.joined), recovery=_joint_recovery(saved, found.joined, population, new))
    clusterings.append(_clustering(clustering, saved, phase2, phase3, population, splits, alternated, joined))
    trajectories[label] = phase2.trajectories
    if phase2.validation is not None:
      validation[label] = phase2.validation
    if clustering.rule.has_linkage:
      arrays[f'linkage_{label}'] = folder.load(folder.linkage(label), 'clustering', files.load_arrays)[
        'linkage'
      ]
  kinds = sorted({clustering.signature for clustering in config.clusterings})
  for kind in kinds:
    geometry = folder.load(folder.geometry(kind), 'clustering', files.load_arrays)
    if geometry['distances'].ndim == 1:  # Kept runs of before have them square.
      geometry['distances'] = distances.square(geometry['distances'])
      is_finite = np.isfinite(geometry['embedding']).all(axis=1)
      np.fill_diagonal(geometry['distances'], np.where(is_finite, 0.0, np.nan))
    arrays |= {f'{name}_{kind}': array for name, array in geometry.items()}
  folds = fold_summary.finished(folder, config)
  bare = results.Results(
    config=config,
    population=_population(population),
    training=Training(phase1.parameters, phase1.model_bytes, phase1.sketch),
    phase1=phase1.stage,
    baseline=baseline.stage,
    personalized=[each.found for each in own_models.values()],
    new_clients=new_clients,
    clusterings=clusterings,
    candidates=[c for kind in kinds for c in _candidates(folder, kind, population)],
    cross_validation=fold_summary.summarise(folds),
    environment=folder.load_record(folder.environment, 'run_all', Environment),
    timing=[*timing, *fold_summary.timing(folds)],
    rules=[
      AddedRule(rule.name, rule.words, rule.kind, str(rule.path))
      for rule in rules.added(config.evaluation.aggregation)
    ],
    artifacts=Artifacts(
      phase1.trajectory,
      baseline.trajectory,
      phase1.signatures,
      trajectories,
      {name: each.trajectories for name, each in own_models.items()},
    ),
    schema=results.SCHEMA,
    digest='',
    summary=[],
    malicious=malicious_scores.summary(population, baseline.stage, clusterings),
    validation=validation or None,
  )
  assembled = dataclasses.replace(bare, digest=results.digest_of(bare), summary=summary.of_run(bare))
  files.save_arrays(folder.arrays, arrays)
  files.save_json(folder.results, assembled)
  return assembled


def _training_of_clustering(folder: RunFolder, label: str) -> list[Timing]:
  """Returns the time of what was trained to find clusters: CFL's recursion, rounds that alternate, cuts of a threshold."""
  found = []
  if folder.splits(label).exists():
    found.append(folder.load_finished(folder.splits(label), phase_files.Splits).timing)
  if folder.alternation(label).exists():
    found.append(folder.load_finished(folder.alternation(label), phase_files.Alternation).timing)
  if folder.choice(label).exists():
    found.append(folder.load_finished(folder.choice(label), phase_files.ChoiceOfThreshold).timing)
  return [timing.of(f'Clustering, {label}') for timing in found]


def _look_at_what_is_there(folder: RunFolder) -> None:
  """Keeps a damaged results.json or arrays.npz aside, and refuses to replace one of a later version."""
  for path, load in ((folder.results, files.load_json), (folder.arrays, files.load_arrays)):
    try:
      found = load(path)
    except FileNotFoundError:
      continue
    except files.DamagedFile as damage:
      files.set_aside(path, damage)
      continue
    results.check_not_newer(path.name, found)


def _population(population: population_lib.Population) -> Population:
  return Population(
    population.name,
    population.digest,
    list(population.client_ids),
    population.num_classes,
    Rows(
      len(population.train.y),
      len(population.validation.y),
      int(population.test.counts.sum()),
      len(population.global_test_y),
    ),
    population.train.label_counts(population.num_classes).tolist(),
    {name: np.asarray(truth).tolist() for name, truth in population.truths.items()},
  )


def _clustering(
  clustering: config_lib.ClusteringConfig,
  saved: phase_files.Clusters,
  phase2: phase_files.Phase2,
  phase3: phase_files.Phase3,
  population: population_lib.Population,
  splits: list[Split] | None,
  alternated: Alternated | None,
  joined: Joined | None,
) -> Clustering:
  assignment = saved.assignment
  words = clustering.words()
  oracle = words.pop('oracle')
  return Clustering(
    **words,
    kind='oracle' if oracle else 'overlapping' if assignment.is_overlapping else 'disjoint',
    signature=saved.signature,
    clusters=assignment.clusters,
    num_clusters=assignment.num_clusters,
    overlapping=assignment.is_overlapping,
    memberships=float(assignment.membership.sum(axis=0).mean()),
    notes=saved.notes,
    threshold=saved.threshold,
    choice=saved.choice,
    recovery=_recovery(assignment, population.truths, population.client_ids, saved.excluded),
    cost=phase2.cost,
    history=phase2.history,
    best_validation=phase2.best_validation,
    cluster_scores=phase3.cluster_scores,
    evaluations=phase3.evaluations,
    experts=phase3.experts,
    equal_cost=phase2.equal_cost,
    splits=splits,
    new_clients=joined,
    excluded=saved.excluded,
    dropped_updates=phase2.dropped_updates,
    shares=None if assignment.shares is None else assignment.shares.tolist(),
    alternation=alternated,
  )


def _alternation(
  folder: RunFolder, clustering: config_lib.ClusteringConfig
) -> tuple[Alternated, dict[str, np.ndarray]]:
  """Returns what the rounds of a clustering that alternated came to, and its arrays for arrays.npz."""
  label = clustering.label
  kept = folder.load(folder.memberships(label), 'clustering', files.load_arrays)
  models = folder.load_finished(folder.alternation(label), phase_files.Alternation).models
  first = int(kept['first_round'])
  found = membership_history.summarise(kept['shares'], kept['since'], clustering.options.start, first, models)
  return found, {
    f'memberships_{label}': kept['shares'].astype(np.float32),
    f'first_round_{label}': np.array(first),
  }


def _new_clients(new: population_lib.Population, fedavg: list[float]) -> NewClients:
  about = _population(new)
  rows = dataclasses.replace(about.rows, global_test=0)
  return NewClients(
    about.client_ids, about.digest, about.label_counts, about.truths, rows, AccuracyOfNewClients(fedavg)
  )


def _joint_recovery(
  saved: phase_files.Clusters,
  joined: JoinedClients,
  population: population_lib.Population,
  new: population_lib.Population,
) -> dict[str, Recovery]:
  """Returns how well the clusters, with the new clients in them, find the planted groups of all clients but the excluded."""
  assignment = saved.assignment
  own = np.zeros((assignment.num_clusters, new.num_clients))
  for client, clusters in enumerate(joined.assigned):
    own[clusters, client] = 1.0 / len(clusters) if joined.shares is None else joined.shares[client]
  shares = np.hstack([assignment.own, own])
  soft = assignment.shares is not None or joined.shares is not None
  together = assignment_lib.ClusterAssignment(
    shares > 0.0, assignment.client_ids + new.client_ids, shares if soft else None
  )
  truths = {name: np.hstack([truth, new.truths[name]]) for name, truth in population.truths.items()}
  return _recovery(together, truths, together.client_ids, saved.excluded)


def _split(test: recursion_lib.Test, accuracy: np.ndarray, population: population_lib.Population) -> Split:
  """Returns a test of CFL with what each of its halves gained in the rounds after they were parted."""
  after = accuracy[test.round : test.round + _ABOUT_SPLIT]
  if test.verdict != 'split' or test.halves is None or not len(after):
    return Split(**vars(test))
  position = {client_id: k for k, client_id in enumerate(population.client_ids)}
  rise = after.mean(axis=0) - accuracy[max(test.round - _ABOUT_SPLIT, 0) : test.round].mean(axis=0)
  return Split(
    **vars(test), half_rise=[float(rise[[position[i] for i in half]].min()) for half in test.halves]
  )


def _candidates(folder: RunFolder, kind: str, population: population_lib.Population) -> list[Candidate]:
  rows = []
  for candidate in folder.load_finished(folder.candidates(kind), phase_files.Candidates).candidates:
    about = vars(candidate).copy()
    clusters = about.pop('clusters')
    scores = None
    if clusters is not None:
      named = {client_id for members in clusters for client_id in members}
      clustered = [client_id for client_id in population.client_ids if client_id in named]
      assignment = assignment_lib.ClusterAssignment.from_clusters(clusters, clustered)
      scores = _recovery(assignment, population.truths, population.client_ids)
    rows.append(Candidate(**about, signature=kind, recovery=scores))
  return rows


def _recovery(
  assignment: assignment_lib.ClusterAssignment,
  truths: Mapping[str, np.ndarray],
  client_ids: Sequence[str],
  out: Sequence[str] = (),
) -> dict[str, Recovery]:
  """Returns the scores over the clients that the assignment has, but for those that are out.

  Args:
    assignment: Of some of the clients.
    truths: float[groups, clients] by name, of all clients.
    client_ids: Of all clients.
    out: Clients that were not clustered.
  """
  scored = diverged_clients.clustered_only(assignment, out)
  here = diverged_clients.among(client_ids, scored.client_ids)
  return {name: recovery.recovery(scored, np.asarray(truth)[:, here]) for name, truth in truths.items()}
