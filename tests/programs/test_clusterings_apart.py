"""One clustering that fails keeps nothing from the others, and a folder takes what is given instead of it."""

import contextlib
import re

import pytest

from tests.programs.children import beside_phases, check_text, run_here
from tff_cluster.base.errors import InputError
from tff_cluster.clustering.methods.spectral import Spectral
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import cluster_training, failures
from tff_cluster.storage import files

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures('without_report')]

SMALL = (
  '--dataset=digits', '--partition=label_swapped', '--num_clients=6', '--num_groups=2', '--model=logistic',
  '--phase1_rounds=2', '--phase2_rounds=2',
)  # fmt: skip
KMEANS = '--clustering=kmeans,num_clusters=2'
BAD = '--clustering=kmeans,num_clusters=3,name=bad'
# Six clients of whom some pairs are linked: more than one clique.
EXPLODES = '--clustering=dynamic_distance,distance_threshold=quantile:0.4,max_clusters=1'


def run_all(folder, *flags):
  return run_here('phases.run_all', f'--output_dir={folder}', *SMALL, *flags)


def check_end(code, err, *words):
  """Wrong input is one line, behind those of the phases that ended before."""
  check_text(code, beside_phases(err), 2, *words)


def labels(folder):
  return [clustering.label for clustering in RunFolder(folder).load_config().clusterings]


@pytest.fixture
def training_fails(monkeypatch):
  """Returns a context in which the training of clustering 'bad' fails in the folders for which a function says so."""

  @contextlib.contextmanager
  def failing(where=lambda folder: True):
    real = cluster_training.train_clusters

    def fails(experiment, label):
      if label == 'bad' and where(experiment.folder.root):
        raise InputError('planted')
      return real(experiment, label)

    with monkeypatch.context() as patch:
      patch.setattr(cluster_training, 'train_clusters', fails)
      yield

  return failing


def test_cliques_that_explode_leave_the_others_a_run_and_the_named_way_out_works(tmp_path, capsys):
  assert run_all(tmp_path / 'plain', KMEANS) == 0, capsys.readouterr().err
  plain = files.load_json(tmp_path / 'plain' / 'results.json')
  capsys.readouterr()
  run = tmp_path / 'run'
  code = run_all(run, EXPLODES, KMEANS)
  captured = capsys.readouterr()
  check_end(code, captured.err, 'dynamic_distance: distance threshold', 'give it again', 'done: kmeans')
  # What was made is a run like any other.
  assert (
    files.load_json(run / 'results.json')['clusterings'][0]['clusters'] == plain['clusterings'][0]['clusters']
  )
  assert files.load_json(run / 'results.json')['digest'] == plain['digest']
  assert labels(run) == ['kmeans'] and not (run / 'clusterings' / 'dynamic_distance').exists()
  assert run_all(run, KMEANS) == 0, capsys.readouterr().err  # The command without what failed.
  assert ' 0 trained' in capsys.readouterr().out
  # "give a smaller distance_threshold": below it nobody is linked to anybody, or hardly.
  assert 'give a smaller distance_threshold or a higher max_clusters' in captured.err
  threshold = float(re.search(r'distance threshold ([0-9.e+-]+):', captured.err)[1])
  smaller = f'--clustering=dynamic_distance,distance_threshold={threshold / 1000},max_clusters=6'
  assert run_all(run, smaller, KMEANS) == 0, capsys.readouterr().err
  assert labels(run) == ['kmeans', 'dynamic_distance']


def test_a_run_of_which_every_clustering_fails_takes_another(
  tmp_path, capsys, monkeypatch, caplog, training_fails
):
  def fails(*arguments):
    raise ZeroDivisionError('planted')

  run, spectral = tmp_path / 'run', '--clustering=spectral,num_clusters=2'
  with monkeypatch.context() as patch:
    patch.setattr(Spectral, 'cluster', fails)
    code = run_all(run, EXPLODES, spectral)
  check_end(
    code,
    capsys.readouterr().err,
    'dynamic_distance',
    'spectral: ZeroDivisionError: planted',
    'the run has no other clustering',
  )
  # A fault of a method is not lost.
  assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError]
  assert labels(run) == []
  # One fails while it is trained.
  with training_fails():
    check_end(
      run_all(run, BAD, KMEANS, spectral), capsys.readouterr().err, 'bad: planted', 'done: kmeans, spectral'
    )
  assert labels(run) == ['kmeans', 'spectral']
  # Another one of the name is not taken for the one that failed.
  another = ('--method=kmeans', '--num_clusters=4', '--name=bad')
  assert run_here('phases.clustering', f'--output_dir={run}', *another) == 0
  assert len(files.load_json(RunFolder(run).clusters('bad'))['clusters']) == 4


def test_a_clustering_that_fails_in_one_fold_is_in_no_fold(tmp_path, capsys, training_fails):
  run, flags = tmp_path / 'run', ('--num_folds=2', BAD, KMEANS)
  with training_fails(lambda folder: folder.name == '01'):
    check_end(run_all(run, *flags), capsys.readouterr().err, 'bad: planted', 'done: kmeans')
  folders = [run, run / 'folds' / '00', run / 'folds' / '01']
  assert [labels(folder) for folder in folders] == [['kmeans']] * 3
  results = [files.load_json(folder / 'results.json') for folder in folders]
  assert [[c['label'] for c in found['clusterings']] for found in results] == [['kmeans']] * 3
  assert 'unclustered/baseline' in results[0]['cross_validation']['evaluations']
  assert run_all(run, *flags) == 0, capsys.readouterr().err
  assert [labels(folder) for folder in folders] == [['kmeans', 'bad']] * 3


def test_the_program_that_clusters_makes_what_it_can_and_cfl_is_added_to_a_run(tmp_path, capsys):
  folder = f'--output_dir={tmp_path / "run"}'
  run = RunFolder(tmp_path / 'run')
  flags = ('--partition=label_permuted', '--rows_per_client=80', '--phase1_rounds=6', '--phase2_rounds=8')
  # IFCA stands before the clusters that it starts from, which are made without training.
  ifca = '--clustering=ifca,start=clustering,start_clustering=kmeans'
  assert run_here('phases.phase1', folder, *SMALL, *flags, EXPLODES, ifca, KMEANS) == 0
  capsys.readouterr()
  code = run_here('phases.clustering', folder)
  check_end(code, capsys.readouterr().err, 'dynamic_distance: distance threshold', 'done: ifca, kmeans')
  assert labels(run.root) == ['ifca', 'kmeans'] and run.clusters('ifca').exists()
  cfl = ('--method=bipartition', '--stationary_norm=0.3', '--stopping_norm=0.45', '--rounds_before_split=4')
  for added in (('--method=dynamic_distance', '--distance_threshold=quantile:0.4'), cfl):
    assert run_here('phases.clustering', folder, *added) == 0, capsys.readouterr().err
  assert labels(run.root) == ['ifca', 'kmeans', 'dynamic_distance', 'bipartition']
  for program in ('phase2', 'phase3', 'report'):
    assert run_here(f'phases.{program}', folder) == 0, capsys.readouterr().err
  _, kmeans, _, recursive = files.load_json(run.root / 'results.json')['clusterings']
  assert kmeans['splits'] is None
  assert (recursive['recovery']['group']['ari'], recursive['splits'][0]['verdict']) == (1.0, 'split')


def test_a_cause_that_is_a_sentence_ends_with_one_full_stop():
  told = str(failures.ClusteringsFailed({'a': InputError('it gave up.')}, ()))
  assert told.startswith('clustering a: it gave up. What failed') and told.endswith('no other clustering')
