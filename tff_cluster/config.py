"""What an experiment is: frozen, validated once, saved whole, and enough to repeat it.

The sections and their fields are declared in tff_cluster/config_sections.py.
"""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from tff_cluster import digests, options
from tff_cluster.config_sections import (
  AFFINITIES,
  AGGREGATORS,
  ATTACKS,
  COUNTED,
  DATASETS,
  GROUPED,
  INITIALIZERS,
  LINKAGES,
  METHODS,
  METRICS,
  MODELS,
  ON_SIGNATURES,
  PARTITIONS,
  PLANTED_NEEDS_A_RUN,
  SIGNATURES,
  STARTS,
  VALIDATION,
  VALIDATION_NEEDS_A_RUN,
  VARIANTS,
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  TrainingConfig,
)
from tff_cluster.errors import InputError, shown

__all__ = [
  'AFFINITIES',
  'AGGREGATORS',
  'ATTACKS',
  'COUNTED',
  'DATASETS',
  'GROUPED',
  'INITIALIZERS',
  'LINKAGES',
  'METHODS',
  'METRICS',
  'MODELS',
  'ON_SIGNATURES',
  'PARTITIONS',
  'PLANTED_NEEDS_A_RUN',
  'SIGNATURES',
  'STARTS',
  'VALIDATION',
  'VALIDATION_NEEDS_A_RUN',
  'VARIANTS',
  'ClusteringConfig',
  'DataConfig',
  'EvaluationConfig',
  'ExperimentConfig',
  'TrainingConfig',
  'parse_threshold',
  'validate',
]

# Names of clusterings become names of files, with a few words before and behind; 255 bytes is what file systems allow.
_LONGEST_NAME = 100


@dataclasses.dataclass(frozen=True)
class ExperimentConfig:
  """A whole experiment. `ExperimentConfig.from_json(config.to_json()) == config`."""

  data: DataConfig = DataConfig()
  training: TrainingConfig = TrainingConfig()
  clusterings: tuple[ClusteringConfig, ...] = (
    ClusteringConfig(method='kmeans'),
    ClusteringConfig(method='dynamic_distance'),
  )
  evaluation: EvaluationConfig = EvaluationConfig()

  def validated(self) -> 'ExperimentConfig':
    """Returns self.

    Raises:
      InputError: naming the first field that is out of range or does not apply, its value and what
        is allowed.
    """
    for section in (self.data, self.training, *self.clusterings, self.evaluation):
      validate(section)
    _check_model_name(self.training.model)
    # Labels name folders, and some file systems do not tell a from A.
    labels = [clustering.label.lower() for clustering in self.clusterings]
    repeated = sorted({label for label in labels if labels.count(label) > 1})
    if repeated:
      raise InputError(
        f'two clusterings are called {repeated[0]!r}; tell them apart with name=..., for instance name={repeated[0]}_2'
      )
    if self.data.dataset == 'file' and not self.data.data_file:
      raise InputError('--dataset=file needs --data_file=X.npz')
    if self.data.partition == 'by_writer' and self.data.dataset not in ('emnist', 'file'):
      raise InputError(
        f'--partition=by_writer needs rows that have owners: --dataset=emnist or file, not {self.data.dataset}'
      )
    if self.data.max_examples is not None and self.data.max_examples < self.data.min_examples:
      raise InputError(
        f'--max_examples={self.data.max_examples} is below --min_examples={self.data.min_examples}'
      )
    if self.data.new_clients >= self.data.num_clients:
      raise InputError(
        f'--new_clients={self.data.new_clients} of --num_clients={self.data.num_clients}: at least one client must take '
        f'part; give at most {self.data.num_clients - 1}'
      )
    if self.data.new_clients and self.evaluation.num_folds:
      raise InputError(
        f'--new_clients={self.data.new_clients} does not apply with --num_folds={self.evaluation.num_folds}: folds measure '
        'clients that take part; leave one of the two out'
      )
    if self.evaluation.num_folds == 1:
      raise InputError('--num_folds=1: cross-validation needs at least 2 folds (or 0 for none)')
    if self.data.noise_clients > 0.0 and self.data.dataset != 'mnist':
      raise InputError(
        f'--noise_clients={self.data.noise_clients} does not apply to --dataset={self.data.dataset}; it applies to dataset mnist'
      )
    if self.data.noise_clients > 0.0 and self.data.num_clients < 2:
      raise InputError(
        f'--noise_clients={self.data.noise_clients} needs at least 2 clients, found --num_clients={self.data.num_clients}'
      )
    _check_malicious(self.data)
    if self.data.partition in GROUPED and self.data.num_groups > self.data.num_clients:
      raise InputError(
        f'--num_groups={self.data.num_groups} is more than the {self.data.num_clients} clients; every group needs one'
      )
    if self.data.partition == 'mixture' and self.data.num_groups < 2:
      raise InputError(f'--num_groups={self.data.num_groups}: a mixture needs at least 2 groups')
    for clustering in self.clusterings:
      if clustering.method == 'bipartition' and self.training.cohort_fraction < 1.0:
        raise InputError(
          f'--cohort_fraction={self.training.cohort_fraction}: bipartition compares the updates of all clients of a round; '
          'it needs 1.0'
        )
      if clustering.method in COUNTED and clustering.num_clusters > self.data.num_participants:
        taking_part = ' that take part' if self.data.new_clients else ''
        raise InputError(
          f'num_clusters={clustering.num_clusters} is more than the {self.data.num_participants} clients{taking_part}; '
          'give at most as many clusters as clients'
        )
    return self

  def with_clusterings(self, added: tuple[ClusteringConfig, ...]) -> 'ExperimentConfig':
    """Returns this experiment with more clusterings of its one Phase 1; those that it has stay once.

    Raises:
      InputError: if an added clustering has the label of another one.
    """
    new = tuple(clustering for clustering in added if clustering not in self.clusterings)
    return dataclasses.replace(self, clusterings=(*self.clusterings, *new)).validated()

  def without_clusterings(self, labels: Collection[str]) -> 'ExperimentConfig':
    """Returns this experiment without the clusterings of these labels."""
    return dataclasses.replace(
      self, clusterings=tuple(clustering for clustering in self.clusterings if clustering.label not in labels)
    )

  def to_json(self) -> dict[str, Any]:
    return {
      'data': options.to_json(self.data),
      'training': options.to_json(self.training),
      'clusterings': [options.to_json(clustering) for clustering in self.clusterings],
      'evaluation': options.to_json(self.evaluation),
    }

  @classmethod
  def from_json(cls, value: Mapping[str, Any]) -> 'ExperimentConfig':
    """Reads what `to_json` wrote, and validates it.

    Raises:
      InputError: naming an unknown section or field.
    """
    if not isinstance(value, Mapping):
      raise InputError(f'a configuration must be a JSON object, found {type(value).__name__}')
    sections = {'data': DataConfig, 'training': TrainingConfig, 'evaluation': EvaluationConfig}
    unknown = sorted(set(value) - set(sections) - {'clusterings'})
    if unknown:
      raise InputError(
        f'unknown section {unknown[0]!r} in the configuration; known: {", ".join([*sections, "clusterings"])}'
      )
    parts: dict[str, Any] = {
      name: options.section_from_json(kind, value.get(name, {})) for name, kind in sections.items()
    }
    if 'clusterings' in value:
      if not isinstance(value['clusterings'], (list, tuple)):
        raise InputError(f'clusterings must be a list, found {shown(value["clusterings"])}')
      parts['clusterings'] = tuple(
        options.section_from_json(ClusteringConfig, c) for c in value['clusterings']
      )
    return cls(**parts).validated()

  @property
  def digest(self) -> str:
    """Names what determines the results; where data lies on this machine does not."""
    plain = self.to_json()
    for path in ('data_dir', 'data_file'):
      del plain['data'][path]
    return digests.of_json(plain)


def validate(section: Any) -> None:
  """Checks one section.

  Raises:
    InputError: see ExperimentConfig.validated.
  """
  options.check_fields(section)
  if isinstance(section, ClusteringConfig):
    _check_clustering(section)


def parse_threshold(text: str) -> tuple[str, float]:
  """Reads a distance threshold: ('mean', nan), ('number', T) or ('quantile', q).

  Raises:
    InputError: where the text is none of them, or the number is out of range.
  """
  if text == 'mean':
    return 'mean', float('nan')
  kind, colon, number = text.rpartition(':')
  try:
    value = options.number(number)
  except ValueError:
    value = float('nan')
  if kind == 'quantile' and 0.0 <= value <= 1.0:
    return 'quantile', value
  if not colon and 0.0 <= value < float('inf'):
    return 'number', value
  raise InputError(
    f'--distance_threshold={text}: allowed are mean, a number >= 0, or quantile:q with q from 0 to 1'
  )


def _check_clustering(section: ClusteringConfig) -> None:
  if section.name is not None and not section.name.replace('_', '').replace('-', '').isalnum():
    raise InputError(f'name={section.name!r}: a clustering name has letters, digits, "-" and "_" only')
  if section.name is not None and len(section.name.encode()) > _LONGEST_NAME:
    raise InputError(f'name={section.name!r}: a clustering name has at most {_LONGEST_NAME} letters')
  if section.method == 'hierarchical':
    if section.linkage == 'ward' and section.metric != 'l2':
      raise InputError(f'--linkage=ward needs --metric=l2, given --metric={section.metric}')
    if section.distance_threshold is None:
      raise InputError('--method=hierarchical needs --distance_threshold=T (a number)')
    kind = (
      VALIDATION
      if section.distance_threshold == VALIDATION
      else parse_threshold(section.distance_threshold)[0]
    )
    if kind == 'mean':
      raise InputError(
        '--distance_threshold=mean applies to dynamic_distance; hierarchical takes a number, quantile:q or validation'
      )
  elif section.distance_threshold is not None:
    parse_threshold(section.distance_threshold)


def _check_malicious(data: DataConfig) -> None:
  if data.malicious_clients == 0.0:
    for name in ('attack', 'attack_scale'):
      if getattr(data, name) != getattr(DataConfig, name):
        raise InputError(
          f'--{name}={getattr(data, name)} needs malicious clients: give --malicious_clients too'
        )
  elif data.num_clients < 2:
    raise InputError(
      f'--malicious_clients={data.malicious_clients} needs at least 2 clients, found --num_clients={data.num_clients}'
    )
  elif data.update_scale == 1.0 and data.attack == 'scaled':
    raise InputError('--attack_scale=1.0: scaled by 1 clients are honest; give another number')


def _check_model_name(model: str) -> None:
  module, colon, function = model.partition(':')
  path = [*module.split('.'), function]
  if model not in MODELS and not (colon and all(part.isidentifier() for part in path)):
    raise InputError(f'--model={model}: allowed are {", ".join(MODELS)}, or package.module:function')
