"""Table 2 of McMahan et al. 2017, typed a second time; its printed speedups are the ratios of its rounds."""

import pytest

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


@pytest.mark.parametrize('setting', mcmahan2017.ROUNDS_TO_TARGET)
def test_speedups_are_ratios_to_fedsgd(setting):
  cell, fedsgd = mcmahan2017.ROUNDS_TO_TARGET[setting], mcmahan2017.ROUNDS_TO_TARGET[setting[0], None, 1]
  if cell is fedsgd:
    assert cell.speedup is None
  else:
    assert f'{fedsgd.rounds / cell.rounds:.1f}' == f'{cell.speedup}'


TABLE = mcmahan2017.PUBLISHED['mcmahan2017/table2']


def test_its_rows_are_fedavg_alone_and_runs_and_numbers_are_those_beside_the_replication(tmp_path):
  replication = miles2024.PUBLISHED['fedex/figure1']
  assert TABLE.cells == replication.cells
  for scale in (PAPER, TABLE.small):
    ours = runs.plan(TABLE, scale, (0,), tmp_path)
    theirs = runs.plan(replication, scale, (0,), tmp_path)
    assert [job.config for job in ours] == [job.config for job in theirs]
    assert len(ours) == 18 and all(job.config.clusterings == () for job in ours)
