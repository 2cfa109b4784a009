"""The three-phase method: which experiments are the paper's, and its scaled-down version.

Rohith et al. 2020, "Federated Learning through Distance-Based Clustering", section 7.2: a CNN on EMNIST with the row counts
of MNIST (section 4.1.1), 100 clients, non-IID, all of them in every round, 20 + 20 rounds, SGD with learning rate 0.1. Batch
size, local epochs and the partition are not given, so those cannot depart from it.
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
