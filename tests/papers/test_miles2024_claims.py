"""The claims of Miles et al. 2024: each holds on what the paper prints, and fails where its number is off."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.made_up import fedex_rows
from tff_cluster.papers import miles2024
from tff_cluster.scorecard import cluster_contents

_experts = fedex_rows.experts
CLAIMS = {name: published.claims for name, published in miles2024.PUBLISHED.items()}


def verdicts(table, **changes):
  rows = fedex_rows.rows(table, **changes)
  return [claim.check(rows).verdict for claim in CLAIMS[table]]


@pytest.mark.parametrize(
  ('table', 'count'), [('fedex/table1', 6), ('fedex/table2', 8), ('fedex/figure2', 1), ('fedex/figure3', 1)]
)
def test_all_claims_hold_on_what_is_printed(table, count):
  assert verdicts(table) == ['holds'] * count


@pytest.mark.parametrize(
  ('table', 'claim', 'changes'),
  [
    # FedAvg no better than FedEx: equal is not more.
    ('fedex/table1', 0, {'of3': {'baseline_global': (77.98,)}}),
    ('fedex/table1', 1, {'of4': {'baseline_global': (9.0,)}}),
    # An expert alone as good as FedEx.
    ('fedex/table1', 2, {'of3': {'experts': (_experts(0.7798, (0.5, 0.7798, 0.6), (1, 1, 1)),)}}),
    ('fedex/table1', 3, {'of4': {'experts': (_experts(0.7799, (0.5, 0.5, 0.5, 0.5), (1, 1, 1, 1)),)}}),
    ('fedex/table1', 4, {'of3': {'experts': (_experts(0.7, (0.5, 0.6, 0.6), (1, 1, 1), oracle=0.97),)}}),
    ('fedex/table1', 5, {'of4': {'experts': (_experts(0.7, (0.5,) * 4, (1,) * 4, oracle=0.97),)}}),
    ('fedex/table2', 2, {'of3': {'experts': (_experts(0.7, (0.75, 0.4, 0.5), (1, 1, 1)),)}}),
    ('fedex/table2', 3, {'of4': {'experts': (_experts(0.5, (0.4, 0.51, 0.4, 0.4), (1,) * 4),)}}),
    ('fedex/table2', 7, {'of4': {'shared': {'source': ([[40, 45, 0, 0], [1, 0, 14, 0]],)}}}),
    ('fedex/figure3', 0, {'of4': {'shared': {'source': ([[40, 45, 0, 0], [0, 0, 8, 7]],)}}}),
    ('fedex/figure2', 0, {'of4': {'together': ((0.30, 0.26),)}}),
    ('fedex/figure2', 0, {'of4': {'together': ((0.2, 0.5),)}}),
  ],
)
def test_each_claim_can_fail_and_no_other_does_by_it(table, claim, changes):
  found = verdicts(table, **changes)
  assert found[claim] == 'fails'
  related = {('fedex/table1', 3): {3, 0, 1}, ('fedex/table2', 2): {2, 3}}.get((table, claim), {claim})
  assert all(verdict == 'holds' for i, verdict in enumerate(found) if i not in related)


def test_the_printed_numbers_stand_beside_the_claims():
  found = {name: [claim.published for claim in CLAIMS[name]] for name in ('fedex/table1', 'fedex/table2')}
  assert found['fedex/table1'][:4] == [
    '97.43% against 77.98%', '97.43% against 9.01%', '77.98% against 74.78%', '77.98% against 9.01%',
  ]  # fmt: skip
  assert found['fedex/table2'][:5] == [
    '84.72% against 80.20%', '84.72% against 63.88%', '80.20% against 76.33%', '63.88% against 54.52%',
    '80.20% against 63.88%',
  ]  # fmt: skip


def test_means_over_seeds_decide_and_the_seeds_are_counted():
  twice = {
    'seeds': (0, 1),
    'experts': (_experts(0.9, (0.1,) * 3, (1,) * 3), _experts(0.6, (0.1,) * 3, (1,) * 3)),
  }
  finding = CLAIMS['fedex/table1'][0].check(
    fedex_rows.rows('fedex/table1', of3=twice | {'baseline_global': (80.0, 80.0)})
  )
  assert (finding.verdict, finding.ours) == ('holds', '80.00% against 75.00%')
  assert finding.note == 'in 1 of 2 seeds'


def test_all_seeds_of_the_noise_count():
  good, bad = [[40, 45, 0, 0], [0, 0, 15, 0]], [[40, 45, 0, 0], [0, 1, 14, 0]]
  changes = {'of4': {'shared': {'source': (good, bad)}}}
  finding = CLAIMS['fedex/figure3'][0].check(fedex_rows.rows('fedex/figure3', **changes))
  assert (finding.verdict, finding.note) == ('fails', 'in 1 of 2 seeds')
  assert finding.ours == '15 in 1 cluster with 0 of MNIST; 15 in 2 clusters with 45 of MNIST'


def test_rows_without_experts_or_without_noise_decide_nothing():
  assert verdicts('fedex/table1', of3={'experts': (None,)}, of4={'experts': (None,)}) == ['not run'] * 6
  assert verdicts('fedex/figure3', of4={'shared': {}}) == ['not run']
  # Where all pairs of clients are alike, nothing is decided.
  assert verdicts('fedex/figure2', of4={'together': ((0.5, None),)}) == ['undecided']


@st.composite
def _clustered(draw):
  """Cluster, source and rows by label of a few clients."""
  shape = draw(st.integers(2, 8))
  integers = [hnp.arrays(int, shape, elements=st.integers(0, largest)) for largest in (2, 1)]
  return (*map(draw, integers), draw(hnp.arrays(int, (shape, 4), elements=st.integers(0, 5))))


@hypothesis.given(_clustered())
def test_pairs_clients_and_rows_are_those_counted_one_by_one(drawn):
  labels, source, counts = drawn
  matrix, truth = np.arange(3)[:, None] == labels, np.arange(2)[:, None] == source
  same = {True: [], False: []}
  for i in range(len(labels)):
    for j in range(i):
      common = any(a and b for a, b in zip(counts[i], counts[j], strict=True))
      same[common].append(labels[i] == labels[j])
  expected = tuple(sum(v) / len(v) if v else None for v in (same[True], same[False]))
  assert cluster_contents.together(matrix, counts) == pytest.approx(expected)
  clients, rows = np.zeros((2, 3), int), np.zeros((2, 3, 4), int)
  for group, cluster, held in zip(source, labels, counts, strict=True):
    clients[group, cluster] += 1
    rows[group, cluster] += held
  assert cluster_contents.shared_clients(matrix, truth) == clients.tolist()
  assert (cluster_contents.rows_by_label(matrix, counts, truth) == rows).all()
  assert (cluster_contents.rows_by_label(matrix, counts)[0] == rows.sum(axis=0)).all()
