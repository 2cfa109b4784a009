"""Clients that are sick, huge, nearly empty or without sense: they work, or are one line, and never end the others' run."""

import json

import numpy as np
import pytest

from phases import replay, report
from tests.programs.test_bad_data import BY_OWNER, CLIENTS, KMEANS, arrays, call, check_line, results, save
from tff_cluster.cli import program

pytestmark = pytest.mark.tensorflow

# Enough for enormous rows to overflow: after the first step weights are enormous, too, but still finite.
STEPS = ('--batch_size=4', '--local_epochs=4')


def enormous_rows(owners):
  """Returns x of a data file in which some clients have finite rows that training cannot bear."""
  made = arrays()
  return np.where(np.isin(made['client_id'], owners)[:, None], np.float32(1e30), np.float32(1)) * made['x']


def found_finite(folder):
  return all('excluded' not in clustering for clustering in results(folder)['clusterings'])


def test_a_client_that_diverges_ends_nothing_and_is_told(tmp_path, capsys):
  data, folder = save(tmp_path / 'own.npz', x=enormous_rows(['w2'])), tmp_path / 'run'
  # As many clusters as clients: one fewer can be clustered.
  clusterings = (f'--clustering=kmeans,num_clusters={CLIENTS}', '--clustering=dynamic_distance')
  code = call(folder, *BY_OWNER, f'--data_file={data}', *STEPS, *clusterings)
  assert code == 0, capsys.readouterr().err
  found = results(folder)
  assert [c['excluded'] for c in found['clusterings']] == [['w2'], ['w2']]
  # Of clusters of one client each the first one takes it.
  assert found['clusterings'][0]['clusters'] == [['w0', 'w2'], ['w1'], ['w3'], ['w4'], ['w5']]
  note = (
    '1 client was not clustered, because its update was not finite (w2); it is kept in the largest cluster'
  )
  assert note in found['clusterings'][0]['notes']
  page = (folder / 'report.html').read_text()
  assert note in page and 'Not finite and left out: 1 update of Phase 1' in page
  capsys.readouterr()
  assert program.execute(report.main, report.define_flags, ['p', f'--output_dir={folder}']) == 0
  asked = ['p', f'--output_dir={folder}', '--num_thresholds=3']
  assert program.execute(replay.main, replay.define_flags, asked) == 0
  captured = capsys.readouterr()
  assert captured.err == ''
  assert '1 client was not clustered, because its update was not finite (w2)\n' in captured.out
  assert f'{CLIENTS - 1} clients' in captured.out


def test_where_all_but_one_diverge_it_is_one_line(tmp_path, capsys):
  data = save(tmp_path / 'own.npz', x=enormous_rows(['w0', 'w1', 'w2', 'w4', 'w5']))
  code = call(tmp_path / 'run', *BY_OWNER, f'--data_file={data}', *STEPS, KMEANS)
  check_line(code, capsys, 2, 'client w0', '4 clients more', 'smaller --learning_rate')


def test_one_client_with_a_thousand_times_the_rows_of_the_others_works(tmp_path, capsys):
  data = save(tmp_path / 'own.npz', **arrays(counts=(12, 12, 12_000, 12, 12, 12)))
  code = call(tmp_path / 'run', *BY_OWNER, f'--data_file={data}', KMEANS)
  assert code == 0, capsys.readouterr().err
  found = results(tmp_path / 'run')
  sizes = [sum(counts) for counts in found['population']['label_counts']]
  assert max(sizes) == sizes[2] > 900 * sorted(sizes)[-2]
  assert found_finite(tmp_path / 'run')
  assert found['phase1']['dropped_updates'] == 0
  json.dumps(found, allow_nan=False)


def test_a_partition_that_would_leave_clients_empty_leaves_each_a_row(tmp_path, capsys):
  data = save(tmp_path / 'own.npz')
  flags = ('--dataset=file', '--partition=quantity_skew', '--quantity_alpha=0.001', f'--data_file={data}')
  code = call(tmp_path / 'run', *flags, KMEANS)
  assert code == 0, capsys.readouterr().err
  sizes = [sum(counts) for counts in results(tmp_path / 'run')['population']['label_counts']]
  assert len(sizes) == CLIENTS and min(sizes) == 1
  assert max(sizes) > 20 and found_finite(tmp_path / 'run')


@pytest.mark.parametrize(
  ('changes', 'words'),
  [
    (
      {'y': np.where(np.arange(72) == 5, 2**16, 1)},
      'y has the label 65536; labels go from 0 to at most 65535',
    ),
    ({'y': np.full(72, 1.5)}, 'y has dtype float64; labels are whole numbers'),
    ({'x': np.where(np.arange(288).reshape(72, 4) == 41, np.inf, 1.0)}, 'first in row 10'),
    ({'x': np.where(np.arange(288).reshape(72, 4) == 41, 1e39, 1.0)}, 'too large for float32'),
  ],
  ids=['label too high', 'label 1.5', 'infinite', 'beyond float32'],
)
def test_rows_without_sense_are_one_line(changes, words, tmp_path, capsys):
  data = save(tmp_path / 'own.npz', **changes)
  code = call(tmp_path / 'run', *BY_OWNER, f'--data_file={data}', KMEANS)
  check_line(code, capsys, 2, words)
