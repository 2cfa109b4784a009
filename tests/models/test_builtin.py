"""Sizes of the built-in models, against the models that Keras builds."""

import math

import pytest

from tff_cluster.base.errors import InputError
from tff_cluster.models import builtin


@pytest.mark.tensorflow
@pytest.mark.parametrize('shape', [(32, 32, 3), (19, 23, 2)], ids=str)
@pytest.mark.parametrize('name', builtin.MODELS)
def test_parameters_and_activations_are_those_of_keras(name, shape):
  from tff_cluster.models import build

  model = build.build(name, shape, 7, seed=0)
  kinds = ('Conv2D', 'MaxPooling2D', 'Dense')
  computed = [layer for layer in model.layers[:-1] if type(layer).__name__ in kinds]
  activations = sum(math.prod(layer.output_shape[1:]) for layer in computed)
  assert builtin.size(name, shape, 7) == (model.count_params(), activations)


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
