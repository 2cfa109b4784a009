"""From parsed flags to validated configurations. A flag that is given and has no effect is an error."""

import dataclasses
import difflib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tff_cluster.base import fields
from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags
from tff_cluster.clustering import methods
from tff_cluster.clustering.clustering_config import does_not_apply
from tff_cluster.clustering.method import Method
from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import config, config_file

_Section = TypeVar('_Section')
# What is of the machine on which a command was given: its folders, the cluster that it has, and how runs share it.
_OF_MACHINE = (
  'output_dir',
  'store_dir',
  'data_dir',
  'data_file',
  'scheduler',
  'scheduler_file',
  'tls_ca',
  'tls_cert',
  'tls_key',
  'runs_in_parallel',
)


def experiment_config_from_flags(clusters: bool = True) -> config.ExperimentConfig:
  """Returns the experiment that --config_file or the flags describe.

  Sections whose flags the program does not define keep their defaults. Clusterings come from
  --clustering where the program defines it, else from the plain flags (--method, ...).

  Args:
    clusters: Whether the program makes clusterings, the default ones where none is given.

  Raises:
    InputError: naming the first flag that is out of range, does not apply to what the others chose,
      or stands beside --config_file.
  """
  path = flags.given(flags.RunOptions).get('config_file')
  if path is not None:
    places = {name: value for name, value in flags.given(config.DataConfig).items() if name in config.PLACES}
    beside = next((name for name in flags.given_of_experiment() if name not in places), None)
    if beside is not None:
      raise InputError(
        f'--{beside} may not stand beside --config_file, which repeats a run as it was; leave out one of the two'
      )
    there = config_file.read_config(path, section_from_flags(flags.RunOptions).allow_imports)
    if not places:
      return there
    return dataclasses.replace(there, data=dataclasses.replace(there.data, **places)).validated()
  if section_from_flags(flags.RunOptions).allow_imports:
    raise InputError('--allow_imports does not apply without --config_file, whose modules it allows to run')
  return config.ExperimentConfig(
    data=section_from_flags(config.DataConfig),
    training=section_from_flags(config.TrainingConfig),
    clusterings=_clusterings_from_flags(clusters),
    evaluation=section_from_flags(config.EvaluationConfig),
  ).validated()


def section_from_flags(kind: type[_Section]) -> _Section:
  """Returns a validated section (a class of tff_cluster.experiment.config, or of cli.flags) from its flags."""
  return fields.make_section(kind, flags.given(kind))


def run_options_from_flags() -> flags.RunOptions:
  """Returns the validated run flags; --output_dir is there.

  Raises:
    InputError: if --output_dir was not given, or another flag of the group is out of range.
  """
  options = section_from_flags(flags.RunOptions)
  if not options.output_dir:
    raise InputError('--output_dir=FOLDER is required: everything of a run lies there')
  return options


def machine_from_flags() -> machine_lib.Machine:
  """Returns the validated flags that say which workers a run may use.

  Raises:
    InputError: if one is out of range, or they do not name a cluster.
  """
  found = section_from_flags(machine_lib.Machine)
  _ = (
    found.cluster
  )  # Its files are looked for here, so that wrong ones are told before anything slow happens.
  return found


def runs_in_parallel_from_flags(machine: machine_lib.Machine) -> int:
  """Returns --runs_in_parallel. Raises InputError where it is given beside a cluster, which has runs side by side itself."""
  if machine.cluster is not None and flags.given(flags.RunsOptions):
    raise InputError(
      '--runs_in_parallel does not apply with a cluster, which has as many runs side by side as its workers have threads for'
    )
  return section_from_flags(flags.RunsOptions).runs_in_parallel


def output_dir_from_flags() -> Path:
  """Returns --output_dir. Raises InputError if it was not given."""
  return Path(run_options_from_flags().output_dir)


def clustering_from_flags() -> config.ClusteringConfig:
  """Returns the validated clustering of the plain flags (--method, --num_clusters, ...)."""
  return make_clustering(flags.given(flags.ClusteringFlags))


def added_clustering() -> config.ClusteringConfig | None:
  """Returns the one clustering that a command line gives, as --clustering or by plain flags; None where it gives none.

  Raises:
    InputError: if it gives both, or --clustering more than once.
  """
  texts = flags.FLAGS['clustering'].value if flags.FLAGS['clustering'].present else []
  plain = flags.given(flags.ClusteringFlags)
  if not texts:
    return clustering_from_flags() if plain else None
  if plain:
    raise InputError(
      f'--{next(iter(plain))} may not stand beside --clustering, which says it all; leave out one of the two'
    )
  if len(texts) > 1:
    raise InputError(
      f'--clustering is given {len(texts)} times; give it once, and the command again for each'
    )
  return parse_clustering_spec(texts[0])


def parse_clustering_spec(text: str) -> config.ClusteringConfig:
  """Reads METHOD,KEY=VALUE,..., for instance 'dynamic_distance,distance_threshold=quantile:0.1,name=dd'.

  Raises:
    InputError: naming the spec and the first part of it that is wrong.
  """
  name, *parts = [part.strip() for part in text.split(',')]
  values: dict[str, Any] = {'method': name}
  try:
    if ':' not in name and name not in methods.METHODS:
      raise InputError(
        f'the first part must be a method{_suggestion(name, methods.METHODS)}: {", ".join(methods.METHODS)}, or '
        'package.module:attribute'
      )
    method = methods.find(name)
    for part in parts:
      key, equals, value = part.partition('=')
      if not equals:
        raise InputError(f'{part!r} is not KEY=VALUE')
      if key in values:
        raise InputError(f'{key} is given twice')
      try:
        values[key] = value if key == 'name' else _option(name, method, key, value)
      except ValueError as error:
        if isinstance(error, InputError):
          raise
        raise InputError(f'{part}: {error}') from None
      if not value:
        raise InputError(f'{part}: the value is empty')
    return make_clustering(values)
  except InputError as error:
    raise InputError(f'--clustering={text}: {error}') from None


def make_clustering(values: Mapping[str, Any]) -> config.ClusteringConfig:
  """Returns the clustering of these values, checked; an option that its method does not have is an error.

  Raises:
    InputError: see ClusteringConfig.check.
  """
  clustering = config.ClusteringConfig(**values)
  known = clustering.rule.fields()
  for key in values:
    if key not in ('method', 'name') and key not in known:
      raise InputError(does_not_apply(key, clustering.method, methods.with_option(key)))
  clustering.check()
  # Only now it is known what the defaults of a method by import path are.
  given = {key: value for key, value in clustering.given if not fields.is_default(known[key], value)}
  return config.ClusteringConfig(clustering.method, clustering.name, **given)


def _option(name: str, method: Method[Any], key: str, text: str) -> Any:
  if key not in method.fields():
    if others := methods.with_option(key):
      raise InputError(does_not_apply(key, name, others))
    known = {'name': None, **method.fields()}
    raise InputError(f'unknown key {key!r}{_suggestion(key, known)}; known: {", ".join(known)}')
  return method.value_from_text(key, text)


def parse_seeds(text: str) -> tuple[int, ...]:
  """Reads --seeds=0,1,2.

  Raises:
    InputError: naming what is no seed, or is given twice.
  """
  seeds: list[int] = []
  for part in text.split(','):
    if not (part.strip().isascii() and part.strip().isdigit() and len(part.strip()) < 19):
      raise InputError(f'--seeds={text}: {part!r} is no seed; give whole numbers, for instance --seeds=0,1,2')
    if int(part) in seeds:
      raise InputError(f'--seeds={text}: {int(part)} is given twice')
    seeds.append(int(part))
  return tuple(seeds)


def command(program: str, arguments: Sequence[str]) -> str:
  """Returns the command line of a program of phases/ without what is this machine's, such as folders.

  Args:
    arguments: What it was given, flags as --name=value or as two arguments.
  """
  kept, is_left_out = [], False
  for argument in arguments:
    if is_left_out:
      is_left_out = False
      continue
    name, equals, value = argument.partition('=') if argument.startswith('-') else (argument, '', '')
    if argument.startswith('-') and name.lstrip('-') in _OF_MACHINE:
      is_left_out = not equals
    else:
      kept.append(f'{name}={shlex.quote(value)}' if equals else shlex.quote(argument))
  return ' '.join([f'python -m phases.{program}', *kept])


def _clusterings_from_flags(clusters: bool) -> tuple[config.ClusteringConfig, ...]:
  if 'clustering' not in flags.FLAGS:
    return (clustering_from_flags(),)
  if not flags.FLAGS['clustering'].present:
    return config.ExperimentConfig().clusterings if clusters else ()
  return tuple(parse_clustering_spec(text) for text in flags.FLAGS['clustering'].value)


def _suggestion(word: str, known: Mapping[str, Any]) -> str:
  close = difflib.get_close_matches(word, known, n=1)
  return f' (did you mean {close[0]}?)' if close else ''
