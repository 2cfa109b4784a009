"""What is known before training is told before TensorFlow is imported, by a process that then leaves no folder behind."""

import json
import sys

import numpy as np
import pytest

from tests.programs import children
from tests.programs.children import nothing_done

# Calls programs as they are called from a shell, one after the other, and tells of each its exit code, what it wrote, and
# whether TensorFlow has been imported so far. Nothing listens at the proxy: whoever wants to download is refused at once.
_SCRIPT = """
import contextlib, importlib, io, json, os, sys
folder, lines = json.loads(sys.argv[1])
sys.path.insert(0, folder)
os.environ |= {'http_proxy': 'http://127.0.0.1:9', 'https_proxy': 'http://127.0.0.1:9'}
from tff_cluster.cli import program
for name, given in lines:
  module, out, err = importlib.import_module(f'phases.{name}'), io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    code = program.execute(module.main, module.define_flags, ['p', *given])
  print(json.dumps([code, out.getvalue(), err.getvalue(), 'tensorflow' in sys.modules]))
"""

ROWS = [
  ('run_all', '--model=nowhere:f', 2, "there is no module 'nowhere'"),
  ('run_all', '--model=early_models:nothing', 2, "module 'early_models' has no function 'nothing'"),
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
  ('run_all', '--model=early_models:small --num_clients=10 --num_groups=11', 2, '--num_groups=11 is more than the 10 clients'),
  # Those that need the clients, which are made first.
  ('run_all', '--model=logistic --clustering=planted,truth=nothing', 2, 'truth=nothing'),
  ('run_all', '--model=logistic --num_folds=200', 2, '--num_folds=200: client '),
]  # fmt: skip


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  path = tmp_path_factory.mktemp('given')
  (path / 'early_models.py').write_text('import tensorflow\n\n\ndef small(shape, classes): ...\n')
  (path / 'file').write_text('mine')
  (path / 'broken').mkdir()
  (path / 'broken' / 'emnist_all.sqlite').write_bytes(b'SQLite format 3\0' + bytes(84))
  np.savez(path / 'rows.npz', x=np.ones((40, 8), np.float32), y=np.arange(40) % 2)
  return path


def called(lines, folder):
  """Returns (exit code, standard output, standard error, whether TensorFlow has been imported) of each (program, line)."""
  given = [
    (name, [*line.format(tmp=folder).split(' '), f'--output_dir={folder}/out']) for name, line in lines
  ]
  answer = children.call_process('-c', _SCRIPT, json.dumps([str(folder), given]))
  assert answer.code == 0, answer.err
  # As much as one program may take, and what is looked at when more has been imported than its flags need.
  assert answer.seconds < 3 * children.SECONDS
  return [json.loads(line) for line in answer.out.splitlines()]


@pytest.fixture(scope='module')
def answers(folder):
  return dict(zip(ROWS, called([row[:2] for row in ROWS], folder), strict=True))


@pytest.mark.parametrize('row', ROWS, ids=[f'{name} {line!r}' for name, line, *_ in ROWS])
def test_what_is_known_is_told_without_tensorflow(row, answers, folder):
  code, out, err, imported = answers[row]
  *_, expected, words = row
  assert code == expected, err
  lines = [line for line in err.splitlines() if not line.startswith('W')]
  assert len(lines) == 1 and lines[0].startswith('error: ') and words.format(tmp=folder) in lines[0], err
  assert not imported
  assert nothing_done(out)


def test_a_model_of_a_users_own_is_not_imported_to_be_found(folder, monkeypatch):
  monkeypatch.syspath_prepend(folder)
  from tff_cluster.models import lookup

  lookup.check('early_models:small')
  assert 'early_models' not in sys.modules


def test_classes_without_rows_are_told(folder):
  y = np.arange(40) % 2 * 300
  np.savez(folder / 'stray.npz', x=np.ones((40, 8), np.float32), y=y)
  line = '--dataset=file --partition=iid --num_clients=4 --data_file={tmp}/%s.npz'
  told = called([('partition', line % name) for name in ('stray', 'rows')], folder)
  assert [code for code, *_ in told] == [0, 0]
  assert '299 of 301 classes have no rows (labels go up to 300)' in told[0][2]
  assert len(told[0][2].splitlines()) == 1 and told[1][2] == ''
