"""Results are kept from runs; on made-up runs."""

import dataclasses
import json
import re
import shutil
import tarfile

import numpy as np
import pytest

from phases import keep as keep_program
from tests.made_up import comparison_runs, fedex_rows, finished_run, in_json
from tests.programs.children import run_here
from tff_cluster.base.environment import ENGINE
from tff_cluster.base.errors import InputError
from tff_cluster.cli import program
from tff_cluster.experiment import results as experiment_results
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.papers import catalogue
from tff_cluster.scorecard import summary
from tff_cluster.scorecard.identical_clusterings import JOINT
from tff_cluster.scorecard.rows import BEST_EXPERT
from tff_cluster.storage import files as files_lib
from tff_cluster.studies.comparison import page as comparison_page
from tff_cluster.studies.kept import coverage, keep, results
from tff_cluster.studies.league import page as league_page
from tff_cluster.studies.reproduction import runs as runs_lib

TABLE = catalogue.PUBLISHED['fl_hc/table2']


def summary_line(label, client_rounds):
  return {'label': label, 'kind': 'disjoint', 'mean_client_accuracy': 0.5, 'client_rounds': client_rounds}


def had_run(root, row, seed, accuracy, fedavg, table=TABLE, experts=None):
  """Saves results of a row of a small table as if it had been run."""
  (job,) = runs_lib.plan(table, table.small, (seed,), root, None, row)
  rounds = list(range(job.config.training.phase1_rounds + 1, 16))
  shares = [0.0] * len(rounds)
  history = {'rounds': rounds, 'test_accuracy': [*shares[1:], accuracy], 'share_at_target': shares}
  clustering = {
    'label': 'hierarchical',
    'history': history,
    'recovery': {},
    'evaluations': {'own': {'clients': {'mean_client_accuracy': accuracy + 0.01}}},
    'num_clusters': 4,
    'threshold': 3.0,
    'splits': [{'round': number, 'max_update_norm': norm} for number, norm in ((5, 0.61), (6, 0.9))],
  }
  clustering['label'] = job.config.clusterings[0].label
  if experts is not None:
    clustering['experts'] = experts.to_json()
  last = {'global': {'accuracy': fedavg, 'loss': 1.0}}
  baseline = {'history': history | {'test_accuracy': [*shares[1:], fedavg]}, 'evaluation': last}
  environment = {
    'engine': ENGINE,
    'commit': 'abc',
    'machine': 'abacus',
    'cores': 2,
    'started': f'2026-01-0{seed + 1}T00:00:00',
  }
  value = {
    'config': job.config.to_json(), 'baseline': baseline, 'clusterings': [clustering], 'digest': f'digest {seed}',
    'environment': environment, 'timing': [{'name': 'phase 1', 'seconds': 90.0}],
    'summary': [summary_line('FedAvg', 10), summary_line(f'twin = {clustering["label"]}', 20 + seed)],
  }  # fmt: skip
  job.folder.root.mkdir(parents=True, exist_ok=True)
  files_lib.save_json(job.folder.results, in_json.typed(value).to_json())


def test_of_experts_is_kept_what_every_rule_makes_of_them(tmp_path):
  table = catalogue.PUBLISHED['fedex/table1']
  row = table.rows[0].name
  for seed, fedex, alone, oracle in ((0, 0.5, (0.3, 0.6, 0.4), 0.9), (1, 0.7, (0.5, 0.2, 0.1), 1.0)):
    experts = fedex_rows.experts(fedex, alone, (1.0, 1.0, 1.0), oracle)
    had_run(tmp_path, row, seed, 0.9, 0.8 + 0.1 * seed, table, experts)
  (tmp_path / 'fedex/table1/small/scorecard.csv').write_text('table,row,verdict\n')
  made = keep.of_folder(tmp_path / 'fedex/table1/small')
  results.write(tmp_path / 'kept/made', made.provenance, made.texts, [])
  (line,) = results.read_all(tmp_path / 'kept')['made'].lines('experts')
  assert (line['row'], line['seeds']) == (row, '2')
  told = {
    'FedAvg without clusters': 85.0,
    BEST_EXPERT: 55.0,
    'mean of the outputs': 90.0,
    'oracle: any expert is right': 95.0,
  }
  assert {name: float(line[name]) for name in told} == told
  assert float(line['FedEx’s online layer (Algorithm 2)']) == pytest.approx(60.0)


def test_a_reproduction_is_kept_with_a_line_a_row_and_seed(tmp_path, monkeypatch):
  for seed, accuracy in ((0, 0.9), (1, 0.92)):
    had_run(tmp_path, 'cf 0.2, n 10', seed, accuracy, 0.7)
  folder = tmp_path / 'fl_hc/table2/small'
  (folder / 'scorecard.csv').write_text('table,row,verdict\n')
  (folder / 'damaged').mkdir()
  (folder / 'damaged/results.json').write_text('{')  # Another row, cut off: it is passed over.
  made = keep.of_folder(folder)
  results.write(tmp_path / 'kept/made', made.provenance, made.texts, [])
  (found,) = results.read_all(tmp_path / 'kept').values()
  assert found.numbers('accuracy end', of='runs') == [90.0, 92.0]
  assert found.numbers('own models end', of='runs') == [91.0, 93.0]
  # Of both seeds, whatever the last command was asked for.
  (ours,) = found.lines('scorecard', row='cf 0.2, n 10', column='accuracy_end')
  assert (ours['seeds'], float(ours['ours'])) == ('2', 91.0)
  assert found.numbers('FedAvg end', of='runs', seed='1') == [70.0]
  assert found.numbers('client-rounds', of='runs') == [20, 21]
  assert found.numbers('longest update at the first test', of='runs') == [0.61, 0.61]
  assert [line['digest'] for line in found.lines('runs')] == ['digest 0', 'digest 1']
  known = found.provenance
  assert known.published == {'fl_hc/table2': ['cf 0.2, n 10']} and (known.seeds, known.data_seeds) == (
    [0, 1],
    [0, 1],
  )
  assert (known.engine, known.commit, known.date, known.minutes) == (ENGINE, 'abc', '2026-01-01', 3.0)
  assert known.scaled_down == TABLE.small.words and len(known.configurations) == 1
  assert 'data_dir' not in known.configurations[0]['data']
  listed = list(coverage.lines(coverage.of_folder(tmp_path, TABLE), with_rows=True))
  assert '  cf 0.2, n 10: seeds 0, 1' in listed and '  cf 0.1, n 1: not run' in listed
  assert any('scale small: 1 of 16 rows; seeds 0, 1; missing 15 rows' in line for line in listed)
  everything = list(coverage.lines(coverage.of_folder(tmp_path), with_rows=False))
  assert sum('scale small' in line for line in everything) == 1
  assert 'cfl/figure1: a toy problem of seconds, not computed' in everything
  monkeypatch.setattr(coverage, 'ENGINE', ENGINE + 1)
  (line,) = (line for line in coverage.lines(coverage.of_folder(tmp_path), False) if 'scale small' in line)
  assert '1 of 16 rows (1 by an older engine)' in line


def test_a_row_that_was_run_in_the_company_of_others_too_counts_once_a_seed(tmp_path):
  had_run(tmp_path, 'cf 0.2, n 10', 0, 0.9, 0.7)
  folder = tmp_path / 'fl_hc/table2/small'
  (once,) = folder.iterdir()
  for others in ('a', 'b'):
    shutil.copytree(once, folder / f'{once.name}_{others}')
  (folder / 'scorecard.csv').write_text('table,row,verdict\n')
  made = keep.of_folder(folder)
  results.write(tmp_path / 'kept/made', made.provenance, made.texts, [])
  lines = results.read_all(tmp_path / 'kept')['made'].lines('scorecard', row='cf 0.2, n 10')
  assert lines and {line['seeds'] for line in lines} == {'1'}
  assert {line['verdict'].partition(' (')[0] for line in lines} == {'not comparable'}
  # Other numbers for the same row and seed: nobody can tell which of them counts.
  value = experiment_results.read(once / 'results.json')
  history = dataclasses.replace(
    value.baseline.history, test_accuracy=[0.1] * len(value.baseline.history.rounds)
  )
  other = dataclasses.replace(
    value, digest='another', baseline=dataclasses.replace(value.baseline, history=history)
  )
  files_lib.save_json(folder / f'{once.name}_b/results.json', other.to_json())
  with pytest.raises(
    InputError, match=r"row 'cf 0\.2, n 10', seed 0: results digest 0 and another differ"
  ) as told:
    keep.of_folder(folder)
  assert '\n' not in str(told.value)


def test_rows_with_other_seeds_are_experiments_of_a_reproduction_too_and_have_commands_of_their_own(tmp_path):
  for row, seed in (('cf 0.2, n 10', 1), ('cf 0.2, n 10', 2), ('cf 0.2, n 1', 0)):
    had_run(tmp_path, row, seed, 0.9, 0.7)
  folder = tmp_path / 'fl_hc/table2/small'
  (folder / 'scorecard.csv').write_text('table,row,verdict\n')
  found = keep.of_folder(folder).provenance.configurations
  assert [(each['training']['phase1_rounds'], each['training']['seed']) for each in found] == [
    (1, 0),
    (10, 1),
  ]
  code, kept_here = kept_by_program(folder, 'mine')
  rows = [re.findall(r"--rows='(.*)' --seeds=(\S+)", command) for command in kept_here.provenance.commands]
  assert code == 0 and sorted(rows) == [[('cf 0.2, n 1', '0')], [('cf 0.2, n 10', '1,2')]]


def test_a_comparison_is_kept_with_the_numbers_of_its_json(tmp_path):
  accuracies = {
    'FedAvg without clusters': comparison_runs.constant(0.5),
    'over': comparison_runs.constant(0.75),
    'kmeans': comparison_runs.constant(0.5),
  }
  runs = comparison_runs.make(accuracies)
  comparison_page.write(comparison_runs.typed(runs), {'command': 'python -m phases.compare'}, tmp_path)
  for seed, value in runs:
    finished_run.save(tmp_path / f'seed_{seed}', value, {})
  made = keep.of_folder(tmp_path)
  assert made.provenance.commands == ['python -m phases.compare'] and made.provenance.seeds == [0, 1, 2]
  results.write(tmp_path / 'kept/made', made.provenance, made.texts, [])
  (found,) = results.read_all(tmp_path / 'kept').values()
  told = found.lines('gains', contender='over', budget='equal_rounds')[0]
  assert (told['accuracy'], told['difference'], told['harmed']) == ('75.0', '25.0', '0.0')
  document = json.loads((tmp_path / 'comparison.json').read_text())
  assert found.numbers('accuracy', of='comparison', budget='equal_rounds') == [
    line['accuracy'] for line in document['lines'] if line['budget'] == 'equal_rounds'
  ]
  (told,) = found.lines('overlap', budget='equal_rounds')
  # Three seeds on one side: 2 / 2^3.
  assert (told['difference'], told['worst tenth'], told['p']) == ('25.0', '25.0', '0.25')
  assert [line['alarm'] for line in found.lines('alarms')] == document['alarms'] != []


def test_seeds_that_the_tables_of_a_comparison_do_not_hold_are_not_kept(tmp_path):
  runs = comparison_runs.make({'FedAvg without clusters': comparison_runs.constant(0.5, 4)})
  for seed, value in runs:
    finished_run.save(tmp_path / f'seed_{seed}', value, {})
  # After seeds 0 to 3 it was called again with two of them.
  called = [runs[1], runs[3]]
  comparison_page.write(comparison_runs.typed(called), {'command': 'python -m phases.compare'}, tmp_path)
  code, found = kept_by_program(tmp_path, 'mine')
  assert code == 0 and found.provenance.seeds == [1, 3]
  assert list(found.provenance.digests) == [f'{tmp_path.name} seed_1', f'{tmp_path.name} seed_3']
  seconds = sum(phase['seconds'] for _, value in called for phase in value['timing'])
  assert found.provenance.minutes == pytest.approx(seconds / 60, abs=0.05)
  with tarfile.open(found.folder / results.RUNS) as archive:
    assert {name.split('/')[0] for name in archive.getnames()} == {'seed_1', 'seed_3'}
  (tmp_path / 'seed_3' / 'results.json').unlink()
  with pytest.raises(
    InputError, match=r'seed_3 is in the tables of .* and holds no finished run; compare again'
  ):
    keep.of_folder(tmp_path)


def test_a_league_is_kept_with_its_settings(tmp_path):
  accuracies = {
    'FedAvg without clusters': comparison_runs.constant(0.5),
    'over': comparison_runs.constant(0.75),
  }
  runs = comparison_runs.make(accuracies)
  league_page.write(
    {name: comparison_runs.typed(runs) for name in ('one', 'two')},
    {'command': 'python -m phases.compare'},
    tmp_path,
  )
  for name in ('one', 'two'):
    comparison_page.write(comparison_runs.typed(runs), {'command': 'x'}, tmp_path / name)
    for seed, value in runs:
      finished_run.save(tmp_path / name / f'seed_{seed}', value, {})
  made = keep.of_folder(tmp_path)
  assert made.provenance.commands == ['python -m phases.compare'] and len(made.provenance.digests) == 6
  results.write(tmp_path / 'kept/made', made.provenance, made.texts, [])
  (found,) = results.read_all(tmp_path / 'kept').values()
  for setting in ('one', 'two'):
    told = found.lines('gains', setting=setting, contender='over', budget='equal_rounds')
    assert [line['difference'] for line in told] == ['25.0']
  assert {line['setting'] for line in found.lines('league')} == {'one', 'two'}
  (told,) = found.lines('standings', method='over', budget='equal_rounds')
  assert [told[name] for name in ('mean rank', 'above FedAvg', 'below FedAvg', 'unclear')] == [
    '1.0',
    '2',
    '0',
    '0',
  ]
  # A setting of it, compared again by itself after a run was given another clustering, is not what stands in the standings.
  others = comparison_runs.make(accuracies | {'late': comparison_runs.constant(0.6)})
  for seed, value in others:
    finished_run.save(tmp_path / 'two' / f'seed_{seed}', value, {})
  with pytest.raises(InputError, match='seed_0 has other results than the tables of'):
    keep.of_folder(tmp_path)
  comparison_page.write(comparison_runs.typed(others), {'command': 'x'}, tmp_path / 'two')
  with pytest.raises(InputError, match='two was compared anew since the league was; run the league again'):
    keep.of_folder(tmp_path)
  # Or it has a table of other seeds.
  comparison_page.write(comparison_runs.typed(runs[:2]), {'command': 'x'}, tmp_path / 'two')
  with pytest.raises(InputError, match='two was compared under the seeds 0, 1, and the league under 0, 1, 2'):
    keep.of_folder(tmp_path)


def kept_by_program(folder, name, *flags, place=None):
  """Keeps a folder by the program, below it if no other place is given; returns exit code and what it kept."""
  place = place or folder / 'kept'
  given = ['keep', f'--output_dir={folder}', f'--name={name}', f'--kept_dir={place}', *flags]
  code = program.execute(keep_program.main, keep_program.define_flags, given)
  return code, results.read_all(place)[name] if code == 0 else None


def test_the_program_keeps_a_run_with_its_configuration_and_the_command_that_repeats_it(tmp_path):
  value = finished_run.write_run(tmp_path)
  code, found = kept_by_program(tmp_path, 'mine', '--machine=abacus')
  assert (
    code == 0 and found.provenance.machine == 'abacus' and found.provenance.digests == {'': value['digest']}
  )
  assert found.provenance.commands == [
    f'python -m phases.run_all --config_file={tmp_path}/kept/mine/config.json --output_dir=runs/mine'
  ]
  read = ExperimentConfig.from_json(json.loads((found.folder / 'config.json').read_text()))
  assert read == ExperimentConfig.from_json(value['config'])
  assert found.numbers('accuracy') == [
    pytest.approx(100 * line['mean_client_accuracy'], abs=1e-3) for line in value['summary']
  ]
  with tarfile.open(found.folder / results.RUNS) as archive:
    assert archive.getnames() == ['config.json']


def test_a_run_is_kept_with_what_each_of_its_models_is_worth(tmp_path):
  value = finished_run.write_run(tmp_path)
  baseline, clustering = value['baseline']['evaluation'], value['clusterings'][0]
  own, average = clustering['evaluations']['own'], clustering['evaluations']['average']
  baseline['client_accuracy'] = [0.5] * len(baseline['client_accuracy'])
  own['client_accuracy'] = [0.25, 0.75, 0.5] + [1.0] * (len(own['client_accuracy']) - 3)
  average['global'] = {**average['global'], 'accuracy': 0.125}
  value['summary'] = [summary_line('FedAvg', 10), summary_line(f'twin = {clustering["label"]}', 20)]
  finished_run.save(tmp_path, value, {})
  _, found = kept_by_program(tmp_path, 'mine')
  (told,) = found.lines('models', contender=clustering['label'], model='own')
  more = len(own['client_accuracy']) - 2
  # Of 20 clients the worst tenth are two, those with 25% and with 50%.
  numbers = told['worst tenth'], told['better'], told['worse'], told['global test']
  assert numbers == ('37.5', str(more), '1', '')
  gains = 100 * (np.array(own['client_accuracy']) - 0.5)
  drawn = gains[np.random.default_rng(0).integers(len(gains), size=(20_000, len(gains)))].mean(axis=1)
  expected = [gains.mean(), *np.quantile(drawn, [0.025, 0.975])]
  assert [float(told[name]) for name in ('difference', 'low', 'high')] == pytest.approx(expected, abs=1.0)
  assert found.number('global test', of='models', contender=clustering['label'], model='average') == 12.5
  (fedavg,) = found.lines('models', contender='FedAvg without clusters')
  assert (fedavg['accuracy'], fedavg['better'], fedavg['worse']) == ('50.0', '0', '0')
  assert (fedavg['difference'], fedavg['low'], fedavg['high']) == ('', '', '')
  members = sum(map(len, clustering['clusters']))
  fedavg, both = found.lines()
  assert fedavg['memberships'] == ''
  assert float(both['memberships']) == pytest.approx(members / len(own['client_accuracy']), abs=1e-4)


def test_own_models_have_the_interval_that_the_run_reports(tmp_path):
  finished_run.write_run(tmp_path)
  _, found = kept_by_program(tmp_path, 'mine')
  reported = [
    each for each in summary.of_run(experiment_results.read(tmp_path / 'results.json')) if each.interval
  ]
  assert reported
  for line in reported:
    (told,) = found.lines('models', contender=line.label.split(JOINT)[0], model='own')
    ends = [float(told[name]) for name in ('low', 'high')]
    assert ends == pytest.approx([100 * end for end in line.interval], abs=1e-3)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
  finished_run.write_run(tmp_path)
  theirs = tmp_path / 'kept/mine/table.csv'
  theirs.parent.mkdir(parents=True)
  theirs.write_text('theirs')
  assert kept_by_program(tmp_path, 'mine')[0] == 2
  assert [path.name for path in theirs.parent.iterdir()] == ['table.csv'] and theirs.read_text() == 'theirs'
  theirs.unlink()
  assert [kept_by_program(tmp_path, 'mine')[0] for _ in range(2)] == [0, 0]


def test_a_run_counts_as_the_rows_of_its_own_settings_and_of_no_others(tmp_path):
  had_run(tmp_path, 'cf 0.2, n 10', 3, 0.9, 0.7)
  (path,) = tmp_path.glob('fl_hc/table2/small/*/results.json')
  found = experiment_results.read(path)
  rows, scale = keep.rows_of(found)
  assert rows['fl_hc/table2'] == ['cf 0.2, n 10'] and scale == 'small'
  assert not {'fl_hc/table1', 'fl_hc/table5'} & rows.keys()
  training = dataclasses.replace(found.config.training, learning_rate=0.03)
  other = dataclasses.replace(found, config=dataclasses.replace(found.config, training=training))
  assert keep.rows_of(other) == ({}, '')


def test_the_program_names_the_rows_that_were_run(tmp_path):
  had_run(tmp_path, 'cf 0.2, n 10', 3, 0.9, 0.7)
  folder = tmp_path / 'fl_hc/table2/small'
  (folder / 'scorecard.csv').write_text('table,row,verdict\n')
  run = next(folder.glob('*/results.json')).parent
  for name in (
    'phase1.json',
    'phase3/kmeans.json',
    'store/fedavg-1/round_00001.npz',
    'models/kmeans/cluster_000.keras',
  ):
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).write_text('{}')
  code, found = kept_by_program(folder, 'mine')
  with tarfile.open(found.folder / results.RUNS) as archive:
    assert archive.getnames() == [
      f'fl_hc/table2/small/{run.name}/{name}' for name in ('phase1.json', 'phase3/kmeans.json')
    ]
  assert code == 0 and found.provenance.commands == [
    "python -m phases.reproduce --table=fl_hc/table2 --scale=small --rows='cf 0.2, n 10' --seeds=3 "
    '--output_dir=runs/reproduce --data_dir=DIR'
  ]


@pytest.mark.parametrize(
  ('dataset', 'ending'), [('digits', ''), ('mnist', ' --data_dir=DIR'), ('tfds:kmnist', ' --data_dir=DIR')]
)
def test_the_command_of_a_comparison_tells_that_it_needs_a_folder_of_data(tmp_path, dataset, ending):
  runs = comparison_runs.make({'FedAvg without clusters': comparison_runs.constant(0.5)})
  for seed, value in runs:
    value['config']['data']['dataset'] = dataset
    finished_run.save(tmp_path / f'seed_{seed}', value, {})
  comparison_page.write(comparison_runs.typed(runs), {'command': 'python -m phases.compare'}, tmp_path)
  code, found = kept_by_program(tmp_path, 'mine')
  assert code == 0 and found.provenance.commands == [f'python -m phases.compare{ending}']


def test_a_folder_that_holds_nothing_finished_is_refused(tmp_path):
  with pytest.raises(InputError, match='holds no finished run'):
    keep.of_folder(tmp_path)


@pytest.mark.parametrize(
  ('name', 'content'),
  [
    ('league.json', '{}'),
    ('league.json', '[]'),
    ('league.json', '3'),
    ('comparison.json', '{}'),
    ('comparison.json', '{"seeds": [0]}'),
  ],
)
def test_a_folder_whose_files_are_others_is_refused_in_one_line(name, content, tmp_path):
  (tmp_path / name).write_text(content)
  with pytest.raises(
    InputError, match=r'not as the programs write them, or lacks some|holds no finished run'
  ):
    keep.of_folder(tmp_path)


def test_what_was_kept_of_another_experiment_is_refused_and_of_the_same_one_replaced_whole(tmp_path, capsys):
  def made(name, seed=0, **options):
    value, arrays = finished_run.make_run(**options)
    value['config']['training']['seed'] = value['config']['data']['data_seed'] = seed
    finished_run.save(tmp_path / name, value, arrays)
    code, found = kept_by_program(tmp_path / name, 'mine', place=tmp_path / 'kept')
    return code, capsys.readouterr().err, found

  assert made('one')[0] == 0
  kept_folder = tmp_path / 'kept' / 'mine'
  for name in ('gains.csv', 'notes.csv', 'notes.md'):
    (kept_folder / name).write_text('of before')
  before = {path: path.read_bytes() for path in kept_folder.iterdir()}
  code, err, _ = made('other', num_clients=16)
  assert code == 2 and 'num_clients is 20 there and 16 here; give another name, or remove the folder' in err
  assert {path: path.read_bytes() for path in kept_folder.iterdir()} == before
  # Another seed is the same experiment: a table that it does not have goes, files of a user stay.
  code, err, found = made('again', seed=1)
  assert code == 0, err
  assert found.provenance.seeds == [1]
  assert {path.name for path in before} - {path.name for path in kept_folder.iterdir()} == {'gains.csv'}


def test_a_keep_that_is_stopped_half_way_leaves_what_was_there_and_the_same_command_goes_on(
  tmp_path, monkeypatch
):
  class Stopped(BaseException):
    """Stands for a signal, and where nothing is tidied up for a kill."""

  def stopped(name):
    with monkeypatch.context() as patch:
      patch.setattr(results.files, 'save_json', raising)  # The provenance, which comes last.
      with pytest.raises(Stopped):
        kept_by_program(tmp_path, name)

  def raising(path, *_, **__):
    assert path.name in ('config.json', results.FILE)
    if path.name == results.FILE:
      assert (path.parent / 'table.csv').exists()
      raise Stopped

  value = finished_run.write_run(tmp_path)
  stopped('mine')
  assert list((tmp_path / 'kept').iterdir()) == []
  assert kept_by_program(tmp_path, 'mine')[0] == 0
  before = {path: path.read_bytes() for path in (tmp_path / 'kept').rglob('*') if path.is_file()}
  value['summary'] = [summary_line('FedAvg', 10)]
  finished_run.save(tmp_path, value, {})
  with monkeypatch.context() as patch:
    patch.setattr(results.temporary_folder.shutil, 'rmtree', lambda *_, **__: None)  # As kill -9.
    stopped('mine')
  assert [path.name for path in (tmp_path / 'kept').iterdir() if path.name == 'mine'] == ['mine']
  assert {path: path.read_bytes() for path in before} == before
  assert set(results.read_all(tmp_path / 'kept')) == {'mine'}
  code, found = kept_by_program(tmp_path, 'mine')
  assert code == 0 and found.numbers('accuracy') == [50.0]
  assert [path.name for path in (tmp_path / 'kept').iterdir()] == ['mine']


@pytest.mark.parametrize(('dataset', 'file'), [('file', 'rows.npz'), ('text', 'plays.txt')])
def test_runs_on_data_of_ones_own_are_kept_with_a_command_that_asks_for_it(tmp_path, dataset, file):
  value, arrays = finished_run.make_run()
  value['config']['data'] |= {'dataset': dataset, 'data_file': f'{tmp_path}/private/{file}'}
  finished_run.save(tmp_path, value, arrays)
  code, found = kept_by_program(tmp_path, 'mine')
  assert code == 0 and found.provenance.commands[0].endswith(' --data_file=FILE')
  assert 'private' not in (found.folder / results.FILE).read_text()
  # The configuration can be given, and the file beside it.
  config = ExperimentConfig.from_json(json.loads((found.folder / 'config.json').read_text()))
  assert config.data.data_file == file
  runs = comparison_runs.make({'FedAvg without clusters': comparison_runs.constant(0.5)})
  for seed, each in runs:
    each['config']['data'] |= {'dataset': dataset, 'data_file': f'{tmp_path}/private/{file}'}
    finished_run.save(tmp_path / 'compared' / f'seed_{seed}', each, {})
  command = {'command': 'python -m phases.compare --dataset=file'}
  comparison_page.write(comparison_runs.typed(runs), command, tmp_path / 'compared')
  code, found = kept_by_program(tmp_path / 'compared', 'mine')
  assert code == 0 and found.provenance.commands == [f'{command["command"]} --data_file=FILE']


def test_a_toy_figure_is_kept_as_seed_0_gives_it(tmp_path):
  for seed, code in ((3, 2), (0, 0)):
    assert (
      run_here('phases.reproduce', '--figure=cfl/figure1', f'--seeds={seed}', f'--output_dir={tmp_path}') == 0
    )
    keep_it = '--name=toy', f'--kept_dir={tmp_path / "kept"}'
    assert run_here('phases.keep', f'--output_dir={tmp_path / "cfl/figure1"}', *keep_it) == code
  assert results.read_all(tmp_path / 'kept')['toy'].provenance.seeds == [0]
