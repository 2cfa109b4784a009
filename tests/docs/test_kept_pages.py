"""Kept results: read by pages, counted by coverage; on made-up numbers worked out by hand."""

import dataclasses
from xml.etree import ElementTree

import pytest

from docs.programs.result_pages import intervals_picture, markdown_tables, pages, prose
from tff_cluster.base.environment import ENGINE
from tff_cluster.base.errors import InputError
from tff_cluster.papers import catalogue
from tff_cluster.storage.tables import csv_text
from tff_cluster.studies.kept import coverage, results
from tff_cluster.studies.reproduction import runs

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
    '{% set x = 98.1 %}', 'An ARI of 0.79.', '| a | 3 |', '{{ (3.5)|points }}', 'It is at `98.1%` there.',
    '{% set x = "it has 98.1%" %}', "{{ best or '3.4 points' }}", 'A third of the clients lose.', 'It loses in all ten rows.', 'K = 98.1 is better.',
    'Seed 98.1 wins.',
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
    "{{ (-number('a', 'b2'))|points }} below.", "{{ scorecard('a', row='Cliques, 5% quantile', column='above (by 0.5 points)') }}",
    'Under seed 1, K = 4.',
  ],
)  # fmt: skip
def test_expressions_settings_names_and_published_numbers_are_no_typed_results(text):
  assert list(prose.typed_results(text)) == []


def test_numbers_of_a_kept_table_are_one_line_or_an_error(tmp_path):
  found = kept(tmp_path, {'table': 'row,accuracy [%],note\na,90.5,\nb,80,x\n'})['made_up']
  assert found.number('accuracy', row='a') == 90.5
  assert found.numbers('accuracy') == [90.5, 80.0]
  assert found.table().units == {'row': '', 'accuracy': '%', 'note': ''}


@pytest.mark.parametrize(
  ('wrong', 'words'),
  [
    (lambda found: found.number('accuracy'), r"made_up/table\.csv: 2 numbers 'accuracy' where \{\}, expected one"),
    (lambda found: found.number('accuracy', row='c'), "0 numbers 'accuracy' where {'row': 'c'}, expected one"),
    (lambda found: found.number('f1', row='a'), "no column 'f1'"),
    (lambda found: found.number('note', row='b'), "'note' is 'x', which is no number"),
    (lambda found: found.lines(rows='a'), "no column 'rows'; it has row, accuracy, note"),
    (lambda found: found.table('other'), r'made_up/other\.csv is not there'),
  ],
)  # fmt: skip
def test_what_a_kept_table_cannot_say_is_an_error(wrong, words, tmp_path):
  found = kept(tmp_path, {'table': 'row,accuracy [%],note\na,90.5,\nb,80,x\n'})['made_up']
  with pytest.raises(InputError, match=words):
    wrong(found)


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


def test_a_matrix_has_a_cell_for_each_pair_and_refuses_two_lines_in_one(tmp_path):
  text = 'who,where,part,share [%]\na,x,1,12.5\nb,x,1,25\nb,y,1,\nb,y,2,50\n'
  found = kept(tmp_path, {'table': text})
  asked = "{{{{ matrix('made_up', 'share', 'who', 'where'{}) }}}}"
  page = rendered(tmp_path, asked.format(", part='1'"), found)
  assert '| who | x | y |\n| --- | --- | --- |\n| a | 12.5% | – |\n| b | 25.0% | – |' in page
  both = rendered(tmp_path, "{{ beside({'n = 1': 'made_up'}, 'share', 'who', where='x') }}", found)
  assert '| who | n = 1 |\n| --- | --- |\n| a | 12.5% |\n| b | 25.0% |' in both
  with pytest.raises(InputError, match=r"made_up/table\.csv: several lines of 'b' and 'y'"):
    rendered(tmp_path, asked.format(''), found)


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
  assert '> 1 of 1 kept result on this page is stale' in old


def test_a_template_that_asks_for_what_is_not_kept_is_named(tmp_path):
  for wrong in (
    "{{ number('other', 'x') }}",
    "{{ number('made_up', 'x', row='a') }}",
    "{{ numbers('made_up', 'x', row='a')|length }}",
    "{{ texts('made_up', 'x', row='a')|length }}",
    "{{ grid('made_up', row='a') }}",
    "{{ beside({'n = 1': 'made_up'}, 'x', 'row', row='a') }}",
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
  card = 'fl_hc/table2,"cf 0.2, n 10",accuracy_end,99.0,98.8,reproduced (within 1 point)\n'
  card += (
    f'fl_hc/table2,claim,"{TABLE.claims[0].words}",a,b,fails\nfl_hc/table2,claim,"as once asked",a,b,holds\n'
  )
  rows = {'fl_hc/table2': ['cf 0.2, n 10']}
  for seeds, words in (
    ([0], 'numbers: 1 one seed; claims on one seed: 1 fail and 1 asked otherwise today'),
    ([0, 1, 2], 'numbers: 1 reproduced; claims: 1 fail and 1 asked otherwise today'),
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
  covered = coverage.of_kept(results.read_all(tmp_path).values())
  found = {each.scale: each for each in covered if each.published.name == TABLE.name}
  assert found.keys() == {'paper'}
  covered = found['paper']
  assert covered.seeds == {rows[0]: [0], rows[1]: [0], rows[2]: [0, 4], rows[3]: [4]}
  assert (covered.rows, sorted(covered.stale)) == (16, sorted(rows[:2]))
  # Twelve rows are left: C of 0.2, 0.5 and 1.0 of 100 clients, n = 1, 3, 5 and 10 and 50 rounds in all, FedAvg and one cluster.
  # FedAvg is one training for all n.
  by_hand = sum(cohort * (50 + sum(50 - n for n in (1, 3, 5, 10))) for cohort in (20, 50, 100))
  assert covered.missing == by_hand
  # Of the rows of C = 0.1, n = 1, 3, 5 and 10, one has two seeds and the others one.
  n_of = {row.name: int(row.name.rsplit(' ', 1)[1]) for row in TABLE.rows}
  few = 10 * (50 + sum(50 - n_of[row] for row in rows[:4]))
  few += 10 * (50 + sum(50 - n_of[row] for row in (*rows[:2], rows[3])))
  assert covered.for_verdicts == 3 * by_hand + few
  assert covered.left == (
    f'12 rows: at least {by_hand:,} client-rounds a seed; 3 seeds of all rows: at least {3 * by_hand + few:,} more'
  )


def test_a_result_whose_command_asks_for_something_else_today_says_so(tmp_path):
  (job,) = runs.plan(TABLE, TABLE.scale('small'), [3], tmp_path, only=TABLE.rows[0].name)
  plain = job.config.to_json()
  changed = plain | {'training': plain['training'] | {'learning_rate': 0.123}}
  about = {'published': {TABLE.name: [TABLE.rows[0].name]}, 'scale': 'small', 'seeds': [3]}
  for configuration, is_other in ((plain, False), (changed, True)):
    found = kept(tmp_path / 'kept', configurations=[configuration], **about)
    assert coverage.has_other_settings(found['made_up']) == is_other
    page = rendered(tmp_path, "# Title\n\n{{ made('made_up') }}\n", found)
    assert (
      ('**Other settings:**' in page)
      == ('Of 1 result the command asks for other settings' in page)
      == is_other
    )


def test_of_two_verdicts_the_one_from_more_seeds_counts_and_then_the_newer_one(tmp_path):
  def write(name, seeds, verdicts, engine=ENGINE):
    lines = ['table,row,column,published,verdict', *(f'{TABLE.name},{line}' for line in verdicts)]
    provenance = dataclasses.replace(PROVENANCE, seeds=seeds, data_seeds=seeds, engine=engine)
    results.write(tmp_path / name, provenance, {'scorecard': '\n'.join([*lines, ''])}, [])

  holds, falls = (f'claim,"{claim.words}",in words' for claim in TABLE.claims[:2])
  write('one', [0], ['a,end,93.0,one seed', 'b,end,90.0,one seed', f'{holds},fails'])
  write('three', [0, 1, 2], ['a,end,93.0,differs', 'b,end,90.0,not run', f'{holds},holds'])
  write('earlier', [0, 1, 2], ['a,end,93.0,reproduced', f'{holds},undecided'], ENGINE - 1)
  write('two', [0, 1], ['a,end,93.0,two seeds', f'{falls},holds'])
  told = coverage.verdict_words(TABLE.name, results.read_all(tmp_path).values())
  assert told == 'numbers: 1 differ and 1 one seed; claims: 2 hold'


@pytest.mark.parametrize(
  ('numbers', 'words'),
  [
    (('0.9', '0.04', '1.9'), '+0.90 [+0.04, +1.90]'),
    (('-0.2', '-0.4', '-0.0031'), '−0.200 [−0.400, −0.003]'),
    (('0.9', '-0.04', '1.9'), '+0.9 [0.0, +1.9]'),
    (('0.9', '0.1', '1.9'), '+0.9 [+0.1, +1.9]'),
    (('0.94', '', ''), '+0.9'),
    (('', '', ''), '–'),
  ],
)
def test_an_interval_that_excludes_zero_does_so_in_print(numbers, words):
  assert markdown_tables.interval(dict(zip(('difference', 'low', 'high'), numbers, strict=True))) == words


def test_ratios_that_are_judged_count_as_numbers(tmp_path):
  lines = ['table,row,column,published,seeds,verdict,ratio_verdict,training']
  lines += [
    f'{TABLE.name},a,end,93.0,3,reproduced,differs,one',
    f'{TABLE.name},b,end,93.0,3,reproduced,undecided,one',
  ]
  found = kept(tmp_path, {'scorecard': '\n'.join([*lines, ''])}, seeds=[0, 1, 2], data_seeds=[0, 1, 2])
  assert coverage.verdict_words(TABLE.name, found.values()) == 'numbers: 1 reproduced and 1 differ'


def test_a_verdict_weighs_by_the_seeds_of_its_own_line(tmp_path):
  def write(name, seeds, line):
    text = f'table,row,column,published,seeds,verdict\n{TABLE.name},{line}\n'
    provenance = dataclasses.replace(PROVENANCE, seeds=seeds, data_seeds=seeds)
    results.write(tmp_path / name, provenance, {'scorecard': text}, [])

  # Another row has five seeds, this one has one of them.
  write('many', [0, 1, 2, 3, 4], 'a,end,93.0,1,one seed')
  write('three', [0, 1, 2], 'a,end,93.0,3,differs')
  assert coverage.verdict_words(TABLE.name, results.read_all(tmp_path).values()) == 'numbers: 1 differ'


@pytest.mark.parametrize(
  ('verdicts', 'words'),
  [
    (['reproduced (within 1 point)', 'differs', 'reproduced', 'undecided'], '1 reproduced, 1 differ and 1 undecided'),
    (['within the margin (small)', 'not decidable here (small)', 'within the margin (small)', ''],
     '1 not decidable and 1 within the margin'),
    (['reproduced'] * 4, '3 reproduced'),
  ],
)  # fmt: skip
def test_numbers_of_one_training_and_column_count_once_by_their_worst_verdict(tmp_path, verdicts, words):
  places = [('a', 'end', 'one'), ('b', 'end', 'one'), ('b', 'after', 'one'), ('c', 'end', '')]
  lines = [f'{TABLE.name},{row},{column},93.0,{verdict},{training}'
           for (row, column, training), verdict in zip(places, verdicts, strict=True)]  # fmt: skip
  text = '\n'.join(['table,row,column,published,verdict,training', *lines, ''])
  found = kept(tmp_path, {'scorecard': text}, seeds=[0, 1, 2], data_seeds=[0, 1, 2])
  assert coverage.verdict_words(TABLE.name, found.values()) == f'numbers: {words}'


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


def test_a_row_has_the_seeds_of_its_own_runs(tmp_path):
  known = dataclasses.replace(
    PROVENANCE,
    published={'fl_hc/table2': ['cf 0.2, n 10', 'cf 0.2, n 5']},
    scale='paper',
    seeds=[0, 1, 2],
  )
  lines = [('cf 0.2, n 10', seed) for seed in (0, 1, 2)] + [('cf 0.2, n 5', 0)]
  text = 'row,seed\n' + ''.join(f'"{row}",{seed}\n' for row, seed in lines)
  results.write(tmp_path / 'one', known, {'runs': text}, [])
  (covered,) = (each for each in coverage.of_kept(results.read_all(tmp_path).values()) if each.seeds)
  assert covered.seeds == {'cf 0.2, n 10': [0, 1, 2], 'cf 0.2, n 5': [0]}


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
  covered = [each for each in coverage.of_kept(found.values()) if each.published.name == 'cfl/splits']
  assert coverage.distinct_trainings(covered) == 3


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


def test_the_best_of_a_league_know_no_groups_and_are_counted_by_their_intervals(tmp_path):
  columns = (
    'setting',
    'contender',
    'kind',
    'budget',
    'accuracy [%]',
    'difference [points]',
    'low [points]',
    'high [points]',
  )
  lines = [
    ('iid', 'FedAvg', 'fedavg', 'equal_rounds', 90.0, '', '', ''),
    ('iid', 'planted', 'oracle', 'equal_rounds', 99.0, 9.0, 8.0, 10.0),
    ('iid', 'kmeans', 'disjoint', 'equal_rounds', 91.0, 1.0, 0.5, 1.5),
    ('iid', 'fedem', 'overlapping', 'equal_rounds', 92.5, 2.5, -1.0, 6.0),
    ('iid', 'alone', 'local', 'equal_rounds', 80.0, -10.0, -12.0, -8.0),
    ('iid', 'alone', 'local', 'equal_bytes', 99.5, 9.5, 9.0, 10.0),
    ('rotated', 'FedAvg', 'fedavg', 'equal_rounds', 70.25, '', '', ''),
    ('rotated', 'kmeans', 'disjoint', 'equal_rounds', 71.25, 1.0, '', ''),
  ]  # fmt: skip
  found = kept(tmp_path / 'kept', {'table': 'row\n', 'gains': csv_text(columns, lines)})
  shown = rendered(
    tmp_path, "# Title\n\nOpening.\n\n## Best\n\n{{ best('made_up', 'equal_rounds', 2) }}\n", found
  )
  assert [
    line for line in shown.splitlines() if line.startswith('| iid') or line.startswith('| rotated')
  ] == [
    '| iid | 90.0% | fedem: +2.5 [−1.0, +6.0] | kmeans: +1.0 [+0.5, +1.5] | 1 of 3 | 1 of 3 |',
    '| rotated | 70.2% | kmeans: +1.0 | – | – | – |',
  ]


def test_gains_have_worst_tenths_and_alarms_are_those_of_their_setting(tmp_path):
  gains = (
    'setting,contender,kind,budget,accuracy [%],worst tenth [%],difference [points],low [points],high [points],harmed [%],verdict\n'
    'a,kmeans,disjoint,equal_rounds,90.0,61.25,1.0,0.5,1.5,10.0,helps\n'
  )
  alarms = 'setting,alarm\na,Groups are wrong.\nb,Too few seeds.\n'
  template = (
    "# Title\n\n{{ gains('made_up', 'equal_rounds', setting='a') }}\n\n{{ alarms('made_up', setting='a') }}\n"
  )
  shown = rendered(tmp_path, template, kept(tmp_path / 'kept', {'gains': gains, 'alarms': alarms}))
  assert '| kmeans | 90.0% | +1.0 [+0.5, +1.5] | 61.2% | 10.0% | helps |' in shown
  assert '* **Mind:** Groups are wrong.' in shown and 'Too few' not in shown
  # What was kept before there were alarms has none.
  assert 'Mind' not in rendered(tmp_path, template, kept(tmp_path / 'other', {'gains': gains}))


def test_overlap_is_told_over_comparisons_by_budget_with_who_was_compared_and_drawn(tmp_path):
  header = 'setting,budget,overlapping,disjoint,difference [points],low [points],high [points],worst tenth [points],harmed [%],p,verdict\n'
  lines = ',equal_rounds,cliques,ward,1.25,-0.5,3,2,12.345,0.25,undecided\n'
  lines += ',equal_client_rounds,cliques,kmeans,-2,-3,-1,-4,50,0.0039,harms\n'
  found = kept(tmp_path, {'overlap': header + lines})
  template = "{% set kinds = {'made_up': 'made up'} %}{{ overlap(kinds) }}\n{{ overlap_sides(kinds) }}\n{{ overlap_picture(kinds) }}\n"
  (tmp_path / 'page.md.jinja').write_text(template)
  files = pages.render(found, tmp_path)
  for line in (
    '| made up | equal rounds | +1.2 [−0.5, +3.0] | 0.25 | undecided | +2.0 | 12.3% |',
    '| made up | equal client-rounds | −2.0 [−3.0, −1.0] | 0.004 | harms | −4.0 | 50.0% |',
    '| made up | equal client-rounds | cliques | kmeans |',
  ):
    assert line in files['page.md']
  drawn = ElementTree.fromstring(files['overlap.svg'])
  circles = [float(each.get('cx')) for each in drawn.iter('{http://www.w3.org/2000/svg}circle')]
  # The first two are the marks: 3.25 points apart on an axis from -3 to 3.
  assert circles[0] - circles[1] == pytest.approx(420 * 3.25 / 6, abs=0.2)
  told = ''.join(drawn.itertext())
  assert 'made up' in told and 'equal client-rounds' in told and 'overlapping less disjoint' in told


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


def test_a_picture_of_differences_that_are_all_nothing_has_an_axis():
  line = {'contender': 'a', 'model': 'own', 'difference': '0.0', 'low': '0.0', 'high': '0.0'}
  root = ElementTree.fromstring(intervals_picture.draw([line], 'contender', 'model', 'points'))
  at = {each.text: float(each.get('x')) for each in root.findall('.//{*}text')}
  mark, _ = root.findall('.//{*}circle')
  assert float(mark.get('cx')) == at['0'] and max(at.values()) > at['0']


def test_a_target_that_was_not_reached_is_a_dash_and_what_was_not_run_is_left_out(tmp_path):
  lines = [
    'table,row,column,unit,published,ours,difference,verdict',
    f'{TABLE.name},reached,end,rounds,34,40,6,differs',
    f'{TABLE.name},far,end,rounds,350,,,undecided',
    f'{TABLE.name},too far,end,rounds,60,,,differs (small)',
    f'{TABLE.name},not there,end,rounds,20,,,not run',
    f'{TABLE.name},unknown,end,rounds,20,,,not measured in this run',
  ]
  found = kept(
    tmp_path / 'kept', {'scorecard': '\n'.join([*lines, ''])}, seeds=[0, 1, 2], data_seeds=[0, 1, 2]
  )
  shown = rendered(tmp_path, "# Title\n\n{{ scorecard('made_up') }}\n", found).splitlines()
  body = [line.split(' | ') for line in shown if '| end |' in line]
  assert [(row.strip('| '), ours, verdict.strip('| ')) for row, _, _, ours, _, verdict in body] == [
    ('reached', '40', 'differs'),
    ('far', '–', 'undecided'),
    ('too far', '–', 'differs'),
  ]
