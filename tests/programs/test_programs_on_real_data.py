"""The programs on the four real sources, with few clients and rows so that each takes seconds.

TFF_CLUSTER_DATA names the folder that holds tfds/ (MNIST, CIFAR-10) and tff/ (federated EMNIST).
"""

import csv
import json
import re
import sqlite3

import numpy as np
import pytest

from tests.programs.children import run_here

pytestmark = pytest.mark.tensorflow

FEW = ('--num_clients=5', '--rows_per_client=30')


def source_flags(name, real_data):
  return (f'--dataset={name}',) if name == 'digits' else (f'--dataset={name}', f'--data_dir={real_data}')


@pytest.mark.parametrize(
  ('name', 'more', 'classes'),
  [
    ('digits', ('--partition=pathological',), 10),
    ('mnist', ('--partition=label_swapped',), 10),
    ('cifar10', ('--partition=label_permuted',), 10),
    ('emnist', ('--partition=by_writer',), 10),
    ('emnist', ('--partition=by_writer', '--emnist_classes=62'), 62),
    ('emnist', ('--partition=iid',), 10),
  ],
)
def test_partitions_of_every_source_are_shown(name, more, classes, real_data, tmp_path, capsys):
  flags = [*source_flags(name, real_data), *FEW, *more, f'--output_dir={tmp_path}']
  assert run_here('phases.partition', *flags) == 0
  out, err = capsys.readouterr()
  assert err == ''
  for file in ('partition.csv', 'partition.svg', 'partition.png'):
    assert str(tmp_path / file) in out and (tmp_path / file).stat().st_size > 0
  with open(tmp_path / 'partition.csv') as stream:
    clients = list(csv.DictReader(stream))
  ids = [client['client'] for client in clients]
  assert len(set(ids)) == len(ids) == 5
  for client in clients:
    assert client['client'] in out
    # 30 rows at most, of which a tenth, and at least one row, is for validation.
    train, validation = int(client['train rows']), int(client['validation rows'])
    assert train >= 1 and validation == max(1, round((train + validation) / 10)) and train + validation <= 30
    assert int(client['test rows']) >= 1
    assert 1 <= int(client['classes']) <= classes
  if 'by_writer' in more[0]:
    database = sqlite3.connect(f'file:{real_data}/tff/emnist_all.sqlite?mode=ro', uri=True)
    known = {row[0] for row in database.execute('SELECT DISTINCT client_id FROM client_metadata')}
    database.close()
    assert set(ids) <= known
  if more[0] == '--partition=pathological':
    assert all(int(client['classes']) <= 2 for client in clients)


@pytest.mark.parametrize(
  ('name', 'more'),
  [
    # The network of McMahan 2017 without convolutions, because MNIST's whole test set is measured.
    ('mnist', ('--partition=pathological', '--model=2nn')),
    ('emnist', ('--model=mnist_cnn', '--partition=by_writer', '--emnist_classes=62', '--min_examples=20')),
  ],
)
def test_one_and_one_rounds_on_real_images(name, more, real_data, tmp_path, capsys):
  flags = (
    *source_flags(name, real_data), *FEW, *more, '--phase1_rounds=1', '--phase2_rounds=1', '--batch_size=10',
    '--clustering=kmeans,num_clusters=2', f'--output_dir={tmp_path / "run"}',
  )  # fmt: skip
  assert run_here('phases.run_all', *flags) == 0
  out = capsys.readouterr().out
  found = json.loads((tmp_path / 'run' / 'results.json').read_text())
  classes = found['population']['num_classes']
  assert classes == (62 if name == 'emnist' else 10)
  # The papers' sizes; the last layer of the CNN has 513 weights a class.
  assert found['training']['parameters'] == (199_210 if name == 'mnist' else 1_663_370 + 513 * 52)
  assert f'digest {found["digest"]}' in out
  assert np.isfinite(found['baseline']['evaluation']['clients']['loss'])
  for clustering in found['clusterings']:
    assert all(0 <= e['clients']['accuracy'] <= 1 for e in clustering['evaluations'].values())
  if name == 'mnist':
    assert set(found['clusterings'][0]['recovery']) == {'digit', 'label set'}
    assert found['population']['rows']['global_test'] == 10_000
  else:
    assert all(re.fullmatch(r'f\d{4}_\d\d', client_id) for client_id in found['population']['client_ids'])
  assert run_here('phases.run_all', *flags) == 0
  again = capsys.readouterr().out
  assert re.search(r'^client-rounds: \d+ asked for, 0 trained$', again, re.M)
  assert f'digest {found["digest"]}' in again
