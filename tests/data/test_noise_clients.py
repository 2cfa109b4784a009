"""Clients that hold CIFAR-10 instead of MNIST, on synthetic rows that carry their own number, and on the real sets."""

import numpy as np
import pytest

from tests.data.conftest import MNIST_COUNTS
from tff_cluster.base.errors import InputError
from tff_cluster.data import sources, tfds_images
from tff_cluster.data.noise import add_noise
from tff_cluster.data.partitioners import by_source
from tff_cluster.data.populate import build_population
from tff_cluster.data.source import Source
from tff_cluster.experiment.config import DataConfig

SPLITS = ('train', 'validation', 'test')
# Numbers of the first rows: MNIST's from 0, MNIST's test rows, CIFAR-10's, CIFAR-10's test rows.
DIGITS, DIGITS_TEST, PICTURES, PICTURES_TEST = 0, 10_000, 20_000, 30_000


def _numbered(first, count, shape):
  """uint8[count, *shape]: the left half of an image holds the high byte of its number, the right half the low one."""
  numbers = first + np.arange(count)
  x = np.zeros((count, *shape), np.uint8)
  half = shape[1] // 2
  x[:, :, :half] = (numbers // 256).reshape(-1, 1, 1, 1)
  x[:, :, half:] = (numbers % 256).reshape(-1, 1, 1, 1)
  return x


def _rows(x):
  return x[:, 0, 0, 0].astype(int) * 256 + x[:, 0, -1, 0]


def _labels(count, classes=5):
  # CIFAR-10 has all labels equally often, MNIST about so.
  return (np.arange(count) * 7 % classes).astype(np.int32)


def _mnist(train=1200, test=300):
  return Source(
    'mnist', _numbered(DIGITS, train, (28, 28, 1)), _labels(train), 5,
    _numbered(DIGITS_TEST, test, (28, 28, 1)), _labels(test),
  )  # fmt: skip


def _cifar10(train=1000, test=200, classes=5):
  return Source(
    'cifar10', _numbered(PICTURES, train, (32, 32, 3)), _labels(train, classes), classes,
    _numbered(PICTURES_TEST, test, (32, 32, 3)), _labels(test, classes),
  )  # fmt: skip


def _labels_of(rows):
  return rows % 10_000 * 7 % 5


def _config(**changes):
  return DataConfig(
    **{'dataset': 'mnist', 'partition': 'pathological', 'num_clients': 20, 'noise_clients': 0.15, **changes}
  )


def _population(fold=None, **changes):
  config = _config(**changes)
  return build_population(config, fold, add_noise(_mnist(), _cifar10(), config))


def test_noise_rows_stand_after_all_of_mnists_with_their_labels():
  source = add_noise(_mnist(), _cifar10(), _config())
  # A sixth as many, for 3 of 20 clients: 200 beside 1200, and 50 beside 300, each label equally often.
  assert source.name == 'mnist with cifar10' and source.num_classes == 5
  for x, y, group, plain, first, noise in (
    (source.train_x, source.train_y, source.train_group, 1200, PICTURES, 200),
    (source.test_x, source.test_y, source.test_group, 300, PICTURES_TEST, 50),
  ):
    assert x.shape == (plain + noise, 28, 28, 1) and x.dtype == np.uint8 and y.dtype == np.int32
    np.testing.assert_array_equal(group, np.repeat([0, 1], [plain, noise]))
    rows = _rows(x)
    np.testing.assert_array_equal(rows[:plain] % 10_000, np.arange(plain))
    drawn = rows[plain:]
    assert len(set(drawn.tolist())) == noise and first <= drawn.min() and drawn.max() < first + 10_000
    np.testing.assert_array_equal(y, _labels_of(rows))
    assert np.bincount(y[plain:]).tolist() == [noise // 5] * 5
    assert (np.diff(drawn) > 1).any(), 'rows are drawn, not cut off'
  for share, expected in ((0.05, 67), (0.5, 667)):
    assert add_noise(_mnist(), _cifar10(), _config(noise_clients=share)).train_group.sum() == expected


def test_clients_hold_rows_of_one_source_and_every_row_is_given_once():
  population = _population()
  held = population.truths['source']
  assert list(population.truths) == ['source', 'digit', 'label set'] and held.sum(axis=1).tolist() == [17, 3]
  for name in SPLITS:
    split = getattr(population, name)
    digits, pictures = (DIGITS_TEST, PICTURES_TEST) if name == 'test' else (DIGITS, PICTURES)
    first = np.repeat(np.where(held[1] > 0, pictures, digits), split.counts)
    np.testing.assert_array_equal(_rows(split.x) // 10_000 * 10_000, first)
    np.testing.assert_array_equal(split.y, _labels_of(_rows(split.x)))
  for k in range(20):
    assert len(set(population.train.client(k)[1])) == 2
    assert set(population.test.client(k)[1]) <= set(population.train.client(k)[1])
  trained = np.concatenate([_rows(population.train.x), _rows(population.validation.x)])
  source = add_noise(_mnist(), _cifar10(), _config())
  # Three clients with two shards each have six for five labels; so every row of noise is given, too.
  np.testing.assert_array_equal(np.sort(trained), np.sort(_rows(source.train_x)))
  tested = _rows(population.test.x)
  assert len(set(tested.tolist())) == len(tested) > 0.9 * 350
  assert population.name == 'mnist with cifar10 pathological'
  np.testing.assert_array_equal(population.global_test_x, source.test_x)
  np.testing.assert_array_equal(population.global_test_y, source.test_y)


def test_the_seed_decides_rows_and_clients():
  first, again, other = (_population(data_seed=seed) for seed in (0, 0, 1))
  assert first.digest == again.digest
  assert not np.array_equal(first.truths['source'], other.truths['source'])
  assert not np.array_equal(_rows(first.global_test_x)[300:], _rows(other.global_test_x)[300:])


def test_sources_that_do_not_fit_are_refused():
  with pytest.raises(InputError, match='needs 667 training rows of noise, found 500'):
    add_noise(_mnist(), _cifar10(train=500), _config(noise_clients=0.5))
  with pytest.raises(InputError, match='cifar10 has 7 labels, mnist 5'):
    add_noise(_mnist(), _cifar10(classes=7), _config())
  with pytest.raises(InputError, match='needs at least 2 clients'):
    by_source.num_holders(1, 0.5)
  with pytest.raises(ValueError, match=r'no rows of noise; sources.load adds them'):
    build_population(_config(), source=_mnist())


def test_the_loader_joins_both_sets(monkeypatch):
  loaded = []

  def load(name, data_dir):
    loaded.append((name, data_dir))
    return {'mnist': _mnist, 'cifar10': _cifar10}[name]()

  monkeypatch.setattr(tfds_images, 'load', load)
  source = sources.load(_config(data_dir='there'))
  assert loaded == [('mnist', 'there'), ('cifar10', 'there')]
  np.testing.assert_array_equal(source.train_x, add_noise(_mnist(), _cifar10(), _config()).train_x)
  plain = sources.load(_config(noise_clients=0.0))
  assert loaded[2:] == [('mnist', None)] and plain.train_group is None
  assert sources.planted(_config()) == tuple(build_population(_config(), source=source).truths)


@pytest.mark.tensorflow
def test_the_papers_partition_on_the_real_sets(images_once, real_data):
  config = _config(data_dir=str(real_data), num_clients=100)
  population = build_population(config)
  held = population.truths['source']
  assert held.sum(axis=1).tolist() == [85.0, 15.0]
  counts = population.train.label_counts(10) + population.validation.label_counts(10)
  noise, plain = counts[held[1] == 1], counts[held[0] == 1]
  assert set((counts > 0).sum(axis=1)) == {2}
  # 30 shards for 10 labels: 333 or 334 rows each.
  assert noise.sum(axis=0).tolist() == [1000] * 10 and set(noise[noise > 0]) == {333, 334}
  assert plain.sum(axis=0).tolist() == MNIST_COUNTS
  assert set(plain.sum(axis=1)) == {705, 706}
  # 10,000 and 1,667 test rows; clients are due what they have of the training rows, less where a digit is rare.
  assert np.bincount(population.global_test_y[10_000:]).tolist() == [167] * 7 + [166] * 3
  tested = population.test.counts
  assert set(tested[held[1] == 1]) <= {110, 111, 112}
  assert tested[held[1] == 0].min() > 0.97 * 117.6 and tested[held[1] == 0].max() <= 118
  # The rows are CIFAR-10's, by their labels; the mean luma of all of them is 0.299 * 125.3 + 0.587 * 123.0 + ...
  pictures = [population.train.client(k)[0] for k in np.flatnonzero(held[1])]
  assert abs(np.concatenate(pictures).mean() - 122.6) < 2.0
