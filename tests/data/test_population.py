"""Populations: what is refused, and what their digests depend on."""

import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import make_population
from tests.made_up.refusals import refused
from tff_cluster.data.population import SharedSplit, Split, cohort_size

CLIENTS, CLASSES = 4, 3
SPLITS = ('train', 'validation', 'test')


@pytest.fixture(scope='module')
def population():
  return make_population(clients=CLIENTS, rows=5, classes=CLASSES)


def change(population, split, **fields):
  return dataclasses.replace(population, **{split: dataclasses.replace(getattr(population, split), **fields)})


def altered(array, position, value):
  result = array.copy()
  result[position] = value
  return result


def differing(one, other):
  """Returns for each client whether its digests differ."""
  return [a != b for a, b in zip(one.client_digests, other.client_digests, strict=True)]


def test_what_is_wrong_with_the_whole_is_refused(population):
  x, y = population.global_test_x, population.global_test_y
  for words, changes in (
    ('given twice or more: c00', {'client_ids': ('c00', 'c01', 'c00', 'c02')}),
    ('has 0 rows and 0 labels', {'global_test_x': x[:0], 'global_test_y': y[:0]}),
    (f'has {len(x) - 1} rows and {len(y)} labels', {'global_test_x': x[:-1]}),
    ('allowed are 0 to 1', {'num_classes': 2}),
    (r'update_scales must be float32\[4\], found float64 of shape \(4,\)', {'update_scales': np.ones(4)}),
    (r'found float32 of shape \(2,\)', {'update_scales': np.ones(2, np.float32)}),
  ):
    refused(functools.partial(dataclasses.replace, population, **changes), (words,))


@pytest.mark.parametrize('split', SPLITS)
def test_what_is_wrong_with_a_split_is_refused(split, population):
  part = getattr(population, split)
  rows, offsets = len(part.y), part.offsets
  shapes = r'\(5,\), the global test set float32 rows of shape \(6,\)'
  for words, changes in (
    (f'has {rows - 1} rows, {rows} labels', {'x': part.x[:-1]}),
    (f'has {rows} rows, {rows - 1} labels', {'y': part.y[:-1]}),
    (f'has .* offsets up to {rows - 1}', {'offsets': altered(offsets, -1, rows - 1)}),
    ('has labels from 0 to 3, allowed are 0 to 2', {'y': np.r_[part.y[:-2], 0, 3].astype(np.int32)}),
    ('has labels from -1 to', {'y': altered(part.y, 0, -1)}),
    ('has float64 rows', {'x': part.x.astype(np.float64)}),
    (f'has float32 rows of shape {shapes}', {'x': part.x[:, :-1]}),
    (f'has {CLIENTS - 1} clients, expected {CLIENTS}', {'offsets': offsets[[0, 1, 2, 4]]}),
  ):
    refused(functools.partial(change, population, split, **changes), (f'{split} {words}',))
  for k in range(CLIENTS):
    # Client k's rows go to a neighbour.
    position, value = (k + 1, offsets[k]) if k < CLIENTS - 1 else (k, offsets[k + 1])
    without = functools.partial(change, population, split, offsets=altered(offsets, position, value))
    refused(without, (rf'client c0{k} has no {split} rows \(1 such clients\)',))


@settings(max_examples=40)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(1, 5))
def test_a_split_gives_every_client_its_own_rows(counts, classes):
  rows = sum(counts)
  y = np.random.default_rng(rows).integers(classes, size=rows).astype(np.int32)
  split = Split(np.arange(rows * 2.0).reshape(rows, 2), y, np.cumsum([0, *counts]))
  assert split.counts.tolist() == counts
  start = 0
  for k, count in enumerate(counts):
    x, labels = split.client(k)
    np.testing.assert_array_equal(x, split.x[start : start + count])
    assert np.shares_memory(x, split.x)
    expected = [labels.tolist().count(label) for label in range(classes)]
    assert split.label_counts(classes)[k].tolist() == expected
    start += count


@settings(max_examples=40)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.data())
def test_rows_of_some_clients_together_are_theirs(counts, data):
  rows, first = sum(counts), data.draw(st.integers(0, len(counts) - 1))
  stop = data.draw(st.integers(first + 1, len(counts)))
  own = Split(np.arange(rows), np.zeros(rows, np.int32), np.cumsum([0, *counts]))
  shared = SharedSplit(np.arange(5), np.zeros((1, 5), np.int32), np.zeros(len(counts), np.int64))
  for split, number in ((own, sum(counts[first:stop])), (shared, 5)):
    x, places = split.together(first, stop)
    assert len(x) == number and np.shares_memory(x, split.x)
    assert [x[place].tolist() for place in places] == [
      split.client(k)[0].tolist() for k in range(first, stop)
    ]


def shared_test(population, groups=(1, 0, 1, 0)):
  x, y = population.global_test_x, population.global_test_y
  test = SharedSplit(x, np.stack([y, (y + 1) % CLASSES]), np.array(groups))
  return dataclasses.replace(population, test=test)


def test_clients_of_a_group_are_alike_in_rows_that_are_shared(population):
  shared = shared_test(population)
  assert [shared.test.alike(k) for k in range(CLIENTS)] == [0, 1, 0, 1]
  assert [population.test.alike(k) for k in range(CLIENTS)] == list(range(CLIENTS))
  found = [shared.test.digest(k) for k in range(CLIENTS)]
  assert found[0] == found[2] != found[1] == found[3] and len(set(shared.client_digests)) == CLIENTS
  # The digests are those of clients that hold copies.
  y = np.concatenate([shared.test.client(k)[1] for k in range(CLIENTS)])
  rows = len(shared.test.x)
  copies = Split(np.tile(shared.test.x, (CLIENTS, 1)), y, np.arange(CLIENTS + 1) * rows)
  assert dataclasses.replace(shared, test=copies).digest == shared.digest
  np.testing.assert_array_equal(copies.label_counts(CLASSES), shared.test.label_counts(CLASSES))
  taken = shared.take([1, 2])
  assert taken.client_digests == shared.client_digests[1:3] and taken.test.x is population.global_test_x


def test_what_is_wrong_with_rows_that_are_shared_is_refused(population):
  shared, rows = shared_test(population), len(population.global_test_y)
  for words, changes in (
    (rf'has {rows} rows and labels of shape \[2, {rows - 1}\]', {'y': shared.test.y[:, 1:]}),
    (rf'has {rows} rows and labels of shape \[{rows}\]', {'y': shared.test.y[0]}),
    ('has labels of 2 groups, and clients of others', {'groups': np.array([0, 1, 2, 0])}),
    ('has labels of 2 groups, and clients of others', {'groups': np.array([0, 1, -1, 0])}),
    (f'has 3 clients, expected {CLIENTS}', {'groups': np.array([0, 1, 1])}),
    ('has labels from 1 to 3, allowed', {'y': shared.test.y + 1}),
  ):
    refused(functools.partial(change, shared, 'test', **changes), (f'test {words}',))


def test_any_number_of_any_row_changes_its_clients_digest_and_no_other(population):
  for split in SPLITS:
    part = getattr(population, split)
    owner = np.repeat(np.arange(CLIENTS), part.counts)
    for row in range(0, len(part.y), 2):
      for changed in (
        change(population, split, x=altered(part.x, (row, row % 6), 99.0)),
        change(population, split, y=altered(part.y, row, (part.y[row] + 1) % CLASSES)),
      ):
        assert differing(population, changed) == (np.arange(CLIENTS) == owner[row]).tolist()
        assert changed.digest != population.digest


def test_rows_that_move_to_a_neighbour_or_another_split_change_both_digests(population):
  moved = change(
    population, 'train', offsets=altered(population.train.offsets, 1, population.train.offsets[1] + 1)
  )
  assert differing(population, moved) == [True, True, False, False]
  swapped = dataclasses.replace(population, validation=population.test, test=population.validation)
  assert all(differing(population, swapped))
  order = np.arange(len(population.train.y))
  order[:2] = [1, 0]
  reordered = change(population, 'train', x=population.train.x[order], y=population.train.y[order])
  renamed = dataclasses.replace(population, client_ids=('other', 'c01', 'c02', 'c03'))
  for changed in (reordered, renamed):
    assert differing(population, changed) == [True, False, False, False]


def test_what_belongs_to_nobody_changes_the_digest_of_the_whole_only(population):
  truths = {'group': np.eye(2)[:, [0, 0, 1, 1]]}
  with_truth = dataclasses.replace(population, truths=truths)
  variants = [
    dataclasses.replace(population, global_test_x=altered(population.global_test_x, (0, 0), 99.0)),
    dataclasses.replace(population, global_test_y=altered(population.global_test_y, 0, (population.global_test_y[0] + 1) % 3)),
    dataclasses.replace(population, num_classes=CLASSES + 1),
    with_truth,
    dataclasses.replace(population, truths={'other name': truths['group']}),
    dataclasses.replace(population, truths={'group': truths['group'][:, ::-1]}),
  ]  # fmt: skip
  assert len({population.digest, *(v.digest for v in variants)}) == len(variants) + 1
  assert all(v.client_digests == population.client_digests for v in variants)
  again = make_population(clients=CLIENTS, rows=5, classes=CLASSES)
  assert dataclasses.replace(again, name='called otherwise').digest == again.digest == population.digest


@settings(max_examples=15)
@given(st.sets(st.integers(0, CLIENTS - 1), min_size=1))
def test_taken_clients_keep_what_is_theirs(chosen):
  population = dataclasses.replace(
    make_population(clients=CLIENTS, rows=5, classes=CLASSES),
    truths={'group': np.arange(2.0 * CLIENTS).reshape(2, -1)},
    update_scales=np.array([1.0, -1.0, np.nan, 10.0], np.float32),
  )
  positions = sorted(chosen)
  taken = population.take(positions)
  assert taken.client_ids == tuple(population.client_ids[k] for k in positions)
  assert taken.client_digests == tuple(population.client_digests[k] for k in positions)
  np.testing.assert_array_equal(taken.truths['group'], population.truths['group'][:, positions])
  np.testing.assert_array_equal(taken.update_scales, population.update_scales[positions])
  assert taken.global_test_x is population.global_test_x


@pytest.mark.parametrize('positions', [[], [1, 0], [1, 1], [-1, 2], [0, CLIENTS], [[0, 1]]])
def test_positions_that_cannot_be_taken(population, positions):
  refused(population.take, (positions, 'clients to take must be ascending positions from 0 to 3'))


@pytest.mark.parametrize(
  ('fraction', 'members', 'size'),
  [(0.29, 100, 29), (0.1, 19, 1), (0.1, 3, 1), (1.0, 7, 7), (0.7, 10, 7)],
)
def test_a_cohort_is_a_share_of_the_members_rounded_down_and_one_at_least(fraction, members, size):
  assert cohort_size(fraction, members) == size
