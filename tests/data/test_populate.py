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


def _config(partition, **changes):
  return DataConfig(partition=partition, **{'num_clients': 12, **changes})


SPLITS = ('train', 'validation', 'test')
NOT_OWNED = [p for p in PARTITIONS if p != 'by_writer']


@pytest.mark.parametrize('partition', NOT_OWNED)
def test_splits_are_disjoint_complete_and_from_the_right_side(partition):
  source, _ = _source()
  population = build_population(_config(partition), source=source)
  train, validation, test = (_rows(getattr(population, s).x) for s in SPLITS)
  np.testing.assert_array_equal(np.sort(np.concatenate([train, validation])), np.arange(TRAIN))
  assert test.min() >= TRAIN and len(set(test.tolist())) == len(test) > 0.9 * TEST
  np.testing.assert_array_equal(_rows(population.global_test_x), np.arange(TRAIN, TRAIN + TEST))
  np.testing.assert_array_equal(population.global_test_y, source.test_y)
  both = population.train.counts + population.validation.counts
  np.testing.assert_array_equal(population.validation.counts, np.maximum(1, np.rint(0.1 * both)))


@pytest.mark.parametrize('partition', NOT_OWNED)
def test_the_seed_decides_every_bit(partition):
  source, _ = _source()
  first, again, other = (build_population(_config(partition, data_seed=s), source=source) for s in (0, 0, 1))
  assert first.digest == again.digest != other.digest
  assert not np.array_equal(first.test.x, other.test.x)


def test_building_leaves_the_source_as_it_was():
  source, labels = _source()
  before = source.train_x.copy()
  build_population(_config('rotated'), source=source)
  build_population(_config('label_swapped'), source=source)
  np.testing.assert_array_equal(source.train_x, before)
  np.testing.assert_array_equal(np.concatenate([source.train_y, source.test_y]), labels)


@pytest.mark.parametrize('partition', ['label_swapped', 'label_permuted'])
@pytest.mark.parametrize('label_skew', [None, 5.0])
def test_a_groups_label_map_holds_in_every_split(partition, label_skew):
  source, labels = _source()
  population = build_population(_config(partition, num_groups=2, label_skew=label_skew), source=source)
  truth = population.truths['group']
  assert truth.shape == (2, 12) and (truth.sum(axis=1) == 6).all()
  maps = [{}, {}]
  for name in SPLITS:
    split = getattr(population, name)
    for k in range(12):
      x, y = split.client(k)
      assert (_turns(x) == 0).all()
      for raw, label in zip(labels[_rows(x)], y, strict=True):
        assert maps[truth[:, k].argmax()].setdefault(raw, label) == label
  moved = [[raw for raw, label in m.items() if raw != label] for m in maps]
  assert maps[0] != maps[1]
  for group in range(2):
    assert sorted(maps[group]) == sorted(maps[group].values()) == list(range(CLASSES))
    if partition == 'label_swapped':
      assert len(moved[group]) == 2
  if partition == 'label_swapped':
    assert not set(moved[0]) & set(moved[1])


def test_a_groups_turn_holds_in_every_split():
  source, labels = _source()
  population = build_population(_config('rotated', num_groups=4), source=source)
  group = population.truths['group'].argmax(axis=0)
  for name in SPLITS:
    split = getattr(population, name)
    np.testing.assert_array_equal(_turns(split.x), np.repeat(group, split.counts))
    np.testing.assert_array_equal(split.y, labels[_rows(split.x)])


def test_mixed_clients_have_the_planted_shares():
  source, _ = _source()
  population = build_population(_config('mixture', num_groups=3, mixture_share=0.3), source=source)
  truth = population.truths['group']
  assert ((truth > 0).sum(axis=0) == 2).sum() == 6
  for k in range(12):
    x = np.concatenate([population.train.client(k)[0], population.validation.client(k)[0]])
    for rows in (x, population.test.client(k)[0]):
      shares = np.bincount(_turns(rows), minlength=3) / len(rows)
      np.testing.assert_allclose(shares, truth[:, k], atol=1 / len(rows))


def test_mixtures_of_label_maps():
  source, labels = _source()
  config = _config(
    'mixture', num_groups=2, mixture_kind='label_swapped', mixed_clients=1.0, mixture_share=0.5
  )
  population = build_population(config, source=source)
  moved = population.train.y != labels[_rows(population.train.x)]
  per_client = [set(labels[_rows(population.train.client(k)[0])][moved[slice(*population.train.offsets[k:k + 2])]]) for k in range(12)]  # fmt: skip
  assert all(len(labels_moved) == 4 for labels_moved in per_client)


def test_pathological_truths_are_the_labels_that_clients_hold():
  source, _ = _source()
  population = build_population(_config('pathological'), source=source)
  assert list(population.truths) == ['digit', 'label set']
  held = sum(getattr(population, s).label_counts(CLASSES) for s in ('train', 'validation')) > 0
  np.testing.assert_array_equal(population.truths['digit'], held.T)
  assert (population.truths['digit'].sum(axis=0) == 2).all()
  sets = population.truths['label set']
  assert (sets.sum(axis=0) == 1).all()
  same_set = (held[:, None] == held[None]).all(axis=2)
  np.testing.assert_array_equal(sets.T @ sets, same_set)
  assert not (population.test.label_counts(CLASSES)[~held]).any()


@pytest.mark.parametrize('partition', ['iid', 'pathological', 'dirichlet', 'label_swapped'])
def test_test_labels_follow_training_labels(partition):
  source, _ = _source()
  population = build_population(_config(partition), source=source)
  train = population.train.label_counts(CLASSES) + population.validation.label_counts(CLASSES)
  test = population.test.label_counts(CLASSES)
  expected = train * TEST / TRAIN
  # One row of rounding, and up to a fifth where the source's test set has fewer of a label than its training set.
  assert (np.abs(test - expected) <= 1 + 0.2 * expected).all()


def test_rows_per_client_caps_training_and_validation():
  source, _ = _source()
  population = build_population(_config('iid', rows_per_client=20), source=source)
  assert set(population.train.counts + population.validation.counts) == {20}
  assert population.test.counts.max() <= 20


def test_a_source_without_a_test_set_is_held_out_first():
  source, labels = _source(test_x=None, test_y=None)
  population = build_population(_config('iid', dataset='file', test_fraction=0.25), source=source)
  held_out = _rows(population.global_test_x)
  assert len(held_out) == TRAIN // 4
  np.testing.assert_array_equal(population.global_test_y, labels[held_out])
  assert set(_rows(population.test.x)) <= set(held_out)
  assert not set(held_out) & set(np.concatenate([_rows(population.train.x), _rows(population.validation.x)]))
  shares = np.bincount(labels[held_out]) / np.bincount(labels[:TRAIN])
  np.testing.assert_allclose(shares, 0.25, atol=0.01)


def _owned():
  owners = np.array([f'w{i % 20:02d}' for i in range(TRAIN)])
  groups = np.array([0 if i % 20 < 10 else 1 for i in range(TRAIN)])
  groups[owners == 'w03'] = np.arange(45) % 3 % 2
  return _source(test_x=None, test_y=None, train_owner=owners, train_group=groups)[0]


def test_by_writer_keeps_owners_and_tests_on_their_own_rows():
  population = build_population(_config('by_writer', dataset='file'), source=_owned())
  assert list(population.client_ids) == sorted(population.client_ids)
  for name in SPLITS:
    split = getattr(population, name)
    for k, client_id in enumerate(population.client_ids):
      assert {f'w{row % 20:02d}' for row in _rows(split.client(k)[0])} == {client_id}
  assert set(population.test.counts) == {9} and set(
    population.train.counts + population.validation.counts
  ) == {36}
  np.testing.assert_array_equal(np.sort(_rows(population.global_test_x)), np.sort(_rows(population.test.x)))


def test_by_writer_takes_the_truth_from_the_files_groups():
  population = build_population(_config('by_writer', dataset='file', num_clients=20), source=_owned())
  truth = population.truths['group']
  np.testing.assert_allclose(truth.sum(axis=0), 1.0)
  for k in range(20):
    if k == 3:
      assert 0.1 < truth[1, k] < 0.6
    else:
      np.testing.assert_array_equal(truth[:, k], [1, 0] if k < 10 else [0, 1])


def test_other_partitions_ignore_a_files_groups():
  assert build_population(_config('iid', dataset='file'), source=_owned()).truths == {}


def test_by_writer_needs_owners_and_enough_writers():
  with pytest.raises(InputError, match='no owners'):
    build_population(_config('by_writer', dataset='file'), source=_source(test_x=None, test_y=None)[0])
  with pytest.raises(InputError, match='20 of 20 writers qualify'):
    build_population(_config('by_writer', dataset='file', num_clients=21), source=_owned())


@pytest.mark.parametrize('partition', ['iid', 'label_swapped', 'rotated', 'pathological', 'by_writer'])
def test_folds_test_every_row_once_and_never_one_that_is_trained_on(partition):
  source = _owned() if partition == 'by_writer' else _source()[0]
  config = _config(partition, dataset='file' if partition == 'by_writer' else 'digits')
  whole = build_population(config, source=source)
  pool = [
    set(np.concatenate([_rows(getattr(whole, s).client(k)[0]) for s in SPLITS]))
    for k in range(whole.num_clients)
  ]
  tested = [[] for _ in pool]
  for i in range(4):
    population = build_population(config, fold=(i, 4), source=source)
    in_use = set(np.concatenate([_rows(population.train.x), _rows(population.validation.x)]))
    assert not in_use & set(_rows(population.test.x))
    assert not in_use & set(_rows(population.global_test_x))
    for k in range(population.num_clients):
      tested[k].extend(_rows(population.test.client(k)[0]))
      own = set(np.concatenate([_rows(getattr(population, s).client(k)[0]) for s in SPLITS]))
      assert own == pool[k]
    np.testing.assert_array_equal(population.truths.get('group', 0), whole.truths.get('group', 0))
  for k, rows in enumerate(tested):
    assert len(rows) == len(set(rows)) and set(rows) == pool[k]


def test_folds_move_with_their_rows_group_and_labels_stay_balanced():
  source, labels = _source()
  group = build_population(_config('rotated'), source=source).truths['group'].argmax(axis=0)
  population = build_population(_config('rotated'), fold=(2, 5), source=source)
  for name in SPLITS:
    split = getattr(population, name)
    np.testing.assert_array_equal(_turns(split.x), np.repeat(group, split.counts))
  assert (_turns(population.global_test_x) == 0).all()
  np.testing.assert_array_equal(population.global_test_y, labels[_rows(population.global_test_x)])
  rest = population.train.label_counts(CLASSES) + population.validation.label_counts(CLASSES)
  assert np.abs(population.test.label_counts(CLASSES) - rest / 4).max() <= 1.25


@pytest.mark.parametrize('fold', [(0, 1), (4, 4), (-1, 4)])
def test_folds_that_do_not_exist_are_refused(fold):
  with pytest.raises(InputError, match='fold'):
    build_population(_config('iid'), fold=fold, source=_source()[0])


def test_more_folds_than_rows_are_refused():
  with pytest.raises(InputError, match='num_folds=200'):
    build_population(_config('iid'), fold=(0, 200), source=_source()[0])


def test_the_default_configuration_builds():
  population = build_population(DataConfig())
  assert population.num_clients == 20 and population.input_shape == (28, 28, 1)
  assert population.train.x.dtype == np.uint8
  assert population.truths['group'].shape == (4, 20)
  assert population.name == 'digits label_swapped'


def test_one_label_clients_are_fine():
  source, _ = _source()
  population = build_population(_config('pathological', shards_per_client=1), source=source)
  assert set((population.train.label_counts(CLASSES) > 0).sum(axis=1)) == {1}
  assert not (population.test.label_counts(CLASSES)[population.train.label_counts(CLASSES) == 0]).any()


@pytest.mark.parametrize('changes', [{'num_clients': 500}, {'num_clients': 3, 'num_groups': 4}])
def test_more_clients_or_groups_than_there_is_for_are_refused_in_one_line(changes):
  with pytest.raises(InputError) as caught:
    build_population(_config('label_swapped', **changes), source=_source()[0])
  assert '\n' not in str(caught.value) and 'num_' in str(caught.value)
