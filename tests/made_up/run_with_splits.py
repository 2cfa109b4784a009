"""Makes up the recursion of a bi-partition for made-up runs: halves by SciPy, verdicts and accuracies by construction."""

from typing import Any

import numpy as np
import scipy.cluster.hierarchy
import scipy.spatial.distance

STATIONARY, STOPPING = 0.4, 1.6
PARAMETERS = {
    'stationary_norm': STATIONARY, 'stopping_norm': STOPPING, 'rounds_before_split': 10, 'min_cluster_size': 1,
    'min_similarity_gap': 0.0,
    'max_cross_similarity': 1.0,
}  # fmt: skip


def make_splits(
  rng: np.random.Generator,
  owner: np.ndarray,
  ids: list[str],
  label: str,
  rounds: tuple[int, int],
  verdict: str = 'split',
  noise: float = 0.3,
) -> tuple[list[dict[str, Any]], np.ndarray, dict[str, np.ndarray]]:
  """Returns results['clusterings'][i]['splits'], int64[clients] final clusters and the arrays.

  Clusters of several planted groups are split after Phase 1 and then at equal steps, those of one group stopped a
  step later. Accuracy is about 20% before any split and rises by 5 points a split, exactly, from the round after it on.

  Args:
    rng: Of the updates.
    owner: int64[clients], planted groups.
    ids: The clients' ids.
    label: Of the clustering.
    rounds: Of Phase 1 and Phase 2.
    verdict: For clusters of several groups: 'split', or 'kept' as by a guard.
    noise: Standard deviation of updates around their group's, whose distance from the mean is 3.
  """
  groups = int(owner.max()) + 1
  step = max(rounds[1] // (groups + 1), 1)
  tests: list[dict[str, Any]] = []
  arrays: dict[str, np.ndarray] = {}
  accuracy = np.full((sum(rounds), len(owner)), 0.2) + rng.uniform(-0.05, 0.05, len(owner))
  final = np.zeros(len(owner), np.int64)
  waiting, at = [np.arange(len(owner))], rounds[0]
  while waiting and at <= sum(rounds):
    following = []
    for members in sorted(waiting, key=lambda m: int(m[0])):
      mixed = len(set(owner[members].tolist())) > 1
      similarity = _similarity(rng, owner[members], noise)
      arrays[f'similarity_{label}_{len(tests):03d}'] = similarity.astype(np.float32)
      tests.append(_entry(members, at, similarity, mixed, verdict, ids))
      if mixed and verdict == 'split':
        halves = [[ids.index(name) for name in half] for half in tests[-1]['halves']]
        following += [np.array(half) for half in halves]
        accuracy[at:, members] += 0.05
        final[halves[1]] = final.max() + 1
    waiting, at = following, at + step
  arrays[f'client_accuracy_{label}'] = accuracy.astype(np.float32)
  return tests, final, arrays


def _similarity(rng: np.random.Generator, groups: np.ndarray, noise: float) -> np.ndarray:
  kinds = np.unique(groups)
  centres = 3.0 * np.eye(len(kinds), 40)
  # At a stationary point the mean update vanishes, so that groups point away from each other.
  centres = (centres - centres.mean(axis=0)) * (len(kinds) > 1)
  updates = centres[np.searchsorted(kinds, groups)] + rng.normal(0, noise, (len(groups), 40))
  unit = updates / np.linalg.norm(updates, axis=1, keepdims=True)
  similarity = np.clip(unit @ unit.T, -1, 1)
  np.fill_diagonal(similarity, 1.0)
  return (similarity + similarity.T) / 2


def _entry(members, at, similarity, mixed, verdict, ids) -> dict[str, Any]:
  entry: dict[str, Any] = {
      'round': at, 'cluster': [ids[k] for k in members], 'verdict': verdict if mixed else 'stopped', 'halves': None,
      'cross_similarity': None, 'similarity_gap': None, 'mean_update_norm': 0.31, 'max_update_norm': 2.75 if mixed else 1.25,
      'reason': '' if mixed else 'the highest norm of an update, 1.25, is below stopping_norm=1.6',
  }  # fmt: skip
  if not mixed:
    return entry
  tree = scipy.cluster.hierarchy.linkage(
    scipy.spatial.distance.squareform(1 - similarity, checks=False), 'single'
  )
  second = np.ones(len(members), bool)
  second[scipy.cluster.hierarchy.to_tree(tree).left.pre_order()] = False
  second = second != second[0]
  across = similarity[np.ix_(~second, second)]
  inside = np.where(
    (second[:, None] == second[None, :]) & ~np.eye(len(second), dtype=bool), similarity, -2.0
  ).max(axis=1)
  gap = float(inside[inside > -2].min() - across.max()) if (inside > -2).any() else 0.0
  entry |= {
      'halves': [[ids[k] for k in members[~second]], [ids[k] for k in members[second]]],
      'cross_similarity': float(across.max()), 'similarity_gap': gap,
  }  # fmt: skip
  if verdict == 'kept':
    entry['reason'] = 'a half of 5 clients, at least 9 asked for (min_cluster_size)'
  return entry
