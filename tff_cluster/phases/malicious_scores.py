"""What malicious clients do to the others, with and without clusters (data/malicious.py says who they are).

Read from finished phases, for results only: nothing that is trained or chosen knows who is malicious.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.data.population import MALICIOUS, Population
from tff_cluster.experiment import results


def summary(
  population: Population, baseline: Mapping[str, Any], clusterings: Sequence[tuple[Mapping[str, Any], int]]
) -> dict[str, Any] | None:
  """Returns `malicious` of results.json; None where the population has no such truth.

  Args:
    population: The clients that take part.
    baseline: STAGE of FedAvg without clusters.
    clusterings: Each entry of `clusterings` of results.json, and how many updates of its Phase 2 were dropped.
  """
  if MALICIOUS not in population.truths:
    return None
  bad = np.asarray(population.truths[MALICIOUS])[1] > 0.0
  found = {}
  for clustering, dropped in clusterings:
    assignment = ClusterAssignment.from_clusters(clustering['clusters'], population.client_ids)
    found[clustering['label']] = _sides(results.own(clustering), bad, dropped) | {
      'honest_beside_malicious': beside_malicious(assignment.membership, bad)
    }
  return {
    'client_ids': [population.client_ids[k] for k in np.flatnonzero(bad)],
    'baseline': _sides(baseline['evaluation'], bad, baseline['dropped_updates']),
    'clusterings': found,
  }


def beside_malicious(membership: np.ndarray, malicious: np.ndarray) -> float | None:
  """Returns the share of honest clients that are in some cluster with a malicious client; None where all are malicious.

  Args:
    membership: [clusters, clients]; above 0 is a member.
    malicious: bool[clients].
  """
  if malicious.all():
    return None
  member = np.asarray(membership) > 0.0
  with_malicious = member[:, malicious].any(axis=1)
  return float(member[with_malicious][:, ~malicious].any(axis=0).mean())


def _sides(evaluation: Mapping[str, Any], malicious: np.ndarray, dropped: int) -> dict[str, Any]:
  accuracy = np.asarray(evaluation['client_accuracy'])
  return {
    'honest_accuracy': _mean(accuracy[~malicious]),
    'malicious_accuracy': _mean(accuracy[malicious]),
    'dropped_updates': int(dropped),
  }


def _mean(accuracy: np.ndarray) -> float | None:
  return float(accuracy.mean()) if len(accuracy) else None
