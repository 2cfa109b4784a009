"""Sizes of the built-in models, against the models that Keras builds."""

import math

import pytest

from tff_cluster.base.errors import InputError
from tff_cluster.models import builtin

SHAPES = [(32, 32, 3), (19, 23, 2)]
TEXTS = [(40,), (9,)]
NAMED = [
  (name, shape) for name in builtin.MODELS for shape in (TEXTS if builtin.reads_text(name) else SHAPES)
]


def _computed(layer):
  """Returns how many numbers a layer of Keras computes for one example."""
  kind = type(layer).__name__
  if kind == 'LSTM':
    # Input, forget and output gate, candidate, state and output of each step.
    return 6 * layer.input_shape[1] * layer.units
  counted = ('Conv1D', 'Conv2D', 'MaxPooling2D', 'Dense', 'Embedding')
  return math.prod(layer.output_shape[1:]) if kind in counted else 0


@pytest.mark.tensorflow
@pytest.mark.parametrize(('name', 'shape'), NAMED, ids=str)
def test_parameters_and_activations_are_those_of_keras(name, shape):
  from tff_cluster.models import build

  model = build.build(name, shape, 7, seed=0)
  activations = sum(_computed(layer) for layer in model.layers[:-1])
  assert builtin.size(name, shape, 7) == (model.count_params(), activations)


def test_sizes_of_models_of_text_by_hand():
  # Embedding, convolutions over 5 of 8 and of 64 numbers, and 32 places with 64 numbers each.
  assert builtin.size('char_cnn', (40,), 64)[0] == 64 * 8 + 41 * 64 + 321 * 64 + 2049 * 64 == 154_816
  # Four gates see 8 numbers, 128 outputs and a bias.
  assert builtin.size('char_rnn', (40,), 64)[0] == 64 * 8 + 4 * 137 * 128 + 129 * 64 == 78_912


@pytest.mark.parametrize(('name', 'least'), [('char_cnn', 9), ('char_rnn', 1)])
def test_texts_that_are_too_short_or_none_are_refused(name, least):
  builtin.size(name, (least,), 3)
  for shape in ((least - 1,), (28, 28, 1), ()):
    with pytest.raises(
      InputError, match=f'{name} does not fit examples of shape .*at least {least} characters'
    ):
      builtin.size(name, shape, 3)


@pytest.mark.tensorflow
@pytest.mark.parametrize(('name', 'least'), [('mnist_cnn', 4), ('femnist_cnn', 16), ('cifar_cnn', 18)])
def test_images_that_are_too_small_or_none_are_refused_as_keras_refuses_them(name, least):
  from tff_cluster.models import build

  parameters, _ = builtin.size(name, (least, least, 1), 3)
  assert parameters == build.build(name, (least, least, 1), 3, seed=0).count_params()
  with pytest.raises(InputError, match=f'^model={name} does not fit'):
    build.build(name, (least - 1, least, 1), 3, seed=0)
  message = f'{name} does not fit examples of shape .*at least {least} x {least}'
  for shape in ((8,), (least - 1, 99, 1), (99, least - 1, 1), (28, 28)):
    with pytest.raises(InputError, match=message):
      builtin.size(name, shape, 3)
