"""Leagues: settings are read, methods are ranked as SciPy ranks, and the answer says what the intervals say."""

import csv
import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

from tests.made_up import comparison_runs, run_with_malicious, two_languages
from tests.made_up.comparison_runs import FEDAVG, constant, noisy
from tff_cluster.base.errors import InputError
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig
from tff_cluster.scorecard.contenders import ROUNDS
from tff_cluster.scorecard.intervals import Interval
from tff_cluster.studies.league import own_folder, page, settings, standings

CONFIG = ExperimentConfig(
  DataConfig(num_clients=8, num_groups=2),
  clusterings=(ClusteringConfig('planted'), ClusteringConfig('kmeans')),
)


@pytest.fixture(scope='module')
def league():
  """Overlap wins in the first setting, loses in the second; in the third nothing is above FedAvg."""
  rng = np.random.default_rng(0)
  close = [(0.7 + 0.02 * rng.normal(size=6)).tolist() for _ in range(3)]
  first = {FEDAVG: constant(0.5), 'kmeans': constant(0.6), 'over': constant(0.8), 'planted': constant(0.9)}
  second = {FEDAVG: constant(0.5), 'kmeans': constant(0.9), 'over': constant(0.7), 'planted': constant(0.95)}
  third = {FEDAVG: noisy(0.7), 'kmeans': close, 'over': close[::-1], 'planted': noisy(0.6)}
  made = {'one': first, 'two': second, 'three': third}
  return {name: comparison_runs.typed(comparison_runs.make(each)) for name, each in made.items()}


def test_ranks_are_those_of_scipy_and_a_mean_over_settings(league):
  found = standings.measure(league)
  names = [FEDAVG, 'kmeans', 'over']
  accuracy = np.array(
    [
      [
        np.mean(
          results.baseline.evaluation.client_accuracy
          if name == FEDAVG
          else next(c for c in results.clusterings if c.label == name).evaluations['own'].client_accuracy
        )
        for name in names
      ]
      for runs in league.values()
      for _, results in runs
    ]
  )
  ranks = np.array([stats.rankdata(-row) for row in accuracy]).reshape(3, 3, 3)
  for standing in found.standings[ROUNDS]:
    k = names.index(standing.name)
    assert standing.rank.mean == pytest.approx(ranks[:, :, k].mean())
    assert list(standing.ranks.values()) == pytest.approx(ranks[:, :, k].mean(axis=1))
    low, high = stats.t.interval(0.95, 2, ranks[:, :, k].mean(), stats.sem(ranks[:, :, k].mean(axis=0)))
    assert (standing.rank.low, standing.rank.high) == pytest.approx((max(low, 1.0), min(high, 3.0)))
  means = [standing.rank.mean for standing in found.standings[ROUNDS]]
  assert means == sorted(means) and 'planted' not in {standing.name for standing in found.standings[ROUNDS]}


def test_two_seeds_give_ranks_without_intervals(league):
  found = standings.measure({name: runs[:2] for name, runs in league.items()}).standings[ROUNDS]
  assert all((standing.rank.low, standing.rank.high) == (None, None) for standing in found)
  assert [standing.rank.mean for standing in found] == sorted(np.mean(s.by_seed) for s in found)


def test_equal_accuracies_share_a_rank():
  assert standings.ranks_of(np.array([0.5, 0.9, 0.5])).tolist() == [2.5, 1.0, 2.5]
  # The same clients summed up in another order: rounding makes no better method.
  assert 0.1 + 0.2 != 0.3
  assert standings.ranks_of(np.array([[0.1 + 0.2, 0.3, 0.9]])).tolist() == [[2.5, 2.5, 1.0]]


def test_the_answer_says_where_methods_help_and_where_overlap_does(league):
  found = standings.measure(league)
  assert standings.helped(found, ROUNDS) == {
    'one': ['over', 'kmeans'],
    'two': ['kmeans', 'over'],
    'three': [],
  }
  sides = {name: pair.difference.side for name, pair in standings.overlap_answers(found, ROUNDS).items()}
  assert sides == {'one': 'above', 'two': 'below', 'three': 'unclear'}
  told = ' '.join(page.sentences(found, ROUNDS))
  assert 'one (over and kmeans) and two (kmeans and over)' in told and 'by such an interval, on three' in told
  assert 'Overlapping clusters lie above disjoint ones on one (over against kmeans: +20.0 points' in told
  assert 'Overlapping clusters lie below disjoint ones on two (over against kmeans: −20.0 points' in told
  assert (
    'overlapping clusters beat disjoint ones is undecided on three (over against kmeans: 0.0 points' in told
  )
  assert (
    'no verdicts: with so many methods Holm’s correction takes 7 seeds, and 3 were run' in told
    and 'validation rows choose the method' in told
  )


def test_what_a_method_did_over_all_settings_is_what_its_runs_say(league):
  found = standings.measure(league)
  told = standings.overall(found, 'over', ROUNDS)
  assert (told.above, told.below, told.unclear) == (2, 0, 1)
  every = [
    (results, next(c for c in results.clusterings if c.label == 'over'))
    for runs in league.values()
    for _, results in runs
  ]
  assert told.omega == pytest.approx(np.mean([c.recovery['group'].omega for _, c in every]))
  spent = [(results.phase1.cost + c.cost, results.baseline.cost) for results, c in every]
  for unit in ('client_rounds', 'bytes'):
    ratios = [getattr(own, unit) / getattr(fedavg, unit) for own, fedavg in spent]
    assert getattr(told, unit) == pytest.approx(np.mean(ratios))
  assert (told.collapsed, told.alternating) == (0, 0)


def test_settings_in_which_every_client_has_rows_of_every_group_have_no_omega():
  runs = comparison_runs.make({FEDAVG: constant(0.5), 'kmeans': constant(0.6)})
  for _, results in runs:
    results['population']['truths'] = {'group': [[0.5] * 6, [0.5] * 6]}
    results['clusterings'][0]['recovery'] = {
      'group': {'ari': None, 'nmi': None, 'omega': 1.0, 'share_error': 0.25}
    }
  found = standings.measure({'mixed': comparison_runs.typed(runs)})
  assert standings.overall(found, 'kmeans', ROUNDS).omega is None
  (section,) = [part for part in (page._setting(found, each) for each in found.settings)]
  (cell,) = [row[6] for row in section.data['table'].rows if row[0].words == 'kmeans' and row[10]][:1]
  assert (cell.words, cell.notes) == ('0.75', ('share match',))


def test_the_page_and_the_files_hold_the_same_numbers(league, tmp_path):
  target = page.write(league, {'command': 'python -m phases.compare <here>'}, tmp_path)
  text = target.read_text()
  assert 'python -m phases.compare &lt;here&gt;' in text and 'href="one/index.html"' in text
  lines = list(csv.DictReader((tmp_path / 'league.csv').read_text().splitlines()))
  assert {line['setting'] for line in lines} == set(league)
  (line,) = (
    each for each in lines
    if (each['setting'], each['contender'], each['seed'], each['budget']) == ('two', 'over', '1', ROUNDS)
  )  # fmt: skip
  assert float(line['accuracy']) == pytest.approx(0.7) and float(line['harmed_fedavg']) == 0.0
  document = json.loads((tmp_path / 'league.json').read_text())
  assert document['settings'] == list(league) and document['answer'][ROUNDS][0] in text
  assert (tmp_path / 'figures' / 'league.svg').exists()


def test_a_setting_whose_training_was_lost_is_an_alarm_on_the_first_screen(tmp_path):
  kept, lost = (comparison_runs.make({FEDAVG: constant(0.5), 'kmeans': constant(0.6)}) for _ in range(2))
  for _, results in kept + lost:
    results['baseline']['history']['validation_accuracy'][-1] = 1.0
  lost[0][1]['baseline']['history']['validation_accuracy'][-2:] = [0.9, 0.1]
  runs = {'kept': comparison_runs.typed(kept), 'lost': comparison_runs.typed(lost)}
  text = page.write(runs, {'command': 'c'}, tmp_path).read_text()
  (alarm,) = json.loads((tmp_path / 'league.json').read_text())['alarms']
  assert alarm.startswith('lost: Training lost what it had learnt') and 'from 90.0% to 10.0%' in alarm
  assert alarm in text


def test_a_setting_with_malicious_clients_says_that_ranks_are_over_all_clients(tmp_path):
  honest, attacked = (
    comparison_runs.make({FEDAVG: constant(0.5), 'kmeans': constant(0.6)}) for _ in range(2)
  )
  for _, results in attacked:
    run_with_malicious.add(results, (0,), {'kmeans': 1.0})
  runs = {'honest': comparison_runs.typed(honest), 'attacked': comparison_runs.typed(attacked)}
  text = page.write(runs, {'command': 'c'}, tmp_path).read_text()
  (alarm,) = json.loads((tmp_path / 'league.json').read_text())['alarms']
  assert alarm.startswith('attacked: ') and 'malicious' in alarm and alarm in text


def test_a_setting_changes_the_data_and_drops_what_does_not_apply():
  texts = ['swapped,partition=label_swapped,label_skew=30', 'plain,partition=iid', 'few,num_clients=4']
  swapped, plain, few = settings.read(texts, CONFIG)
  assert (swapped.name, swapped.config.data.partition, swapped.config.data.label_skew) == (
    'swapped',
    'label_swapped',
    30,
  )
  assert swapped.config.data.num_groups == 2 and swapped.config.clusterings == CONFIG.clusterings
  # Nothing is planted there, neither groups nor an oracle of them.
  assert plain.config.data == DataConfig(partition='iid', num_clients=8)
  assert [each.label for each in plain.config.clusterings] == ['kmeans']
  assert few.config.data.num_clients == 4


def test_where_several_groups_are_planted_an_oracle_that_names_none_has_the_digits():
  both = dataclasses.replace(
    CONFIG, clusterings=(*CONFIG.clusterings, ClusteringConfig('planted', name='sets', truth='label set'))
  )
  (setting,) = settings.read(['two_digits,partition=pathological'], both)
  options = {each.label: dict(each.given) for each in setting.config.clusterings}
  assert options == {'planted': {'truth': 'digit'}, 'kmeans': {}, 'sets': {'truth': 'label set'}}


def test_an_oracle_stays_wherever_groups_are_planted(tmp_path):
  def oracles(data, text, *truths):
    clusterings = [ClusteringConfig('planted', name=truth, truth=truth) for truth in truths]
    config = ExperimentConfig(data, clusterings=(*CONFIG.clusterings, *clusterings))
    (setting,) = settings.read([text], config)
    given = {each.label: dict(each.given).get('truth') for each in setting.config.clusterings}
    assert given.pop('kmeans') is None
    return given

  path = tmp_path / 'plays.txt'
  path.write_text(two_languages.plays(2, 300))
  text = DataConfig(dataset='text', data_file=str(path), partition='iid', num_clients=4, text_window=3)
  assert oracles(text, 'a') == {}
  assert oracles(text, 'a,partition=dirichlet,dirichlet_over=group') == {'planted': None}
  assert oracles(text, 'a,partition=by_writer') == {'planted': None}
  # Speakers of no play, and so of no group.
  path.write_text(f'ANN.\n{"abcd" * 60}\n\nBOB.\n{"abcd" * 60}\n')
  assert oracles(text, 'a,partition=by_writer') == {}
  digits = DataConfig(num_clients=8, num_groups=2)
  assert oracles(digits, 'a,partition=iid,malicious_clients=0.2') == {'planted': None}
  both = {'planted': 'group', 'malicious': 'malicious'}
  assert oracles(digits, 'a,malicious_clients=0.2', 'malicious') == both


def test_an_oracle_is_left_out_of_settings_without_its_groups_and_refused_where_it_is_left_out_of_all():
  named = ClusteringConfig('planted', name='bad', truth='malicious')
  config = dataclasses.replace(CONFIG, clusterings=(*CONFIG.clusterings, named))
  attacked, honest = settings.read(['attacked,partition=iid,malicious_clients=0.2', 'honest'], config)
  assert [each.label for each in attacked.config.clusterings] == ['planted', 'kmeans', 'bad']
  assert [each.label for each in honest.config.clusterings] == ['planted', 'kmeans']
  with pytest.raises(
    InputError, match=r'^clustering=planted,truth=malicious: no setting .* planted are group$'
  ):
    settings.read(['honest', 'plain,partition=iid'], config)


def test_an_oracle_of_a_user_without_options_is_kept_as_it_is(tmp_path, monkeypatch):
  (tmp_path / 'seers.py').write_text(
    'from tff_cluster.clustering.method import Method\nclass Seer(Method):\n  name, oracle = "seer", True\n'
    '  def cluster(self, options, evidence): ...\n'
  )
  monkeypatch.syspath_prepend(tmp_path)
  config = dataclasses.replace(CONFIG, clusterings=(ClusteringConfig('seers:Seer'),))
  (setting,) = settings.read(['a,partition=pathological'], config)
  assert setting.config.clusterings == config.clusterings


def test_runs_lie_below_their_setting(tmp_path):
  planned = settings.plan(settings.read(['a,num_clients=4', 'b'], CONFIG), (0, 3), tmp_path)
  places = [str(run.folder.root.relative_to(tmp_path)) for run in planned]
  assert places == ['a/seed_0', 'a/seed_3', 'b/seed_0', 'b/seed_3']
  assert [run.name for run in planned][:2] == ['a, seed 0', 'a, seed 3']
  assert planned[1].config.training.seed == planned[1].config.data.data_seed == 3


def test_a_setting_may_have_a_learning_rate_and_an_aggregator_of_its_own():
  slow, other = settings.read(['slow,partition=iid,learning_rate=0.001,aggregator=robust', 'other'], CONFIG)
  assert slow.config.training == dataclasses.replace(
    CONFIG.training, learning_rate=0.001, aggregator='robust'
  )
  assert slow.config.data.partition == 'iid' and other.config.training == CONFIG.training


def test_a_setting_may_have_options_of_a_clustering_of_its_own():
  config = dataclasses.replace(
    CONFIG, clusterings=(ClusteringConfig('kmeans', 'k', num_clusters=3), ClusteringConfig('kmeans', 'other', num_clusters=3))
  )  # fmt: skip
  more, plain = settings.read(['more,partition=iid,k.num_clusters=5', 'plain'], config)
  assert [c.options.num_clusters for c in more.config.clusterings] == [5, 3]
  assert [c.label for c in more.config.clusterings] == [
    'k',
    'other',
  ] and plain.config.clusterings == config.clusterings
  for text, words in (
    ('a,k.num_clusters=0', 'num_clusters'),
    ('a,k.num_clusters=many', 'k.num_clusters=many: '),
    ('a,k.clusters=4', "k.clusters: kmeans has no option 'clusters'; it has signature, num_clusters"),
    ('a,m.num_clusters=4', "m.num_clusters: no clustering is called 'm'; there are k, other"),
    ('a,k.num_clusters=4,k.num_clusters=5', 'k.num_clusters is given twice'),
  ):
    with pytest.raises(InputError, match=f'^setting={text}: .*{words}'):
      settings.read([text], config)


@pytest.mark.parametrize(
  ('texts', 'message'),
  [
    (['a,learning_rate=0'], 'learning_rate'),
    (
      ['a,batch_size=3'],
      'unknown field .batch_size.; known are those of the data, .* learning_rate, aggregator, and LABEL.OPTION of a clustering',
    ),
    (['a,partitions=iid'], 'unknown field .partitions.'),
    (['a,partition'], '.partition. is not FIELD=VALUE'),
    (['a,num_clients=many'], 'num_clients=many'),
    (['a,partition=iid,num_groups=3'], 'num_groups does not apply'),
    (['a,num_clients=4,num_clients=5'], 'num_clients is given twice'),
    (['a/b,num_clients=4'], 'must be a name'),
    (['a,num_clients=4', 'A'], 'two settings are called A'),
    (['a,data_seed=3'], 'unknown field .data_seed.'),
    *((['a', name], 'a league writes figures and store itself') for name in ('figures', 'store', 'Store')),
  ],
)
def test_a_wrong_setting_is_one_line(texts, message):
  with pytest.raises(InputError, match=rf'^setting={texts[-1]}: .*{message}'):
    settings.read(texts, CONFIG)


def test_what_a_league_writes_is_no_setting():
  # 'store' is where its runs share their artifacts (phases.compare).
  names = {name for name in own_folder.WRITTEN if '.' not in name}
  assert {*names, 'store'} == set(settings.RESERVED)


def ranked(by_seed):
  """Returns standings of methods with these mean ranks a seed, by name, the first given one ahead."""
  return [
    standings.Standing(name, 'disjoint', Interval(float(np.mean(ranks)), None, None), {}, tuple(ranks))
    for name, ranks in by_seed.items()
  ]


def test_who_is_shown_behind_the_first_holds_after_holm_over_all_others():
  first = np.array([1.0, 1.1, 1.0, 1.2, 1.0, 1.1] * 2)
  rng = np.random.default_rng(2)
  gaps = {f'm{k}': 0.25 * k + rng.normal(0.0, 1.2, 12) for k in range(1, 9)}
  p_values = {
    name: max(stats.ttest_1samp(gap, 0).pvalue, stats.binomtest(int((gap > 0).sum()), len(gap)).pvalue)
    for name, gap in gaps.items()
  }
  behind = set()
  for step, name in enumerate(sorted(p_values, key=p_values.get)):  # Holm 1979, step down.
    if p_values[name] >= 0.05 / (len(gaps) - step):
      break
    behind.add(name)
  uncorrected = {name for name, p_value in p_values.items() if p_value < 0.05}
  assert behind and behind < uncorrected  # Else the correction would not be seen.
  found = ranked({'first': first} | {name: first + gap for name, gap in gaps.items()})
  assert {each.name for each in standings.not_behind(found)} == set(gaps) - behind


def test_what_differs_alike_in_every_seed_is_behind_and_what_equals_the_first_is_not():
  found = ranked({'first': [1.0] * 7, 'twin': [1.0] * 7, 'last': [3.0] * 7})
  assert [each.name for each in standings.not_behind(found)] == ['twin']
  # Gaps that do not vary are no proof by themselves: six seeds can't show one of two by signs, and five give no verdict anywhere.
  for seeds in (6, 5):
    fewer = [dataclasses.replace(each, by_seed=each.by_seed[:seeds]) for each in found]
    assert [each.name for each in standings.not_behind(fewer)] == ['twin', 'last']


def test_ranks_that_are_equal_in_all_seeds_have_no_interval(league):
  assert standings._rank([2.0] * 6, 9) == Interval(2.0, None, None)
  # Overlap is first in one setting and second in the other one, k-means the other way round, in every seed.
  steady = standings.measure({name: league[name] for name in ('one', 'two')}).standings[ROUNDS]
  means = {'kmeans': 1.5, 'over': 1.5, FEDAVG: 3.0}
  assert {each.name: each.rank for each in steady} == {k: Interval(v, None, None) for k, v in means.items()}
  rank = standings._rank([2.0, 2.5, 2.0], 9)
  assert rank.low is not None and rank.low < 2.0


def test_a_first_rank_of_seven_seeds_is_told_with_who_is_not_shown_to_be_behind(league):
  found = standings.measure(league)
  told = ranked({'kmeans': [1.0] * 7, 'over': [1.0] * 7, FEDAVG: [3.0] * 7})
  seven = dataclasses.replace(found, seeds=tuple(range(7)), standings={ROUNDS: told})
  headline = page.headline(seven, ROUNDS)
  assert headline.startswith('Over 3 settings and 7 seeds at equal rounds, kmeans has the best mean rank (')
  assert headline.endswith(', but over is not shown to rank behind it.')
  assert page.headline(found, ROUNDS).endswith(
    '), and 3 seeds show no order of the 3 methods, which takes 7.'
  )


def test_one_seed_shows_no_order(league):
  one = standings.measure({name: runs[:1] for name, runs in league.items()})
  assert page.headline(one, ROUNDS).endswith('and 1 seed shows no order of the 3 methods, which takes 7.')
  found = standings.overall(one, 'kmeans', ROUNDS)
  assert (found.above, found.below, found.unclear) == (2, 0, 1)
