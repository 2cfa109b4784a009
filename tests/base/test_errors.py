"""One message, two readers: Python callers read the names of arguments, the command line shows flags."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tff_cluster.base import errors
from tff_cluster.base.errors import EnvironmentFault, InputError, argument
from tff_cluster.cli import program
from tff_cluster.clustering import methods
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.data import npz_file
from tff_cluster.engine import machine
from tff_cluster.experiment import config_file
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.papers import catalogue
from tff_cluster.studies import single_run
from tff_cluster.studies.reproduction import runs


def experiment(data=None, training=None, evaluation=None):
  sections = DataConfig(**(data or {})), TrainingConfig(**(training or {})), ()
  return ExperimentConfig(*sections, EvaluationConfig(**(evaluation or {})))


def clustered(method, **options):
  return methods.cluster(ClusteringConfig(method, **options), Signatures.numbered([[0.0], [1.0]]), 0)


TABLE = catalogue.find('fl_hc/table5', None)
# What a script or a notebook calls, and the arguments that the error names, in its order. {tmp} holds `a_file`.
CALLS = {
  'num_clients': lambda tmp: experiment({'num_clients': 0}).validated(),
  'experts': lambda tmp: experiment(evaluation={'experts': 'yes'}).validated(),
  'emnist_classes dataset': lambda tmp: experiment({'emnist_classes': 62}).validated(),
  'model': lambda tmp: single_run.run_experiment(experiment(training={'model': 'none'}), tmp / 'run'),
  'output_dir': lambda tmp: single_run.run_experiment(experiment(), tmp / 'a_file' / 'run'),
  'linkage metric metric': lambda tmp: clustered('hierarchical', distance_threshold='1', linkage='ward', metric='l1'),
  'clustering': lambda tmp: clustered('json:dumps'),
  'data_file': lambda tmp: npz_file.load_npz(str(tmp / 'missing.npz')),
  'scheduler': lambda tmp: machine.Machine(scheduler='here').cluster,
  'scheduler scheduler_file': lambda tmp: machine.Machine(scheduler='tls://a:1', scheduler_file='b').cluster,
  'rows': lambda tmp: runs.plan(TABLE, TABLE.small, (0,), tmp, only='nonsense'),
  'config_file output_dir': lambda tmp: RunFolder(tmp).load(tmp / 'phase1.json', 'phase1'),
}  # fmt: skip


@pytest.mark.parametrize('named', CALLS)
def test_an_error_names_arguments_and_the_command_line_flags(named, tmp_path, capsys):
  (tmp_path / 'a_file').touch()

  def call():
    CALLS[named](tmp_path)

  with pytest.raises((InputError, EnvironmentFault)) as caught:
    call()
  message = str(caught.value)
  assert '--' not in message and message.isprintable()
  assert program.execute(call, lambda: None, ['p']) == 2
  shown = capsys.readouterr().err.removeprefix('error: ').removesuffix('\n')
  flags = [word.strip('-:;,').partition('=')[0] for word in shown.split(' ') if word.startswith('--')]
  assert flags == named.split()
  assert shown.replace('--', '') == message


def test_what_stands_in_a_file_is_no_flag(tmp_path, capsys):
  path = tmp_path / 'config.json'
  path.write_text('{"data": {"num_clients": 0}}')

  def call():
    config_file.read_config(path)

  assert program.execute(call, lambda: None, ['p']) == 2
  assert capsys.readouterr().err.endswith(' is not a configuration: num_clients=0: must be at least 1\n')


@given(st.from_regex(r'[a-z_]+', fullmatch=True), st.text(), st.text())
def test_nothing_but_arguments_becomes_a_flag(name, value, words):
  error = InputError(f'{argument(name, value)}: {words}; give {argument(name)}')
  assert str(error) == errors.one_line(f'{name}={value}: {words}; give {name}')
  assert error.on_command_line() == errors.one_line(f'--{name}={value}: {words}; give --{name}')


def test_a_clustering_that_failed_keeps_the_arguments_of_its_cause():
  from tff_cluster.phases import failures

  cause = InputError(f'use a smaller {argument("learning_rate")}')
  failed = failures.ClusteringsFailed({'kmeans': cause}, [])
  assert 'kmeans: use a smaller learning_rate.' in str(failed)
  assert 'kmeans: use a smaller --learning_rate.' in failed.on_command_line()


def test_both_kinds_are_pickled():
  for kind, base in ((InputError, ValueError), (EnvironmentFault, RuntimeError)):
    error = kind(f'another run is in {argument("output_dir", "x")}')
    assert isinstance(error, base)
    assert pickle.loads(pickle.dumps(error)).on_command_line() == error.on_command_line()
