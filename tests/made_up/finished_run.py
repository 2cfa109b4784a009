"""Makes run folders that fill the whole schema of results.json, with planted clusters and effects.

Nothing here is trained: accuracies are drawn so that the answer is known by construction, and the
clusterings are computed with SciPy from drawn signatures. Used by the tests of the reports.
"""

import dataclasses
import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import scipy.cluster.hierarchy
import scipy.spatial.distance

from tests.made_up import in_json, run_with_rounds, run_with_splits
from tff_cluster.clustering import embedding, recovery
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.data import class_counts
from tff_cluster.experiment import config, results
from tff_cluster.storage import files

CLASSES = 10
MODEL_BYTES, ROWS = 6_653_480, 50  # Of a model, and that a client trains on in a round.


def write_run(folder: Path, **options: Any) -> dict[str, Any]:
  """Writes results.json, arrays.npz and config.json of `make_run(**options)`; returns the results."""
  value, arrays = make_run(**options)
  save(folder, value, arrays)
  return value


def save(folder: Path, value: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
  """Writes the files of a run whose results, in JSON, may lack some."""
  folder.mkdir(parents=True, exist_ok=True)
  (folder / 'results.json').write_text(json.dumps(with_digest(value), allow_nan=False))
  (folder / 'config.json').write_text(json.dumps(value['config']))
  files.save_arrays(folder / 'arrays.npz', arrays)


def make_run(
  num_clients: int = 20,
  groups: int = 4,
  truth: str = 'disjoint',
  gain: float = 0.05,
  spread: float = 0.02,
  dataset: str = 'digits',
  rounds: tuple[int, int] = (5, 5),
  cross_validation: bool = False,
  methods: tuple[str, ...] = ('kmeans', 'dynamic_distance', 'hierarchical'),
  linkage: str = 'complete',
  client_ids: list[str] | None = None,
  wrong_groups: bool = False,
  split_verdict: str = 'split',
  personalized: Mapping[str, float] = types.MappingProxyType({}),
  seed: int = 0,
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
  """Returns results (with digest) and arrays.

  Args:
    num_clients: Number of clients.
    groups: Planted groups.
    truth: 'disjoint', 'overlapping' (each client in two groups; a disjoint one beside), 'mixture' or 'none'.
    gain: Mean gain of the clients' own models over the unclustered model.
    spread: Standard deviation of that gain over clients.
    dataset, rounds: Written into the configuration.
    cross_validation: Whether there is one.
    methods: Clusterings, 'bipartition', 'ifca' and 'planted' among them or not; a label other than the method's name is written
      'method:label'. 'planted' is the first truth.
    linkage: Of the hierarchical clustering.
    client_ids: Names; 'c00' and so on if not given.
    wrong_groups: Whether k-means gives clients to clusters regardless of the groups.
    split_verdict: Of a bi-partition, for clusters of several groups: 'split' or 'kept'.
    personalized: Mean gain over the unclustered model, by name of the baseline in which clients have models of their own.
    seed: Of the draws, and what the configuration says of training and data.
  """
  rng = np.random.default_rng(seed)
  ids = client_ids or [f'c{k:02d}' for k in range(num_clients)]
  owner = rng.permutation(np.arange(num_clients) % groups)
  vectors = 3.0 * np.eye(groups, 12)[owner] + rng.normal(0, 0.45, (num_clients, 12))
  distances = scipy.spatial.distance.squareform(scipy.spatial.distance.pdist(vectors))
  truths = _truths(truth, owner, groups)
  phase1 = np.clip(rng.normal(0.80, 0.05, num_clients), 0, 1)
  baseline = np.clip(phase1 + rng.normal(0.03, 0.01, num_clients), 0, 1)
  stages = {
    'phase1': _stage(rng, phase1, rounds[0], 0),
    'baseline': _stage(rng, baseline, rounds[1], rounds[0]),
  }
  # The unclustered model is Phase 1 gone on: its rounds, history and costs start with those of Phase 1.
  before, after = stages['phase1'], stages['baseline']
  stages['baseline'] = after | {
      'rounds': sum(rounds), 'cost': {k: before['cost'][k] + v for k, v in after['cost'].items()},
      'history': {k: before['history'][k] + v for k, v in after['history'].items()},
  }  # fmt: skip
  arrays: dict[str, np.ndarray] = {
      'distances_weights': distances.astype(np.float32), 'embedding_weights': embedding.classical_scaling(distances)
  }  # fmt: skip
  clusterings, configs = [], []
  for i, spec in enumerate(methods):
    method, _, name = spec.partition(':')
    label, extra = name or method, {}
    if method == 'bipartition':
      extra['splits'], leaves, more = run_with_splits.make_splits(
        rng, owner, ids, label, rounds, split_verdict
      )
      arrays |= more
      shape = (_matrix(leaves), None, None, dict(run_with_splits.PARAMETERS))
    elif method == 'ifca':
      extra['alternation'], leaves, more = run_with_rounds.make_rounds(owner, label, rounds)
      arrays |= more
      shape = (_matrix(leaves), None, None, dict(run_with_rounds.PARAMETERS))
    elif method == 'planted':
      main = next(iter(truths))
      told = {'truth': main if len(truths) > 1 else None}
      shape = ((truths[main] > 0).astype(np.float64), None, None, told)
    else:
      shape = _cluster(method, distances, vectors, owner, linkage, wrong_groups, rng)
    chosen = ClusterAssignment(shape[0], tuple(ids))
    if shape[2] is not None:
      arrays[f'linkage_{label}'] = shape[2]
    own = np.clip(baseline + rng.normal(gain - 0.01 * i * (gain > 0), spread, num_clients), 0, 1)
    found = _clustering(rng, label, method, shape[3], chosen, shape[1], truths, own, rounds)
    clusterings.append(found | extra | {'equal_cost': _equal_cost(own, chosen, rounds, seed)})
    configs.append(config.ClusteringConfig(method=method, name=name or None, **shape[3]))
  experiment = config.ExperimentConfig(
      data=config.DataConfig(dataset=dataset, num_clients=num_clients, data_seed=seed),
      training=config.TrainingConfig(phase1_rounds=rounds[0], phase2_rounds=rounds[1], seed=seed),
      clusterings=tuple(configs), evaluation=config.EvaluationConfig(
          local_training='local' in personalized, fine_tuning=3 * ('fine_tuning' in personalized),
              ditto=0.1 if 'ditto' in personalized else None,
      ),
  )  # fmt: skip
  labels = np.stack(
    [rng.multinomial(40 + 10 * k % 70, rng.dirichlet(np.full(CLASSES, 0.7))) for k in range(num_clients)]
  )
  value: dict[str, Any] = {
      'config': experiment.to_json(),
      'population': {
          'name': f'{dataset} label_swapped', 'digest': f'rows of {dataset}', 'client_ids': ids, 'num_classes': CLASSES,
          'rows': {'train': int(labels.sum()), 'validation': 160, 'test': 360, 'global_test': 360},
          'label_counts': labels.tolist(), 'truths': {n: t.tolist() for n, t in truths.items()},
      },
      'training': {'parameters': 1_663_370, 'model_bytes': MODEL_BYTES, 'sketch': None},
      **stages, 'personalized': [_own(name, baseline + gain, rounds, seed) for name, gain in personalized.items()],
      'clusterings': clusterings,
      'candidates': _candidates(vectors, distances, truths, ids),
      'cross_validation': {
          'folds': 5,
          'evaluations': {f'{c["label"]}/own': {'mean': 0.9, 'low': 0.88, 'high': 0.92, 'precision': 0.89, 'recall': 0.87} for c in clusterings},
      } if cross_validation else None,
      'environment': {
          'python': '3.11.9', 'packages': {'numpy': '1.26.4', 'tensorflow': '2.14.1'}, 'machine': 'x86_64 Linux',
          'cores': 2, 'started': '2025-01-01T12:00:00',
      },
      'timing': [
          {'name': n, 'seconds': s, 'client_rounds_asked': a, 'client_rounds_trained': t}
          for n, s, a, t in (('phase 1', 61.2, 100, 100), ('clustering', 0.8, 20, 20), ('phase 2', 3725.0, 900, 800))
      ],
  }  # fmt: skip
  return with_digest(value), arrays


def with_digest(value: dict[str, Any]) -> dict[str, Any]:
  """Returns results, in JSON, with what they lack filled in, and their digest."""
  found = in_json.typed(value)
  return dataclasses.replace(found, digest=results.digest_of(found)).to_json()


def cost(client_rounds: int, down: int = MODEL_BYTES, up: int = MODEL_BYTES) -> dict[str, int]:
  """Returns what rounds cost in which a client receives a model, trains it and sends it, of so many bytes each way."""
  return {
      'client_rounds': client_rounds, 'models_down': client_rounds, 'models_up': client_rounds,
      'bytes_down': client_rounds * down, 'bytes_up': client_rounds * up, 'rows_trained': client_rounds * ROWS, 'rows_forward': 0,
  }  # fmt: skip


def _truths(kind: str, owner: np.ndarray, groups: int) -> dict[str, np.ndarray]:
  disjoint = (np.arange(groups)[:, None] == owner[None, :]).astype(np.float64)
  second = (np.arange(groups)[:, None] == ((owner + 1) % groups)[None, :]).astype(np.float64)
  if kind == 'overlapping':
    return {'digit': np.maximum(disjoint, second), 'label set': disjoint}
  if kind == 'mixture':
    mixed = disjoint.copy()
    mixed[:, ::2] = 0.7 * disjoint[:, ::2] + 0.3 * second[:, ::2]
    return {'mixture': mixed}
  return {} if kind == 'none' else {'group': disjoint}


def _cluster(
  method, distances, vectors, owner, linkage, wrong, rng
) -> tuple[np.ndarray, Any, Any, dict[str, Any]]:
  """Returns membership, threshold, linkage matrix and parameters."""
  if method == 'kmeans':
    labels = rng.permutation(owner) if wrong else owner
    return _matrix(labels), None, None, {'num_clusters': int(owner.max()) + 1}
  if method == 'hierarchical':
    tree = scipy.cluster.hierarchy.linkage(vectors, linkage)
    cut = float(tree[-int(owner.max()), 2] * 0.97) if len(tree) > owner.max() else 1.0
    parameters = {'metric': 'l2', 'linkage': linkage, 'distance_threshold': f'{cut:.6f}'}
    return _matrix(scipy.cluster.hierarchy.fcluster(tree, cut, 'distance')), cut, tree, parameters
  upper = distances[np.triu_indices(len(distances), 1)]
  cut = float(upper.mean()) if len(upper) else 0.0
  graph = nx.from_numpy_array((distances <= cut) & ~np.eye(len(distances), dtype=bool))
  cliques = list(nx.find_cliques(graph))[:90]
  missing = set(range(len(distances))) - {k for clique in cliques for k in clique}
  matrix = np.zeros((len(cliques) + len(missing), len(distances)))
  for row, members in enumerate([*cliques, *([k] for k in missing)]):
    matrix[row, members] = 1.0
  return matrix, cut, None, {'distance_threshold': 'mean', 'variant': 'cliques', 'max_clusters': 1000}


def _matrix(labels: np.ndarray) -> np.ndarray:
  return (np.unique(labels)[:, None] == labels[None, :]).astype(np.float64)


def _clustering(rng, label, method, parameters, chosen, threshold, truths, own, rounds) -> dict[str, Any]:
  memberships = float(chosen.membership.sum(axis=0).mean())
  trained = int(chosen.membership.sum()) * rounds[1]
  evaluations: dict[str, Any] = {}
  for name, shift in (('own', 0.0), ('average', -0.06), ('weighted', -0.055), ('blended', -0.02)):
    accuracy = np.clip(own + shift, 0, 1)
    evaluations[name] = _evaluation(rng, accuracy, name in ('average', 'weighted')) | {
      'mixing': np.full((chosen.num_clusters, 1), 1.0 / chosen.num_clusters).tolist()
    }
  history = _history(rng, own, rounds[1], rounds[0])
  words = config.ClusteringConfig(method, **parameters).words()
  kind = 'oracle' if words['oracle'] else 'overlapping' if chosen.is_overlapping else 'disjoint'
  return words | {
      'label': label, 'kind': kind, 'parameters': parameters,
      'signature': 'updates' if method == 'bipartition' else 'weights', 'clusters': chosen.clusters,
      'num_clusters': chosen.num_clusters, 'overlapping': chosen.is_overlapping, 'memberships': memberships,
      'notes': [] if threshold is None else [f'threshold {threshold:.3f} gives {chosen.num_clusters} clusters'],
      'threshold': threshold, 'choice': None, 'recovery': _recovery(chosen, truths),
      'cost': cost(trained),
      'history': history, 'best_validation': rng.uniform(0.8, 1, chosen.num_clusters).tolist(),
      'cluster_scores': {
          kind: {where: rng.uniform(0.8, 1, chosen.num_clusters).tolist() for where in ('members', 'global')}
          for kind in ('unblended', 'blended')
      }, 'evaluations': evaluations, 'experts': None, 'equal_cost': None, 'splits': None, 'new_clients': None,
  }  # fmt: skip


def _equal_cost(own: np.ndarray, chosen: ClusterAssignment, rounds, seed: int) -> dict[str, Any] | None:
  each, budget = int(chosen.membership.sum()), len(own) * rounds[1]
  if each * rounds[1] <= budget:
    return None
  evaluation = _evaluation(np.random.default_rng(seed), np.clip(own - 0.01, 0, 1), False)
  many = budget // each
  return {
    'round': rounds[0] + many,
    'cost': cost(many * each),
    'evaluation': evaluation,
    'validation_accuracy': None if many else float(own.mean()),
  }


def _own(name: str, accuracy: np.ndarray, rounds, seed: int) -> dict[str, Any]:
  rng, own = np.random.default_rng(seed), np.clip(accuracy, 0, 1)
  tuned, shared = name == 'fine_tuning', (name != 'local') * len(own) * rounds[1]
  for_itself = len(own) * (3 if tuned else rounds[1])
  return {
    'name': name, 'model': f'its own by {name}', 'round': sum(rounds) + 2 * tuned,
    'cost': {
      'client_rounds': shared + for_itself, 'models_down': shared, 'models_up': shared, 'bytes_down': shared * MODEL_BYTES,
      'bytes_up': shared * MODEL_BYTES, 'rows_trained': (shared + for_itself) * ROWS,
    },
    'history': _history(rng, own, 4, sum(rounds) - 1) if tuned else _history(rng, own, sum(rounds), 0),
    'evaluation': _evaluation(rng, own, False),
  }  # fmt: skip


def _recovery(chosen: ClusterAssignment, truths: dict[str, np.ndarray]) -> dict[str, Any]:
  return {name: recovery.recovery(chosen, truth).to_json() for name, truth in truths.items()}


def _evaluation(rng, accuracy: np.ndarray, one_model: bool) -> dict[str, Any]:
  counts = _counts(rng, accuracy)
  measured = class_counts.Scores(counts, counts[:, 0].sum(axis=1) * 0.4)
  together = class_counts.Scores(counts.sum(axis=0)[None], np.array([100.0]))
  overall = together.over_rows().to_json() if one_model else None
  # The drawn accuracies, not those of the counts: tests plant effects in them.
  highest = float(accuracy.max())
  clients = measured.summary().to_json() | {
      'mean_client_accuracy': float(accuracy.mean()), 'highest_client_accuracy': highest,
      'share_at_highest': float(np.mean(accuracy >= highest)),
  }  # fmt: skip
  return {'global': overall, 'clients': clients, 'client_accuracy': accuracy.tolist()}


def _counts(rng, accuracy: np.ndarray, rows: int = 200) -> np.ndarray:
  """Returns int64[clients, 3, classes]: rows by label, by prediction, and those that are right."""
  drawn = [(rng.integers(CLASSES, size=rows), rng.random(rows)) for _ in accuracy]
  truth, chance = (np.stack(each) for each in zip(*drawn, strict=True))
  right = chance < accuracy[:, None]
  predicted = np.where(right, truth, (truth + 1) % CLASSES)
  of_truth, of_prediction = (labels[..., None] == np.arange(CLASSES) for labels in (truth, predicted))
  return np.stack([of.sum(axis=1) for of in (of_truth, of_prediction, of_truth & right[..., None])], axis=1)


def _stage(rng, accuracy: np.ndarray, rounds: int, start: int) -> dict[str, Any]:
  count = len(accuracy) * rounds
  return {
      'rounds': rounds, 'dropped_updates': 0,
      'cost': cost(count),
      'history': _history(rng, accuracy, rounds, start), 'evaluation': _evaluation(rng, accuracy, True),
  }  # fmt: skip


def _history(rng, accuracy: np.ndarray, rounds: int, start: int) -> dict[str, Any]:
  end, steps = float(accuracy.mean()), np.arange(1, rounds + 1)
  low = 0.2 if start == 0 and end < 0.82 else end - 0.04
  curve = end - (end - low) * np.exp(-4 * steps / rounds) * (1 + 0.1 * rng.normal(size=rounds))
  curve[-1] = end
  return {
      'rounds': (start + steps).tolist(), 'validation_accuracy': curve.tolist(), 'test_accuracy': curve.tolist(),
      'share_at_target': np.clip(curve, 0, 1).round(1).tolist(),
  }  # fmt: skip


def _candidates(vectors, distances, truths, ids) -> list[dict[str, Any]]:
  found = []
  tree = scipy.cluster.hierarchy.linkage(vectors, 'ward') if len(ids) > 1 else None
  for count in range(2, min(5, len(ids) - 1) + 1):
    labels = scipy.cluster.hierarchy.fcluster(tree, count, 'maxclust')
    if (
      len(set(labels.tolist())) < 2
    ):  # Of three clients SciPy may make one cluster when asked for two at most.
      continue
    found.append({
        'method': 'kmeans', 'title': 'k-means', 'told': count, 'signature': 'weights', 'parameters': {'num_clusters': count}, 'num_clusters': count, 'memberships': 1.0,
        'silhouette': embedding.silhouette(distances, labels - 1),
        'recovery': _recovery(ClusterAssignment.from_labels(labels, ids), truths), 'notes': [],
    })  # fmt: skip
  found.append({
      'method': 'dynamic_distance', 'title': 'dynamic distance', 'told': None, 'signature': 'weights', 'parameters': {'distance_threshold': 'quantile:0.1'}, 'num_clusters': None,
      'memberships': None, 'silhouette': None, 'recovery': None, 'notes': ['more than 1000 maximal cliques: not enumerated'],
  })  # fmt: skip
  return found
