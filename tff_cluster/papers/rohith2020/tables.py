"""The three-phase method: which experiments are the paper's, and its scaled-down version; what it clusters, and what it prints.

Rohith et al. 2020, "Federated Learning through Distance-Based Clustering", section 7.2: a CNN on EMNIST with the row counts
of MNIST (section 4.1.1), 100 clients, non-IID, all of them in every round, 20 + 20 rounds, SGD with learning rate 0.1. Batch
size, local epochs and the partition are not given, so those cannot depart from it. Its methods are two of ours; its table 1
quotes a third, of Briggs et al. 2020.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tff_cluster.experiment.measured import Evaluation
from tff_cluster.scorecard import units
from tff_cluster.scorecard.cells import Cell, Read
from tff_cluster.scorecard.published import Published, Scale
from tff_cluster.scorecard.rows import Row, global_accuracy

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

PAPER = 'Rohith et al. 2020'
# By method.
FIGURES = MappingProxyType(
  {'kmeans': 'Figure 4 of Rohith et al. 2020', 'dynamic_distance': 'Figure 5 of Rohith et al. 2020'}
)
_PRESET = 'rohith2020_mnist'
_WEIGHTS = {'signature': 'weights'}
KMEANS = Row('K-means', {}, {'method': 'kmeans', 'num_clusters': 10}, _WEIGHTS)
DYNAMIC = Row(
  'Dynamic clustering', {}, {'method': 'dynamic_distance', 'distance_threshold': 'quantile:0.05'},
  {**_WEIGHTS, 'distance_threshold': 'mean', 'variant': 'cliques'},
)  # fmt: skip
# Another metric or linkage is another experiment than the one that table 1 quotes.
HIERARCHICAL = Row(
  'FL+HC (L2, single linkage)', {},
  {'method': 'hierarchical', 'name': 'single_linkage', 'linkage': 'single', 'distance_threshold': 'quantile:0.05'},
  {'metric': 'l2', 'linkage': 'single'}, is_strict=True,
)  # fmt: skip
SMALL = Scale(
  'small',
  'scikit-learn’s digits, 20 clients in 4 planted groups that swap labels, 10 + 10 rounds, 2 local epochs, batches of 10, '
  'learning rate 0.05',
  {}, {'kmeans': {'num_clusters': 4}, 'dynamic_distance': {'distance_threshold': 'quantile:0.1'}},
  preset='demo',
)  # fmt: skip
_TARGET = 0.99


def evaluation(name: str, metric: str) -> Read:
  """Reads a metric over clients of an evaluation ('own', 'blended'), in percent."""
  return lambda ours: ours.evaluation(name, lambda e: getattr(e.clients, metric))


def globally(name: str) -> Read:
  """Reads the accuracy on the global test set of 'phase1', 'baseline', 'average' or 'weighted'."""
  if name in ('phase1', 'baseline'):
    return lambda ours: ours.stage(name, global_accuracy)
  return lambda ours: ours.evaluation(name, global_accuracy)


def cluster_scores(kind: str, where: str) -> Read:
  """Reads means over clusters of their 'unblended' or 'blended' models, on their 'members' rows or on the 'global_test' set."""
  return lambda ours: [
    100.0 * float(np.mean(getattr(c.cluster_scores[kind], where))) for c in ours.clusterings
  ]


def _at_target(evaluation: Evaluation) -> float:
  return float(np.mean(np.asarray(evaluation.client_accuracy) >= _TARGET))


def _table1() -> tuple[Cell, ...]:
  row, source = HIERARCHICAL.name, f'{PAPER}, table 1, after Briggs et al. 2020'
  note = 'ours starts the clusters from their members’ mean and not from the global model as FL+HC does'
  return (
    Cell(
      row, 'mean_accuracy', 'mean client accuracy', units.PERCENT, evaluation('own', 'mean_client_accuracy'), 98.1,
      source=source, note=note,
    ),
    Cell(
      row, 'share_at_99', 'clients at 99%', units.SHARE, lambda ours: ours.evaluation('own', _at_target), 67.0,
      source=source, note=note,
    ),
  )  # fmt: skip


def _table2(row: Row, section: str, highest: float, share: float) -> tuple[Cell, ...]:
  source, note = (
    f'{PAPER}, table 2 and section {section}',
    'clients use the blended cluster models (section 7.2)',
  )
  return (
    Cell(
      row.name, 'highest', 'highest client accuracy', units.PERCENT, evaluation('blended', 'highest_client_accuracy'),
      highest, source=source, note=note,
    ),
    Cell(
      row.name, 'share_at_highest', 'clients at the highest accuracy', units.SHARE,
      evaluation('blended', 'share_at_highest'), share, source=source, note=note,
    ),
  )  # fmt: skip


def _table3(row: Row, section: str, *printed: float) -> tuple[Cell, ...]:
  names = {
    'phase1': 'Phase 1, global test set',
    'average': 'Phase 3, clusters average',
    'weighted': 'Phase 3, weighted cluster average',
  }
  source = f'{PAPER}, table 3 and section {section}'
  return tuple(
    Cell(row.name, f'{name}_global', words, units.PERCENT, globally(name), number, source=source)
    for (name, words), number in zip(names.items(), printed, strict=True)
  )


def _entry(
  name: str, title: str, rows: tuple[Row, ...], cells: tuple[Cell, ...], note: str = ''
) -> Published:
  if cells:
    sections: tuple[str, ...] = ('claims', 'numbers', 'clusters', 'curves')
  else:
    sections = ('clients', 'claims', 'clusters', 'curves')
  source = f'{PAPER}, {name.replace("table", "table ").replace("figure", "figure ")}'
  return Published(
    f'rohith2020/{name}', title, source, _PRESET, rows, note, 'with clusters', SMALL, cells, sections=sections
  )


_OPEN = (
  'The paper leaves its partition, K, batch size and local epochs open; the flag files say what was chosen.'
)
_BOTH = (KMEANS, DYNAMIC)
PUBLISHED: Mapping[str, Published] = MappingProxyType(
  {
    entry.name: entry
    for entry in (
      _entry(
        'table1', 'FL+HC, quoted to compare with', (HIERARCHICAL, *_BOTH), _table1(),
        'The table quotes the mean accuracy of FL+HC and its share of clients at 99%, so ours are these too.',
      ),
      _entry(
        'table2', 'Highest client accuracy, and clients that reach it', _BOTH,
        (*_table2(KMEANS, '7.2.1', 99.6, 26.0), *_table2(DYNAMIC, '7.2.2', 99.7, 28.0)), _OPEN,
      ),
      _entry(
        'table3', 'Accuracy on the global test set before and after clustering', _BOTH,
        (*_table3(KMEANS, '7.2.1', 92.5, 93.4, 93.4), *_table3(DYNAMIC, '7.2.2', 91.0, 93.0, 93.0)), _OPEN,
      ),
      _entry('figure4', 'Client accuracies before and after K-means', (KMEANS,), (), _OPEN),
      _entry('figure5', 'Client accuracies before and after dynamic clustering', (DYNAMIC,), (), _OPEN),
    )
  }
)  # fmt: skip
