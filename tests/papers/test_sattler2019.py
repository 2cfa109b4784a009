"""CFL: its figures and our table of splits are the experiments that the paper describes; its claims mean what they say."""

from tests.made_up.claims_of import sattler2019 as made_up
from tests.made_up.scorecard_rows import stacked
from tff_cluster.papers import sattler2019
from tff_cluster.papers.sattler2019 import tables
from tff_cluster.scorecard.published import PAPER
from tff_cluster.studies.reproduction import runs


def test_figure_3_is_as_section_4_says(tmp_path):
  (job,) = runs.plan(tables.FIGURE3, PAPER, (0,), tmp_path)
  data, training, (cfl,) = job.config.data, job.config.training, job.config.clusterings
  assert (data.dataset, data.partition) == ('cifar10', 'label_permuted')
  assert (data.num_clients, data.num_groups) == (20, 4)
  assert data.test_rows == 'all'  # Equation 7.
  assert data.rows_per_client is None  # All 50,000 images are shared out.
  assert (training.local_epochs, training.batch_size, training.cohort_fraction) == (3, 100, 1.0)
  assert training.phase1_rounds == cfl.options.rounds_before_split == 50
  assert (cfl.options.min_cluster_size, cfl.options.min_similarity_gap) == (1, 0.0)
  # Clusters of the third split are tested after as many rounds as all others, which is not in the last round.
  assert training.last_round == 4 * 50 + 1
  # A scale changes the clustering too.
  (small,) = runs.plan(tables.FIGURE3, tables.FIGURE3.small, (0,), tmp_path)
  assert small.config.data.test_rows == 'all'
  assert small.config.training.phase1_rounds == small.config.clusterings[0].options.rounds_before_split == 20
  assert small.config.training.last_round == 4 * 20 + 1


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


def _verdict(start, *of_seeds):
  (claim,) = (c for c in sattler2019.PUBLISHED['cfl/figure3'].claims if c.words.startswith(start))
  return claim.check(stacked(*({found.row.name: found} for found in of_seeds)))


def test_all_clients_means_every_client():
  drawn = made_up.drawn()
  one_short = made_up.drawn(of=made_up.runs(before=(0.20, 0.25), after=(0.90, 0.49)))
  finding = _verdict('The accuracy of all clients more', *(one_short,) * 3)
  assert (finding.verdict, finding.ours) == ('fails', '1.96 times')
  finding = _verdict('The accuracy of all clients more', *(drawn,) * 3)
  assert (finding.verdict, finding.ours) == ('holds', '2.40 times')


def test_a_level_is_no_standstill():
  steady = made_up.drawn(baseline_by_seed=({n: 10.0 + 0.2 * n for n in range(1, 202)},))
  assert _verdict('Before the first split', *(steady,) * 3).verdict == 'holds'
  finding = _verdict('They stagnate', *(steady,) * 3)
  assert (finding.verdict, finding.ours) == ('fails', '+2.00 points')


def test_similarities_are_asked_of_every_final_cluster():
  far, near = made_up.test(200, 'stopped', similarity=0.3, cluster=('c', 'd')), made_up.LAST[0]
  # The test of a cluster before its split says nothing of what is left of it.
  for tests, verdict in (
    ((far, near), 'fails'),
    ((near,), 'not decidable here'),
    ((near, made_up.test(150)), 'not decidable here'),
  ):
    drawn = made_up.drawn(splits=made_up.splits_of(*tests))
    finding = _verdict('Similarity within', drawn, drawn, drawn)
    assert finding.verdict == verdict and ('3 of 6 final clusters' in finding.note) is (verdict != 'fails')


def test_similarities_of_clusters_that_mix_groups_cancel_and_tell_nothing():
  mixed = made_up.drawn(recovery={'group': (0.5,)})
  finding = _verdict('Similarity within', mixed, mixed, mixed)
  assert finding.verdict == 'not decidable here' and 'cancel in a mean' in finding.note


def test_a_rise_that_the_paper_printed_is_of_its_own_setting():
  (claim,) = (c for c in sattler2019.PUBLISHED['cfl/figure3'].claims if c.words.startswith('The first split'))
  rows = {tables.FIGURE3.rows[0].name: made_up.drawn()}
  finding = claim.check(stacked(rows, rows, rows), 'scaled down')
  assert finding.verdict == 'not decidable here' and 'the number that is its limit' in finding.note


def test_without_any_split_it_is_not_shown_that_splits_do_no_harm():
  one = made_up.drawn(num_clusters=(1,), windows={'accuracy_end': (21.0,)})
  assert _verdict('Clients are never', one, one, one).verdict == 'not decidable here'
  split = made_up.drawn(windows={'accuracy_end': (21.2,)})
  assert _verdict('Clients are never', split, one, one).verdict == 'holds'


def test_a_seed_without_a_split_or_without_a_stopped_cluster():
  none = made_up.drawn(splits=made_up.splits_of())
  for start, verdict in (
    ('Three splits', 'fails'),
    ('The first split', 'undecided'),
    ('A distinct gap', 'undecided'),
    ('Similarity within', 'not decidable here'),
    ('All clusters', 'holds'),
  ):
    assert _verdict(start, none, none, none).verdict == verdict
  twice = made_up.drawn(
    splits=made_up.splits_of(made_up.test(50), made_up.test(100), made_up.test(100), *made_up.LAST)
  )
  assert _verdict('Three splits', twice, twice, twice).verdict == 'fails'


def test_a_split_without_a_round_after_it_and_norms_of_zero_say_nothing():
  late = made_up.drawn(splits=made_up.splits_of(made_up.test(50, rise=None), *made_up.LAST))
  for start in ('The first split', 'Every split'):
    assert _verdict(start, late, late, late).verdict == 'undecided'
  still = made_up.test(50, mean_norm=0.0, longest=0.0)
  none = made_up.drawn(splits=made_up.splits_of(still, *made_up.LAST))
  assert _verdict('Training has converged', none, none, none).verdict == 'undecided'
