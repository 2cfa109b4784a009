"""Damaged folders of runs: exit code 2, one line with the file, in less than a second, and nothing is lost."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from tests.made_up import after_phase_1
from tests.programs import children
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files

STARTED = ExperimentConfig(
  DataConfig(num_clients=6, num_groups=3), clusterings=(ClusteringConfig(method='kmeans', num_clusters=3),)
)
FLAGS = ['--num_clients=6', '--num_groups=3', '--clustering=kmeans,num_clusters=3']


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
  """A run whose Phase 1 is done, with files of the later phases that are whole JSON."""
  children.import_what_is_slow()
  folder = after_phase_1.make(tmp_path_factory.mktemp('whole') / 'run', STARTED, np.repeat(np.arange(3), 2))
  for path in (folder.baseline, folder.clusters('kmeans'), folder.phase2('kmeans'), folder.phase3('kmeans')):
    files.save_json(path, {'timing': {}})
  return folder


@pytest.fixture
def run(whole, tmp_path):
  shutil.copytree(whole.root, tmp_path / 'run')
  return RunFolder(tmp_path / 'run')


PLAIN = json.dumps(STARTED.to_json()).encode()
# What may have become of a JSON file; None: a folder of that name.
JSON = {
  'empty': b'',
  'cut': b'{"timing": {"seco',
  'a list': b'[1, 2]',
  'very deep': b'[' * 100_000,
  'a folder': None,
}
CONFIG = JSON | {
  'a field of a newer version': PLAIN.replace(b'"num_clients"', b'"shuffled": "no", "num_clients"'),
}
# phases.clustering and the others that go on with a run; and those that are given flags again.
RESUMING = ('clustering', 'phase2', 'phase3', 'replay', 'report')
CLAIMING = ('phase1', 'run_all')


def damage(path, content):
  path.unlink()
  if content is None:
    path.mkdir()
  else:
    path.write_bytes(content)


def refused(name, run, path, words, capsys, *more):
  """Checks the program's answer, which names the file, and that all files are as they were."""
  before = children.files(run.root)
  answer = children.call(name, [f'--output_dir={run.root}', *more], capsys)
  children.check(answer, words)
  assert str(path) in answer.err
  assert children.files(run.root) == before


@pytest.mark.parametrize('kind', CONFIG)
@pytest.mark.parametrize('name', [*RESUMING, *CLAIMING])
def test_a_damaged_configuration(name, kind, run, capsys):
  damage(run.config, CONFIG[kind])
  if kind == 'a folder' and name in RESUMING:
    refused(name, run, run.root, 'holds no run (no config.json)', capsys)
  else:
    words = 'a folder' if kind == 'a folder' else f'{run.config} is not a configuration: '
    refused(name, run, run.config, words, capsys, *(FLAGS if name in CLAIMING else ()))


def test_a_damaged_configuration_of_one_seed_of_a_comparison(run, capsys):
  root = run.root / 'compared'
  config = root / 'seed_0' / 'config.json'
  config.parent.mkdir(parents=True)
  config.write_bytes(CONFIG['cut'])
  answer = children.call('compare', [f'--output_dir={root}', '--seeds=0', *FLAGS], capsys)
  children.check(answer, 'seed_0/config.json is not a configuration: not JSON')
  assert children.files(config.parent) == {config: CONFIG['cut']}


# What a program reads of an earlier phase, and that phase.
READ = [
  ('clustering', 'phase1.json', 'phase1'),
  ('replay', 'phase1.json', 'phase1'),
  ('disturb', 'phase1.json', 'phase1'),
  ('phase2', 'phase1.json', 'phase1'),
  ('phase2', 'clusterings/kmeans/clusters.json', 'clustering'),
  ('phase3', 'phase2/clustering_kmeans.json', 'phase2'),
  ('report', 'phase3/kmeans.json', 'phase3'),
]


@pytest.mark.parametrize(('name', 'place', 'phase'), READ)
def test_a_damaged_file_of_an_earlier_phase_and_a_phase_that_has_not_run(name, place, phase, run, capsys):
  if name == 'clustering':
    shutil.rmtree(run.root / 'clusterings')  # A clustering that is there is not made again.
  for kind, content in JSON.items():
    damage(run.root / place, content)
    words = 'Is a directory' if kind == 'a folder' else f'{run.root / place} is damaged: '
    refused(name, run, run.root / place, words, capsys)
  (run.root / place).rmdir()
  first = f'--config_file={run.config} ' if phase == 'phase1' else ''
  words = f'has no {place} yet: run python -m phases.{phase} {first}--output_dir={run.root} first'
  refused(name, run, run.root, words, capsys)


def test_a_report_names_the_first_phase_that_has_not_run(run, capsys):
  later = [
    ('phase3/kmeans.json', 'phase3'),
    ('phase2/clustering_kmeans.json', 'phase2'),
    ('phase2/baseline.json', 'phase2'),
    ('clusterings/kmeans/clusters.json', 'clustering'),
    ('phase1.json', 'phase1'),
  ]
  for place, phase in later:
    (run.root / place).unlink()
    refused('report', run, run.root, f'has no {place} yet: run python -m phases.{phase} ', capsys)


VECTORS = 'store/signatures-1/vectors.npy'
IDS = 'store/signatures-1/clients.json'


@pytest.mark.parametrize(
  ('place', 'change', 'words'),
  [
    ('phase1.json', lambda b: b'{}', "is damaged: it has no 'stage'"),
    (VECTORS, lambda b: b[:-4] + b'\0\0\0\1', 'its checksum does not fit'),
    (VECTORS, lambda b: b.replace(b"'descr'", b"'dscr' "), 'is damaged: '),
    (VECTORS, lambda b: b.replace(b'(6, 3)', b'(3, 6)'), 'its checksum does not fit'),
    (VECTORS + '.json', lambda b: b'{}', 'its checksum does not fit'),
    (IDS, lambda b: b[:9], 'is damaged: '),
    (IDS, lambda b: b'{"a": 1}', 'is damaged: it is no list of client ids'),
    (IDS, lambda b: b'["c0", "c1"]', '2 client ids for 6 signatures'),
    (IDS, lambda b: b'["a", "a", "b", "c", "d", "e"]', 'client ids must be distinct'),
    (VECTORS, None, 'are not in the store any more'),
    (IDS, None, 'are not in the store any more'),
  ],
  ids=lambda value: value if isinstance(value, str) else '',
)
def test_damaged_signatures(place, change, words, run, capsys):
  path = run.root / place
  if change is None:
    path.unlink()
  else:
    path.write_bytes(change(path.read_bytes()))
  shutil.rmtree(run.root / 'clusterings')
  for name in ('clustering', 'replay'):
    refused(name, run, '', words, capsys)


def test_signatures_that_phase_1_did_not_save(run, capsys):
  saved = run.load_finished(run.phase1, phase_files.Phase1)
  files.save_json(run.phase1, dataclasses.replace(saved, signatures={}))
  words = '--signature=weights: this Phase 1 saved none; ask for a clustering of weights'
  refused('replay', run, '', words, capsys)
  run.clusters('kmeans').unlink()
  before = children.files(run.root)
  answer = children.call('clustering', [f'--output_dir={run.root}'], capsys)
  children.check(answer, words)
  # The clustering, which cannot be made here, is not of the run any more.
  assert run.load_config().clusterings == ()
  changed = {path for path, content in children.files(run.root).items() if before.get(path) != content}
  assert changed == {run.config}


def test_a_damaged_population_and_one_of_a_newer_version(run, capsys):
  arrays, whole = files.load_arrays(run.population), run.population.read_bytes()
  for damaged in (b'', whole.replace(b'made up', b'mode up')):
    run.population.write_bytes(damaged)
    refused('replay', run, run.population, 'is damaged: ', capsys)
  about = json.loads(arrays['about'].tobytes()) | {'format': 99}
  files.save_arrays(run.population, arrays | {'about': np.frombuffer(json.dumps(about).encode(), np.uint8)})
  refused('replay', run, run.population, 'has format 99, expected 1', capsys)


def test_the_folder_is_right_where_nothing_is_damaged(run, capsys):
  shutil.rmtree(run.root / 'clusterings')
  for name, *more in (('clustering',), ('replay', '--metrics=l2', '--num_thresholds=2')):
    answer = children.call(name, [f'--output_dir={run.root}', *more], capsys)
    assert (answer.code, answer.err) == (0, '')
