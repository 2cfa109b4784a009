"""Published numbers, settings and verdicts: the paper agrees with itself, and verdicts can fail."""

import json

import pytest

from tff_cluster import config
from tff_cluster.reporting import published
from tff_cluster.reporting.setting import describe_setting


def _setting(num_clients=100, data=None, **training):
  data = {'dataset': 'mnist', 'partition': 'pathological', 'num_clients': num_clients} | (data or {})
  experiment = config.ExperimentConfig(
    data=config.DataConfig(**data), training=config.TrainingConfig(**training)
  )
  return describe_setting(experiment.validated().to_json(), num_clients)


def _value(table, method, quantity):
  found = [
    n.value for n in published.PUBLISHED if (n.table, n.method, n.quantity) == (table, method, quantity)
  ]
  assert len(found) == 1
  return found[0]


def test_gains_are_those_that_section_7_tells_in_words():
  # "There is a difference of 0.9% between phase 1 and phase 3 with K-means ... With dynamic clustering ... 2%."
  gains = [
    _value('Table 3', m, 'average_global') - _value('Table 3', m, 'phase1_global')
    for m in ('kmeans', 'dynamic_distance')
  ]
  assert gains == pytest.approx([0.009, 0.02])


def test_clients_exceed_briggs_and_fewer_are_at_the_top_as_section_7_says():
  for method in ('kmeans', 'dynamic_distance'):
    assert _value('Table 2', method, 'highest') > _value('Table 1', 'hierarchical', 'own_highest')
    assert _value('Table 2', method, 'share_at_highest') < _value(
      'Table 1', 'hierarchical', 'own_share_at_highest'
    )


def test_every_table_is_there_and_every_value_is_a_share():
  assert {n.table: sum(m.table == n.table for m in published.PUBLISHED) for n in published.PUBLISHED} == {
      'Table 1': 2, 'Table 2': 4, 'Table 3': 6
  }  # fmt: skip
  assert all(0 < n.value < 1 and n.source for n in published.PUBLISHED)


@pytest.mark.parametrize(
  ('ours', 'expected'),
  [
    (None, 'not run'),
    (0.934, 'reproduced (within 1 point)'),
    (0.944, 'reproduced (within 1 point)'),
    (0.924, 'reproduced (within 1 point)'),
    (0.9441, 'differs by just over 1 point (ours is higher)'),
    (0.9451, 'differs by 1.1 points (ours is higher)'),
    (0.9, 'differs by 3.4 points (ours is lower)'),
  ],
)
def test_verdict_in_the_papers_setting(ours, expected):
  assert published.verdict(0.934, ours, _setting()) == expected


def test_another_setting_is_never_a_reproduction_and_says_what_it_was():
  scaled = _setting(20, {'dataset': 'digits', 'partition': 'label_swapped'}, phase1_rounds=5, phase2_rounds=5)
  close, far = published.verdict(0.934, 0.934, scaled), published.verdict(0.934, 0.8, scaled)
  assert close == 'within 1 point (run on digits, 20 clients, label_swapped, 5 + 5 rounds; scaled down)'
  assert far == (
    'differs by 13.4 points (ours is lower; run on digits, 20 clients, label_swapped, 5 + 5 rounds; scaled down)'
  )


def test_the_papers_setting_departs_in_nothing():
  assert _setting().is_papers and _setting().remark == ''
  assert _setting(data={'dataset': 'emnist', 'partition': 'by_writer'}).is_papers


@pytest.mark.parametrize(
  ('changes', 'phrase', 'scaled_down'),
  [
    ({'num_clients': 20}, '20 clients', True),
    ({'num_clients': 200}, '200 clients', False),
    ({'phase2_rounds': 5}, '20 + 5 rounds', True),
    ({'learning_rate': 0.05}, 'learning rate 0.05', False),
    ({'model': '2nn'}, 'model 2nn', False),
    ({'cohort_fraction': 0.5}, '0.5 of the clients', False),
    ({'data': {'dataset': 'cifar10'}}, 'data cifar10', False),
    ({'data': {'dataset': 'emnist', 'partition': 'by_writer', 'emnist_classes': 62}}, '62 classes', False),
    ({'data': {'partition': 'iid'}}, 'IID', False),
    ({'data': {'rows_per_client': 100}}, '100 rows a client', True),
  ],
)
def test_each_departure_is_named(changes, phrase, scaled_down):
  found = _setting(**changes)
  assert not found.is_papers and found.scaled_down is scaled_down
  assert len(found.departures) == 1 and phrase in found.departures[0]


def test_scorecard_files_are_legal_json_and_csv(tmp_path):
  import csv

  from tff_cluster.reporting.scorecard import Row, write_scorecard

  rows = [
    Row('Table 3', 'a, "b"', 0.9, 0.91, 1.0, 'reproduced', 'né\nw'),
    Row('Claim', 'c', 'x', None, None, 'not run', ''),
  ]
  as_json, as_csv = write_scorecard(rows, tmp_path)
  assert [r['ours'] for r in json.loads(as_json.read_text())] == [0.91, None]
  with as_csv.open(newline='') as stream:
    read = list(csv.DictReader(stream))
  assert [r['cell'] for r in read] == ['a, "b"', 'c'] and read[0]['note'] == 'né\nw' and read[1]['ours'] == ''
