"""absl flags made from the declarations in tff_cluster.experiment.config, so that each option is declared once.

A flag whose value is None was not given: defaults belong to the configuration classes, and --help
tells them. Headings in --help are the `module_name` under which absl files a flag.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

from absl import flags

from tff_cluster.base import fields
from tff_cluster.clustering import methods
from tff_cluster.engine import machine
from tff_cluster.experiment import config

FLAGS = flags.FLAGS


@dataclasses.dataclass(frozen=True)
class RunOptions:
  """Where a run lies, and with config_file what it repeats; the folders change no result."""

  output_dir: str = fields.option('', 'Folder of the run; the same command there goes on where it stopped.')
  config_file: str | None = fields.option(
    None,
    'The config.json of an earlier run, which is repeated from it; takes the place of all flags that say what the experiment is, but for '
    'where its data lies.',
  )
  allow_imports: bool = fields.option(
    False,
    'Run the modules that --config_file names by import path (a model, a clustering or a rule of its own): code of whoever wrote it.',
  )
  store_dir: str | None = fields.option(
    None,
    'Folder of artifacts that several runs share, so that none trains what another has; default: a folder of the run.',
  )


@dataclasses.dataclass(frozen=True)
class ExportOptions:
  """What is written for others to use; changes no result."""

  export_models: bool = fields.option(
    False,
    "Also write each cluster's model as a .keras file, for plain Keras; a finished run does so without training.",
  )


@dataclasses.dataclass(frozen=True)
class VectorsOptions:
  """Vectors that are clustered without an experiment around them."""

  signatures_file: str | None = fields.option(
    None,
    'One vector a client: an .npz with signatures [clients, features] and optional client_id names in client_ids, or a plain .npy.',
  )
  seed: int = fields.option(
    0,
    'Seed of what is drawn on --signatures_file: the starts of clusterings, and sketches.',
    at_least=0,
  )


@dataclasses.dataclass(frozen=True)
class StoreOptions:
  """Which store to look at, and what to remove from it."""

  store_dir: str = fields.option('', 'The store: the --store_dir of runs, or the folder store/ of one run.')
  prune_unused_days: float | None = fields.option(
    None, 'Remove artifacts that no run used for this many days; default: remove nothing.', at_least=0.0
  )


@dataclasses.dataclass(frozen=True)
class ReplayOptions:
  """Clustering questions that saved signatures answer without training."""

  signature: str = fields.option(
    'weights',
    "Which signatures of the run: the clients' own weights of the last round, or one local update.",
    choices=config.SIGNATURES,
  )
  metrics: str = fields.option(
    ','.join(config.METRICS), f'Distances of hierarchical clustering, from {", ".join(config.METRICS)}.'
  )
  linkages: str = fields.option(
    ','.join(config.LINKAGES),
    f'Linkages, from {", ".join(config.LINKAGES)}; {" and ".join(config.L2_ONLY)} go with l2 only.',
  )
  num_thresholds: int = fields.option(
    20, 'Thresholds of each metric and linkage, spread over its merges.', at_least=1, at_most=100_000
  )
  cluster_counts: str = fields.option(
    '2,3,4,5,6,7,8,9,10',
    'Numbers of clusters K, of methods that are told it, or none; those above the number of clients are left out.',
  )
  distance_thresholds: str = fields.option(
    'mean,quantile:0.05,quantile:0.1,quantile:0.2', 'Thresholds of dynamic distance, or none.'
  )
  silhouettes: bool = fields.option(True, 'Compute the silhouette of each clustering.')
  sketch_dimension: int = fields.option(
    0,
    'Cluster count sketches of this many numbers a client, and report their distortion; 0: do not.',
    at_least=0,
  )
  memory_mb: int = fields.option(
    64, 'Memory that working copies of the signatures may take, in MiB; distances come on top.', at_least=1
  )


@dataclasses.dataclass(frozen=True)
class DisturbOptions:
  """How what clients send for clustering is made private, or small."""

  noise_multipliers: str = fields.option(
    '0,0.001,0.003,0.01,0.03,0.1,0.3,1',
    'Standard deviations of the noise as multiples of the clip norm, 0 or from 0.000001 to 1,000,000, or none; 0 clips only.',
  )
  bits: str = fields.option('1,2,4,8,16', 'Bits a number that clients quantize to, from 1 to 16, or none.')
  repeats: int = fields.option(
    5,
    'How often noise and random rounding are drawn anew, each from a seed of its own.',
    at_least=1,
    at_most=10_000,
  )
  clip_norm: float | None = fields.option(
    None,
    "Euclidean norm that updates are clipped to; default: the median of the clients' norms, which no single party knows.",
    above=0.0,
    at_most=1e30,
  )


@dataclasses.dataclass(frozen=True)
class ExpertsOptions:
  """Outputs of experts that are combined without an experiment around them."""

  outputs_file: str | None = fields.option(
    None,
    'An .npz with outputs [experts, samples, classes], probabilities, and optional labels [samples] and start_weights [experts, classes].',
  )
  num_shuffles: int = fields.option(
    10,
    'Other orders of the samples in which FedEx is tried; its weights depend on the order.',
    at_least=1,
    at_most=100_000,
  )
  seed: int = fields.option(0, 'Seed of the orders.', at_least=0)


@dataclasses.dataclass(frozen=True)
class ReproduceOptions:
  """Which published table or figure is reproduced, and at which size."""

  table: str | None = fields.option(None, 'A published table, for instance fl_hc/table5.')
  figure: str | None = fields.option(None, 'A published figure, for instance fl_hc/figure3.')
  scale: str = fields.option(
    'paper', "The paper's own size, or a smaller one that every output names.", choices=('paper', 'small')
  )
  data_dir: str | None = fields.option(
    None, 'Folder that the loaders read and download to; default: their own cache.'
  )
  seeds: str = fields.option('0', 'Seeds, for instance 0,1,2; every row is run with each.')
  rows: str | None = fields.option(
    None,
    "Run the row of this name, or else the rows whose name has this text in it, for instance 'cf 0.2'; default: all rows.",
  )


@dataclasses.dataclass(frozen=True)
class ListOptions:
  """Whether a program only tells what is there."""

  list: bool = fields.option(
    False,
    'Run nothing; say which tables, figures, rows and seeds are in --output_dir and what the others would cost, of all or, row by row, of '
    'the one that is given.',
    group='run',
  )


@dataclasses.dataclass(frozen=True)
class KeepOptions:
  """What is kept of finished runs, and where."""

  name: str = fields.option('', 'What the kept results are called: a folder below --kept_dir.')
  kept_dir: str = fields.option('docs/results/data', 'Folder of kept results.')
  title: str = fields.option('', 'What was run, in a line; default: what the runs say.')
  setting: str = fields.option('', 'The experiment in words, for readers; nothing is read from it.')
  scaled_down: str = fields.option(
    '', 'What is smaller than in the paper, in words; default: what the runs say.'
  )
  machine: str = fields.option('', 'The machine in words (processor, cores); default: what the runs say.')
  figures: str = fields.option(
    '', 'Names of figures of the page that are kept too, for instance curves,shares; default: none.'
  )


@dataclasses.dataclass(frozen=True)
class DryRunOptions:
  """Whether a program only tells what it would cost."""

  dry_run: bool = fields.option(
    False,
    'Train nothing; say what is stored, what is missing and how long it would take.',
    group='run',
  )


@dataclasses.dataclass(frozen=True)
class RunsOptions:
  """How several runs share a machine; changes no result."""

  runs_in_parallel: int = fields.option(
    0,
    'Runs (seeds, rows, settings) side by side on this machine, each in a process of its own with a TFF worker and a share of the cores; '
    '1: one after the other; 0: half as many as cores, as far as memory allows. Not with a cluster.',
    at_least=0,
    at_most=1024,
    group='machine',
  )


@dataclasses.dataclass(frozen=True)
class CompareOptions:
  """With which seeds an experiment is repeated, and what is swept beside it."""

  seeds: str = fields.option(
    '0,1,2,3,4,5,6,7',
    'Seeds, for instance 0,1,2; every clustering is run with each. Verdicts take six, and eight where up to six methods are judged together; '
    'fewer give intervals.',
  )
  setting: tuple[str, ...] = fields.option(
    (),
    'Compare on other data too, NAME,FIELD=VALUE,... with the fields of the data, learning_rate, aggregator, and LABEL.OPTION of a clustering; may be '
    'repeated. The runs lie in NAME below the output folder, and one page ranks the methods over all settings.',
  )
  overlap_dial: int = fields.option(
    0,
    'Also sweep the threshold of the first clustering that has such a dial (dynamic_distance), over this many positions from every client '
    'alone to all together, at least 3; 0: do not. Positions between the ends cost several times FedAvg.',
    at_least=0,
  )


def _clustering_flags() -> type:
  """Returns a section with the options of all methods, each with the methods that it applies to."""
  found: dict[str, dataclasses.Field] = {}
  for method in methods.METHODS.values():
    for name, field in method.fields().items():
      first = found.setdefault(name, field)
      kind, known = (fields.plain_type(each)[0].__name__ for each in (field, first))
      if kind != known:
        raise TypeError(
          f'option {name} of method {method.name} is {kind}, of {methods.with_option(name)[0]} {known}; an option of several '
          'methods is one flag, so call one of them otherwise'
        )
  method = fields.option('dynamic_distance', 'Clustering method.', choices=tuple(methods.METHODS))
  name = fields.option(None, "What results call this clustering; default: the method's name.")
  declared: list[tuple[str, Any, Any]] = [('method', str, method), ('name', str | None, name)]
  for name, field in found.items():
    told = ''.join([field.metadata['help'], *_other_defaults(field)])
    # Whether an option applies to another one of its method is the method's own check.
    applies = {'help': told, 'applies': ('method', tuple(methods.with_option(name)))}
    option = dataclasses.field(default=field.default, metadata={**field.metadata, **applies})
    declared.append((name, field.type, option))
  return dataclasses.make_dataclass('ClusteringFlags', declared, frozen=True)


def _other_defaults(field: dataclasses.Field) -> Iterator[str]:
  """Yields a sentence for each method whose default of an option is another one than the flag's."""
  for name, method in methods.METHODS.items():
    own = method.fields().get(field.name)
    if own is not None and own.default not in (None, field.default):
      yield f' Default of {name}: {fields.as_text(own.default)}.'


# The plain flags of one clustering (--method, --num_clusters, ...), made from what the methods declare.
ClusteringFlags = _clustering_flags()
SECTIONS: dict[str, type] = {
  'data': config.DataConfig,
  'training': config.TrainingConfig,
  'clustering': ClusteringFlags,
  'evaluation': config.EvaluationConfig,
  'run': RunOptions,
  'export': ExportOptions,
  'machine': machine.Machine,
  'vectors': VectorsOptions,
  'store': StoreOptions,
  'replay': ReplayOptions,
  'disturb': DisturbOptions,
  'experts': ExpertsOptions,
  'reproduce': ReproduceOptions,
  'compare': CompareOptions,
  'runs': RunsOptions,
  'dry_run': DryRunOptions,
  'list': ListOptions,
  'keep': KeepOptions,
}
# The sections that make an ExperimentConfig, which --config_file stands for.
EXPERIMENT_SECTIONS = ('data', 'training', 'clustering', 'evaluation')
CLUSTERINGS = 'clusterings'


def define(*names: str) -> None:
  """Defines the flags that a program needs.

  Args:
    *names: Sections (keys of SECTIONS; 'clustering' is for one clustering by plain flags, 'clusterings' for
      --clustering, which may be repeated), or single flags of the sections run and machine, such as 'output_dir'.

  Raises:
    ValueError: if a name is neither.
  """
  for name in names:
    if name == CLUSTERINGS:
      flags.DEFINE_multi_string('clustering', None, _clustering_help(), module_name='clustering')
    elif name in SECTIONS:
      for field in dataclasses.fields(SECTIONS[name]):
        _define_field(field, name)
    else:
      single = {f.name: (f, s) for s in ('run', 'machine') for f in dataclasses.fields(SECTIONS[s])}
      if name not in single:
        raise ValueError(
          f'{name!r} is neither a section ({", ".join([*SECTIONS, CLUSTERINGS])}) nor a run flag'
        )
      _define_field(*single[name])


def given(section: type) -> dict[str, Any]:
  """Returns the values of a section's flags that stand on the command line or in a flagfile."""
  names = (field.name for field in dataclasses.fields(section))
  values = {name: FLAGS[name].value for name in names if name in FLAGS and FLAGS[name].present}
  return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def given_of_experiment() -> Iterator[str]:
  """Yields the names of the given flags that say what the experiment is."""
  for name in EXPERIMENT_SECTIONS:
    yield from given(SECTIONS[name])
  if 'clustering' in FLAGS and FLAGS['clustering'].present:
    yield 'clustering'


def _clustering_help() -> str:
  keys = '; '.join(
    f'{name}: {", ".join(method.fields()) or "none"}' for name, method in methods.METHODS.items()
  )
  return (
    'A clustering as METHOD,KEY=VALUE,...; give the flag once for each clustering that is to be compared. '
    f'Keys: name of all; {keys}. METHOD may also be an import path, whose module is run: any clusterer or mixture of '
    'scikit-learn, with the keys of its constructor, signature, distances (of metric=precomputed) and membership_threshold '
    '(sklearn.cluster:HDBSCAN,min_cluster_size=3), or a method of your own (my_methods:Chains). For instance --clustering=dynamic_distance,distance_threshold=quantile:0.1,name=dd.'
  )


class _FieldParser(flags.ArgumentParser):
  """Reads the text of a flag as its field's type."""

  def __init__(self, field: dataclasses.Field):
    self._field = field
    choices = field.metadata.get('choices')
    kind = {int: 'INTEGER', float: 'NUMBER', str: 'TEXT'}[fields.plain_type(field)[0]]
    self.syntactic_help = '|'.join(map(str, choices)) if choices else kind

  def parse(self, argument: Any) -> int | float | str:
    return fields.value_from_text(self._field, str(argument))


class _BooleanParser(flags.BooleanParser):
  """Reads what absl takes for true or false, and says so in a line where it is neither."""

  def __init__(self, name: str):
    self._name = name

  def parse(self, argument: Any) -> bool:
    try:
      return super().parse(argument)
    except (TypeError, ValueError):
      raise ValueError(
        f'expected true or false; --{self._name} and --no{self._name} say it without a value'
      ) from None


def _define_field(field: dataclasses.Field, section: str) -> None:
  if fields.takes_several(field):
    flags.DEFINE_multi_string(
      field.name, None, _help(field), module_name=field.metadata.get('group', section)
    )
    return
  boolean = fields.plain_type(field)[0] is bool
  parser = _BooleanParser(field.name) if boolean else _FieldParser(field)
  flag = flags.Flag(parser, flags.ArgumentSerializer(), field.name, None, _help(field), boolean=boolean)
  flags.DEFINE_flag(flag, module_name=field.metadata.get('group', section))


def _help(field: dataclasses.Field) -> str:
  rule, parts = field.metadata, [field.metadata['help']]
  bounds = [f'{words} {rule[key]}' for key, (words, _) in fields.BOUNDS.items() if key in rule]
  if bounds:
    parts.append(f'Must be {" and ".join(bounds)}.')
  if 'applies' in rule:
    chooser, values = rule['applies']
    parts.append(f'Only with --{chooser}={" or ".join(values)}.')
  if field.default not in (None, '', ()):
    parts.append(f'Default: {fields.as_text(field.default)}.')
  return ' '.join(parts)
