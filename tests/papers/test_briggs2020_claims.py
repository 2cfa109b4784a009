"""Every claim of FL+HC must be able to hold, to fail, and to be left unchecked; and print must bear out its own claims."""

import math

import pytest

from tests.made_up.scorecard_rows import changed, make_ours
from tff_cluster.papers import briggs2020
from tff_cluster.papers.briggs2020 import rules
from tff_cluster.scorecard.rows import COLUMNS

CLAIMS = {name: published.claims for name, published in briggs2020.PUBLISHED.items()}
TABLES = [f'fl_hc/table{number}' for number in range(1, 7)]
_ROUNDS = 50


def _reproduced(row, percent, baseline, **changes):
  """Returns a made-up row that is settled right after the clustering; FedAvg is not before the last round."""
  ours, theirs = (dict(zip(COLUMNS, values, strict=True)) for values in (percent, baseline))
  after = row.settings['phase1_rounds'] + 1
  fields = {
    'percent': ours,
    'baseline': theirs,
    'seeds': (1, 2),
    'num_clusters': (4, 5),
    'threshold': (3.0, 3.0),
    'rounds_after': after,
    'rounds_end': _ROUNDS,
    'accuracy_curve': dict.fromkeys(range(after, _ROUNDS + 1), ours['accuracy_end']),
    'baseline_curve': dict.fromkeys(range(1, _ROUNDS), 10.0) | {_ROUNDS: theirs['accuracy_end']},
    'share_curve': dict.fromkeys(range(after, _ROUNDS + 1), ours['share_end']),
    'baseline_share_curve': dict.fromkeys(range(1, _ROUNDS + 1), theirs['share_end']),
    'recovery': {'group': (1.0, 1.0)},
  }
  return make_ours(row, **(fields | changes))


def _printed(name):
  """Returns the rows of a table with the printed numbers, and FedAvg's as the printed ratios give them."""
  rows = {}
  published = briggs2020.PUBLISHED[name]
  for row in published.rows:
    cells = [cell for cell in published.cells if cell.row == row.name]
    percent = [cell.published for cell in cells]
    if None not in percent:
      baseline = [cell.published / cell.ratio if cell.ratio else 0.0 for cell in cells]
      rows[row.name] = _reproduced(row, percent, baseline)
  return rows


def _check(name, rows):
  return {claim.words: claim.check(rows) for claim in CLAIMS[name]}


# Claims that print alone does not bear out, and why.
_NOT_IN_PRINT = {
  # Ratios of 1.0x hide gains below 5 points.
  'In every row FL+HC is above FedAvg right after the clustering, in accuracy and in clients at the target',
  # Ratios of 1.2x allow FedAvg up to 86%.
  'FedAvg ends at 80% at most (digits are not equally frequent, so up to 81% counts)',
  # Ratios of 1.0x hide losses below 5 points.
  'FL+HC ends below FedAvg in more than half of the rows, in accuracy and in clients at the target',
  # Ratios of 1.0x put our made-up FedAvg at L1's accuracy in the last round.
  'L1: to reach the accuracy right after the clustering, FedAvg needs at least 5 times the rounds, or never gets there',
  # Table V contradicts the words: L2 with complete and with Ward linkage print 99.1 too.
  'With L2 and L1 it is not reached',
}


def test_print_bears_out_its_claims():
  findings = {(name, words): f for name in TABLES for words, f in _check(name, _printed(name)).items()}
  failing = {words for (_, words), f in findings.items() if f.verdict != 'holds'}
  assert failing == _NOT_IN_PRINT
  assert (
    'L2, complete (99.10%); L2, ward (99.10%)'
    in findings['fl_hc/table5', 'With L2 and L1 it is not reached'].note
  )
  # Means over average, complete and single linkage, by hand: 298/3, 285.7/3 and 272.6/3.
  order = findings[
    'fl_hc/table4', 'Right after the clustering, L1 is the most accurate, then L2, then cosine'
  ]
  assert order.ours == 'L1 99.33%, L2 95.23%, cosine 90.87%'


def _fill(rows, name):
  """Adds rows that print a dash, as copies of the row before; rows of ours are complete."""
  last = None
  for row in briggs2020.PUBLISHED[name].rows:
    last = rows.get(row.name, last)
    rows.setdefault(row.name, changed(last, row=row))
  return {row.name: rows[row.name] for row in briggs2020.PUBLISHED[name].rows}


def _good(name):
  """Returns rows for which every claim holds: print, with what it hides filled in; made up where nothing is printed."""
  if name == 'fl_hc/iid':
    rows = {}
    for row in briggs2020.PUBLISHED['fl_hc/iid'].rows:
      split = row.settings['phase1_rounds'] == 1 or row.clustering['metric'] == 'l1'
      ours = (98.0, 98.9, 50.0, 70.0) if split else (98.0, 99.1, 50.0, 75.0)
      rows[row.name] = _reproduced(
        row, ours, (98.0, 99.1, 50.0, 75.0), num_clusters=(3, 2) if split else (1, 1)
      )
    return rows
  if 'figure' in name:
    (row,) = briggs2020.PUBLISHED[name].rows
    numbers = {'fl_hc/figure3': (98.6, 99.0, 57.0, 77.0), 'fl_hc/figure5': (99.2, 99.3, 91.0, 92.0)}
    ours = numbers.get(name, (91.4, 98.7, 63.0, 87.0))
    theirs = (57.0, 78.0 if name == 'fl_hc/figure3' else 98.5, 2.0, 0.0 if name == 'fl_hc/figure3' else 43.0)
    if name in ('fl_hc/figure4', 'fl_hc/figure6'):
      ours, theirs = (69.9, 76.5, 36.0, 54.0), (64.0, 78.0, 21.0, 50.0)
    return {row.name: _reproduced(row, ours, theirs)}
  rows = _fill(_printed(name), name)
  for key, r in rows.items():
    ours, theirs = dict(r.percent), dict(r.baseline)
    if name in ('fl_hc/table1', 'fl_hc/table4'):
      theirs |= {c: min(theirs[c], ours[c] - 0.5) for c in COLUMNS[:2]}
    if name == 'fl_hc/table2':
      theirs['accuracy_end'] = min(theirs['accuracy_end'], 80.0)
    if name == 'fl_hc/table3':
      theirs |= {c: ours[c] + 0.5 for c in ('accuracy_end', 'share_end') if theirs[c] < ours[c] + 0.5}
    if name == 'fl_hc/table5' and not key.startswith('cosine'):
      ours['accuracy_end'] = min(ours['accuracy_end'], 98.9)
    rows[key] = _reproduced(r.row, ours.values(), theirs.values())
  return rows


def test_numbers_of_clusters_are_in_words():
  rows = _good('fl_hc/iid')
  row = rows['cosine, single']
  rows['cosine, single'] = changed(row, num_clusters=(6,) * len(row.num_clusters))
  (claim,) = [claim for claim in CLAIMS['fl_hc/iid'] if claim.words == 'Cosine does not split IID clients']
  assert claim.check(rows).ours == '1 cluster to 6 clusters'


@pytest.mark.parametrize('name', CLAIMS)
def test_all_claims_hold_on_good_rows(name):
  for words, finding in _check(name, _good(name)).items():
    assert finding.verdict == 'holds', (words, finding)
    assert finding.ours


def _with(rows, key, field, change):
  """Returns the rows with one changed: a column of percent or baseline by its name, or any field."""
  r = rows[key]
  if isinstance(change, dict):
    change = {**getattr(r, field), **change}
  return rows | {key: changed(r, **{field: change})}


# For every claim a change of one row (of each in a list) that makes it fail: how its words start, row, field, value.
_FAULTS = {
  'fl_hc/table1': [
    ('In every row FL+HC is above', 'cf 0.5, n 5', 'baseline', {'accuracy_after': 93.6}),
    ('In every row FL+HC is above', 'cf 0.1, n 3', 'baseline', {'share_after': 47.0}),
    ('In no row FL+HC ends below', 'cf 1.0, n 5', 'baseline', {'accuracy_end': 99.16}),
    ('The gain in accuracy right after', 'cf 0.5, n 3', 'percent', {'accuracy_after': 150.0}),
    ('Clustered after one round', 'cf 0.2, n 1', 'baseline', {'accuracy_after': 80.0}),
    ('Clustered after one round', 'cf 0.2, n 1', 'baseline', {'accuracy_after': 40.0}),
    ('The last accuracy remains the same', 'cf 0.1, n 1', 'baseline', {'accuracy_end': 97.4}),
    ('The last accuracy remains the same', 'cf 0.1, n 1', 'baseline', {'accuracy_end': 99.6}),
    ('FL+HC stays within 1 point', 'cf 0.2, n 10', 'accuracy_curve', {26: 97.2}),
    ('At the end, 1.2 to 2.0', 'cf 0.1, n 3', 'percent', {'share_end': 50.0}),
    ('At the end, 1.2 to 2.0', 'cf 0.1, n 3', 'percent', {'share_end': 95.0}),
    ('Client fractions below 1', 'cf 1.0, n 3', 'baseline', {'share_end': 40.0}),
    ('Client fractions below 1', 'cf 1.0, n 10', 'baseline', {'accuracy_after': 50.0}),
    ('In every round', 'cf 0.5, n 10', 'baseline_share_curve', {30: 63.0}),
  ],
  'fl_hc/table2': [
    ('In every row FL+HC is at least', 'cf 0.2, n 10', 'baseline', {'accuracy_after': 86.0}),
    ('In every row FL+HC is at least', 'cf 0.2, n 10', 'baseline', {'accuracy_end': 86.5}),
    ('The four planted groups', 'cf 0.5, n 1', 'recovery', {'group': (1.0, 0.97)}),
    ('The four planted groups', 'cf 0.5, n 1', 'recovery', {'group': (1.0, None)}),
    ('Right after the clustering', 'cf 0.5, n 1', 'percent', {'accuracy_after': 98.05}),
    ('At the end, it is at most', ['cf 0.1, n 3', 'cf 0.1, n 5', 'cf 0.1, n 10', 'cf 0.2, n 3'], 'percent',
     {'accuracy_end': 98.9}),
    ('FedAvg ends at 80%', 'cf 0.2, n 3', 'baseline', {'accuracy_end': 81.1}),
    ('With FedAvg, no client', [f'cf {cf}, n {n}' for cf in (0.1, 0.2) for n in (1, 3, 5, 10)], 'baseline',
     {'share_end': 1.0}),
    ('FL+HC brings up to 80%', [f'cf {cf}, n {n}' for cf in (0.1, 0.2, 0.5, 1.0) for n in (3, 5, 10)], 'percent',
     {'share_end': 74.0}),
    ('More clients reach the target', 'cf 1.0, n 10', 'percent', {'share_after': 53.0}),
    ('More clients reach the target', 'cf 0.2, n 1', 'percent', {'share_end': 77.5}),
    ('The client fraction matters little', 'cf 0.1, n 5', 'percent', {'accuracy_end': 97.9}),
    ('The client fraction matters little', 'cf 0.1, n 5', 'percent', {'share_after': 46.0}),
    ('In every round', 'cf 0.1, n 10', 'baseline_share_curve', {11: 75.5}),
  ],
  'fl_hc/table3': [
    ('FL+HC ends below', [f'cf {cf}, n {n}' for cf in (0.1, 0.5) for n in (1, 3, 5, 10)], 'baseline', {'accuracy_end': 1.0}),
    ('FL+HC ends below', [f'cf {cf}, n {n}' for cf in (0.1, 0.5) for n in (1, 3, 5, 10)], 'baseline', {'share_end': 1.0}),
    ('FL+HC gains little', 'cf 0.2, n 3', 'percent', {'accuracy_end': 78.7}),
    ('FL+HC gains little', 'cf 0.2, n 3', 'percent', {'share_end': 54.4}),
    ('In some row the accuracy falls', ['cf 0.2, n 1', 'cf 0.2, n 10', 'cf 0.5, n 3'], 'percent', {'accuracy_end': 60.0}),
    ('Accuracy at the end is higher with', 'cf 1.0, n 10', 'percent', {'accuracy_end': 60.0}),
    ('Accuracy at the end is higher after', 'cf 0.2, n 1', 'percent', {'accuracy_end': 77.0}),
  ],
  'fl_hc/table4': [
    ('Every row ends similar', 'cosine, single', 'baseline', {'accuracy_end': 98.8}),
    ('At the end, 1.2 to 2.1', 'cosine, single', 'percent', {'share_end': 48.0}),
    ('Right after the clustering, L1 is', 'L2, single', 'percent', {'accuracy_after': 75.0}),
    ('L1: right after the clustering', 'L1, average', 'percent', {'accuracy_after': 99.1}),
    ('L1: to reach', 'L1, complete', 'baseline_curve', {50: 99.2}),
    ('Most clients are', 'L2, complete', 'percent', {'share_end': 125.0}),
    ('The linkage matters little', 'cosine, average', 'percent', {'accuracy_end': 96.2}),
    ('L1 with complete linkage', 'L1, complete', 'baseline', {'accuracy_end': 100.4}),
  ],
  'fl_hc/table5': [
    ('In every row FL+HC', 'L1, complete', 'baseline', {'accuracy_end': 86.0}),
    ('At the end, cosine', 'cosine, complete', 'percent', {'accuracy_end': 97.0}),
    ('Every row approaches', 'L1, single', 'percent', {'accuracy_end': 98.05}),
    ('With cosine it is reached', 'cosine, single', 'percent', {'accuracy_end': 98.9}),
    ('With L2 and L1', 'L2, ward', 'percent', {'accuracy_end': 99.0}),
    ('Cosine finds', 'cosine, average', 'recovery', {'group': (0.5, 1.0)}),
    ('Linkages of a metric', 'L1, single', 'percent', {'accuracy_end': 101.0}),
    ('L1 with complete linkage', 'L1, complete', 'baseline', {'accuracy_end': 99.7}),
  ],
  'fl_hc/table6': [
    ('FL+HC gains little', 'L2, ward', 'baseline', {'accuracy_end': 76.3}),
    ('FL+HC gains little', 'L2, ward', 'baseline', {'share_end': 43.0}),
    ('Cosine ends below', 'cosine, single', 'baseline', {'accuracy_end': 74.2}),
    ('Cosine ends below', 'cosine, single', 'baseline', {'share_end': 40.0}),
    ('L2 with complete linkage', 'L2, average', 'percent', {'accuracy_end': 78.8}),
    ('Most clients are', 'L2, complete', 'percent', {'share_end': 54.1}),
    ('Linkages of a metric', 'L2, single', 'percent', {'accuracy_end': 50.0}),
    ('L1 with complete linkage', 'L1, complete', 'baseline', {'accuracy_end': 78.0}),
  ],
  'fl_hc/iid': [
    ('After more than one round, in more', [f'cf {cf}, n {n}' for cf in (0.1, 0.5) for n in (3, 5, 10)], 'num_clusters', (1, 2)),
    ('After more than one round, FL+HC', 'cf 0.1, n 3', 'percent', {'accuracy_end': 99.16}),
    ('After one round, IID', 'cf 0.1, n 1', 'num_clusters', (3, 1)),
    ('After one round, the split', 'cf 0.1, n 1', 'percent', {'accuracy_end': 99.1}),
    ('After one round, the split', 'cf 0.1, n 1', 'percent', {'accuracy_end': 98.0}),
    ('FedAvg ends at the same', 'cf 1.0, n 10', 'baseline', {'accuracy_end': 98.0}),
    ('L2 does not', 'L2, single', 'num_clusters', (1, 2)),
    ('Cosine does not', 'cosine, single', 'num_clusters', (2, 1)),
    ('L1 splits', 'L1, average', 'num_clusters', (2, 1)),
    ('L1 lowers', 'L1, average', 'percent', {'accuracy_end': 99.1}),
    ('L1 lowers', 'L1, average', 'percent', {'share_end': 76.0}),
  ],
  'fl_hc/figure1': [
    ('Clustered after one round', 'cf 0.2, n 1', 'baseline', {'accuracy_after': 80.0}),
    ('FL+HC stays within', 'cf 0.2, n 1', 'accuracy_curve', {25: 97.6}),
    ('In every round', 'cf 0.2, n 1', 'baseline_share_curve', {2: 87.0}),
  ],
  'fl_hc/figure2': [
    ('FL+HC stays within', 'cf 0.2, n 10', 'accuracy_curve', {25: 97.6}),
    ('In every round', 'cf 0.2, n 10', 'baseline_share_curve', {50: 88.0}),
  ],
  'fl_hc/figure3': [
    ('FedAvg ends at 80%', 'cf 0.2, n 10', 'baseline', {'accuracy_end': 82.0}),
    ('In every round', 'cf 0.2, n 10', 'baseline_share_curve', {50: 88.0}),
  ],
  'fl_hc/figure4': [('FL+HC gains little', 'cf 0.1, n 5', 'baseline', {'accuracy_end': 75.0})],
  'fl_hc/figure5': [
    ('L1: right after', 'L1, complete', 'percent', {'accuracy_after': 99.0}),
    ('L1: to reach', 'L1, complete', 'baseline_curve', {49: 99.3}),
  ],
  'fl_hc/figure6': [('At the end, at least 1.1', 'L1, complete', 'baseline', {'share_end': 52.0})],
}  # fmt: skip


@pytest.mark.parametrize(
  ('name', 'start', 'keys', 'field', 'change'),
  [(name, *fault) for name, faults in _FAULTS.items() for fault in faults],
)
def test_each_claim_can_fail(name, start, keys, field, change):
  rows = _good(name)
  for key in [keys] if isinstance(keys, str) else keys:
    rows = _with(rows, key, field, change)
  found = [finding.verdict for words, finding in _check(name, rows).items() if words.startswith(start)]
  assert found == ['fails']


def test_every_claim_is_covered_above():
  assert list(CLAIMS) == [*TABLES, *(f'fl_hc/figure{number}' for number in range(1, 7)), 'fl_hc/iid']
  for name, claims in CLAIMS.items():
    starts = {fault[0] for fault in _FAULTS[name]}
    covered = [sum(claim.words.startswith(start) for start in starts) for claim in claims]
    assert covered == [1] * len(claims)


@pytest.mark.parametrize('name', CLAIMS)
def test_a_claim_is_checked_as_soon_as_its_rows_are_there(name):
  good = _good(name)
  for claim in CLAIMS[name]:
    kept = {key for group in claim.needs.groups[: claim.needs.at_least] for key in group}
    rows = {key: r for key, r in good.items() if key in kept}
    assert claim.check(rows).verdict in ('holds', 'fails')
    gone = claim.needs.groups[claim.needs.at_least - 1][0]
    finding = claim.check({key: r for key, r in rows.items() if key != gone})
    assert finding.verdict == 'not run' and gone in finding.note


def test_the_note_names_the_rows_against_a_claim():
  rows = _with(_good('fl_hc/table4'), 'L2, ward', 'baseline', {'accuracy_end': 101.0})
  claim = next(c for c in CLAIMS['fl_hc/table4'] if c.words.startswith('Every row ends'))
  assert claim.check(rows).note == 'not so in 1 of 10: L2, ward (−1.50 points); all 10 rows'


def test_without_planted_groups_their_recovery_is_not_checked():
  rows = _with(_good('fl_hc/table2'), 'cf 0.1, n 1', 'recovery', {'group': ()})
  finding = next(f for words, f in _check('fl_hc/table2', rows).items() if words.startswith('The four'))
  assert finding.verdict == 'not run' and 'no planted groups' in finding.note


@pytest.mark.parametrize(
  ('before', 'end', 'curve', 'verdict'),
  [
    (10, 50, {1: 10.0, 50: 98.0}, 'holds'),  # Never in the paper's 50 rounds.
    (10, 49, {1: 10.0, 49: 98.0}, 'undecided'),  # Never, but in fewer rounds than 5 times 10.
    (10, 50, {1: 10.0, 50: 99.2}, 'fails'),  # Round 50 against round 11.
    (10, 60, {54: 98.0, 55: 99.2}, 'holds'),  # 5 times 11.
    (10, 60, {53: 98.0, 54: 99.2}, 'fails'),
    (1, 15, {9: 99.0, 10: 99.2}, 'holds'),  # 5 times 2.
    (1, 15, {8: 99.0, 9: 99.2, 15: 10.0}, 'fails'),
  ],
)
def test_rounds_saved_by_hand(before, end, curve, verdict):
  (row,) = briggs2020.PUBLISHED['fl_hc/figure5'].rows
  r = _reproduced(row, (99.2, 99.3, 91.0, 92.0), (90.0, 98.0, 14.0, 44.0), baseline_curve=curve)
  r = changed(r, rounds_after=before + 1, rounds_end=end)
  assert rules.rounds_saved(5)({row.name: r}).verdict == verdict


def test_settling_by_hand():
  (row,) = briggs2020.PUBLISHED['fl_hc/figure1'].rows
  ours = {2: 90.0, 3: 98.0, 4: 96.0, 5: 97.5, 6: 98.2, 7: 98.0}  # Below 97 for the last time in round 4.
  # Above 97 for the last time in round 5.
  theirs = {1: 50.0, 2: 96.5, 3: 90.0, 4: 97.0, 5: 98.0, 6: 95.0, 7: 96.0}
  r = _reproduced(row, (90.0, 98.0, 1, 1), (96.5, 96.0, 1, 1), accuracy_curve=ours, baseline_curve=theirs)
  assert rules.settling_ratio(1.0).of(r) == pytest.approx(5 / 6)


@pytest.mark.parametrize(
  ('ours', 'theirs', 'ratio', 'shown'),
  [(3.0, 2.0, 1.5, '1.5x'), (3.0, 0.0, math.inf, 'FedAvg has none'), (0.0, 0.0, 1.0, '1.0x')],
)
def test_ratio_by_hand(ours, theirs, ratio, shown):
  (row,) = briggs2020.PUBLISHED['fl_hc/figure1'].rows
  quantity = rules.ratio('share_end')
  assert quantity.of(_reproduced(row, (1, 1, 1, ours), (1, 1, 1, theirs))) == ratio
  assert quantity.shown([ratio], rules.above(1.0)) == [shown]


def test_ratios_are_judged_as_they_print():
  test = rules.prints_between(1.2, 2.0)
  assert [test(v) for v in (1.149, 1.151, 2.049, 2.051, math.inf)] == [False, True, True, False, False]
  assert rules.prints_between(1.2)(math.inf)


@pytest.mark.parametrize(
  ('test', 'values', 'shown'),
  [
    (rules.above(0.0), [0.004, 1.5], ['+0.004 points', '+1.500 points']),
    (rules.at_most(1.0), [1.004], ['+1.004 points']),
    (rules.at_most(1.0), [1.04], ['+1.04 points']),
    (rules.below(0.0), [-0.0002], ['−0.0002 points']),
  ],
)
def test_a_rule_prints_the_digits_that_its_verdict_needs(test, values, shown):
  assert rules.gain('accuracy_end').shown(values, lambda *v: [test(value) for value in v]) == shown
