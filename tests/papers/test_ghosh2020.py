"""IFCA: numbers typed a second time, the settings of the public code, and runs that recover the rotations."""

import dataclasses

from tests.made_up.claims_of.ghosh2020 import as_printed
from tff_cluster.experiment import preset
from tff_cluster.papers import ghosh2020
from tff_cluster.scorecard.cells import lines
from tff_cluster.scorecard.published import PAPER
from tff_cluster.studies.reproduction import runs

TABLE = ghosh2020.PUBLISHED['ifca/rotated_mnist']
# m, n, IFCA, global, local (from memory); IFCA in the public rerun.
TYPED_AGAIN = """
4800 50 94.20 86.74 63.32 93.5
2400 100 95.05 88.65 73.66 94.6
1200 200 95.25 89.73 80.05 95.3
"""


def _columns():
  return [tuple(map(int, line.split()[:2])) for line in TYPED_AGAIN.strip().splitlines()]


def test_every_number_is_the_typed_one_and_only_the_reruns_may_decide():
  for line in TYPED_AGAIN.strip().splitlines():
    m, n, *numbers = line.split()
    cells = [cell for cell in TABLE.cells if cell.row.startswith(f'm {m}, n {n}')]
    found = {cell.column: cell for cell in cells}
    order = ('ifca', 'global', 'alone', 'ifca_rerun')
    assert [found[column].published for column in order] == list(map(float, numbers))
    assert [found[column].is_verified for column in order] == [False, False, False, True]
    assert all('from memory' in found[column].note for column in order[:3])
    assert 'jonaskir6/dfca' in found['ifca_rerun'].source
  assert len(TABLE.cells) == 4 * 3


def test_runs_are_those_of_the_public_code(tmp_path):
  jobs = runs.plan(TABLE, PAPER, (2,), tmp_path)
  assert [job.rows[0].name for job in jobs] == [
    name for m, n in _columns() for name in (f'm {m}, n {n}', f'm {m}, n {n}, alone')
  ]
  for job in jobs:
    data, training = job.config.data, job.config.training
    assert (data.dataset, data.partition, data.num_groups, data.group_rows) == ('mnist', 'rotated', 4, 'all')
    # All of MNIST's 60,000 rows in each of four rotations.
    assert data.num_clients * data.rows_per_client == 4 * 60_000
    assert max(1, round(data.validation_fraction * data.rows_per_client)) == 1
    assert (training.model, training.initializer) == ('1nn', 'fan_in_uniform')
    # Ten steps of the full gradient.
    assert (training.local_epochs, training.batch_size, training.learning_rate) == (10, 0, 0.1)
    assert training.cohort_fraction == 1.0 and data.degrees == (0.0, 90.0, 180.0, 270.0)
    rounds = training.phase1_rounds + training.phase2_rounds
    if job.config.clusterings:
      (ifca,) = job.config.clusterings
      assert (ifca.method, ifca.options.num_clusters, ifca.options.start) == ('ifca', 4, 'random')
      assert (training.phase1_rounds, rounds) == (0, 300) and not job.config.evaluation.local_training
    else:
      assert rounds == 10 and job.config.evaluation.local_training
  (whole,) = (job for job in jobs if job.rows[0].name == 'm 1200, n 200')
  (base,) = runs.plan(TABLE, PAPER, (0,), tmp_path, only='m 1200, n 200')
  assert preset.read_preset('ifca_mnist', {}, whole.config.clusterings) == base.config


def test_the_small_scale_has_a_fortieth_of_the_clients_with_as_many_rows(tmp_path):
  jobs = runs.plan(TABLE, TABLE.small, (0,), tmp_path)
  found = [
    (j.config.data.num_clients, j.config.data.rows_per_client, j.config.training.phase1_rounds + j.config.training.phase2_rounds)
    for j in jobs
  ]  # fmt: skip
  assert found == [(120, 50, 60), (120, 50, 10), (60, 100, 60), (60, 100, 10), (30, 200, 60), (30, 200, 10)]


def test_the_first_rounds_are_those_of_the_large_table(tmp_path):
  rotations = ghosh2020.PUBLISHED['ifca/rotations']
  (whole,), (short,) = (runs.plan(rotations, scale, (4,), tmp_path) for scale in (PAPER, rotations.small))
  (same,) = runs.plan(TABLE, PAPER, (4,), tmp_path, only='m 1200, n 200')
  assert whole.config == same.config
  assert short.config.data == whole.config.data and short.config.clusterings == whole.config.clusterings
  assert dataclasses.replace(whole.config.training, phase2_rounds=15) == short.config.training


def test_clients_that_choose_anew_after_the_tenth_round_are_told():
  claim = ghosh2020.PUBLISHED['ifca/rotations'].claims[1]
  for last, verdict, told in (
    ((3, 10, 3), 'holds', 3),
    ((3, 12, 3), 'undecided', 2),
    ((11, 12, 3), 'fails', 1),
  ):
    rows = as_printed(
      (0, 1, 2), **{'m1200,n200': {'rounds_of_changes': tuple((2, number) for number in last)}}
    )
    finding = claim.check(rows)
    assert (finding.verdict, finding.ours) == (verdict, f'in {told} of 3 runs')
  assert finding.note == 'm 1200, n 200, seed 0: still in round 11; m 1200, n 200, seed 1: still in round 12'
  never = as_printed((0, 1, 2), **{'m1200,n200': {'rounds_of_changes': ((), (), ())}})
  assert claim.check(never).verdict == 'holds'


def test_runs_that_recover_the_rotations_are_counted_and_those_that_collapse_named():
  five = tuple(range(5))
  found = {'recovery': {'group': (1.0, 1.0, 0.68, 1.0, 1.0)}, 'empty_models': (0, 0, 1, 0, 0)}
  finding = TABLE.claims[2].check(as_printed(five, **{'m2400,n100': found}))
  assert (finding.verdict, finding.ours) == ('holds', 'in 14 of 15 runs')
  assert finding.note.startswith('collapsed in 1 (m 2400, n 100, seed 2: 1 of 4 models without clients)')
  # Wrong clusters without a collapse: two of fifteen are no surprise at one in fifteen, five are.
  for wrong, verdict in ((2, 'undecided'), (5, 'fails')):
    scores = {'recovery': {'group': (0.5,) * wrong + (1.0,) * (5 - wrong)}}
    finding = TABLE.claims[2].check(as_printed(five, **{'m2400,n100': scores}))
    assert (finding.verdict, finding.ours) == (verdict, f'in {15 - wrong} of 15 runs')
    assert finding.note.startswith('collapsed in 0')


def test_what_is_as_printed_agrees_with_the_rerun_alone():
  seeds = (0, 1, 2)
  names = ('m4800,n50', 'm2400,n100', 'm1200,n200')
  rows = as_printed(seeds, **{name: {'over_rows': (94.3,) * 3} for name in names})
  found = lines(TABLE.name, TABLE.source, TABLE.cells, rows)
  assert {line.verdict for line in found if line.column != 'ifca_rerun'} == {'not verified'}
  assert [line.verdict for line in found if line.column == 'ifca_rerun'] == ['reproduced'] * 3
