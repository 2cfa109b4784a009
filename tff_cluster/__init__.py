"""Clustered federated learning on TensorFlow Federated, reproduced and compared.

`tff_cluster.run_experiment`, `tff_cluster.load` and the classes of a configuration are here, too, and are imported when they are
asked for: importing this package costs nothing.
"""

import importlib
from typing import Any

__version__ = '0.1.0'

_FOUND_IN = {
  'run_experiment': 'tff_cluster.studies.single_run',
  'load': 'tff_cluster.studies.loaded_run',
  'load_all': 'tff_cluster.studies.loaded_run',
  'ClusteringConfig': 'tff_cluster.clustering.clustering_config',
  'DataConfig': 'tff_cluster.data.data_config',
  'EvaluationConfig': 'tff_cluster.experiment.sections',
  'ExperimentConfig': 'tff_cluster.experiment.config',
  'TrainingConfig': 'tff_cluster.experiment.sections',
}


def __getattr__(name: str) -> Any:
  if name not in _FOUND_IN:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  return getattr(importlib.import_module(_FOUND_IN[name]), name)


def __dir__() -> list[str]:
  return sorted({*globals(), *_FOUND_IN})
