"""Numbers in words, and HTML that cannot be broken by the text in it."""

import hypothesis
import pytest
from hypothesis import strategies as st

from tff_cluster.base import words

PRINTED = {
  words.percent: [(0.934, '93.4%'), (0.12345, '12.3%'), (-0.0001, '0.0%'), (None, '–')],
  words.points: [(0.051, '+5.1 points'), (-0.003, '−0.3 points'), (-0.0001, '0.0 points'), (0.0001, '0.0 points')],
  words.duration: [
    (0.04, '0.0 s'), (59.94, '59.9 s'), (59.96, '1 min 00 s'), (200, '3 min 20 s'), (3599.6, '1 h 00 min'), (3900, '1 h 05 min'),
  ],
  words.size: [(12, '12 B'), (6_653_480, '6.65 MB'), (999, '999 B'), (1000, '1 kB'), (2.1e15, '2.1e+03 TB')],
  # A score below one is not printed as exact.
  words.score: [(0.9999, '0.99'), (1.0, '1.00'), (None, '–'), (-0.02, '−0.02')],
  # Nor is an error that is none.
  words.error: [(0.0, '0.00'), (0.004, '< 0.01'), (0.126, '0.13'), (None, '–')],
  # Ids of more than a plain word are quoted.
  words.client: [
    *((each, each) for each in ('c01', '7', 'f0000_14', 'writer-3', 'Zürich', '雪', 'a.b@c:1')),
    *((each, f'“{each}”') for each in ('', 'client 2', 'a, b', 'x\n', '“', '<b>', "it's")),
  ],
}  # fmt: skip


@pytest.mark.parametrize('function', PRINTED, ids=lambda function: function.__name__)
def test_what_is_printed(function):
  for given, expected in PRINTED[function]:
    assert function(given) == expected


def test_series_and_plural():
  assert [words.series(list('abc'[:n])) for n in range(4)] == ['', 'a', 'a and b', 'a, b and c']
  assert [words.plural(n, 'client') for n in (0, 1, 1200)] == ['0 clients', '1 client', '1,200 clients']


@hypothesis.given(st.lists(st.floats(-100, 100), min_size=2, max_size=2))
def test_two_numbers_are_told_apart_wherever_they_differ(values):
  decimals = words.decimals_for(values, words.differ)
  if abs(values[0] - values[1]) > 1e-5:
    assert words.differ(*(float(f'{value:.{decimals}f}') for value in values)) == words.differ(*values)


@hypothesis.given(st.floats(-0.2, 0.2))
def test_a_difference_prints_as_none_only_where_it_is_none(difference):
  printed = float(words.points_apart(difference).removesuffix(' points').replace('−', '-'))
  assert (printed == 0.0) == (abs(difference) < 5e-9)


def test_digits_are_added_only_where_the_verdict_needs_them():
  assert words.decimals_for((51.401, 51.399), words.differ) == 3
  assert words.decimals_for((51.4, 51.7), words.differ) == 1
  assert words.decimals_for((51.401, 51.399), lambda a, b: abs(a - b) < 0.05) == 1
  assert words.decimals_for([1.04], lambda value: value <= 1.0) == 2


@hypothesis.given(st.floats(-0.1, 0.1), st.floats(0, 0.05), st.floats(0, 0.05))
def test_an_interval_in_print_excludes_zero_where_it_does(mean, below, above):
  low, high = mean - below, mean + above
  if 0.0 < abs(low) < 1e-7 or 0.0 < abs(high) < 1e-7:
    return
  ends = words.interval_points(mean, low, high)[1].removesuffix(' points').replace('−', '-').split(' to ')
  shown = [float(end) for end in ends]
  assert (shown[0] > 0.0, shown[1] < 0.0) == (low > 0.0, high < 0.0)
