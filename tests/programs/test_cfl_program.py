"""CFL added to a finished run, phase by phase, as README.md says it for any clustering."""

import json

import pytest

from tests.programs.children import run_here

pytestmark = pytest.mark.tensorflow

RUN = (
  '--dataset=digits', '--partition=label_permuted', '--num_clients=6', '--num_groups=2', '--rows_per_client=80',
  '--model=logistic', '--phase1_rounds=6', '--phase2_rounds=8', '--clustering=kmeans,num_clusters=2',
)  # fmt: skip
CFL = ('--method=bipartition', '--stationary_norm=0.3', '--stopping_norm=0.45', '--rounds_before_split=4')


def test_cfl_is_added_to_a_finished_run(tmp_path):
  folder = f'--output_dir={tmp_path / "run"}'
  steps = [
    ('phases.run_all', *RUN, folder),
    ('phases.clustering', *CFL, folder),
    ('phases.phase2', folder),
    ('phases.phase3', folder),
    ('phases.report', folder),
  ]
  for step in steps:
    assert run_here(*step) == 0
  results = json.loads((tmp_path / 'run' / 'results.json').read_text())
  kmeans, cfl = results['clusterings']
  assert (kmeans['splits'], cfl['method'], cfl['recovery']['group']['ari']) == (None, 'bipartition', 1.0)
  assert cfl['splits'][0]['verdict'] == 'split'
  report = (tmp_path / 'run' / 'report.html').read_text()
  assert 'Splits of bipartition' in report
  assert (tmp_path / 'run' / 'figures' / 'split_flow_bipartition.png').exists()
