"""The one sentence and the one table, from lines whose numbers are planted."""

import pytest

from tff_cluster.experiment.result_parts import SummaryLine
from tff_cluster.report import first_screen


def _line(label, gain=None, half=0.01, kind='disjoint', rounds=100, **more):
  interval = None if gain is None or half is None else [gain - half, gain + half]
  found = {'num_clusters': None, 'ari': None, 'omega': None, 'bytes': 0} | more
  return SummaryLine(
    label=label, kind=kind, mean_client_accuracy=0.5 + (gain or 0.0), difference=gain, interval=interval,
    client_rounds=rounds, **found,
  )  # fmt: skip


FEDAVG = _line('FedAvg without clusters', kind='fedavg')
_SAYS = 'Against FedAvg without clusters at equal rounds, '


@pytest.mark.parametrize(
  ('lines', 'seeds', 'told'),
  [
    ([], [0], 'No clustering was run, so there is nothing to compare with FedAvg.'),
    ([_line('k', 0.05)], [7], f'{_SAYS}in one run (seed 7): k came out above it (+5.0 points, 95% interval +4.0 to +6.0); one seed gives no verdict.'),
    ([_line('k', 0.005)], [0, 1], f'{_SAYS}over 2 seeds: no difference is shown for k (+0.5 points, 95% interval −0.5 to +1.5); two seeds give no verdict.'),
    ([_line('k', 0.05, None)], [0], f'{_SAYS}in one run (seed 0): no difference is shown for k (+5.0 points, no interval: one client); one seed gives no verdict.'),
    (
      [_line('a', 0.03), _line('b', 0.05), _line('c', -0.05), _line('d', -0.07), _line('e', 0.0), _line('f', 0.001)],
      [0, 1, 2],
      f'{_SAYS}over 3 seeds: b and a came out above it, b most (+5.0 points, 95% interval +4.0 to +6.0); c and d came out below it, '
      'd most (−7.0 points, 95% interval −8.0 to −6.0); no difference is shown for f and e; 3 seeds give no verdict.',
    ),
    ([_line(name, 0.05) for name in 'abcd'], [0, 1], f'{_SAYS}over 2 seeds: all 4 clusterings came out above it, a most (+5.0 points, 95% interval +4.0 to +6.0); two seeds give no verdict.'),
    ([_line(name, 0.0) for name in 'abcd'], [0, 1], f'{_SAYS}over 2 seeds: no difference is shown for any of the 4 clusterings; two seeds give no verdict.'),
    ([_line('k', -0.05)], [0, 1], f'{_SAYS}over 2 seeds: k came out below it (−5.0 points, 95% interval −6.0 to −4.0); two seeds give no verdict.'),
    # Neither an oracle nor clients with own models are clusterings that somebody could take.
    ([_line('alone', 0.02, kind='local'), _line('k', 0.05), _line('p', 0.3, kind='oracle')], [0, 1], f'{_SAYS}over 2 seeds: k came out above it (+5.0 points, 95% interval +4.0 to +6.0); two seeds give no verdict.'),
    # What helps against FedAvg may still be no better than no federation at all.
    (
      [_line('alone', 0.05, kind='local'), _line('k', 0.05), _line('l', 0.07), _line('m', -0.05)],
      [0],
      f'{_SAYS}in one run (seed 0): l and k came out above it, l most (+7.0 points, 95% interval +6.0 to +8.0); m came out below it (−5.0 points, '
      '95% interval −6.0 to −4.0); one seed gives no verdict. But every client alone has 55.0%, no less than k.',
    ),
    ([_line('p', 0.3, kind='oracle')], [0, 1], f'{_SAYS}over 2 seeds: p came out above it (+30.0 points, 95% interval +29.0 to +31.0); two seeds give no verdict.'),
  ],
)  # fmt: skip
def test_the_sentence_says_what_intervals_show_and_no_more(lines, seeds, told):
  assert first_screen.sentence([FEDAVG, *lines], seeds) == told


@pytest.mark.parametrize(
  ('seeds', 'verdicts', 'told'),
  [
    (3, ['3 seeds'] * 3, 'over 3 seeds: a came out above it (+5.0 points, 95% interval +4.0 to +6.0); c came out below it (−5.0 points, '
     '95% interval −6.0 to −4.0); no difference is shown for b (+0.1 points, 95% interval −0.9 to +1.1); 3 seeds give no verdict.'),
    (1, ['one seed'] * 3, 'came out above it (+5.0 points, 95% interval +4.0 to +6.0); c came out below'),
    (8, ['helps', 'equivalent', 'harms'], 'over 8 seeds: a helped the clients (+5.0 points, 95% interval +4.0 to +6.0); c harmed them (−5.0 points, '
     '95% interval −6.0 to −4.0); practically the same (within 0.5 points) came out for b (+0.1 points, 95% interval −0.9 to +1.1).'),
    # An interval that excludes zero is no verdict by itself.
    (8, ['undecided', 'undecided', 'harms'], 'over 8 seeds: c harmed the clients (−5.0 points, 95% interval −6.0 to −4.0); no difference is shown for a and b.'),
  ],
)  # fmt: skip
def test_over_seeds_it_takes_verdicts(seeds, verdicts, told):
  lines = [FEDAVG, _line('a', 0.05), _line('b', 0.001), _line('c', -0.05)]
  found = first_screen.sentence(lines, range(seeds), dict(zip('abc', verdicts, strict=True)))
  assert told in found and ('no verdict' in found) == (seeds < 6)
  _, a, b, _ = first_screen.table(lines, range(seeds), dict(zip('abc', verdicts, strict=True))).rows
  assert (a[1].look == 'chip good') == (verdicts[0] == 'helps')
  assert b[1].notes == ('practically the same' if verdicts[1] == 'equivalent' else 'not shown',)


def test_the_table_has_gain_interval_groups_and_cost():
  lines = [
    FEDAVG,
    _line('k', 0.05, num_clusters=4, ari=1.0, omega=1.0, rounds=150),
    _line('o', 0.005, kind='overlapping', num_clusters=4.5, omega=0.25, rounds=200),
  ]
  fedavg, k, o = first_screen.table(lines, [0]).rows
  assert list(fedavg[1:5]) == ['–', '–', '50.0%', '–'] and fedavg[5].words == '1.00'
  assert (k[1].words, k[1].look, k[2], k[3]) == ('+5.0', 'chip none', '+4.0 to +6.0', '55.0%')
  assert (k[4].words, k[4].notes, k[5].words) == ('4', ('ARI 1.00',), '1.50')
  assert (o[1].words, o[1].look, o[1].notes, o[2]) == ('+0.5', 'chip none', ('not shown',), '−0.5 to +1.5')
  assert (o[4].words, o[4].notes, o[5].words) == ('4.5', ('Omega 0.25',), '2.00')


def test_one_seed_says_so_and_nobody_has_a_picture_of_nothing():
  assert 'one seed and tell nothing of others' in first_screen.about([3])[0]
  assert 'over 3 seeds and clients' in first_screen.about([0, 1, 2])[0]
  assert first_screen.drawn([FEDAVG]) is None
