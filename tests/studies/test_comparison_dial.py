"""The overlap dial of a comparison: which position validation rows choose, and what is said of it, by hand."""

import json

import numpy as np
import pytest

from tests.made_up import comparison_runs
from tests.made_up.comparison_runs import FEDAVG, constant, noisy
from tff_cluster.scorecard.contenders import BUDGETS, CLIENT_ROUNDS, ROUNDS, checked, read_contenders
from tff_cluster.studies.comparison import dial as dials
from tff_cluster.studies.comparison import page

_THRESHOLDS = ('0', 'quantile:0.25', 'quantile:1')


def _runs(own, validation, *, kmeans=0.7, seeds=3):
  """Returns runs whose dial has these mean accuracies on test and validation rows; validation is [seeds][positions]."""
  labels = [f'dial_{i:02d}' for i in range(len(own))]
  accuracies = {FEDAVG: constant(0.6, seeds), 'kmeans': noisy(kmeans, seeds)}
  accuracies |= {label: noisy(value, seeds) for label, value in zip(labels, own, strict=True)}
  runs = comparison_runs.make(accuracies)
  for (_, results), of_seed in zip(runs, validation, strict=True):
    positions = [c for c in results['clusterings'] if c['label'] in labels]
    for i, (clustering, value) in enumerate(zip(positions, of_seed, strict=True)):
      clustering['parameters']['distance_threshold'] = _THRESHOLDS[i]
      clustering['threshold'] = [0.0, 2.5, 9.0][i]
      clustering['history']['validation_accuracy'][-1] = value
    for configured in results['config']['clusterings']:
      if configured['name'] in labels:
        configured['distance_threshold'] = _THRESHOLDS[labels.index(configured['name'])]
  return runs


def _dial(runs):
  ordered = checked(comparison_runs.typed(runs))
  return dials.read_dial(ordered, read_contenders(ordered), 0.99)


_OWN = (0.62, 0.9, 0.65)
_VALIDATION = [(0.5, 0.8, 0.7), (0.5, 0.8, 0.7), (0.5, 0.6, 0.7)]


def test_validation_rows_choose_a_position_under_every_seed():
  dial = _dial(_runs(_OWN, _VALIDATION))
  assert dial.chosen_positions == (1, 1, 2)
  assert [run.accuracy[ROUNDS].mean() for run in dial.chosen.runs] == pytest.approx([0.9, 0.9, 0.65])
  assert dial.summary(dial.chosen, ROUNDS).mean.mean == pytest.approx((0.9 + 0.9 + 0.65) / 3)
  # Test rows choose position 1 under all seeds, and say so.
  assert dials.hindsight(dial, ROUNDS) == 1
  chosen, hindsight = dials.sentences(dial)
  assert '(0.25, 0.25, together)' in chosen and 'Chosen on validation rows' in chosen
  assert hindsight.startswith('In hindsight, by test rows, the best of 3 positions is “0.25”: 90.0%')
  assert dial.thresholds == ((0.0,) * 3, (2.5,) * 3, (9.0,) * 3)
  assert [dial.label(i) for i in range(3)] == ['alone', '0.25', 'together']


def test_of_positions_that_are_equally_good_the_cheapest_is_chosen():
  runs = _runs(_OWN, [(0.5, 0.8, 0.8)] * 3)
  for _, results in runs:
    next(c for c in results['clusterings'] if c['label'] == 'dial_02')['ledger']['client_rounds'] -= 5
  assert _dial(runs).chosen_positions == (2, 2, 2)


@pytest.mark.parametrize(
  ('kmeans', 'verdict'), [(0.7, 'holds'), (0.9, 'undecided'), (0.99, 'fails')]
)  # The dial has 0.9.
def test_whether_the_dial_beats_disjoint_clusters_can_fail(kmeans, verdict):
  dial = _dial(_runs(_OWN, [(0.5, 0.8, 0.7)] * 3, kmeans=kmeans))
  checks = dials.make_checks(dial)
  assert [check.budgets for check in checks] == [(ROUNDS,), (CLIENT_ROUNDS,)]
  assert checks[0].finding.verdict == verdict
  assert checks[0].finding.note.startswith('against kmeans')


def test_without_a_disjoint_clustering_nothing_is_claimed():
  runs = _runs(_OWN, _VALIDATION)
  for _, results in runs:
    results['clusterings'] = [c for c in results['clusterings'] if c['label'] != 'kmeans']
    results['config']['clusterings'] = [c for c in results['config']['clusterings'] if c['name'] != 'kmeans']
    results['config']['clusterings'] = results['config']['clusterings'][-3:]
  assert {check.finding.verdict for check in dials.make_checks(_dial(runs))} == {'not run'}


def test_positions_are_no_contenders():
  runs = _runs(_OWN, _VALIDATION)
  assert [contender.name for contender in read_contenders(comparison_runs.typed(runs))] == [FEDAVG, 'kmeans']
  without = comparison_runs.make({FEDAVG: constant(0.6), 'kmeans': constant(0.7)})
  assert _dial(without) is None


def test_the_page_has_picture_table_and_checks(tmp_path, rendered):
  runs = comparison_runs.typed(_runs(_OWN, _VALIDATION))
  text = page.write(runs, {}, tmp_path).read_text()
  section = text[text.index('The overlap dial') :]
  assert (tmp_path / 'figures' / 'overlap_dial.svg').read_text().count('positions of the dial') == 2
  for told in ('alone', 'together', '90.0%', 'Chosen on validation rows'):
    assert told in section
  found = json.loads((tmp_path / 'comparison.json').read_text())['dial']
  assert [entry['quantile'] for entry in found['positions']] == [None, 0.25, 1.0]
  for entry, value in zip(found['positions'], _OWN, strict=True):
    assert entry['budgets'][ROUNDS]['accuracy']['mean'] == pytest.approx(value)
  assert found['chosen_positions'] == [1, 1, 2] and len(found['checks']) == len(BUDGETS)
  lines = (tmp_path / 'comparison.csv').read_text().splitlines()
  assert sum(line.startswith('dial_') for line in lines) == 3 * 3 * 2
  assert np.isclose(found['chosen'][ROUNDS]['over_fedavg']['interval']['mean'], (0.3 + 0.3 + 0.05) / 3)
