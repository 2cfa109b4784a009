"""Wrong command lines: exit code 2, one line, no traceback, in less than a second. --help as fast."""

import importlib
import json
import statistics
import time

import numpy as np
import pytest

from phases import clustering
from tests.programs import wrong_input
from tests.programs.wrong_input import PROGRAMS, SECONDS
from tff_cluster.cli import flags, parse, program
from tff_cluster.experiment.config import ExperimentConfig

HEAVY = ('tensorflow', 'tensorflow_federated', 'tensorflow_datasets', 'matplotlib', 'sklearn', 'networkx')

# An experiment's flags, and words of the line that each gets. {tmp} holds the files of `folder` below.
EXPERIMENT = [
  ('--nonsense=1', 'unknown flag --nonsense'),
  ('--num_client=5', 'did you mean --num_clients?'),
  ('--learnign_rate=5', 'did you mean --learning_rate?'),
  ('--num_clients', 'missing value for --num_clients'),
  ('--num_clients=', '--num_clients=: expected an integer'),
  ('--num_clients=ten', '--num_clients=ten: expected an integer'),
  ('--num_clients=10.0', '--num_clients=10.0: expected an integer'),
  ('--num_clients=0', '--num_clients=0: must be at least 1'),
  ('--num_clients=-3', '--num_clients=-3: must be at least 1'),
  ('--num_clients=99999999999999999999999', 'expected an integer'),
  ('--nonum_clients', 'unknown flag --nonum_clients'),
  (
    '--local_training=yes',
    '--local_training=yes: expected true or false; --local_training and --nolocal_training say',
  ),
  ('--experts=no', '--experts=no: expected true or false'),
  ('--experts yes', "unexpected argument 'yes'"),
  ('--noexperts=false', '--noexperts=false does not take an argument'),
  ('--new_clients=-1', '--new_clients=-1: must be at least 0'),
  (
    '--new_clients=20',
    '--new_clients=20 of --num_clients=20: at least one client must take part; give at most 19',
  ),
  ('--new_clients=25', 'at least one client must take part; give at most 19'),
  ('--new_clients=2.5', '--new_clients=2.5: expected an integer'),
  ('--new_clients=2 --num_folds=3', '--new_clients=2 does not apply with --num_folds=3'),
  ('--dataset=mnits', '--dataset=mnits: allowed are digits, mnist, cifar10, emnist, file'),
  ('--dataset=MNIST', 'allowed are digits, mnist'),
  ('--dataset=', '--dataset=: the value is empty'),
  ('--dataset --num_clients=5', '--dataset=--num_clients=5: that is another flag'),
  ('--dataset=file', 'needs --data_file'),
  ('--data_file=x.npz', '--data_file does not apply to --dataset=digits; it applies to dataset file'),
  ('--data_dir=x', '--data_dir does not apply to --dataset=digits'),
  ('--emnist_classes=62', '--emnist_classes does not apply to --dataset=digits'),
  ('--dataset=emnist --emnist_classes=47', '--emnist_classes=47: allowed are 10, 62'),
  ('--dataset=mnist --test_fraction=0.3', '--test_fraction does not apply to --dataset=mnist'),
  ('--partition=random', '--partition=random: allowed are iid, pathological'),
  ('--partition=by_writer', 'needs rows that have owners'),
  ('--partition=iid --num_groups=4', '--num_groups does not apply to --partition=iid'),
  ('--partition=iid --dirichlet_alpha=0.5', 'it applies to partition dirichlet'),
  ('--partition=dirichlet --dirichlet_alpha=0', '--dirichlet_alpha=0.0: must be above 0.0'),
  ('--partition=dirichlet --dirichlet_alpha=nan', '--dirichlet_alpha=nan: expected a number'),
  ('--partition=dirichlet --dirichlet_alpha=inf', '--dirichlet_alpha=inf: expected a number'),
  ('--partition=mixture --mixture_share=0.6', '--mixture_share=0.6: must be at most 0.5'),
  ('--partition=mixture --mixture_kind=dirichlet', 'allowed are rotated, label_swapped, label_permuted'),
  ('--partition=mixture --mixed_clients=1.5', '--mixed_clients=1.5: must be at most 1.0'),
  ('--shards_per_client=2', '--shards_per_client does not apply to --partition=label_swapped'),
  (
    '--partition=pathological --noise_clients=0.15',
    '--noise_clients=0.15 does not apply to --dataset=digits; it applies to dataset mnist',
  ),
  (
    '--dataset=emnist --partition=by_writer --min_examples=9 --max_examples=8',
    '--max_examples=8 is below --min_examples=9',
  ),
  ('--rows_per_client=2', '--rows_per_client=2: must be at least 3'),
  ('--validation_fraction=0', '--validation_fraction=0.0: must be above 0.0'),
  ('--validation_fraction=0.9', 'must be at most 0.5'),
  ('--data_seed=-1', '--data_seed=-1: must be at least 0'),
  ('--model=resnet', '--model=resnet: allowed are mnist_cnn'),
  ('--model=:build', '--model=:build: allowed are'),
  ('--model=my-models:build', '--model=my-models:build: allowed are'),
  ('--phase1_rounds=0', '--phase1_rounds=0: must be at least 1'),
  ('--phase2_rounds=0', '--phase2_rounds=0: must be at least 1'),
  ('--cohort_fraction=0', '--cohort_fraction=0.0: must be above 0.0'),
  ('--cohort_fraction=1.1', '--cohort_fraction=1.1: must be at most 1.0'),
  ('--batch_size=-1', '--batch_size=-1: must be at least 0'),
  ('--batch_size=inf', '--batch_size=inf: expected an integer'),
  ('--local_epochs=0', '--local_epochs=0: must be at least 1'),
  ('--learning_rate=0', '--learning_rate=0.0: must be above 0.0'),
  ('--learning_rate=0,1', '--learning_rate=0,1: expected a number'),
  ('--num_folds=1', '--num_folds=1: cross-validation needs at least 2 folds'),
  ('--clustering=', 'the first part must be a method'),
  (
    '--clustering=dbscan',
    '--clustering=dbscan: the first part must be a method: bipartition, dynamic_distance, hierarchical, kmeans',
  ),
  ('--clustering=kmeans,num_clusters', "'num_clusters' is not KEY=VALUE"),
  ('--clustering=kmeans,num_cluster=3', "unknown key 'num_cluster' (did you mean num_clusters?)"),
  ('--clustering=kmeans,num_clusters=3,num_clusters=4', 'num_clusters is given twice'),
  ('--clustering=kmeans,num_clusters=x', 'num_clusters=x: expected an integer'),
  ('--clustering=kmeans,num_clusters=0', 'num_clusters=0: num_clusters=0: must be at least 1'),
  ('--clustering=kmeans,num_clusters=21', 'num_clusters=21 is more than the 20 clients'),
  (
    '--new_clients=5 --clustering=kmeans,num_clusters=16',
    'num_clusters=16 is more than the 15 clients that take part; give at most',
  ),
  ('--clustering=kmeans,metric=l2', 'metric=l2: metric does not apply to method=kmeans'),
  ('--clustering=hierarchical', 'hierarchical: method=hierarchical needs distance_threshold'),
  (
    '--clustering=hierarchical,distance_threshold=3,linkage=ward,metric=l1',
    ': linkage=ward needs metric=l2, given metric=l1',
  ),
  ('--clustering=hierarchical,distance_threshold=mean', 'applies to dynamic_distance'),
  ('--clustering=dynamic_distance,distance_threshold=quantile:2', 'quantile:q with q from 0 to 1'),
  ('--clustering=dynamic_distance,name=a/b', 'letters, digits'),
  ('--clustering=kmeans --clustering=kmeans', "two clusterings are called 'kmeans'"),
  ('--method=kmeans', 'unknown flag --method'),
  ('--clients_in_parallel=-1', '--clients_in_parallel=-1: must be at least 0'),
  ('--worker_start_timeout_secs=0', '--worker_start_timeout_secs=0.0: must be above 0.0'),
  ('--worker_stall_timeout_secs=1', '--worker_stall_timeout_secs=1.0: must be at least 5.0'),
  ('--worker_retries=-1', '--worker_retries=-1: must be at least 0'),
  ('--workers=', '--workers=: the value is empty'),
  ('--workers=a', "--workers=a: 'a' is not HOST:PORT with a port from 1 to 65535"),
  ('--workers=:7000', "':7000' is not HOST:PORT"),
  ('--workers=a:0', "'a:0' is not HOST:PORT"),
  ('--workers=a:65536', "'a:65536' is not HOST:PORT"),
  ('--workers=a:99999999999999999999', 'is not HOST:PORT'),
  ('--workers=a:7000,', "'' is not HOST:PORT"),
  ('--workers=a:7000,b:x', "'b:x' is not HOST:PORT"),
  ('--workers=a:7000,b:7000,a:7000', 'a:7000 is given twice'),
  ('--output_dir=', '--output_dir=: the value is empty'),
  ('--config_file={tmp}/missing.json', 'no such file'),
  ('--config_file={tmp}', 'is a folder'),
  ('--config_file={tmp}/binary', 'not UTF-8'),
  ('--config_file={tmp}/config.json --seed=0', '--seed may not stand beside --config_file'),
  ('--flagfile={tmp}/missing.flags', 'missing.flags: No such file or directory'),
  ('--flagfile={tmp}', 'Is a directory'),
  ('--flagfile={tmp}/binary', 'a flagfile is UTF-8 text'),
  ('--flagfile=', '--flagfile= names no file'),
  ('--flagfile', '--flagfile with no argument'),
  ('--flagfile={tmp}/words.flags', "unexpected argument 'num_clients=5'"),
  ('--flagfile={tmp}/wrong.flags', '--num_clients=many: expected an integer'),
  ('--flagfile={tmp}/spaces.flags', 'unknown flag --num_clients 5'),
  ('extra', "unexpected argument 'extra'; flags are written --name=value"),
  ('--num_clients=5 extra --seed=1', "unexpected argument 'extra'"),
  ('-- --num_clients=5', "unexpected argument '--num_clients=5'"),
  ('--verbosity=loud', '--verbosity=loud'),
]
# Those of phases.clustering; --output_dir={tmp}/out is added where the line does not have it.
CLUSTERING = [
  ('--method=dbscan', '--method=dbscan: allowed are bipartition, dynamic_distance, hierarchical, kmeans'),
  ('--method=dbscan --num_clusters=3', '--method=dbscan: allowed are'),
  ('--method=planted --signatures_file=x.npz', '--method=planted: planted groups are those of a run'),
  ('--num_clusters=4', '--num_clusters does not apply to --method=dynamic_distance; it applies to method kmeans'),
  ('--method=hierarchical --num_clusters=3', '--num_clusters does not apply to --method=hierarchical; it applies to method kmeans'),
  ('--method=kmeans --distance_threshold=3', 'it applies to method dynamic_distance or hierarchical'),
  ('--method=kmeans --variant=cliques', '--variant does not apply to --method=kmeans'),
  ('--method=kmeans --affinity=rbf', '--affinity does not apply to --method=kmeans; it applies to method spectral'),
  ('--metric=cosine', '--metric does not apply to --method=dynamic_distance'),
  ('--linkage=ward', '--linkage does not apply to --method=dynamic_distance'),
  ('--method=hierarchical', '--method=hierarchical needs --distance_threshold'),
  ('--method=hierarchical --distance_threshold=3 --linkage=ward --metric=l1', '--linkage=ward needs --metric=l2, given --metric=l1'),
  ('--method=hierarchical --distance_threshold=3 --metric=l3', '--metric=l3: allowed are l1, l2, cosine'),
  ('--distance_threshold=median', 'allowed are mean, a number >= 0, or quantile:q'),
  ('--distance_threshold=-1', '--distance_threshold=-1: allowed are'),
  ('--distance_threshold=validation', '--distance_threshold=validation: allowed are mean, a number'),
  ('--signatures_file={tmp}/v.npz --method=hierarchical --distance_threshold=validation', 'for vectors alone give a number'),
  ('--distance_threshold=quantile:', '--distance_threshold=quantile:: allowed are'),
  ('--max_clusters=0', '--max_clusters=0: must be at least 1'),
  ('--signatures_file={tmp}/v.npz --seed=1', '--seed does not apply to --method=dynamic_distance; it applies to method kmeans or spectral'),
  ('--signatures_file={tmp}/v.npz --method=kmeans --seed=-1', '--seed=-1: must be at least 0'),
  ('--signatures_file={tmp}/v.npz --signature=updates', '--signature does not apply to --signatures_file'),
  ('--signatures_file={tmp}/v.npz --name=a', '--name does not apply to --signatures_file'),
  ('--signatures_file={tmp}/v.npz --output_dir={tmp}', 'holds a run; choose another folder'),
  ('--signatures_file={tmp}/v.npz --output_dir={tmp}/v.npz', 'not a folder'),
  ('--signatures_file={tmp}/missing.npz', 'no such file'),
  ('--signatures_file={tmp}', 'is a folder'),
  ('--signatures_file=', '--signatures_file=: the value is empty'),
  ('--seed=3', '--seed applies to --signatures_file only'),
  ('--output_dir={tmp}/nowhere', 'holds no run (no config.json)'),
  ('--dataset=mnist', 'unknown flag --dataset'),
]  # fmt: skip


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  path = tmp_path_factory.mktemp('given')
  (path / 'config.json').write_text(json.dumps(ExperimentConfig().to_json()))
  (path / 'binary').write_bytes(bytes(range(128, 256)))
  (path / 'words.flags').write_text('num_clients=5\n')
  (path / 'wrong.flags').write_text('# a preset\n--num_clients=many\n')
  (path / 'spaces.flags').write_text('--num_clients 5\n')
  np.savez(path / 'v.npz', signatures=np.eye(3))
  return path


@pytest.fixture(scope='module')
def seconds():
  taken = []
  yield taken
  assert statistics.median(taken) < SECONDS


def check(code, out, err, words):
  assert code == 2, err
  assert words in err
  assert err.startswith('error: ') and err.count('\n') == 1 and err.endswith('\n')
  assert out == ''


@pytest.mark.parametrize(('line', 'words'), EXPERIMENT, ids=[line for line, _ in EXPERIMENT])
def test_wrong_experiments(line, words, folder, seconds, capsys):
  def main():
    parse.run_options_from_flags()
    parse.machine_from_flags()
    parse.experiment_config_from_flags()

  def define():
    flags.define('data', 'training', 'clusterings', 'evaluation', 'run', 'machine')

  started = time.perf_counter()
  code = program.execute(main, define, ['p', '--output_dir=x', *line.format(tmp=folder).split(' ')])
  seconds.append(time.perf_counter() - started)
  check(code, *capsys.readouterr(), words)


def clustering_arguments(line, folder):
  arguments = line.format(tmp=folder).split(' ')
  return arguments if '--output_dir' in line else [f'--output_dir={folder}/out', *arguments]


@pytest.mark.parametrize(('line', 'words'), CLUSTERING, ids=[line for line, _ in CLUSTERING])
def test_wrong_clusterings(line, words, folder, seconds, capsys):
  before = sorted(folder.rglob('*'))
  started = time.perf_counter()
  code = program.execute(clustering.main, clustering.define_flags, ['p', *clustering_arguments(line, folder)])
  seconds.append(time.perf_counter() - started)
  check(code, *capsys.readouterr(), words)
  assert sorted(folder.rglob('*')) == before


def test_output_dir_is_required(capsys):
  code = program.execute(clustering.main, clustering.define_flags, ['p', '--method=kmeans'])
  check(code, *capsys.readouterr(), '--output_dir=FOLDER is required')


def call(*arguments):
  """Returns (exit code, stdout, stderr, seconds of the processor)."""
  answer = wrong_input.call_process(*arguments)
  return answer.code, answer.out, answer.err, answer.seconds


@pytest.mark.parametrize(
  ('line', 'words'), [*CLUSTERING[::3], *EXPERIMENT[:1], ('two words', 'unexpected')], ids=str
)
def test_wrong_clusterings_as_processes(line, words, folder):
  code, out, err, taken = call('-m', 'phases.clustering', *clustering_arguments(line, folder))
  check(code, out, err, words)
  assert taken < SECONDS


@pytest.mark.parametrize('name', PROGRAMS)
def test_every_program_refuses_what_it_does_not_know(name):
  code, out, err, taken = call('-m', f'phases.{name}', '--nonsense=1')
  check(code, out, err, 'unknown flag --nonsense')
  assert taken < SECONDS


@pytest.mark.parametrize('option', ['--help', '--helpshort', '--helpfull', '--version'])
@pytest.mark.parametrize('name', PROGRAMS)
def test_help_and_version_of_every_program(name, option):
  script = (
    f'import runpy, sys, atexit; sys.argv = ["{name}", "{option}"]\n'
    f'atexit.register(lambda: print([m for m in {HEAVY} if m in sys.modules]))\n'
    f'runpy.run_module("phases.{name}", run_name="__main__", alter_sys=True)'
  )
  code, out, err, taken = call('-c', script)
  *shown, slow = out.splitlines()
  assert (code, err, slow) == (0, '', '[]')
  assert taken < SECONDS
  assert shown[0].startswith('tff_cluster ') == (option == '--version')
  assert (f'usage: python -m phases.{name} --flag=value ...' in shown) == (option != '--version')
  assert ('  --flagfile=FILE' in shown) == (option != '--version')
  assert ('--verbosity' in out) == (option == '--helpfull')
  assert '--only_check_args' not in out and '--pdb' not in out


@pytest.mark.parametrize('name', PROGRAMS)
def test_programs_are_imported_without_what_is_slow(name):
  script = f'import sys, phases.{name}; print([m for m in {HEAVY} if m in sys.modules])'
  assert call('-c', script)[:3] == (0, '[]\n', '')
  assert importlib.import_module(f'phases.{name}').__doc__
