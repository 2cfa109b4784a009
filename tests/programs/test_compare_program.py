"""phases.compare: flags that do not fit are told in one line; a small comparison goes on and ends with the same numbers."""

import csv
import json
import sys

import pytest

from tests.programs.children import run_here

SMALL = [
  '--num_clients=6', '--num_groups=2', '--rows_per_client=40', '--model=logistic', '--phase1_rounds=1', '--phase2_rounds=2',
  '--local_training', '--clustering=planted', '--clustering=kmeans,num_clusters=2',
  '--clustering=dynamic_distance,distance_threshold=quantile:0.6', '--target_accuracy=0.5', '--overlap_dial=3',
]  # fmt: skip


@pytest.fixture
def run(capsys, monkeypatch):
  """Returns a function that compares in a folder and returns (exit code, standard output, standard error)."""

  def compared(folder, *more):
    line = [*SMALL, f'--output_dir={folder}', *more]
    monkeypatch.setattr(sys, 'argv', ['compare.py', *line])  # What the page calls its command.
    return run_here('phases.compare', *line), *capsys.readouterr()

  return compared


@pytest.mark.tensorflow
def test_a_small_comparison_from_flags_to_page_and_again(run, tmp_path):
  folder = tmp_path / 'out'
  code, _, err = run(folder, '--seeds=0')
  assert code == 0, err
  code, _, err = run(folder, '--seeds=0,1', '--num_folds=2')
  assert code == 2 and '--num_folds=2 does not apply to a comparison' in err
  code, out, err = run(folder, '--seeds=0,1')
  assert code == 0, err
  page = folder / 'index.html'
  atlas = folder / 'atlas.html'
  assert out.splitlines()[-2:] == [f'atlas {atlas}', f'report {page}']
  # The distances of the runs came along.
  assert atlas.read_text().count('"geometry":{"weights":') == 2
  with (folder / 'comparison.csv').open() as lines:
    records = list(csv.DictReader(lines))
  names = {record['contender'] for record in records}
  dial = {'dial_00', 'dial_01', 'dial_02'}
  assert len(names) == 8 and dial | {'planted', 'kmeans', 'dynamic_distance'} <= names
  assert {record['seed'] for record in records} == {'0', '1'} and len(records) == 8 * 2 * 2
  clusters = {r['contender']: float(r['num_clusters']) for r in records if r['contender'] in dial}
  assert clusters['dial_00'] == 6 and clusters['dial_02'] == 1
  text = page.read_text()
  assert 'python -m phases.compare' in text and 'The overlap dial' in text and str(folder) not in text
  # Each number is that of the seed's own run.
  for seed in ('0', '1'):
    results = json.loads((folder / f'seed_{seed}' / 'results.json').read_text())
    own = {c['label']: c['evaluations']['own']['client_accuracy'] for c in results['clusterings']}
    for record in records:
      if record['contender'] in own and record['seed'] == seed and record['budget'] == 'equal_rounds':
        values = own[record['contender']]
        assert float(record['accuracy']) == pytest.approx(sum(values) / len(values))
  assert (results['config']['training']['seed'], results['config']['data']['data_seed']) == (1, 1)
  before = {path: path.read_bytes() for path in (folder / 'comparison.csv', folder / 'comparison.json')}
  _, out, _ = run(folder, '--seeds=0,1')
  assert 'client-rounds: 0 asked for, 0 trained' in out.splitlines()
  assert {path: path.read_bytes() for path in before} == before
