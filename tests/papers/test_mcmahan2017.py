"""Table 2 of McMahan et al. 2017, typed a second time, and what Miles et al. 2024 say of its replication, their figure 1."""

import pytest

from tests.made_up import replication_rows
from tff_cluster.papers import mcmahan2017, miles2024
from tff_cluster.scorecard.published import PAPER
from tff_cluster.studies.reproduction import runs

# E, B, IID, non-IID; FedSGD first.
TABLE_2 = """
1 inf 626 483
5 inf 179 (3.5x) 1000 (0.5x)
1 50 65 (9.6x) 600 (0.8x)
20 inf 234 (2.7x) 672 (0.7x)
1 10 34 (18.4x) 350 (1.4x)
5 50 29 (21.6x) 334 (1.4x)
20 50 32 (19.6x) 426 (1.1x)
5 10 20 (31.3x) 229 (2.1x)
20 10 18 (34.8x) 173 (2.8x)
"""


def _told(cell):
  return f'{cell.rounds}' + ('' if cell.speedup is None else f' ({cell.speedup}x)')


def test_every_number_is_the_printed_one():
  lines = []
  for (partition, batch, epochs), cell in mcmahan2017.ROUNDS_TO_TARGET.items():
    if partition == 'IID':
      other = mcmahan2017.ROUNDS_TO_TARGET['non-IID', batch, epochs]
      lines.append(f'{epochs} {batch or "inf"} {_told(cell)} {_told(other)}')
  assert lines == TABLE_2.strip().splitlines() and len(mcmahan2017.ROUNDS_TO_TARGET) == 18
  for (partition, *_), cell in mcmahan2017.ROUNDS_TO_TARGET.items():
    fedsgd = mcmahan2017.ROUNDS_TO_TARGET[partition, None, 1]
    expected = None if cell is fedsgd else f'{fedsgd.rounds / cell.rounds:.1f}'
    assert cell.speedup == expected or f'{cell.speedup}' == expected


TABLE = mcmahan2017.PUBLISHED['mcmahan2017/table2']


def test_its_rows_are_fedavg_alone_and_runs_and_numbers_are_those_beside_the_replication(tmp_path):
  replication = miles2024.PUBLISHED['fedex/figure1']
  assert TABLE.cells == replication.cells
  for scale in (PAPER, TABLE.small):
    ours = runs.plan(TABLE, scale, (0,), tmp_path)
    theirs = runs.plan(replication, scale, (0,), tmp_path)
    assert [job.config for job in ours] == [job.config for job in theirs]
    assert len(ours) == 18 and all(job.config.clusterings == () for job in ours)


CLAIMS = miles2024.PUBLISHED['fedex/figure1'].claims
# Best accuracy, the round that reaches it, and how far every other round is below it: by batch size, E = 1, 5, 20.
AS_CLAIMED = {
  'IID': {
    10: [(99.2, 6, 0.1), (99.3, 4, 0.1), (99.4, 3, 0.1)],
    50: [(99.1, 9, 0.1), (99.2, 8, 0.1), (99.3, 7, 0.1)],
    None: [(96.0, 20, 0.1), (98.0, 15, 0.1), (98.2, 14, 0.1)],
  },
  'non-IID': {
    10: [(97.0, 12, 0.5), (97.5, 10, 0.5), (97.7, 8, 0.5)],
    50: [(96.5, 20, 1.0), (96.6, 19, 1.0), (96.7, 18, 1.0)],
    None: [(95.5, 30, 3.0), (95.6, 29, 3.0), (95.7, 28, 3.0)],
  },
}


def as_claimed(**changes):
  rows = {}
  for partition, batch, epochs in mcmahan2017.SETTINGS:
    name = mcmahan2017.row_name(partition, batch, epochs)
    shape = AS_CLAIMED[partition][batch][mcmahan2017.EPOCHS.index(epochs)]
    rows[name] = replication_rows.row(name, replication_rows.curve(*changes.get(name, shape)))
  return rows


def verdicts(rows):
  return [claim.check(rows).verdict for claim in CLAIMS]


@pytest.mark.parametrize(
  ('name', 'shape', 'failing', 'told'),
  [
    ('IID, B 50, E 1', (96.9, 9, 0.1), [0], 'not; IID, B 50, E 1: 96.90%'),
    ('IID, B inf, E 1', (97.0, 20, 0.1), [1], 'not; IID, B inf, E 1: 97.00%'),
    ('IID, B inf, E 5', (98.0, 6, 0.1), [2], 'not IID, B 50, E 5 against IID, B inf, E 5: rounds 7.9 against 5.9'),
    ('IID, B 50, E 1', (99.1, 5, 0.1), [3], 'not IID, B 10, E 1 against IID, B 50, E 1: rounds 5.9 against 4.9'),
    ('IID, B 10, E 5', (99.3, 7, 0.1), [4], 'IID, B 10, E 5 against IID, B 10, E 1: rounds 6.9 against 5.9'),
    ('non-IID, B 50, E 1', (96.5, 9, 1.0), [5], 'rounds 12.0 against 9.0'),
    ('non-IID, B 10, E 5', (97.5, 10, 12.0), [7], 'against non-IID, B 10, E 5: fluctuation'),
    ('non-IID, B 10, E 20', (97.7, 11, 0.5), [8], 'non-IID, B 10, E 20 against non-IID, B 10, E 5'),
    ('IID, B 50, E 20', (99.3, 7, 2.0), [9], 'not non-IID, B 50, E 20 against IID, B 50, E 20: fluctuation'),
    ('IID, B 10, E 1', (98.99, 6, 0.1), [3, 10], 'not; IID, B 10, E 1: 98.99%'),
  ],
)  # fmt: skip
def test_each_claim_can_fail_and_no_other_does_by_it(name, shape, failing, told):
  rows = as_claimed(**{name: shape})
  assert [i for i, verdict in enumerate(verdicts(rows)) if verdict == 'fails'] == failing
  assert verdicts(rows).count('holds') == len(CLAIMS) - len(failing)
  assert told in CLAIMS[failing[-1]].check(rows).note


def test_what_neither_reaches_is_undecided_and_not_reached_is_slowest():
  never = (80.0, 20, 0.1)
  rows = as_claimed(**{'IID, B inf, E 5': never})
  assert CLAIMS[2].check(rows).verdict == 'holds'
  rows = as_claimed(**{'IID, B inf, E 5': never, 'IID, B 50, E 5': never})
  finding = CLAIMS[2].check(rows)
  assert (finding.verdict, finding.ours) == ('undecided', 'in 5 of 6 comparisons')
  assert (
    'undecided IID, B 50, E 5 against IID, B inf, E 5: rounds not reached against not reached' in finding.note
  )


def test_all_hold_where_all_is_as_claimed_a_comparison_needs_both_sides_and_one_is_enough():
  rows = as_claimed()
  for finding in (claim.check(rows) for claim in CLAIMS):
    assert finding.verdict == 'holds' and (finding.note == '' or finding.note.startswith('all '))
  one = {'IID, B 10, E 1': rows['IID, B 10, E 1']}
  found = [claim.check(one) for claim in CLAIMS]
  # One row says whether it converges and whether it reaches 99%.
  assert [i for i, finding in enumerate(found) if finding.verdict == 'holds'] == [0, 10]
  assert {finding.verdict for finding in found} == {'holds', 'not run'}
  finding = CLAIMS[9].check(one | {'non-IID, B 10, E 1': rows['non-IID, B 10, E 1']})
  assert (finding.verdict, finding.ours) == ('holds', 'in 1 of 1 comparison')
