"""Adds new clients with given accuracies to results of finished_run.make_run or comparison_runs.make."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def add(
  results: dict[str, Any],
  fedavg: Sequence[float],
  cluster_accuracy: Mapping[str, Sequence[Sequence[float]]],
  assigned: Mapping[str, Sequence[Sequence[int]]],
  own: Mapping[str, Sequence[float]] | None = None,
) -> None:
  """Puts new clients into results, in place.

  Args:
    results: The results.
    fedavg: float[new], accuracy with FedAvg's model.
    cluster_accuracy: By label, float[clusters][new].
    assigned: By label, for each new client positions of clusters.
    own: By label, float[new]; default: the mean accuracy of its clusters' models.
  """
  truths = {
    name: np.asarray(truth)[:, : len(fedavg)].tolist()
    for name, truth in results['population']['truths'].items()
  }
  results['new_clients'] = {
    'client_ids': [f'n{k}' for k in range(len(fedavg))],
    'digest': '',
    'rows': {'train': 9, 'validation': 3, 'test': 6},
    'label_counts': [[1] * results['population']['num_classes']] * len(fedavg),
    'truths': truths,
    'fedavg': {'client_accuracy': list(fedavg)},
  }
  for clustering in results['clusterings']:
    label = clustering['label']
    each, clusters = np.asarray(cluster_accuracy[label], float), assigned[label]
    mine = (own or {}).get(label) or [float(each[rows, k].mean()) for k, rows in enumerate(clusters)]
    clustering['new_clients'] = {
      'assigned': [list(rows) for rows in clusters],
      'fallback': [len(rows) == 3 for rows in clusters],
      'client_accuracy': list(mine),
      'cluster_accuracy': each.tolist(),
      'regret': (each.max(axis=0) - mine).tolist(),
      'recovery': {name: {'ari': 0.5, 'nmi': 0.5, 'omega': 0.25} for name in truths},
      'cost': {'client_rounds': len(fedavg), 'bytes_up': 1},
    }
