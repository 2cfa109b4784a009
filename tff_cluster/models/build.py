"""From a model's name to a Keras model with seeded weights."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tff_cluster.base import imports, seeding, words
from tff_cluster.base.errors import InputError, argument
from tff_cluster.models import builtin


def build(
  name: str, input_shape: Sequence[int], num_classes: int, seed: int, initializer: str = 'model'
) -> Any:
  """Returns a Keras model whose weights depend on (name, shapes, seed, initializer) only.

  Args:
    name: A built-in name, or 'package.module:function'; the function takes (input_shape, num_classes)
      and returns a Keras model from [batch, *input_shape] float32 in [0, 1] to logits, or to
      probabilities where its last layer is a softmax, [batch, num_classes].
    input_shape: Shape of one example.
    num_classes: Number of classes.
    seed: The experiment's seed.
    initializer: 'model': as the model says; 'fan_in_uniform': see `draw_fan_in_uniform`.

  Raises:
    InputError: if the function cannot be imported or called, or what it returns does not fit.
  """
  import tensorflow as tf

  function = _imported(name) if name not in builtin.MODELS else _built_in(name)
  # Keras initializers without a seed of their own draw from the global generators. Python's and NumPy's are set for the time of this
  # call only, TensorFlow's from then on: nobody can ask it for the seed that it had.
  python_state, numpy_state = random.getstate(), np.random.get_state()
  tf.keras.backend.reset_uids()  # Layer names, and with them to_json(), depend on nothing built before.
  tf.keras.utils.set_random_seed(seeding.integer_seed(seed, 'initial weights'))
  try:
    model = function(tuple(input_shape), num_classes)
  except InputError:
    raise
  except Exception as error:
    raise InputError(
      f'{argument("model", name)} does not fit examples of shape {tuple(input_shape)}: {type(error).__name__}: '
      f'{words.first_line(error, "no message")}'
    ) from error
  finally:
    random.setstate(python_state)
    np.random.set_state(numpy_state)
  if not isinstance(model, tf.keras.Model):
    raise InputError(f'{argument("model", name)} returned {type(model).__name__}, expected a tf.keras.Model')
  given = getattr(model, 'input_shape', None)
  if given is None or getattr(model, 'output_shape', None) is None:
    raise InputError(
      f'{argument("model", name)} returned a model that does not know the shape of its input; let it begin with '
      'keras.layers.InputLayer(input_shape) or keras.Input(input_shape)'
    )
  if given != (None, *input_shape):
    raise InputError(f'{argument("model", name)} has input shape {given}, expected {(None, *input_shape)}')
  if tuple(model.output_shape) != (None, num_classes):
    raise InputError(
      f'{argument("model", name)} has output shape {model.output_shape}, expected (None, {num_classes})'
    )
  if model.non_trainable_variables:
    raise InputError(
      f'{argument("model", name)} has non-trainable variables: batch normalization, for instance, keeps means of the rows that it '
      'saw, which differ from client to client and which no gradient trains; use keras.layers.GroupNormalization or '
      'LayerNormalization instead'
    )
  if initializer == 'fan_in_uniform' and not draw_fan_in_uniform(model, seed):
    raise InputError(
      f'{argument("initializer", initializer)} has no effect on {argument("model", name)}, which has no dense or convolutional layer'
    )
  return model


def draw_fan_in_uniform(model: Any, seed: int, *places: int) -> int:
  """Draws kernels and biases of dense and convolutional layers from U(-1/sqrt(fan in), 1/sqrt(fan in)); returns of how many layers.

  The default of PyTorch for these layers; the weights of other layers stay. Glorot uniform, the default of Keras,
  gives mnist_cnn's dense layers kernels 2.3 times as large.

  Args:
    model: The model, or one that is a layer of it.
    seed: The experiment's seed.
    *places: Where that layer stands, of models within models.
  """
  from tensorflow import keras

  kinds = (keras.layers.Dense, keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Conv3D)
  drawn = 0
  for number, layer in enumerate(model.layers):
    if isinstance(layer, keras.Model):
      drawn += draw_fan_in_uniform(layer, seed, *places, number)
    elif type(layer) in kinds:
      drawn += 1
      rng = seeding.generator(seed, 'initial weights', *places, number)
      shapes = [weight.shape for weight in layer.get_weights()]
      bound = float(np.prod(shapes[0][:-1])) ** -0.5
      layer.set_weights([rng.uniform(-bound, bound, shape).astype(np.float32) for shape in shapes])
  return drawn


def outputs_probabilities(model: Any) -> bool:
  """Returns whether the Keras model ends in a softmax, so that its outputs are no logits."""
  import tensorflow as tf

  last = model.layers[-1]
  return isinstance(last, tf.keras.layers.Softmax) or getattr(last, 'activation', None) in (
    tf.keras.activations.softmax,
    tf.nn.softmax,
  )


def _imported(name: str) -> Callable[[Sequence[int], int], Any]:
  function = imports.load('model', name)
  if not callable(function):
    raise InputError(f'{argument("model", name)} is not a function')
  return function


def _built_in(name: str) -> Callable[[Sequence[int], int], Any]:
  """Returns what makes a built-in model, a Keras model without an optimizer whose outputs are logits [batch, classes]."""
  from tensorflow import keras

  def build_layers(input_shape: Sequence[int], num_classes: int) -> Any:
    kept = builtin.MODELS[name]
    layers = [keras.layers.InputLayer(input_shape)]
    for each in kept.images:
      if isinstance(each, builtin.Convolution):
        layers.append(keras.layers.Conv2D(each.filters, each.side, padding=each.padding, activation='relu'))
      else:
        layers.append(keras.layers.MaxPooling2D(2))
    if kept.characters:
      layers.append(keras.layers.Embedding(num_classes, builtin.EMBEDDING))
    for one in kept.characters:
      if isinstance(one, builtin.Convolution):
        layers.append(keras.layers.Conv1D(one.filters, one.side, padding=one.padding, activation='relu'))
      else:
        layers.append(keras.layers.LSTM(one))
    dense = [keras.layers.Dense(width, activation='relu') for width in kept.widths]
    return keras.Sequential([*layers, keras.layers.Flatten(), *dense, keras.layers.Dense(num_classes)])

  return build_layers
