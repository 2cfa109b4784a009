"""FedSoft: the settings of the public code, and what its models are read for."""

from tests.made_up.claims_of.ruan2022 import as_claimed
from tests.made_up.scorecard_rows import stacked
from tff_cluster.aggregation import rules
from tff_cluster.experiment import preset
from tff_cluster.papers import ruan2022
from tff_cluster.scorecard.published import PAPER
from tff_cluster.studies.reproduction import runs

TABLE = ruan2022.PUBLISHED['fedsoft/mixtures']


def test_runs_are_as_the_public_code_on_mnist(tmp_path):
  jobs = runs.plan(TABLE, PAPER, (0,), tmp_path)
  assert [[row.name for row in job.rows] for job in jobs] == [
    [f'{mixture}, {method}' for method in ('FedSoft', 'IFCA', 'FedEM')]
    for mixture in ('10:90', '30:70', 'linear')
  ]
  found = []
  for job in jobs:
    data, training = job.config.data, job.config.training
    assert (data.dataset, data.partition, data.mixture_kind, data.num_groups) == (
      'mnist',
      'mixture',
      'rotated',
      2,
    )
    assert (data.mixed_clients, data.num_clients, data.rows_per_client) == (1.0, 100, 150)
    assert (training.model, training.client_optimizer, training.learning_rate) == ('1nn', 'adam', 1e-4)
    assert (training.batch_size, training.local_epochs) == (10, 10)
    assert (training.phase1_rounds, training.phase2_rounds) == (
      0,
      200,
    ) and job.config.evaluation.local_training
    # Each of two models draws 30 of 100 clients.
    assert training.cohort_fraction * data.num_clients / 2 == 30
    soft, *others = job.config.clusterings
    assert (soft.method, soft.options.attraction, soft.options.estimation_interval) == ('fedsoft', 0.1, 2)
    assert {c.options.num_clusters for c in (soft, *others)} == {2}
    (personalized,) = rules.added(job.config.evaluation.aggregation)
    assert (personalized.name, personalized.options) == (
      'personalized',
      {'rounds': 1, 'least_rounds': 1, 'proximal_mu': soft.options.attraction},
    )
    found.append((data.mixture_pattern, data.mixture_share))
  assert [found[0], found[1], found[2][0]] == [('fixed', 0.1), ('fixed', 0.3), 'linear']
  assert preset.read_preset('fedsoft_mnist', {}, jobs[1].config.clusterings) == jobs[1].config


def test_models_are_far_apart_whichever_is_the_better_one_on_the_first_distribution():
  rows = as_claimed(**{'linear, FedSoft': {'cluster_accuracy': ((91.0, 80.0),)}})
  (claim,) = (c for c in TABLE.claims if c.words.startswith('FedSoft’s two models'))
  assert claim.check(stacked(rows, rows, rows)).verdict == 'holds'
