"""Malicious clients in the run report: every number by hand."""

import pytest

from tests.made_up import finished_run as made_up
from tests.made_up import run_with_malicious
from tests.made_up.drawn import drawn, rows, run_of, text
from tff_cluster.data.data_config import ATTACKS, DataConfig
from tff_cluster.report.malicious_section import attack_words, isolation_words, malicious_section

FEDAVG = [0.5, 0.6, 0.7, 0.1, 0.2, 0.6]
OWN = {'kmeans': [0.9, 0.8, 0.7, 0.3, 0.5, 1.0], 'planted': [1.0] * 6}
BESIDE = {'kmeans': 0.25, 'planted': 0.0}


def _section(malicious):
  results, _ = made_up.make_run(num_clients=6, groups=2, methods=('kmeans', 'planted'))
  results['baseline']['evaluation']['client_accuracy'] = FEDAVG
  for clustering in results['clusterings']:
    clustering['evaluations']['own']['client_accuracy'] = OWN[clustering['label']]
  run_with_malicious.add(results, malicious, BESIDE, dropped=7, attack='scaled', attack_scale=5.0)
  section = drawn(malicious_section(run_of(results)))
  return rows(section), text(section)


def test_every_number_is_in_the_section():
  (header, fedavg, kmeans, planted), told = _section([3, 4])
  assert len(header) == len(fedavg) == len(kmeans) == len(planted) == 8
  # Honest: (0.5 + 0.6 + 0.7 + 0.6) / 4, malicious: (0.1 + 0.2) / 2.
  assert fedavg == ['FedAvg without clusters', '60.0%', '–', '15.0%', '–', '–', '–', '7']
  assert kmeans == ['kmeans', '85.0%', '+25.0', '40.0%', '2', '25.0%', 'ARI 0.50', '7']
  assert planted[1:4] == ['100.0%', '+40.0', '100.0%'] and planted[5] == '0.0%'
  assert '2 clients of 6 are malicious: each sends a multiple of its update (times 5).' in told
  # The oracle keeps them apart, but is no method.
  assert 'No clustering isolated them: with kmeans, 25.0% of the honest clients share a cluster' in told


def test_where_none_of_them_takes_part():
  _, told = _section([])
  assert '0 clients of 6 are malicious' in told and 'None of them takes part.' in told
  assert 'isolated them' not in told


@pytest.mark.parametrize(
    ('beside', 'words'),
    [
        ({'k': None}, 'There is no clustering that could isolate them.'),
        ({'k': 0.0}, 'k isolated them: no honest client shares a cluster with a malicious one.'),
        ({'k': 0.0, 'ward': 0.5, 'cfl': 0.0},
         'k and cfl isolated them: no honest client shares a cluster with a malicious one; 1 of 3 clusterings did not.'),
        ({'k': 0.6, 'ward': 0.5},
         'No clustering isolated them: with ward, the nearest, 50.0% of the honest clients share a cluster with a malicious one.'),
    ],
)  # fmt: skip
def test_isolation_in_words(beside, words):
  assert isolation_words(beside) == words


def test_every_attack_has_words():
  assert len({attack_words(DataConfig(attack=attack)) for attack in ATTACKS}) == len(ATTACKS)
  assert attack_words(DataConfig()) == 'sends the negative of its update'
