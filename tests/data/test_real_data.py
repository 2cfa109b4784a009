"""The papers' partitions on the real data sets.

TFF_CLUSTER_DATA names the folder that holds tfds/ (MNIST, CIFAR-10) and tff/ (federated EMNIST).
"""

import numpy as np
import pytest

from tests.conftest import DATA
from tests.data.conftest import MNIST_COUNTS
from tff_cluster.data import downloads, sources
from tff_cluster.data.populate import build_population
from tff_cluster.experiment.config import DataConfig

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures('images_once', 'real_data')]

# Whole numbers that tell images apart by their sum of pixels.
HASH = np.random.default_rng(0).integers(1, 2**40, 784)


@pytest.fixture(scope='module')
def mnist(images_once):
  return sources.load(DataConfig(dataset='mnist', data_dir=DATA))


def _mnist(partition, **changes):
  return DataConfig(dataset='mnist', data_dir=DATA, partition=partition, num_clients=100, **changes)


def test_mnist_is_whole(mnist):
  assert mnist.train_x.shape == (60000, 28, 28, 1) and mnist.test_x.shape == (10000, 28, 28, 1)
  assert mnist.train_x.dtype == np.uint8 and mnist.train_y.dtype == np.int32
  # Published counts, and the published mean and deviation of the training pixels.
  assert np.bincount(mnist.train_y).tolist() == MNIST_COUNTS
  assert np.bincount(mnist.test_y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
  np.testing.assert_allclose(
    [mnist.train_x.mean() / 255, mnist.train_x.std() / 255], [0.1307, 0.3081], atol=1e-4
  )


def test_cifar10_is_whole():
  source = sources.load(DataConfig(dataset='cifar10', data_dir=DATA))
  assert source.train_x.shape == (50000, 32, 32, 3) and source.test_x.shape == (10000, 32, 32, 3)
  assert np.bincount(source.train_y).tolist() == [5000] * 10
  np.testing.assert_allclose(source.train_x.mean(axis=(0, 1, 2)), [125.307, 122.950, 113.865], atol=1e-3)


def test_label_swapped_is_100_by_600(mnist):
  population = build_population(_mnist('label_swapped'), source=mnist)
  assert set(population.train.counts + population.validation.counts) == {600}
  assert set(population.test.counts) == {100} and len(population.global_test_y) == 10000
  assert population.truths['group'].sum(axis=1).tolist() == [25.0] * 4


def test_every_group_has_all_of_mnist_in_clients_of_100_rows(mnist):
  config = DataConfig(
    dataset='mnist', data_dir=DATA, partition='rotated', num_clients=2400, group_rows='all', validation_fraction=0.001
  )  # fmt: skip
  population = build_population(config, source=mnist)
  assert set(population.train.counts) == {99} and set(population.validation.counts) == {1}
  assert set(population.test.counts) == {16, 17} and len(population.test.y) > 39_600
  assert population.train.x.dtype == np.uint8 and population.train.x.nbytes == 2400 * 99 * 784
  for g in range(4):
    # Turned back, the rows of a group are all of MNIST's.
    members = np.flatnonzero(population.truths['group'][g])
    x = np.concatenate([s.client(k)[0] for k in members for s in (population.train, population.validation)])
    pixels = np.rot90(x, -g, axes=(1, 2)).reshape(60000, -1)
    np.testing.assert_array_equal(np.sort(pixels @ HASH), np.sort(mnist.train_x.reshape(60000, -1) @ HASH))


def test_pathological_is_100_by_600_with_2_labels(mnist):
  population = build_population(_mnist('pathological'), source=mnist)
  assert set(population.train.counts + population.validation.counts) == {600}
  held = population.train.label_counts(10) > 0
  assert set(held.sum(axis=1)) == {2}
  assert population.test.counts.min() >= 98 and population.test.counts.max() == 100
  assert not population.test.label_counts(10)[~held].any()
  assert population.truths['digit'].shape == (10, 100)


def _light(pixels):
  return (255 - np.rint(pixels * 255)).astype(np.float32) / np.float32(255)


@pytest.mark.parametrize(('classes', 'ink'), [(10, 'dark'), (62, 'light')])
def test_emnist_writers_have_their_own_rows(classes, ink):
  import tensorflow_federated as tff

  config = DataConfig(
    dataset='emnist', data_dir=DATA, emnist_classes=classes, partition='by_writer', num_clients=9, min_examples=30,
    max_examples=120, emnist_ink=ink,
  )  # fmt: skip
  population = build_population(config)
  official = tff.simulation.datasets.emnist.load_data(
    only_digits=classes == 10, cache_dir=downloads.subfolder(DATA, 'tff')
  )
  for k, writer in enumerate(population.client_ids):
    number = 0
    for data, splits in zip(official, (('train', 'validation'), ('test',)), strict=True):
      expected = sorted(
        (int(row['label']), (row['pixels'] if ink == 'dark' else _light(row['pixels'])).tobytes())
        for row in data.create_tf_dataset_for_client(writer).as_numpy_iterator()
      )
      ours = []
      for x, y in (getattr(population, name).client(k) for name in splits):
        pixels = x.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else x
        ours += [(int(label), image.tobytes()) for image, label in zip(pixels, y, strict=True)]
      assert sorted(ours) == expected
      number += len(expected)
    assert 30 <= number <= 120
  assert population.input_shape == (28, 28, 1) and population.num_classes == classes
  assert population.train.y.max() < classes
