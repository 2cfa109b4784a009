"""Reading stands beside running: what comes after Phase 2 loads the models that Phase 2 names, and trains nothing."""

import dataclasses
import shlex
import shutil

import pytest

from tests.phases.test_new_clients import CLUSTERINGS, CONFIG, run
from tests.phases.whole_run import opened
from tests.programs.children import beside_phases, run_here
from tff_cluster.base import records
from tff_cluster.experiment import phase_files, results
from tff_cluster.experiment.config import ClusteringConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import artifacts, files, saved_rounds

pytestmark = pytest.mark.tensorflow

SPLITS = ClusteringConfig('bipartition', stationary_norm=9.0, stopping_norm=0.001, rounds_before_split=1)
CONFIG = dataclasses.replace(
  CONFIG,
  training=dataclasses.replace(CONFIG.training, phase1_rounds=2, phase2_rounds=3),
  # The second one is overlapping, costs more than FedAvg and is measured at equal cost too.
  clusterings=(CLUSTERINGS[0], CLUSTERINGS[2], SPLITS, CLUSTERINGS[4]),
)
FROM_GLOBAL = dataclasses.replace(
  CONFIG, training=dataclasses.replace(CONFIG.training, cluster_start='global_model')
)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  path = tmp_path_factory.mktemp('reading') / 'run'
  return run(CONFIG, path).results, path


@pytest.fixture
def trained(finished, tmp_path):
  """A run whose Phase 2 has finished, and nothing later."""
  folder = RunFolder(shutil.copytree(finished[1], tmp_path / 'run'))
  for later in ('phase3', 'new_clients'):
    shutil.rmtree(folder.root / later)
  for page in (folder.results, folder.arrays):
    page.unlink()
  return folder


def forbid(patch, *functions):
  def fails(*arguments, **named):
    raise AssertionError('this trains, or reads vectors')

  for owner, name in functions:
    patch.setattr(owner, name, fails)


def test_phase_3_new_clients_and_report_train_nothing_and_read_no_vectors(finished, trained, monkeypatch):
  from tff_cluster.federated import trainer, trajectory
  from tff_cluster.phases import assembly, client_signatures, cluster_training, new_clients, phase3

  running = ((trajectory, 'run'), (trainer.Trainer, 'round'), (cluster_training, 'train_clusters'))
  vectors = ((files, 'load_rows'), (client_signatures, 'start_weights'), (trainer.Trainer, 'mean_update'))
  forbid(monkeypatch, *running, (client_signatures, 'start_weights'))
  with opened(trained, CONFIG) as experiment:
    with monkeypatch.context() as reading:
      forbid(reading, *vectors, (trainer.Trainer, 'local_updates'))
      new_clients.run_baseline(experiment)
      for clustering in CONFIG.clusterings:
        phase3.run_phase3(experiment, clustering.label)
      new_clients.run_clustering(experiment, CONFIG.clusterings[-1])  # The oracle asks for no update.
      assert (experiment.asked, experiment.trained) == (0, 0)
    for clustering in CONFIG.clusterings:
      new_clients.run_clustering(
        experiment, clustering
      )  # Newcomers train their own update, and nobody a round.
    population = experiment.population
  forbid(monkeypatch, *vectors, (trainer.Trainer, 'local_updates'))
  assert assembly.run_assembly(trained, population).digest == finished[0].digest


def kept_by(folder, label):
  """Returns the file with the last model of a clustering's first cluster, and that of FedAvg without clusters."""
  if label:
    saved = folder.load_finished(folder.phase2(label), phase_files.Phase2)
    named = saved.trajectories[saved.last[0]]
  else:
    named = folder.load_finished(folder.baseline, phase_files.Baseline).trajectory
  return folder.store / named.artifact / f'round_{named.rounds[-1]:05d}.npz'


@pytest.mark.parametrize('spoil', ['removed', 'damaged'])
@pytest.mark.parametrize('label', ['kmeans', 'bipartition', ''])
def test_a_model_that_is_missing_is_told_with_the_phase_that_makes_it_again(
  label, spoil, finished, trained, capsys
):
  path = kept_by(trained, label)
  whole = path.read_bytes()
  if spoil == 'removed':
    path.unlink()
  else:
    path.write_bytes(whole[: len(whole) // 2])
  before = trained.config.read_bytes()
  assert run_here('phases.phase3', f'--output_dir={trained.root}') == 2
  line = beside_phases(capsys.readouterr().err)
  assert line.startswith(f'error: {path} is ') and line.count('\n') == 1
  assert trained.config.read_bytes() == before  # No clustering is lost.
  command = shlex.split(line.split(': run python -m ')[1].split(', which')[0])
  assert command[0] == 'phases.phase2'
  assert run_here(*command) == 0, capsys.readouterr().err
  assert path.read_bytes() == whole
  for phase in ('phases.phase3', 'phases.report'):
    assert run_here(phase, f'--output_dir={trained.root}') == 0, capsys.readouterr().err
  assert results.read(trained.results).digest == finished[0].digest


def test_where_clusters_start_from_the_global_model_phase_1_makes_it_again(tmp_path, capsys):
  from tff_cluster.phases import cluster_training

  config = dataclasses.replace(FROM_GLOBAL, clusterings=CLUSTERINGS[:1])
  folder = RunFolder(tmp_path / 'run')
  digest = run(config, folder.root).results.digest
  saved = folder.load_finished(folder.phase1, phase_files.Phase1).trajectory
  shutil.rmtree(folder.store / saved.artifact)
  for path in (folder.root / 'phase2', folder.root / 'phase3', folder.root / 'new_clients'):
    shutil.rmtree(path)
  remedy = r'run python -m phases\.phase1 config_file=.* trains it again'
  with opened(folder, config) as experiment, pytest.raises(artifacts.MissingArtifact, match=remedy):
    cluster_training.train_clusters(experiment, 'kmeans')
  for phase in ('phase1', 'phase2', 'phase3', 'report'):
    flags = [f'--config_file={folder.config}'] if phase == 'phase1' else []
    assert run_here(f'phases.{phase}', *flags, f'--output_dir={folder.root}') == 0, capsys.readouterr().err
  assert results.read(folder.results).digest == digest


def test_files_name_every_model_that_results_stand_on(finished):
  found, root = finished
  folder = RunFolder(root)
  last = CONFIG.training.phase1_rounds + CONFIG.training.phase2_rounds
  store = artifacts.Store(folder.store)
  for path, kind, rounds in (
    (folder.phase1, phase_files.Phase1, [1, 2]),
    (folder.baseline, phase_files.Baseline, [1, 2, last]),
  ):
    saved = folder.load_finished(path, kind).trajectory
    assert (saved.start_round, list(saved.rounds)) == (0, rounds) and saved_rounds.are_whole(store, saved)
  assert found.artifacts.phase1 == folder.load_finished(folder.phase1, phase_files.Phase1).trajectory
  named = [
    found.artifacts.baseline,
    *(t for each in found.artifacts.clusterings.values() for t in each),
  ]
  assert all(saved_rounds.are_whole(store, each) for each in named)
  for clustering in found.clusterings:
    saved = folder.load_finished(folder.phase2(clustering.label), phase_files.Phase2)
    ends = [saved.trajectories[position].rounds[-1] for position in saved.last]
    assert ends == [last] * clustering.num_clusters
  split = next(s for s in found.clusterings[2].splits if s.verdict == 'split')
  root_segment = folder.load_finished(folder.phase2('bipartition'), phase_files.Phase2).trajectories[0]
  assert root_segment.rounds == (split.round - 1, split.round)


@pytest.mark.parametrize(
  'named',
  [
    {},
    [],
    {'artifact': '../../etc', 'start_round': 0, 'rounds': [1]},
    {'artifact': f'fedavg-{"0a" * 12}', 'start_round': 0, 'rounds': [True]},
  ],
)
def test_a_file_that_names_no_trajectory_is_damaged(named):
  with pytest.raises(records.Mismatch):
    saved_rounds.Checkpoints.from_json(named)
  right = saved_rounds.Checkpoints(f'fedavg-{"0a" * 12}', 0, (1, 2))
  assert saved_rounds.Checkpoints.from_json(right.to_json()) == right
