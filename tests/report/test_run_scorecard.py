"""The tables of Rohith et al. 2020 beside a run: every cell has our number, and clusterings are told apart."""

import numpy as np
import pytest

from tests.made_up import finished_run as made_up
from tests.made_up.drawn import scorecard_of


def test_scorecard_of_a_run_has_every_cell_with_our_number():
  results, _ = made_up.make_run(linkage='single')
  records = scorecard_of(results)
  kinds = [(r['table'], r['row'] == 'claim') for r in records]
  assert [kinds.count((f'rohith2020/table{n}', False)) for n in (1, 2, 3)] == [2, 4, 6]
  assert sum(is_claim for _, is_claim in kinds) == 16
  by = {(r['row'], r['column']): r for r in records}
  dynamic = results['clusterings'][1]['evaluations']
  average = by['Dynamic clustering', 'average_global']
  assert average['ours'] == 100 * dynamic['average']['global']['accuracy'] and average['unit'] == 'percent'
  assert average['difference'] == pytest.approx(average['ours'] - 93.0, abs=1e-5)
  assert by['Dynamic clustering', 'highest']['ours'] == 100 * max(dynamic['blended']['client_accuracy'])
  # Table 1 quotes a mean, and the share at 99%.
  own = np.array(results['clusterings'][2]['evaluations']['own']['client_accuracy'])
  single = 'FL+HC (L2, single linkage)'
  assert by[single, 'mean_accuracy']['ours'] == pytest.approx(100 * own.mean())
  assert by[single, 'share_at_99']['ours'] == pytest.approx(100 * np.mean(own >= 0.99))
  assert all('scaled down' in r['verdict'] and 'scaled down' in r['scale'] for r in records)
  (kept,) = (
    r for (_, name), r in by.items() if name.startswith('K-means: blended') and 'specialisation' in name
  )
  members = {k: np.mean(v['members']) for k, v in results['clusterings'][0]['cluster_scores'].items()}
  assert kept['ours'] == f'{100 * members["unblended"]:.1f}% → {100 * members["blended"]:.1f}%'


def test_scorecard_leaves_out_what_was_not_run_and_tells_clusterings_apart():
  results, _ = made_up.make_run(methods=('dynamic_distance', 'dynamic_distance:dd_q10', 'hierarchical'))
  results['clusterings'][0]['parameters']['distance_threshold'] = 'quantile:0.1'
  records = scorecard_of(results)
  numbers = [r for r in records if r['row'] != 'claim']
  assert all(r['verdict'] == 'not run' and r['ours'] is None for r in numbers if r['row'] == 'K-means')
  # It has complete linkage.
  (first, second) = [r for r in numbers if r['table'] == 'rohith2020/table1']
  assert first['verdict'] == second['verdict'] == 'not run'
  assert 'no hierarchical clustering with metric l2 and linkage single' in first['note']
  notes = {r['row']: r['note'] for r in numbers if r['column'] == 'phase1_global'}
  assert 'quantile:0.1' in notes['Dynamic clustering [dynamic_distance]']
  assert 'quantile' not in notes['Dynamic clustering [dd_q10]']
  # The clustering nearest to the paper, not the first one, stands for the method in the claims.
  claim = next(r for r in records if r['column'].startswith('Dynamic clustering: weighting'))
  assert 'checked on dd_q10' in claim['note'] and 'quantile' not in claim['note']
