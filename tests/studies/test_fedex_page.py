"""FedEx's numbers beside ours: ranks, units, verdicts, and the page that shows them."""

import csv
import json
import re

import numpy as np
import pytest
import scipy.stats

from tests.made_up import fedex_rows, in_json
from tests.made_up import scorecard_rows as made_up_rows
from tff_cluster.papers import miles2024
from tff_cluster.papers.miles2024.readings import numbers
from tff_cluster.scorecard import cells
from tff_cluster.scorecard.published import PAPER, Scale
from tff_cluster.scorecard.rows import Run
from tff_cluster.studies.reproduction import page

TABLE1, TABLE2, FIGURE3 = (miles2024.PUBLISHED[f'fedex/{name}'] for name in ('table1', 'table2', 'figure3'))
_SMALL = Scale('small', 'fewer clients')


def _lines(published, rows, scale=PAPER):
  found = cells.lines(published.name, published.source, published.cells, rows, scale.remark)
  return {(line.row, line.column): line for line in found}


@pytest.mark.parametrize('published', [TABLE1, TABLE2], ids=lambda p: p.name)
def test_what_is_printed_reproduces_what_is_printed(published):
  lines = _lines(published, fedex_rows.rows(published.name))
  compared = [line for line in lines.values() if line.published is not None]
  # FedAvg, FedEx and accuracies of experts, one of which is N/A in table 1, and in table 1 six losses.
  assert len(compared) == (4 + 6 + 6 if published is TABLE1 else 4 + 7)
  for line in compared:
    assert line.difference == pytest.approx(0.0, abs=1e-9)
    limit = '0.02' if line.column.endswith('_loss') else '1 point'
    assert line.verdict == f'reproduced (within {limit})'
  rest = [key for key, line in lines.items() if line.published is None]
  assert rest == ([('4 clusters', 'expert4_accuracy')] if published is TABLE1 else [])


def test_experts_are_compared_rank_by_rank_whatever_their_numbers_are():
  found = fedex_rows.experts(0.7798, (0.7478, 0.7131, 0.7211), (1.72, 1.77, 1.75))
  shuffled = _lines(TABLE1, fedex_rows.rows('fedex/table1', of3={'experts': (found,)}))
  assert shuffled == _lines(TABLE1, fedex_rows.rows('fedex/table1'))
  assert shuffled['3 clusters', 'expert1_accuracy'].published == 74.78
  assert shuffled['3 clusters', 'expert3_loss'].published == 1.77


@pytest.mark.parametrize(
  ('column', 'changes', 'verdict', 'small'),
  [
    ('expert1_loss', {'experts': (fedex_rows.experts(0.9, (0.7, 0.6, 0.5), (1.5, 1, 1)),)}, 'differs by 0.22 (ours is lower)', 'differs by 0.22 (ours is lower; scaled down: fewer clients)'),
    ('expert1_loss', {'experts': (fedex_rows.experts(0.9, (0.7, 0.6, 0.5), (1.74, 1, 1)),)}, 'reproduced (within 0.02)', 'within 0.02 (scaled down: fewer clients)'),
  ],
)  # fmt: skip
def test_verdicts_name_side_size_and_scale(column, changes, verdict, small):
  rows = fedex_rows.rows('fedex/table1', of3=changes)
  assert _lines(TABLE1, rows)['3 clusters', column].verdict == verdict
  assert _lines(TABLE1, rows, _SMALL)['3 clusters', column].verdict == small


def test_seeds_are_averaged_by_rank_with_students_interval():
  first = fedex_rows.experts(0.5, (0.9, 0.2, 0.4), (1.0, 2.0, 3.0))
  second = fedex_rows.experts(0.6, (0.1, 0.3, 0.7), (1.0, 2.0, 3.0))
  changes = {'seeds': (0, 1), 'experts': (first, second), 'baseline_global': (80.0, 90.0)}
  row = fedex_rows.row('fedex/table1', '3 clusters', **changes)
  assert numbers(row)['expert1_accuracy'] == pytest.approx([90.0, 70.0])
  assert numbers(row)['expert1_loss'] == [1.0, 3.0] and numbers(row)['expert3_loss'] == [2.0, 1.0]
  line = _lines(TABLE1, {'3 clusters': row})['3 clusters', 'expert2_accuracy']
  low, high = scipy.stats.t.interval(0.95, 1, loc=35.0, scale=scipy.stats.sem([40.0, 30.0]))
  assert (line.ours, line.low, line.high) == pytest.approx((35.0, low, high))


def test_what_was_not_run_or_not_measured_is_told_apart():
  lines = _lines(TABLE1, fedex_rows.rows('fedex/table1', of3={'experts': (None,)}))
  assert lines['3 clusters', 'fedex_accuracy'].verdict == 'not measured in this run'
  assert lines['3 clusters', 'fedavg_accuracy'].verdict == 'reproduced (within 1 point)'
  lines = _lines(TABLE1, {})
  assert {line.verdict for line in lines.values()} == {'not run'}


def test_figures_show_clusters_alone_and_have_no_numbers():
  assert _lines(FIGURE3, fedex_rows.rows('fedex/figure3')) == {}


def _results(noise):
  """What pictures need of a run's results: six clients, the last two of CIFAR-10 where there is noise."""
  ids = [f'c{i}' for i in range(6)]
  return in_json.typed(
    {
      'config': {},
      'population': {
        'client_ids': ids,
        'label_counts': (np.arange(6)[:, None] + np.eye(6, 10, dtype=int)).tolist(),
        'truths': {'source': [[1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]]} if noise else {},
      },
      'clusterings': [{'clusters': [ids[:2], ids[2:3], ids[3:4], ids[4:]]}],
    }
  )


def _write(folder, published, scale=PAPER, changes=None):
  rows = fedex_rows.rows(published.name, **(changes or {}))
  results = _results(published is FIGURE3)
  # Pictures are drawn from a run.
  runs = (Run(5, results, results.clusterings[0]),)
  rows = {name: made_up_rows.changed(found, runs=runs) for name, found in rows.items()}
  path = page.write_page(published, rows, scale, {'command': 'none'}, folder)
  return re.sub(r'data:image[^"]*', '', path.read_text())


def test_the_page_of_a_table(tmp_path):
  text = _write(tmp_path, TABLE1)
  plain = re.sub(r'<[^>]+>', '|', text)
  assert 'Miles et al. 2024, table 1 reproduces: of 6 claims 6 hold; of 16 printed numbers 16 agree' in plain
  assert 'within 1 point for accuracies and within 0.02 for losses' in plain
  assert 'shares of clients:' not in plain and 'right after the clustering' not in plain
  # The mean is 61% in fedex_rows, FedEx 77.98% and 9.01%.
  assert re.search(r'mean of the outputs\|+61\.00%\|+−16\.98 points\|+61\.00%\|+\+51\.99 points', plain)
  assert re.search(r'oracle: any expert is right\|+99\.00%\|+\+21\.02 points', plain)
  headings = re.findall(r'<h2[^>]*>(.*?)</h2>', text)
  order = [
    'The answer', 'The paper’s claims', 'The paper’s numbers beside ours', 'Where the loss comes from',
    'Clusters that were found', 'What the clusters hold',
  ]  # fmt: skip
  assert [h for h in headings if any(o in h for o in order)] == headings[:6]
  assert [any(o in h for h in headings[i : i + 1]) for i, o in enumerate(order)] == [True] * 6
  assert (tmp_path / 'figures/labels_4_clusters.svg').exists()
  records = json.loads((tmp_path / 'scorecard.json').read_text())
  written = list(csv.DictReader((tmp_path / 'scorecard.csv').open()))
  assert len(records) == len(written) == 17 + 6
  assert {r['column'] for r in written if r['row'] == '3 clusters'} >= {'fedex_accuracy', 'expert3_loss'}


def test_the_page_of_a_figure_shows_it_first(tmp_path):
  text = _write(tmp_path, FIGURE3, changes={'of4': {'accuracy_curve': {2: 30.0}}})
  headings = re.findall(r'<h2[^>]*>(.*?)</h2>', text)
  assert 'The figure' in headings[1]
  absent = ('beside ours', 'Where the loss', 'Over rounds')
  assert not any(words in heading for heading in headings for words in absent)
  assert 'classes of CIFAR-10' in text and 'Seed 5.' in text


def test_at_another_scale_nothing_is_called_reproduced(tmp_path):
  text = _write(tmp_path, TABLE2, _SMALL)
  assert 'reproduced (within' not in text and 'Scaled down: fewer clients' in text
  plain = re.sub(r'<[^>]+>', '|', text)
  assert re.search(
    r'FedEx, all experts together\|+[^|]*\|+80\.20%\|+80\.20%\|+0\.00\|+within 1 point\|', plain
  )


def test_a_table_without_experts_has_no_rules(tmp_path):
  none = {'of3': {'experts': (None,)}, 'of4': {'experts': (None,)}}
  assert 'Where the loss comes from' not in _write(tmp_path, TABLE1, changes=none)
