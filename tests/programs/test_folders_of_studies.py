"""Programs whose output folder is no run's write over what they wrote themselves, and refuse any other folder in one line."""

import dataclasses
import json

import numpy as np
import pytest

from tests.programs.children import check_text, files, run_here
from tff_cluster.base.errors import InputError
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.papers import catalogue
from tff_cluster.storage import files as files_lib
from tff_cluster.storage import output_folders
from tff_cluster.studies.comparison import own_folder
from tff_cluster.studies.comparison import runs as comparison
from tff_cluster.studies.league import own_folder as league_folder
from tff_cluster.studies.league import settings as league
from tff_cluster.studies.reproduction import page as reproduction_page

pytestmark = pytest.mark.usefixtures('folders_let_go')
KMEANS = ClusteringConfig('kmeans', num_clusters=2)
CONFIG = ExperimentConfig(DataConfig(num_clients=6, num_groups=2), clusterings=(KMEANS,))
FLAGS = ('--num_clients=6', '--num_groups=2', '--clustering=kmeans,num_clusters=2')
SETTINGS = ('one', 'two,partition=iid')


def trained(folder, config=CONFIG):
  """Makes a folder look as if Phase 1 and the clusterings of a run had ended there."""
  run = RunFolder(run_claim.claim_output_dir(folder, config).write())
  files_lib.save_json(run.phase1, {})
  for clustering in config.clusterings:
    files_lib.save_json(run.clusters(clustering.label), {})
  output_folders.release_all()


def write(folder, *names):
  for name in names:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text('of before')


def compared(root, seeds=(0, 1), config=CONFIG):
  """Makes a folder look as if a comparison had ended there."""
  for run in comparison.plan(config, seeds, root):
    trained(run.folder.root, run.config)
  (root / 'comparison.json').write_text(json.dumps({'digests': {}}))
  write(root, 'index.html', 'comparison.csv', 'figures/gains.svg')


def in_league(root):
  for setting in league.read(SETTINGS, CONFIG):
    compared(root / setting.name, config=setting.config)
  (root / 'league.json').write_text(json.dumps({'settings': ['one', 'two'], 'standings': {}}))
  write(root, 'index.html', 'league.csv', 'figures/league.svg')


def other_experiment(root):
  compared(root, config=dataclasses.replace(CONFIG, data=DataConfig(num_clients=5, num_groups=2)))


def of_user(root):
  write(root, 'index.html')


AS_SETTINGS = tuple(f'--setting={setting}' for setting in SETTINGS)


@pytest.mark.parametrize(
  ('make', 'more', 'words'),
  [
    (trained, (), 'holds a run'),
    (trained, AS_SETTINGS, 'holds a run'),
    (other_experiment, (), 'num_clients is 5 there and 6 here'),
    (in_league, (), 'has index.html, which would be written over'),
    (compared, AS_SETTINGS, 'has index.html, which would be written over'),
    (of_user, (), 'has index.html, which would be written over'),
    (of_user, AS_SETTINGS, 'has index.html, which would be written over'),
    (lambda root: write(root, 'figures/mine.svg'), (), 'has figures, which would be written over'),
    (lambda root: write(root / 'two', 'comparison.csv'), AS_SETTINGS, 'two has comparison.csv'),
    (in_league, AS_SETTINGS[:1], 'has league.json, which would be written over'),
  ],
)
def test_a_comparison_is_refused_where_it_would_write_over_what_is_not_its_own(
  make, more, words, tmp_path, capsys
):
  make(tmp_path / 'out')
  before = files(tmp_path)
  for flags in (FLAGS, (*FLAGS, '--dry_run')):
    code = run_here('phases.compare', *flags, '--seeds=2,3', f'--output_dir={tmp_path / "out"}', *more)
    check_text(code, capsys.readouterr().err, 2, words, 'choose another folder')
    assert files(tmp_path) == before


def test_the_same_experiment_goes_on_with_more_seeds_fewer_ones_more_clusterings_and_settings(tmp_path):
  compared(tmp_path / 'one')
  more = CONFIG.with_clusterings((ClusteringConfig('dynamic_distance'),))
  for seeds in ((0, 1, 2), (2,), (0,)):
    own_folder.check(tmp_path / 'one', CONFIG, seeds)
    own_folder.check(tmp_path / 'one', more, seeds)
  # The page would lose one; the runs of the seeds that are given keep it.
  fewer = dataclasses.replace(more, clusterings=more.clusterings[1:])
  own_folder.check(tmp_path / 'one', fewer, (0, 1))
  with pytest.raises(InputError, match='in seed_0 kmeans is there and not here'):
    own_folder.check(tmp_path / 'one', fewer, (1, 2))
  # It failed, and was left out.
  RunFolder(tmp_path / 'one' / 'seed_0').clusters('kmeans').unlink()
  own_folder.check(tmp_path / 'one', fewer, (1, 2))
  in_league(tmp_path / 'league')
  league_folder.check(tmp_path / 'league', league.read([*SETTINGS, 'three'], CONFIG), (2,))
  league_folder.check(tmp_path / 'new', league.read(SETTINGS, CONFIG), (2,))


@pytest.mark.parametrize(
  'content',
  [
    {'settings': 3},
    {'settings': [{'teams': 18}]},
    {'settings': [], 'standings': {}},
    {'settings': ['one'], 'teams': [1]},
  ],
)
def test_a_league_of_something_else_is_not_written_over(content, tmp_path):
  (tmp_path / 'league.json').write_text(json.dumps(content))
  with pytest.raises(InputError, match=r'has league\.json, which would be written over'):
    league_folder.check(tmp_path, league.read(SETTINGS, CONFIG), (2,))


def test_a_comparison_of_which_no_seed_is_left_is_nobodys(tmp_path):
  write(tmp_path, 'comparison.json')
  (tmp_path / 'comparison.json').write_text(json.dumps({'digests': {}}))
  with pytest.raises(InputError, match=r'has comparison\.json'):
    own_folder.check(tmp_path, CONFIG, (0,))


def test_a_run_is_refused_beside_a_comparison_whose_figures_it_would_write_over(tmp_path):
  compared(tmp_path)
  with pytest.raises(InputError, match=r'holds no run .* but comparison\.json'):
    run_claim.claim_output_dir(tmp_path, CONFIG)


def test_the_page_of_a_reproduction_takes_the_place_of_its_own_only(tmp_path):
  name = next(name for name, each in catalogue.PUBLISHED.items() if each.compute is not None)
  kind = 'figure' if catalogue.PUBLISHED[name].is_figure else 'table'
  flags = (f'--{kind}={name}', f'--output_dir={tmp_path}')
  write(tmp_path / name, 'index.html')
  assert run_here('phases.reproduce', *flags) == 2
  assert (tmp_path / name / 'index.html').read_text() == 'of before'
  (tmp_path / name / 'index.html').unlink()
  assert run_here('phases.reproduce', *flags) == 0
  reproduction_page.check_place(catalogue.PUBLISHED[name], tmp_path / name)
  with pytest.raises(InputError, match=r'has scorecard\.json'):
    reproduction_page.check_place(catalogue.PUBLISHED['fl_hc/table2'], tmp_path / name)


def vectors(path, shift=0.0):
  np.savez(path, signatures=np.array([[0.0], [1.0], [9.0], [10.0 + shift]]))
  return f'--signatures_file={path}'


def outputs(path, shift=0.0):
  drawn = np.random.default_rng(0).dirichlet([1, 1, 1], (2, 20)) + shift
  np.savez(path, outputs=drawn / drawn.sum(axis=-1, keepdims=True))
  return f'--outputs_file={path}'


@pytest.mark.parametrize(
  ('program', 'given', 'flags', 'names'),
  [
    ('clustering', vectors, ('--method=kmeans', '--num_clusters=2'), ['clusters.json']),
    ('experts', outputs, (), ['experts.json', 'predictions.npz']),
    ('replay', vectors, (), ['replay.csv', 'replay.json', 'replay.svg', 'replay.png']),
    ('partition', None, ('--num_clients=4', '--num_groups=2'), ['partition.csv', 'partition.svg', 'partition.png']),
  ],
)  # fmt: skip
def test_files_of_users_are_not_written_over_by_programs_without_a_run(
  program, given, flags, names, tmp_path, capsys
):
  folder = tmp_path / 'out'
  line = [f'phases.{program}', *flags, f'--output_dir={folder}']
  if given is not None:
    line.append(given(tmp_path / 'given.npz'))
  for name in names:
    write(folder, name)
    assert run_here(*line) == 2
    out, err = capsys.readouterr()
    check_text(2, err, 2, f'has {name}, which would be written over')
    assert out == '' and [path.read_text() for path in folder.iterdir()] == ['of before']
    (folder / name).unlink()
  for _ in range(2):
    assert run_here(*line) == 0, capsys.readouterr().err
  before = files(folder)
  assert sorted(path.name for path in before) == sorted(names)
  if names[0].endswith('.json'):
    # Of other vectors it is another answer, which nobody has asked to have replaced.
    given(tmp_path / 'given.npz', shift=5.0)
    assert run_here(*line) == 2 and files(folder) == before


def test_predictions_that_agree_as_much_as_those_of_before_are_not_written_over(tmp_path):
  def line(order):
    np.savez(tmp_path / 'given.npz', outputs=np.eye(2)[[order, order]])
    return run_here(
      'phases.experts', f'--outputs_file={tmp_path / "given.npz"}', f'--output_dir={tmp_path / "out"}'
    )

  assert line([0, 1, 0, 1]) == 0
  before = files(tmp_path / 'out')
  assert line([1, 0, 1, 0]) == 2 and files(tmp_path / 'out') == before
