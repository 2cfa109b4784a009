"""Malicious clients in the run report: every number by hand, and no word where everybody is honest."""

import pytest

from tests.made_up import finished_run as made_up
from tests.made_up import run_with_malicious
from tests.made_up.drawn import drawn, rows, run_of, text
from tff_cluster.data.data_config import ATTACKS, DataConfig
from tff_cluster.experiment.config import ExperimentConfig, TrainingConfig
from tff_cluster.papers.rohith2020.setting import describe_setting
from tff_cluster.report.malicious_section import attack_words, isolation_words, malicious_section
from tff_cluster.report.report import write_report
from tff_cluster.storage import files

FEDAVG = [0.5, 0.6, 0.7, 0.1, 0.2, 0.6]
OWN = {'kmeans': [0.9, 0.8, 0.7, 0.3, 0.5, 1.0], 'planted': [1.0] * 6}
BESIDE = {'kmeans': 0.25, 'planted': 0.0}


def _results(malicious):
  results, _ = made_up.make_run(num_clients=6, groups=2, methods=('kmeans', 'planted'))
  results['baseline']['evaluation']['client_accuracy'] = FEDAVG
  for clustering in results['clusterings']:
    clustering['evaluations']['own']['client_accuracy'] = OWN[clustering['label']]
  run_with_malicious.add(results, malicious, BESIDE, dropped=7, attack='scaled', attack_scale=5.0)
  return results


def test_every_number_is_in_the_section():
  section = drawn(malicious_section(run_of(_results([3, 4]))))
  header, fedavg, kmeans, planted = rows(section)
  assert len(header) == len(fedavg) == len(kmeans) == len(planted) == 8
  # Honest: (0.5 + 0.6 + 0.7 + 0.6) / 4, malicious: (0.1 + 0.2) / 2.
  assert fedavg == ['FedAvg without clusters', '60.0%', '–', '15.0%', '–', '–', '–', '7']
  assert kmeans == ['kmeans', '85.0%', '+25.0', '40.0%', '2', '25.0%', 'ARI 0.50', '7']
  assert planted[1:4] == ['100.0%', '+40.0', '100.0%'] and planted[5] == '0.0%'
  assert '2 clients of 6 are malicious: each sends a multiple of its update (times 5).' in text(section)
  # The oracle keeps them apart, but is no method.
  assert 'No clustering isolated them: with kmeans, 25.0% of the honest clients share a cluster' in text(
    section
  )


def test_where_none_of_them_takes_part():
  told = text(drawn(malicious_section(run_of(_results([])))))
  assert '0 clients of 6 are malicious' in told and 'None of them takes part.' in told
  assert 'isolated them' not in told


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


def test_every_attack_has_words():
  assert len({attack_words(DataConfig(attack=attack)) for attack in ATTACKS}) == len(ATTACKS)
  assert attack_words(DataConfig()) == 'sends the negative of its update'
  assert attack_words(DataConfig(attack_scale=0.5)) == 'sends the negative of its update (times 0.5)'


@pytest.mark.parametrize(
  ('data', 'training', 'departures'),
  [
    ({}, {}, ()),
    ({'malicious_clients': 0.2}, {}, ('0.2 of the clients malicious, the paper has none',)),
    ({}, {'aggregator': 'robust'}, ('aggregator robust, the paper has the mean',)),
  ],
)
def test_malicious_clients_and_another_aggregator_are_no_papers_setting(data, training, departures):
  config = ExperimentConfig(
    DataConfig(dataset='mnist', partition='pathological', num_clients=100, **data), TrainingConfig(**training)
  )
  assert describe_setting(config, 100).departures == departures


@pytest.mark.parametrize('there', [True, False])
def test_the_report_has_the_section_only_where_there_are_malicious_clients(tmp_path, there):
  results = _results([3, 4])
  if not there:
    del results['malicious']
    assert malicious_section(run_of(results)) is None
  files.save_json(tmp_path / 'results.json', made_up.with_digest(results))
  page = write_report(tmp_path).read_text(encoding='utf-8')
  assert ('<h2>Malicious clients</h2>' in page) == there
  assert page.count('Means over clients count the malicious ones too') == there
