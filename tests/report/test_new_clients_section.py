"""New clients in the run report: every number by hand."""

from tests.made_up import finished_run as made_up
from tests.made_up import in_json, run_with_new_clients
from tests.made_up.drawn import drawn, rows, run_of, text
from tff_cluster.clustering.recovery import Recovery
from tff_cluster.report.new_clients_section import new_clients_section, recovery_words

FEDAVG = [0.5, 0.6, 0.7]
# Client 0 is with the best of its clusters, client 1 in both, client 2 with the wrong one.
EACH = [[0.9, 0.5, 0.8], [0.4, 0.7, 0.3]]
ASSIGNED = {'kmeans': [[0], [0, 1], [1]], 'planted': [[0], [1], [0]]}
# The mean of two models is better than each of them.
OWN = {'kmeans': [0.9, 0.8, 0.3]}


def test_every_number_is_in_the_section():
  results, _ = made_up.make_run(num_clients=6, groups=2, methods=('kmeans', 'planted'))
  run_with_new_clients.add(results, FEDAVG, dict.fromkeys(ASSIGNED, EACH), ASSIGNED, OWN)
  section = drawn(new_clients_section(run_of(results)))
  header, fedavg, kmeans, planted = rows(section)
  assert len(header) == len(fedavg) == len(kmeans) == len(planted) == 11
  assert fedavg[:2] == ['FedAvg without clusters', '60.0%'] and set(fedavg[2:]) == {'–'}
  # Means: own 2/3, best (0.9 + 0.7 + 0.8) / 3, regret (0 - 0.1 + 0.5) / 3; two of three are with the best.
  expected = ['kmeans', '66.7%', '+6.7', '80.0%', '+13.3', '+50.0', '66.7%', '1.3', '0', '3', 'ARI 0.50']
  assert kmeans == expected
  assert planted[1:7] == ['80.0%', '+20.0', '80.0%', '0.0', '0.0', '100.0%']
  # The oracle is no method that is praised.
  told = text(section)
  assert 'New clients have 60.0% with FedAvg’s model and 66.7% with the clusters of kmeans.' in told
  assert 'hindsight' in told and '3 clients took no part' in told
  assert rows(drawn(new_clients_section(run_of(results | {'clusterings': []}))))[1:] == [fedavg]


def test_recovery_is_told_by_omega_where_there_is_no_ari():
  assert recovery_words(in_json.record(Recovery, {'ari': None, 'omega': 0.25})) == 'Omega 0.25'
