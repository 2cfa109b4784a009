"""New clients in the run report: every number by hand, and no word where everybody took part."""

import numpy as np
import pytest

from tests.made_up import finished_run as made_up
from tests.made_up import in_json, run_with_new_clients
from tests.made_up.drawn import drawn, rows, run_of, text
from tff_cluster.clustering.recovery import Recovery
from tff_cluster.report.new_clients_section import new_clients_section, read_new_clients, recovery_words
from tff_cluster.report.report import write_report
from tff_cluster.storage import files

FEDAVG = [0.5, 0.6, 0.7]
# Client 0 is with the best of its clusters, client 1 in both, client 2 with the wrong one.
EACH = {'kmeans': [[0.9, 0.5, 0.8], [0.4, 0.7, 0.3]], 'planted': [[0.9, 0.5, 0.8], [0.4, 0.7, 0.3]]}
ASSIGNED = {'kmeans': [[0], [0, 1], [1]], 'planted': [[0], [1], [0]]}
# The mean of two models is better than each of them.
OWN = {'kmeans': [0.9, 0.8, 0.3]}


@pytest.fixture(scope='module')
def results():
  made, _ = made_up.make_run(num_clients=6, groups=2, methods=('kmeans', 'planted'))
  run_with_new_clients.add(made, FEDAVG, EACH, ASSIGNED, OWN)
  return made


def test_the_numbers_by_hand(results):
  found = in_json.typed(results)
  new = read_new_clients(found, found.clusterings[0])
  np.testing.assert_allclose(new.best, [0.9, 0.7, 0.8])
  np.testing.assert_allclose(new.regret, [0.0, -0.1, 0.5])
  assert new.with_best == pytest.approx(2 / 3) and new.memberships == pytest.approx(4 / 3)
  assert (new.fallbacks, new.client_rounds) == (0, 3)


def test_every_number_is_in_the_section(results):
  section = drawn(new_clients_section(run_of(results)))
  header, fedavg, kmeans, planted = rows(section)
  assert len(header) == len(fedavg) == len(kmeans) == len(planted) == 11
  assert fedavg[:2] == ['FedAvg without clusters', '60.0%'] and set(fedavg[2:]) == {'–'}
  # Means: own 2/3, best 0.8, regret (0 - 0.1 + 0.5) / 3.
  expected = ['kmeans', '66.7%', '+6.7', '80.0%', '+13.3', '+50.0', '66.7%', '1.3', '0', '3', 'ARI 0.50']
  assert kmeans == expected
  assert planted[1:7] == ['80.0%', '+20.0', '80.0%', '0.0', '0.0', '100.0%']
  # The oracle is no method that is praised.
  told = text(section)
  assert 'New clients have 60.0% with FedAvg’s model and 66.7% with the clusters of kmeans.' in told
  assert 'hindsight' in told and '3 clients took no part' in told
  assert rows(drawn(new_clients_section(run_of(results | {'clusterings': []}))))[1:] == [fedavg]


@pytest.mark.parametrize('there', [True, False])
def test_the_report_has_the_section_only_where_there_are_new_clients(results, tmp_path, there):
  found = results if there else results | {'new_clients': None}
  files.save_json(tmp_path / 'results.json', made_up.with_digest(found))
  page = write_report(tmp_path).read_text(encoding='utf-8')
  assert ('<h2>New clients</h2>' in page) == there


@pytest.mark.parametrize(('ari', 'words'), [(1.0, 'ARI 1.00'), (None, 'Omega 0.25')])
def test_recovery_is_told_by_the_score_that_fits(ari, words):
  assert recovery_words(in_json.record(Recovery, {'ari': ari, 'omega': 0.25})) == words
