"""New clients in a comparison: numbers by hand, checks that can fail, and what a page without them says."""

import json

import numpy as np
import pytest

from tests.made_up import comparison_runs, run_with_new_clients
from tests.made_up.comparison_runs import FEDAVG, constant
from tff_cluster.scorecard import contenders
from tff_cluster.studies.comparison import new_clients, page

LABELS = ('k', 'over')


def made(gains, own_regret=0.0, seeds=3, clients=4):
  """Returns runs in which every new client gains gains[label][seed] over FedAvg's 0.5."""
  runs = comparison_runs.make({name: constant(0.7, seeds) for name in (FEDAVG, *LABELS)})
  for seed, results in runs:
    results['clusterings'] = [dict(c) for c in results['clusterings']]
    own = {label: [0.5 + gains[label][seed]] * clients for label in LABELS}
    each = {label: [[value + own_regret for value in own[label]], [0.1] * clients] for label in LABELS}
    assigned = {'k': [[0]] * clients, 'over': [[0, 1]] * clients}
    run_with_new_clients.add(results, [0.5] * clients, each, assigned, own)
  return comparison_runs.typed(runs)


def checks_of(runs):
  checks = new_clients.make_checks(new_clients.measure(runs, 200))
  return {label: check.finding for label, check in zip(LABELS, checks, strict=True)}


@pytest.mark.parametrize(
  ('gains', 'verdict'),
  [([0.1, 0.12, 0.11], 'holds'), ([-0.1, -0.12, -0.11], 'fails'), ([0.3, -0.2, 0.05], 'undecided')],
)
def test_the_check_can_come_out_each_way(gains, verdict):
  found = checks_of(made({'k': gains, 'over': [0.2] * 3}))
  assert found['k'].verdict == verdict and found['over'].verdict == 'holds'
  harmed = np.mean(np.array(gains) < 0)
  assert found['k'].note == f'{100 * harmed:.1f}% of the new clients are worse off than with FedAvg'


def test_numbers_by_hand():
  k, over = new_clients.measure(made({'k': [0.1, 0.2, 0.3], 'over': [0.0] * 3}, own_regret=0.05), 200)
  assert (k.name, over.name) == LABELS
  assert k.over_fedavg.interval.mean == pytest.approx(0.2) and k.accuracy.mean == pytest.approx(0.7)
  assert k.regret.mean == pytest.approx(0.05) and k.regret.low == pytest.approx(0.05)
  assert (k.over_fedavg.seeds.better, k.over_fedavg.clients.better) == (3, 12)
  # Student's interval over three seeds: 0.2 +- 4.303 * 0.1 / sqrt(3), wider than the bootstrap.
  assert k.over_fedavg.interval.high == pytest.approx(0.2 + 4.303 * 0.1 / 3**0.5, abs=1e-4)
  assert k.over_fedavg.side == 'unclear' and over.runs[0].memberships == 2.0


def test_the_page_and_its_files_tell_of_them(tmp_path):
  runs = made({'k': [0.1] * 3, 'over': [-0.1] * 3})
  text = page.write(runs, {}, tmp_path).read_text()
  document = json.loads((tmp_path / 'comparison.json').read_text())
  assert '<h2>New clients</h2>' in text and 'hindsight' in text
  told = {check['words']: check['verdict'] for check in document['checks'] if check['kind'] == 'new clients'}
  assert told == {
    'A new client does better with the clusters that k assigns it to than with FedAvg’s model': 'holds',
    'A new client does better with the clusters that over assigns it to than with FedAvg’s model': 'fails',
  }
  assert all(words in text for words in told)
  k = document['new_clients'][0]
  assert k['clustering'] == 'k' and k['over_fedavg']['interval']['mean'] == pytest.approx(0.1)
  assert [seed['clients'] for seed in k['seeds']] == [4, 4, 4] and k['seeds'][0]['fedavg'] == pytest.approx(
    0.5
  )


def test_runs_without_new_clients_say_nothing(tmp_path):
  runs = comparison_runs.typed(comparison_runs.make({name: constant(0.7) for name in (FEDAVG, *LABELS)}))
  assert new_clients.measure(contenders.checked(runs)) == []
  assert new_clients.make_checks([]) == [] and new_clients.section([]) is None
  text = page.write(runs, {}, tmp_path).read_text()
  assert 'New clients' not in text and 'new client' not in text
  assert json.loads((tmp_path / 'comparison.json').read_text())['new_clients'] is None
