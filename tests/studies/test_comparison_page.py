"""The page of a comparison, read back: its first screen, tables, files and pictures."""

import csv
import itertools
import json
import re

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tests.made_up import comparison_runs, drawn
from tests.made_up import finished_run as made_up
from tests.made_up.comparison_runs import DITTO, FEDAVG, LOCAL, constant, noisy
from tests.made_up.written_page import WrittenPage
from tff_cluster.base.errors import InputError
from tff_cluster.report.figures import gains
from tff_cluster.scorecard.contenders import BUDGETS, BYTES, CLIENT_ROUNDS, KINDS, REFERENCES, ROUNDS
from tff_cluster.scorecard.intervals import Interval
from tff_cluster.studies.comparison import figures, page, saved

_HOSTILE = '<script>alert(1)</script>&"'
_METHODS = ('kmeans', 'kmeans:second', 'dynamic_distance:cliques', 'bipartition', 'planted', 'ifca')
_BUDGETS = {name: BUDGETS[name] for name in (ROUNDS, CLIENT_ROUNDS)}
_OWN = {'local': -0.02, 'fine_tuning': 0.03, 'ditto': 0.04}
_FACTS = {'command': f'python -m phases.compare {_HOSTILE}', 'client-rounds': '1,200'}


@pytest.fixture(scope='module')
def written(tmp_path_factory):
  folder = tmp_path_factory.mktemp('comparison')
  runs = [
    (
      seed,
      made_up.make_run(num_clients=14, truth='mixture', methods=_METHODS, personalized=_OWN, seed=seed)[0],
    )
    for seed in (0, 1, 2)
  ]
  path = page.write(comparison_runs.typed(runs), _FACTS, folder)
  return folder, path.read_text(), json.loads((folder / 'comparison.json').read_text()), runs


def _tables(markup):
  """Returns rows of cells by caption or header."""
  found = {}
  for body in re.findall('<table>(.*?)</table>', markup, flags=re.S):
    caption, rows = re.search('<caption>(.*?)</caption>', body), drawn.rows(body)
    found[drawn.text(caption[1]) if caption else ' '.join(rows[0])] = rows
  return found


def _signed(share):
  return f'{100 * share:+.1f}'.replace('+0.0', '0.0').replace('-0.0', '0.0').replace('-', '−')


def test_the_first_screen_has_answer_alarms_and_expectations(written):
  folder, text, document, _ = written
  WrittenPage(folder / 'index.html')
  first = text[: text.index('aria-label="Contents"')]
  shown, told = drawn.text(first), document['answer']
  enough, *sentences = told['sentences']
  for part in (told['headline'], enough, *document['alarms'], 'Intervals are over 3 seeds and clients'):
    assert part in shown
  expected = [check for check in document['checks'] if check['kind'] == 'expected']
  assert document['planted'] == 'overlapping' and document['alarms'] and expected and sentences
  # One sentence, one table and one picture; the rest of the answer comes below.
  places = [first.index(part) for part in (told['headline'], '<table', '<img', *document['alarms'], enough)]
  assert places == sorted(places) and first.count('<table') == first.count('<img') == 1
  rest = text[len(first) :]
  assert all(words in drawn.text(rest) and words not in shown for words in sentences)
  for check in expected:
    assert check['words'] in drawn.text(rest) and f'>{check["verdict"]}</span>' in rest


def test_the_first_table_is_the_summary(written):
  _, text, document, _ = written
  header, *rows = next(rows for name, rows in _tables(text).items() if name.startswith('contender gain'))
  assert header == ['contender', 'gain, points', '95% interval', 'accuracy', 'groups found', 'cost, × FedAvg']
  fedavg = document['summary'][0]
  for row, line in zip(rows, document['summary'], strict=True):
    name, gain, interval, accuracy, groups, cost = row
    assert name.startswith(line['label']) and accuracy == f'{100 * line["mean_client_accuracy"]:.1f}%'
    assert cost.split()[0] == f'{line["client_rounds"] / fedavg["client_rounds"]:.2f}'
    assert groups.startswith('–' if line['num_clusters'] is None else f'{line["num_clusters"]:,}')
    if line is fedavg:
      assert (gain, interval) == ('–', '–')
    else:
      low, high = line['interval']
      assert gain.startswith(_signed(line['difference']))
      assert ('not shown' in gain) == (low <= 0 <= high)
      assert interval == f'{_signed(low)} to {_signed(high)}'


def test_every_contender_has_its_numbers_at_both_budgets(written):
  _, text, document, _ = written
  for budget, name in _BUDGETS.items():
    rows = _tables(text)[f'At {name}'][1:]
    assert len(rows) == len(document['contenders']) == 10
    for row, contender in zip(rows, document['contenders'], strict=True):
      kind = '' if contender['kind'] in REFERENCES else f' {contender["kind"]}'
      summary = contender['budgets'][budget]
      assert row[0] == f'{contender["name"]}{kind}'
      assert row[1].startswith(f'{100 * summary["accuracy"]["mean"]:.1f}%')
      assert row[2:4] == [f'{100 * summary[share]:.1f}%' for share in ('worst_decile', 'at_target')]
      for cell, kind in zip(row[4:], REFERENCES, strict=True):
        difference = summary[f'over_{kind}']
        if difference is None:
          assert cell == '–'
        else:
          assert cell.startswith(_signed(difference['interval']['mean']))
          assert cell.endswith(f'{100 * difference["harmed"]:.1f}% harmed')


def test_the_matrix_is_the_pairs(written):
  _, text, document, _ = written
  for budget, name in _BUDGETS.items():
    header, row = _tables(text)[f'At {name}: row minus column']
    disjoint = [f'{label} (disjoint)' for label in ('kmeans', 'second', 'bipartition')]
    assert header == ['overlapping', *disjoint, 'planted (oracle)', 'ifca (disjoint)'] and row[0] == 'cliques'
    pairs = [pair['difference'] for pair in document['pairs'] if pair['budget'] == budget]
    for cell, pair in zip(row[1:], pairs, strict=True):
      assert cell.startswith(_signed(pair['interval']['mean']))
      assert cell.endswith(f'{pair["seeds"]["better"]} of 3 seeds')


def test_recovery_costs_and_how_it_was_run(written):
  _, text, document, runs = written
  tables = _tables(text)
  recovery = next(rows for name, rows in tables.items() if name.startswith('clustering kind'))
  (planted,) = (row for row in recovery if row[0] == 'planted')
  # The oracle knows who is mixed and not how: (|0.5 - 0.7| + |0.5 - 0.3|) / 2 for half of the clients.
  assert planted[1:] == [
    'oracle',
    '4, 4, 4',
    '1.5',
    '0, 0, 0',
    '1.00, 1.00, 1.00 (Omega)',
    '1.00, 1.00, 0.10',
  ]
  costs = {row[0]: row for row in next(rows for name, rows in tables.items() if 'FedAvg’s, times' in name)}
  sent = f'{70 * 6.65348:.0f} MB'
  of_parts = ['70 down 70 up', f'{sent} down {sent} up', '3,500 trained 0 forward', '10,500']
  assert costs[FEDAVG][1:] == ['70', *of_parts, '1.00', '70']
  assert costs[LOCAL][1:4] == ['70', '0 down 0 up', '0 B down 0 B up']
  assert costs[DITTO][1] == '140' and costs[DITTO][2:4] == of_parts[:2] and costs[DITTO][-2] == '2.00'
  # 14 clients, half of them in two groups: 21 client-rounds a round, of which 70 pay three.
  assert costs['planted'][1:3] == ['105', '105 down 105 up'] and costs['planted'][-2:] == ['1.50', '63']
  shown = drawn.text(text)
  assert '1,200' in shown and f'python -m phases.compare {_HOSTILE}' in shown and _HOSTILE not in text
  for seed, results in runs:
    assert results['digest'] in shown and document['digests'][str(seed)] == results['digest']


def test_costs_in_bytes_have_their_words_everywhere(tmp_path):
  runs = comparison_runs.make({FEDAVG: constant(0.6), 'overlap': noisy(0.7)}, {'overlap': noisy(0.5)})
  for _, results in runs:
    results['config']['evaluation']['budget'] = 'bytes'
  path = page.write(comparison_runs.typed(runs), {}, tmp_path)
  text, tables = drawn.text(path.read_text()), _tables(path.read_text())
  assert 'At equal bytes' in tables and 'the last round that FedAvg’s bytes pay' in text
  assert 'equal client-rounds' not in text
  with (tmp_path / 'comparison.csv').open(newline='') as stream:
    lines = list(csv.DictReader(stream))
  assert {line['budget'] for line in lines} == {ROUNDS, BYTES}
  # 10 clients of 50 rows in each of 4 rounds, 20 bytes down and 10 up; FedAvg's 24 client-rounds pay two of its rounds.
  for line in lines:
    if line['contender'] == 'overlap':
      count = 40 if line['budget'] == ROUNDS else 20
      names = (
        'client_rounds',
        'models_down',
        'models_up',
        'bytes_down',
        'bytes_up',
        'rows_trained',
        'rows_forward',
        'passes',
      )
      expected = (count, count, count, 20 * count, 10 * count, 50 * count, 0, 150 * count)
      assert [int(line[name]) for name in names] == list(expected)
  (axes,) = figures.frontier([_mark('a', 'disjoint', cost=2e6)], 'bytes').axes
  assert axes.get_xlabel() == 'bytes of Phase 2, mean over seeds'
  assert axes.xaxis.get_major_formatter()(2e6) == '2 MB'


def test_csv_has_a_line_for_each_contender_seed_and_budget(written):
  folder, _, document, runs = written
  with (folder / 'comparison.csv').open(newline='') as stream:
    lines = list(csv.DictReader(stream))
  by_rule = [column for column in lines[0] if column.startswith(('global_', 'clients_'))]
  rules = ('average', 'weighted', 'blended')
  assert by_rule == [f'{rows}_{name}' for rows in ('global', 'clients') for name in rules]
  names = [contender['name'] for contender in document['contenders']]
  assert [(line['contender'], line['seed'], line['budget']) for line in lines] == [
    (name, str(seed), budget) for name in names for seed in (0, 1, 2) for budget in _BUDGETS
  ]
  baselines = {str(s): np.array(r['baseline']['evaluation']['client_accuracy']) for s, r in runs}
  for line in lines:
    has_global = line['budget'] == ROUNDS and line['kind'] not in _OWN
    assert line['kind'] in KINDS and (line['global_average'] != '') == has_global
    if line['contender'] == 'kmeans':
      own = np.array(runs[int(line['seed'])][1]['clusterings'][0]['evaluations']['own']['client_accuracy'])
      assert float(line['accuracy']) == pytest.approx(own.mean())
      assert float(line['harmed_fedavg']) == np.mean(own < baselines[line['seed']])
    scores = ('ari', 'omega', 'share_error')
    rounds = ('collapsed', 'empty_models', 'changed_last')
    clustering = next(
      (c for c in runs[int(line['seed'])][1]['clusterings'] if c['label'] == line['contender']), {}
    )
    told = clustering.get('recovery', {}).get('mixture', {})
    assert [line[name] for name in scores] == [
      '' if told.get(name) is None else str(told[name]) for name in scores
    ]
    # Of four models of the rounds that are made up, one is nobody's, and all is settled after four rounds.
    expected = ['1', '1', '0'] if line['contender'] == 'ifca' else [''] * 3
    assert [line[name] for name in rounds] == expected
    if line['contender'] == FEDAVG:
      assert line['harmed_fedavg'] == '' and line['num_clusters'] == ''
  assert [{k: '' if v is None else str(v) for k, v in line.items()} for line in document['lines']] == lines


def test_collapse_is_counted_over_the_seeds(written):
  _, text, document, _ = written
  name = 'Methods that alternate between clustering and training'
  header, row = _tables(text)[name]
  assert header[1:3] == ['collapsed', 'all in one']
  assert row == ['ifca', '3 of 3', '0 of 3', '1 of 4, 1 of 4, 1 of 4', '0, 0, 0', '0, 0, 0']
  assert 'Models ended without clients: ifca (3 of 3 seeds).' in document['alarms']


def test_json_documents_itself_and_every_picture_is_named(written):
  folder, text, document, _ = written
  told = saved.__doc__.split('comparison.json holds')[1].split('\n  SUMMARY')[0]
  assert list(document) == re.findall(r'^  ([a-z_]+) {2,}', told, flags=re.M)
  names = ('frontier', 'gains', 'worst_decile')
  files = sorted(path.name for path in (folder / 'figures').iterdir())
  assert files == sorted(f'{name}.{ending}' for name in names for ending in ('svg', 'png'))
  assert all(f'figures/{name}.svg and .png' in text for name in names)


def test_equal_runs_give_equal_files_in_any_order(written, tmp_path):
  folder, _, _, runs = written
  page.write(comparison_runs.typed(runs)[::-1], _FACTS, tmp_path)
  for name in ('index.html', 'comparison.json', 'comparison.csv'):
    assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def _page(folder, accuracies, **options):
  runs = comparison_runs.typed(comparison_runs.make(accuracies, **options))
  text = page.write(runs, {}, folder).read_text()
  return drawn.text(text), json.loads((folder / 'comparison.json').read_text())


def test_a_comparison_of_few_things_says_nothing_of_others(tmp_path):
  text, document = _page(tmp_path, {FEDAVG: constant(0.5, 1), 'kmeans': constant(0.6, 1)}, truth='none')
  assert 'Only 1 seed was run' in text and 'against alone' not in text
  assert 'no overlapping clustering, or nothing to compare it with' in text
  assert 'so nothing is expected of overlap here' in text and 'No planted groups are known' in text
  assert not any(words in text for words in ('alicious', 'ew client', 'The overlap dial'))
  assert [document[part] for part in ('malicious', 'new_clients', 'dial')] == [None] * 3


def test_a_comparison_without_clusterings_and_without_variety(tmp_path):
  assert 'No clustering was run' in _page(tmp_path, {FEDAVG: constant(0.0, 1, 1)}, groups=1)[0]
  assert not (tmp_path / 'figures' / 'gains.png').exists()


def test_nothing_is_written_for_runs_that_are_not_one_experiment(tmp_path):
  runs = comparison_runs.typed(comparison_runs.make({FEDAVG: constant(0.5), 'kmeans': constant(0.6)}))
  with pytest.raises(InputError, match='seed 0 is given twice'):
    page.write([runs[0], runs[0]], {}, tmp_path / 'new')
  assert not (tmp_path / 'new').exists()


# --- Pictures ---


def _mark(name, kind, budget='equal rounds', accuracy=0.8, cost=100.0, memberships=1.0, gain=0.02):
  interval = None if kind == 'fedavg' else Interval(gain, gain - 0.01, gain + 0.01)
  return figures.Mark(
    name, kind, budget, Interval(accuracy, accuracy - 0.02, accuracy + 0.02), accuracy - 0.1, interval, cost, memberships, 1e4 * cost
  )  # fmt: skip


def _gains(marks):
  return gains.draw([gains.Gain(m.name, m.kind, m.budget, m.gain) for m in marks if m.gain])


def _many():
  kinds = [*REFERENCES, *['disjoint'] * 6, *['overlapping'] * 4, 'oracle']
  names = [f'{kind} with a rather long name {i}' for i, kind in enumerate(kinds)]
  return [
    _mark(name, kind, budget, 0.8 + 0.001 * i, 100.0 if later or kind != 'overlapping' else 400.0 + i, 3.0 if kind == 'overlapping' else 1.0)
    for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
    for later, budget in enumerate(('equal rounds', 'equal client-rounds'))
  ]  # fmt: skip


@pytest.mark.parametrize('draw', [_gains, figures.frontier, figures.worst_beside_mean])
def test_texts_do_not_overlap_nor_leave_the_picture(draw):
  figure = draw(_many())
  canvas = FigureCanvasAgg(figure)
  canvas.draw()
  renderer = canvas.get_renderer()
  boxes = [axes.xaxis.label.get_window_extent(renderer) for axes in figure.axes]
  boxes += [text.get_window_extent(renderer) for legend in figure.legends for text in legend.get_texts()]
  for axes in figure.axes:
    named = [*axes.get_yticklabels(), *axes.get_xticklabels()]
    ticks = [text.get_window_extent(renderer) for text in named if text.get_visible() and text.get_text()]
    # Matplotlib keeps ticks beyond the end of an axis and does not draw them.
    x1, y1 = 2 * axes.bbox.x1 + 2, 2 * axes.bbox.y1 + 2
    boxes += [box for box in ticks if box.x0 + box.x1 <= x1 and box.y0 + box.y1 <= y1]
  assert len(boxes) > 10
  for box in boxes:
    assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= figure.bbox.x1 + 1 and box.y1 <= figure.bbox.y1 + 1
  for one, two in itertools.combinations(boxes, 2):
    assert not one.shrunk(0.98, 0.98).overlaps(two.shrunk(0.98, 0.98))


def test_gains_are_drawn_where_they_are():
  marks = [_mark('k', 'disjoint', gain=0.02), _mark('k', 'disjoint', 'equal client-rounds', gain=-0.03)]
  axes = _gains([*marks, _mark('f', 'fedavg')]).axes[0]
  lines = {line.get_gid(): line for line in axes.get_lines() if line.get_gid()}
  first, second = lines['gain k equal rounds'], lines['gain k equal client-rounds']
  assert (first.get_xdata()[0], second.get_xdata()[0]) == pytest.approx((2.0, -3.0))
  assert first.get_ydata()[0] < second.get_ydata()[0] and second.get_markerfacecolor() == 'white'


def _places(*marks):
  offsets = [c.get_offsets()[0] for c in figures.frontier(marks).axes[0].collections]
  return [(float(x), pytest.approx(float(y))) for x, y in offsets]


def test_a_frontier_moves_only_what_would_be_hidden_and_marks_twice_only_what_costs_more():
  apart = [
    _mark(*mark, accuracy=y)
    for *mark, y in (('a', 'disjoint', 0.6), ('b', 'disjoint', 0.8), ('c', 'oracle', 0.7))
  ]
  assert _places(*apart) == [(100.0, 60.0), (100.0, 80.0), (100.0, 70.0)]
  *others, hidden = _places(*apart, _mark('d', 'disjoint', accuracy=0.8))
  assert others == _places(*apart) and hidden[0] > 100.0 and hidden[1] == pytest.approx(80.0)
  free, paid = (
    _mark('o', 'overlapping', accuracy=0.9, cost=300.0),
    _mark('o', 'overlapping', 'equal client-rounds', 0.85, 90.0),
  )
  same = _mark('a', 'disjoint'), _mark('a', 'disjoint', 'equal client-rounds')
  assert _places(*same, free, paid) == [(100.0, 80.0), (300.0, 90.0), (90.0, 85.0)]
