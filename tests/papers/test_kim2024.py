"""CFL-GP's example: the settings of the public code, and what pairs of angles are."""

import itertools

from tests.made_up.claims_of.kim2024 import PAIRS
from tff_cluster.experiment import preset
from tff_cluster.papers import kim2024
from tff_cluster.scorecard.published import PAPER
from tff_cluster.studies.reproduction import runs

TABLE = kim2024.PUBLISHED['cfl_gp/mnist_angles']
# As the README has them, typed a second time.
DEGREES = (0.0, 15.0, 90.0, 105.0, 180.0, 195.0, 270.0, 275.0)


def test_runs_are_as_the_public_code_and_rows_that_can_be_share_one(tmp_path):
  jobs = runs.plan(TABLE, PAPER, (0,), tmp_path)
  assert [len(job.rows) for job in jobs] == [5, 1, 5, 1, 2]
  for job in jobs:
    data, training = job.config.data, job.config.training
    assert (data.dataset, data.partition, data.num_groups, data.group_rows) == (
      'mnist',
      'rotated',
      8,
      'split',
    )
    is_even = 'even' in job.rows[0].name
    assert data.degrees == (tuple(45.0 * k for k in range(8)) if is_even else DEGREES)
    assert data.num_clients == int(job.rows[0].name.split()[0]) and data.num_clients in (64, 128)
    assert (training.model, training.initializer) == ('1nn', 'fan_in_uniform')
    assert (training.batch_size, training.learning_rate, training.local_epochs) == (100, 0.1, 1)
    assert training.phase1_rounds + training.phase2_rounds == 20
    for clustering in job.config.clusterings:
      # The first clustering round is made of what clients make of the initial model.
      assert training.phase1_rounds == (1 if clustering.method == 'bipartition' else 0)
      if clustering.method in ('kmeans', 'spectral'):
        assert clustering.signature == 'updates'
  first = jobs[0].config
  kept = [c for c in first.clusterings if c.label in ('spectral8', 'kmeans8', 'ifca')]
  assert preset.read_preset('cfl_gp_mnist', {}, tuple(kept)).training == first.training
  assert preset.read_preset('cfl_gp_mnist', {}, tuple(kept)).data == first.data


def test_every_claim_says_that_it_is_asked_of_one_of_our_methods():
  assert all('ours' in claim.words and claim.source.startswith('Kim et al. 2024') for claim in TABLE.claims)


def test_pairs_are_pairs_whatever_the_clusters_are_called_and_nothing_else_is():
  for order in itertools.permutations(range(4)):
    assert kim2024.are_pairs([[row[k] for k in order] for row in PAIRS])
  # Neighbours of two pairs swapped; three clusters; a fifth one that takes half of a group.
  assert not kim2024.are_pairs([PAIRS[0], PAIRS[2], PAIRS[1], *PAIRS[3:]])
  assert not kim2024.are_pairs([[a, b, c + d] for a, b, c, d in PAIRS])
  assert not kim2024.are_pairs([[*row, 0] for row in PAIRS[:7]] + [[0, 0, 0, 4, 4]])
