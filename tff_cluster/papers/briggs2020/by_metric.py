"""Claims of Briggs et al. 2020, section III.B: metrics and linkages (tables IV to VI)."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tff_cluster.papers.briggs2020 import base, by_rounds, rules
from tff_cluster.scorecard.claims import Claim, Part, Rows, all_alone, all_fedavg, show_percent, unless
from tff_cluster.scorecard.rows import COLUMNS, Row

_SECTION = 'Briggs et al. 2020, section III.B'
_AT_END = ('accuracy_end', 'share_end')
# ">5x".
_FEWER_ROUNDS = 5
_PRINTS_1_1, _PRINTS_1_2 = 1.05, 1.15


def _claim(
  words: str, published: str, parts: Iterable[Part], undecidable: Callable[[Rows], str] | None = None
) -> Claim:
  """Returns a claim about clusters; rows in which every client is alone tell nothing."""
  return Claim(words, _SECTION, published, rules.of_clusters(parts), undecidable=undecidable)


def _compared(words: str, published: str, parts: Iterable[Part]) -> Claim:
  """Returns a claim that compares metrics or linkages, which trainings must be behind."""
  found = tuple(parts)
  return _claim(words, published, found, rules.one_training(found))


def table4(name: str) -> tuple[Claim, ...]:
  """Returns the claims about table IV, pathological non-IID, on one of its readings (tables.py)."""
  rows = base.rows_of(name)
  l1 = _of_metric(rows, 'l1')
  return (
    _claim(
      f'Every row ends similar to FedAvg or better (at most {base.SAME:g} points below)', '1.0x in every row',
      rules.each(rows, rules.gain('accuracy_end'), -base.SAME), all_fedavg,
    ),
    _claim(
      'At the end at least 1.2 times as many clients are at the target as with FedAvg, in every row (what prints so: from 1.15 on)', '1.2x to 2.1x',
      rules.times_fedavg(rows, 'share_end', _PRINTS_1_2),
    ),
    _compared(
      f'L1 performs best, then L2, then cosine, on average over linkages: in accuracy and in clients, right after the clustering and at '
      f'the end (by {base.SAME:g} points each)', '99.3%, 95.2% and 90.9% right after the clustering (means of what is printed)',
      [
        part
        for c in COLUMNS
        for part in rules.metric_order(rows, rules.level(c), ['l1'], ['l2'], ['cosine'], name=rules.WORDS[c])
      ],
    ),
    _beyond_iid(l1),
    _far_fewer_rounds(l1),
    _compared(
      f'Most clients are at the target with L1, right after the clustering and at the end (by {base.SAME:g} points)',
      '87% to 91%, and 91% to 92%',
      [
        part
        for c in COLUMNS[2:]
        for part in rules.metric_order(rows, rules.level(c), ['l1'], ['l2', 'cosine'], name=rules.WORDS[c])
      ],
    ),
    _compared(
      f'The linkage has a negligible effect on everything that the tables print: within {base.SAME:g} points of accuracy and {base.SAME_SHARE:g} points of clients '
      'for each two linkages of a metric', 'negligible; but 24 of 48 pairs print further apart, by up to 3.7 points and 35 points of clients',
      [
        part
        for c, limit in base.LIMITS.items()
        for part in rules.alike(base.pairs(rows, base.metric), rules.level(c), limit, rules.WORDS[c])
      ],
    ),
    _default(rows),
  )  # fmt: skip


def table5() -> tuple[Claim, ...]:
  """Returns the claims about table V: label-swapped."""
  rows = base.rows_of('fl_hc/table5')
  cosine = _of_metric(rows, 'cosine')
  others = [row for row in rows if row not in cosine]
  end, reached = rules.level('accuracy_end'), base.IID_ACCURACY - base.NEAR_IID
  return (
    _claim(
      f'In every row FL+HC is more accurate than FedAvg, right after the clustering and at the end (by {base.SAME:g} points)',
      '1.2x to 1.3x', rules.in_columns(COLUMNS[:2], rows, rules.gain, base.SAME),
    ),
    _compared(
      f'At the end cosine is more accurate than L2 and than L1, on average over linkages (“marginally”: by {base.PRINTED:g} points)',
      '99.1%, 98.7% and 98.5% (means over average and complete linkage as printed)',
      rules.metric_order(rows, end, ['cosine'], ['l2', 'l1'], margin=base.PRINTED),
    ),
    _claim(
      f'Every row approaches FedAvg on IID clients: at the end at most 1 point below {base.IID_ACCURACY}%', '98.3% to 99.1%',
      rules.each(rows, end, base.IID_ACCURACY - 1.0, show=show_percent),
    ),
    _claim(
      f'With cosine it is reached, in every row: at the end at most {base.NEAR_IID:g} points below', '99.1%',
      rules.each(cosine, end, reached, show=show_percent),
    ),
    _claim(
      'With L2 and L1 it is not reached, in every row', 'only with cosine; but L2 with complete and with Ward linkage print 99.1%',
      rules.each(others, end, high=reached - base.PRINTED, show=show_percent),
    ),
    _claim(
      'Cosine finds the planted groups exactly, in every row and seed (ours adds the index)', 'the correct clusters',
      rules.groups_found(cosine, 'group'),
    ),
    _linkage_matters_less(rows, 'much less of an effect'),
    _default(rows),
  )  # fmt: skip


def table6() -> tuple[Claim, ...]:
  """Returns the claims about table VI: FEMNIST."""
  rows = base.rows_of('fl_hc/table6')
  named = {row.name: row for row in rows}

  def others(chosen: str) -> list[Row]:
    return [row for row in rows if row.name != chosen]

  return (
    by_rounds.little(rows),
    _claim(
      f'Cosine ends below FedAvg, in accuracy and in clients at the target, in every row (by {base.SAME:g} points)',
      '0.8x to 0.9x, and 0.4x to 0.8x', rules.in_columns(_AT_END, _of_metric(rows, 'cosine'), rules.gain, high=-base.SAME),
    ),
    _claim(
      f'L2 with complete linkage is the most accurate at the end (what is nearer than {base.PRINTED:g} points counts as equal)',
      '78.7%, as L1 with single linkage',
      rules.best(named['L2, complete'], others('L2, complete'), rules.level('accuracy_end'), base.PRINTED),
    ),
    _claim(
      f'Most clients are at the target at the end with L1 and complete linkage (by {base.SAME:g} points)', '54.0%, 1.1x',
      unless(_hardly_any, rules.best(named['L1, complete'], others('L1, complete'), rules.level('share_end'), -base.SAME)),
    ),
    _linkage_matters_less(rows, 'less of an effect on performance'),
    _default(rows),
  )  # fmt: skip


def figures() -> dict[str, tuple[Claim, ...]]:
  """Returns the claims about the figures of this section, by name."""
  five, six = (base.rows_of(f'fl_hc/figure{number}') for number in (5, 6))
  more = _claim(
    'At the end at least 1.1 times as many clients are at the target as with FedAvg (what prints so: from 1.05 on)', '1.1x more than FL by round 50',
    rules.times_fedavg(six, 'share_end', _PRINTS_1_1),
  )  # fmt: skip
  return {'fl_hc/figure5': (_beyond_iid(five), _far_fewer_rounds(five)), 'fl_hc/figure6': (more,)}


def iid() -> tuple[Claim, ...]:
  """Returns the claims about the IID experiments of this section."""
  tuned = base.rows_of('fl_hc/iid', lambda row: row.clustering['distance_threshold'] == 'validation')
  l1 = _of_metric(tuned, 'l1')
  return (
    *(
      _claim(f'{words} does not split IID clients, in every row and seed', 'one cluster', rules.split(_of_metric(tuned, metric), False))
      for metric, words in (('l2', 'L2'), ('cosine', 'Cosine'))
    ),
    _claim('L1 splits IID clients, in every row and seed', 'several clusters', rules.split(l1, True)),
    _claim(
      f'L1 lowers the accuracy of IID clients and the share at the target at the end, in every row (by {base.SAME:g} points)',
      'reduced', rules.in_columns(_AT_END, l1, rules.gain, high=-base.SAME),
    ),
  )  # fmt: skip


def _hardly_any(rows: Rows) -> str:
  """Returns why rows cannot tell which has more clients at the target: every one is alone in one, or single clients are what differs.

  The second rule was made after the scaled-down table VI, where at most one of twenty clients is there.
  """
  most = max(float(np.mean(ours.windows['share_end'])) for ours in rows.values())
  return all_alone(rows) or (
    f'at most {most:.1f}% of the clients are at the target, on average over seeds'
    if most <= base.SAME_SHARE
    else ''
  )


def _of_metric(rows: Sequence[Row], metric: str) -> list[Row]:
  return [row for row in rows if base.metric(row) == metric]


def _beyond_iid(rows: Sequence[Row]) -> Claim:
  return _claim(
    f'L1: right after the clustering accuracy exceeds FedAvg’s on IID clients at round 50 ({base.IID_ACCURACY}%, by '
    f'{base.PRINTED:g} points){base.in_every(rows)}', '99.2% to 99.4%',
    rules.each(rows, rules.level('accuracy_after'), base.IID_ACCURACY + base.PRINTED, show=show_percent),
  )  # fmt: skip


def _far_fewer_rounds(rows: Sequence[Row]) -> Claim:
  return _claim(
    f'L1: to the accuracy right after the clustering FedAvg needs more than {_FEWER_ROUNDS} times the rounds, or never gets '
    f'there{base.in_every(rows)}', 'more than 5 times',
    rules.each(rows, rules.saves_rounds(_FEWER_ROUNDS), _FEWER_ROUNDS, show=lambda v: 'never' if v == float('inf') else f'{v:.2f} times'),
  )  # fmt: skip


def _default(rows: Sequence[Row]) -> Claim:
  chosen = [row for row in rows if (base.metric(row), base.linkage(row)) == ('l1', 'complete')]
  return _claim(
    f'L1 with complete linkage is a good default: it costs at most {base.SAME:g} points of accuracy against FedAvg at the end',
    'a good default setting', rules.each(chosen, rules.gain('accuracy_end'), -base.SAME), all_fedavg,
  )  # fmt: skip


def _linkage_matters_less(rows: Sequence[Row], published: str) -> Claim:
  return _compared(
    f'Linkages of a metric lie nearer together than the metrics do, in everything that the tables print (by {base.PRINTED:g} points)', published,
    [
      dataclasses.replace(
        rules.linkage_below_metric(rows, rules.level(c), base.PRINTED), name=rules.WORDS[c],
        undecidable=_hardly_any if c in COLUMNS[2:] else None,
      )
      for c in COLUMNS
    ],
  )  # fmt: skip
