"""What was asked of a Phase 1 is kept, and what malicious clients do in a comparison; on made-up runs."""

import json
import shutil

import numpy as np
import pytest

from tests.made_up import after_phase_1, comparison_runs, disturbance, finished_run, run_with_malicious
from tests.programs.children import run_here
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig
from tff_cluster.storage import files
from tff_cluster.studies.comparison import page as comparison_page
from tff_cluster.studies.disturbance import page as disturbance_page
from tff_cluster.studies.kept import keep, results

GROUPS = np.repeat(np.arange(3), 4)
CONFIG = ExperimentConfig(
  data=DataConfig(num_clients=12, num_groups=3), clusterings=(ClusteringConfig('kmeans', num_clusters=3),)
)


@pytest.fixture
def run(tmp_path):
  return after_phase_1.make(tmp_path / 'run', CONFIG, GROUPS)


def kept(folder, place, *flags):
  assert run_here('phases.keep', f'--output_dir={folder}', '--name=mine', f'--kept_dir={place}', *flags) == 0
  return results.read_all(place)['mine']


def test_what_replay_found_is_kept_with_both_commands(run, tmp_path, monkeypatch):
  asked = ('--metrics=l2', '--linkages=ward', '--distance_thresholds=mean,0.5')
  monkeypatch.setattr('sys.argv', ['replay', f'--output_dir={run.root}', *asked])
  assert run_here('phases.replay', f'--output_dir={run.root}', *asked) == 0
  found = kept(run.root, tmp_path / 'kept', '--figures=replay', '--machine=abacus')
  assert found.provenance.commands == [
    f'python -m phases.phase1 --config_file={tmp_path}/kept/mine/config.json --output_dir=runs/mine',
    f'python -m phases.replay {" ".join(asked)} --output_dir=runs/mine',
  ]
  assert (found.provenance.machine, found.provenance.digests) == ('abacus', {})
  assert found.provenance.engine == json.loads(run.environment.read_bytes())['engine'] > 0
  assert ExperimentConfig.from_json(json.loads((found.folder / 'config.json').read_text())) == CONFIG
  assert (found.folder / 'replay.svg').exists() and not (found.folder / results.RUNS).exists()
  (ward,) = found.lines('best', family='l2 ward')
  assert (ward['groups'], ward['best score']) == ('group', '1')
  # Two groups of four whose centres are 9 * sqrt(2) apart: sqrt(4) times that.
  assert float(ward['below T']) == pytest.approx(18 * np.sqrt(2), rel=1e-2)
  # Of methods without a linkage every answer; within half a unit there are the groups, at the mean of all distances too.
  told = found.lines('answers', method='dynamic_distance')
  assert [(line['clusters'], float(line['omega_group'])) for line in told] == [('3', 1.0), ('3', 1.0)]
  assert {line['method'] for line in found.lines('answers')} > {'kmeans', 'dynamic_distance'}


def test_what_disturb_found_is_kept(run, tmp_path, capsys):
  flags = (f'--output_dir={run.root}', '--name=mine', f'--kept_dir={tmp_path}/kept')
  assert run_here('phases.keep', *flags) == 2  # Nothing was asked yet.
  assert 'holds no finished run, comparison, league, reproduction or Phase 1' in capsys.readouterr().err
  assert not (tmp_path / 'kept').exists()
  files.save_json(run.root / 'disturbance/disturbance.json', disturbance.DOCUMENT)
  disturbance_page.write_disturbance(disturbance.DOCUMENT, CONFIG, run.root / 'disturbance')
  found = kept(run.root, tmp_path / 'kept', '--figures=noise,bits')
  assert found.provenance.commands[1] == f'{disturbance.COMMAND} --output_dir=runs/mine'
  (told,) = found.lines('disturbance', label='a', disturbance='noise', value='0.5')
  assert [float(told[name]) for name in ('mean', 'high', 'epsilon')] == [0.125, 0.25, 1234.5]
  assert found.table('disturbance').units['bytes'] == 'bytes'
  assert {'noise.svg', 'bits.svg'} <= {path.name for path in found.folder.iterdir()}
  # Where nothing of it is there any more it makes way; what a replay found is kept in its place.
  shutil.rmtree(run.root / 'disturbance')
  assert run_here('phases.replay', f'--output_dir={run.root}') == 0
  found = kept(run.root, tmp_path / 'kept')
  assert found.tables == ['answers', 'best']


def test_what_malicious_clients_do_is_kept_by_contender(tmp_path):
  half = comparison_runs.constant(0.5, clients=5)
  own = [[0.9 if k in (1, 4) else 0.5 + gain for k in range(5)] for gain in (0.1, 0.2, 0.3)]
  runs = comparison_runs.make({comparison_runs.FEDAVG: half, 'k': own, 'planted': half})
  for seed, value in runs:
    run_with_malicious.add(value, (1, 4), {'k': (0.0, 1.0, 0.5)[seed], 'planted': 0.0}, 2)
    finished_run.save(tmp_path / f'seed_{seed}', value, {})
  comparison_page.write(comparison_runs.typed(runs), {'command': 'python -m phases.compare'}, tmp_path)
  made = keep.of_folder(tmp_path)
  results.write(tmp_path / 'kept/made', made.provenance, made.texts, [])
  found = results.read_all(tmp_path / 'kept')['made']
  (told,) = found.lines('malicious', contender='k')
  numbers = [told[name] for name in ('honest', 'difference', 'malicious', 'honest beside malicious')]
  assert [float(number) for number in numbers] == [70.0, 20.0, 90.0, 50.0]
  assert (told['isolated'], told['dropped']) == ('1', '6')
  (fedavg,) = found.lines('malicious', contender=comparison_runs.FEDAVG)
  assert (fedavg['honest'], fedavg['honest beside malicious'], fedavg['isolated']) == ('50.0', '', '')


def test_a_picture_that_is_not_there_is_told(run, tmp_path, capsys):
  assert run_here('phases.replay', f'--output_dir={run.root}') == 0
  capsys.readouterr()
  given = f'--output_dir={run.root}', '--name=mine', f'--kept_dir={tmp_path}/kept', '--figures=noise'
  assert run_here('phases.keep', *given) == 2
  assert f'{run.root} has no picture noise; there are replay' in capsys.readouterr().err
  assert not (tmp_path / 'kept').exists()
