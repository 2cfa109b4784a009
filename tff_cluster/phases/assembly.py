"""Puts what the phases saved together: results.json and arrays.npz (schema: tff_cluster/experiment/results.py)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.aggregation import rules
from tff_cluster.clustering import assignment as assignment_lib
from tff_cluster.clustering import diverged_clients, recovery
from tff_cluster.data import population as population_lib
from tff_cluster.data import saved as saved_population
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import results
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import added_rules, fold_summary, malicious_scores
from tff_cluster.scorecard import summary
from tff_cluster.storage import files

# Rounds after a split whose accuracy is told beside that before it.
_AFTER_SPLIT = 5


def run_assembly(folder: RunFolder, population: population_lib.Population) -> dict[str, Any]:
  """Writes results.json and arrays.npz, and returns the results. Of a run's phases it alone looks at planted truth.

  Raises:
    InputError: if a phase has not finished for a clustering of the run.
    sealed.NewerFile: if the folder has results of a later version.
  """
  config = folder.load_config()
  _look_at_what_is_there(folder)
  phase1 = folder.load_finished(folder.phase1, 'phase1')
  baseline = folder.load_finished(folder.baseline, 'phase2')
  timing = [
    {'name': 'Phase 1', **phase1['timing']},
    {'name': 'Phase 2, unclustered baseline', **baseline['timing']},
  ]
  local, kept = None, {}
  if config.evaluation.local_training:
    local = folder.load_finished(folder.local, 'phase2')
    timing.append({'name': 'Every client alone', **local.pop('timing')})
    kept['local'] = local.pop('trajectories')
  new = saved_population.load_population(folder.new_clients) if config.data.new_clients else None
  fedavg = None
  if new is not None:
    fedavg = folder.load_finished(folder.new_clients_baseline, 'phase3')
    timing.append({'name': 'New clients, unclustered baseline', **fedavg.pop('timing')})
  clusterings: list[dict[str, Any]] = []
  dropped: list[int] = []
  trajectories: dict[str, Any] = {}
  arrays: dict[str, np.ndarray] = {}
  for clustering in config.clusterings:
    label = clustering.label
    saved = folder.load_finished(folder.clusters(label), 'clustering')
    phase2 = folder.load_finished(folder.phase2(label), 'phase2')
    phase3 = folder.load_finished(folder.phase3(label), 'phase3')
    timing += [
      *_training_of_clustering(folder, label),
      {'name': f'Phase 2, {label}', **phase2['timing']},
      {'name': f'Phase 3, {label}', **phase3['timing']},
    ]
    for rule, evaluation, spent in added_rules.finished(folder, config, label):
      phase3['evaluations'][rule.name] = evaluation
      timing.append({'name': f'Phase 3, {label}, {rule.name}', **spent})
    splits = None
    if folder.splits(label).exists():
      matrices = folder.load(folder.similarities(label), 'clustering', files.load_arrays)
      arrays |= {f'similarity_{label}_{number}': matrix for number, matrix in matrices.items()}
      accuracy = arrays[f'client_accuracy_{label}'] = folder.load(
        folder.client_accuracy(label), 'phase2', files.load_arrays
      )['test']
      splits = [_split(test, accuracy, population) for test in files.load_json(folder.splits(label))['tests']]
    joined = None
    if new is not None:
      joined = folder.load_finished(folder.new_clients_of(label), 'phase3')
      timing.append({'name': f'New clients, {label}', **joined.pop('timing')})
      joined['recovery'] = _joint_recovery(saved, joined['assigned'], population, new)
    clusterings.append(
      _clustering(clustering, saved, phase2, phase3, population) | {'splits': splits, 'new_clients': joined}
    )
    dropped.append(phase2.get('dropped_updates', 0))
    trajectories[label] = phase2['trajectories']
    if clustering.rule.has_linkage:
      arrays[f'linkage_{label}'] = folder.load(folder.linkage(label), 'clustering', files.load_arrays)[
        'linkage'
      ]
  kinds = sorted({clustering.signature for clustering in config.clusterings})
  for kind in kinds:
    geometry = folder.load(folder.geometry(kind), 'clustering', files.load_arrays)
    arrays |= {f'{name}_{kind}': array for name, array in geometry.items()}
  harm = malicious_scores.summary(population, baseline['stage'], list(zip(clusterings, dropped, strict=True)))
  assembled = results.with_digest(
    {
      'config': config.to_json(),
      'population': _population(population),
      'training': {
        'parameters': phase1['parameters'],
        'model_bytes': phase1['model_bytes'],
        'sketch': phase1.get('sketch'),
      },
      'phase1': phase1['stage'],
      'baseline': baseline['stage'],
      'local': local,
      'new_clients': None if new is None else _new_clients(new) | {'fedavg': fedavg},
      'clusterings': clusterings,
      'candidates': [c for kind in kinds for c in _candidates(folder, kind, population)],
      'cross_validation': fold_summary.summarise(folder, config),
      'environment': folder.load(folder.environment, 'run_all'),
      'timing': timing,
      'rules': [
        {'name': rule.name, 'words': rule.words, 'kind': rule.kind, 'aggregation': rule.path}
        for rule in rules.added(config.evaluation.aggregation)
      ],
      'artifacts': {
        'phase1': phase1['trajectory'],
        'baseline': baseline['trajectory'],
        'signatures': phase1['signatures'],
        'clusterings': trajectories,
        **kept,
      },
    }
    | ({} if harm is None else {'malicious': harm})
  )
  assembled['summary'] = summary.of_run(assembled)
  files.save_arrays(folder.arrays, arrays)
  files.save_json(folder.results, assembled)
  return assembled


def _training_of_clustering(folder: RunFolder, label: str) -> list[dict[str, Any]]:
  """Returns the time of what was trained to find clusters: CFL's recursion, and the cuts among which a threshold was chosen."""
  paths = [path for path in (folder.splits(label), folder.choice(label)) if path.exists()]
  return [{'name': f'Clustering, {label}', **files.load_json(path)['timing']} for path in paths]


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


def _population(population: population_lib.Population) -> dict[str, Any]:
  return {
    'name': population.name,
    'digest': population.digest,
    'client_ids': list(population.client_ids),
    'num_classes': population.num_classes,
    'rows': {
      'train': len(population.train.y),
      'validation': len(population.validation.y),
      'test': len(population.test.y),
      'global_test': len(population.global_test_y),
    },
    'label_counts': population.train.label_counts(population.num_classes).tolist(),
    'truths': {name: np.asarray(truth).tolist() for name, truth in population.truths.items()},
  }


def _clustering(
  clustering: config_lib.ClusteringConfig,
  saved: dict[str, Any],
  phase2: dict[str, Any],
  phase3: dict[str, Any],
  population: population_lib.Population,
) -> dict[str, Any]:
  assignment = assignment_lib.ClusterAssignment.from_json(saved)
  words = clustering.words()
  oracle = words.pop('oracle')
  return words | {
    'kind': 'oracle' if oracle else 'overlapping' if assignment.is_overlapping else 'disjoint',
    'signature': saved['signature'],
    'clusters': assignment.clusters,
    'num_clusters': assignment.num_clusters,
    'overlapping': assignment.is_overlapping,
    'memberships': float(assignment.membership.sum(axis=0).mean()),
    'notes': saved['notes'],
    'threshold': saved['threshold'],
    'choice': saved['choice'],
    'recovery': _recovery(assignment, population.truths, population.client_ids, saved.get('excluded', ())),
    'ledger': phase2['ledger'],
    'history': phase2['history'],
    'best_validation': phase2['best_validation'],
    'cluster_scores': phase3['cluster_scores'],
    'evaluations': phase3['evaluations'],
    'experts': phase3['experts'],
    'equal_cost': phase2['equal_cost'],
    # Where there is nothing to tell there are no keys.
    **{name: saved[name] for name in ('excluded',) if name in saved},
    **{name: phase2[name] for name in ('dropped_updates',) if name in phase2},
  }


def _new_clients(new: population_lib.Population) -> dict[str, Any]:
  about = _population(new)
  return {name: about[name] for name in ('client_ids', 'digest', 'label_counts', 'truths')} | {
    'rows': {name: count for name, count in about['rows'].items() if name != 'global_test'}
  }


def _joint_recovery(
  saved: dict[str, Any],
  assigned: list[list[int]],
  population: population_lib.Population,
  new: population_lib.Population,
) -> dict[str, dict[str, float | None]]:
  """Returns how well the clusters, with the new clients in them, find the planted groups of all clients but the excluded."""
  assignment = assignment_lib.ClusterAssignment.from_json(saved)
  member = np.zeros((assignment.num_clusters, new.num_clients))
  for client, clusters in enumerate(assigned):
    member[clusters, client] = 1.0
  together = assignment_lib.ClusterAssignment(
    np.hstack([assignment.membership, member]), assignment.client_ids + new.client_ids
  )
  truths = {name: np.hstack([truth, new.truths[name]]) for name, truth in population.truths.items()}
  return _recovery(together, truths, together.client_ids, saved.get('excluded', ()))


def _split(
  test: dict[str, Any], accuracy: np.ndarray, population: population_lib.Population
) -> dict[str, Any]:
  """Returns a test of CFL with what its halves had before they were parted, and in the rounds after."""
  if test['verdict'] != 'split':
    return test | {'half_accuracy': None}
  position = {client_id: k for k, client_id in enumerate(population.client_ids)}
  rounds = accuracy[test['round'] - 1 : test['round'] + _AFTER_SPLIT]
  halves = [rounds[:, [position[i] for i in half]].mean(axis=1) for half in test['halves']]
  return test | {'half_accuracy': [half.tolist() for half in halves]}


def _candidates(folder: RunFolder, kind: str, population: population_lib.Population) -> list[dict[str, Any]]:
  rows = []
  for candidate in folder.load(folder.candidates(kind), 'clustering'):
    clusters = candidate.pop('clusters')
    scores = None
    if clusters is not None:
      named = {client_id for members in clusters for client_id in members}
      clustered = [client_id for client_id in population.client_ids if client_id in named]
      assignment = assignment_lib.ClusterAssignment.from_clusters(clusters, clustered)
      scores = _recovery(assignment, population.truths, population.client_ids)
    rows.append(candidate | {'signature': kind, 'recovery': scores})
  return rows


def _recovery(
  assignment: assignment_lib.ClusterAssignment,
  truths: Mapping[str, np.ndarray],
  client_ids: Sequence[str],
  out: Sequence[str] = (),
) -> dict[str, dict[str, float | None]]:
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
