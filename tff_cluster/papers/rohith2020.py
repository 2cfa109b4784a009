"""The three-phase method: which experiments are the paper's, and its scaled-down version; what it clusters, and what it prints.

Rohith et al. 2020, "Federated Learning through Distance-Based Clustering", section 7.2: a CNN on EMNIST with the row counts
of MNIST (section 4.1.1), 100 clients, non-IID, all of them in every round, 20 + 20 rounds, SGD with learning rate 0.1. Batch
size, local epochs and the partition are not given, so those cannot depart from it. Its methods are two of ours; its table 1
quotes a third, of Briggs et al. 2020.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

CLIENTS, ROUNDS, LEARNING_RATE = 100, 20, 0.1
DATASETS = ('mnist', 'emnist')
# What of a run is the paper's method; any of them makes a run of these settings one of the paper's experiments.
METHODS = ('kmeans', 'dynamic_distance', 'hierarchical')

# The version of the README that needs no download; seeds, folds and what is measured beside are free.
SCALED_DOWN: Mapping[str, Any] = MappingProxyType(
  {
    'dataset': 'digits',
    'partition': 'label_swapped',
    'num_clients': 20,
    'num_groups': 4,
    'label_skew': 30.0,
    'rows_per_client': None,
    'model': 'mnist_cnn',
    'phase1_rounds': 10,
    'phase2_rounds': 10,
    'cohort_fraction': 1.0,
    'local_epochs': 2,
    'batch_size': 10,
    'learning_rate': 0.05,
    'malicious_clients': 0.0,
    'aggregator': 'mean',
  }
)
# Of fields that a configuration leaves out at their default.
DEFAULTS: Mapping[str, Any] = MappingProxyType({'malicious_clients': 0.0, 'aggregator': 'mean'})

NAMES = MappingProxyType({'kmeans': 'K-means', 'dynamic_distance': 'Dynamic clustering'})
FIGURES = MappingProxyType(
  {'kmeans': 'Figure 4 of Rohith et al. 2020', 'dynamic_distance': 'Figure 5 of Rohith et al. 2020'}
)
AVERAGE = MappingProxyType({'kmeans': '92.5% → 93.4%', 'dynamic_distance': '91% → 93%'})
WEIGHTED = MappingProxyType({'kmeans': '93.4% and 93.4%', 'dynamic_distance': '93% and 93%'})


def departures(clustering: Mapping[str, Any]) -> list[str]:
  """Returns in what a clustering of results.json differs from the paper's, one phrase each."""
  parameters = clustering['parameters']
  if clustering.get('splits') is not None:
    return [f'clusters {clustering["basis"].replace(", by", " by")}, the paper clusters weights at once']
  found = []
  if clustering['signature'] != 'weights':
    found.append(f'clusters {clustering["signature"]}, the paper clusters weights')
  if clustering['method'] == 'dynamic_distance':
    if (threshold := parameters.get('distance_threshold') or 'mean') != 'mean':
      found.append(f'threshold {threshold}, the paper takes the mean distance')
    if parameters.get('variant', 'cliques') != 'cliques':
      found.append(f'variant {parameters["variant"]}')
  if clustering['method'] == 'hierarchical':
    metric, linkage = parameters.get('metric', 'l2'), parameters.get('linkage', 'complete')
    if (metric, linkage) != ('l2', 'single'):
      found.append(f'{metric} and {linkage} linkage, table 1 has l2 and single')
  return found
