"""The settings of a league: the same experiment on other data, NAME,FIELD=VALUE,...

A setting may have a learning rate of its own: one at which clients of some data learn is so high for others that none does. Options of
a clustering that are lengths of updates change with it, so that a setting may change these, too: LABEL.OPTION=VALUE. And it may have an
aggregator, since which one helps depends on what malicious clients of the setting send.
"""

import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from tff_cluster.base import fields
from tff_cluster.base.errors import InputError, argument
from tff_cluster.clustering.clustering_config import ClusteringConfig
from tff_cluster.data import datasets, sources
from tff_cluster.data.data_config import DataConfig
from tff_cluster.experiment.config import ExperimentConfig, TrainingConfig
from tff_cluster.phases import cost_estimates
from tff_cluster.storage import output_folders
from tff_cluster.studies.comparison import runs

_OF_TRAINING = ('learning_rate', 'aggregator')
# What else a league writes into its folder, of what could be a name.
RESERVED = ('figures', output_folders.STORE)


@dataclasses.dataclass(frozen=True)
class Setting:
  """A setting.

  Attributes:
    name: What pages call it, and the folder of its runs.
    config: Its experiment.
  """

  name: str
  config: ExperimentConfig


def read(texts: Sequence[str], config: ExperimentConfig) -> list[Setting]:
  """Returns the settings that texts describe, each a change of an experiment's data, of its learning rate, aggregator and clusterings.

  An oracle is left out where the groups that it names are not planted, or none are. Where there are several, one that names none
  has those that the partition plants; of pathological clients those by digit, which overlap.

  Args:
    texts: NAME,FIELD=VALUE,... with the fields of DataConfig, learning_rate, aggregator, and LABEL.OPTION of a clustering.
    config: The experiment.

  Raises:
    InputError: naming the text and what is wrong with it, or an oracle of groups that no setting plants.
    EnvironmentFault: if the machine does not let us read a file that may hold groups.
  """
  found: list[Setting] = []
  for text in texts:
    try:
      setting = _read(text, config)
      if setting.name.lower() in {other.name.lower() for other in found}:
        raise InputError(f'two settings are called {setting.name}')
    except InputError as error:
      raise InputError(f'{argument("setting", text)}: {error}') from None
    found.append(setting)
  kept = {clustering.label for setting in found for clustering in setting.config.clusterings}
  for clustering in config.clusterings if found else ():
    if (truth := _truth(clustering)) is not None and clustering.label not in kept:
      there = dict.fromkeys(name for setting in found for name in sources.planted(setting.config.data))
      raise InputError(
        f'{argument("clustering", clustering.method)},truth={truth}: no {argument("setting")} plants such groups; planted are '
        f'{", ".join(there) or "none"}'
      )
  return found


def plan(settings: Sequence[Setting], seeds: Sequence[int], root: Path) -> list[cost_estimates.Run]:
  """Returns the runs of all settings and seeds, in ROOT/SETTING/seed_SEED; raises as comparison.runs.plan does."""
  return [
    dataclasses.replace(run, name=f'{setting.name}, {run.name}')
    for setting in settings
    for run in runs.plan(setting.config, seeds, root / setting.name)
  ]


def _truth(clustering: ClusteringConfig) -> str | None:
  """Returns the planted groups that an oracle names; an oracle of a user's may have no such option."""
  return getattr(clustering.options, 'truth', None) if clustering.rule.oracle else None


def _as_planted(clustering: ClusteringConfig, planted: Sequence[str]) -> ClusteringConfig | None:
  """Returns a clustering as it is where these groups are planted, None where it does not apply; see read."""
  if not clustering.rule.oracle:
    return clustering
  truth = _truth(clustering)
  if not planted or truth not in (None, *planted):
    return None
  if truth is None and len(planted) > 1 and 'truth' in clustering.rule.fields():
    return clustering.changed(truth='digit' if 'digit' in planted else 'group')
  return clustering


def _without_what_does_not_apply(data: DataConfig, given: Collection[str]) -> DataConfig:
  """Returns the data with the fields at their defaults that do not apply there, but for those that the setting gives itself."""
  for field in dataclasses.fields(data):
    if field.name not in given and not fields.applies(field, functools.partial(getattr, data)):
      default: Any = field.default
      data = dataclasses.replace(data, **{field.name: default})
  return data


def _read(text: str, config: ExperimentConfig) -> Setting:
  name, *parts = [part.strip() for part in text.split(',')]
  if not name.replace('_', '').replace('-', '').isalnum():
    raise InputError(f'the first part must be a name of letters, digits, "-" and "_", found {name!r}')
  if name.lower() in RESERVED:
    raise InputError(f'a league writes {" and ".join(RESERVED)} itself; choose another name')
  of_data = [field for field in dataclasses.fields(DataConfig) if field.name != 'data_seed']
  of_training = [field for field in dataclasses.fields(TrainingConfig) if field.name in _OF_TRAINING]
  known = {field.name: field for field in (*of_data, *of_training)}
  values: dict[str, bool | int | float | str] = {}
  options: dict[str, Any] = {}
  for part in parts:
    key, equals, value = part.partition('=')
    if not equals or not value:
      raise InputError(f'{part!r} is not FIELD=VALUE')
    if key in values or key in options:
      raise InputError(f'{key} is given twice')
    try:
      if '.' in key:
        options[key] = _option(key, value, config.clusterings)
      elif key in known:
        values[key] = fields.value_from_text(known[key], value)
      else:
        raise InputError(
          f'unknown field {key!r}; known are those of the data, such as partition and num_groups, {", ".join(_OF_TRAINING)}, and '
          'LABEL.OPTION of a clustering'
        )
    except InputError:
      raise
    except ValueError as error:
      raise InputError(f'{part}: {error}') from None
  steps: dict[str, Any] = {key: values.pop(key) for key in _OF_TRAINING if key in values}
  own = values.get('dataset') in datasets.of_users() and values['dataset'] != config.data.dataset
  if own and 'partition' not in values:
    # That of the other settings may relabel rows.
    raise InputError(f'dataset={values["dataset"]} needs a partition of its own, such as by_writer or iid')
  data = _without_what_does_not_apply(dataclasses.replace(config.data, **values), values)  # type: ignore[arg-type]
  oracles = any(clustering.rule.oracle for clustering in config.clusterings)
  planted = sources.planted(data) if oracles else ()
  found = (_as_planted(_with(options, clustering), planted) for clustering in config.clusterings)
  training = dataclasses.replace(config.training, **steps)
  clusterings = tuple(filter(None, found))
  changed = dataclasses.replace(config, data=data, training=training, clusterings=clusterings)
  return Setting(name, changed.validated())


def _option(key: str, text: str, clusterings: Sequence[ClusteringConfig]) -> Any:
  """Reads a clustering's option, LABEL.OPTION; ValueError says what was expected."""
  label, _, option = key.rpartition('.')
  clustering = next((each for each in clusterings if each.label == label), None)
  if clustering is None:
    raise InputError(
      f'{key}: no clustering is called {label!r}; there are {", ".join(c.label for c in clusterings)}'
    )
  known = clustering.rule.fields()
  if option not in known:
    raise InputError(f'{key}: {clustering.method} has no option {option!r}; it has {", ".join(known)}')
  return clustering.rule.value_from_text(option, text)


def _with(options: Mapping[str, Any], clustering: ClusteringConfig) -> ClusteringConfig:
  """Returns a clustering with those of the options, LABEL.OPTION, that are its own."""
  own = {
    key.rpartition('.')[2]: value
    for key, value in options.items()
    if key.rpartition('.')[0] == clustering.label
  }
  return clustering.changed(**own) if own else clustering
