"""Populations, checked against a source in which every example carries its own row number."""

import numpy as np
import pytest

from tff_cluster.base.errors import InputError
from tff_cluster.data.populate import build_population
from tff_cluster.data.source import Source
from tff_cluster.experiment.config import PARTITIONS, DataConfig

TRAIN, TEST, CLASSES = 900, 300, 5


def _images(first, count):
  """float32[count, 4, 4, 1]; the corner holds the row number, so a turned image tells its row and its turns."""
  x = np.zeros((count, 4, 4, 1), np.float32)
  x[:, 0, 0, 0] = first + np.arange(count) + 1
  return x


def _source(**changes):
  rng = np.random.Generator(np.random.PCG64(5))
  labels = rng.integers(CLASSES, size=TRAIN + TEST).astype(np.int32)
  fields = {
    'train_x': _images(0, TRAIN), 'train_y': labels[:TRAIN],
    'test_x': _images(TRAIN, TEST), 'test_y': labels[TRAIN:], 'num_classes': CLASSES,
  }  # fmt: skip
  return Source('numbered', **{**fields, **changes}), labels


def _rows(x):
  return x.reshape(len(x), -1).max(axis=1).astype(int) - 1


def _turns(x):
  corners = np.stack([x[:, 0, 0, 0], x[:, 3, 0, 0], x[:, 3, 3, 0], x[:, 0, 3, 0]], axis=1)
  return corners.argmax(axis=1)


SPLITS = ('train', 'validation', 'test')
NOT_OWNED = [p for p in PARTITIONS if p != 'by_writer']


def _config(partition, **changes):
  return DataConfig(partition=partition, **{'num_clients': 12, **changes})


def _build(partition, fold=None, source=None, **changes):
  return build_population(_config(partition, **changes), fold, source or _source()[0])


def _held(population, k, splits=SPLITS):
  return _rows(np.concatenate([getattr(population, split).client(k)[0] for split in splits]))


def _trained(population):
  return np.concatenate([_rows(population.train.x), _rows(population.validation.x)])


@pytest.mark.parametrize('partition', NOT_OWNED)
def test_splits_are_disjoint_complete_from_the_right_side_and_decided_by_the_seed(partition):
  source, labels = _source()
  population, again, other = (_build(partition, source=source, data_seed=seed) for seed in (0, 0, 1))
  test = _rows(population.test.x)
  np.testing.assert_array_equal(np.sort(_trained(population)), np.arange(TRAIN))
  assert test.min() >= TRAIN and len(set(test.tolist())) == len(test) > 0.9 * TEST
  np.testing.assert_array_equal(_rows(population.global_test_x), np.arange(TRAIN, TRAIN + TEST))
  np.testing.assert_array_equal(population.global_test_y, source.test_y)
  both = population.train.counts + population.validation.counts
  np.testing.assert_array_equal(population.validation.counts, np.maximum(1, np.rint(0.1 * both)))
  assert population.digest == again.digest != other.digest
  assert not np.array_equal(population.test.x, other.test.x)
  # The source is left as it was.
  np.testing.assert_array_equal(source.train_x, _images(0, TRAIN))
  np.testing.assert_array_equal(np.concatenate([source.train_y, source.test_y]), labels)


@pytest.mark.parametrize('partition', ['label_swapped', 'label_permuted'])
@pytest.mark.parametrize('label_skew', [None, 5.0])
def test_a_groups_label_map_holds_in_every_split(partition, label_skew):
  source, labels = _source()
  population = _build(partition, source=source, num_groups=2, label_skew=label_skew)
  truth = population.truths['group']
  assert truth.shape == (2, 12) and (truth.sum(axis=1) == 6).all()
  maps = [{}, {}]
  for split in (getattr(population, name) for name in SPLITS):
    assert (_turns(split.x) == 0).all()
    groups = np.repeat(truth.argmax(axis=0), split.counts)
    for group, raw, label in zip(groups, labels[_rows(split.x)], split.y, strict=True):
      assert maps[group].setdefault(raw, label) == label
  assert maps[0] != maps[1]
  assert all(sorted(each) == sorted(each.values()) == list(range(CLASSES)) for each in maps)
  if partition == 'label_swapped':
    moved = [{raw for raw, label in each.items() if raw != label} for each in maps]
    assert len(moved[0]) == len(moved[1]) == 2 and not moved[0] & moved[1]


@pytest.mark.parametrize('fold', [None, (2, 5)])
def test_a_groups_turn_holds_in_every_split_and_in_folds_whose_labels_stay_balanced(fold):
  source, labels = _source()
  population = _build('rotated', fold, source, num_groups=4)
  group = population.truths['group'].argmax(axis=0)
  np.testing.assert_array_equal(group, _build('rotated').truths['group'].argmax(axis=0))
  for name in SPLITS:
    split = getattr(population, name)
    np.testing.assert_array_equal(_turns(split.x), np.repeat(group, split.counts))
    np.testing.assert_array_equal(split.y, labels[_rows(split.x)])
  assert (_turns(population.global_test_x) == 0).all()
  np.testing.assert_array_equal(population.global_test_y, labels[_rows(population.global_test_x)])
  if fold:
    rest = population.train.label_counts(CLASSES) + population.validation.label_counts(CLASSES)
    assert np.abs(population.test.label_counts(CLASSES) - rest / 4).max() <= 1.25


@pytest.mark.parametrize(
  ('partition', 'angles'), [('rotated', None), ('rotated', '0,270,180'), ('label_swapped', None)]
)
@pytest.mark.parametrize('label_skew', [None, 5.0])
def test_every_group_has_all_rows_once_where_it_is_asked_for(partition, angles, label_skew):
  source, labels = _source()
  changes = {'num_clients': 13, 'num_groups': 3, 'label_skew': label_skew, 'angles': angles}
  population = _build(partition, source=source, group_rows='all', **changes)
  group = population.truths['group'].argmax(axis=0)
  assert sorted(np.bincount(group)) == [4, 4, 5]
  turns = {None: [0, 1, 2], '0,270,180': [0, 3, 2]}[angles] if partition == 'rotated' else [0, 0, 0]
  cuts = []
  for g in range(3):
    members = np.flatnonzero(group == g)
    trained = [_held(population, k, ('train', 'validation')) for k in members]
    tested = np.concatenate([_held(population, k, ('test',)) for k in members])
    # All training rows, each once; the test rows are others, and none is tested twice.
    np.testing.assert_array_equal(np.sort(np.concatenate(trained)), np.arange(TRAIN))
    assert {len(rows) for rows in trained} <= {TRAIN // len(members), -(-TRAIN // len(members))}
    assert tested.min() >= TRAIN and len(set(tested.tolist())) == len(tested) > 0.9 * TEST
    for k in members:
      for x, y in (getattr(population, name).client(k) for name in SPLITS):
        assert (_turns(x) == turns[g]).all()
        if partition == 'rotated':
          np.testing.assert_array_equal(y, labels[_rows(x)])
    cuts.append({frozenset(rows.tolist()) for rows in trained})
  assert not cuts[0] & cuts[1] and not cuts[1] & cuts[2]
  split = _build(partition, source=source, **changes)
  np.testing.assert_array_equal(split.truths['group'], population.truths['group'])
  np.testing.assert_array_equal(np.sort(_trained(split)), np.arange(TRAIN))


@pytest.mark.parametrize('partition', ['label_swapped', 'label_permuted'])
@pytest.mark.parametrize('changes', [{}, {'label_skew': 0.5}, {'group_rows': 'all'}, {'new_clients': 3}])
def test_every_client_is_tested_on_all_test_rows_with_its_groups_labels_where_that_is_asked_for(
  partition, changes
):
  """Equation 7 of Sattler et al. 2019."""
  source, labels = _source()
  plain = _build(partition, source=source, num_groups=3, **changes)
  population = _build(partition, source=source, num_groups=3, test_rows='all', **changes)
  group, tests = population.truths['group'].argmax(axis=0), {}
  for k in range(12):
    x, y = population.train.client(k)
    learned = dict(zip(labels[_rows(x)].tolist(), y.tolist(), strict=True))
    tested_x, tested_y = population.test.client(k)
    assert tested_x is population.global_test_x  # No client's copy.
    np.testing.assert_array_equal(_rows(tested_x), np.arange(TRAIN, TRAIN + TEST))
    known = np.isin(source.test_y, list(learned))
    assert [learned[label] for label in source.test_y[known].tolist()] == tested_y[known].tolist()
    assert sorted(np.bincount(tested_y)) == sorted(np.bincount(source.test_y))
    tests.setdefault(group[k], tested_y)
    assert np.shares_memory(tested_y, tests[group[k]])
  assert len({tuple(y) for y in tests.values()}) == 3
  assert population.test.counts.tolist() == [TEST] * 12 and population.test.rows_added.sum() == TEST
  # What is trained on is as ever.
  for name in ('train', 'validation'):
    for ours, theirs in zip(
      vars(getattr(population, name)).values(), vars(getattr(plain, name)).values(), strict=True
    ):
      np.testing.assert_array_equal(ours, theirs)
  assert population.digest != plain.digest


@pytest.mark.parametrize('partition', ['label_swapped', 'label_permuted'])
@pytest.mark.parametrize('label_skew', [None, 0.5])
def test_what_one_client_keeps_for_validation_trains_nowhere_though_each_group_has_all_rows(
  partition, label_skew
):
  changes = {'num_groups': 3, 'group_rows': 'all', 'label_skew': label_skew, 'validation_fraction': 0.2}
  population, other = (_build(partition, data_seed=seed, **changes) for seed in (0, 1))
  validation = set(_rows(population.validation.x).tolist())
  assert not validation & set(_rows(population.train.x).tolist())
  # Of every client about a fifth, but at least one row.
  both = population.train.counts + population.validation.counts
  assert (np.abs(population.validation.counts - 0.2 * both) <= 4 * np.sqrt(0.2 * 0.8 * both)).all()
  assert min(*population.validation.counts, *population.train.counts) >= 1
  assert validation != set(_rows(other.validation.x).tolist())
  few = _build(partition, num_groups=3, group_rows='all', validation_fraction=1e-6)
  assert (few.validation.counts >= 1).all()
  assert not set(_rows(few.validation.x).tolist()) & set(_rows(few.train.x).tolist())


def test_more_clients_than_test_rows_can_be_tested_on_all_of_them():
  changes = {'num_clients': TEST + 1, 'validation_fraction': 0.4, 'num_groups': 2}
  with pytest.raises(InputError, match=f'num_clients={TEST + 1}: {TEST} test rows are too few'):
    _build('label_swapped', **changes)
  assert _build('label_swapped', test_rows='all', **changes).test.counts.sum() == TEST * (TEST + 1)


def test_no_row_of_the_global_test_set_is_trained_on_in_any_group():
  whole = [_build('rotated', (i, 2), num_groups=2, group_rows='all') for i in range(2)]
  for population in whole:
    found = _rows(population.global_test_x)
    assert len(found) == len(set(found.tolist())) and not set(found) & set(_trained(population))
    # Half of what each group is tested on; a quarter of all rows are tested in both.
    assert 0.15 < len(found) / (TRAIN + TEST) < 0.35


def test_groups_in_eight_angles_keep_their_bytes_in_memory():
  x = np.zeros((TRAIN, 28, 28, 1), np.uint8)
  x[:, 6:10, 12:16] = 200  # Off the middle, above it.
  population = _build(
    'rotated', source=_source(train_x=x, test_x=x[:TEST])[0], num_clients=16, num_groups=8, group_rows='all'
  )
  group = population.truths['group'].argmax(axis=0)
  assert population.train.x.dtype == np.uint8
  up, right = np.mgrid[13.5:-14:-1, -13.5:14]
  for k in range(16):
    ink = population.train.client(k)[0][..., 0].astype(float)
    middle = np.array([(ink * axis).sum() for axis in (right, up)]) / ink.sum()
    # Straight up at first, then 45 degrees to the left with each group.
    angle = np.deg2rad(45.0 * group[k])
    np.testing.assert_allclose(middle, 6 * np.array([-np.sin(angle), np.cos(angle)]), atol=0.05)


def test_mixed_clients_have_the_planted_shares():
  population = _build('mixture', num_groups=3, mixture_share=0.3)
  truth = population.truths['group']
  assert ((truth > 0).sum(axis=0) == 2).sum() == 6
  for k in range(12):
    x = np.concatenate([population.train.client(k)[0], population.validation.client(k)[0]])
    for rows in (x, population.test.client(k)[0]):
      shares = np.bincount(_turns(rows), minlength=3) / len(rows)
      np.testing.assert_allclose(shares, truth[:, k], atol=1 / len(rows))
  linear = _build('mixture', num_groups=2, mixture_pattern='linear', mixed_clients=1.0).truths['group']
  np.testing.assert_allclose(np.sort(linear[0]), (np.arange(12) + 0.5) / 12)
  source, labels = _source()
  mixed = {'mixture_kind': 'label_swapped', 'mixed_clients': 1.0, 'mixture_share': 0.5}
  population = _build('mixture', source=source, num_groups=2, **mixed)
  for k in range(12):
    x, y = population.train.client(k)
    raw = labels[_rows(x)]
    assert len(set(raw[y != raw])) == 4  # Both groups' pairs.


@pytest.mark.parametrize('shards', [1, 2])
def test_pathological_truths_are_the_labels_that_clients_hold(shards):
  population = _build('pathological', shards_per_client=shards)
  assert list(population.truths) == ['digit', 'label set']
  held = sum(getattr(population, s).label_counts(CLASSES) for s in ('train', 'validation')) > 0
  np.testing.assert_array_equal(population.truths['digit'], held.T)
  assert (population.truths['digit'].sum(axis=0) == shards).all()
  sets = population.truths['label set']
  assert (sets.sum(axis=0) == 1).all()
  np.testing.assert_array_equal(sets.T @ sets, (held[:, None] == held[None]).all(axis=2))
  assert not (population.test.label_counts(CLASSES)[~held]).any()


def test_rows_per_client_caps_training_and_validation():
  population = _build('iid', rows_per_client=20)
  assert set(population.train.counts + population.validation.counts) == {20}
  assert population.test.counts.max() <= 20


@pytest.mark.parametrize(
  ('partition', 'field'),
  [('quantity_skew', 'quantity_alpha'), ('dirichlet', 'dirichlet_alpha'), ('rotated', 'label_skew')],
)
def test_a_small_concentration_skews_what_it_is_of_and_a_large_one_does_not(partition, field):
  def held(value):
    population = _build(partition, **{field: value})
    return sum(getattr(population, name).label_counts(CLASSES) for name in ('train', 'validation'))

  skewed, even = held(1e-6), held(1e12)
  if field == 'quantity_alpha':
    # Two rows each, and all others are one client's, or shared out evenly.
    assert sorted(skewed.sum(axis=1)) == [2] * 11 + [TRAIN - 22]
    assert even.sum(axis=1).tolist() == [TRAIN / 12] * 12
    return
  assert (skewed.sum(axis=1) == TRAIN / 12).all() and (even.sum(axis=1) == TRAIN / 12).all()
  # A client takes one label until none of it is left, or some of each.
  assert np.median((skewed > 0).sum(axis=1)) == 1 and (even > 0).all()


def test_a_source_without_a_test_set_is_held_out_first():
  source, labels = _source(test_x=None, test_y=None)
  population = _build('iid', source=source, dataset='file', test_fraction=0.25)
  held_out = _rows(population.global_test_x)
  assert len(held_out) == TRAIN // 4
  np.testing.assert_array_equal(population.global_test_y, labels[held_out])
  assert set(_rows(population.test.x)) <= set(held_out)
  assert not set(held_out) & set(_trained(population))
  shares = np.bincount(labels[held_out]) / np.bincount(labels[:TRAIN])
  np.testing.assert_allclose(shares, 0.25, atol=0.01)


def _owned():
  owners = np.array([f'w{i % 20:02d}' for i in range(TRAIN)])
  groups = np.array([0 if i % 20 < 10 else 1 for i in range(TRAIN)])
  groups[owners == 'w03'] = np.arange(45) % 3 % 2
  return _source(test_x=None, test_y=None, train_owner=owners, train_group=groups)[0]


def test_by_writer_keeps_owners_tests_on_their_own_rows_and_takes_the_truth_from_the_groups():
  population = _build('by_writer', source=_owned(), dataset='file', num_clients=20)
  assert list(population.client_ids) == sorted(population.client_ids)
  for k, client_id in enumerate(population.client_ids):
    assert {f'w{row % 20:02d}' for row in _held(population, k)} == {client_id}
  assert set(population.test.counts) == {9}
  assert set(population.train.counts + population.validation.counts) == {36}
  np.testing.assert_array_equal(np.sort(_rows(population.global_test_x)), np.sort(_rows(population.test.x)))
  truth = population.truths['group']
  np.testing.assert_allclose(truth.sum(axis=0), 1.0)
  assert 0.1 < truth[1, 3] < 0.6
  pure = np.delete(np.arange(20), 3)
  np.testing.assert_array_equal(truth[1, pure], pure >= 10)
  assert _build('iid', source=_owned(), dataset='file').truths == {}


@pytest.mark.parametrize('partition', ['iid', 'rotated', 'pathological', 'by_writer'])
def test_folds_test_every_row_once_and_never_one_that_is_trained_on(partition):
  owned = partition == 'by_writer'
  given = {'source': _owned() if owned else _source()[0], 'dataset': 'file' if owned else 'digits'}
  whole = _build(partition, **given)
  pool = [set(_held(whole, k)) for k in range(whole.num_clients)]
  tested = [[] for _ in pool]
  for i in range(4):
    population = _build(partition, (i, 4), **given)
    in_use = set(_trained(population))
    assert not in_use & set(_rows(population.test.x))
    assert not in_use & set(_rows(population.global_test_x))
    for k in range(population.num_clients):
      tested[k].extend(_held(population, k, ['test']))
      assert set(_held(population, k)) == pool[k]
    np.testing.assert_array_equal(population.truths.get('group', 0), whole.truths.get('group', 0))
  for k, rows in enumerate(tested):
    assert len(rows) == len(set(rows)) and set(rows) == pool[k]


UNOWNED = {'partition': 'by_writer', 'dataset': 'file', 'source': _source(test_x=None, test_y=None)[0]}


@pytest.mark.parametrize(
  ('given', 'words'),
  [
    ({'partition': 'iid', 'fold': (4, 4)}, 'fold 4 of 4'),
    ({'partition': 'iid', 'fold': (0, 200)}, 'num_folds=200'),
    ({'partition': 'label_swapped', 'num_clients': 500}, 'num_clients=500'),
    ({'partition': 'label_swapped', 'num_clients': 3, 'num_groups': 4}, 'num_groups=4'),
    (UNOWNED, 'no owners'),
    (UNOWNED | {'num_clients': 21, 'source': _owned()}, '20 of 20 writers qualify'),
  ],
)
def test_what_a_source_cannot_give_is_refused_in_one_line(given, words):
  with pytest.raises(InputError, match=words) as caught:
    _build(**given)
  assert '\n' not in str(caught.value)
