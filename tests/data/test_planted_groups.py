"""Planted groups, mixtures, and test rows that match training rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tff_cluster.base import seeding
from tff_cluster.base.errors import InputError
from tff_cluster.data.partitioners import groups
from tff_cluster.data.partitioners.matching import match_test_rows


def _rng(seed=0):
  return seeding.generator(seed, 'test')


def _matched(train, supply):
  """Returns how many test rows of each label clients get, of a supply by label: int[clients, labels]."""
  labels = np.repeat(np.arange(len(supply)), supply)
  held = match_test_rows(np.array(train), labels, _rng())
  return np.stack([np.bincount(labels[rows], minlength=len(supply)) for rows in held])


@given(classes=st.integers(3, 10), seed=st.integers(0, 20), data=st.data())
def test_each_group_swaps_one_pair_of_its_own(classes, seed, data):
  number = data.draw(st.integers(1, classes * (classes - 1) // 2))
  maps = groups.swapped_labels(number, classes, _rng(seed))
  moved = maps != np.arange(classes)
  assert (moved.sum(axis=1) == 2).all()
  for row in maps:
    np.testing.assert_array_equal(row[row], np.arange(classes))
  assert len(np.unique(moved, axis=0)) == number
  if 2 * number <= classes:
    assert moved.sum(axis=0).max() == 1


@given(classes=st.integers(3, 12), number=st.integers(1, 6), seed=st.integers(0, 20))
def test_each_group_permutes_all_labels_in_its_own_way(classes, number, seed):
  maps = groups.permuted_labels(number, classes, _rng(seed))
  assert all(sorted(row) == list(range(classes)) for row in maps.tolist())
  assert len({tuple(row) for row in maps.tolist()}) == number


@pytest.mark.parametrize(
  ('kind', 'number', 'classes', 'words'),
  [
    ('label_swapped', 4, 3, 'num_groups=4: 3 labels have 3 pairs to swap; at most that many groups'),
    ('label_permuted', 7, 3, 'num_groups=7: 3 labels have 6 permutations; at most that many groups'),
    ('mirrored', 2, 10, "no transformation is called 'mirrored'"),
  ],
)
def test_groups_that_cannot_be_told_apart_are_refused(kind, number, classes, words):
  with pytest.raises(InputError, match=words):
    groups.make_transform(kind, number, classes, _rng())


def test_quarter_turns_and_labels_by_hand():
  x = np.tile(np.array([[1, 2], [3, 4]], np.uint8)[None, :, :, None], (4, 1, 1, 1))
  y = np.arange(4, dtype=np.int32)
  groups.make_transform('rotated', 4, 10, _rng(), (0, 90, 180, 270)).apply(x, y, np.arange(4))
  assert x[..., 0].tolist() == [[[1, 2], [3, 4]], [[2, 4], [1, 3]], [[4, 3], [2, 1]], [[3, 1], [4, 2]]]
  assert y.tolist() == [0, 1, 2, 3]
  maps = groups.Transform(label_maps=np.array([[0, 1, 2], [2, 1, 0]], np.int32))
  before, y = x.copy(), np.array([0, 2, 0, 2], np.int32)
  maps.apply(x, y, np.array([0, 0, 1, 1]))
  assert y.tolist() == [0, 2, 2, 0] and (x == before).all()
  with pytest.raises(InputError, match='square'):
    turned = groups.make_transform('rotated', 2, 10, _rng(), (0, 90))
    turned.apply(np.zeros((3, 4, 5, 1)), y[:3], np.zeros(3, int))


@pytest.mark.parametrize('dtype', [np.uint8, np.float32])
@given(degrees=st.floats(-360, 720), slopes=st.tuples(st.floats(-1, 1), st.floats(-1, 1)))
def test_other_angles_turn_anticlockwise_about_the_middle(dtype, degrees, slopes):
  # Linear interpolation leaves a slope as it is, so that each pixel is the slope at the point that was turned there.
  side = 9
  up, right = np.mgrid[4:-5:-1, -4:5].astype(float)
  before = np.broadcast_to(
    (120 + 8 * (slopes[0] * right + slopes[1] * up))[None, ..., None], (2, side, side, 2)
  )
  x = np.round(before).astype(dtype) if dtype == np.uint8 else before.astype(dtype)
  groups.Transform(degrees=np.array([0.0, degrees])).apply(x, np.zeros(2, np.int32), np.array([0, 1]))
  angle = np.deg2rad(degrees)
  from_right, from_up = np.cos(angle) * right + np.sin(angle) * up, np.cos(angle) * up - np.sin(angle) * right
  expected = 120 + 8 * (slopes[0] * from_right + slopes[1] * from_up)
  inside = np.hypot(up, right) < 4
  for channel in range(2):
    # Pixels are rounded twice.
    slack = 1.001 if dtype == np.uint8 else 1e-3
    np.testing.assert_allclose(x[1, ..., channel][inside], expected[inside], atol=slack)
  assert x.dtype == dtype and (np.abs(x[0] - before[0]) <= 0.5).all()


def test_groups_are_even_and_in_random_positions():
  first = groups.assign_groups(100, 4, _rng(0))
  np.testing.assert_array_equal(np.bincount(first), [25, 25, 25, 25])
  np.testing.assert_array_equal(first, groups.assign_groups(100, 4, _rng(0)))
  assert (first != groups.assign_groups(100, 4, _rng(1))).any()
  assert sorted(np.bincount(groups.assign_groups(10, 4, _rng()))) == [2, 2, 3, 3]
  drawn = groups.groups_of_rows(np.array([0.7, 0.0, 0.3]), 40, _rng())
  np.testing.assert_array_equal(np.bincount(drawn), [28, 0, 12])
  assert drawn.tolist() != sorted(drawn.tolist())
  with pytest.raises(InputError, match='at most as many groups'):
    groups.assign_groups(3, 4, _rng())
  with pytest.raises(InputError, match='at least 2 groups'):
    groups.mix_groups(5, 1, 0.5, 0.3, _rng())


@given(
  clients=st.integers(4, 30), number=st.integers(2, 4), mixed=st.floats(0, 1), share=st.floats(0.05, 0.5), seed=st.integers(0, 9)
)  # fmt: skip
def test_mixtures_are_known_shares(clients, number, mixed, share, seed):
  shares = groups.mix_groups(clients, number, mixed, share, _rng(seed))
  assert shares.shape == (number, clients)
  np.testing.assert_allclose(shares.sum(axis=0), 1.0, rtol=1e-12)
  is_mixed = (shares > 0).sum(axis=0) == 2
  assert is_mixed.sum() == round(mixed * clients)
  assert ((shares > 0).sum(axis=0) <= 2).all()
  np.testing.assert_allclose(shares[:, is_mixed].min(axis=0, where=shares[:, is_mixed] > 0, initial=1), share)


@pytest.mark.parametrize('share', [0.1, 0.3])
def test_two_groups_are_mixed_10_to_90_and_30_to_70(share):
  """Ruan and Joe-Wong 2022: half of the clients have that share of one group, half of the other."""
  shares = groups.mix_groups(100, 2, 1.0, share, _rng())
  np.testing.assert_allclose(np.sort(shares[0]), [share] * 50 + [1 - share] * 50)
  np.testing.assert_allclose(shares.sum(axis=0), 1.0)


@given(clients=st.integers(2, 40), number=st.integers(2, 4), mixed=st.floats(0, 1), seed=st.integers(0, 9))
def test_linear_mixtures_rise_evenly_in_each_group(clients, number, mixed, seed):
  number = min(number, clients)
  shares = groups.mix_groups(clients, number, mixed, None, _rng(seed))
  fixed = groups.mix_groups(clients, number, mixed, 0.25, _rng(seed))
  # The same clients are mixed, of the same groups.
  np.testing.assert_array_equal(shares > 0, fixed > 0)
  np.testing.assert_array_equal(shares.argmax(axis=0), fixed.argmax(axis=0))
  for group in range(number):
    second = np.sort([min(c[c > 0]) for c in shares.T if c.argmax() == group and c.max() < 1])
    np.testing.assert_allclose(second, [(2 * j + 1) / (4 * len(second)) for j in range(len(second))])


def test_of_two_groups_a_linear_mixture_gives_every_client_another_share():
  """Ruan and Joe-Wong 2022: client k of 100 has (k + 1/2)% of the first group."""
  shares = groups.mix_groups(100, 2, 1.0, None, _rng())
  np.testing.assert_allclose(np.sort(shares[0]), (np.arange(100) + 0.5) / 100)


@settings(max_examples=30)
@given(
  clients=st.integers(1, 8), classes=st.integers(2, 5), seed=st.integers(0, 1000), rows=st.integers(60, 300)
)
def test_matched_test_rows_are_disjoint_and_follow_the_training_labels(clients, classes, seed, rows):
  rng = _rng(seed)
  train = rng.integers(0, 40, size=(clients, classes)) + 4
  labels = rng.choice(classes, size=rows, p=train.sum(axis=0) / train.sum())
  held = match_test_rows(train, labels, _rng(seed))
  flat = np.concatenate(held)
  assert len(set(flat.tolist())) == len(flat)
  table = np.stack([np.bincount(labels[r], minlength=classes) for r in held])
  due = np.minimum(train.sum(axis=1), rows * train.sum(axis=1) / train.sum())
  wanted = train * (due / train.sum(axis=1))[:, None]
  scarce = np.minimum(1, np.bincount(labels, minlength=classes) / wanted.sum(axis=0))
  # Rounding moves a row of each label, and filling up to what is due one more.
  assert (table - wanted * scarce).min() > -1 - 1e-6 and (table - wanted * scarce).max() < 2 + 1e-6
  assert (table.sum(axis=1) >= 1).all()


@pytest.mark.parametrize(
  ('train', 'supply', 'given'),
  [
    # A label that another client trains on is never tested on.
    ([[50, 50, 0], [0, 50, 50]], [20, 40, 20], [[20, 20, 0], [0, 20, 20]]),
    # A client gets at most as many test rows as training rows.
    ([[6, 4], [5, 5]], [500, 500], [[6, 4], [5, 5]]),
  ],
)
def test_matched_labels_by_hand(train, supply, given):
  assert _matched(train, supply).tolist() == given


@pytest.mark.parametrize(
  ('train', 'supply', 'due'),
  [
    # The clients are due 1.1 and 1.9 rows of each of 10 labels; rounding favours none.
    ([[11] * 10, [19] * 10], [3] * 10, [11, 19]),
    # As MNIST: where a label is rarer among test rows, what that leaves open is filled with others.
    ([[100, 100, 100]] * 10, [95, 101, 104], [30] * 10),
    # Clients with few labels are filled first.
    ([[50, 50, 0], [34, 33, 33], [0, 50, 50]], [26, 45, 29], [33, 33, 33]),
    # Small clients get a row.
    ([[1000], [2], [2]], [5], [3, 1, 1]),
  ],
)
def test_clients_get_as_many_test_rows_as_they_are_due(train, supply, due):
  found = _matched(train, supply)
  assert found.sum(axis=1).tolist() == due
  assert not found[np.array(train) == 0].any()


@pytest.mark.parametrize(('train', 'rows'), [([[1000], [2], [2]], 2), ([[5, 0], [0, 5]], 9)])
def test_too_few_test_rows_are_refused(train, rows):
  with pytest.raises(InputError, match='too few'):
    match_test_rows(np.array(train), np.zeros(rows, int), _rng())
