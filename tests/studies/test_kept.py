"""Kept results: written from runs, read by pages, counted by coverage; on made-up runs and numbers worked out by hand."""

import dataclasses
import json
import re
import tarfile
from xml.etree import ElementTree

import numpy as np
import pytest

from phases import keep as keep_program
from tests.made_up import comparison_runs, finished_run, in_json
from tff_cluster.base.environment import ENGINE
from tff_cluster.base.errors import InputError
from tff_cluster.cli import program
from tff_cluster.experiment import results as experiment_results
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.papers import catalogue
from tff_cluster.report.files import csv_text
from tff_cluster.scorecard import summary
from tff_cluster.scorecard.identical_clusterings import JOINT
from tff_cluster.storage import files as files_lib
from tff_cluster.studies.comparison import page as comparison_page
from tff_cluster.studies.kept import coverage, keep, pages, prose, results
from tff_cluster.studies.league import page as league_page
from tff_cluster.studies.reproduction import runs as runs_lib

TABLE = catalogue.PUBLISHED['fl_hc/table2']
PROVENANCE = results.Provenance(
  'made up', ['python -m phases.compare'], {}, '', 'two clients', '', [0], [0], ENGINE, 'by hand', 'abc', 'abacus',
  '2026-01-01', 1.5, None, {'': '0123'}, [],
)  # fmt: skip


def kept(folder, texts=None, **changes):
  """Returns kept results with these tables, written and read again."""
  results.write(folder / 'made_up', dataclasses.replace(PROVENANCE, **changes), texts or {}, [])
  return results.read_all(folder)


def rendered(folder, template, all_kept):
  (folder / 'page.md.jinja').write_text(template)
  return pages.render(all_kept, folder)['page.md']


@pytest.mark.parametrize(
  'text',
  [
    'It gains 3.4 points.', 'Of these 17 hold.', 'We got 98%.', 'It is 1.3 times as good.', 'It gains half a point.',
    'Three of four rows agree.', 'It is twice as good.', '{{ 98.1 }} is ours.', "{{ '98.1%' }} is ours.",
    '{% set x = 98.1 %}', 'An ARI of 0.79.', '| a | 3 |', '{{ (3.5)|points }}',
  ],
)  # fmt: skip
def test_a_typed_result_is_found(text):
  found = list(prose.typed_results(f'# Title\n\n{text}\n'))
  assert found and {line for line, _ in found} == {3}


@pytest.mark.parametrize(
  'text',
  [
    'Table 3 and figures 1 and 2 of Briggs et al. 2020, section 4.1, on 2026-11-23.', 'With K = 4, T = 3.0 and C = 0.2.',
    'L1, L2 and 2NN on CIFAR-10.', "{{ number('a', 'b', row='cf 0.2, n 10')|fixed(2) }} rounds.", '`--seeds=0,1` is code.',
    "{% set t1 = 'fl_hc_table1' %}", "The paper prints {{ published('98.1%', 'table 1') }}.", '[a link](data/a1/b2.svg)',
    '```text\npython -m phases.x --seeds=0,1\n```', 'A 95% interval of the clients at 99% (95%).',
    "{{ (-number('a', 'b2'))|points }} below.",
  ],
)  # fmt: skip
def test_expressions_settings_names_and_published_numbers_are_no_typed_results(text):
  assert list(prose.typed_results(text)) == []


def test_numbers_of_a_kept_table_are_one_line_or_an_error(tmp_path):
  found = kept(tmp_path, {'table': 'row,accuracy [%],note\na,90.5,\nb,80,x\n'})['made_up']
  assert found.number('accuracy', row='a') == 90.5
  assert found.numbers('accuracy') == [90.5, 80.0]
  assert found.table().units == {'row': '', 'accuracy': '%', 'note': ''}
  for wrong in (
    lambda: found.number('accuracy'), lambda: found.number('accuracy', row='c'), lambda: found.number('f1', row='a'),
    lambda: found.number('note', row='b'), lambda: found.lines(rows='a'), lambda: found.table('other'),
  ):  # fmt: skip
    with pytest.raises(InputError):
      wrong()


def test_a_table_has_equal_decimals_in_a_column_and_texts_without_the_quote_of_csv(tmp_path):
  table = {
    'table': csv_text(
      ('row', 'accuracy [%]', 'ARI', 'told'), [('a', 32.25, 0.6545, '+1 point'), ('b', 69.5417, 0.7, '=')]
    )
  }
  shown = rendered(
    tmp_path, "# Title\n\nOpening.\n\n## More\n\n{{ grid('made_up') }}\n", kept(tmp_path / 'kept', table)
  )
  assert '| a | 32.2% | 0.65 | +1 point |' in shown and '| b | 69.5% | 0.70 | = |' in shown


def test_many_digests_are_left_to_the_file(tmp_path):
  made = kept(tmp_path / 'kept', {'table': 'row\na\n'})
  (one,) = made.values()
  digests = {f'seed {seed}': f'{seed:04}' for seed in range(11)}
  many = {one.name: dataclasses.replace(one, provenance=dataclasses.replace(one.provenance, digests=digests))}
  shown = rendered(tmp_path, "# Title\n\nOpening.\n\n## More\n\n{{ made('made_up') }}\n", many)
  assert (
    'Digests of the 11 runs are in [provenance.json](data/made_up/provenance.json).' in shown
    and '`0003`' not in shown
  )


def test_a_page_reads_numbers_and_shows_what_is_stale(tmp_path):
  template = "# Title\n\nOurs is {{ number('made_up', 'accuracy', row='a')|percent }}.\n\n## More\n\n{{ grid('made_up') }}\n\n{{ made('made_up') }}\n"
  table = {'table': 'row,accuracy [%],gain [points]\na,90.46,1.25\n'}
  fresh = rendered(tmp_path, template, kept(tmp_path / 'fresh', table))
  assert 'Ours is 90.5%.' in fresh and '| a | 90.46% | +1.25 |' in fresh
  assert fresh.count('stale') == 1 and 'Nothing on this page is stale' in fresh
  old = rendered(tmp_path, template, kept(tmp_path / 'old', table, engine=ENGINE - 1))
  assert f'**Stale:** engine {ENGINE - 1}' in old and f'{ENGINE - 1}, **stale**' in old
  assert '1 kept result on this page 1 is stale' in old


def test_a_template_that_asks_for_what_is_not_kept_is_named(tmp_path):
  for wrong in (
    "{{ number('other', 'x') }}",
    "{{ number('made_up', 'x', row='a') }}",
    '{{ nothing }}',
    '{{ 1 +',
  ):
    with pytest.raises(InputError, match=r'page\.md\.jinja'):
      rendered(tmp_path, f'# Title\n\n{wrong}\n', kept(tmp_path / 'kept', {'table': 'row,x\nb,1\n'}))


def test_a_folder_without_provenance_is_refused(tmp_path):
  (tmp_path / 'bare').mkdir()
  with pytest.raises(InputError, match='says where it comes from'):
    results.read_all(tmp_path)


def test_a_number_of_one_seed_has_no_verdict_but_that(tmp_path):
  header = 'table,row,column,published,ours,verdict\n'
  card = 'fl_hc/table2,"cf 0.2, n 10",accuracy_end,99.0,98.8,reproduced (within 1 point)\nfl_hc/table2,claim,x,a,b,fails\n'
  rows = {'fl_hc/table2': ['cf 0.2, n 10']}
  for seeds, words in (
    ([0], 'numbers: 1 one seed; claims on one seed: 1 fail'),
    ([0, 1, 2], 'numbers: 1 reproduced; claims: 1 fail'),
  ):
    found = kept(tmp_path, {'scorecard': header + card}, seeds=seeds, published=rows, scale='paper')
    assert coverage.verdict_words('fl_hc/table2', found.values()) == words


def test_coverage_counts_rows_seeds_stale_rows_and_what_is_missing(tmp_path):
  rows = [row.name for row in TABLE.rows]
  results.write(
    tmp_path / 'old',
    dataclasses.replace(PROVENANCE, engine=1, published={TABLE.name: rows[:3]}, scale='paper'),
    {},
    [],
  )
  results.write(
    tmp_path / 'new',
    dataclasses.replace(PROVENANCE, published={TABLE.name: rows[2:4]}, scale='paper', seeds=[4]),
    {},
    [],
  )
  found = {each.scale: each for each in coverage.of_kept(results.read_all(tmp_path).values(), TABLE.name)}
  assert found.keys() == {'paper'}
  covered = found['paper']
  assert covered.seeds == {rows[0]: [0], rows[1]: [0], rows[2]: [0, 4], rows[3]: [4]}
  assert (covered.rows, sorted(covered.stale)) == (16, sorted(rows[:2]))
  # Twelve rows are left: C of 0.2, 0.5 and 1.0 of 100 clients, n = 1, 3, 5 and 10 and 50 rounds in all, FedAvg and one cluster.
  by_hand = sum(cohort * (n + 2 * (50 - n)) for cohort in (20, 50, 100) for n in (1, 3, 5, 10))
  assert covered.missing == by_hand and f'12 rows: at least {by_hand:,} client-rounds' in covered.left


def test_trainings_are_counted_once_in_whatever_table_they_stand(tmp_path):
  # Figure 3 is the row n = 10 of table II; of three rows of table IV a kept table says that the clusters of two came out the same.
  of = {'fl_hc/table2': ['cf 0.2, n 10', 'cf 0.2, n 5'], 'fl_hc/figure3': ['cf 0.2, n 10']}
  of_four = {'fl_hc/table4': ['L1, single', 'L2, ward', 'cosine, single']}
  told = {'table': 'combination,training\n"L1, single",alone\n"L2, Ward",alone\n"cosine, single",\n'}
  other_seed = {'fl_hc/table2': ['cf 0.2, n 10']}
  for name, published, seeds, texts in (
    ('two', of, [0], {}), ('four', of_four, [0], told), ('one', other_seed, [1], {}),
  ):  # fmt: skip
    known = dataclasses.replace(PROVENANCE, published=published, scale='paper', seeds=seeds)
    results.write(tmp_path / name, known, texts, [])
  covered = coverage.of_kept(results.read_all(tmp_path).values())
  assert sum(len(each.seeds) for each in covered) == 6
  assert coverage.distinct_trainings(covered) == 4
  assert coverage.distinct_trainings(each for each in covered if each.published.name == 'fl_hc/table4') == 2
  assert coverage.distinct_trainings([]) == 0


def test_rows_with_the_same_trainings_in_a_scorecard_are_one(tmp_path):
  header = 'table,row,column,training\n'
  lines = [
    ('IID; as printed', 'p', 'a'), ('IID; guarded', 'p', 'a'), ('labels skewed; as printed', 'p', 'b'),
    ('labels skewed; guarded', 'p', 'c'),
  ]  # fmt: skip
  text = header + ''.join(
    f'cfl/splits,{row},before,{first}\ncfl/splits,{row},end,{own}\n' for row, first, own in lines
  )
  rows = {'cfl/splits': [row for row, _, _ in lines]}
  found = kept(tmp_path, {'scorecard': text}, published=rows, scale='paper')
  covered = coverage.of_kept(found.values(), 'cfl/splits')
  assert coverage.distinct_trainings(covered) == 3


def summary_line(label, client_rounds):
  return {'label': label, 'kind': 'disjoint', 'mean_client_accuracy': 0.5, 'client_rounds': client_rounds}


def had_run(root, row, seed, accuracy, fedavg):
  """Saves results of a row of the small table II as if it had been run."""
  (job,) = runs_lib.plan(TABLE, TABLE.small, (seed,), root, None, row)
  rounds = list(range(job.config.training.phase1_rounds + 1, 16))
  shares = [0.0] * len(rounds)
  history = {'rounds': rounds, 'test_accuracy': [*shares[1:], accuracy], 'share_at_target': shares}
  clustering = {
    'label': 'hierarchical',
    'history': history,
    'recovery': {},
    'num_clusters': 4,
    'threshold': 3.0,
    'splits': [{'round': number, 'max_update_norm': norm} for number, norm in ((5, 0.61), (6, 0.9))],
  }
  clustering['label'] = job.config.clusterings[0].label
  baseline = {'history': history | {'test_accuracy': [*shares[1:], fedavg]}}
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


def test_a_reproduction_is_kept_with_a_line_a_row_and_seed(tmp_path, monkeypatch):
  for seed, accuracy in ((0, 0.9), (1, 0.92)):
    had_run(tmp_path, 'cf 0.2, n 10', seed, accuracy, 0.7)
  folder = tmp_path / 'fl_hc/table2/small'
  (folder / 'scorecard.csv').write_text('table,row,verdict\n')
  made = keep.of_folder(folder)
  results.write(tmp_path / 'kept/made', made.provenance, made.texts, [])
  (found,) = results.read_all(tmp_path / 'kept').values()
  assert found.numbers('accuracy end', of='runs') == [90.0, 92.0]
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
  # A setting of it, compared again by itself, has a table of other seeds than the standings.
  comparison_page.write(comparison_runs.typed(runs[:2]), {'command': 'x'}, tmp_path / 'two')
  with pytest.raises(InputError, match='two was compared under the seeds 0, 1, and the league under 0, 1, 2'):
    keep.of_folder(tmp_path)


def kept_by_program(folder, name, *flags):
  """Keeps a folder by the program; returns exit code and what it kept."""
  given = ['keep', f'--output_dir={folder}', f'--name={name}', f'--kept_dir={folder / "kept"}', *flags]
  code = program.execute(keep_program.main, keep_program.define_flags, given)
  return code, results.read_all(folder / 'kept')[name] if code == 0 else None


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


def test_a_page_tells_where_a_line_has_another_clustering_than_its_row(tmp_path):
  note = '"distance_threshold quantile:0.05, the paper has mean; margin 1 point"'
  header = 'row,column,unit,published,ours,difference,verdict,note'
  lines = f'{header}\nDynamic,average,percent,93.0,94.5,1.5,one seed,{note}\nK-means,average,percent,93.4,91.4,-2.0,one seed,margin 1 point\n'
  page = rendered(
    tmp_path, "# Title\n\n{{ scorecard('made_up') }}\n", kept(tmp_path / 'kept', {'scorecard': lines})
  )
  assert '| Dynamic (distance_threshold quantile:0.05, the paper has mean) | average |' in page
  assert '| K-means | average |' in page


def test_a_page_shows_what_was_judged_where_that_is_not_ours(tmp_path):
  header = 'row,column,unit,published,ours,judged,judged_on,difference,verdict'
  end = 'a,end,percent,93.0,95.5,94.5,the mean of rounds 41 to 50,1.5,differs'
  after = 'a,after,percent,90.0,91.0,91.0,the mean of rounds 1 to 1,1.0,reproduced'
  claim = 'claim,it holds,,said in words,+1 point,,,,holds'
  template = "# Title\n\n{{ scorecard('made_up') }}\n\n{{ scorecard('made_up', claims=True) }}\n"
  found = {'scorecard': '\n'.join((header, end, after, claim, ''))}
  page = rendered(tmp_path, template, kept(tmp_path / 'kept', found))
  assert '| row | column | published | ours | judged | difference | verdict |' in page
  assert '| a | end | 93.0% | 95.5% | 94.5%, the mean of rounds 41 to 50 | +1.5 |' in page
  assert (
    '| a | after | 90.0% | 91.0% | – | +1.0 |' in page and '| it holds | said in words | +1 point |' in page
  )
  alone = {'scorecard': '\n'.join((header, after, ''))}
  assert '| ours | difference |' in rendered(tmp_path, template, kept(tmp_path / 'other', alone))


def test_a_picture_of_models_has_a_mark_and_an_interval_for_each(tmp_path):
  header = 'contender,model,accuracy [%],difference [points],low [points],high [points]'
  lines = (
    header,
    'FedAvg,,90,,,',
    'a,own,92,2,1,3',
    'a,blended,86,-4,-8,0',
    'b,own,91,1,,',
    'b,average,50,-40,-41,-39',
    '',
  )
  found = kept(tmp_path / 'kept', {'models': '\n'.join(lines)})
  template = "# Title\n\n{{ models_picture('made_up', 'blended', 'own') }}\n"
  (tmp_path / 'page.md.jinja').write_text(template)
  made = pages.render(found, tmp_path)
  assert '](models_made_up.svg)' in made['page.md'] and 'with blended and with own models' in made['page.md']
  root = ElementTree.fromstring(made['models_made_up.svg'])
  texts = [each.text for each in root.findall('.//{*}text')]
  assert {'a', 'b', 'blended models', 'own models', '−8', '0'} <= set(texts) and 'average models' not in texts
  # Marks are where the axis has their differences: four points below zero are twice as far from it as two above.
  at = {each.text: float(each.get('x')) for each in root.findall('.//{*}text')}
  marks = sorted((float(each.get('cy')), float(each.get('cx'))) for each in root.findall('.//{*}circle'))
  blended, own, alone = (x - at['0'] for _, x in marks[:3])
  assert blended == pytest.approx(-2 * own, abs=0.3) and alone == pytest.approx(own / 2, abs=0.3) and own > 0
  intervals = [each.get('d') for each in root.findall('.//{*}path') if each.get('stroke-width')]
  assert len(intervals) == 2 and len(marks) == 5
  with pytest.raises(InputError, match='has no models weighted'):
    pages.Page(found).models_picture('made_up', 'weighted')


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


def test_what_was_kept_of_another_experiment_is_refused_and_of_the_same_one_replaced_whole(tmp_path, capsys):
  def made(name, seed=0, **options):
    value, arrays = finished_run.make_run(**options)
    value['config']['training']['seed'] = value['config']['data']['data_seed'] = seed
    finished_run.save(tmp_path / name, value, arrays)
    code, found = kept_at(tmp_path / name, tmp_path / 'kept')
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


def kept_at(folder, place):
  given = ['keep', f'--output_dir={folder}', '--name=mine', f'--kept_dir={place}']
  code = program.execute(keep_program.main, keep_program.define_flags, given)
  return code, results.read_all(place)['mine'] if code == 0 else None


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
