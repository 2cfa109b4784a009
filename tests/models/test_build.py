"""Models by name: the papers' sizes, seeded weights, and models of users' own."""

import random
import sys
import types

import numpy as np
import pytest

from tff_cluster.base import digests
from tff_cluster.base.errors import InputError
from tff_cluster.models import build, builtin

pytestmark = pytest.mark.tensorflow

IMAGES = (28, 28, 1)


def digest(model):
  return digests.of_arrays(model.get_weights())


@pytest.mark.parametrize(
  ('name', 'shape', 'classes', 'parameters'),
  [
    # McMahan 2017, section 3, and the same counts by hand.
    ('mnist_cnn', IMAGES, 10, 1_663_370),
    ('2nn', IMAGES, 10, 199_210),
    # What the public code of Kim 2024 prints.
    ('1nn', IMAGES, 10, 159_010),
    ('logistic', IMAGES, 10, 7_850),
    # 62 classes: the last layer of 512 + 1 inputs has 52 outputs more.
    ('mnist_cnn', IMAGES, 62, 1_663_370 + 52 * 513),
    # 5x5 convolutions 1 -> 32 -> 64 without padding, dense 4 * 4 * 64 -> 2048 -> 62.
    ('femnist_cnn', IMAGES, 62, 26 * 32 + 801 * 64 + 1025 * 2048 + 2049 * 62),
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
  assert digest(build.build('mnist_cnn', IMAGES, 10, 0, 'fan_in_uniform')) == digest(model)
  assert digest(build.build('mnist_cnn', IMAGES, 10, 1, 'fan_in_uniform')) != digest(model)
  # Layers of other kinds are left alone.
  from tensorflow import keras

  layers = [keras.layers.InputLayer((4,)), keras.layers.Dense(3), keras.layers.LayerNormalization()]
  model = keras.Sequential(layers)
  before = model.get_weights()
  build.draw_fan_in_uniform(model, 0)
  assert [np.any(one != two) for one, two in zip(before, model.get_weights(), strict=True)] == [True] * 2 + [
    False
  ] * 2


def test_fan_in_uniform_reaches_models_within_models_and_is_refused_where_it_reaches_nothing(monkeypatch):
  from tensorflow import keras

  def nested(shape, classes):
    inner = keras.Sequential([keras.layers.InputLayer(shape), keras.layers.Dense(5), keras.layers.Dense(5)])
    return keras.Sequential([keras.layers.InputLayer(shape), inner, keras.layers.Dense(classes)])

  def none(shape, classes):
    return keras.Sequential([keras.layers.InputLayer(shape), keras.layers.LayerNormalization()])

  module = types.SimpleNamespace(nested=nested, none=none)
  monkeypatch.setitem(sys.modules, 'of_a_user', module)
  plain, drawn = (
    build.build('of_a_user:nested', (4,), 3, 0, each).get_weights() for each in ('model', 'fan_in_uniform')
  )
  assert len(drawn) == 6 and all(np.any(one != other) for one, other in zip(plain, drawn, strict=True))
  # Equal shapes within, and draws of their own.
  assert np.any(drawn[1] != drawn[3])
  with pytest.raises(InputError, match='fan_in_uniform has no effect on model=of_a_user:none'):
    build.build('of_a_user:none', (4,), 4, 0, 'fan_in_uniform')


def test_a_seed_gives_the_same_bits_whatever_was_built_before_and_moves_no_global_state():
  def built(names):
    shapes = {name: (40,) if builtin.reads_text(name) else (32, 32, 3) for name in names}
    models = {name: build.build(name, shape, 10, 5) for name, shape in shapes.items()}
    return {name: (digest(model), model.to_json()) for name, model in models.items()}

  random.seed(1)
  np.random.seed(1)
  first = built(builtin.MODELS)
  random.seed(2)
  np.random.seed(2)
  before = random.getstate(), np.random.get_state()[1].tolist()
  assert built(reversed(builtin.MODELS)) == first
  assert (random.getstate(), np.random.get_state()[1].tolist()) == before
  assert len({digest(build.build('2nn', IMAGES, 10, seed)) for seed in range(3)}) == 3


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

def layer(input_shape, num_classes):
  return keras.Sequential([layers.InputLayer(input_shape), layers.Dense(num_classes), layers.Softmax()])

def nothing(input_shape, num_classes):
  return None

def raises(input_shape, num_classes):
  raise RuntimeError('planted\\nin two lines')

def other_input(input_shape, num_classes):
  return good((7,), num_classes)

def two_outputs(input_shape, num_classes):
  inputs = keras.Input(input_shape)
  return keras.Model(inputs, [layers.Dense(num_classes)(inputs), layers.Dense(num_classes)(inputs)])

def without_input(input_shape, num_classes):
  return keras.Sequential([layers.Dense(num_classes)])

def batch_norm(input_shape, num_classes):
  return keras.Sequential(
    [layers.InputLayer(input_shape), layers.BatchNormalization(), layers.Dense(num_classes)])

"""


@pytest.fixture(scope='module')
def own(tmp_path_factory):
  """Puts the modules of a user on the path."""
  folder = tmp_path_factory.mktemp('own')
  (folder / 'own_models').mkdir()
  for name, text in (
    ('__init__', ''),
    ('nets', OWN),
    ('unfinished', 'def model(shape, classes:\n'),
    ('failing', 'raise OSError("no such disk")\n'),
  ):
    (folder / 'own_models' / f'{name}.py').write_text(text)
  with pytest.MonkeyPatch.context() as patch:  # As if one stood in this folder.
    patch.chdir(folder)
    yield


@pytest.mark.parametrize('name', ['good', 'functional', 'numpy_draws', 'layer'])
def test_a_users_model_is_built_with_seeded_weights(name, own):
  one, again, other = (build.build(f'own_models.nets:{name}', (6,), 3, seed) for seed in (0, 0, 1))
  assert one.output_shape == (None, 3)
  assert digest(one) == digest(again) != digest(other)
  assert build.outputs_probabilities(one) == (name in ('functional', 'layer'))


@pytest.mark.parametrize(
  ('name', 'says'),
  [
    ('no_such_module:f', "cannot be imported: there is no module 'no_such_module'"),
    ('own_models.nets:missing', "has no attribute 'missing'"),
    ('own_models.unfinished:model', 'cannot be imported: SyntaxError'),
    ('own_models.failing:model', 'cannot be imported: OSError: no such disk'),
    ('own_models.nets:text', 'is not a function'),
    ('own_models.nets:nothing', 'returned NoneType, expected a tf.keras.Model'),
    ('own_models.nets:raises', 'does not fit examples of shape (6,): RuntimeError: planted'),
    ('own_models.nets:other_input', 'has input shape (None, 7), expected (None, 6)'),
    ('own_models.nets:two_outputs', 'has output shape [(None, 3), (None, 3)], expected (None, 3)'),
    ('own_models.nets:without_input', 'does not know the shape of its input'),
    (
      'own_models.nets:batch_norm',
      'has non-trainable variables: batch normalization, for instance, keeps means',
    ),
    ('own_models.nets:batch_norm', 'use keras.layers.GroupNormalization or LayerNormalization instead'),
    ('mnist_cnn', 'does not fit examples of shape (6,)'),
  ],
)
def test_wrong_models_are_one_line(name, says, own):
  with pytest.raises(InputError) as caught:
    build.build(name, (6,), 3, 0)
  assert says in str(caught.value) and f'model={name}' in str(caught.value)
  assert '\n' not in str(caught.value)
