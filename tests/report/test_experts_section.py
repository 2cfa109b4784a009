"""The report's words on cluster models as experts follow the numbers."""

import pytest

from tests.made_up import finished_run as made_up
from tests.made_up.drawn import drawn, run_of, text
from tff_cluster.report.experts_section import as_experts
from tff_cluster.report.pages import Section

RULES = ('fedex', 'mean', 'vote', 'confidence', 'gate', 'oracle')


def _section(fedex, oracle, alone):
  results, _ = made_up.make_run(num_clients=4, methods=('kmeans',))
  assert as_experts(run_of(results), run_of(results).results.clusterings[0]) is None
  results['baseline']['evaluation']['global']['accuracy'] = alone
  results['clusterings'][0]['experts'] = {
    'accuracy': dict(zip(RULES, (fedex, 0.71, 0.55, 0.66, 0.80, oracle), strict=True)),
    'agreement': {'fedex': dict.fromkeys(RULES, 0.5)},
    'expert_accuracy': [0.4, 0.6],
    'expert_loss': [2.5, 1.25],
    'order_sensitivity': {'num_shuffles': 3, 'changed': 0.125, 'accuracy': [0.701, 0.72, 0.69]},
  }
  run = run_of(results)
  return text(drawn(Section('', 'clusters.html', 'as_experts', as_experts(run, run.results.clusterings[0]))))


@pytest.mark.parametrize(
  ('fedex', 'oracle', 'words'),
  [
    (0.7, 0.85, 'one of them is right on 85.0% only'),
    (0.92, 0.95, 'better than the unclustered model (90.0%); the best expert alone is right on 60.0%.'),
    (0.9, 0.95, 'as good as the unclustered model (90.0%)'),
  ],
)
def test_the_story(fedex, oracle, words):
  assert words in _section(fedex, oracle, 0.9)


def test_every_number_is_there():
  told = _section(0.7, 0.95, 0.9)
  assert 'worse than the unclustered model (90.0%)' in told
  assert 'On 95.0% some expert is right: what is lost lies in the combination' in told
  of_rules, of_orders = (
    ('66.0%', '80.0%', '−20.0 points', '+5.0 points'),
    ('69.0% to 72.0%', '3 other orders', '12.5%'),
  )
  assert [number for number in (*of_rules, *of_orders, '1.25') if number not in told] == []
