"""New clients in the run report: every number by hand, and no word where everybody took part."""

import html
import re

import numpy as np
import pytest

from tests.made_up import finished_run as made_up
from tests.made_up import run_with_new_clients
from tests.made_up.drawn import drawn
from tff_cluster.report.finished_run import read_run
from tff_cluster.report.new_clients_section import new_clients_section, read_new_clients, recovery_words
from tff_cluster.report.report import write_report
from tff_cluster.storage import files

FEDAVG = [0.5, 0.6, 0.7]
# Client 0 is with the best of its clusters, client 1 in both, client 2 with the wrong one.
EACH = {'kmeans': [[0.9, 0.5, 0.8], [0.4, 0.7, 0.3]], 'planted': [[0.9, 0.5, 0.8], [0.4, 0.7, 0.3]]}
ASSIGNED = {'kmeans': [[0], [0, 1], [1]], 'planted': [[0], [1], [0]]}
# The mean of two models is better than each of them.
OWN = {'kmeans': [0.9, 0.8, 0.3]}


@pytest.fixture
def results(tmp_path):
  made = made_up.write_run(tmp_path, num_clients=6, groups=2, methods=('kmeans', 'planted'))
  run_with_new_clients.add(made, FEDAVG, EACH, ASSIGNED, OWN)
  files.save_json(tmp_path / 'results.json', made)
  return made


def cells(markup):
  rows = re.findall('<tr>(.*?)</tr>', markup, flags=re.S)
  return [
    [
      html.unescape(re.sub('<[^>]+>', '', cell))
      for cell in re.findall('<t[hd][^>]*>(.*?)</t[hd]>', row, flags=re.S)
    ]
    for row in rows
  ]


def test_the_numbers_by_hand(results):
  new = read_new_clients(results, results['clusterings'][0])
  np.testing.assert_allclose(new.best, [0.9, 0.7, 0.8])
  np.testing.assert_allclose(new.regret, [0.0, -0.1, 0.5])
  assert new.with_best == pytest.approx(2 / 3) and new.memberships == pytest.approx(4 / 3)
  assert (new.fallbacks, new.client_rounds) == (0, 3)


def test_every_number_is_in_the_table(results, tmp_path):
  header, fedavg, kmeans, planted = cells(drawn(new_clients_section(read_run(tmp_path))))
  assert len(header) == len(fedavg) == len(kmeans) == len(planted) == 11
  assert fedavg[:2] == ['FedAvg without clusters', '60.0%'] and set(fedavg[2:]) == {'–'}
  # Means: own 2/3, best 0.8, regret (0 - 0.1 + 0.5) / 3.
  assert kmeans == [
    'kmeans',
    '66.7%',
    '+6.7',
    '80.0%',
    '+13.3',
    '+50.0',
    '66.7%',
    '1.3',
    '0',
    '3',
    'ARI 0.50',
  ]
  assert planted[1:7] == ['80.0%', '+20.0', '80.0%', '0.0', '0.0', '100.0%']


def test_the_oracle_is_no_method_that_is_praised(results, tmp_path):
  text = drawn(new_clients_section(read_run(tmp_path)))
  assert 'New clients have 60.0% with FedAvg’s model and 66.7% with the clusters of kmeans.' in text
  assert 'hindsight' in text and '3 clients took no part' in text


def test_the_report_has_the_section_only_where_there_are_new_clients(results, tmp_path):
  page = write_report(tmp_path).read_text(encoding='utf-8')
  assert '<h2>New clients</h2>' in page and '66.7%' in page
  files.save_json(tmp_path / 'results.json', results | {'new_clients': None})
  assert '<h2>New clients</h2>' not in write_report(tmp_path).read_text(encoding='utf-8')
  assert new_clients_section(read_run(tmp_path)) is None


def test_fedavg_alone_has_new_clients_too(results, tmp_path):
  files.save_json(tmp_path / 'results.json', results | {'clusterings': []})
  _, fedavg = cells(drawn(new_clients_section(read_run(tmp_path))))
  assert fedavg[1] == '60.0%'


def test_recovery_is_told_by_the_score_that_fits():
  assert recovery_words({'ari': 1.0, 'omega': 1.0}) == 'ARI 1.00'
  assert recovery_words({'ari': None, 'omega': 0.25}) == 'Omega 0.25'
