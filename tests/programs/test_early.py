"""What is known before training is told before TensorFlow is imported, by a process that then leaves no folder behind."""

import json
import sys

import numpy as np
import pytest

from tests.programs import children
from tests.programs.children import nothing_done

# Calls a program as it is called from a shell, and says whether TensorFlow was imported on the way to its exit code.
_SCRIPT = """
import json, sys
from tff_cluster.cli import program
import phases.{name} as module
code = program.execute(module.main, module.define_flags, ['p', *json.loads(sys.argv[1])])
print(json.dumps([code, 'tensorflow' in sys.modules]))
"""
# Nothing listens there, so that whoever wants to download is refused at once.
_OFFLINE = {name: 'http://127.0.0.1:9' for name in ('http_proxy', 'https_proxy')}

ROWS = [
  ('run_all', '--model=nowhere:f', 2, "there is no module 'nowhere'"),
  ('run_all', '--model=early_models:nothing', 2, "module 'early_models' has no function 'nothing'"),
  ('run_all', '--workers=[::1]:7000', 2, 'no IPv6 address'),
  ('run_all', '--clients_in_parallel=100000000', 2, 'must be at most 1024'),
  ('run_all', '--learning_rate=０.１', 2, 'expected a number'),
  ('run_all', '--output_dir={tmp}/\udcff', 2, 'not UTF-8'),
  ('run_all', '--dataset=file --data_file={tmp}/missing.npz', 2, 'no such file'),
  ('run_all', '--dataset=file --partition=iid --data_file={tmp}/rows.npz', 2, 'does not fit examples of shape (8,)'),
  ('run_all', '--num_clients=100000', 2, 'GB of memory'),
  ('run_all', '--dataset=mnist --data_dir={tmp}/data', 1, '{tmp}/data/mnist/*/dataset_info.json does not exist'),
  ('phase1', '--dataset=cifar10 --data_dir={tmp}/data', 1, '{tmp}/data/cifar10/*/dataset_info.json does not exist'),
  ('partition', '--dataset=emnist --data_dir={tmp}/data', 1, '{tmp}/data/emnist_all.sqlite does not exist'),
  ('compare', '--dataset=emnist --data_dir={tmp}/broken --seeds=0', 1, 'is damaged'),
  ('reproduce', '--table=fl_hc/table5 --data_dir={tmp}/data', 1, 'does not exist'),
  ('run_all', '--num_clients=21 --clustering=kmeans,num_clusters=22', 2, 'more than the 21 clients'),
  ('run_all', '--clustering=planted --clustering=kmeans,name=planted', 2, "two clusterings are called 'planted'"),
  ('compare', '--seeds=0 --store_dir={tmp}/file', 2, '{tmp}/file: File exists'),
]  # fmt: skip
# Those that need the clients, which are made first.
AFTER_THE_DATA = [
  ('run_all', '--clustering=planted,truth=nothing', 'truth=nothing'),
  ('run_all', '--num_folds=200', '--num_folds=200: client '),
]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  path = tmp_path_factory.mktemp('given')
  (path / 'early_models.py').write_text('import tensorflow\n\n\ndef small(shape, classes): ...\n')
  (path / 'file').write_text('mine')
  (path / 'broken').mkdir()
  (path / 'broken' / 'emnist_all.sqlite').write_bytes(b'SQLite format 3\0' + bytes(84))
  np.savez(path / 'rows.npz', x=np.ones((40, 8), np.float32), y=np.arange(40) % 2)
  return path


def call(name, line, folder, monkeypatch):
  """Returns the answer of a process, and whether it imported TensorFlow."""
  for variable, value in (_OFFLINE | {'PYTHONPATH': str(folder)}).items():
    monkeypatch.setenv(variable, value)
  given = line.format(tmp=folder).split(' ')
  where = [] if '--output_dir' in line else [f'--output_dir={folder}/out']
  answer = children.call_process('-c', _SCRIPT.format(name=name), json.dumps([*given, *where]))
  *out, last = answer.out.splitlines()
  code, imported = json.loads(last)
  return code, out, answer, imported


def check(code, expected, err, words):
  assert code == expected, err
  lines = [line for line in err.splitlines() if not line.startswith('W')]
  assert len(lines) == 1 and lines[0].startswith('error: ') and words in lines[0], err


@pytest.mark.parametrize(('name', 'line', 'expected', 'words'), ROWS, ids=[f'{r[0]} {r[1]!r}' for r in ROWS])
def test_what_is_known_is_told_without_tensorflow(name, line, expected, words, folder, monkeypatch):
  code, out, answer, imported = call(name, line, folder, monkeypatch)
  check(code, expected, answer.err, words.format(tmp=folder))
  assert not imported
  assert nothing_done('\n'.join(out))
  # What a published table stands for, and a store, is looked at when more has been imported than the flags need.
  late = name == 'reproduce' or '--store_dir' in line
  assert answer.seconds < (3.0 if late else children.SECONDS)


@pytest.mark.parametrize(('name', 'line', 'words'), AFTER_THE_DATA, ids=[row[1] for row in AFTER_THE_DATA])
def test_what_the_clients_tell_is_told_without_tensorflow(name, line, words, folder, monkeypatch):
  model = '--model=logistic --phase1_rounds=1 --phase2_rounds=1'
  where = f'--output_dir={{tmp}}/{AFTER_THE_DATA.index((name, line, words))}'
  code, _, answer, imported = call(name, f'{model} {where} {line}', folder, monkeypatch)
  check(code, 2, answer.err, words)
  assert not imported


def test_a_model_of_a_users_own_is_not_imported_to_be_found(folder, monkeypatch):
  code, _, answer, imported = call(
    'run_all', '--model=early_models:small --num_clients=10 --num_groups=11', folder, monkeypatch
  )
  check(code, 2, answer.err, '--num_groups=11 is more than the 10 clients')
  assert not imported
  monkeypatch.syspath_prepend(folder)
  from tff_cluster.models import lookup

  lookup.check('early_models:small')
  assert 'early_models' not in sys.modules


def test_classes_without_rows_are_told(folder, monkeypatch):
  y = np.arange(40) % 2 * 300
  np.savez(folder / 'stray.npz', x=np.ones((40, 8), np.float32), y=y)
  line = '--dataset=file --partition=iid --num_clients=4 --data_file={tmp}/%s.npz'
  told = [call('partition', line % name, folder, monkeypatch) for name in ('stray', 'rows')]
  assert [code for code, *_ in told] == [0, 0]
  assert '299 of 301 classes have no rows (labels go up to 300)' in told[0][2].err
  assert len(told[0][2].err.splitlines()) == 1 and told[1][2].err == ''
