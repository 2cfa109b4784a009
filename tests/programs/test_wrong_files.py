"""Wrong configurations, and files of vectors, rows and outputs: exit code 2, one line with the file, nothing left.

What is wrong with a value or an array is tested where it is read (tests/experiment, data, clustering, aggregation); here
are a row a kind, and what only a file can be. Damaged folders of runs are in test_bad_run_folders.py.
"""

import io
import json
import zipfile

import numpy as np
import pytest

from tests.programs import children
from tff_cluster.experiment.config import ClusteringConfig, ExperimentConfig

GOOD = ExperimentConfig(clusterings=(ClusteringConfig(method='kmeans'),)).to_json()


def changed(section, **fields):
  """Returns the bytes of a configuration with some fields of a section set."""
  value = json.loads(json.dumps(GOOD))
  part = value['clusterings'][0] if section == 'clusterings' else value[section]
  part.update(fields)
  return json.dumps(value).encode()


WHOLE = json.dumps(GOOD, indent=1).encode()
CONFIGS = {
  'two in a row': (WHOLE + WHOLE, 'not JSON (Extra data'),
  'another encoding': (json.dumps(GOOD).encode('utf-16'), 'not UTF-8'),
  'a number of 5000 digits': (b'{"data": {"data_seed": ' + b'9' * 5000 + b'}}', 'not JSON (Exceeds the limit'),
  'a field twice': (b'{"data": {"data_seed": 1, "data_seed": 2}}', "'data_seed' stands in it twice"),
  'a field of a newer version': (changed('training', compression='none'), "unknown field 'compression'"),
  'a key of two lines': (changed('data', **{'a\nb\u2028': 1}), "unknown field 'a\\nb\\u2028'"),
  'a choice that is half a character': (changed('data', partition='\ud800'), 'configuration: partition=\\ud800: allowed are'),
  'a choice of 100,000 letters': (changed('data', partition='x' * 100_000), ' characters ...] '),
  'a NUL in a path': (changed('data', dataset='mnist', data_dir='a\0b'), 'configuration: data_dir=a\\x00b: the value holds a NUL'),
  'a folder': (None, ' is a folder; give the config.json in it'),
}  # fmt: skip


def raw(**members):
  """Returns a zip archive whose members are these bytes."""
  stream = io.BytesIO()
  with zipfile.ZipFile(stream, 'w') as archive:
    for name, content in members.items():
      archive.writestr(name.replace('__npy', '.npy'), content)
  return stream.getvalue()


def npz(**arrays):
  stream = io.BytesIO()
  np.savez(stream, **arrays)
  return stream.getvalue()


def npy(array):
  stream = io.BytesIO()
  np.save(stream, array)
  return stream.getvalue()


def header(shape, descr='<f8'):
  """Returns an .npy that promises such an array and holds none of it."""
  stream = io.BytesIO()
  np.lib.format.write_array_header_1_0(stream, {'descr': descr, 'fortran_order': False, 'shape': shape})
  return stream.getvalue()


X, Y = np.arange(240.0).reshape(60, 4), np.arange(60) % 3
HUGE = header((10**9, 10**9))
# No archives, or damaged ones. Files of rows and of vectors have tests of their own (test_npz_file.py, test_signatures.py).
FOREIGN = {
  'nothing': b'',
  'a text': b'x,y\n1,2\n',
  'altered': npz(x=X, y=Y, outputs=X, signatures=X).replace(X.tobytes()[99:140], bytes(41)),
  'a pickle': b'\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00]\x94(K\x01K\x02e.',
}
ROWS = {
  'no y': (npz(x=X), "has no array 'y'"),
  'dates': (npz(x=X.astype('M8[s]'), y=Y), 'x has dtype datetime64'),
  'records': (npz(x=np.zeros((60, 2), [('a', int)]), y=Y), 'x has dtype [('),
  'labels above 2^63': (npz(x=X, y=np.full(60, 2**64 - 1, np.uint64)), 'y has the label 18446744073709551615'),
  'a member that is no array': (raw(x__npy=npy(X), y=b'0,1,2'), "'y' in it is no array"),
  'a member that is cut': (raw(x__npy=npy(X)[:-8], y__npy=npy(Y)), 'is damaged'),
  'a member of 8 exabytes': (raw(x__npy=HUGE, y__npy=npy(Y)), 'an array in it promises more numbers than it holds'),
  'a note beside a member of 8 exabytes': (
    raw(notes=b'of mine', x__npy=HUGE, y__npy=npy(Y)), 'an array in it promises more numbers than it holds'
  ),
  'a header that is code': (raw(x__npy=header((1,), '__import__("os")'), y__npy=npy(Y)), 'is damaged'),
}  # fmt: skip
VECTORS = {
  'no signatures': (npz(vectors=X), "must hold an array 'signatures', found vectors"),
  'records': (npz(signatures=np.zeros((3, 2), [('a', int)])), 'signatures must be numbers'),
  'ids that are no array': (raw(signatures__npy=npy(X), client_ids=b'a,b'), 'not an .npz or .npy file, or damaged'),
  'an array of 8 exabytes': (HUGE, 'not an .npz or .npy file, or damaged'),
  'a member of 8 exabytes': (raw(signatures__npy=HUGE), 'not an .npz or .npy file, or damaged'),
}  # fmt: skip
P = np.full((2, 3, 4), 0.25)
OUTPUTS = {
  'one array': (npy(P), 'is not an .npz'),
  'other names': (npz(probabilities=P), "has no array 'outputs' [experts, samples, classes], found probabilities"),
  'labels above 2^63': (npz(outputs=P, labels=np.full(3, 2**64 - 1, np.uint64)), 'labels[0] is 18446744073709551615'),
  'a member that is no array': (raw(outputs=b'1,2'), "'outputs' in it is no array"),
  'a member of 8 exabytes': (raw(outputs__npy=HUGE), 'an array in it promises more numbers than it holds'),
}  # fmt: skip


@pytest.fixture(scope='module', autouse=True)
def _imported():
  children.import_what_is_slow()


def refused(name, flag, content, words, tmp_path, capsys, *more):
  """Gives the program a file with this content (None: a folder) and checks its answer, which names the file."""
  path = tmp_path / 'given.npz'
  if content is None:
    path.mkdir()
  else:
    path.write_bytes(content)
  before = children.files(tmp_path)
  answer = children.call(name, [f'--{flag}={path}', f'--output_dir={tmp_path}/out', *more], capsys)
  children.check(answer, words)
  assert str(path) in answer.err
  assert children.files(tmp_path) == before


@pytest.mark.parametrize('kind', CONFIGS)
def test_a_wrong_configuration(kind, tmp_path, capsys):
  refused('partition', 'config_file', *CONFIGS[kind], tmp_path, capsys)


@pytest.mark.parametrize('name', ['phase1', 'run_all', 'compare'])
def test_every_program_reads_configurations_alike(name, tmp_path, capsys):
  refused(name, 'config_file', *CONFIGS['two in a row'], tmp_path, capsys)


FILE = ('--dataset=file', '--partition=iid', '--num_clients=5')
TAKERS = {
  'clustering': ('signatures_file', VECTORS, ()),
  'replay': ('signatures_file', VECTORS, ()),
  'experts': ('outputs_file', OUTPUTS, ()),
  'partition': ('data_file', ROWS, FILE),
  'phase1': ('data_file', ROWS, FILE),
  'run_all': ('data_file', ROWS, FILE),
  'compare': ('data_file', ROWS, (*FILE, '--seeds=0')),
}
# What reads rows reads them in the same way, and so does what reads vectors.
FIRST = ('clustering', 'experts', 'partition')
WRONG = [
  (name, kind)
  for name, (_, table, _) in TAKERS.items()
  for k, kind in enumerate(table)
  if name in FIRST or not k
]


@pytest.mark.parametrize(('name', 'kind'), WRONG)
def test_a_wrong_file(name, kind, tmp_path, capsys):
  flag, table, more = TAKERS[name]
  refused(name, flag, *table[kind], tmp_path, capsys, *more)


@pytest.mark.parametrize('kind', FOREIGN)
def test_a_foreign_or_damaged_file(kind, tmp_path, capsys):
  refused('experts', 'outputs_file', FOREIGN[kind], 'given.npz: ', tmp_path, capsys)


@pytest.mark.parametrize('name', TAKERS)
def test_a_folder_and_nothing(name, tmp_path, capsys):
  flag, _, more = TAKERS[name]
  refused(name, flag, None, 'given.npz: ', tmp_path, capsys, *more)
  (tmp_path / 'given.npz').rmdir()
  line = [f'--{flag}={tmp_path}/given.npz', f'--output_dir={tmp_path}/out', *more]
  children.check(children.call(name, line, capsys), 'given.npz: no such file')


@pytest.mark.parametrize(
  ('line', 'words'),
  [
    ('--num_clients=999999999999999999', '48 training rows are too few for 2 rows each; at most 24 clients'),
    ('--partition=by_writer', 'the rows of given have no owners; a file needs client_id'),
    ('--partition=pathological --shards_per_client=4', '--shards_per_client=4: the rows have 3 labels'),
    ('--partition=label_swapped --num_groups=4', '3 labels have 3 pairs to swap'),
    ('--partition=rotated --num_groups=2', 'rotation needs square images'),
  ],
)
def test_rows_that_are_right_and_cannot_be_shared_out(line, words, tmp_path, capsys):
  path = tmp_path / 'given.npz'
  path.write_bytes(npz(x=X, y=Y))
  given = [*FILE, '--clustering=kmeans,num_clusters=2', *line.split(' ')]
  line = [f'--data_file={path}', f'--output_dir={tmp_path}/out', *given]
  children.check(children.call('partition', line, capsys), words)
  assert sorted(tmp_path.iterdir()) == [path]
