"""Every claim must be able to hold, to fail, and to be left unchecked."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.made_up import in_json
from tff_cluster.papers import rohith2020
from tff_cluster.papers.rohith2020.tables import DYNAMIC, HIERARCHICAL, KMEANS
from tff_cluster.scorecard.rows import Ours, Run

CLAIMS = [
  claim
  for name in ('table3', 'table2', 'table1')
  for claim in rohith2020.PUBLISHED[f'rohith2020/{name}'].claims
]
_ROWS = {row.clustering['method']: row for row in (KMEANS, DYNAMIC, HIERARCHICAL)}
# Hand-made evidence for which all claims hold: the paper's numbers where it prints them (tables 1 to 3).
_HOLDS = {
    'kmeans': {
        'phase1_global': 0.925, 'average_global': 0.934, 'weighted_global': 0.934, 'highest': 0.996,
        'share_at_highest': 0.26, 'own_mean': 0.95, 'members_unblended': 0.95,
        'members_blended': 0.945, 'global_unblended': 0.7, 'global_blended': 0.8,
    },
    'dynamic_distance': {
        'phase1_global': 0.91, 'average_global': 0.93, 'weighted_global': 0.93, 'highest': 0.997,
        'share_at_highest': 0.28, 'own_mean': 0.96, 'members_unblended': 0.96,
        'members_blended': 0.955, 'global_unblended': 0.7, 'global_blended': 0.8,
    },
    'hierarchical': {'own_highest': 0.981, 'own_share_at_highest': 0.67},
}  # fmt: skip


def _ours(method, told, phase1_highest, baseline_mean):
  """A run of one seed from which just these numbers can be read; there are two clients."""

  def clients(**metrics):
    return {'clients': {name: told[key] for name, key in metrics.items() if key in told}}

  def stage(accuracy, global_accuracy):
    return {'evaluation': {'client_accuracy': accuracy, 'global': {'accuracy': global_accuracy}}}

  results = {
    'config': {},
    'phase1': stage([phase1_highest, 0.5], told.get('phase1_global', 0.0)),
    'baseline': stage([baseline_mean - 0.01, baseline_mean + 0.01], 0.93),
  }
  own = clients(
    mean_client_accuracy='own_mean',
    highest_client_accuracy='own_highest',
    share_at_highest='own_share_at_highest',
  )
  blended = clients(highest_client_accuracy='highest', share_at_highest='share_at_highest')
  clustering = {
    'signature': 'weights', 'parameters': {},
    'evaluations': {
      'own': own, 'blended': blended,
      **{name: {'global': {'accuracy': told.get(f'{name}_global', 0.0)}} for name in ('average', 'weighted')},
    },
    'cluster_scores': {
      kind: {where: [told[f'{where}_{kind}']] for where in ('members', 'global') if f'{where}_{kind}' in told}
      for kind in ('unblended', 'blended')
    },
  }  # fmt: skip
  made = in_json.typed(results | {'clusterings': [clustering]})
  return Ours(_ROWS[method], (Run(0, made, made.clusterings[0]),))


def _evidence(*changes, phase1_highest=0.97, baseline_mean=0.94):
  methods = {m: dict(q) for m, q in _HOLDS.items()}
  for method, quantity, value in changes:
    methods[method][quantity] = value
  return {_ROWS[m].name: _ours(m, q, phase1_highest, baseline_mean) for m, q in methods.items()}


def _verdicts(facts):
  return {claim.words: claim.check(facts).verdict for claim in CLAIMS}


def test_all_hold_on_evidence_like_the_papers():
  assert list(_verdicts(_evidence()).values()) == ['holds'] * 16


@pytest.mark.parametrize(
  ('words', 'facts'),
  [
    ('K-means: the average of the cluster', _evidence(('kmeans', 'average_global', 0.925))),
    ('Dynamic clustering: the average of the cluster', _evidence(('dynamic_distance', 'average_global', 0.90))),
    ('K-means: weighting', _evidence(('kmeans', 'weighted_global', 0.936))),
    ('Dynamic clustering: weighting', _evidence(('dynamic_distance', 'weighted_global', 0.929))),
    ('Dynamic clustering gains more', _evidence(('kmeans', 'phase1_global', 0.91))),
    ('Overlapping clusters serve', _evidence(('dynamic_distance', 'own_mean', 0.95))),
    ('K-means: clients do better', _evidence(baseline_mean=0.95)),
    ('Dynamic clustering: clients do better', _evidence(baseline_mean=0.97)),
    ('K-means: the highest client', _evidence(phase1_highest=0.996)),
    ('Dynamic clustering: the highest client', _evidence(phase1_highest=0.998)),
    ('Both reach a higher', _evidence(('kmeans', 'highest', 0.981))),
    ('Fewer clients are at', _evidence(('dynamic_distance', 'share_at_highest', 0.7))),
    ('K-means: blended with the average of all, clusters keep', _evidence(('kmeans', 'members_blended', 0.93))),
    ('Dynamic clustering: blended with the average of all, clusters keep', _evidence(('dynamic_distance', 'members_blended', 0.94))),
    ('K-means: blended with the average of all, clusters gen', _evidence(('kmeans', 'global_blended', 0.7))),
    ('Dynamic clustering: blended with the average of all, clusters gen', _evidence(('dynamic_distance', 'global_blended', 0.6))),
  ],
)  # fmt: skip
def test_each_claim_can_fail(words, facts):
  found = [verdict for claim, verdict in _verdicts(facts).items() if claim.startswith(words)]
  assert found == ['fails']


def test_a_ceiling_leaves_the_claim_undecided():
  verdicts = _verdicts(_evidence(('hierarchical', 'own_highest', 1.0), phase1_highest=1.0))
  undecided = {words for words, verdict in verdicts.items() if verdict == 'undecided'}
  assert len(undecided) == 3 and all('highest client accuracy' in words for words in undecided)


def test_a_claim_at_phase_1_says_when_the_fair_comparison_fails():
  facts = _evidence(('kmeans', 'average_global', 0.929))  # Above Phase 1 (0.925), below the baseline (0.93).
  note = CLAIMS[0].check(facts).note
  assert 'unclustered model has 93.0%' in note and note.endswith('fails')


def _numbers(text):
  return [float(number) for number in re.findall(r'[0-9]+(?:[.][0-9]+)?(?=%)', text)]


@given(st.floats(0.3, 0.99), st.floats(-0.002, 0.002))
def test_weighting_is_judged_as_its_printed_numbers_are(plain, change):
  facts = _evidence(('kmeans', 'average_global', plain), ('kmeans', 'weighted_global', plain + change))
  finding = next(c for c in CLAIMS if c.words.startswith('K-means: weighting')).check(facts)
  one, two = _numbers(finding.ours)
  # Numbers that print alike are never said to differ, and those that print 0.05 points apart never to be the same.
  if one == two:
    assert finding.verdict == 'holds'
  if abs(one - two) >= 0.0501:
    assert finding.verdict == 'fails'


@given(st.floats(0.5, 0.9), st.floats(-0.001, 0.001))
def test_no_claim_of_more_or_less_is_told_with_equal_numbers(level, change):
  assume(abs(change) > 1e-7)
  facts = _evidence(
    ('kmeans', 'phase1_global', level), ('kmeans', 'average_global', level + change), ('kmeans', 'own_mean', level),
    ('dynamic_distance', 'own_mean', level + change), ('kmeans', 'global_unblended', level), ('kmeans', 'global_blended', level + change),
    ('kmeans', 'highest', level + change), baseline_mean=level + 2 * change, phase1_highest=level,
  )  # fmt: skip
  for words in (
    'K-means: the average', 'Overlapping clusters serve', 'K-means: clients do better', 'K-means: the highest client',
    'K-means: blended with the average of all, clusters generalise',
  ):  # fmt: skip
    finding = next(c for c in CLAIMS if c.words.startswith(words)).check(facts)
    one, two = _numbers(finding.ours)[:2]
    assert one != two, (words, finding)
