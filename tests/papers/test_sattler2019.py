"""CFL's figures and our table of splits: what is asked for is a valid experiment, and the one that the paper describes."""

from tff_cluster.papers.sattler2019 import tables
from tff_cluster.scorecard.published import PAPER
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
