"""Any set of labelled images of TensorFlow Datasets: tiny ones are written to a folder here, with TFDS's own writer."""

import pathlib

import numpy as np
import pytest

from tests.data.conftest import slow_imports
from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.data import datasets, sources
from tff_cluster.data.populate import build_population
from tff_cluster.experiment.config import DataConfig, ExperimentConfig

ROOT = pathlib.Path(__file__).parents[2]
SIDE, CHANNELS, CLASSES = 32, 3, 100


def rows(count, seed):
  rng = np.random.default_rng(seed)
  x = rng.integers(0, 256, (count, SIDE, SIDE, CHANNELS), dtype=np.uint8)
  return x, rng.integers(0, CLASSES, count)


def write(folder, name, features, config=None, **parts):
  """Writes a set with TFDS: (x, y) by split, and the features that they are."""
  import tensorflow_datasets as tfds

  examples = {
    split: [(k, dict(zip(features, pair, strict=True))) for k, pair in enumerate(zip(*arrays, strict=True))]
    for split, arrays in parts.items()
  }
  described = tfds.features.FeaturesDict(features)
  tfds.dataset_builders.store_as_tfds_dataset(
    name=name, config=config, version='1.0.0', features=described, split_datasets=examples, data_dir=folder
  )


@pytest.fixture(scope='module')
def sets(tmp_path_factory):
  """A folder of TFDS with small sets, the first like CIFAR-100."""
  pytest.importorskip('tensorflow_datasets')
  import tensorflow_datasets as tfds

  folder = tmp_path_factory.mktemp('data') / 'tfds'
  folder.mkdir()
  train, test = rows(300, 0), rows(60, 1)
  label, text = tfds.features.ClassLabel(num_classes=CLASSES), (np.array(['a', 'b']), [0, 1])

  def images(shape=train[0].shape[1:], **options):
    return {'image': tfds.features.Image(shape=shape, **options), 'label': label}

  deep = images(dtype=np.uint16, encoding_format='png')
  write(folder, 'coloured', images(), train=train, test=test)
  write(folder, 'small', images(), 'one', train=train, test=test)
  write(folder, 'untested', images(), train=train)
  write(folder, 'untrained', images(), test=test)
  write(folder, 'unlabelled', images(), train=train, test=(test[0], np.append(test[1][1:], -1)))
  write(folder, 'bare', {'image': images()['image'], 'number': np.int64}, train=train)
  write(folder, 'text', {'text': tfds.features.Text(), 'label': label}, train=text)
  write(folder, 'sizes', images((None, None, 3)), train=test)
  write(folder, 'deep', deep, train=(test[0].astype(np.uint16), test[1]))
  return folder


def config(sets, name, **more):
  return DataConfig(dataset=f'tfds:{name}', data_dir=str(sets.parent), partition='iid', num_clients=5, **more)


@pytest.mark.tensorflow
def test_rows_sizes_and_classes_are_the_set_s(sets):
  given = config(sets, 'coloured')
  outline, source = sources.check(given), sources.load(given)
  assert (outline.rows, outline.input_shape, outline.num_classes) == (360, (SIDE, SIDE, CHANNELS), CLASSES)
  assert outline.row_bytes == SIDE * SIDE * CHANNELS and source.num_classes == CLASSES
  for (x, y), (expected_x, expected_y) in (
    ((source.train_x, source.train_y), rows(300, 0)),
    (source.test, rows(60, 1)),
  ):
    # TFDS writes rows in an order of its own.
    order, expected = (np.lexsort(each.reshape(len(each), -1).T) for each in (x, expected_x))
    np.testing.assert_array_equal(x[order], expected_x[expected])
    np.testing.assert_array_equal(y[order], expected_y[expected])
    assert x.dtype == np.uint8 and y.dtype == np.int32
  # A set of several configurations is one of them; only TFDS knows which one is meant where none is named.
  assert len(sources.load(config(sets, 'small/one:1.0.0')).train_y) == 300
  assert sources.check(config(sets, 'small/one')).rows == 360
  assert sources.check(config(sets, 'small')) is None


@pytest.mark.tensorflow
def test_a_set_without_test_rows_has_some_held_out(sets):
  population = build_population(config(sets, 'untested', test_fraction=0.25))
  assert len(population.global_test_y) == 75
  for look in (sources.check, sources.load):
    with pytest.raises(
      InputError, match=r'test_fraction=0.25 does not apply to dataset=tfds:coloured, which'
    ):
      look(config(sets, 'coloured', test_fraction=0.25))


@pytest.mark.tensorflow
def test_rows_that_do_not_fit_into_memory_are_no_damaged_download(sets, monkeypatch):
  from tff_cluster.data import tfds_images

  def fail(*_):
    raise MemoryError

  monkeypatch.setattr(tfds_images, '_read', fail)
  with pytest.raises(EnvironmentFault, match=r'does not fit into memory$'):
    tfds_images.load('coloured', str(sets.parent))


WRONG = [
  ('bare', "it has no feature 'label' that is a class label; its features are image, number"),
  ('text', "it has no feature 'image' that is an image; its features are label, text"),
  ('sizes', 'its images are of no one size (any x any x 3)'),
  ('deep', 'its images are of type uint16; allowed are uint8 and float32'),
  ('untrained', 'it has no split train, but test'),
]


@pytest.mark.tensorflow
@pytest.mark.parametrize(('name', 'words'), WRONG)
def test_what_is_no_set_of_labelled_images_is_told_early_and_when_it_is_loaded(sets, name, words):
  for look in (sources.check, sources.load):
    with pytest.raises(InputError) as caught:
      look(config(sets, name))
    assert str(caught.value).startswith(f'dataset=tfds:{name}: ') and words in str(caught.value)


@pytest.mark.tensorflow
def test_rows_without_a_label_are_told_with_their_split(sets):
  with pytest.raises(
    InputError, match=r'^dataset=tfds:unlabelled: rows of its split test have no label; take'
  ):
    sources.load(config(sets, 'unlabelled'))


@pytest.mark.tensorflow
def test_a_set_that_nobody_knows(sets, no_network):
  given = config(sets, 'no_such_set_of_images')
  failed = r': .*does not exist, and downloading failed \(no connection'
  with pytest.raises(EnvironmentFault, match=given.dataset[5:] + failed):
    sources.check(given)
  with pytest.raises(InputError, match="TensorFlow Datasets knows no set 'no_such_set_of_images'"):
    sources.load(given)
  with pytest.raises(EnvironmentFault, match=f'fashion_mnist{failed}'):
    sources.load(config(sets, 'fashion_mnist'))


@pytest.mark.tensorflow
def test_the_early_look_digits_and_files_import_nothing_slow(sets, tmp_path):
  np.savez(tmp_path / 'own.npz', x=np.zeros((40, 3), np.float32), y=np.arange(40) % 2)
  program = (
    'from tff_cluster.experiment import memory_need\n'
    'from tff_cluster.experiment.config import DataConfig, ExperimentConfig\n'
    'from tff_cluster.data import populate, sources\n'
    f'data = DataConfig(dataset="tfds:coloured", data_dir={str(sets.parent)!r}, partition="iid", num_clients=5)\n'
    'config = ExperimentConfig(data).validated()\n'
    'outline = sources.check(data)\n'
    'assert memory_need.of_config(config, outline.rows, outline.row_bytes, outline.num_classes, 1).rows == 360\n'
    'populate.build_population(DataConfig())\n'
    f'own = DataConfig(dataset="file", data_file={str(tmp_path / "own.npz")!r}, partition="iid", num_clients=4)\n'
    'populate.build_population(own)'
  )
  assert slow_imports(program) == []


@pytest.mark.parametrize('name', ['', '../x', 'a/b/c', 'x:1', 'a\nb', '1'])
def test_what_is_no_name(name):
  with pytest.raises(InputError, match=r'^dataset=tfds:'):
    ExperimentConfig(DataConfig(dataset=f'tfds:{name}')).validated()


def test_data_sets_are_found_by_being_there():
  found = datasets.registered()
  modules = {path.stem for path in (ROOT / 'tff_cluster/data/datasets').glob('[a-z]*.py')}
  assert {'digits', 'mnist', 'file', 'tfds:NAME'} <= set(found) and len(modules) == len(found)


@pytest.mark.tensorflow
def test_real_sets_one_built_in_and_one_not(images_once, real_data):
  own, generic = (DataConfig(dataset=name, data_dir=str(real_data)) for name in ('mnist', 'tfds:mnist'))
  assert sources.check(own) == sources.check(generic)
  np.testing.assert_array_equal(sources.load(own).test_x, sources.load(generic).test_x)
  other = DataConfig(dataset='tfds:emnist/byclass', data_dir=str(real_data))
  found = sources.load(other)
  assert found.train_x.shape[1:] == (28, 28, 1) and found.num_classes == 62
  assert sources.check(other).rows == len(found.train_y) + len(found.test_y)
