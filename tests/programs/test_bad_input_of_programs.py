"""Wrong command lines of every program: exit code 2, one line, no traceback, in less than a second, nothing left.

The flags of an experiment and of phases.clustering are in test_help_and_bad_input.py.
"""

import json
import os

import numpy as np
import pytest

from tests.programs import wrong_input
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig

LONG = 'x' * 5000
FLAGS = [f'--{name}=1' for name in ('phase1_rounds', 'metrics', 'num_shuffles', 'prune_unused_days', 'rows')]

# What no program takes. {tmp} holds the files of `folder` below.
EVERY = [
  ('--nonsense=1', 'unknown flag --nonsense; '),
  ('extra', "unexpected argument 'extra'"),
  ('--verbosity=loud', '--verbosity=loud'),
  (f'--{LONG}=1', 'unknown flag with a very long name'),
  ('--flagfile={tmp}/itself.flags', 'itself.flags: the file includes itself'),
  ('--flagfile={tmp}/one.flags', 'one.flags: the file includes itself'),
  ('--flagfile={tmp}/missing.flags', 'missing.flags: No such file'),
  (f'--flagfile={LONG}', 'File name too long'),
  ('--flagfile={tmp}/lines.flags', 'unknown flag --non\\x0bsense'),
  ('--flagfile={tmp}/pipe', '--flagfile={tmp}/pipe is a pipe or a device'),
  ('--flagfile=/dev/zero', '--flagfile=/dev/zero is a pipe or a device'),
  ('--flagfile={tmp}/huge', '--flagfile={tmp}/huge is larger than 16 MB'),
  ('--flagfile={tmp}/piped.flags', '--flagfile={tmp}/pipe is a pipe or a device'),
]
# What no folder of a run can be.
FOLDERS = [
  ('', '--output_dir=FOLDER is required'),
  ('--output_dir=', '--output_dir=: the value is empty'),
  ('--output_dir', 'missing value for --output_dir'),
  ('--output_dir=--seeds=1', '--output_dir=--seeds=1: that is another flag'),
  ('--output_dir={tmp}/a\0b', '--output_dir={tmp}/a\\x00b: the value holds a NUL character'),
  ('--output_dir={tmp}/a\udcffb', '--output_dir={tmp}/a\\udcffb: the value is not UTF-8 text'),
]
# Folders that a program is to make, {more} is what else it needs.
MADE = [
  ('--output_dir={tmp}/file', 'is not a folder, or lies below a file'),
  ('--output_dir={tmp}/file/below', 'is not a folder, or lies below a file'),
  (f'--output_dir={LONG}', 'File name too long'),
  ('--output_dir={tmp}/' + 'y' * 300, 'File name too long'),
  ('--output_dir={tmp}/loop/run', 'Too many levels of symbolic links'),
]
MAKE_ONE = {
  'partition': '',
  'phase1': '',
  'run_all': '',
  'compare': '--seeds=0',
  'reproduce': '--figure=cfl/figure1',
  'experts': '--outputs_file={tmp}/outputs.npz',
  'replay': '--signatures_file={tmp}/v.npz',
  'clustering': '--signatures_file={tmp}/v.npz',
}
# Folders that must hold a run.
HELD = [
  ('--output_dir={tmp}/nowhere', '--output_dir={tmp}/nowhere holds no run (no config.json)'),
  ('--output_dir={tmp}/file', 'holds no run'),
  ('--output_dir={tmp}/empty', 'holds no run'),
  (f'--output_dir={LONG}', 'holds no run'),
  ('--output_dir={tmp}/loop', 'holds no run'),
]
HOLD_ONE = ('clustering', 'disturb', 'phase2', 'phase3', 'replay', 'report')
NEED_NONE = ('store', 'worker')

OWN = [
  ('partition', '--num_clients=0', '--num_clients=0: must be at least 1'),
  ('partition', '--dataset=file', 'needs --data_file'),
  ('partition', '--dataset=mnist\n', '--dataset=mnist\\n: allowed are digits'),
  ('partition', '--dataset=mn\u2028ist', '--dataset=mn\\u2028ist: allowed are digits'),
  ('partition', '--dataset=\udcff', '--dataset=\\udcff: allowed are digits'),
  ('partition', f'--dataset={LONG}', 'characters ...] '),
  ('partition', f'--clustering={LONG}', 'the first part must be a method'),
  ('partition', '--clustering=kmeans,name=' + 'n' * 101, 'a clustering name has at most 100 letters'),
  ('partition', '--clustering=kmeans,name=' + 'ü' * 51, 'a clustering name has at most 100 letters'),
  ('partition', '--clustering=kmeans,name=a\nb', 'letters, digits'),
  ('partition', '--clustering=kmeans,name=..', 'letters, digits'),
  ('partition', '--clustering=kmeans,name=A --clustering=planted,name=a', "two clusterings are called 'a'"),
  ('partition', '--clustering=kmeans,num_clusters=4,', "'' is not KEY=VALUE"),
  ('partition', '--clustering=kmeans;num_clusters=4', 'the first part must be a method'),
  ('partition', '--clustering=dynamic_distance,distance_threshold=nan', 'allowed are mean, a number >= 0'),
  ('partition', '--clustering=bipartition,min_similarity_gap=3', 'must be at most 2.0'),
  ('partition', '--clustering=bipartition --cohort_fraction=0.5', 'bipartition compares the updates of all'),
  ('partition', f'--config_file={LONG}', 'File name too long'),
  ('partition', '--config_file={tmp}/file/below', 'no such file'),
  ('partition', '--config_file={tmp}/pipe', '{tmp}/pipe is a pipe or a device; settings are read from a file'),
  ('partition', '--config_file=/dev/zero', '/dev/zero is a pipe or a device'),
  ('partition', '--config_file={tmp}/huge', '{tmp}/huge is larger than 16 MB, so it holds no settings'),
  ('partition', '--config_file={tmp}/digits.json', 'configuration: distance_threshold=quantile:０.１: allowed are mean, a number'),
  ('partition', '--config_file={tmp}/name.json', 'configuration: data_file=a\\udcff: the value is not UTF-8 text'),
  ('partition', '--config_file={tmp}/loop', 'Too many levels of symbolic links'),
  ('partition', '--config_file={tmp}/config.json --seed=1', '--seed may not stand beside --config_file'),
  ('partition', '--num_clients=٣', '--num_clients=٣: expected an integer'),
  ('partition', '--num_clients=１２', '--num_clients=１２: expected an integer, of at most 18 digits from 0 to 9'),
  ('partition', '--learning_rate=０.１', '--learning_rate=０.１: expected a number, such as 12, 0.1 or 1e-3'),
  ('partition', '--learning_rate=1_0', '--learning_rate=1_0: expected a number'),
  ('partition', '--clustering=kmeans,num_clusters=４', 'num_clusters=４: expected an integer'),
  ('partition', '--clustering=dynamic_distance,distance_threshold=０.１', 'allowed are mean, a number'),
  ('partition', '--clustering=dynamic_distance,distance_threshold=quantile:０.１', 'allowed are mean, a number'),
  ('partition', '--clustering=bipartition,stopping_norm=１', 'stopping_norm=１: expected a number'),
  ('partition', '--num_clients=1_000', '--num_clients=1_000: expected an integer'),
  ('partition', '--num_clients=0x10', '--num_clients=0x10: expected an integer'),
  ('partition', '--learning_rate=1e999', '--learning_rate=1e999: expected a number'),
  ('partition', f'--learning_rate={"9" * 5000}', 'expected a number'),
  ('phase1', '--phase1_rounds=-1', '--phase1_rounds=-1: must be at least 1'),
  ('phase1', '--store_dir=', '--store_dir=: the value is empty'),
  ('phase1', '--clients_in_parallel=two', '--clients_in_parallel=two: expected an integer'),
  ('phase1', '--clients_in_parallel=100000000', '--clients_in_parallel=100000000: must be at most 1024'),
  ('phase1', '--store_dir={tmp}/\udcff', 'the value is not UTF-8 text'),
  ('phase1', '--model=nowhere:f', "--model=nowhere:f cannot be imported: there is no module 'nowhere'"),
  ('phase1', '--num_clients=100000', 'GB of memory, of which'),
  ('phase1', '--worker_start_timeout_secs=-1', 'must be above 0.0'),
  ('phase1', '--worker_start_timeout_secs=nan', 'expected a number'),
  ('phase1', '--method=kmeans', 'unknown flag --method'),
  ('phase1', '--model=', '--model=: the value is empty'),
  ('phase1', '--sketch_dimension=0', '--sketch_dimension=0: must be at least 1'),
  ('run_all', '--seeds=0', 'unknown flag --seeds; did you mean --seed?'),
  ('run_all', '--model=a.b', '--model=a.b: allowed are mnist_cnn'),
  ('run_all', '--model=a:b:c', '--model=a:b:c: allowed are mnist_cnn'),
  ('run_all', '--model=os:nofunc', "--model=os:nofunc cannot be imported: module 'os' has no function 'nofunc'"),
  ('run_all', '--num_clients=100000', 'use a smaller --model, --cohort_fraction or --num_clients'),
  ('run_all', '--dataset=file --partition=iid --data_file={tmp}/rows.npz', 'mnist_cnn does not fit examples of shape (8,)'),
  ('run_all', '--experts=maybe', '--experts=maybe: expected true or false'),
  ('run_all', '--local_training=2', '--local_training=2: expected true or false'),
  ('run_all', '--aggregation=nowhere:f', "--aggregation=nowhere:f cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
  ('run_all', '--aggregation=json:dumps', "--aggregation=json:dumps: its parameter 'obj' is none of these"),
  ('run_all', '--aggregation=median', '--aggregation=median: allowed are fedex, mean, vote, confidence, gate, or package.module'),
  ('run_all', '--aggregation=blended', '--aggregation=blended: every Phase 3 has blended; leave it out'),
  ('run_all', '--aggregation=', '--aggregation=: allowed are'),
  ('run_all', '--aggregation=vote --aggregation=vote', "two rules are called 'vote'"),
  ('compare', '--aggregation=oracle', '--aggregation=oracle: allowed are fedex'),
  ('run_all', '--target_accuracy=99', '--target_accuracy=99.0: must be at most 1.0'),
  ('run_all', '--initializer=zeros', '--initializer=zeros: allowed are model, fan_in_uniform'),
  ('run_all', '--cluster_start=mean', '--cluster_start=mean: allowed are members_mean, global_model'),
  ('phase2', '--output_dir={tmp}/empty --seed=1', 'unknown flag --seed'),
  ('phase2', '--output_dir={tmp}/empty --clients_in_parallel=-2', 'must be at least 0'),
  ('phase2', '--output_dir={tmp}/empty --clustering=kmeans', 'unknown flag --clustering'),
  ('phase3', '--output_dir={tmp}/empty --worker_start_timeout_secs=0', 'must be above 0.0'),
  ('phase3', '--output_dir={tmp}/empty --config_file=x', 'unknown flag --config_file'),
  ('report', '--output_dir={tmp}/empty --title=x', 'unknown flag --title'),
  ('report', '--output_dir={tmp}/empty --store_dir=x', 'unknown flag --store_dir'),
  ('replay', '--metrics=', '--metrics=: the value is empty'),
  ('replay', '--metrics=l1,l1', '--metrics=l1,l1: l1 is given twice'),
  ('replay', '--metrics=l1,', "'' is not among l1, l2, cosine"),
  ('replay', '--linkages=warde', "'warde' is not among single"),
  ('replay', '--linkages=ward --metrics=l1', '--linkages=ward: ward needs l2 among --metrics=l1'),
  ('replay', '--num_thresholds=1000000', '--num_thresholds=1000000: must be at most 100000'),
  ('replay', '--num_thresholds=2.5', '--num_thresholds=2.5: expected an integer'),
  ('replay', '--cluster_counts=0', "--cluster_counts=0: '0' is not a number of at least 1"),
  ('replay', '--cluster_counts=2,x', "'x' is not a number of at least 1"),
  ('replay', '--cluster_counts=²', "'²' is not a number of at least 1"),
  ('replay', '--cluster_counts=3,3', '--cluster_counts=3,3: 3 is given twice'),
  ('replay', '--distance_thresholds=median', "'median' is neither mean, nor a number >= 0"),
  ('replay', '--distance_thresholds=１', "'１' is neither mean, nor a number >= 0"),
  ('replay', '--cluster_counts=３', "'３' is not a number of at least 1"),
  ('replay', '--distance_thresholds=1,1', '--distance_thresholds=1,1: 1 is given twice'),
  ('replay', f'--distance_thresholds={LONG}', 'is neither mean, nor a number >= 0'),
  ('replay', '--silhouettes=on', '--silhouettes=on: expected true or false'),
  ('replay', '--sketch_dimension=-1', '--sketch_dimension=-1: must be at least 0'),
  ('replay', '--memory_mb=64MB', '--memory_mb=64MB: expected an integer'),
  ('replay', '--signature=gradients', '--signature=gradients: allowed are weights, updates'),
  ('replay', '--seed=1', '--seed applies to --signatures_file only'),
  ('replay', '--signatures_file={tmp}/v.npz --signature=weights', '--signature does not apply to --signatures_file'),
  ('replay', '--signatures_file={tmp}/v.npz --sketch_dimension=99999999999', 'must be at least 1 and below 2**31'),
  ('replay', f'--signatures_file={LONG}', 'no such file'),
  ('clustering', f'--signatures_file={LONG}', 'no such file'),
  ('clustering', '--signatures_file={tmp}/loop', 'no such file'),
  ('clustering', f'--distance_threshold={LONG}', 'allowed are mean, a number >= 0'),
  ('clustering', '--method=kmeans --name=a/../b', 'letters, digits'),
  ('clustering', '--method=bipartition --stopping_norm=0', '--stopping_norm=0.0: must be above 0.0'),
  ('clustering', '--method=spectral --affinity=rbff', '--affinity=rbff: allowed are cosine, rbf'),
  ('experts', '', '--outputs_file=FILE is required'),
  ('experts', f'--outputs_file={LONG}', 'no such file'),
  ('experts', '--outputs_file={tmp}', 'not a file'),
  ('experts', '--outputs_file={tmp}/outputs.npz --num_shuffles=1000000', 'must be at most 100000'),
  ('experts', '--outputs_file={tmp}/outputs.npz --seed=1.5', '--seed=1.5: expected an integer'),
  ('experts', '--outputs_file={tmp}/outputs.npz --output_dir={tmp}', 'holds a run; choose another folder'),
  ('compare', '--seeds=', '--seeds=: the value is empty'),
  ('compare', '--seeds=0,,1', "--seeds=0,,1: '' is no seed"),
  ('compare', '--seeds=0-4', "--seeds=0-4: '0-4' is no seed"),
  ('compare', '--seeds=1234567890', "'1234567890' is no seed"),
  ('compare', '--seeds=²', "'²' is no seed"),
  ('compare', '--seeds=１', "'１' is no seed"),
  ('compare', '--model=nowhere:f', "there is no module 'nowhere'"),
  ('compare', '--num_clients=100000', 'GB of memory, of which'),
  ('compare', '--overlap_dial=101', '--overlap_dial=101: give 0, or from 3 to 100 positions'),
  ('compare', '--overlap_dial=all', '--overlap_dial=all: expected an integer'),
  ('compare', '--seed=0', '--seed does not apply here; give --seeds'),
  ('compare', '--config_file={tmp}/missing.json', 'missing.json: no such file'),
  ('reproduce', '--table=', '--table=: the value is empty'),
  ('reproduce', f'--table={LONG}', 'no such table; there are fl_hc/table1'),
  ('reproduce', '--table=../table1', '--table=../table1: no such table'),
  ('reproduce', '--table=fl_hc/table1\n', '--table=fl_hc/table1\\n: no such table; did you mean fl_hc/table1?'),
  ('reproduce', '--figure=fl_hc/figure99', 'no such figure; did you mean fl_hc/figure'),
  ('reproduce', '--table=fl_hc/table1 --seeds=0;1', "'0;1' is no seed"),
  ('reproduce', '--table=fl_hc/table1 --clients_in_parallel=x', 'expected an integer'),
  ('reproduce', '--figure=cfl/figure1 --data_dir=x', '--data_dir does not apply to cfl/figure1'),
  ('reproduce', '--figure=cfl/figure1 --dry_run', '--dry_run does not apply to cfl/figure1'),
  ('phase2', '--workers=a', "--workers=a: 'a' is not HOST:PORT"),
  ('phase3', '--workers=[::1]:7000', "'[::1]:7000' is not HOST:PORT"),
  ('phase3', '--workers=::1:7000', 'HOST is a name or an IPv4 address, no IPv6 address'),
  ('phase3', '--workers=１２７.0.0.1:7000', 'is not HOST:PORT'),
  ('phase3', '--workers=a:７０００', "'a:７０００' is not HOST:PORT"),
  ('phase3', '--workers=-a:7000', "'-a:7000' is not HOST:PORT"),
  ('disturb', '--bits=0', "--bits=0: '0' is not a whole number from 1 to 16"),
  ('disturb', '--bits=17', "--bits=17: '17' is not a whole number from 1 to 16"),
  ('disturb', '--bits=1,x', "--bits=1,x: 'x' is not a whole number from 1 to 16"),
  ('disturb', '--bits=', '--bits=: the value is empty'),
  ('disturb', '--noise_multipliers=-1', "'-1' is not a number of at least 0"),
  ('disturb', '--noise_multipliers=０.１', "'０.１' is not a number of at least 0"),
  ('disturb', '--noise_multipliers=nan', "'nan' is not a number of at least 0"),
  ('disturb', '--noise_multipliers=0.1,a', "'a' is not a number of at least 0"),
  ('disturb', '--repeats=0', '--repeats=0: must be at least 1'),
  ('disturb', '--clip_norm=0', '--clip_norm=0.0: must be above 0.0'),
  ('disturb', '--seed=1', 'unknown flag --seed'),
  ('worker', '', '--port=N is required'),
  ('worker', '--port=x', '--port=x: expected an integer'),
  ('worker', '--port=-1', '--port=-1: must be at least 0'),
  ('worker', '--port=65536', '--port=65536: must be at most 65535'),
  ('worker', '--port=7000 --bind_address=here', '--bind_address=here: expected an IPv4 address of this machine'),
  ('worker', '--port=７０００', '--port=７０００: expected an integer'),
  ('worker', '--port=7000 --bind_address=::1', '--bind_address=::1: expected an IPv4 address'),
  ('worker', '--port=7000 --bind_address=1.2.3', '--bind_address=1.2.3: expected an IPv4 address'),
  ('worker', '--port=7000 --bind_address=', '--bind_address=: the value is empty'),
  ('worker', '--port=7000 --clients_in_parallel=-2', '--clients_in_parallel=-2: must be at least 0'),
  ('worker', '--port=7000 --output_dir=x', 'unknown flag --output_dir'),
  ('worker', '--port=7000 --workers=a:1', 'unknown flag --workers'),
  ('store', '', '--store_dir=: no such folder; give the store of a run'),
  ('store', '--store_dir={tmp}/nowhere', '--store_dir={tmp}/nowhere: no such folder'),
  ('store', '--store_dir={tmp}/file', '--store_dir={tmp}/file: no such folder'),
  ('store', f'--store_dir={LONG}', 'File name too long'),
  ('store', '--store_dir={tmp}/loop', 'no such folder'),
  ('store', '--store_dir={tmp}/empty --prune_unused_days=-1', 'must be at least 0.0'),
  ('store', '--store_dir={tmp}/empty --prune_unused_days=soon', 'expected a number'),
  ('store', '--store_dir={tmp}/empty --prune_unused_days=inf', 'expected a number'),
  ('store', '--store_dir={tmp}/empty --output_dir=x', 'unknown flag --output_dir'),
]  # fmt: skip

TABLE = [
  *((name, *row) for name in wrong_input.PROGRAMS for row in EVERY),
  *((name, *row) for name in wrong_input.PROGRAMS if name not in NEED_NONE for row in FOLDERS),
  *((name, f'{row[0]} {more}', row[1]) for name, more in MAKE_ONE.items() for row in MADE),
  *((name, *row) for name in HOLD_ONE for row in HELD),
  *OWN,
]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  wrong_input.import_what_is_slow()
  path = tmp_path_factory.mktemp('given')
  (path / 'config.json').write_text(json.dumps(ExperimentConfig().to_json()))
  settings = ExperimentConfig(clusterings=(ClusteringConfig(),)).to_json()
  settings['clusterings'][0]['distance_threshold'] = 'quantile:０.１'
  (path / 'digits.json').write_text(json.dumps(settings))
  settings = ExperimentConfig(DataConfig(dataset='file', data_file='a')).to_json()
  settings['data']['data_file'] = 'a\udcff'
  (path / 'name.json').write_text(json.dumps(settings))
  (path / 'piped.flags').write_text(f'--flagfile={path}/pipe\n')
  os.mkfifo(path / 'pipe')
  with open(path / 'huge', 'wb') as huge:
    huge.truncate(17 * 2**20)
  np.savez(path / 'rows.npz', x=np.ones((40, 8), np.float32), y=np.arange(40) % 2)
  (path / 'file').write_text('mine')
  (path / 'empty').mkdir()
  (path / 'loop').symlink_to(path / 'loop')
  (path / 'itself.flags').write_text(f'# again\n--flagfile={path}/itself.flags\n')
  (path / 'one.flags').write_text(f'--flagfile={path}/two.flags\n')
  (path / 'two.flags').write_text(f'--flagfile={path}/one.flags\n')
  (path / 'lines.flags').write_text('--non\vsense=1\n')
  np.savez(path / 'v.npz', signatures=np.eye(3))
  np.savez(path / 'outputs.npz', outputs=np.full((2, 3, 4), 0.25))
  return path


def arguments(name, line, words, folder):
  """Returns the line's words, and a folder of a run where the line neither has one nor is about that."""
  given = [part for part in line.format(tmp=folder).split(' ') if part]
  if name in NEED_NONE or '--output_dir' in line + words:
    return given
  return [*given, f'--output_dir={folder}/out']


@pytest.mark.parametrize(('name', 'line', 'words'), TABLE, ids=[f'{n} {line[:60]!r}' for n, line, _ in TABLE])
def test_a_wrong_command_line_is_told_in_one_line(name, line, words, folder, capsys):
  before = wrong_input.files(folder)
  answer = wrong_input.call(name, arguments(name, line, words, folder), capsys)
  wrong_input.check(answer, words.format(tmp=folder))
  assert wrong_input.files(folder) == before


def test_there_are_many_rows_and_every_program_has_its_own():
  assert len(set(TABLE)) == len(TABLE) and len(OWN) >= 100
  assert {name for name, _, _ in OWN} == set(wrong_input.PROGRAMS)


SAMPLE = [row for name in wrong_input.PROGRAMS for row in [r for r in OWN if r[0] == name][1:8:6]]


@pytest.mark.parametrize(
  ('name', 'line', 'words'), SAMPLE, ids=[f'{n} {line[:60]!r}' for n, line, _ in SAMPLE]
)
def test_so_it_is_as_a_process(name, line, words, folder):
  before = wrong_input.files(folder)
  answer = wrong_input.call_process('-m', f'phases.{name}', *arguments(name, line, words, folder))
  wrong_input.check(answer, words.format(tmp=folder))
  assert wrong_input.files(folder) == before
