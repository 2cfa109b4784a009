"""What is known before training is told before TensorFlow is imported, and what needs no TensorFlow is done without it."""

import pathlib

import numpy as np
import pytest

from tests.made_up import after_phase_1, two_languages
from tests.made_up.expert_outputs import HAND
from tests.programs import children
from tests.programs.children import PROGRAMS, nothing_done
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig

ASKED = [*((name, '--help') for name in PROGRAMS), ('store', '--version')]
WRONG = [
  ('run_all', '--model=nowhere:f', 2, "there is no module 'nowhere'"),
  ('compare', '--seeds=0 --setting=a,num_clients=6 --setting=b,dataset=file,partition=iid,data_file={tmp}/missing.npz', 2, 'no such file'),
  ('run_all', '--model=early_models:nothing', 2, "module 'early_models' has no function 'nothing'"),
  ('compare', '--seeds=0 --setting=a,num_clients=6 --setting=b,dataset=file,data_file={tmp}/rows.npz', 2, 'dataset=file needs a partition of its own'),
  ('run_all', '--dataset=file --data_file={tmp}/missing.npz --partition=iid', 2, 'no such file'),
  ('run_all', '--dataset=file --partition=iid --data_file={tmp}/rows.npz', 2, 'does not fit examples of shape (8,)'),
  ('run_all', '--num_clients=100000 --partition=label_permuted --num_groups=1000 --group_rows=all', 2, 'GB of memory'),
  ('run_all', '--dataset=mnist --data_dir={tmp}/data', 1, '{tmp}/data/mnist/*/dataset_info.json does not exist'),
  ('phase1', '--dataset=cifar10 --data_dir={tmp}/data', 1, '{tmp}/data/cifar10/*/dataset_info.json does not exist'),
  ('partition', '--dataset=emnist --data_dir={tmp}/data', 1, '{tmp}/data/emnist_all.sqlite does not exist'),
  ('partition', '--dataset=shakespeare --data_dir={tmp}/data', 1, '{tmp}/data/shakespeare.sqlite does not exist'),
  ('run_all', '--dataset=file --data_file={tmp}/rows.npz', 2, '--dataset=file needs --partition: by_writer keeps whose each row is'),
  ('run_all', '--dataset=text', 2, '--dataset=text needs --data_file=PLAYS.txt'),
  ('run_all', '--dataset=text --partition=by_writer --data_file={tmp}/plays.txt', 2, '--model=mnist_cnn does not fit --dataset=text, whose rows are codes'),
  ('run_all', '--dataset=text --partition=by_writer --data_file={tmp}/plays.txt --model=2nn', 2, 'allowed are char_cnn, char_rnn, or package.module:function'),
  ('run_all', '--model=char_cnn', 2, '--model=char_cnn does not fit --dataset=digits, whose rows are numbers'),
  ('run_all', '--dataset=text --partition=by_writer --data_file={tmp}/plays.txt --model=char_cnn --text_window=8', 2, 'texts of at least 9 characters'),
  ('run_all', '--dataset=text --partition=by_writer --data_file={tmp}/plays.txt --model=char_rnn --text_window=900', 2, 'nobody has a piece of 901 characters'),
  ('run_all', '--dataset=text --partition=by_writer --data_file={tmp}/rows.npz --model=char_rnn', 2, 'is not UTF-8'),
  ('partition', '--dataset=text --partition=by_writer --data_file={tmp}/nobody.txt', 2, 'nobody speaks in it'),
  ('partition', '--dataset=text --partition=by_writer --data_file={tmp}/plays.txt --partition=rotated --num_clients=4', 2, 'rotation needs square images'),
  ('partition', '--text_window=5', 2, 'does not apply'),
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
STRAY = [
  ('partition', f'--dataset=file --partition=iid --num_clients=4 --data_file={{tmp}}/{name}.npz')
  for name in ('stray', 'rows')
]
DONE = [
  ('experts', '--outputs_file={tmp}/outputs.npz'),
  ('clustering', '--signatures_file={tmp}/v.npz --distance_threshold=1'),
  ('replay', '--output_dir={tmp}/run --metrics=l2 --num_thresholds=4'),
  ('reproduce', '--figure=cfl/figure1'),
  ('reproduce', '--figure=cfl/figure2'),
]
SLOW = ['tensorflow', 'tensorflow_federated', 'keras', 'tensorflow_datasets', 'sklearn', 'matplotlib', 'networkx', 'scipy']  # fmt: skip


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  path = tmp_path_factory.mktemp('given')
  (path / 'early_models.py').write_text('import tensorflow\n\n\ndef small(shape, classes): ...\n')
  (path / 'file').write_text('mine')
  (path / 'broken').mkdir()
  (path / 'broken' / 'emnist_all.sqlite').write_bytes(b'SQLite format 3\0' + bytes(84))
  y = np.arange(40) % 2
  (path / 'plays.txt').write_text(two_languages.plays(4, 400))
  (path / 'nobody.txt').write_text('Nobody, here.')
  np.savez(path / 'rows.npz', x=np.ones((40, 8), np.float32), y=y)
  np.savez(path / 'stray.npz', x=np.ones((40, 8), np.float32), y=y * 300)
  np.savez(path / 'outputs.npz', outputs=HAND)
  np.savez(path / 'v.npz', signatures=[[0.0], [1.0], [2.0], [10.0]])
  config = ExperimentConfig(DataConfig(num_clients=6), clusterings=(ClusteringConfig(method='planted'),))
  after_phase_1.make(path / 'run', config, np.repeat([0, 1], 3))
  return path


@pytest.fixture(scope='module')
def answers(folder):
  """Returns {(program, line): (answer, slow modules that have been imported so far)}, and the folder with what was left."""
  rows = [row[:2] for row in (*ASKED, *DONE, *WRONG, *STRAY)]
  lines = []
  for k, (name, line) in enumerate(rows):
    out = [] if (name, line) in ASKED or '--output_dir' in line else [f'--output_dir={folder}/out{k}']
    lines.append([name, *line.format(tmp=folder).split(' '), *out])
  return dict(zip(rows, children.call_one_by_one(folder, SLOW, lines), strict=True))


@pytest.mark.parametrize('row', ASKED, ids=' '.join)
def test_help_is_fast_and_imports_nothing_that_is_slow(row, answers):
  answer, imported = answers[row]
  assert (answer.code, answer.err, imported) == (0, '', []) and answer.seconds < children.SECONDS
  name, option = row
  if option == '--version':
    assert answer.out.startswith('tff_cluster ')
    return
  lines = answer.out.splitlines()
  assert f'usage: python -m phases.{name} --flag=value ...' in lines and '  --flagfile=FILE' in lines
  assert '--verbosity' not in answer.out.replace("absl's flags, for instance --verbosity", '')
  assert '--only_check_args' not in answer.out and '--pdb' not in answer.out


@pytest.mark.parametrize('row', WRONG, ids=[f'{name} {line!r}' for name, line, *_ in WRONG])
def test_what_is_known_is_told_without_tensorflow(row, answers, folder):
  answer, imported = answers[row[:2]]
  *_, expected, words = row
  assert answer.code == expected, answer.err
  (line,) = (line for line in answer.err.splitlines() if not line.startswith('warning: '))
  assert line.startswith('error: ') and words.format(tmp=folder) in line
  assert 'tensorflow' not in imported and answer.seconds < 3 * children.SECONDS
  assert nothing_done(answer.out)


@pytest.mark.parametrize('row', DONE, ids=[' '.join(row) for row in DONE])
def test_what_needs_no_tensorflow_is_done_without_it(row, answers):
  answer, imported = answers[row]
  assert (answer.code, answer.err) == (0, '') and not {'tensorflow', 'tensorflow_federated', 'keras'} & {
    *imported
  }
  if row[0] == 'experts':
    assert 'sklearn' not in imported and answer.out.startswith('2 experts, 3 samples, 3 classes\n')
  elif row[0] == 'clustering':
    assert answer.out.startswith('dynamic_distance: 3 clusters, 4 clients\n')
  elif row[0] == 'reproduce':
    page = pathlib.Path(answer.out.removeprefix('report ').rstrip('\n'))
    assert f'python -m phases.reproduce {row[1]}' in page.read_text()
    assert 'fails' not in (page.parent / 'scorecard.csv').read_text()


def test_classes_without_rows_are_told(answers):
  (stray, _), (rows, _) = (answers[row] for row in STRAY)
  assert (stray.code, rows.code, rows.err) == (0, 0, '')
  (line,) = stray.err.splitlines()
  assert '299 of 301 classes have no rows (labels go up to 300)' in line
