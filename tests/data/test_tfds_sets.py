"""Any set of labelled images of TensorFlow Datasets: tiny ones are written to a folder here, with TFDS's own writer."""

import json
import os
import pathlib
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest

from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.data import datasets, sources
from tff_cluster.data.populate import build_population
from tff_cluster.experiment.config import DataConfig, ExperimentConfig

ROOT = pathlib.Path(__file__).parents[2]
DATA = os.environ.get('TFF_CLUSTER_DATA')
SIDE, CHANNELS, CLASSES = 32, 3, 100


def rows(count, seed, shape=(SIDE, SIDE, CHANNELS), dtype=np.uint8):
  rng = np.random.default_rng(seed)
  x = rng.integers(0, 256, (count, *shape)) if dtype == np.uint8 else rng.random((count, *shape))
  return x.astype(dtype), rng.integers(0, CLASSES, count)


def write(folder, name, parts, features=None, config=None):
  """Writes a set `name` with TFDS; parts are (x, y) by split."""
  import tensorflow_datasets as tfds

  x = next(iter(parts.values()))[0]
  usual = {
    'image': tfds.features.Image(shape=x.shape[1:]),
    'label': tfds.features.ClassLabel(num_classes=CLASSES),
  }
  given = features or usual
  features = tfds.features.FeaturesDict(given)
  examples = {
    split: [(k, dict(zip(given, pair, strict=True))) for k, pair in enumerate(zip(*arrays, strict=True))]
    for split, arrays in parts.items()
  }
  tfds.dataset_builders.store_as_tfds_dataset(
    name=name, config=config, version='1.0.0', features=features, split_datasets=examples, data_dir=folder
  )


@pytest.fixture(scope='module')
def sets(tmp_path_factory):
  """A folder of TFDS with small sets, the first like CIFAR-100."""
  pytest.importorskip('tensorflow_datasets')
  import tensorflow_datasets as tfds

  folder = tmp_path_factory.mktemp('data') / 'tfds'
  folder.mkdir()
  train, test = rows(300, 0), rows(60, 1)
  label = tfds.features.ClassLabel(num_classes=CLASSES)
  write(folder, 'coloured', {'train': train, 'test': test})
  write(folder, 'small', {'train': train, 'test': test}, config='one')
  write(folder, 'untested', {'train': train})
  write(folder, 'untrained', {'test': test})
  write(
    folder,
    'bare',
    {'train': train},
    {'image': tfds.features.Image(shape=train[0].shape[1:]), 'number': np.int64},
  )
  write(
    folder, 'text', {'train': (np.array(['a', 'b']), [0, 1])}, {'text': tfds.features.Text(), 'label': label}
  )
  write(
    folder, 'sizes', {'train': train}, {'image': tfds.features.Image(shape=(None, None, 3)), 'label': label}
  )
  write(
    folder,
    'deep',
    {'train': (train[0].astype(np.uint16), train[1])},
    {
      'image': tfds.features.Image(shape=train[0].shape[1:], dtype=np.uint16, encoding_format='png'),
      'label': label,
    },
  )
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


@pytest.mark.tensorflow
def test_a_set_without_test_rows_has_some_held_out(sets):
  population = build_population(config(sets, 'untested', test_fraction=0.25))
  assert len(population.global_test_y) == 75
  with pytest.raises(
    InputError, match=r'test_fraction=0.25 does not apply to dataset=tfds:coloured, which has test rows'
  ):
    sources.check(config(sets, 'coloured', test_fraction=0.25))
  with pytest.raises(InputError, match=r'test_fraction=0.25 does not apply'):
    sources.load(config(sets, 'coloured', test_fraction=0.25))


@pytest.mark.tensorflow
def test_a_configuration_of_a_set(sets):
  for name in ('small/one', 'small/one:1.0.0'):
    assert sources.check(config(sets, name)).rows == 360
    assert len(sources.load(config(sets, name)).train_y) == 300
  assert sources.check(config(sets, 'small')) is None  # Only TFDS knows which one is meant.


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
def test_a_set_that_nobody_knows(sets, monkeypatch):
  def no_network(*_, **__):
    raise urllib.error.URLError('Name or service not known')

  monkeypatch.setattr(urllib.request, 'urlopen', no_network)
  given = config(sets, 'no_such_set_of_images')
  with pytest.raises(
    EnvironmentFault, match=r'no_such_set_of_images.*does not exist, and downloading failed \(no connection'
  ):
    sources.check(given)
  with pytest.raises(InputError, match="TensorFlow Datasets knows no set 'no_such_set_of_images'"):
    sources.load(given)
  with pytest.raises(
    EnvironmentFault, match=r'fashion_mnist: .*does not exist, and downloading failed \(no connection'
  ):
    sources.load(config(sets, 'fashion_mnist'))


@pytest.mark.tensorflow
def test_the_early_look_imports_nothing_slow_and_counts_memory(sets):
  program = (
    'import sys\n'
    'from tff_cluster.experiment import memory_need\n'
    'from tff_cluster.experiment.config import DataConfig, ExperimentConfig\n'
    'from tff_cluster.data import sources\n'
    f'data = DataConfig(dataset="tfds:coloured", data_dir={str(sets.parent)!r}, partition="iid", num_clients=5)\n'
    'config = ExperimentConfig(data).validated()\n'
    'outline = sources.check(data)\n'
    'print(memory_need.of_config(config, outline.rows, outline.row_bytes, outline.num_classes, 1).rows)\n'
    'print([m for m in sys.modules if m.split(".")[0] in ("tensorflow", "tensorflow_datasets", "absl")])\n'
  )
  environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
  done = subprocess.run(
    [sys.executable, '-c', program], capture_output=True, text=True, env=environment, check=True
  )
  assert done.stdout.splitlines() == ['360', '[]'] and done.stderr == ''


@pytest.mark.tensorflow
@pytest.mark.parametrize('model', ['2nn', 'mnist_cnn', 'cifar_cnn', 'logistic'])
def test_built_in_models_take_colours_and_a_hundred_classes(sets, model):
  from tff_cluster.models import build, builtin

  population = build_population(config(sets, 'coloured'))
  assert population.input_shape == (SIDE, SIDE, CHANNELS) and population.num_classes == CLASSES
  made = build.build(model, population.input_shape, population.num_classes, 0)
  assert made.output_shape == (None, CLASSES)
  assert made.count_params() == builtin.size(model, population.input_shape, CLASSES)[0]


@pytest.mark.tensorflow
def test_a_run_on_such_a_set(sets, tmp_path):
  command = [
    sys.executable, '-W', 'ignore', '-m', 'phases.run_all', '--dataset=tfds:coloured', f'--data_dir={sets.parent}',
    '--partition=dirichlet', '--num_clients=4', '--model=2nn', '--phase1_rounds=1', '--phase2_rounds=1',
    '--clustering=kmeans,num_clusters=2', f'--output_dir={tmp_path / "run"}',
  ]  # fmt: skip
  environment = {**os.environ, 'PYTHONPATH': str(ROOT), 'TF_CPP_MIN_LOG_LEVEL': '3'}
  done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
  assert done.returncode == 0, done.stderr
  assert done.stdout.startswith('memory: about ')
  results = json.loads((tmp_path / 'run/results.json').read_text())
  assert (
    results['population']['num_classes'] == CLASSES and results['population']['name'] == 'coloured dirichlet'
  )
  command[command.index('--dataset=tfds:coloured')] = '--dataset=tfds:bare'
  done = subprocess.run(
    [*command[:-1], f'--output_dir={tmp_path / "other"}'],
    capture_output=True,
    text=True,
    env=environment,
    timeout=300,
  )
  assert done.returncode == 2 and done.stderr.startswith(
    "error: --dataset=tfds:bare: it has no feature 'label'"
  )
  assert done.stderr.count('\n') == 1 and not (tmp_path / 'other').exists()


@pytest.mark.parametrize('name', ['', ' ', 'a b', '../x', '/etc', 'a/b/c', 'x:1', 'a\nb', '1', 'a:1.0.0:'])
def test_what_is_no_name(name):
  with pytest.raises(InputError, match=r'^dataset=tfds:'):
    ExperimentConfig(DataConfig(dataset=f'tfds:{name}')).validated()


def test_data_sets_are_found_by_being_there():
  assert list(datasets.registered()) == ['digits', 'mnist', 'cifar10', 'emnist', 'file', 'tfds:NAME']
  modules = {path.stem for path in (ROOT / 'tff_cluster/data/datasets').glob('[a-z]*.py')}
  assert len(modules) == len(datasets.registered())


@pytest.mark.tensorflow
@pytest.mark.skipif(DATA is None, reason='TFF_CLUSTER_DATA is not set')
@pytest.mark.parametrize('name', ['mnist', 'cifar10'])
def test_what_is_built_in_is_the_same_by_its_name_in_tfds(name):
  own = sources.load(DataConfig(dataset=name, data_dir=DATA))
  generic = DataConfig(dataset=f'tfds:{name}', data_dir=DATA)
  found, outline = sources.load(generic), sources.check(generic)
  for one, other in ((own.train_x, found.train_x), (own.train_y, found.train_y), (own.test_x, found.test_x)):
    np.testing.assert_array_equal(one, other)
  assert outline == sources.check(DataConfig(dataset=name, data_dir=DATA))


@pytest.mark.tensorflow
@pytest.mark.skipif(DATA is None, reason='TFF_CLUSTER_DATA is not set')
def test_a_real_set_that_is_not_built_in():
  found = sources.load(DataConfig(dataset='tfds:emnist/byclass', data_dir=DATA))
  assert found.train_x.shape[1:] == (28, 28, 1) and found.num_classes == 62
  outline = sources.check(DataConfig(dataset='tfds:emnist/byclass', data_dir=DATA))
  assert outline.rows == len(found.train_y) + len(found.test_y)
