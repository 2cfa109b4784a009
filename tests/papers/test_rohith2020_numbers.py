"""Published numbers, settings and verdicts: the paper agrees with itself, and verdicts can fail."""

import dataclasses

import pytest

from tests.made_up import in_json
from tff_cluster.experiment import config, preset
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.papers import rohith2020
from tff_cluster.papers.rohith2020.setting import describe_setting
from tff_cluster.scorecard import cells
from tff_cluster.scorecard.published import PAPER
from tff_cluster.scorecard.rows import Ours, Row, Run
from tff_cluster.scorecard.units import PERCENT
from tff_cluster.studies.reproduction import runs

PUBLISHED = {name.partition('/')[2]: entry for name, entry in rohith2020.PUBLISHED.items()}
METHODS = ('K-means', 'Dynamic clustering')
_KMEANS = (config.ClusteringConfig('kmeans'),)


def _setting(num_clients=100, data=None, **training):
  data = {'dataset': 'mnist', 'partition': 'pathological', 'num_clients': num_clients} | (data or {})
  experiment = config.ExperimentConfig(
    data=config.DataConfig(**data), training=config.TrainingConfig(**training)
  )
  return describe_setting(experiment.validated(), num_clients)


def _value(table, row, column):
  (found,) = [cell.published for cell in PUBLISHED[table].cells if (cell.row, cell.column) == (row, column)]
  return found


def test_gains_are_those_that_section_7_tells_in_words():
  # "There is a difference of 0.9% between phase 1 and phase 3 with K-means ... With dynamic clustering ... 2%."
  gains = [_value('table3', m, 'average_global') - _value('table3', m, 'phase1_global') for m in METHODS]
  assert gains == pytest.approx([0.9, 2.0])
  # Clients exceed Briggs et al., and fewer are at the top.
  mean, share = (cell.published for cell in PUBLISHED['table1'].cells)
  for method in METHODS:
    assert _value('table2', method, 'highest') > mean
    assert _value('table2', method, 'share_at_highest') < share


def test_every_number_is_the_printed_one():
  printed = {name: [cell.published for cell in entry.cells] for name, entry in PUBLISHED.items()}
  assert printed == {
    'table1': [98.1, 67.0], 'table2': [99.6, 26.0, 99.7, 28.0], 'table3': [92.5, 93.4, 93.4, 91.0, 93.0, 93.0],
    'figure4': [], 'figure5': [],
  }  # fmt: skip


def test_table_1_quotes_table_4_of_briggs_and_like_stands_beside_like():
  from tff_cluster.papers import briggs2020

  theirs = {c.column: c for c in briggs2020.PUBLISHED['fl_hc/table4'].cells if c.row == 'L2, single'}
  mean, share = PUBLISHED['table1'].cells
  assert mean.published == theirs['accuracy_end'].published
  assert share.published == theirs['share_end'].published
  own = {'clients': {'mean_client_accuracy': 0.8}, 'client_accuracy': [0.99, 1.0, 0.98, 0.23]}
  clustering = in_json.record(Clustering, {'evaluations': {'own': own}})
  ours = Ours(Row(mean.row, {}, {}), (Run(0, in_json.typed({'config': {}}), clustering),))
  assert (mean.read(ours), share.read(ours)) == ((80.0,), (50.0,))


def _verdict(published, ours, setting):
  cell = cells.Cell('r', 'c', '', PERCENT, lambda _: (ours,), published)
  found = None if ours is None else Ours(Row('r', {}, {}), ())
  return cells.line('t', 's', cell, found, setting.remark).verdict


def test_another_setting_is_never_a_reproduction_and_says_what_it_was():
  scaled = _setting(20, {'dataset': 'digits', 'partition': 'label_swapped'}, phase1_rounds=5, phase2_rounds=5)
  close, far = _verdict(93.4, 93.4, scaled), _verdict(93.4, 80.0, scaled)
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
    ({'data': {'malicious_clients': 0.2}}, '0.2 of the clients malicious, the paper has none', False),
    ({'aggregator': 'robust'}, 'aggregator robust, the paper has the mean', False),
  ],
)
def test_each_departure_is_named(changes, phrase, scaled_down):
  found = _setting(**changes)
  assert not found.is_papers and found.scaled_down is scaled_down
  assert len(found.departures) == 1 and phrase in found.departures[0]


@pytest.mark.parametrize('name', PUBLISHED)
def test_the_papers_scale_is_its_preset_and_the_small_one_the_demo(name, tmp_path):
  entry = PUBLISHED[name]
  for scale, flags in ((PAPER, 'rohith2020_mnist'), (entry.small, 'demo')):
    (job,) = runs.plan(entry, scale, (0,), tmp_path)
    assert job.config == preset.read_preset(flags, {}, job.config.clusterings)
    setting = describe_setting(job.config, job.config.data.num_clients)
    assert setting.is_of_paper and setting.is_papers == (scale is PAPER)
    assert [row.name for row in job.rows] == [row.name for row in entry.rows]
    assert job.folder.root.name.startswith('seed0_')


def test_the_demos_clusterings_are_those_of_the_small_scale(tmp_path):
  given = (preset.FOLDER / 'demo.flags').read_text().splitlines()
  asked = [line for line in given if line.startswith('--clustering')]
  (job,) = runs.plan(PUBLISHED['table2'], PUBLISHED['table2'].small, (0,), tmp_path)
  told = [(c.method, c.options) for c in job.config.clusterings]
  assert [method for method, _ in told] == ['kmeans', 'dynamic_distance']
  assert f'num_clusters={told[0][1].num_clusters}' in asked[0]
  assert f'distance_threshold={told[1][1].distance_threshold}' in asked[1]


def test_departures_from_what_the_paper_prescribes():
  row = PUBLISHED['table2'].rows[1]

  def found(signature, threshold, variant):
    told = {'signature': signature, 'parameters': {'distance_threshold': threshold, 'variant': variant}}
    return in_json.record(Clustering, told)

  assert row.departures(found('updates', 'mean', 'ego')) == [
    'signature updates, the paper has weights',
    'variant ego, the paper has cliques',
  ]
  # The mean is the default.
  assert row.departures(found('weights', None, 'cliques')) == []
  assert dataclasses.replace(row, prescribed={}).departures(found('updates', 'mean', 'ego')) == []


# The README's table of this paper: these commands, and no other preset.
_OF_PAPER = {'rohith2020_mnist': False, 'rohith2020_emnist': False, 'demo': True}


def _described(name, changes=None, clusterings=_KMEANS):
  experiment = preset.read_preset(name, changes or {}, clusterings)
  return describe_setting(experiment, experiment.data.num_clients)


@pytest.mark.parametrize('name', sorted(path.stem for path in preset.FOLDER.glob('*.flags')))
def test_only_the_presets_that_the_readme_gives_are_of_the_paper(name):
  found = _described(name)
  assert found.is_of_paper == (name in _OF_PAPER)
  if name in _OF_PAPER:
    assert bool(found.departures) == _OF_PAPER[name]


@pytest.mark.parametrize(
  'changes', [{'seed': 7}, {'data_seed': 3}, {'num_folds': 5}, {'target_accuracy': 0.5}]
)
def test_seeds_and_what_is_measured_beside_are_free(changes):
  assert _described('demo', changes).is_of_paper


@pytest.mark.parametrize(
  'changes',
  [
    {'num_clients': 19}, {'model': '2nn'}, {'partition': 'rotated'}, {'phase2_rounds': 11}, {'learning_rate': 0.1}, {'malicious_clients': 0.2},
    {'aggregator': 'robust'}, {'rows_per_client': 30}, {'cohort_fraction': 0.5},
  ],
)  # fmt: skip
def test_another_setting_is_another_experiment(changes):
  assert not _described('demo', changes).is_of_paper


def test_other_methods_on_the_paper_setting_are_not_the_papers():
  assert not _described('rohith2020_mnist', clusterings=(config.ClusteringConfig('planted'),)).is_of_paper
  several = (config.ClusteringConfig('planted'), *_KMEANS)
  assert _described('rohith2020_mnist', clusterings=several).is_of_paper
