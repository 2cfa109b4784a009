"""Table 2 of McMahan et al. 2017, as it is transcribed in public, and what findings say of its replication, figure 1 of Miles et al. 2024."""

import pytest

from tests.made_up.claims_of.miles2024 import as_claimed
from tests.made_up.scorecard_rows import stacked
from tff_cluster.papers import mcmahan2017, miles2024
from tff_cluster.scorecard.published import PAPER
from tff_cluster.studies.reproduction import runs

# E, B, IID, non-IID; FedSGD first. The transcription is that of J. A. Lorencio Abril (tff_cluster/papers/mcmahan2017).
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


def test_every_number_is_that_of_a_public_transcription_and_agrees_with_its_speedup():
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


def _check(start, **changes):
  (claim,) = (c for c in miles2024.PUBLISHED['fedex/figure1'].claims if c.words.startswith(start))
  rows = as_claimed(**changes)
  return claim.check(stacked(rows, rows, rows))


@pytest.mark.parametrize(
  ('start', 'name', 'shape', 'told'),
  [
    ('IID, all settings', 'IID, B 50, E 1', (96.9, 9, 0.1), 'IID, B 50, E 1 96.90%'),
    (
      'IID, B = inf takes',
      'IID, B inf, E 5',
      (98.0, 6, 0.1),
      'IID, B inf, E 5 against IID, B 50, E 5 −2.0 rounds',
    ),
    ('IID, B = inf takes', 'IID, B inf, E 5', (80.0, 20, 0.1), ''),  # What is not reached is slowest.
    (
      'IID, B = 10 is the most',
      'IID, B inf, E 5',
      (99.4, 15, 0.1),
      'IID, B 10, E 5 against IID, B inf, E 5 −0.10 points',
    ),
    ('IID, more epochs', 'IID, B 50, E 5', (99.0, 8, 0.1), 'IID, B 50, E 5 against IID, B 50, E 1 −0.10'),
    (
      'IID, more epochs',
      'IID, B inf, E 20',
      (98.2, 16, 0.1),
      'IID, B inf, E 5 against IID, B inf, E 20 −1.0 rounds',
    ),
    ('Non-IID, B = inf fluctuates', 'non-IID, B 10, E 5', (97.5, 10, 12.0), 'against non-IID, B 10, E 5 −'),
  ],
)
def test_what_a_finding_says(start, name, shape, told):
  finding = _check(start, **{name: shape})
  assert finding.verdict == ('fails' if told else 'holds') and told in finding.note


def test_what_neither_reaches_is_undecided():
  never = (80.0, 20, 0.1)
  finding = _check('IID, B = inf takes', **{'IID, B inf, E 5': never, 'IID, B 50, E 5': never})
  assert finding.verdict == 'undecided' and 'not defined' in finding.note


def test_who_never_gets_there_is_told():
  never = (80.0, 20, 0.1)
  finding = _check('IID, more epochs', **{'IID, B inf, E 20': never})
  assert (
    finding.verdict != 'holds'
    and 'IID, B inf, E 5 against IID, B inf, E 20 only the first gets there' in finding.note
  )
