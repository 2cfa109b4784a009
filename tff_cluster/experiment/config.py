"""What an experiment is: frozen, validated once, saved whole, and enough to repeat it.

Fields are declared where they belong: tff_cluster/data/data_config.py, tff_cluster/experiment/sections.py, and each clustering
method's file.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import Rule, TrainingRule
from tff_cluster.base import digests
from tff_cluster.base import fields as fields_lib
from tff_cluster.base.errors import InputError, argument, shown
from tff_cluster.clustering.clustering_config import ClusteringConfig
from tff_cluster.clustering.method_options import METRICS, SIGNATURES
from tff_cluster.clustering.methods.hierarchical import L2_ONLY, LINKAGES
from tff_cluster.clustering.thresholds import parse_threshold
from tff_cluster.data.data_config import ATTACKS, PARTITIONS, DataConfig
from tff_cluster.experiment.sections import (
  AGGREGATORS,
  FEDAVG,
  PERSONALIZED,
  EvaluationConfig,
  TrainingConfig,
)
from tff_cluster.models.builtin import MODELS

# What is asked for as config.NAME beside the sections.
__all__ = [
  'AGGREGATORS', 'ATTACKS', 'FEDAVG', 'L2_ONLY', 'LINKAGES', 'METRICS', 'MODELS', 'PARTITIONS', 'PERSONALIZED', 'SIGNATURES', 'ClusteringConfig',
  'DataConfig', 'EvaluationConfig', 'ExperimentConfig', 'TrainingConfig', 'parse_threshold',
]  # fmt: skip

# Where data lies on a machine, which is no part of an experiment.
PLACES = ('data_dir', 'data_file')
SECTIONS = {'data': DataConfig, 'training': TrainingConfig, 'evaluation': EvaluationConfig}


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
    self.data.check()
    self.training.check()
    for clustering in self.clusterings:
      clustering.check()
    self.evaluation.check()
    _check_model_name(self.training.model)
    _check_one_step(self)
    for rule in rules.added(self.evaluation.aggregation):
      _check_own_models(rule, self.clusterings)
    # Labels name folders, and some file systems do not tell a from A.
    labels = [clustering.label.lower() for clustering in self.clusterings]
    repeated = sorted({label for label in labels if labels.count(label) > 1})
    if repeated:
      raise InputError(
        f'two clusterings are called {repeated[0]!r}; tell them apart with name=..., for instance name={repeated[0]}_2'
      )
    taken = sorted({title.lower() for title in PERSONALIZED.values()} & set(labels))
    if taken:
      raise InputError(f'clustering {taken[0]}: a baseline has this name; give it another one with name=...')
    self.data.check_combination()
    if self.data.new_clients and self.evaluation.num_folds:
      raise InputError(
        f'{argument("new_clients", self.data.new_clients)} does not apply with {argument("num_folds", self.evaluation.num_folds)}: folds measure '
        'clients that take part; leave one of the two out'
      )
    if self.data.test_rows == 'all' and self.evaluation.num_folds:
      raise InputError(
        f'{argument("test_rows", "all")} does not apply with {argument("num_folds", self.evaluation.num_folds)}: folds test each client '
        'on rows of its own'
      )
    if self.data.relabels_copies and self.evaluation.num_folds:
      raise InputError(
        f'{argument("group_rows", "all")} with {argument("partition", self.data.partition)} does not apply with '
        f'{argument("num_folds", self.evaluation.num_folds)}: what a client is tested on, clients of other groups train on, most of it '
        'with the same label'
      )
    if self.data.overlapping_rows and self.evaluation.num_folds:
      raise InputError(
        f'{argument("text_stride", self.data.text_stride)} with {argument("text_window", self.data.text_window)} does not apply with '
        f'{argument("num_folds", self.evaluation.num_folds)}: rows overlap, so that what is tested on would be trained on'
      )
    if self.evaluation.num_folds == 1:
      raise InputError(f'{argument("num_folds", 1)}: cross-validation needs at least 2 folds (or 0 for none)')
    for clustering in self.clusterings:
      try:
        self._check_clustering(clustering)
      except InputError as error:
        if len(self.clusterings) == 1:
          raise
        raise InputError(f'clustering {clustering.label}: {error.marked}') from None
    return self

  def _check_clustering(self, clustering: ClusteringConfig) -> None:
    words = ' that take part' if self.data.new_clients else ''
    clustering.rule.check_experiment(
      clustering.options, self.data.num_participants, self.training.cohort_fraction, words
    )
    clustering.rule.rounds_of_choice(clustering.options, self.training.phase2_rounds)
    self._check_beside(clustering)

  def _check_beside(self, clustering: ClusteringConfig) -> None:
    beside = [other.label for other in self.clusterings if not other.rule.trains]
    clustering.rule.check_beside(clustering.options, beside)

  def with_clusterings(self, added: tuple[ClusteringConfig, ...]) -> 'ExperimentConfig':
    """Returns this experiment with more clusterings of its one Phase 1; those that it has stay once.

    Raises:
      InputError: if an added clustering has the label of another one.
    """
    new = tuple(clustering for clustering in added if clustering not in self.clusterings)
    return dataclasses.replace(self, clusterings=(*self.clusterings, *new)).validated()

  def with_aggregation(self, added: tuple[str, ...]) -> 'ExperimentConfig':
    """Returns this experiment with more rules of Phase 3; those that it has stay once.

    Raises:
      InputError: if an added rule has the name of another one.
    """
    both = tuple(dict.fromkeys((*self.evaluation.aggregation, *added)))
    return dataclasses.replace(
      self, evaluation=dataclasses.replace(self.evaluation, aggregation=both)
    ).validated()

  def clustering(self, label: str) -> ClusteringConfig:
    """Returns the clustering of a label."""
    return next(each for each in self.clusterings if each.label == label)

  def without(self, failed: Collection[str]) -> 'ExperimentConfig':
    """Returns this experiment without the clusterings of these labels, and the rules of Phase 3 that are called so (Rule.called)."""
    kept = tuple(text for text in self.evaluation.aggregation if argument('aggregation', text) not in failed)
    return dataclasses.replace(
      self,
      clusterings=tuple(clustering for clustering in self.clusterings if clustering.label not in failed),
      evaluation=dataclasses.replace(self.evaluation, aggregation=kept),
    )

  @property
  def of_fold(self) -> 'ExperimentConfig':
    """What one fold of its cross-validation is."""
    return dataclasses.replace(self, evaluation=dataclasses.replace(self.evaluation, num_folds=0))

  def unsupported(self) -> dict[str, Exception]:
    """Returns what cannot stand without a clustering that is not here, and why: clusterings by label, rules by Rule.called."""
    found: dict[str, Exception] = {}
    for clustering in self.clusterings:
      try:
        self._check_beside(clustering)
      except InputError as error:
        found[clustering.label] = error
    for rule in rules.added(self.evaluation.aggregation):
      try:
        _check_own_models(rule, self.clusterings)
      except InputError as error:
        found[rule.called] = error
    return found

  def to_json(self) -> dict[str, Any]:
    return {
      'data': fields_lib.to_json(self.data),
      'training': fields_lib.to_json(self.training),
      'clusterings': [clustering.to_json() for clustering in self.clusterings],
      'evaluation': fields_lib.to_json(self.evaluation),
    }

  @classmethod
  def from_json(cls, value: Mapping[str, Any]) -> 'ExperimentConfig':
    """Reads what `to_json` wrote, and validates it.

    Raises:
      InputError: naming an unknown section or field, or what `validated` finds.
    """
    return cls.read(value).validated()

  @classmethod
  def read(cls, value: Mapping[str, Any]) -> 'ExperimentConfig':
    """Reads what `to_json` wrote. Imports nothing that it names, and looks at no value.

    Raises:
      InputError: naming an unknown section or field.
    """
    if not isinstance(value, Mapping):
      raise InputError(f'a configuration must be a JSON object, found {type(value).__name__}')
    unknown = sorted(set(value) - set(SECTIONS) - {'clusterings'})
    if unknown:
      raise InputError(
        f'unknown section {unknown[0]!r} in the configuration; known: {", ".join([*SECTIONS, "clusterings"])}'
      )
    parts: dict[str, Any] = {
      name: fields_lib.section_from_json(kind, value.get(name, {})) for name, kind in SECTIONS.items()
    }
    if 'clusterings' in value:
      if not isinstance(value['clusterings'], (list, tuple)):
        raise InputError(f'clusterings must be a list, found {shown(value["clusterings"])}')
      parts['clusterings'] = tuple(ClusteringConfig.from_json(c) for c in value['clusterings'])
    made = cls(**parts)
    rules_given = made.evaluation.aggregation
    if not isinstance(rules_given, tuple) or not all(isinstance(each, str) for each in rules_given):
      raise InputError(f'{argument("aggregation", rules_given)}: expected a list of texts')
    return made

  @property
  def digest(self) -> str:
    """Names what determines the results; where data lies on this machine does not."""
    return digests.of_json(determinants(self.to_json()))


def determinants(plain: Mapping[str, Any]) -> dict[str, Any]:
  """Returns what of an experiment (as `to_json` gives it) determines its results.

  Where data lies on this machine does not. A field at its default is left out, so that a new field moves no digest.
  """
  kept: dict[str, Any] = {'clusterings': plain['clusterings']}
  for name, kind in SECTIONS.items():
    fields = {field.name: field for field in dataclasses.fields(kind)}
    kept[name] = {
      key: value
      for key, value in plain[name].items()
      if key not in PLACES and not fields_lib.is_default(fields[key], value)
    }
  return kept


def _check_one_step(config: ExperimentConfig) -> None:
  """Refuses what was given and has no effect where a client makes one step a round."""
  training = config.training
  if not training.is_one_step:
    return
  idle: list[tuple[str, Any]] = []
  if training.client_optimizer == 'momentum':
    idle.append(('client_optimizer', training.client_optimizer))
  if training.proximal_mu > 0:
    idle.append(('proximal_mu', training.proximal_mu))
  for clustering in config.clusterings:
    idle += [(n, v) for n, v in clustering.given if n in clustering.rule.idle_in_one_step and v > 0]
  for name, value in idle:
    raise InputError(
      f'{argument(name, value)} has no effect with {argument("batch_size", 0)} and {argument("local_epochs", 1)}, '
      'where a client makes one step a round; give batches or more epochs'
    )
  for rule in rules.added(config.evaluation.aggregation):
    strength = rule.options.get('proximal_mu', 0.0) if rule.code is None else 0.0
    if isinstance(rule, TrainingRule) and rule.most_rounds == 1 and strength > 0:
      raise InputError(
        f'{rule.called}: proximal_mu={strength} has no effect in one round of one step, with {argument("batch_size", 0)} and '
        f'{argument("local_epochs", 1)}; give more rounds, batches or more epochs'
      )


def _check_own_models(rule: Rule, found: Sequence[ClusteringConfig]) -> None:
  """Refuses an added rule that trains clients' own models where no clustering of those found gives them any."""
  if isinstance(rule, TrainingRule) and found and all(each.rule.joins_predictions for each in found):
    raise InputError(
      f'{rule.called} needs a clustering whose clients have a model of their own to go on training, not join the predictions of all '
      f'models as those of {", ".join(each.label for each in found)} do'
    )


def _check_model_name(model: str) -> None:
  module, colon, function = model.partition(':')
  path = [*module.split('.'), function]
  if model not in MODELS and not (colon and all(part.isidentifier() for part in path)):
    raise InputError(
      f'{argument("model", model)}: allowed are {", ".join(MODELS)}, or package.module:function'
    )
