"""Partitioners without planted groups: even, uneven in number, uneven in labels, pathological, by writer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.conftest import MNIST_COUNTS
from tff_cluster.base import seeding
from tff_cluster.base.errors import InputError
from tff_cluster.data.partitioners import pathological as pathological_lib
from tff_cluster.data.partitioners import rows
from tff_cluster.data.partitioners.counts import apportion, label_table
from tff_cluster.data.partitioners.pathological import pathological
from tff_cluster.data.partitioners.writers import rows_of_writers, select_writers
from tff_cluster.data.population import natural_key


def _rng(seed=0):
  return seeding.generator(seed, 'test')


def _labels(counts):
  return _rng().permutation(np.repeat(np.arange(len(counts)), counts))


def _table(held, labels, classes):
  return label_table([labels[own] for own in held], classes)


SHARERS = {
  'iid': lambda labels, clients, rng: rows.iid(len(labels), clients, rng),
  'quantity_skew': lambda labels, clients, rng: rows.quantity_skew(len(labels), clients, 0.5, rng),
  'dirichlet': lambda labels, clients, rng: rows.dirichlet(labels, clients, 0.3, rng),
  'pathological': lambda labels, clients, rng: pathological(labels, clients, 2, rng),
}


@pytest.mark.parametrize('name', SHARERS)
@settings(max_examples=15)
@given(
  counts=st.lists(st.integers(12, 60), min_size=2, max_size=6),
  clients=st.integers(3, 12),
  seed=st.integers(0, 9),
)
def test_every_row_is_given_exactly_once_and_the_seed_decides(name, counts, clients, seed):
  labels = _labels(counts)
  first, again = (SHARERS[name](labels, clients, _rng(seed)) for _ in range(2))
  assert len(first) == clients and min(map(len, first)) >= 2
  np.testing.assert_array_equal(np.sort(np.concatenate(first)), np.arange(len(labels)))
  for a, b in zip(first, again, strict=True):
    assert a.dtype == np.int64
    np.testing.assert_array_equal(a, b)
  other = SHARERS[name](labels, clients, _rng(seed + 1))
  assert any(set(a.tolist()) != set(b.tolist()) for a, b in zip(first, other, strict=True))


def test_a_client_whose_labels_nobody_shares_does_not_keep_others_from_becoming_even():
  sizes = np.array([[10, 0], [0, 8], [0, 4]])
  pathological_lib._even_out(sizes, sizes > 0)
  assert sizes.tolist() == [[10, 0], [0, 6], [0, 6]]


@pytest.mark.parametrize('name', ['iid', 'dirichlet'])
def test_sizes_differ_by_one_at_most(name):
  sizes = [len(r) for r in SHARERS[name](_labels([50, 53]), 10, _rng())]
  assert sorted(sizes) == [10] * 7 + [11] * 3


@pytest.mark.parametrize('name', SHARERS)
def test_too_few_rows_are_refused(name):
  with pytest.raises(InputError, match='at most 4 clients'):
    SHARERS[name](_labels([4, 5]), 5, _rng())


@pytest.mark.parametrize(('counts', 'clients', 'shards', 'words'), [([50] * 3, 5, 4, '3 labels'), ([50, 1, 1], 6, 2, 'rare labels')])  # fmt: skip
def test_more_labels_a_client_than_there_are_is_refused(counts, clients, shards, words):
  with pytest.raises(InputError, match=words):
    pathological(_labels(counts), clients, shards, _rng())


def test_quantity_skew_follows_its_concentration():
  uneven = [len(r) for r in rows.quantity_skew(10000, 20, 0.3, _rng())]
  even = [len(r) for r in rows.quantity_skew(10000, 20, 1e6, _rng())]
  assert max(even) - min(even) < 20
  assert max(uneven) > 3 * 500


def test_quantity_skew_has_every_row_given_at_the_ends_of_its_concentration():
  equal, one = (rows.quantity_skew(1000, 20, alpha, _rng()) for alpha in (1e308, 1e-16))
  assert [len(own) for own in equal] == [50] * 20
  assert sorted(map(len, one)) == [rows.MIN_ROWS] * 19 + [1000 - 19 * rows.MIN_ROWS]
  for held in (equal, one):
    np.testing.assert_array_equal(np.sort(np.concatenate(held)), np.arange(1000))


def test_dirichlet_shares_have_the_distributions_spread_and_a_vanishing_one_gives_every_row():
  # Var of a share is p (1 - p) / (alpha + 1); labels that run out make it somewhat smaller.
  labels, alpha, shares = _labels([3000] * 4), 3.0, []
  for seed in range(30):
    table = _table(rows.dirichlet(labels, 6, alpha, _rng(seed)), labels, 4)
    shares.append(table[0] / table[0].sum())
  variance = np.var(np.array(shares), axis=0).mean()
  assert 0.5 < variance / (0.25 * 0.75 / (alpha + 1)) < 1.5
  vanishing = rows.dirichlet(_labels([37, 41, 3]), 7, 1e-12, _rng())
  np.testing.assert_array_equal(np.sort(np.concatenate(vanishing)), np.arange(81))


def test_cap_keeps_label_shares_and_order():
  labels = _labels([600, 300, 100])
  held = _rng(1).permutation(1000)
  kept = rows.cap(held, labels, 50, _rng())
  np.testing.assert_array_equal(np.bincount(labels[kept]), [30, 15, 5])
  position = {row: i for i, row in enumerate(held)}
  assert [position[r] for r in kept] == sorted(position[r] for r in kept)
  assert rows.cap(held, labels, None, _rng()) is held
  assert len(rows.cap(held, labels, 1000, _rng())) == 1000


@given(wanted=st.lists(st.floats(0, 50), min_size=1, max_size=12))
def test_apportion_sums_and_stays_within_one(wanted):
  wanted = np.array(wanted)
  total = round(wanted.sum())
  whole = apportion(wanted, total)
  assert whole.sum() == total and whole.min() >= 0
  assert np.abs(whole - wanted).max() < 1 + 1e-9
  # The largest remainders first.
  assert apportion(np.array([1.2, 2.7, 0.6, 0.5]), 5).tolist() == [1, 3, 1, 0]


def test_pathological_on_mnists_label_counts_is_the_papers():
  labels = np.repeat(np.arange(10), MNIST_COUNTS)
  held = pathological(labels, 100, 2, _rng())
  table = _table(held, labels, 10)
  assert set(table.sum(axis=1)) == {600}
  assert set((table > 0).sum(axis=1)) == {2}
  # 200 shards of about 300: no label's part in a client is far from one shard.
  assert table[table > 0].min() > 200 and table.max() < 400
  np.testing.assert_array_equal(table.sum(axis=0), MNIST_COUNTS)
  # 45 pairs are possible; dealing in label order alone would give 10 at most.
  assert len(np.unique(table > 0, axis=0)) > 20


@settings(max_examples=20)
@given(
  counts=st.lists(st.integers(20, 90), min_size=4, max_size=8),
  clients=st.integers(6, 20),
  shards=st.integers(1, 3),
  seed=st.integers(0, 5),
)
def test_pathological_clients_have_exactly_their_labels(counts, clients, shards, seed):
  labels = _labels(counts)
  held = pathological(labels, clients, shards, _rng(seed))
  table = _table(held, labels, len(counts))
  assert set((table > 0).sum(axis=1)) == {shards}
  flat = np.concatenate(held)
  assert len(set(flat.tolist())) == len(flat)
  used = table.sum(axis=0) > 0
  np.testing.assert_array_equal(table.sum(axis=0)[used], np.array(counts)[used])


TRAIN = {'a': 10, 'b': 20, 'c': 30, 'd': 1, 'e': 40}
TEST = {'a': 1, 'b': 2, 'c': 3, 'd': 1}


def test_writers_qualify_by_inclusive_bounds():
  for number, low, high, expected in (
    (3, 1, None, ['a', 'b', 'c']),
    (2, 11, 22, ['a', 'b']),
    (1, 12, 32, ['b']),
  ):
    assert select_writers(TRAIN, TEST, number, low, high, _rng()) == expected
  with pytest.raises(InputError, match=r'^num_clients=2: 1 of 5 writers qualify \(12 to 32 examples'):
    select_writers(TRAIN, TEST, 2, 12, 32, _rng())
  # Where nobody has enough, fewer clients are no way out.
  with pytest.raises(
    InputError, match=r'0 of 5 writers qualify \(at least 3 examples.*give data with more rows a writer$'
  ):
    select_writers(dict.fromkeys(TRAIN, 1), TEST, 2, 1, None, _rng())


def test_drawn_writers_have_their_rows_and_are_drawn_again_out_of_themselves():
  counts = {f'w{i:02d}': 5 for i in range(50)}
  chosen = select_writers(counts, counts, 7, 1, None, _rng(3))
  assert chosen == sorted(set(chosen)) and len(chosen) == 7
  assert select_writers({w: 5 for w in chosen}, counts, 7, 1, None, _rng(3)) == chosen
  assert select_writers(counts, counts, 7, 1, None, _rng(4)) != chosen
  owner = np.array(['b', 'a', 'b', 'c', 'a'])
  assert [r.tolist() for r in rows_of_writers(owner, ['a', 'b', 'x'])] == [[1, 4], [0, 2], []]


@given(st.lists(st.integers(0, 10**30), unique=True))
def test_ids_stand_in_the_order_of_the_numbers_in_them(numbers):
  ordered = [str(number) for number in sorted(numbers)]
  assert sorted(map(str, numbers), key=natural_key) == ordered
  assert sorted((f'w {n}' for n in numbers), key=natural_key) == [f'w {n}' for n in ordered]
  assert sorted(['b', '10', '7', 'a', '007'], key=natural_key) == ['007', '7', '10', 'a', 'b']


def test_where_a_label_has_run_out_a_client_takes_of_the_others_as_much_as_it_wanted_of_each():
  left = np.array([0, 100, 100, 100])
  for wanted in (1e-3, 1e-13, 1e-300):
    counts = rows._draw_counts(np.array([1 - 3 * wanted, 2 * wanted, wanted, 0.0]), left, 60, _rng())
    assert counts.sum() == 60 and counts[0] == counts[3] == 0 and 20 < counts[1] - counts[2] + 20 < 60, wanted
  # Nothing is wanted of any that is left.
  counts = rows._draw_counts(np.array([1.0, 0.0, 0.0, 0.0]), left, 60, _rng())
  assert counts[0] == 0 and counts.sum() == 60 and counts[1:].min() > 8


def test_of_many_labels_a_client_has_few_where_the_concentration_is_small():
  """Hsu et al. 2019: shares of labels that ran out go to the others in proportion, not to whatever is left."""
  labels = _labels([500] * 100)
  held = _table(rows.dirichlet(labels, 50, 0.5, _rng()), labels, 100)
  # Half of the rows of a client are of its four most frequent labels or so; nobody has every third label.
  assert (held > 0).sum(axis=1).max() < 20
