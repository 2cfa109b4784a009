"""What malicious clients do to the others, with and without clusters (data/malicious.py says who they are).

Read from finished phases, for results only: nothing that is trained or chosen knows who is malicious.
"""

from collections.abc import Sequence

import numpy as np

from tff_cluster.clustering import membership_history
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.data.population import MALICIOUS, Population
from tff_cluster.experiment import results
from tff_cluster.experiment.measured import Evaluation, Stage
from tff_cluster.experiment.result_parts import Clustering, Malicious, Sides


def summary(population: Population, baseline: Stage, clusterings: Sequence[Clustering]) -> Malicious | None:
  """Returns `malicious` of results.json; None where the population has no such truth.

  Args:
    population: The clients that take part.
    baseline: FedAvg without clusters.
    clusterings: After Phase 3.
  """
  if MALICIOUS not in population.truths:
    return None
  bad = np.asarray(population.truths[MALICIOUS])[1] > 0.0
  found = {}
  for clustering in clusterings:
    assignment = ClusterAssignment.from_clusters(
      clustering.clusters, population.client_ids, clustering.shares
    )
    # All clients have a share of every soft cluster: theirs is the one with the largest.
    own = membership_history.own_models(assignment.own[None])[0]
    beside = beside_malicious(own, bad)
    found[clustering.label] = _sides(results.own(clustering), bad, clustering.dropped_updates, beside)
  return Malicious(
    [population.client_ids[k] for k in np.flatnonzero(bad)],
    _sides(baseline.evaluation, bad, baseline.dropped_updates),
    found,
  )


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


def _sides(evaluation: Evaluation, malicious: np.ndarray, dropped: int, beside: float | None = None) -> Sides:
  accuracy = np.asarray(evaluation.client_accuracy)
  return Sides(_mean(accuracy[~malicious]), _mean(accuracy[malicious]), dropped, beside)


def _mean(accuracy: np.ndarray) -> float | None:
  return float(accuracy.mean()) if len(accuracy) else None
