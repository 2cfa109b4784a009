"""A made-up table and a figure as a paper prints them, and made-up rows that reproduce them."""

from tests.made_up.scorecard_rows import make_ours
from tff_cluster.scorecard.cells import standard
from tff_cluster.scorecard.claims import Finding, RuledClaim
from tff_cluster.scorecard.published import Published, Scale
from tff_cluster.scorecard.rows import COLUMNS, Row

WORDS = '20 clients, 15 rounds'
SMALL = Scale('small', WORDS)
REMARK = SMALL.remark


def row(name):
  return Row(name, {'cohort_fraction': 0.2}, {'method': 'hierarchical', 'distance_threshold': '3.0'})


def table(printed, **changes):
  """A table of rows with four cells each: number and ratio, or None; no cells at all where a row has None."""
  rows = tuple(map(row, printed))
  cells = tuple(cell for name, pairs in printed.items() for cell in standard(name, pairs))
  fields = {
    'name': 'paper/table9', 'title': 'A made-up table', 'source': 'Somebody 1999, table 9', 'preset': 'none', 'rows': rows,
    'note': 'One number is odd in print.', 'method': 'FL+HC', 'cells': cells,
  }  # fmt: skip
  return Published(**(fields | changes))


TABLE = table({
  'first': ((90.0, 1.5), (98.0, 1.0), (50.0, None), (80.0, 2.0)),
  'dashes': (None, (70.0, 1.0), (10.0, 1.1), (20.0, 1.2)),
  'missing': ((1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0)),
})  # fmt: skip
FIGURE = table(
  {'drawn': None},
  name='paper/figure9',
  source='Somebody 1999, figure 9',
  sections=('claims', 'clusters', 'curves'),
)


def columns(values, seeds):
  return {column: (value,) * seeds for column, value in zip(COLUMNS, values, strict=True)}


def reproduced(
  row, percent=(90.4, 96.5, 50.0, 80.0), baseline=(45.2, 96.5, 0.0, 40.0), seeds=(1,), **changes
):
  count = len(seeds)
  fields = {
      'columns': columns(percent, count), 'baseline_columns': columns(baseline, count), 'seeds': seeds,
      'windows': columns(percent, count), 'baseline_windows': columns(baseline, count),
      'num_clusters': (4,) * count, 'threshold': (3.25,) * count, 'rounds_after': 3, 'rounds_end': 5,
      'accuracy_curve': {3: 90.0, 4: 95.0, 5: 96.5}, 'baseline_curve': {1: 20.0, 2: 60.0, 3: 70.0, 4: 80.0, 5: 90.0},
      'share_curve': {3: 10.0, 4: 60.0, 5: 80.0}, 'baseline_share_curve': {1: 0.0, 2: 0.0, 3: 5.0, 4: 30.0, 5: 40.0},
      'recovery': {'swap': (1.0,) * count},
  }  # fmt: skip
  return make_ours(row, **(fields | changes))


def rows(published=TABLE, **changes):
  return {row.name: reproduced(row, **changes) for row in published.rows if row.name != 'missing'}


def claims(*verdicts):
  """Claims that come out so."""
  return tuple(
    RuledClaim(
      'It is so', 'section 3', '1.2x to 2.0x', (),
      lambda rows, verdict=verdict: Finding(verdict, '1.5x', 'seen in 2 rows'),
    )
    for verdict in verdicts
  )  # fmt: skip
