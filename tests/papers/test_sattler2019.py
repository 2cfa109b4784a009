"""CFL's figures and our table of splits: what is asked for is a valid experiment, and the one that the paper describes."""

import pytest

from tff_cluster.papers import catalogue
from tff_cluster.papers.sattler2019 import tables
from tff_cluster.scorecard.published import PAPER
from tff_cluster.studies.reproduction import runs


@pytest.mark.parametrize('published', [tables.FIGURE3, tables.SPLITS], ids=lambda p: p.name)
@pytest.mark.parametrize('scale', ['paper', 'small'])
def test_every_row_is_a_valid_experiment(published, scale, tmp_path):
  jobs = runs.plan(published, published.scale(scale), (0, 1), tmp_path)
  assert sum(len(job.rows) for job in jobs) == 2 * len(published.rows)
  for job in jobs:
    assert all(clustering.method == 'bipartition' for clustering in job.config.clusterings)


def test_figure_3_is_as_section_4_says(tmp_path):
  (job,) = runs.plan(tables.FIGURE3, PAPER, (0,), tmp_path)
  data, training, (cfl,) = job.config.data, job.config.training, job.config.clusterings
  assert (data.dataset, data.num_clients, data.num_groups, data.partition) == (
    'cifar10',
    20,
    4,
    'label_permuted',
  )
  assert data.rows_per_client is None  # All 50,000 images are shared out.
  assert (training.local_epochs, training.batch_size, training.cohort_fraction) == (3, 100, 1.0)
  assert training.phase1_rounds == cfl.options.rounds_before_split == 50
  assert (cfl.options.min_cluster_size, cfl.options.min_similarity_gap) == (1, 0.0)


def test_a_scale_changes_the_clustering_too(tmp_path):
  (job,) = runs.plan(tables.FIGURE3, tables.FIGURE3.small, (0,), tmp_path)
  assert job.config.training.phase1_rounds == job.config.clusterings[0].options.rounds_before_split == 20


def test_the_rows_of_splits_are_both_variants_of_each_kind_of_clients(tmp_path):
  jobs = runs.plan(tables.SPLITS, PAPER, (0,), tmp_path)
  assert len(jobs) == 6
  for job in jobs:
    printed, guarded = job.config.clusterings
    assert (printed.options.min_similarity_gap, guarded.options.min_similarity_gap) == (0.0, tables.GAP)
    assert (printed.options.max_cross_similarity, guarded.options.max_cross_similarity) == (
      1.0,
      tables.CROSS,
    )
    assert (printed.options.min_cluster_size, guarded.options.min_cluster_size) == (1, 2)
    assert (
      printed.options.stationary_norm == guarded.options.stationary_norm
      and printed.options.stopping_norm > guarded.options.stopping_norm
    )
  assert {job.config.data.partition for job in jobs} == {'iid', 'dirichlet', 'label_swapped', 'rotated'}


def test_toys_have_no_experiment_behind_them():
  for name in ('cfl/figure1', 'cfl/figure2'):
    entry = catalogue.find(None, name)
    assert entry.compute is not None and not entry.rows and not entry.preset
