"""Trainings that lost what they had learnt, in one run and over seeds, and the ends of what is told."""

import pytest

from tests.made_up import comparison_runs
from tests.made_up.comparison_runs import FEDAVG, FINE_TUNED, LOCAL
from tff_cluster.report import lost_training
from tff_cluster.scorecard.contenders import read_contenders
from tff_cluster.scorecard.paired_statistics import measure
from tff_cluster.studies.comparison import alarms


def runs_of(curves, seeds=1):
  """Returns runs whose trainings have these accuracies on validation rows, one a seed."""
  levels = {name: [[0.5] * 4] * seeds for name in (FEDAVG, LOCAL, FINE_TUNED, 'kmeans')}
  made = comparison_runs.make(levels)
  for seed, results in made:
    histories = {FEDAVG: results['baseline']['history']}
    histories |= {
      name: each['history'] for name, each in zip((LOCAL, FINE_TUNED), results['personalized'], strict=True)
    }
    histories |= {each['label']: each['history'] for each in results['clusterings']}
    for name, of_seeds in curves.items():
      ends = of_seeds[seed]
      middle = len(histories[name]['validation_accuracy']) - len(ends)
      histories[name]['validation_accuracy'] = [ends[0]] * middle + list(ends)
  return comparison_runs.typed(made)


def told(curves, seeds=1):
  return lost_training.told([results for _, results in runs_of(curves, seeds)])


STEADY = {FEDAVG: [(0.4, 0.6)], LOCAL: [(0.5, 0.5)], FINE_TUNED: [(0.5, 0.41)], 'kmeans': [(0.4, 0.5)]}


def test_a_fifth_of_the_best_accuracy_may_go():
  assert told(STEADY) == ''
  found = told(STEADY | {LOCAL: [(0.5, 0.39)]})
  assert found.startswith(
    'Training lost what it had learnt, on validation rows: every client alone (from 50.0% to 39.0%). '
  )
  assert found.endswith('try a smaller one.')


def test_a_clustering_and_a_round_of_fine_tuning_that_later_ones_make_good_are_told():
  assert 'rows: kmeans (from 50.0% to 39.0%). ' in told(STEADY | {'kmeans': [(0.5, 0.39)]})
  # What is lost and won back by a training of many rounds is none.
  assert told(STEADY | {'kmeans': [(0.5, 0.3, 0.5)], LOCAL: [(0.5, 0.3, 0.5)]}) == ''
  assert 'rows: fine-tuned FedAvg (from 50.0% to 39.0%). ' in told(STEADY | {FINE_TUNED: [(0.5, 0.39, 0.55)]})


def test_the_seed_that_lost_most_is_named():
  curves = {name: ends * 3 for name, ends in STEADY.items()} | {FEDAVG: [(0.5, 0.6), (0.6, 0.4), (0.6, 0.1)]}
  assert 'FedAvg without clusters (from 60.0% to 10.0%, under 2 of 3 seeds). ' in told(curves, seeds=3)


@pytest.mark.parametrize('lost', [False, True])
def test_a_comparison_tells_it_first(lost):
  runs = runs_of(STEADY | ({FINE_TUNED: [(0.6, 0.2)]} if lost else {}))
  rows = read_contenders(runs)
  first, *_ = alarms.make_alarms(rows, measure(rows, 0.9), runs)
  assert first.startswith('Training lost') == lost
