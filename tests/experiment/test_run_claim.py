"""The folder of a run belongs to one experiment."""

import dataclasses
import os
import shutil
import sys

import pytest

from tff_cluster.base import environment
from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.experiment import config_file, run_claim
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
)
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files, output_folders

pytestmark = pytest.mark.usefixtures('folders_let_go')
BASE = ExperimentConfig(clusterings=(ClusteringConfig(method='dynamic_distance'),))


def claimed(path, config=BASE, store_dir=None):
  """Returns the folder, claimed and written, as if this process had ended since."""
  folder = run_claim.claim_output_dir(path, config, store_dir).write()
  output_folders.release_all()
  return folder


def train(folder):
  """Makes the folder look as if the first round of Phase 1 had just ended."""
  (folder / 'metrics').mkdir(exist_ok=True)
  (folder / 'metrics' / 'phase1.csv').write_text('round,loss\n1,2.0\n')


def test_claim_writes_the_configuration_and_the_environment(tmp_path):
  folder = run_claim.claim_output_dir(tmp_path / 'a' / 'b', ExperimentConfig()).write()
  assert ExperimentConfig.from_json(files.load_json(folder / 'config.json')) == ExperimentConfig()
  found = files.load_json(folder / 'environment.json')
  assert found['python'] == '.'.join(map(str, sys.version_info[:3]))
  assert found['packages']['tensorflow-federated'] == '0.87.0'
  assert 1 <= found['cores'] <= os.cpu_count()
  written = {'.tff_cluster-lock', 'config.json', 'environment.json'}
  assert {path.name for path in folder.iterdir()} == written


def test_the_environment_names_all_that_a_run_was_trained_on_and_not_who_reads_it(tmp_path, monkeypatch):
  def at(commit, works=True):
    now = dataclasses.replace(environment.describe_environment(), commit=commit, started=f'when {commit}')
    monkeypatch.setattr(run_claim, 'describe_environment', lambda: now)
    run_claim.claim_output_dir(tmp_path, BASE).write(works)
    output_folders.release_all()
    return files.load_json(tmp_path / 'environment.json')

  first = at('a')
  train(tmp_path)
  assert at('a') == first and at('b', works=False) == first
  assert at('c') == {**first, 'commit': 'a, c'}
  # Installed without a checkout, it has no commit to name.
  assert at('')['commit'] == 'a, c'
  assert at('a')['commit'] == 'a, c' and at('d')['started'] == 'when a'
  (tmp_path / 'environment.json').unlink()
  assert at('e', works=False)['commit'] == 'e'


def test_the_same_experiment_goes_on(tmp_path):
  for place in ('here', 'elsewhere'):
    config = ExperimentConfig(data=DataConfig(dataset='mnist', data_dir=place))
    claimed(tmp_path, config)
    assert config_file.read_config(tmp_path / 'config.json') == config


@pytest.mark.parametrize(
  'trained', ['metrics/phase1.csv', 'phase1.json', f'store/fedavg-{"0a" * 12}/latest_00001.npz']
)
def test_another_experiment_is_refused_where_something_was_trained(trained, tmp_path):
  claimed(tmp_path)
  (tmp_path / trained).parent.mkdir(parents=True, exist_ok=True)
  (tmp_path / trained).write_text('round,loss\n1,2.0\n')
  before = (tmp_path / 'config.json').read_bytes()
  for changes, words in (
    ({'data': DataConfig(num_clients=21)}, 'holds another experiment: .*num_clients is 20 there and 21 here'),
    ({'data': DataConfig(rows_per_client=5)}, 'rows_per_client is not given there and 5 here'),
    ({'evaluation': EvaluationConfig(num_folds=3)}, 'num_folds is 0 there and 3 here; choose another folder'),
  ):
    with pytest.raises(InputError, match=words):
      claimed(tmp_path, dataclasses.replace(BASE, **changes))
  assert (tmp_path / 'config.json').read_bytes() == before


def test_a_folder_that_is_refused_has_run_no_code_that_it_names(tmp_path, monkeypatch):
  monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / 'sent_along.py').write_text(f"open({str(tmp_path / 'it_ran')!r}, 'w')\nraise RuntimeError\n")
  (tmp_path / 'run' / 'metrics').mkdir(parents=True)
  train(tmp_path / 'run')
  plain = BASE.to_json()
  sent = plain | {
    'data': plain['data'] | {'num_clients': 21},
    'training': plain['training'] | {'model': 'sent_along:model'},
    'clusterings': [{'method': 'sent_along:Method'}],
    'evaluation': plain['evaluation'] | {'aggregation': ['sent_along:rule']},
  }
  files.save_json(tmp_path / 'run' / 'config.json', sent)
  with pytest.raises(InputError, match=r'holds another experiment: .*num_clients is 21 there and 20 here'):
    claimed(tmp_path / 'run')
  assert not (tmp_path / 'it_ran').exists()


@pytest.mark.parametrize(
  ('name', 'error', 'words'),
  [
    ('', InputError, 'not JSON'),
    ('config.json', InputError, 'is not a folder, or lies below a file'),
    ('config.json/below', InputError, 'is not a folder, or lies below a file'),
    ('x' * 300, InputError, '^output_dir=.*File name too long'),
    ('linked', EnvironmentFault, 'cannot write in output_dir='),  # A lock follows no link.
    ('/proc/nowhere/run', EnvironmentFault, '^cannot create output_dir='),
  ],
  ids=lambda value: str(value)[:20],
)
def test_what_cannot_be_a_runs_folder_is_told_and_kept(name, error, words, tmp_path):
  (tmp_path / 'config.json').write_text('{"data": ')
  (tmp_path / 'linked').mkdir()
  (tmp_path / 'linked' / '.tff_cluster-lock').symlink_to(tmp_path / 'config.json')
  with pytest.raises(error, match=words):
    run_claim.claim_output_dir(tmp_path / name, BASE)
  assert (tmp_path / 'config.json').read_text() == '{"data": '


def test_a_folder_takes_more_clusterings_of_its_phase_1_but_no_other_one_of_a_name(tmp_path):
  one, two = ClusteringConfig(method='kmeans', num_clusters=2), ClusteringConfig(method='dynamic_distance')
  folder = RunFolder(tmp_path)
  for clustering in (one, two, one):
    claimed(tmp_path, dataclasses.replace(BASE, clusterings=(clustering,)))
    train(tmp_path)
    files.save_json(folder.clusters(clustering.label), {})
  assert config_file.read_config(tmp_path / 'config.json').clusterings == (one, two)
  other = one.changed(num_clusters=3)
  with pytest.raises(InputError, match="two clusterings are called 'kmeans'"):
    claimed(tmp_path, dataclasses.replace(BASE, clusterings=(other,)))
  assert config_file.read_config(tmp_path / 'config.json').clusterings == (one, two)


def test_a_claim_writes_nothing_before_it_is_told_to(tmp_path):
  run_claim.claim_output_dir(tmp_path / 'claimed', BASE, str(tmp_path / 'shared'))
  output_folders.release_all()
  assert list(tmp_path.iterdir()) == []


def test_resuming_needs_a_run(tmp_path):
  for path in (tmp_path, tmp_path / 'missing'):
    with pytest.raises(InputError, match='holds no run'):
      run_claim.resume_output_dir(path)
  assert list(tmp_path.iterdir()) == []
  claimed(tmp_path / 'run')
  assert run_claim.resume_output_dir(tmp_path / 'run') == tmp_path / 'run'
  assert (tmp_path / 'run' / '.tff_cluster-lock').exists()


def test_a_program_that_needs_a_run_does_not_make_a_users_files_those_of_a_claim(tmp_path):
  (tmp_path / 'config.json').write_text('{"data": {"num_clients": 7}}')
  (tmp_path / 'report.html').write_text('mine')
  for _ in range(2):
    with pytest.raises(InputError, match=r'but report.html of others'):
      run_claim.claim_output_dir(tmp_path, BASE)
    output_folders.release_all()
    run_claim.resume_output_dir(tmp_path)
    output_folders.release_all()
  assert not (tmp_path / 'environment.json').exists()
  # A claim that was killed between its two files is sealed, and alone.
  run = claimed(tmp_path / 'run')
  (run / 'environment.json').unlink()
  output_folders.release_all()
  assert (run_claim.resume_output_dir(run) / 'environment.json').exists()


TOKEN = '.tff_cluster-0123456789abcdef'
LEFT = (
  f'{TOKEN}-phase1.json', f'clusterings/kmeans/{TOKEN}-clusters.json', f'models/k/{TOKEN}-cluster_000.keras',
  f'store/fedavg-{"0a" * 12}/{TOKEN}-round_00001.npz', f'folds/00/phase2/{TOKEN}-baseline.json',
)  # fmt: skip
# What a user keeps in the folder of a run, among it what looks like ours and lies where ours does not.
MINE = (
  '.notes.tmp', '.lock', f'mine/{TOKEN}-round_00001.npz', f'store/holidays/{TOKEN}-round_00001.npz',
  f'models/k/deep/{TOKEN}-a.keras', 'store/.fedavg-2.tmp/round_00001.npz', 'clusterings/kmeans/.a.tmp/x',
)  # fmt: skip


@pytest.mark.parametrize('go_on', [claimed, run_claim.resume_output_dir])
def test_what_a_killed_run_left_is_removed_when_it_goes_on_and_what_others_have_there_is_not(go_on, tmp_path):
  run = claimed(tmp_path / 'run')
  elsewhere = tmp_path / 'elsewhere' / f'{TOKEN}-a.json'
  for path in (*(run / name for name in (*LEFT, *MINE)), elsewhere):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('mine')
  (run / 'metrics').mkdir()
  for link in (run / 'phase2', run / 'metrics' / 'mine'):
    link.symlink_to(elsewhere.parent)
  with files.replacing(run / 'store' / f'fedavg-{"0a" * 12}' / 'round_00002.npz') as stream:
    stream.write(b'another run writes this')
    go_on(run)
  assert [path.name for path in run.glob('store/fedavg-*/*')] == ['round_00002.npz']
  assert [name for name in LEFT if (run / name).exists()] == []
  assert {name: (run / name).read_text() for name in MINE} == dict.fromkeys(MINE, 'mine')
  assert elsewhere.read_text() == 'mine'
  # A store that runs share is left to them.
  output_folders.release_all()
  (run / 'store').rename(tmp_path / 'shared')
  (run / 'store').symlink_to(tmp_path / 'shared')
  left_over = run / LEFT[3]
  left_over.write_text('half')
  run_claim.resume_output_dir(run)
  assert left_over.exists()


def test_models_that_lie_where_no_run_was_are_of_others_and_stay(tmp_path):
  model = tmp_path / 'models/dynamic_distance/cluster_000.keras'
  model.parent.mkdir(parents=True)
  model.write_text('mine')
  claimed(tmp_path, BASE)
  assert model.read_text() == 'mine'


@pytest.mark.parametrize('name', ['results.json', 'metrics/phase1.csv'])
def test_a_folder_with_somebody_elses_files_where_a_run_writes_is_refused(name, tmp_path):
  (tmp_path / name).parent.mkdir(exist_ok=True)
  (tmp_path / name).write_text('mine')
  with pytest.raises(InputError, match=rf'holds no run \(no config.json\), but {name.split("/")[0]}'):
    run_claim.claim_output_dir(tmp_path, BASE)
  output_folders.release_all()
  assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob('*') if path.is_file()] == [name]


@pytest.mark.parametrize('beside', [(), ('results.json',), ('population.npz', 'report.html')])
def test_a_configuration_that_no_run_wrote_is_not_replaced_and_files_beside_it_stay(beside, tmp_path):
  (tmp_path / 'config.json').write_text('{}')
  for name in beside:
    (tmp_path / name).write_text('mine')
  before = {path.name: path.read_text() for path in tmp_path.iterdir()}
  first = min(before.keys() - {'config.json'}, default='config.json')
  with pytest.raises(InputError, match=rf'holds no run \(no environment.json\), but {first} of others'):
    run_claim.claim_output_dir(tmp_path, BASE)
  output_folders.release_all()
  assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before
  # The same experiment may run where its configuration lies, but over no other file.
  if not beside:
    claimed(tmp_path, ExperimentConfig())
    assert files.load_json(tmp_path / 'config.json') == ExperimentConfig().to_json()
    return
  with pytest.raises(InputError, match='of others'):
    run_claim.claim_output_dir(tmp_path, ExperimentConfig())


def test_a_claim_that_was_killed_before_it_was_whole_is_replaced(tmp_path):
  claimed(tmp_path)
  (tmp_path / 'environment.json').unlink()
  other = dataclasses.replace(BASE, data=DataConfig(num_clients=21))
  claimed(tmp_path, other)
  assert config_file.read_config(tmp_path / 'config.json') == other
  # A copy of a run's configuration and results is its user's.
  (tmp_path / 'environment.json').unlink()
  (tmp_path / 'results.json').write_text('mine')
  with pytest.raises(InputError, match=r'results.json of others'):
    claimed(tmp_path)


def test_a_folder_in_which_nothing_was_trained_is_another_experiments_without_a_word(tmp_path):
  run = claimed(tmp_path / 'run', BASE, str(tmp_path / 'one'))
  for place in (run, run / 'folds' / '00'):
    place.mkdir(parents=True, exist_ok=True)
    (place / 'population.npz').write_text('of the first')
  (run / 'metrics').mkdir()
  (run / 'metrics' / 'phase1.csv').write_text('round\n')
  other = dataclasses.replace(BASE, data=DataConfig(num_clients=21))
  claimed(run, other, str(tmp_path / 'two'))
  assert config_file.read_config(run / 'config.json') == other
  assert not list(run.rglob('population.npz'))
  assert os.path.samefile(run / 'store', tmp_path / 'two')


def test_a_clustering_that_was_not_made_is_replaced_or_left_out(tmp_path):
  one, two, three = (ClusteringConfig(method='kmeans', name=f'c{k}', num_clusters=2) for k in (1, 2, 3))
  folder = RunFolder(tmp_path)
  claimed(tmp_path, dataclasses.replace(BASE, clusterings=(one, two, three)))
  train(tmp_path)
  for path in (folder.clusters('c1'), folder.choice('c2'), folder.phase2('c2')):
    files.save_json(path, {})
  other = two.changed(num_clusters=3)
  claim = run_claim.claim_output_dir(tmp_path, dataclasses.replace(BASE, clusterings=(other,)))
  assert claim.config.clusterings == (one, other)
  assert folder.choice('c2').exists()
  claim.write()
  assert config_file.read_config(folder.config).clusterings == (one, other)
  kept = [path.exists() for path in (folder.choice('c2'), folder.phase2('c2'), folder.clusters('c1'))]
  assert kept == [False, False, True]


def test_a_store_that_is_linked_ahead_goes_with_an_experiment_that_is_refused(tmp_path):
  run, store = tmp_path / 'run', tmp_path / 'one'
  claim = run_claim.claim_output_dir(run, BASE, str(store))
  with pytest.raises(InputError), claim.linked():
    assert os.path.samefile(run / 'store', store)
    raise InputError('refused')
  assert not os.path.lexists(run / 'store')
  with claim.linked():
    (run / 'store' / 'model-0').mkdir()
  claim.write()
  assert (store / 'model-0').exists() and os.path.samefile(run / 'store', store)


def test_a_link_to_a_store_that_a_user_made_stays(tmp_path):
  run, disk = tmp_path / 'run', tmp_path / 'bigdisk'
  for folder in (run, disk):
    folder.mkdir()
  (run / 'store').symlink_to(disk)
  with pytest.raises(InputError, match=f'keeps its artifacts in {disk}'):
    run_claim.claim_output_dir(run, BASE, str(tmp_path / 'another'))
  output_folders.release_all()
  for store_dir in (None, str(disk)):
    with pytest.raises(InputError), run_claim.claim_output_dir(run, BASE, store_dir).linked():
      raise InputError('refused')
    output_folders.release_all()
    assert os.readlink(run / 'store') == str(disk)
  # One experiment after the other, of which nothing is trained.
  for config in (BASE, dataclasses.replace(BASE, data=DataConfig(num_clients=21))):
    claimed(run, config)
    assert os.readlink(run / 'store') == str(disk)
  # One that is not there just now, too.
  disk.rmdir()
  with pytest.raises(EnvironmentFault, match=f'the store {disk} of the run in .* is not there'):
    claimed(run)
  assert os.readlink(run / 'store') == str(disk)


def test_the_store_of_the_folder_itself_can_be_named(tmp_path):
  run = claimed(tmp_path / 'run', BASE, str(tmp_path / 'run' / 'store'))
  assert (run / 'store').is_dir() and not (run / 'store').is_symlink()
  output_folders.release_all()
  claimed(tmp_path / 'run', BASE, str(tmp_path / 'run' / 'store'))


def test_runs_below_an_output_folder_with_the_store_move_and_are_copied_with_it(tmp_path):
  root = output_folders.lock(tmp_path / 'real' / 'out')
  (tmp_path / 'linked').symlink_to(tmp_path / 'real')
  for below in ('seed_0', 'table/small/row_seed0'):
    # However the folder is named, the link leads to it.
    named = tmp_path / 'linked' / 'out'
    run_claim.claim_output_dir(named / below, BASE, str(root / 'store')).write()
  output_folders.release_all()
  shutil.copytree(root, tmp_path / 'copy', symlinks=True)
  root.rename(tmp_path / 'moved')
  for place in ('copy', 'moved'):
    for run in (tmp_path / place / 'seed_0', tmp_path / place / 'table/small/row_seed0'):
      assert os.path.samefile(run / 'store', tmp_path / place / 'store')
      train(run)
      run_claim.claim_output_dir(run, BASE, str(tmp_path / place / 'store')).write()
      output_folders.release_all()


def test_a_store_beside_a_run_is_linked_by_its_full_path(tmp_path):
  run = claimed(tmp_path / 'run', BASE, str(tmp_path / 'store'))
  run.rename(tmp_path / 'elsewhere')
  assert os.path.samefile(tmp_path / 'elsewhere' / 'store', tmp_path / 'store')
  train(tmp_path / 'elsewhere')
  (tmp_path / 'store').rename(tmp_path / 'moved')
  with pytest.raises(InputError, match=rf'remove the link {tmp_path}/elsewhere/store'):
    claimed(tmp_path / 'elsewhere', BASE, str(tmp_path / 'moved'))
  output_folders.release_all()
  (tmp_path / 'elsewhere' / 'store').unlink()
  claimed(tmp_path / 'elsewhere', BASE, str(tmp_path / 'moved'))
