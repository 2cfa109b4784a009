"""The claims of Sattler et al. 2019: each holds on what the paper draws, and fails where its number is off."""

import pytest

from tests.made_up import in_json
from tests.made_up.scorecard_rows import changed, make_ours
from tff_cluster.experiment.result_parts import Split
from tff_cluster.papers import sattler2019
from tff_cluster.papers.sattler2019 import tables
from tff_cluster.scorecard.rows import COLUMNS

FIGURE3, SPLITS = (sattler2019.PUBLISHED[f'cfl/{name}'].claims for name in ('figure3', 'splits'))


def _test(number, verdict='split', rise=0.25, similarity=0.02):
  halves = [[0.20, 0.20 + rise, 0.30], [0.20, 0.22, 0.21]] if verdict == 'split' else None
  told = {'round': number, 'verdict': verdict, 'half_accuracy': halves, 'mean_similarity': similarity}
  return in_json.record(Split, told)


# Figure 3 as the paper draws it.
DRAWN = make_ours(
  tables.FIGURE3.rows[0],
  percent=dict(zip(COLUMNS, (25.0, 59.0, 0.0, 0.0), strict=True)),
  baseline=dict(zip(COLUMNS, (20.0, 21.0, 0.0, 0.0), strict=True)),
  seeds=(0,),
  num_clusters=(4,),
  threshold=(None,),
  rounds_after=51,
  rounds_end=200,
  accuracy_curve={51: 25.0, 200: 59.0},
  baseline_curve={50: 20.0, 51: 20.0, 200: 21.0},
  share_curve={},
  baseline_share_curve={},
  recovery={'group': (1.0,)},
  splits=([_test(50), _test(100), _test(150), _test(199, 'stopped')],),
)


def _figure3(**changes):
  rows = {DRAWN.row.name: changed(DRAWN, **changes)}
  return [claim.check(rows).verdict for claim in FIGURE3]


@pytest.mark.parametrize(
  ('claim', 'changes'),
  [
    (0, {'baseline_curve': {50: 35.0}}),
    (1, {'splits': ([_test(50), _test(100), _test(140), _test(199, 'stopped')],)}),
    (1, {'splits': ([_test(50), _test(100), _test(199, 'stopped')],)}),
    (2, {'splits': ([_test(50, rise=0.19), _test(100), _test(150), _test(199, 'stopped')],)}),
    (3, {'recovery': {'group': (0.9,)}}),
    (4, {'splits': ([_test(50), _test(100), _test(150), _test(199, 'stopped', similarity=0.3)],)}),
    (5, {'percent': {**DRAWN.percent, 'accuracy_end': 39.0}}),
    (6, {'percent': {**DRAWN.percent, 'accuracy_end': 54.0}}),
  ],
)
def test_each_claim_of_figure_3_can_fail(claim, changes):
  assert _figure3() == ['holds'] * 7  # On what is drawn.
  assert _figure3(**changes)[claim] == 'fails'


def test_without_a_split_nothing_rises_and_nothing_is_separated():
  assert _figure3(splits=([],))[1:5] == ['fails', 'fails', 'holds', 'fails']


def test_every_seed_counts():
  twice = {'seeds': (0, 1), 'splits': DRAWN.splits * 2, 'num_clusters': (4, 4), 'threshold': (None, None)}
  assert _figure3(**twice, recovery={'group': (1.0, 1.0)}) == ['holds'] * 7
  assert _figure3(**twice, recovery={'group': (1.0, 0.9)})[3] == 'fails'


def _splits(**changes):
  """Rows of cfl/splits as the paper says it: one cluster where clients agree, the planted groups elsewhere."""
  rows = {}
  for row in tables.SPLITS.rows:
    planted = any(word in row.name for word in tables.PLANTED)
    found = changed(
      DRAWN, row=row, num_clusters=(4 if planted else 1,), recovery={'group': (1.0,)} if planted else {}
    )
    rows[row.name] = changed(found, **changes.get(row.name, {}))
  return [claim.check(rows).verdict for claim in SPLITS]


def test_the_claims_about_splits_hold_and_fail_with_their_own_rows():
  assert _splits() == ['holds'] * 6
  assert _splits(**{'IID; as printed': {'num_clusters': (2,)}}) == ['fails', *['holds'] * 5]
  assert _splits(**{'labels skewed; guarded': {'num_clusters': (2,)}})[3] == 'fails'
  assert _splits(**{'rotated, 2 groups; guarded': {'recovery': {'group': (0.5,)}}})[4] == 'fails'
  worse = {'percent': {**DRAWN.percent, 'accuracy_end': 20.0}}
  assert _splits(**{'labels swapped, 4 groups; as printed': worse})[2] == 'fails'
