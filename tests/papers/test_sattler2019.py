"""CFL: its figures and our table of splits are the experiments that the paper describes; claims hold on what it draws."""

import pytest

from tests.made_up import in_json
from tests.made_up.scorecard_rows import changed, make_ours
from tff_cluster.experiment.result_parts import Split
from tff_cluster.papers import sattler2019
from tff_cluster.papers.sattler2019 import tables
from tff_cluster.scorecard.published import PAPER
from tff_cluster.scorecard.rows import COLUMNS
from tff_cluster.studies.reproduction import runs


def test_figure_3_is_as_section_4_says(tmp_path):
  (job,) = runs.plan(tables.FIGURE3, PAPER, (0,), tmp_path)
  data, training, (cfl,) = job.config.data, job.config.training, job.config.clusterings
  assert (data.dataset, data.partition) == ('cifar10', 'label_permuted')
  assert (data.num_clients, data.num_groups) == (20, 4)
  assert data.rows_per_client is None  # All 50,000 images are shared out.
  assert (training.local_epochs, training.batch_size, training.cohort_fraction) == (3, 100, 1.0)
  assert training.phase1_rounds == cfl.options.rounds_before_split == 50
  assert (cfl.options.min_cluster_size, cfl.options.min_similarity_gap) == (1, 0.0)
  # A scale changes the clustering too.
  (small,) = runs.plan(tables.FIGURE3, tables.FIGURE3.small, (0,), tmp_path)
  assert small.config.training.phase1_rounds == small.config.clusterings[0].options.rounds_before_split == 20


def test_the_rows_of_splits_are_both_variants_of_each_kind_of_clients(tmp_path):
  jobs = runs.plan(tables.SPLITS, PAPER, (0,), tmp_path)
  assert len(jobs) == 6
  for job in jobs:
    printed, guarded = (clustering.options for clustering in job.config.clusterings)
    assert (printed.min_similarity_gap, guarded.min_similarity_gap) == (0.0, tables.GAP)
    assert (printed.max_cross_similarity, guarded.max_cross_similarity) == (1.0, tables.CROSS)
    assert (printed.min_cluster_size, guarded.min_cluster_size) == (1, 2)
    assert printed.stationary_norm == guarded.stationary_norm
    assert printed.stopping_norm > guarded.stopping_norm
  assert {job.config.data.partition for job in jobs} == {'iid', 'dirichlet', 'label_swapped', 'rotated'}


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
  seeds=(0,), num_clusters=(4,), threshold=(None,), rounds_after=51, rounds_end=200,
  accuracy_curve={51: 25.0, 200: 59.0}, baseline_curve={50: 20.0, 51: 20.0, 200: 21.0},
  share_curve={}, baseline_share_curve={}, recovery={'group': (1.0,)},
  splits=([_test(50), _test(100), _test(150), _test(199, 'stopped')],),
)  # fmt: skip


def _figure3(**changes):
  rows = {DRAWN.row.name: changed(DRAWN, **changes)}
  return [claim.check(rows).verdict for claim in FIGURE3]


@pytest.mark.parametrize(
  ('claim', 'changes'),
  [
    (0, {'baseline_curve': {50: 35.0}}),
    (1, {'splits': ([_test(50), _test(100), _test(140), _test(199, 'stopped')],)}),
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


def test_every_seed_counts_and_a_seed_without_a_split():
  twice = {'seeds': (0, 1), 'splits': DRAWN.splits * 2, 'num_clusters': (4, 4), 'threshold': (None, None)}
  assert _figure3(**twice, recovery={'group': (1.0, 1.0)}) == ['holds'] * 7
  assert _figure3(**twice, recovery={'group': (1.0, 0.9)})[3] == 'fails'
  assert _figure3(splits=([],))[1:5] == ['fails', 'fails', 'holds', 'fails']


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
