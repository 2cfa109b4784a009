"""Claims of Briggs et al. 2020, section III.B: metrics and linkages (tables IV to VI)."""

import functools
from collections.abc import Iterable

from tff_cluster.papers.briggs2020 import base, by_rounds, rules
from tff_cluster.scorecard.claims import Claim
from tff_cluster.scorecard.rows import COLUMNS, Row

_SECTION = 'Briggs et al. 2020, section III.B'
_each = functools.partial(base.claim_of_each, _SECTION)
_AT_END = ('accuracy_end', 'share_end')
# Points of accuracy between linkages of a metric. Table IV spreads over 1.4 within L2, which the paper calls negligible.
_LINKAGE_SPREAD = 1.5
# ">5x".
_FEWER_ROUNDS = 5


def table4() -> tuple[Claim, ...]:
  """Returns the claims about table IV: pathological non-IID."""
  name = 'fl_hc/table4'
  rows = base.rows_of(name)
  l1 = [row for row in rows if base.metric(row) == 'l1']
  return (
    _each(
      f'Every row ends similar to FedAvg or better (at most {base.SAME:g} point below)',
      '1.0x in every row',
      rows,
      rules.every(rules.gain('accuracy_end'), rules.at_least(-base.SAME)),
    ),
    _each(
      'At the end, 1.2 to 2.1 times as many clients are at the target as with FedAvg',
      '1.2x to 2.1x',
      rows,
      rules.every(rules.ratio('share_end'), rules.prints_between(1.2, 2.1)),
    ),
    Claim(
      'Right after the clustering, L1 is the most accurate, then L2, then cosine',
      _SECTION,
      '99.3%, 95.2% and 90.9% (means of what is printed)',
      base.across_metrics(name),
      rules.metric_order(rules.level('accuracy_after'), ['l1'], ['l2'], ['cosine']),
    ),
    _beyond_iid(l1),
    _far_fewer_rounds(l1),
    Claim(
      'Most clients are at the target at the end with L1',
      _SECTION,
      '91% to 92%',
      base.across_metrics(name),
      rules.metric_order(rules.level('share_end'), ['l1'], ['l2', 'cosine']),
    ),
    Claim(
      f'The linkage matters little: within {_LINKAGE_SPREAD:g} points of accuracy at the end for each metric',
      _SECTION,
      'negligible',
      base.pairs(rows, base.metric),
      rules.spread(
        rules.level('accuracy_end'), base.metric, _LINKAGE_SPREAD, lambda metric: rules.METRIC_NAMES[metric]
      ),
    ),
    _default(name),
  )


def table5() -> tuple[Claim, ...]:
  """Returns the claims about table V: label-swapped."""
  name = 'fl_hc/table5'
  rows = base.rows_of(name)
  cosine = [row for row in rows if base.metric(row) == 'cosine']
  others = [row for row in rows if base.metric(row) != 'cosine']
  reaches = rules.at_least(base.IID_ACCURACY - base.NEAR_IID)
  return (
    _each(
      'In every row FL+HC is at least 1.2 times as accurate as FedAvg, right after the clustering and at the end',
      '1.2x to 1.3x',
      rows,
      rules.in_columns(COLUMNS[:2], rules.every, rules.ratio, rules.prints_between(1.2)),
    ),
    Claim(
      'At the end, cosine is more accurate than L2 and L1, on average over linkages',
      _SECTION,
      '99.1%, 98.7% and 98.5% (means over average and complete linkage as printed)',
      base.across_metrics(name),
      rules.metric_order(rules.level('accuracy_end'), ['cosine'], ['l2', 'l1']),
    ),
    _each(
      f'Every row approaches FedAvg on IID clients: at the end at most {base.SAME:g} point below {base.IID_ACCURACY}%',
      '98.3% to 99.1%',
      rows,
      rules.every(rules.level('accuracy_end'), rules.at_least(base.IID_ACCURACY - base.SAME)),
    ),
    _each(
      f'With cosine it is reached: at the end at most {base.NEAR_IID:g} points below',
      '99.1%',
      cosine,
      rules.every(rules.level('accuracy_end'), reaches),
    ),
    _each(
      'With L2 and L1 it is not reached',
      'only with cosine; but L2 with complete and with Ward linkage print 99.1%',
      others,
      rules.every(rules.level('accuracy_end'), lambda v: not reaches(v)),
    ),
    _each(
      'Cosine finds the planted groups exactly (ours adds the index)',
      'the correct clusters',
      cosine,
      rules.groups_found('group'),
    ),
    _linkage_matters_less(name),
    _default(name),
  )


def table6() -> tuple[Claim, ...]:
  """Returns the claims about table VI: FEMNIST."""
  name = 'fl_hc/table6'
  rows = base.rows_of(name)
  return (
    by_rounds.little(rows),
    _each(
      'Cosine ends below FedAvg, in accuracy and in clients at the target',
      '0.8x to 0.9x, and 0.4x to 0.8x',
      [row for row in rows if base.metric(row) == 'cosine'],
      rules.in_columns(_AT_END, rules.every, rules.gain, rules.below(0.0)),
    ),
    Claim(
      'L2 with complete linkage, or L1 with single (equal in print), is the most accurate at the end',
      _SECTION,
      '78.7% both',
      base.against_others(name, 'L2, complete', 'L1, single'),
      rules.best_row(rules.level('accuracy_end'), ('L2, complete', 'L1, single')),
    ),
    Claim(
      'Most clients are at the target at the end with L1 and complete linkage',
      _SECTION,
      '54.0%, 1.1x',
      base.against_others(name, 'L1, complete'),
      rules.best_row(rules.level('share_end'), ('L1, complete',)),
    ),
    _linkage_matters_less(name),
    _default(name),
  )


def figures() -> dict[str, tuple[Claim, ...]]:
  """Returns the claims about the figures of this section, by name."""
  five, six = (base.rows_of(f'fl_hc/figure{number}') for number in (5, 6))
  more = _each(
    'At the end, at least 1.1 times as many clients are at the target as with FedAvg',
    '1.1x',
    six,
    rules.every(rules.ratio('share_end'), rules.prints_between(1.1)),
  )
  return {'fl_hc/figure5': (_beyond_iid(five), _far_fewer_rounds(five)), 'fl_hc/figure6': (more,)}


def iid() -> tuple[Claim, ...]:
  """Returns the claims about the IID experiments of this section."""
  tuned = base.rows_of('fl_hc/iid', lambda row: row.clustering['distance_threshold'] == 'validation')
  l1 = [row for row in tuned if base.metric(row) == 'l1']
  return (
    *(
      _each(
        f'{words} does not split IID clients',
        'one cluster',
        [row for row in tuned if base.metric(row) == metric],
        rules.every(rules.MOST_CLUSTERS, rules.at_most(1)),
      )
      for metric, words in (('l2', 'L2'), ('cosine', 'Cosine'))
    ),
    _each(
      'L1 splits IID clients',
      'several clusters',
      l1,
      rules.every(rules.FEWEST_CLUSTERS, rules.above(1)),
    ),
    _each(
      'L1 lowers the accuracy of IID clients and the share at the target at the end',
      'reduced',
      l1,
      rules.in_columns(_AT_END, rules.every, rules.gain, rules.below(0.0)),
    ),
  )


def _beyond_iid(rows: Iterable[Row]) -> Claim:
  return _each(
    f'L1: right after the clustering, accuracy exceeds FedAvg’s on IID clients at round 50 ({base.IID_ACCURACY}%)',
    '99.2% to 99.4%',
    rows,
    rules.every(rules.level('accuracy_after'), rules.above(base.IID_ACCURACY)),
  )


def _far_fewer_rounds(rows: Iterable[Row]) -> Claim:
  return _each(
    f'L1: to reach the accuracy right after the clustering, FedAvg needs at least {_FEWER_ROUNDS} times the rounds, or '
    'never gets there',
    'more than 5 times',
    rows,
    rules.rounds_saved(_FEWER_ROUNDS),
  )


def _default(name: str) -> Claim:
  chosen = [row for row in base.rows_of(name) if (base.metric(row), base.linkage(row)) == ('l1', 'complete')]
  return _each(
    f'L1 with complete linkage is a good default: it costs at most {base.SAME:g} point against FedAvg at the end',
    'a good default setting',
    chosen,
    rules.every(rules.gain('accuracy_end'), rules.at_least(-base.SAME)),
  )


def _linkage_matters_less(name: str) -> Claim:
  return Claim(
    'Linkages of a metric lie nearer together at the end than the metrics do',
    _SECTION,
    'much less of an effect',
    base.across_metrics(name, at_least=2),
    rules.linkage_below_metric(rules.level('accuracy_end')),
  )
