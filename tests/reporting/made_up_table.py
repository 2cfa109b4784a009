"""A made-up table and a figure as a paper prints them, and made-up rows that reproduce them."""

import dataclasses

from tff_cluster.papers.tables import COLUMNS, Cell, Published, Row
from tff_cluster.reporting.claims import Finding
from tff_cluster.reporting.table_claims import Reproduced, TableClaim

WORDS = '20 clients, 15 rounds'
REMARK = f'scaled down: {WORDS}'


def row(name, *cells):
  return Row(name, {'cohort_fraction': 0.2}, {'method': 'hierarchical', 'distance_threshold': '3.0'}, cells)


TABLE = Published(
    'paper/table9', 'A made-up table', 'Somebody 1999, table 9', 'none',
    (
        row('first', Cell(90.0, 1.5), Cell(98.0, 1.0), Cell(50.0, None), Cell(80.0, 2.0)),
        row('dashes', None, Cell(70.0, 1.0), Cell(10.0, 1.1), Cell(20.0, 1.2)),
        row('missing', Cell(1.0, 1.0), Cell(2.0, 1.0), Cell(3.0, 1.0), Cell(4.0, 1.0)),
    ),
    'One number is odd in print.',
)  # fmt: skip
FIGURE = dataclasses.replace(
  TABLE, name='paper/figure9', source='Somebody 1999, figure 9', rows=(row('drawn'),)
)


def reproduced(
  row, percent=(90.4, 96.5, 50.0, 80.0), baseline=(45.2, 96.5, 0.0, 40.0), seeds=(1,), **changes
):
  fields = {
      'row': row, 'percent': dict(zip(COLUMNS, percent, strict=True)),
      'baseline': dict(zip(COLUMNS, baseline, strict=True)), 'seeds': seeds, 'num_clusters': (4,) * len(seeds),
      'threshold': (3.25,) * len(seeds), 'rounds_after': 3, 'rounds_end': 5,
      'accuracy_curve': {3: 90.0, 4: 95.0, 5: 96.5}, 'baseline_curve': {1: 20.0, 2: 60.0, 3: 70.0, 4: 80.0, 5: 90.0},
      'share_curve': {3: 10.0, 4: 60.0, 5: 80.0}, 'baseline_share_curve': {1: 0.0, 2: 0.0, 3: 5.0, 4: 30.0, 5: 40.0},
      'recovery': {'swap': (1.0,) * len(seeds)},
  }  # fmt: skip
  return Reproduced(**(fields | changes))


def rows(published=TABLE, **changes):
  return {row.name: reproduced(row, **changes) for row in published.rows if row.name != 'missing'}


def findings(*verdicts):
  claim = TableClaim('It is so', 'section 3', '1.2x to 2.0x', None, lambda rows: Finding('holds', ''))
  return [(claim, Finding(verdict, '1.5x', 'seen in 2 rows')) for verdict in verdicts]
