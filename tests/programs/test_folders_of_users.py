"""What others keep in a run's folder stays as it is; a refused command locks nothing; ways out that are named work."""

import logging
import os
import re
import shutil

import pytest

from tests.programs.children import SMALL, digest, run_here, run_small
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import model_export
from tff_cluster.storage import files

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures('without_report')]

TOKEN = '.tff_cluster-0123456789abcdef'
# Names near ours, where a run looks for its own.
MINE = (
  'thesis.txt', '.lock', '.notes.tmp', '.draft.tmp.bak', 'results.json.damaged', 'mine/.work.tmp/deep/thesis.txt',
  'mine/.notes.tmpl', f'mine/{TOKEN}-round_00001.npz', 'models/mine/cluster_000.keras.bak', 'figures/mine.svg',
  'store/photos-2021/determinants.json', 'store/photos-2021/holiday_7.npz', 'store/.photos-1.tmp/a.jpg',
  f'store/fedavg-{"0a" * 12}/determinants.json', f'store/fedavg-{"0b" * 12}/round_00003.npz',
  f'store/.tff_cluster-removed-fedavg-{"0c" * 12}/thesis.txt',
)  # fmt: skip
# In folders that only a run makes, so they come after the first call.
LATER = (
  'metrics/phase1.csv.bak', 'metrics/phase1.csv_temp', 'tensorboard/phase1/events.out.tfevents.1.mine',
  'clusterings/kmeans/notes.json', 'phase2/mine.json', '.clusters.json.x.tmp',
)  # fmt: skip


def put(root, names):
  """Writes files of a user, each with its own content, and returns them with it."""
  contents = {root / name: f'mine: {name}'.encode() for name in names}
  for path, content in contents.items():
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
  return contents


def of_trajectories(folder):
  return sorted(folder.glob('store/fedavg-*/round_00004.npz'))


def test_every_file_of_a_user_is_there_byte_for_byte_after_everything(tmp_path, monkeypatch, capsys):
  run = tmp_path / 'run'
  contents = put(run, MINE) | put(tmp_path / 'elsewhere', [f'{TOKEN}-a.json', 'round_00009.npz'])
  (run / 'linked').symlink_to(tmp_path / 'elsewhere')
  monkeypatch.chdir(run)
  given = '.'
  assert run_small(given, '--export_models') == 0, capsys.readouterr().err
  contents |= put(run, LATER)
  (run / 'models' / 'link').symlink_to(tmp_path / 'elsewhere')
  trajectory = of_trajectories(run)[0]
  contents |= put(trajectory.parent, ['holiday_2021.npz', 'latest_3.npz', 'round_00004.npz.damaged'])
  # Damage, a resume, a report, a prune, and all of it trained again.
  trajectory.write_bytes(b'damaged')
  for path in [*run.glob('phase3/*.json'), *run.glob('phase2/clustering_*.json'), RunFolder(run).baseline]:
    path.unlink()
  (run / 'results.json').write_text('{')
  assert run_small(given) == 0, capsys.readouterr().err
  assert (trajectory.parent / 'round_00004.npz.damaged-2').read_bytes() == b'damaged'
  assert run_here('phases.report', f'--output_dir={given}') == 0
  assert run_here('phases.store', f'--store_dir={os.path.join(given, "store")}', '--prune_unused_days=0') == 0
  assert [path.parent for path in of_trajectories(run)] == [trajectory.parent]
  shutil.rmtree(run / 'phase3')
  assert run_small(given) == 0, capsys.readouterr().err
  assert {path: path.read_bytes() for path in contents} == contents


def test_refused_commands_do_not_lock_their_folder(tmp_path, capsys):
  run = tmp_path / 'run'
  for wrong, words in (
    (('--model=no.such:module',), 'no.such'),
    (('--num_clients=1790', '--num_groups=1'), ''),
    (('--dataset=mnist', f'--data_dir={tmp_path}/nowhere'), 'mnist'),
    (('--clustering=planted,truth=none,name=oracle',), 'none'),
  ):
    changed = {flag.split('=')[0] for flag in wrong} - {'--clustering'}
    line = [flag for flag in SMALL if flag.split('=')[0] not in changed]
    line += [*wrong, f'--output_dir={run}', f'--store_dir={tmp_path}/shared']
    assert run_here('phases.run_all', *line) in (1, 2)
    refusal = capsys.readouterr().err
    assert words in refusal and refusal.count('\n') == 1
  assert run_here('phases.phase1', f'--output_dir={run}', *SMALL) == 0, capsys.readouterr().err


def flip(path, place):
  whole = bytearray(path.read_bytes())
  whole[int(place * len(whole))] ^= 1
  path.write_bytes(whole)
  return bytes(whole)


def test_a_flipped_bit_in_an_exported_model_is_noticed_and_the_model_made_again(
  copy, finished, capsys, caplog
):
  paths = [RunFolder(copy).model(*model) for model in (('kmeans', 0), ('kmeans', 1), ('bipartition', 0))]
  damaged = [flip(path, place) for path, place in zip(paths, (0.001, 0.5, 0.999), strict=True)]
  with caplog.at_level(logging.WARNING):
    assert run_small(copy) == 0, capsys.readouterr().err
  assert ' 0 trained' in capsys.readouterr().out
  told = [record.getMessage() for record in caplog.records if record.name == files.__name__]
  assert len(told) == len(paths)
  for path, content in zip(paths, damaged, strict=True):
    assert any(f'{path} is damaged' in line for line in told)
    assert path.with_name(path.name + '.damaged').read_bytes() == content
    assert model_export.same_model(path, finished / path.relative_to(copy))
  assert run_small(copy) == 0
  assert len(list(copy.glob('models/**/*.damaged'))) == len(paths) and digest(copy) == digest(finished)


def test_a_model_of_whose_checksum_a_killed_run_did_not_tell_is_looked_into(copy, capsys):
  folder = RunFolder(copy)
  for label in ('kmeans', 'hierarchical'):
    folder.phase2(label).unlink()
  damaged = flip(folder.model('kmeans', 0), 0.5)
  assert run_small(copy, '--export_models') == 0, capsys.readouterr().err
  asides = {path: path.read_bytes() for path in copy.glob('models/**/*.damaged*')}
  assert asides == {folder.model('kmeans', 0).with_name('cluster_000.keras.damaged'): damaged}


def test_models_are_written_where_they_are_asked_for_and_equal_ones_take_room_once(
  copy, finished, tmp_path, capsys
):
  shutil.rmtree(copy / 'models')
  assert run_small(copy) == 0 and not (copy / 'models').exists()
  assert run_small(copy, '--export_models') == 0
  out = capsys.readouterr().out
  assert ' 0 trained' in out.split('digest')[-2]
  (line,) = [line for line in out.split('digest')[-2].splitlines() if line.startswith('on disk ')]
  assert re.fullmatch(r'on disk [0-9.]+ [kM]B \(.*store [0-9.]+ [kM]B.*\)', line)
  names = sorted(str(path.relative_to(copy)) for path in copy.glob('models/*/*'))
  assert names == sorted(str(path.relative_to(finished)) for path in finished.glob('models/*/*')) != []
  # K-means and the hierarchical clustering find the same groups.
  folder = RunFolder(copy)
  clusters = [files.load_json(folder.clusters(label))['clusters'] for label in ('kmeans', 'hierarchical')]
  assert clusters[0] == clusters[1]
  for row in range(2):
    assert os.path.samefile(folder.model('kmeans', row), folder.model('hierarchical', row))
  assert folder.sizes()['models'] == sum(
    {path.stat().st_ino: path.stat().st_size for path in copy.glob('models/*/*.keras')}.values()
  )
