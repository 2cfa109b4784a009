"""The folder of a run belongs to one experiment and one process."""

import dataclasses
import os
import subprocess
import sys

import pytest

from tff_cluster import store
from tff_cluster.cli import config_file, environment, output
from tff_cluster.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.errors import EnvironmentFault, InputError

BASE = ExperimentConfig(clusterings=(ClusteringConfig(method='dynamic_distance'),))


@pytest.fixture(autouse=True)
def _release():
  yield
  output.release_output_dirs()


def test_claim_writes_the_configuration_and_the_environment(tmp_path):
  folder = output.claim_output_dir(tmp_path / 'a' / 'b', ExperimentConfig())
  assert ExperimentConfig.from_json(store.load_json(folder / 'config.json')) == ExperimentConfig()
  found = store.load_json(folder / 'environment.json')
  assert found['python'] == '.'.join(map(str, sys.version_info[:3]))
  assert found['packages']['tensorflow-federated'] == '0.87.0'
  assert 1 <= found['cores'] <= os.cpu_count()
  assert sorted(path.name for path in folder.iterdir()) == ['.lock', 'config.json', 'environment.json']


def test_given_environment_is_written(tmp_path):
  output.claim_output_dir(tmp_path, ExperimentConfig(), {'python': 'x'})
  assert store.load_json(tmp_path / 'environment.json') == {'python': 'x'}


def test_the_same_experiment_goes_on(tmp_path):
  first = ExperimentConfig(data=DataConfig(dataset='mnist', data_dir='here'))
  output.claim_output_dir(tmp_path, first, environment.describe_environment())
  output.release_output_dirs()
  moved = ExperimentConfig(data=DataConfig(dataset='mnist', data_dir='elsewhere'))
  output.claim_output_dir(tmp_path, moved)
  assert config_file.read_config(tmp_path / 'config.json') == moved


@pytest.mark.parametrize(
  ('other', 'words'),
  [
    (dataclasses.replace(BASE, data=DataConfig(num_clients=21)), 'num_clients is 20 there and 21 here'),
    (dataclasses.replace(BASE, training=TrainingConfig(seed=1)), 'seed is 0 there and 1 here'),
    (
      dataclasses.replace(BASE, data=DataConfig(rows_per_client=5)),
      'rows_per_client is not given there and 5 here',
    ),
    (dataclasses.replace(BASE, evaluation=EvaluationConfig(num_folds=3)), 'num_folds is 0 there and 3 here'),
  ],
)
def test_another_experiment_is_refused(other, words, tmp_path):
  output.claim_output_dir(tmp_path, BASE)
  before = (tmp_path / 'config.json').read_bytes()
  with pytest.raises(InputError) as caught:
    output.claim_output_dir(tmp_path, other)
  assert words in str(caught.value) and 'choose another folder' in str(caught.value)
  assert (tmp_path / 'config.json').read_bytes() == before


def test_a_folder_takes_more_clusterings_of_its_phase_1_but_no_other_one_of_a_name(tmp_path):
  one, two = ClusteringConfig(method='kmeans', num_clusters=2), ClusteringConfig(method='dynamic_distance')
  output.claim_output_dir(tmp_path, dataclasses.replace(BASE, clusterings=(one,)))
  output.claim_output_dir(tmp_path, dataclasses.replace(BASE, clusterings=(two,)))
  output.claim_output_dir(tmp_path, dataclasses.replace(BASE, clusterings=(one,)))
  assert config_file.read_config(tmp_path / 'config.json').clusterings == (one, two)
  other = dataclasses.replace(one, num_clusters=3)
  with pytest.raises(InputError, match="two clusterings are called 'kmeans'"):
    output.claim_output_dir(tmp_path, dataclasses.replace(BASE, clusterings=(other,)))
  assert config_file.read_config(tmp_path / 'config.json').clusterings == (one, two)


def test_a_damaged_configuration_is_refused_and_kept(tmp_path):
  (tmp_path / 'config.json').write_text('{"data": ')
  with pytest.raises(InputError, match='not JSON'):
    output.claim_output_dir(tmp_path, ExperimentConfig())
  assert (tmp_path / 'config.json').read_text() == '{"data": '


def test_a_file_is_no_folder(tmp_path):
  (tmp_path / 'file').write_text('mine')
  for path in (tmp_path / 'file', tmp_path / 'file' / 'below'):
    with pytest.raises(InputError, match='not a folder'):
      output.claim_output_dir(path, ExperimentConfig())
  assert (tmp_path / 'file').read_text() == 'mine'


def test_a_name_that_no_file_system_takes_is_wrong_input():
  with pytest.raises(InputError, match=r'--output_dir=.*File name too long'):
    output.claim_output_dir('/tmp/' + 'x' * 300, ExperimentConfig())


@pytest.mark.parametrize('path', ['/proc/nowhere/run', '/sys/run'])
def test_a_folder_that_cannot_be_made(path):
  with pytest.raises(EnvironmentFault, match='--output_dir='):
    output.claim_output_dir(path, ExperimentConfig())


@pytest.mark.skipif(os.geteuid() == 0, reason='root may write anywhere')
def test_a_folder_that_may_not_be_written(tmp_path):
  tmp_path.chmod(0o500)
  with pytest.raises(EnvironmentFault, match='Permission denied'):
    output.claim_output_dir(tmp_path, ExperimentConfig())


HOLDER = (
  'import sys, time\nfrom tff_cluster.cli import output\noutput.lock_output_dir(sys.argv[1])\n'
  'print("held", flush=True)\nsys.stdin.readline()\n'
)  # fmt: skip


def hold(folder):
  process = subprocess.Popen(
    [sys.executable, '-c', HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
  )
  assert process.stdout.readline() == 'held\n'
  return process


def refused_to_others(folder):
  other = subprocess.run(
    [sys.executable, '-c', HOLDER, str(folder)], input='go\n', capture_output=True, text=True
  )
  return f'another run (process {os.getpid()})' in other.stderr


def test_two_processes_do_not_share_a_folder(tmp_path):
  with hold(tmp_path) as other:
    with pytest.raises(EnvironmentFault, match=rf'another run \(process {other.pid}\)'):
      output.lock_output_dir(tmp_path)
    other.communicate('go\n')
  assert other.returncode == 0
  assert list(tmp_path.iterdir()) == []
  output.lock_output_dir(tmp_path)


def test_a_folder_is_held_for_a_block_but_not_taken_from_who_had_it_before(tmp_path):
  with output.held(tmp_path / 'run') as folder, output.held(folder):
    assert refused_to_others(folder)
  assert not folder.exists()
  output.lock_output_dir(folder)
  with output.held(folder):
    pass
  assert refused_to_others(folder)


def test_a_killed_process_holds_nothing(tmp_path):
  with hold(tmp_path) as other:
    other.kill()
  assert (tmp_path / '.lock').exists()
  output.lock_output_dir(tmp_path)


def test_a_forked_child_does_not_keep_the_lock(tmp_path):
  output.lock_output_dir(tmp_path)
  reader, writer = os.pipe()
  child = os.fork()
  if not child:
    os.close(writer)
    os.read(reader, 1)
    output.release_output_dirs()
    os._exit(0)
  os.close(reader)
  output.release_output_dirs()
  with hold(tmp_path) as other:
    os.close(writer)
    os.waitpid(child, 0)
    with pytest.raises(EnvironmentFault, match='another run'):
      output.lock_output_dir(tmp_path)
    other.communicate('go\n')


def test_an_unused_folder_is_removed_and_others_stay(tmp_path):
  there = tmp_path / 'there'
  there.mkdir()
  used = output.lock_output_dir(tmp_path / 'used')
  (used / 'results').write_text('x')
  for name in ('new', 'there'):
    output.lock_output_dir(tmp_path / name)
  output.release_output_dirs()
  assert sorted(path.name for path in tmp_path.iterdir()) == ['there', 'used']


def test_resuming_needs_a_run(tmp_path):
  for path in (tmp_path, tmp_path / 'missing'):
    with pytest.raises(InputError, match='holds no run'):
      output.resume_output_dir(path)
  assert list(tmp_path.iterdir()) == []
  output.claim_output_dir(tmp_path / 'run', ExperimentConfig())
  output.release_output_dirs()
  assert output.resume_output_dir(tmp_path / 'run') == tmp_path / 'run'
  assert (tmp_path / 'run' / '.lock').exists()


LEFT = (
  '.phase1.json.ab12cd34.tmp', 'clusterings/kmeans/.clusters.json.x.tmp', 'models/k/.cluster_000.7.tmp.keras',
  'store/fedavg-1/.round_00001.npz.x.tmp', 'store/.fedavg-2.tmp/round_00001.npz',
)  # fmt: skip


@pytest.mark.parametrize('go_on', ['claimed', 'resumed'])
def test_what_a_killed_run_left_is_removed_when_it_goes_on(go_on, tmp_path):
  run = output.claim_output_dir(tmp_path, ExperimentConfig())
  output.release_output_dirs()
  before = sorted(run.rglob('*'))
  for name in LEFT:
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).write_text('half')
  output.claim_output_dir(run, ExperimentConfig()) if go_on == 'claimed' else output.resume_output_dir(run)
  files = [path for path in run.rglob('*') if path.is_file() and path.name != '.lock']
  assert sorted(files) == before
  assert not list(run.rglob('.*.tmp'))


def test_what_others_write_in_a_store_is_left_to_them(tmp_path):
  run = output.claim_output_dir(tmp_path / 'run', ExperimentConfig())
  output.release_output_dirs()
  with store.replacing(run / 'store' / 'fedavg-1' / 'round_00001.npz') as stream:
    stream.write(b'another run writes this')
    output.resume_output_dir(run)
  assert [path.name for path in (run / 'store').rglob('*.*')] == ['round_00001.npz']
  left_over = tmp_path / 'shared' / '.fedavg-1.tmp'
  left_over.mkdir(parents=True)
  (run / 'store').rename(tmp_path / 'old')
  (run / 'store').symlink_to(tmp_path / 'shared')
  output.resume_output_dir(run)
  assert left_over.exists()


def test_a_folder_that_is_no_run_yet_loses_nothing_but_a_half_configuration(tmp_path):
  mine = [tmp_path / '.notes.tmp', tmp_path / 'deep' / '.config.json.x.tmp']
  (tmp_path / 'deep').mkdir()
  for path in (*mine, tmp_path / '.config.json.ab12cd34.tmp'):
    path.write_text('x')
  output.claim_output_dir(tmp_path, ExperimentConfig())
  assert all(path.exists() for path in mine)
  assert not (tmp_path / '.config.json.ab12cd34.tmp').exists()


def test_first_difference_is_none_for_equal_experiments():
  one = ExperimentConfig()
  assert config_file.first_difference(one, dataclasses.replace(one)) is None
