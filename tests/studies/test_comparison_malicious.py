"""Malicious clients in a comparison: numbers by hand, the sentence of each outcome, and silence without them."""

import json

import numpy as np
import pytest

from tests.made_up import comparison_runs, run_with_malicious
from tests.made_up.comparison_runs import FEDAVG, constant
from tff_cluster.scorecard import contenders
from tff_cluster.studies.comparison import malicious, page

SEEDS, CLIENTS, BAD = 3, 5, (1, 4)


def made(beside, gains=(0.1, 0.2, 0.3), dropped=0):
  """Returns runs in which honest clients gain gains[seed] over FedAvg's 0.5 with k, and malicious ones have 0.9."""
  honest = [[0.9 if k in BAD else 0.5 + gain for k in range(CLIENTS)] for gain in gains]
  runs = comparison_runs.make(
    {FEDAVG: constant(0.5, SEEDS, CLIENTS), 'k': honest, 'planted': constant(0.5, SEEDS, CLIENTS)}
  )
  for seed, results in runs:
    run_with_malicious.add(results, BAD, {'k': beside[seed], 'planted': 0.0}, dropped)
  return runs


def _measure(runs, samples=50):
  return malicious.measure(contenders.checked(comparison_runs.typed(runs)), samples)


def test_numbers_by_hand():
  fedavg, k, planted = _measure(made([0.0, 1.0, 0.5], dropped=2), 200)
  assert (fedavg.name, fedavg.over_fedavg, fedavg.beside, fedavg.dropped) == (FEDAVG, None, (), (2, 2, 2))
  assert fedavg.honest.mean == pytest.approx(0.5) and fedavg.malicious == pytest.approx(0.5)
  assert k.honest.mean == pytest.approx(0.7) and k.malicious == pytest.approx(0.9)
  assert k.over_fedavg.interval.mean == pytest.approx(0.2) and k.over_fedavg.harmed == 0.0
  # Student's interval over three seeds: 0.2 +- 4.303 * 0.1 / sqrt(3), wider than the bootstrap.
  assert k.over_fedavg.interval.high == pytest.approx(0.2 + 4.303 * 0.1 / 3**0.5, abs=1e-4)
  # Three honest clients of five under each of three seeds.
  assert (k.over_fedavg.clients.better, k.over_fedavg.seeds.better) == (9, 3)
  assert k.beside == (0.0, 1.0, 0.5) and not k.is_oracle and planted.is_oracle


@pytest.mark.parametrize(
  ('beside', 'words'),
  [
    ([0.0, 0.0, 0.0], 'k isolated them: no honest client shares a cluster'),
    ([0.0, 0.6, 0.0], 'No clustering isolated them: with k, 20.0% of the honest clients'),
  ],
)
def test_isolated_is_isolated_under_every_seed(beside, words, tmp_path):
  text = page.write(comparison_runs.typed(made(beside)), {}, tmp_path).read_text()
  assert '<h2>Malicious clients</h2>' in text and words in text
  assert text.count('Means over clients count the malicious ones too') == 1
  assert f'{beside.count(0.0)} of 3' in text
  document = json.loads((tmp_path / 'comparison.json').read_text())['malicious']
  assert [entry['contender'] for entry in document] == [FEDAVG, 'k', 'planted']
  assert document[1]['honest_beside_malicious'] == beside and document[0]['over_fedavg'] is None
  assert document[1]['honest']['mean'] == pytest.approx(0.7)


def test_runs_without_malicious_clients_say_nothing(tmp_path):
  runs = comparison_runs.make({FEDAVG: constant(0.7), 'k': constant(0.7)})
  assert _measure(runs) == [] and malicious.section([], runs) is None
  text = page.write(comparison_runs.typed(runs), {}, tmp_path).read_text()
  assert 'alicious' not in text
  assert json.loads((tmp_path / 'comparison.json').read_text())['malicious'] is None


def test_a_seed_without_malicious_or_without_honest_clients_leaves_nothing_to_compare():
  for chosen in ([], range(CLIENTS)):
    runs = made([0.0] * SEEDS)
    run_with_malicious.add(runs[1][1], chosen, {'k': 0.0, 'planted': 0.0})
    assert _measure(runs) == []


def test_the_order_of_clients_does_not_matter():
  runs = made([0.0, 0.5, 1.0], gains=(0.05, 0.2, -0.1))
  before = _measure(runs)
  for _, results in runs:
    results['population']['client_ids'] = results['population']['client_ids'][::-1]
    for entry in (
      results['baseline']['evaluation'],
      *(c['evaluations']['own'] for c in results['clusterings']),
    ):
      entry['client_accuracy'] = entry['client_accuracy'][::-1]
  after = _measure(runs)
  np.testing.assert_allclose([h.honest.mean for h in after], [h.honest.mean for h in before])
  np.testing.assert_allclose([h.malicious for h in after], [h.malicious for h in before])
