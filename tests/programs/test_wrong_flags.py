"""Wrong command lines: exit code 2, one line, no traceback, in less than a second, nothing left.

One row a kind of line. What is told of a field's value or of fields that do not fit is tested where it is decided
(tests/base, tests/experiment, tests/cli); here a row shows that a program passes it on.
"""

import json
import os

import numpy as np
import pytest

from tests.programs import children
from tests.programs.children import PROGRAMS
from tff_cluster.clustering import methods
from tff_cluster.experiment.config import ExperimentConfig

LONG = 'x' * 5000

# What no program takes. {tmp} holds the files of `folder` below.
EVERY = [
  ('extra', "unexpected argument 'extra'; flags are written --name=value"),
  ('--num_client=5', 'did you mean --num_clients?'),
  ('--num_clients', 'missing value for --num_clients'),
  ('--dataset --num_clients=5', '--dataset=--num_clients=5: that is another flag'),
  ('--verbosity=loud', '--verbosity=loud'),
  (f'--{LONG}=1', 'unknown flag with a very long name'),
  ('--flagfile', '--flagfile with no argument'),
  ('--flagfile=', '--flagfile= names no file'),
  ('--flagfile={tmp}/missing.flags', 'missing.flags: No such file'),
  ('--flagfile={tmp}/binary', 'a flagfile is UTF-8 text'),
  ('--flagfile={tmp}/itself.flags', 'itself.flags: the file includes itself'),
  ('--flagfile={tmp}/spaces.flags', 'unknown flag --num_clients 5'),
  ('--flagfile={tmp}/lines.flags', 'unknown flag --non\\x0bsense'),
  ('--flagfile={tmp}/pipe', '--flagfile={tmp}/pipe is a pipe or a device'),
  ('--flagfile={tmp}/huge', '--flagfile={tmp}/huge is larger than 16 MB'),
  ('--flagfile={tmp}/piped.flags', '--flagfile={tmp}/pipe is a pipe or a device'),
  ('--output_dir=', '--output_dir=: the value is empty'),
  ('--output_dir={tmp}/a\0b', '--output_dir={tmp}/a\\x00b: the value holds a NUL character'),
]
# Folders that a program is to make, and what else it needs to come to that.
MADE = [
  ('--output_dir={tmp}/file', 'is not a folder, or lies below a file'),
  (f'--output_dir={LONG}', 'File name too long'),
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
  ('--output_dir={tmp}/nowhere', 'holds no run (no config.json)'),
  ('--output_dir={tmp}/loop', 'holds no run'),
]
HOLD_ONE = ('clustering', 'disturb', 'phase2', 'phase3', 'replay', 'report')
NEED_NONE = ('store',)

OWN = [
  # An experiment.
  ('partition', '--dataset=mn\u2028ist', '--dataset=mn\\u2028ist: allowed are digits'),
  ('partition', f'--clustering={LONG}', 'characters ...] '),
  ('partition', '--clustering=kmean,num_clusters=4', 'the first part must be a method (did you mean kmeans?)'),
  ('partition', '--clustering=kmeans,num_clusters=4,', "'' is not KEY=VALUE"),
  ('partition', '--clustering=kmeans,num_cluster=3', "unknown key 'num_cluster' (did you mean num_clusters?)"),
  ('partition', '--clustering=kmeans,num_clusters=3,num_clusters=4', 'num_clusters is given twice'),
  ('partition', '--clustering=kmeans,name=' + 'ü' * 51, 'a clustering name has at most 100 bytes'),
  ('partition', '--clustering=bipartition --cohort_fraction=0.5', 'bipartition compares the updates of all'),
  ('partition', f'--config_file={LONG}', 'File name too long'),
  ('partition', '--store_dir={tmp}/empty', 'unknown flag --store_dir'),
  ('partition', '--config_file={tmp}/pipe', '{tmp}/pipe is a pipe or a device; settings are read from a file'),
  ('partition', '--config_file={tmp}/huge', '{tmp}/huge is larger than 16 MB, so it holds no settings'),
  ('reproduce', '--figure=cfl/figure1 --dry_run', '--dry_run does not apply to cfl/figure1'),
  ('phase1', '--method=kmeans', '--method is no flag here: a clustering and its options are one flag'),
  ('phase2', '--num_clusters=3', 'unknown flag --num_clusters'),
  ('phase1', '--clients_in_parallel=100000000', '--clients_in_parallel=100000000: must be at most 1024'),
  ('run_all', '--num_clients=1000000', '--num_clients=1000000: the data have 1,797 rows, test rows among them'),
  ('run_all', '--model=a.b', '--model=a.b: allowed are mnist_cnn'),
  ('run_all', '--aggregation=vote --aggregation=vote', "two rules are called 'vote'"),
  # Those that go on with a run.
  ('phase2', '--output_dir={tmp}/empty --seed=1', 'unknown flag --seed'),
  ('phase2', '--scheduler=a:1', '--scheduler=a:1: expected tls://HOST:PORT, for instance tls://10.0.0.5:8786'),
  ('phase2', '--scheduler=tls://a:0', '--scheduler=tls://a:0: expected tls://HOST:PORT'),
  ('phase3', '--scheduler=tls://a:８７８６', '--scheduler=tls://a:８７８６: expected tls://HOST:PORT'),
  ('phase3', '--scheduler=tcp://10.0.0.5:8786', 'this address is not encrypted, and whoever reaches such a cluster runs code'),
  ('phase3', '--scheduler=tls://a:1 --scheduler_file=x', '--scheduler and --scheduler_file are both given'),
  ('phase3', '--scheduler_file={tmp}/nowhere.json', '--scheduler_file={tmp}/nowhere.json: No such file or directory; the scheduler writes it'),
  ('phase3', '--scheduler_file={tmp}/file', '--scheduler_file={tmp}/file is not what a Dask scheduler writes'),
  ('run_all', '--scheduler=tls://a:1 --tls_ca={tmp}/file', '--tls_ca is given without --tls_cert and --tls_key'),
  ('run_all', '--tls_ca={tmp}/file --tls_cert={tmp}/file --tls_key={tmp}/file', '--tls_ca is for a cluster; give --scheduler'),
  ('run_all', '--scheduler=tls://a:1 --tls_ca={tmp}/file --tls_cert={tmp}/file --tls_key={tmp}/gone', '--tls_key={tmp}/gone: there is no such file'),
  ('report', '--output_dir={tmp}/empty --title=x', 'unknown flag --title'),
  # phases.clustering.
  ('clustering', '--signatures_file={tmp}/v.npz --method=hierarchical --distance_threshold=validation', 'for vectors alone give a number'),
  ('clustering', '--signatures_file={tmp}/v.npz --method=hierarchical --distance_threshold=validation:last', 'for vectors alone give a number'),
  ('clustering', '--signatures_file={tmp}/v.npz --seed=1', '--seed does not apply to --method=dynamic_distance'),
  ('clustering', '--signatures_file={tmp}/v.npz --name=a', '--name does not apply to --signatures_file'),
  ('clustering', '--signatures_file={tmp}/v.npz --method=bipartition --stopping_norm=1', '--stopping_norm does not apply to --signatures_file'),
  ('clustering', '--signatures_file={tmp}/v.npz --method=pacfl --num_clusters=2', '--method=pacfl: it reads the training rows of a run'),
  *(('clustering', '--signatures_file={tmp}/v.npz --num_clusters=2 --method=' + name, f'--method={name}: it clusters while it trains; vectors alone')
    for name, method in methods.METHODS.items() if method.alternates),
  ('clustering', '--signatures_file={tmp}/v.npz --output_dir={tmp}', 'holds a run; choose another folder'),
  ('clustering', '--seed=3', '--seed applies to --signatures_file only'),
  ('clustering', '--dataset=mnist', 'unknown flag --dataset'),
  # Programs of their own.
  ('replay', '--linkages=warde', "'warde' is not among single"),
  ('replay', '--cluster_counts=3,3', '--cluster_counts=3,3: 3 is given twice'),
  ('replay', '--distance_thresholds=median', "'median' is neither mean, nor a number >= 0"),
  ('replay', '--seed=1', '--seed applies to --signatures_file only'),
  ('replay', '--signatures_file={tmp}/v.npz --signature=weights', '--signature does not apply to --signatures_file'),
  ('replay', '--signatures_file={tmp}/v.npz --sketch_dimension=99999999999', 'must be at least 1 and below 2**31'),
  ('replay', '--signatures_file={tmp}/v.npz --output_dir={tmp}', 'holds a run; choose another folder'),
  ('experts', '', '--outputs_file=FILE is required'),
  ('experts', '--outputs_file={tmp}/outputs.npz --output_dir={tmp}', 'holds a run; choose another folder'),
  ('compare', '--seeds=0,,1', "--seeds=0,,1: '' is no seed"),
  ('compare', '--seeds=1,1 --num_clients=100000', '--seeds=1,1: 1 is given twice'),  # Too many to be run.
  ('compare', '--seed=0', '--seed does not apply here; give --seeds'),
  ('compare', '--data_seed=3 --seeds=0', '--data_seed does not apply here; give --seeds'),
  ('compare', '--clustering=kmeans,name=dial_01', 'name=dial_01: dial_00, dial_01, ... are the positions of --overlap_dial'),
  ('compare', '--clustering=kmeans,truth=group', 'truth does not apply to method=kmeans'),
  ('compare', '--scheduler=tcp://127.0.0.1:8786 --runs_in_parallel=2', '--runs_in_parallel does not apply with a cluster'),
  ('reproduce', '--table=fl_hc/table2 --allow_imports', '--allow_imports does not apply here'),
  ('keep', '', '--name is missing: give the name of a folder'),
  ('keep', '--name=a/b', '--name=a/b: give the name of a folder'),
  ('keep', '--name=..', '--name=..: give the name of a folder'),
  ('keep', '--name=.', '--name=.: give the name of a folder'),
  ('keep', '--name=a --figures=nothing', 'has no picture nothing; there are none'),
  ('keep', '--name=a', 'holds no finished run'),
  ('reproduce', '', 'give one of --table and --figure; there are fl_hc/table1'),
  ('reproduce', '--table=fl_hc/table1\n', '--table=fl_hc/table1\\n: no such table; did you mean fl_hc/table1?'),
  ('reproduce', '--table=rohith2020/figure4', 'no such table; did you mean --figure=rohith2020/figure4?'),
  ('reproduce', '--figure=fl_hc/table1', 'no such figure; did you mean --table=fl_hc/table1?'),
  ('reproduce', '--table=fl_hc/table1 --config_file=x.json', '--config_file does not apply here'),
  ('reproduce', '--table=fl_hc/table1 --rows=nobody', '--rows=nobody: fl_hc/table1 has no such row; its rows are: cf 0.1, n 1'),
  ('reproduce', '--list --output_dir=nowhere', '--output_dir=nowhere: no such folder; an empty one lists'),
  ('reproduce', '--list --rows=x', '--rows does not apply with --list'),
  ('reproduce', '--list --runs_in_parallel=2', '--runs_in_parallel does not apply with --list'),
  ('reproduce', '--figure=cfl/figure1 --runs_in_parallel=2', '--runs_in_parallel does not apply to cfl/figure1'),
  ('reproduce', '--figure=cfl/figure1 --data_dir=x', '--data_dir does not apply to cfl/figure1'),
  ('reproduce', '--figure=cfl/figure1 --scale=small', '--scale does not apply to cfl/figure1, which is computed at once'),
  ('reproduce', '--figure=cfl/figure2 --seeds=0,1', '--seeds=0,1: cfl/figure2 is drawn for one seed'),
  ('disturb', '--bits=1,17', "--bits=1,17: '17' is not a whole number from 1 to 16"),
  ('disturb', '--noise_multipliers=０.１', "'０.１' is not 0 or a number from 0.000001 to 1,000,000"),
  ('disturb', '--noise_multipliers=1e-100', "'1e-100' is not 0 or a number from 0.000001 to 1,000,000"),
  ('disturb', '--noise_multipliers=none --clip_norm=5', '--clip_norm=5.0 has no effect with --noise_multipliers=none'),
  ('disturb', '--noise_multipliers=0 --bits=none --repeats=7', '--repeats=7 has no effect where nothing is drawn'),
  ('disturb', '--noise_multipliers=0,1e308', "'1e308' is not 0 or a number from 0.000001 to 1,000,000"),
  ('disturb', '--repeats=99999999999', '--repeats=99999999999: must be at most 10000'),
  ('disturb', '--clip_norm=1e38', '--clip_norm=1e+38: must be at most 1e+30'),
  ('store', '', '--store_dir is required; give the store of a run, for instance --store_dir=runs/demo/store'),
  ('store', '--store_dir=nowhere', '--store_dir=nowhere: no such folder; give the store of a run'),
  ('store', '--store_dir=docs --prune_unused_days=0', '--store_dir=docs is no store: it has files, and no artifact'),
  ('store', f'--store_dir={LONG}', 'File name too long'),
  ('store', '--store_dir={tmp}/empty --prune_unused_days=inf', 'expected a number'),
]  # fmt: skip
assert {name for name, *_ in OWN} == set(PROGRAMS)

TABLE = [
  *(('run_all', *row) for row in EVERY),
  *((name, '', '--output_dir=FOLDER is required') for name in PROGRAMS if name not in NEED_NONE),
  *((name, f'{row[0]} {more}', row[1]) for name, more in MAKE_ONE.items() for row in MADE),
  *((name, *row) for name in HOLD_ONE for row in HELD),
  *OWN,
]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  children.import_what_is_slow()
  path = tmp_path_factory.mktemp('given')
  (path / 'config.json').write_text(json.dumps(ExperimentConfig().to_json()))
  for name, text in {
    'piped': f'--flagfile={path}/pipe\n',
    'itself': f'# again\n--flagfile={path}/itself.flags\n',
    'lines': '--non\vsense=1\n',
    'spaces': '--num_clients 5\n',
  }.items():
    (path / f'{name}.flags').write_text(text)
  (path / 'binary').write_bytes(bytes(range(128, 256)))
  os.mkfifo(path / 'pipe')
  with open(path / 'huge', 'wb') as huge:
    huge.truncate(17 * 2**20)
  (path / 'file').write_text('mine')
  (path / 'empty').mkdir()
  (path / 'loop').symlink_to(path / 'loop')
  np.savez(path / 'v.npz', signatures=np.eye(3))
  np.savez(path / 'outputs.npz', outputs=np.full((2, 3, 4), 0.25))
  return path


def arguments(name, line, words, folder):
  """Returns the line's words, and a folder of a run where the line neither has one nor is about that."""
  given = [part for part in line.format(tmp=folder).split(' ') if part]
  if name in NEED_NONE or '--output_dir' in line + words:
    return given
  return [f'--output_dir={folder}/out', *given]


@pytest.mark.parametrize(('name', 'line', 'words'), TABLE, ids=[f'{n} {line[:60]!r}' for n, line, _ in TABLE])
def test_a_wrong_command_line_is_told_in_one_line(name, line, words, folder, capsys):
  before = children.files(folder)
  answer = children.call(name, arguments(name, line, words, folder), capsys)
  children.check(answer, words.format(tmp=folder))
  assert children.files(folder) == before


def test_so_it_is_as_a_process(folder):
  before = children.files(folder)
  # Two tests that share a core's units slow each other down, so that even processor time is 1.5 times what it is alone.
  answers = [children.call_process('-m', 'phases.run_all', '--nonsense=1') for _ in range(3)]
  children.check(min(answers, key=lambda answer: answer.seconds), 'unknown flag --nonsense')
  assert children.files(folder) == before
