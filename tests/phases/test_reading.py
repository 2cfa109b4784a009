"""Reading stands beside running: what comes after Phase 2 loads the models that Phase 2 names, and trains nothing."""

import shlex
import shutil

import pytest

from tests.phases.conftest import PHASE1, PHASE2, TINY, WITH_NEW
from tests.phases.whole_run import WholeRun, changed, opened
from tests.programs.children import beside_phases, no_report, run_here
from tff_cluster.base import records
from tff_cluster.experiment import phase_files, results
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import artifacts, files, saved_rounds

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def trained(with_new, tmp_path):
  """A run whose Phase 2 has finished, and nothing later."""
  folder = RunFolder(shutil.copytree(with_new.folder.root, tmp_path / 'run'))
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


def run(phase, folder, *flags):
  with no_report():
    return run_here(phase, *flags, f'--output_dir={folder.root}')


def test_phase_3_new_clients_and_report_train_nothing_and_read_no_vectors(with_new, trained, monkeypatch):
  from tff_cluster.federated import trainer, trajectory
  from tff_cluster.phases import assembly, client_signatures, cluster_training, new_clients, phase3

  running = ((trajectory, 'run'), (trainer.Trainer, 'round'), (cluster_training, 'train_clusters'))
  vectors = ((files, 'load_rows'), (client_signatures, 'start_weights'), (trainer.Trainer, 'mean_update'))
  forbid(monkeypatch, *running, (client_signatures, 'start_weights'))
  with opened(trained, WITH_NEW) as experiment:
    with monkeypatch.context() as reading:
      forbid(reading, *vectors, (trainer.Trainer, 'local_updates'))
      new_clients.run_baseline(experiment)
      for clustering in WITH_NEW.clusterings:
        phase3.run_phase3(experiment, clustering.label)
      (oracle,) = (c for c in WITH_NEW.clusterings if c.method == 'planted')
      new_clients.run_clustering(experiment, oracle)  # It asks for no update.
      assert (experiment.asked, experiment.trained) == (0, 0)
    for clustering in WITH_NEW.clusterings:
      # Newcomers train their own update, and nobody a round.
      new_clients.run_clustering(experiment, clustering)
    population = experiment.population
  forbid(monkeypatch, *vectors, (trainer.Trainer, 'local_updates'))
  assert assembly.run_assembly(trained, population).digest == with_new.results.digest


def kept_by(folder, label):
  """Returns the file with the last model of a clustering's first cluster, or that of FedAvg without clusters."""
  if label:
    saved = folder.load_finished(folder.phase2(label), phase_files.Phase2)
    named = saved.trajectories[saved.last[0]]
  else:
    named = folder.load_finished(folder.baseline, phase_files.Baseline).trajectory
  return folder.store / named.artifact / f'round_{named.rounds[-1]:05d}.npz'


@pytest.mark.parametrize(
  ('label', 'spoil'), [('kmeans', 'removed'), ('bipartition', 'damaged'), ('', 'removed')]
)
def test_a_model_that_is_missing_is_told_with_the_phase_that_makes_it_again(
  label, spoil, with_new, trained, capsys
):
  path = kept_by(trained, label)
  whole, before = path.read_bytes(), trained.config.read_bytes()
  if spoil == 'removed':
    path.unlink()
  else:
    path.write_bytes(whole[: len(whole) // 2])
  assert run('phases.phase3', trained) == 2
  line = beside_phases(capsys.readouterr().err)
  assert line.startswith(f'error: {path} is ') and line.count('\n') == 1
  assert trained.config.read_bytes() == before  # No clustering is lost.
  command = shlex.split(line.split(': run python -m ')[1].split(', which')[0])
  assert command[0] == 'phases.phase2'
  assert run_here(*command) == 0, capsys.readouterr().err
  assert path.read_bytes() == whole
  for phase in ('phases.phase3', 'phases.report'):
    assert run(phase, trained) == 0, capsys.readouterr().err
  assert results.read(trained.results).digest == with_new.results.digest


def test_where_clusters_start_from_the_global_model_phase_1_makes_it_again(tmp_path, capsys):
  from tff_cluster.phases import cluster_training

  whole = WholeRun(changed(TINY, training={'cluster_start': 'global_model'}), tmp_path / 'run')
  folder = whole.folder
  shutil.rmtree(folder.store / whole.phase1.trajectory.artifact)
  for path in (folder.root / 'phase2', folder.root / 'phase3'):
    shutil.rmtree(path)
  remedy = r'run python -m phases\.phase1 config_file=.* trains it again'
  with whole.opened() as experiment, pytest.raises(artifacts.MissingArtifact, match=remedy):
    cluster_training.train_clusters(experiment, 'kmeans')
  for phase in ('phase1', 'phase2', 'phase3', 'report'):
    flags = [f'--config_file={folder.config}'] if phase == 'phase1' else []
    assert run(f'phases.{phase}', folder, *flags) == 0, capsys.readouterr().err
  assert results.read(folder.results).digest == whole.results.digest


def test_files_name_every_model_that_results_stand_on(with_new):
  found, folder, last = with_new.results, with_new.folder, PHASE1 + PHASE2
  store = artifacts.Store(folder.store)
  baseline = folder.load_finished(folder.baseline, phase_files.Baseline).trajectory
  phase1 = with_new.phase1.trajectory
  for saved, rounds in ((phase1, (PHASE1 - 1, PHASE1)), (baseline, (PHASE1 - 1, PHASE1, last))):
    assert (saved.start_round, tuple(saved.rounds)) == (0, rounds)
  assert found.artifacts.phase1 == phase1
  of_clusterings = [t for each in found.artifacts.clusterings.values() for t in each]
  for named in (phase1, baseline, found.artifacts.baseline, *of_clusterings):
    assert saved_rounds.are_whole(store, named)
  for clustering in found.clusterings:
    saved = folder.load_finished(folder.phase2(clustering.label), phase_files.Phase2)
    ends = [saved.trajectories[position].rounds[-1] for position in saved.last]
    assert ends == [last] * clustering.num_clusters
  (split,) = with_new.clustering('bipartition').splits
  root_segment = folder.load_finished(folder.phase2('bipartition'), phase_files.Phase2).trajectories[0]
  assert root_segment.rounds == (split.round - 1, split.round)


def test_a_file_that_names_no_trajectory_is_damaged():
  right = saved_rounds.Checkpoints(f'fedavg-{"0a" * 12}', 0, (1, 2))
  assert saved_rounds.Checkpoints.from_json(right.to_json()) == right
  for wrong, words in (
    ({}, "has no 'artifact'"),
    ([], 'holds no JSON object'),
    (right.to_json() | {'artifact': '../../etc'}, 'names no trajectory, in artifact'),
    (right.to_json() | {'rounds': [True]}, r'holds bool, expected int, in rounds\.0'),
  ):
    with pytest.raises(records.Mismatch, match=words):
      saved_rounds.Checkpoints.from_json(wrong)
