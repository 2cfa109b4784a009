"""Numbers in words, and HTML that cannot be broken by the text in it."""

import hypothesis
import pytest
from hypothesis import strategies as st

from tff_cluster.base import words


@pytest.mark.parametrize(
  ('given', 'expected'),
  [(0.934, '93.4%'), (0.0, '0.0%'), (1.0, '100.0%'), (0.12345, '12.3%'), (-0.0001, '0.0%'), (None, '–')],
)
def test_percent(given, expected):
  assert words.percent(given) == expected


@pytest.mark.parametrize(
  ('given', 'expected'),
  [
    (0.051, '+5.1 points'),
    (-0.003, '−0.3 points'),
    (-0.0001, '0.0 points'),
    (0.0001, '0.0 points'),
    (0.1, '+10.0 points'),
  ],
)
def test_points_are_signed_unless_nothing_is_left(given, expected):
  assert words.points(given) == expected


@pytest.mark.parametrize(
    ('seconds', 'expected'),
    [
        (0.04, '0.0 s'), (59.94, '59.9 s'), (59.96, '1 min 00 s'), (200, '3 min 20 s'), (3599.6, '1 h 00 min'),
        (3900, '1 h 05 min'), (86400, '24 h 00 min'),
    ],
)  # fmt: skip
def test_duration(seconds, expected):
  assert words.duration(seconds) == expected


@pytest.mark.parametrize(
  ('count', 'expected'),
  [(12, '12 B'), (6_653_480, '6.65 MB'), (999, '999 B'), (1000, '1 kB'), (2.1e15, '2.1e+03 TB')],
)
def test_size(count, expected):
  assert words.size(count) == expected


def test_a_score_below_one_is_not_printed_as_exact():
  assert words.score(0.9999) == '0.99'
  assert words.score(1.0) == '1.00'
  assert words.score(None) == '–'
  assert words.score(-0.02) == '−0.02'


def test_series_and_plural():
  assert [words.series(list('abc'[:n])) for n in range(4)] == ['', 'a', 'a and b', 'a, b and c']
  assert [words.plural(n, 'client') for n in (0, 1, 1200)] == ['0 clients', '1 client', '1,200 clients']


@hypothesis.given(st.lists(st.floats(-1, 1), min_size=2, max_size=2))
def test_two_shares_are_told_apart_wherever_they_differ(shares):
  printed = [float(text.rstrip('%').replace('−', '-')) for text in words.percents(shares, words.differ)]
  if abs(shares[0] - shares[1]) > 1e-7:
    assert words.differ(*printed) == words.differ(*shares)


@hypothesis.given(st.floats(-0.2, 0.2))
def test_a_difference_prints_as_none_only_where_it_is_none(difference):
  printed = float(words.points_apart(difference).removesuffix(' points').replace('−', '-'))
  assert (printed == 0.0) == (abs(difference) < 5e-9)


def test_digits_are_added_only_where_the_verdict_needs_them():
  assert words.percents((0.51401, 0.51399), words.differ) == ['51.401%', '51.399%']
  assert words.percents((0.514, 0.517), words.differ) == ['51.4%', '51.7%']
  assert words.percents((0.51401, 0.51399), lambda a, b: abs(a - b) < 0.05) == ['51.4%', '51.4%']
  assert words.decimals_for([1.04], lambda value: value <= 1.0) == 2


@hypothesis.given(st.floats(-0.1, 0.1), st.floats(0, 0.05), st.floats(0, 0.05))
def test_an_interval_in_print_excludes_zero_where_it_does(mean, below, above):
  low, high = mean - below, mean + above
  if 0.0 < abs(low) < 1e-7 or 0.0 < abs(high) < 1e-7:
    return
  ends = words.interval_points(mean, low, high)[1].removesuffix(' points').replace('−', '-').split(' to ')
  shown = [float(end) for end in ends]
  assert (shown[0] > 0.0, shown[1] < 0.0) == (low > 0.0, high < 0.0)


@pytest.mark.parametrize('client', ['c01', '7', 'f0000_14', 'writer-3', 'Zürich', '雪', 'a.b@c:1'])
def test_plain_ids_stand_as_they_are(client):
  assert words.client(client) == client


@pytest.mark.parametrize('client', ['', ' ', 'client 2', 'a, b', 'x\n', '“', '<b>', '日本 \u2028', "it's"])
def test_ids_of_more_than_a_plain_word_are_quoted(client):
  assert words.client(client) == f'“{client}”'
