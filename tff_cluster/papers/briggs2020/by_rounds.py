"""Claims of Briggs et al. 2020, section III.A: client fraction and rounds before the clustering (tables I to III)."""

from collections.abc import Callable, Iterable, Sequence

from tff_cluster.base.grouping import by_key
from tff_cluster.papers.briggs2020 import base, rules
from tff_cluster.scorecard.claims import Claim, Part, Rows, all_alone, all_fedavg, show_percent, unless
from tff_cluster.scorecard.rows import COLUMNS, Row

_SECTION = 'Briggs et al. 2020, section III.A'
_AT_END = ('accuracy_end', 'share_end')
_AFTER = ('accuracy_after', 'share_after')
# A ratio that prints as this or more.
_PRINTS_1_2, _PRINTS_1_3 = 1.15, 1.25
# "Asymptotes much more quickly": in at most half the rounds. A curve is there where its best is at most so many points below its end.
_MUCH_SOONER, _THERE = 0.5, 1.0
_CONCLUSION = 'Briggs et al. 2020, section IV'
# "Drastic reduction": at most half of FedAvg's accuracy. The rows in print that are meant have 0.1, 0.2 and 0.4 of it.
_DRASTIC = 0.5
# What ratios of client fractions below 1 are above those of 1.0 in print, on average over n.
_BY_FRACTION = {
  'accuracy_after': 'in general, by 0.2x', 'accuracy_end': '1.0x in every row', 'share_after': 'in general, by 6.9x',
  'share_end': 'in general; but by 0.03x in print',
}  # fmt: skip


def _claim(
  words: str,
  published: str,
  parts: Iterable[Part],
  enough: int | None = None,
  section: str = _SECTION,
  undecidable: Callable[[Rows], str] | None = None,
) -> Claim:
  """Returns a claim about clusters; rows in which every client is alone tell nothing."""
  return Claim(words, section, published, rules.of_clusters(parts), enough, undecidable)


def _most(rows: Sequence[object]) -> int:
  return len(rows) // 2 + 1


def table1() -> tuple[Claim, ...]:
  """Returns the claims about table I: pathological non-IID."""
  rows = base.rows_of('fl_hc/table1')
  first = [row for row in rows if _at_first(row)]
  later = [(a, b) for a, b in base.pairs(rows, base.fraction) if _at_first(a) != _at_first(b)]
  after = rules.ratio('accuracy_after')
  return (
    _claim(
      f'In every row FL+HC outperforms FedAvg right after the clustering, in accuracy and in clients at the target (by '
      f'{base.SAME:g} points)', 'in all these results; but six rows print 1.0x of the accuracy',
      rules.in_columns(_AFTER, rows, rules.gain, base.SAME),
    ),
    _claim(
      'The gain in accuracy right after the clustering is largest after one round, at every client fraction (equal in print counts)',
      '1.3x to 1.9x after one round',
      [part for a, b in later for part in rules.best(*((a, (b,)) if _at_first(a) else (b, (a,))), after, base.PRINTED, rules.show_ratios)],
    ),
    *_jump(first, 'at every client fraction'),
    _claim(
      f'The last accuracy remains the same under FL+HC and FedAvg, in every row (within {base.SAME:g} points)', '1.0x in every row',
      rules.each(rows, rules.gain('accuracy_end'), -base.SAME, base.SAME), undecidable=all_fedavg,
    ),
    _sooner(rows),
    _claim(
      'At the end at least 1.2 times as many clients are at the target as with FedAvg, in every row (what prints so: from 1.15 on)', '1.2x to 2.0x',
      rules.times_fedavg(rows, 'share_end', _PRINTS_1_2),
    ),
    *(
      _claim(
        f'Client fractions below 1 gain more than 1.0 in general, as a ratio to FedAvg, on average over rows: {rules.WORDS[column]} (by '
        f'{base.RATIOS[column]:g})',
        _BY_FRACTION[column],
        [
          rules.on_average(
            'below 1 against 1.0', rows, base.rounds_before, _fewer_clients, rules.ratio(column), base.RATIOS[column], rules.show_ratios,
          )
        ],
      )
      for column in COLUMNS
    ),
  )  # fmt: skip


def table2() -> tuple[Claim, ...]:
  """Returns the claims about table II: label-swapped."""
  rows = base.rows_of('fl_hc/table2')
  at_fraction = base.pairs(rows, base.rounds_before)
  # At the end FedAvg is one training at each client fraction, however many rounds came before the clustering.
  trained = [members[0] for members in by_key(rows, base.fraction).values()]
  none = tuple(
    part
    for column, some in zip(COLUMNS[2:], (rows, trained), strict=True)
    for part in rules.in_columns([column], some, rules.baseline_level, high=base.SAME, show=show_percent)
  )
  return (
    _claim(
      f'For all combinations FL+HC is more accurate than FedAvg, right after the clustering and at the end (by {base.SAME:g} points)',
      '1.2x to 1.4x', rules.in_columns(COLUMNS[:2], rows, rules.gain, base.SAME),
    ),
    _claim(
      'The four planted groups are found exactly, in every row and seed (ours adds the index)', 'expected to find the 4 clusters',
      rules.groups_found(rows, 'group'),
    ),
    _claim(
      f'Right after the clustering accuracy is within 1 point of FedAvg’s on IID clients ({base.IID_ACCURACY}%), in every row',
      '98.1% to 98.6%',
      rules.each(rows, rules.level('accuracy_after'), base.IID_ACCURACY - 1.0, base.IID_ACCURACY + 1.0, show_percent),
    ),
    _claim(
      f'At the end it is within {base.NEAR_IID:g} points of {base.IID_ACCURACY}% in more than half of the rows', 'in most cases',
      rules.each(
        rows, rules.level('accuracy_end'), base.IID_ACCURACY - base.NEAR_IID, base.IID_ACCURACY + base.NEAR_IID, show_percent,
      ),
      _most(rows),
    ),
    _sooner(rows, _CONCLUSION),
    _ceiling(rows),
    Claim(
      'With FedAvg no client is at the target in most cases, right after the clustering and at the end (once at each client fraction)',
      _SECTION, 'in most cases 0', none, _most(none),
    ),
    _claim(
      f'FL+HC brings up to 80% of the clients to the target at the end (at least {80 - base.SAME_SHARE:g}% in some row)', '80%',
      rules.each(rows, rules.level('share_end'), 80.0 - base.SAME_SHARE, show=show_percent), 1,
    ),
    _claim(
      'More clients reach the target after 10 rounds before the clustering than after 1, right after it and at the end, at every '
      'client fraction', 'improving with n',
      [part for c in COLUMNS[2:] for part in rules.matched(rows, base.fraction, _long_before, rules.level(c))],
    ),
    _claim(
      f'The client fraction has a negligible effect on every metric: within {base.SAME:g} points of accuracy and {base.SAME_SHARE:g} '
      'points of clients for each two fractions', 'negligible; but 11 of 96 pairs print further apart, by up to 11 points of clients',
      [
        part
        for c, limit in base.LIMITS.items()
        for part in rules.alike(at_fraction, rules.level(c), limit, rules.WORDS[c])
      ],
    ),
  )  # fmt: skip


def table3() -> tuple[Claim, ...]:
  """Returns the claims about table III: FEMNIST."""
  rows = base.rows_of('fl_hc/table3')
  end = rules.level('accuracy_end')
  return (
    *(
      _claim(
        f'FL+HC ends below FedAvg in more than half of the rows: {rules.WORDS[c]} (by {base.SAME:g} points)',
        f'slightly negative in most; but {printed}', rules.each(rows, rules.gain(c), high=-base.SAME), _most(rows),
        undecidable=all_fedavg,
      )
      for c, printed in zip(
        _AT_END, ('11 of 15 rows print 1.0x', '6 of 15 rows print 1.0x, one 1.1x, and one a dash'), strict=True
      )
    ),
    little(rows),
    _claim(
      f'In some rows the accuracy falls drastically: at the end at most {_DRASTIC:g} times FedAvg’s in two of them',
      '0.1x, 0.2x and 0.4x', rules.each(rows, rules.ratio('accuracy_end'), high=_DRASTIC, show=rules.show_ratio), 2,
      undecidable=all_fedavg,
    ),
    _claim(
      f'Accuracy at the end is higher with client fraction 1.0 than with 0.1, on average over rows (by {base.SAME:g} points)',
      'in general', [rules.on_average('1.0 against 0.1', rows, base.rounds_before, _all_clients, end)],
      undecidable=all_fedavg,
    ),
    _claim(
      'Accuracy at the end is higher after 5 or 10 rounds before the clustering than after 1 or 3, on average over rows (by '
      f'{base.SAME:g} points)', 'seems to be beneficial',
      [rules.on_average('5 and 10 against 1 and 3', rows, base.fraction, _late, end)],
      undecidable=all_fedavg,
    ),
  )  # fmt: skip


def figures() -> dict[str, tuple[Claim, ...]]:
  """Returns the claims about the figures of this section, by name."""
  one, two, three, four = (base.rows_of(f'fl_hc/figure{number}') for number in range(1, 5))
  return {
    'fl_hc/figure1': (*_jump(one, 'with C = 0.2', ('1.6x', '31.5x')), _sooner(one), _any_round(one)),
    'fl_hc/figure2': (_sooner(two), _any_round(two)),
    'fl_hc/figure3': (_sooner(three, _CONCLUSION), _ceiling(three), _any_round(three)),
    'fl_hc/figure4': (little(four),),
  }


def iid() -> tuple[Claim, ...]:
  """Returns the claims about the IID experiments of this section."""
  ward = base.rows_of(
    'fl_hc/iid', lambda row: base.linkage(row) == 'ward' and row.clustering['distance_threshold'] == '3.0'
  )
  first, later = ([row for row in ward if _at_first(row) == wanted] for wanted in (True, False))
  gain, fedavg = rules.gain('accuracy_end'), rules.baseline_level('accuracy_end')
  return (
    _claim(
      'IID clients are not split in more than half of the rows, in every seed', 'one cluster for most experiments', rules.split(ward, False),
      _most(ward),
    ),
    _claim(
      f'After more than one round FL+HC ends like FedAvg, in every row (within {base.PRINTED:g} points)',
      'identical for all but n = 1', rules.each(later, gain, -base.PRINTED, base.PRINTED),
      section=_CONCLUSION,
    ),
    _claim('After one round IID clients are split, whatever the client fraction', 'clusters were identified', rules.split(first, True)),
    _claim(
      f'After one round the split costs accuracy at the end, very slightly: from {base.PRINTED:g} points to 1 point, in every row',
      'very slightly reduced', rules.each(first, gain, -1.0, -base.PRINTED),
    ),
    Claim(
      f'FedAvg ends at {base.IID_ACCURACY}% for all client fractions (within {base.SAME:g} points)', _SECTION, f'{base.IID_ACCURACY}%',
      # It is one training at each client fraction.
      rules.each(
        [members[0] for members in by_key(ward, base.fraction).values()],
        fedavg, base.IID_ACCURACY - base.SAME, base.IID_ACCURACY + base.SAME, show_percent,
      ),
    ),
  )  # fmt: skip


def _jump(
  rows: Sequence[Row], where: str, printed: tuple[str, str] = ('1.3x to 1.9x', '20.7x to 68.0x')
) -> tuple[Claim, ...]:
  """Returns the claims about the jump after a clustering in round 1, of accuracy and, "this same jump", of clients at the target."""
  told = {'accuracy_after': 'accuracy is', 'share_after': 'share of clients at the target is'}
  return tuple(
    _claim(
      f'Clustered after one round, the second round’s {words} at least 1.3 times FedAvg’s, {where} (what prints so: from 1.25 on)', numbers,
      rules.times_fedavg(rows, column, _PRINTS_1_3),
    )
    for (column, words), numbers in zip(told.items(), printed, strict=True)
  )  # fmt: skip


def _sooner(rows: Sequence[Row], section: str = _SECTION) -> Claim:
  parts = rules.each(
    rows, rules.settling_ratio(_THERE), high=_MUCH_SOONER, show=lambda v: f'{v:.2f} times the rounds'
  )
  return Claim(
    f'FL+HC comes within {_THERE:g} point of its accuracy at the end (the mean of the last rounds) in at most {_MUCH_SOONER:g} times the '
    f'rounds in which FedAvg comes so near to its own{base.in_every(rows)}', section, 'asymptotes much more quickly',
    unless(lambda of: _too_short(of) or all_alone(of), parts),
  )  # fmt: skip


def _too_short(rows: Rows) -> str:
  """Returns why a row cannot tell who is there sooner: where its clusters begin so late that they cannot be."""
  (ours,) = rows.values()
  return (
    f'with {ours.rounds_end} rounds in all, clusters that begin in round {ours.rounds_after} cannot be there in {_MUCH_SOONER:g} times '
    'FedAvg’s rounds'
    if ours.rounds_after > _MUCH_SOONER * ours.rounds_end
    else ''
  )


def _any_round(rows: Sequence[Row]) -> Claim:
  return _claim(
    f'In every round after the clustering more clients are at the target than with FedAvg (by {base.SAME:g} points, in the round '
    'where the lead is least)', 'in any given communication round, as shown in the figures',
    rules.each(rows, rules.lead_in_every_round, base.SAME),
  )  # fmt: skip


def _ceiling(rows: Sequence[Row]) -> Claim:
  """Returns the claim that nothing can come out against: digits of a swapped pair are 19 to 22% of MNIST."""
  parts = rules.each(rows, rules.baseline_level('accuracy_end'), high=81.0, show=show_percent)
  return Claim(
    'FedAvg ends at 80% at most (81%, since digits are not equally frequent)', _SECTION, 'at most 80%', parts,
    undecidable=_arithmetic,
  )  # fmt: skip


def _arithmetic(rows: Rows) -> str:
  del rows
  return (
    'a model that is right on the swapped pair of one group is wrong on the same digits of the three others, so no single model '
    'can be above it'
  )


def little(rows: Sequence[Row]) -> Claim:
  """Returns the claim that FL+HC has little advantage in these rows, of writers; section III.B says so of all of them."""
  return _claim(
    f'FL+HC gains little at the end{base.in_every(rows)}: at most {base.SAME:g} points of accuracy and {base.SAME_SHARE:g} points of clients',
    'little advantage',
    (
      *rules.in_columns(_AT_END[:1], rows, rules.gain, high=base.SAME),
      *rules.in_columns(_AT_END[1:], rows, rules.gain, high=base.SAME_SHARE),
    ),
    section='Briggs et al. 2020, section III.B',
    undecidable=all_fedavg,
  )


def _fewer_clients(row: Row) -> bool:
  return base.fraction(row) < 1.0


def _at_first(row: Row) -> bool:
  return base.rounds_before(row) == 1


def _long_before(row: Row) -> bool | None:
  return {1: False, 10: True}.get(base.rounds_before(row))


def _late(row: Row) -> bool:
  return base.rounds_before(row) >= 5


def _all_clients(row: Row) -> bool | None:
  return {0.1: False, 1.0: True}.get(base.fraction(row))
