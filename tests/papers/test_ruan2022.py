"""FedSoft: the settings of the public code, and claims that can fail."""

import pytest

from tests.made_up.scorecard_rows import changed, make_ours
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
    found.append((data.mixture_pattern, data.mixture_share))
  assert [found[0], found[1], found[2][0]] == [('fixed', 0.1), ('fixed', 0.3), 'linear']
  assert preset.read_preset('fedsoft_mnist', {}, jobs[1].config.clusterings) == jobs[1].config


PURE = {'10:90': 0.1, '30:70': 0.3, 'linear': 0.25}
MODELS = {'10:90': (93.0, 60.0), '30:70': (90.0, 75.0), 'linear': (80.0, 91.0)}


def _as_claimed(**changes):
  rows = {}
  for row in TABLE.rows:
    mixture, method = row.name.split(', ')
    rows[row.name] = make_ours(
      row, seeds=(0,), over_rows=(92.0 if method == 'FedSoft' else 90.0,), baseline_over_rows=(88.0,),
      alone_over_rows=(85.0,), cluster_accuracy=(MODELS[mixture],), share_error={'group': (PURE[mixture] - 0.02,)},
      pure_error={'group': (PURE[mixture],)},
    )  # fmt: skip
  return {name: changed(row, **changes.get(name, {})) for name, row in rows.items()}


@pytest.mark.parametrize(
  ('row', 'change', 'failing'),
  [
    ('30:70, FedSoft', {'baseline_over_rows': (93.0,)}, [0]),
    ('linear, FedSoft', {'alone_over_rows': (93.0,)}, [1]),
    ('10:90, IFCA', {'over_rows': (93.0,)}, [2]),
    ('10:90, FedEM', {'over_rows': (93.0,)}, []),
    # Models that are the same distance apart the other way round; no less than 5 points.
    ('linear, FedSoft', {'cluster_accuracy': ((91.0, 80.0),)}, []),
    ('linear, FedSoft', {'cluster_accuracy': ((84.9, 80.0),)}, [3]),
    ('30:70, FedSoft', {'cluster_accuracy': ((95.0, 55.0),)}, [4]),
    ('10:90, FedSoft', {'share_error': {'group': (0.1,)}}, [5]),
  ],
)
def test_each_claim_can_fail_and_no_other_does_by_it(row, change, failing):
  found = [claim.check(_as_claimed(**{row: change})).verdict for claim in TABLE.claims]
  assert [i for i, verdict in enumerate(found) if verdict == 'fails'] == failing
  assert found.count('holds') == 6 - len(failing)
