"""Models by name: the papers' sizes, seeded weights, and models of users' own."""

import json
import os
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

from tff_cluster.base import digests
from tff_cluster.base.errors import InputError
from tff_cluster.models import build

pytestmark = pytest.mark.tensorflow

ROOT = pathlib.Path(__file__).parents[2]
IMAGES = (28, 28, 1)


def digest(model):
  return digests.of_arrays(model.get_weights())


@pytest.mark.parametrize(
  ('name', 'shape', 'classes', 'parameters'),
  [
    # McMahan 2017, section 3, and the same counts by hand.
    ('mnist_cnn', IMAGES, 10, 1_663_370),
    ('2nn', IMAGES, 10, 199_210),
    ('logistic', IMAGES, 10, 7_850),
    # 62 classes: the last layer of 512 + 1 inputs has 52 outputs more.
    ('mnist_cnn', IMAGES, 62, 1_663_370 + 52 * 513),
    # 3x3 convolutions 3 -> 32 -> 64 -> 64, dense 4 * 4 * 64 -> 64 -> 10.
    ('cifar_cnn', (32, 32, 3), 10, 28 * 32 + 289 * 64 + 577 * 64 + 1025 * 64 + 65 * 10),
    ('logistic', (6,), 3, 21),
  ],
)
def test_parameters_are_the_papers(name, shape, classes, parameters):
  model = build.build(name, shape, classes, seed=0)
  assert model.count_params() == sum(w.size for w in model.get_weights()) == parameters
  assert model.input_shape == (None, *shape) and model.output_shape == (None, classes)
  assert not build.outputs_probabilities(model)


def test_fan_in_uniform_is_pytorchs_default():
  # nn.Linear and nn.Conv2d: kernels and biases from U(-b, b) with b = 1 / sqrt(inputs of one output).
  model = build.build('mnist_cnn', IMAGES, 10, 0, 'fan_in_uniform')
  fans_in = {(5, 5, 1, 32): 25, (5, 5, 32, 64): 800, (3136, 512): 3136, (512, 10): 512}
  weights = model.get_weights()
  for kernel, bias in zip(weights[::2], weights[1::2], strict=True):
    bound = fans_in[kernel.shape] ** -0.5
    for drawn in (kernel, bias):
      assert np.abs(drawn).max() <= bound * (1 + 1e-6) and np.abs(drawn).max() > 0.7 * bound
    assert kernel.std() == pytest.approx(bound / 3**0.5, rel=0.05)
  again, other = (build.build('mnist_cnn', IMAGES, 10, seed, 'fan_in_uniform') for seed in (0, 1))
  assert digest(again) == digest(model) != digest(other)
  assert digest(model) != digest(build.build('mnist_cnn', IMAGES, 10, 0))


def test_fan_in_uniform_leaves_other_layers_alone():
  from tensorflow import keras

  model = keras.Sequential(
    [keras.layers.InputLayer((4,)), keras.layers.Dense(3), keras.layers.LayerNormalization()]
  )
  before = model.get_weights()
  build.draw_fan_in_uniform(model, 0)
  after = model.get_weights()
  assert np.any(before[0] != after[0]) and np.any(before[1] != after[1])
  np.testing.assert_array_equal(before[2:], after[2:])


def test_a_seed_gives_the_same_bits_in_every_process():
  # Digest of the weights and architecture of each built-in model, built in reverse order elsewhere.
  names = ['mnist_cnn', '2nn', 'logistic', 'cifar_cnn']
  script = (
    'import json\nfrom tff_cluster.base import digests\nfrom tff_cluster.models import build\n'
    f'models = [build.build(name, (32, 32, 3), 10, 5) for name in {names[::-1]!r}]\n'
    'print(json.dumps([[digests.of_arrays(m.get_weights()), m.to_json()] for m in models[::-1]]))'
  )
  environment = os.environ | {'PYTHONHASHSEED': '3'}
  command = [sys.executable, '-c', script]
  done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
  here = [build.build(name, (32, 32, 3), 10, 5) for name in names]
  assert [[digest(m), m.to_json()] for m in here] == json.loads(done.stdout)
  assert len({digest(build.build('2nn', IMAGES, 10, seed)) for seed in range(5)}) == 5


def test_weights_do_not_depend_on_global_state_nor_change_it():
  random.seed(1)
  np.random.seed(1)
  first = digest(build.build('2nn', (6,), 3, 0))
  random.seed(2)
  np.random.seed(2)
  before = random.getstate(), np.random.get_state()[1].tolist()
  assert digest(build.build('2nn', (6,), 3, 0)) == first
  assert (random.getstate(), np.random.get_state()[1].tolist()) == before


OWN = """
import numpy as np
import tensorflow as tf
from tensorflow import keras
layers = keras.layers
text = 'not a function'

def good(input_shape, num_classes):
  return keras.Sequential([layers.InputLayer(input_shape), layers.Dense(4, 'tanh'), layers.Dense(num_classes)])

def functional(input_shape, num_classes):
  inputs = keras.Input(input_shape)
  return keras.Model(inputs, layers.Dense(num_classes, 'softmax')(inputs))

def numpy_draws(input_shape, num_classes):
  model = good(input_shape, num_classes)
  model.set_weights([np.random.normal(size=w.shape) for w in model.get_weights()])
  return model

def activation(input_shape, num_classes):
  return keras.Sequential([layers.InputLayer(input_shape), layers.Dense(num_classes), layers.Activation('softmax')])

def layer(input_shape, num_classes):
  return keras.Sequential([layers.InputLayer(input_shape), layers.Dense(num_classes), layers.Softmax()])

def nothing(input_shape, num_classes):
  return None

def raises(input_shape, num_classes):
  raise RuntimeError('planted\\nin two lines')

def silent(input_shape, num_classes):
  raise RuntimeError

def one_argument(input_shape):
  return good(input_shape, 3)

def other_classes(input_shape, num_classes):
  return good(input_shape, num_classes + 1)

def other_input(input_shape, num_classes):
  return good((7,), num_classes)

def two_outputs(input_shape, num_classes):
  inputs = keras.Input(input_shape)
  return keras.Model(inputs, [layers.Dense(num_classes)(inputs), layers.Dense(num_classes)(inputs)])

def without_input(input_shape, num_classes):
  return keras.Sequential([layers.Dense(num_classes)])

class Subclassed(keras.Model):
  def call(self, x):
    return x

def subclassed(input_shape, num_classes):
  return Subclassed()

def batch_norm(input_shape, num_classes):
  return keras.Sequential(
    [layers.InputLayer(input_shape), layers.BatchNormalization(), layers.Dense(num_classes)])

def frozen(input_shape, num_classes):
  return keras.Sequential(
    [layers.InputLayer(input_shape), layers.Dense(4, trainable=False), layers.Dense(num_classes)])
"""


@pytest.fixture(scope='module')
def own(tmp_path_factory):
  """Puts the modules of a user on the path."""
  folder = tmp_path_factory.mktemp('own')
  (folder / 'own_models').mkdir()
  (folder / 'own_models' / '__init__.py').write_text('')
  (folder / 'own_models' / 'nets.py').write_text(OWN)
  (folder / 'own_models' / 'unfinished.py').write_text('def model(shape, classes:\n')
  (folder / 'own_models' / 'failing.py').write_text('raise OSError("no such disk")\n')
  sys.path.insert(0, str(folder))
  yield
  sys.path.remove(str(folder))


@pytest.mark.parametrize('name', ['good', 'functional', 'numpy_draws', 'activation', 'layer'])
def test_a_users_model_is_built_with_seeded_weights(name, own):
  one, again, other = (build.build(f'own_models.nets:{name}', (6,), 3, seed) for seed in (0, 0, 1))
  assert one.output_shape == (None, 3)
  assert digest(one) == digest(again) != digest(other)
  assert build.outputs_probabilities(one) == (name in ('functional', 'activation', 'layer'))


@pytest.mark.parametrize(
  ('name', 'says'),
  [
    ('no_such_module:f', "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
    ('own_models.missing:f', 'cannot be imported'),
    ('own_models.nets:missing', "has no attribute 'missing'"),
    ('own_models.unfinished:model', 'cannot be imported: SyntaxError'),
    ('own_models.failing:model', 'cannot be imported: OSError: no such disk'),
    ('own_models.nets:text', 'is not a function'),
    ('own_models.nets:nothing', 'returned NoneType, expected a tf.keras.Model'),
    ('own_models.nets:raises', 'does not fit examples of shape (6,): RuntimeError: planted'),
    ('own_models.nets:silent', 'RuntimeError: no message'),
    ('own_models.nets:one_argument', 'TypeError'),
    ('own_models.nets:other_classes', 'has output shape (None, 4), expected (None, 3)'),
    ('own_models.nets:other_input', 'has input shape (None, 7), expected (None, 6)'),
    ('own_models.nets:two_outputs', 'has output shape [(None, 3), (None, 3)], expected (None, 3)'),
    ('own_models.nets:without_input', 'does not know the shape of its input'),
    ('own_models.nets:subclassed', 'does not know the shape of its input'),
    ('own_models.nets:batch_norm', 'has non-trainable variables'),
    ('own_models.nets:frozen', 'has non-trainable variables'),
    ('mnist_cnn', 'does not fit examples of shape (6,)'),
  ],
)
def test_wrong_models_are_one_line(name, says, own):
  with pytest.raises(InputError) as caught:
    build.build(name, (6,), 3, 0)
  assert says in str(caught.value) and f'model={name}' in str(caught.value)
  assert '\n' not in str(caught.value)


def test_a_model_in_the_folder_one_stands_in_is_found(tmp_path, monkeypatch):
  (tmp_path / 'my_own_net.py').write_text(OWN)
  monkeypatch.chdir(tmp_path)
  assert build.build('my_own_net:good', (6,), 3, 0).count_params() == 6 * 4 + 4 + 4 * 3 + 3
