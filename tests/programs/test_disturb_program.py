"""phases.disturb on a run, and what it refuses."""

import csv
import json

import numpy as np
import pytest

from tests.conftest import make_population
from tests.made_up import after_phase_1
from tests.programs.children import run_here
from tff_cluster.data import saved
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig

PHASE1 = (
  '--dataset=digits', '--partition=label_permuted', '--num_clients=6', '--num_groups=2', '--rows_per_client=80',
  '--model=logistic', '--phase1_rounds=3', '--local_epochs=2', '--clustering=kmeans,num_clusters=2',
  '--clustering=kmeans,num_clusters=2,signature=updates,name=on_updates', '--clustering=planted',
)  # fmt: skip


def call(*arguments):
  return run_here('phases.disturb', *map(str, arguments))


def test_a_run_without_planted_groups(tmp_path, capsys):
  config = ExperimentConfig(
    DataConfig(num_clients=6), clusterings=(ClusteringConfig(method='kmeans', num_clusters=2),)
  )
  run = after_phase_1.make(tmp_path / 'run', config, np.repeat([0, 1], 3))
  run.population.unlink()
  saved.save_population(make_population(clients=6), run.population)
  assert call(f'--output_dir={run.root}') == 2
  assert 'has no planted groups' in capsys.readouterr().err


@pytest.mark.tensorflow
def test_a_run(tmp_path, capsys):
  folder = tmp_path / 'run'
  assert run_here('phases.phase1', *PHASE1, f'--output_dir={folder}') == 0
  before = {path: path.read_bytes() for path in folder.rglob('*') if path.is_file()}
  # A clip norm that clips nobody; noise that drowns everything; bits that change next to nothing, and very few.
  line = ('--noise_multipliers=0,100', '--clip_norm=1024', '--bits=1,16', '--repeats=2')
  capsys.readouterr()
  assert call(f'--output_dir={folder}', *line) == 0
  out, err = capsys.readouterr()
  assert err == ''
  assert 'report ' in out and 'K-means on weights, noise:' in out
  document = json.loads((folder / 'disturbance' / 'disturbance.json').read_bytes())
  assert [line['label'] for line in document['left_out']] == ['planted']
  assert [line['epsilon'] is None for line in document['privacy']] == [True, False]
  assert document['truth'] == {'name': 'group', 'groups': 2}
  for kind in ('updates', 'weights'):
    (signature,) = [line for line in document['signatures'] if line['signature'] == kind]
    assert signature['clipped'] == 0 and signature['bytes'] == 4 * signature['features']
    # What is sent is an update: much shorter than the weights themselves.
    assert 0 < signature['norms']['max'] < 1024
  undisturbed = [row for row in document['rows'] if row['value'] in (0.0, 16)]
  assert len(undisturbed) == 2 * 3 and all(row['mean'] == row['undisturbed'] for row in undisturbed)
  assert {row['undisturbed'] for row in document['rows']} == {1.0}
  drowned = [row for row in document['rows'] if row['value'] == 100.0]
  assert len(drowned) == 2 and max(row['mean'] for row in drowned) < 1.0
  with open(folder / 'disturbance' / 'disturbance.csv', newline='') as file:
    assert len(list(csv.DictReader(file))) == len(document['rows']) == 2 * (2 + 2 + 2)
  after = {path: path.read_bytes() for path in folder.rglob('*') if path.is_file()}
  assert all(after.get(path) == content for path, content in before.items())
  assert {path.relative_to(folder).parts[0] for path in after.keys() - before.keys()} == {'disturbance'}
  # What it wrote it replaces; what a user has there it does not.
  assert call(f'--output_dir={folder}', *line) == 0
  (folder / 'disturbance' / 'disturbance.json').write_text('{"of": "a user"}')
  capsys.readouterr()
  assert call(f'--output_dir={folder}', *line) == 2
  assert 'has disturbance.json, which would be written over' in capsys.readouterr().err
