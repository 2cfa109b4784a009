"""Malicious clients in the run report: every number by hand, and no word where everybody is honest."""

import html
import re

import pytest

from tests.made_up import finished_run as made_up
from tests.made_up import run_with_malicious
from tests.made_up.drawn import drawn
from tff_cluster.report.finished_run import read_run
from tff_cluster.report.malicious_section import attack_words, isolation_words, malicious_section
from tff_cluster.report.report import write_report
from tff_cluster.storage import files

FEDAVG = [0.5, 0.6, 0.7, 0.1, 0.2, 0.6]
OWN = {'kmeans': [0.9, 0.8, 0.7, 0.3, 0.5, 1.0], 'planted': [1.0] * 6}
BESIDE = {'kmeans': 0.25, 'planted': 0.0}


@pytest.fixture
def results(tmp_path):
  made = made_up.write_run(tmp_path, num_clients=6, groups=2, methods=('kmeans', 'planted'))
  made['baseline']['evaluation']['client_accuracy'] = FEDAVG
  for clustering in made['clusterings']:
    clustering['evaluations']['own']['client_accuracy'] = OWN[clustering['label']]
  run_with_malicious.add(made, [3, 4], BESIDE, dropped=7, attack='scaled', attack_scale=5.0)
  files.save_json(tmp_path / 'results.json', made)
  return made


def text_of(markup):
  return html.unescape(re.sub('<[^>]+>', '', ''.join(markup)))


def cells(markup):
  rows = re.findall('<tr>(.*?)</tr>', ''.join(markup), flags=re.S)
  found = [re.findall('<t[hd][^>]*>(.*?)</t[hd]>', row, flags=re.S) for row in rows]
  return [[html.unescape(re.sub('<[^>]+>', '', cell)) for cell in row] for row in found]


def test_every_number_is_in_the_table(results, tmp_path):
  header, fedavg, kmeans, planted = cells(drawn(malicious_section(read_run(tmp_path))))
  assert len(header) == len(fedavg) == len(kmeans) == len(planted) == 8
  # Honest: (0.5 + 0.6 + 0.7 + 0.6) / 4, malicious: (0.1 + 0.2) / 2.
  assert fedavg == ['FedAvg without clusters', '60.0%', '–', '15.0%', '–', '–', '–', '7']
  assert kmeans == ['kmeans', '85.0%', '+25.0', '40.0%', '2', '25.0%', 'ARI 0.50', '7']
  assert planted[1:4] == ['100.0%', '+40.0', '100.0%'] and planted[5] == '0.0%'


def test_the_sentences(results, tmp_path):
  told = text_of(drawn(malicious_section(read_run(tmp_path))))
  assert '2 clients of 6 are malicious: each sends a multiple of its update (times 5).' in told
  # The oracle keeps them apart, but is no method.
  assert 'No clustering isolated them: with kmeans, 25.0% of the honest clients share a cluster' in told


@pytest.mark.parametrize(
  ('beside', 'words'),
  [
    ({}, 'There is no clustering that could isolate them.'),
    ({'k': None}, 'There is no clustering that could isolate them.'),
    ({'k': 0.0}, 'k isolated them: no honest client shares a cluster with a malicious one.'),
    (
      {'k': 0.0, 'ward': 0.5, 'cfl': 0.0},
      'k and cfl isolated them: no honest client shares a cluster with a malicious one; 1 of 3 clusterings did not.',
    ),
    (
      {'k': 0.6, 'ward': 0.5},
      'No clustering isolated them: with ward, the nearest, 50.0% of the honest clients share a cluster with a malicious '
      'one.',
    ),
  ],
)
def test_isolation_in_words(beside, words):
  assert isolation_words(beside) == words


def test_attacks_in_words():
  assert attack_words({}) == 'sends the negative of its update'
  assert (
    attack_words({'attack': 'sign_flip', 'attack_scale': 0.5})
    == 'sends the negative of its update (times 0.5)'
  )
  assert attack_words({'attack': 'nan'}) == 'sends NaN'
  assert 'labels that are turned round' in attack_words({'attack': 'label_flip'})


def test_every_attack_has_words():
  from tff_cluster.experiment import config

  assert len({attack_words({'attack': attack}) for attack in config.ATTACKS}) == len(config.ATTACKS)


def test_malicious_clients_and_another_aggregator_are_no_papers_setting():
  from tff_cluster.experiment import config
  from tff_cluster.papers.rohith2020.setting import describe_setting

  papers = config.ExperimentConfig(
    config.DataConfig(dataset='mnist', partition='pathological', num_clients=100), config.TrainingConfig()
  ).to_json()
  assert describe_setting(papers, 100).is_papers
  papers['data']['malicious_clients'] = 0.2
  assert describe_setting(papers, 100).departures == ('0.2 of the clients malicious, the paper has none',)
  del papers['data']['malicious_clients']
  papers['training']['aggregator'] = 'robust'
  assert describe_setting(papers, 100).departures == ('aggregator robust, the paper has the mean',)


def test_the_report_has_the_section_only_where_there_are_malicious_clients(results, tmp_path):
  page = write_report(tmp_path).read_text(encoding='utf-8')
  assert '<h2>Malicious clients</h2>' in page and '85.0%' in page
  assert page.count('Means over clients count the malicious ones too') == 1
  del results['malicious']
  files.save_json(tmp_path / 'results.json', results)
  assert malicious_section(read_run(tmp_path)) is None
  page = write_report(tmp_path).read_text(encoding='utf-8')
  assert '<h2>Malicious clients</h2>' not in page and 'count the malicious ones' not in page


def test_where_none_of_them_takes_part(results, tmp_path):
  run_with_malicious.add(results, [], dict.fromkeys(BESIDE, 0.0))
  files.save_json(tmp_path / 'results.json', results)
  told = text_of(drawn(malicious_section(read_run(tmp_path))))
  assert (
    '0 clients of 6 are malicious' in told
    and 'None of them takes part.' in told
    and 'isolated them' not in told
  )
